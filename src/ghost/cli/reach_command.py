"""`ghost reach`: the way of a packet by configuration, read with SAFE commands, and what a change would do to it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ghost.cli.reads_on_terminal import shown_reads
from ghost.cli.session_records import REACH
from ghost.cli.terminal import to_stdout
from ghost.config import Settings
from ghost.errors import UsageError
from ghost.lab import RunningLab, lab_behind_az, lab_programs, load_case
from ghost.lab import start as start_lab
from ghost.net import NOT_SHOWN, Fault, Flow, Network, Reach, ReachQuestion, Walk, name_of, reach_of
from ghost.records import SystemClock, new_command_id
from ghost.shell import SafeExecShell
from ghost.text import visible

STATUS: Final = {"passes": 0, "unknown": 3, "blocked": 4}
ONE_WAY: Final = "as far as Azure's configuration shows: the other end and its answer were not walked"
MAX_SHOWN: Final = 8
"""Of sources or ranges of ports in a row."""
PIPE_WIDTH: Final = 1000
"""Rows are folded on a terminal only: in a pipe, each is one line."""
MAX_REASONS: Final = 3
"""Of what is unknown, in one line."""


@dataclass(frozen=True)
class Question:
    source: str
    destination: str
    port: int | None
    protocol: str
    lab: str | None
    assume: Sequence[str]
    from_all: bool
    as_json: bool

    @property
    def of_network(self) -> ReachQuestion:
        return ReachQuestion(self.source, self.destination, self.port, self.protocol, self.assume, self.from_all)


def reach(question: Question, workspace_option: Path | None) -> int:
    """Print the way of a packet. Returns 0 if it passes, 3 if that is not known, 4 if it is blocked.

    Without a port, of all ports; with `from_all` of all sources: the highest.
    """
    asked = question.of_network
    asked.checked()
    settings = Settings(workspace=workspace_option) if workspace_option else Settings()
    settings = replace(settings, workspace=settings.workspace.absolute())
    if settings.private:
        raise UsageError("a walk compares addresses, which private mode hides: unset GHOST_PRIVATE for ghost reach")
    reader = _Reader(settings, question)
    told = _Told(reach_of(asked, reader.execute), asked, reader.asked_of, reader.session_id)
    if question.as_json:
        about = {"network": reader.asked_of, "session_id": reader.session_id}
        print(json.dumps(told.reach.as_dicts(**about), ensure_ascii=False, indent=2))
    elif told.reach.of:
        told.parts()
    else:
        told.walk()
    return max(STATUS[walked.outcome] for walked in told.reach.walks)


class _Reader:
    """Answers reads through a shell of its own session, with every command on record."""

    def __init__(self, settings: Settings, question: Question) -> None:
        self.session_id = new_command_id(REACH, SystemClock().now())
        lab = _lab(settings, question.lab, self.session_id)
        self.asked_of = lab.briefing.network if lab else "Azure"
        shell = SafeExecShell(
            self.session_id,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            anonymization_enabled=False,
            roots=[Path.cwd(), settings.workspace],
            **lab_programs(lab, own_az=question.lab is None),
        )
        self.execute = shown_reads(shell, str(question.of_network))


def _lab(settings: Settings, name: str | None, session_id: str) -> RunningLab | None:
    if name is None:
        return lab_behind_az()
    return start_lab(load_case(name), settings.workspace / "lab" / session_id, speed=settings.lab_speed)


_VERDICT = {"pass": ("pass", "green"), "rewrite": ("rewrite", "cyan"), "unknown": ("unknown", "yellow")}


@dataclass(frozen=True)
class _Told:
    """How an answer is printed for people."""

    reach: Reach
    question: ReachQuestion
    asked_of: str
    session_id: str

    def walk(self) -> None:
        (walked,) = self.reach.walks
        out = self._begin(_named(self.reach.network, walked.flow, self.reach.destination))
        table = _table("", "hop", "verdict", "why", "record")
        for hop in walked.hops:
            verdict, style = _VERDICT.get(hop.verdict, (hop.verdict.upper(), "bold red"))
            table.add_row(
                "→" if hop.leg == "forward" else "←",
                hop.kind.replace("_", " "),
                Text(verdict, style=style),
                Text(visible(hop.reason)),
                Text(" ".join(dict.fromkeys(reference.rpartition("_")[2] for reference in hop.references)), "dim"),
            )
        out.print(table)
        out.print(_summary(walked))
        mended = [(fault, text) for fault, text in self.reach.proposals() if fault.mend is not None]
        for number, (fault, assume) in enumerate(mended):
            out.print(f"  {'and ' if number else ''}{visible(str(fault.mend))}: {_then(fault)}", markup=False)
            if assume is not None:
                out.print(Text(f"      --assume {visible(shlex.quote(assume))}", "dim"))
        if walked.outcome == "passes":
            out.print(NOT_SHOWN, markup=False)
        if walked.blocker is not None:
            out.print(Text(f"Azure's rule: {walked.blocker.page}", style="dim"))
        self._end(out)

    def parts(self) -> None:
        """Print what ends alike: sources, or ports."""
        of, network = self.reach.of, self.reach.network
        out = self._begin(f"{_asked(network, self.question, self.reach.destination)}: {of}")
        table = _table(of, "outcome")
        for part in sorted(self.reach.parts, key=lambda part: STATUS[part.walk.outcome]):
            members = [visible(_name(network, each.removesuffix("/32"))) for each in part.of]
            more = f" and {len(members) - MAX_SHOWN} more" if len(members) > MAX_SHOWN else ""
            table.add_row(Text(", ".join(members[:MAX_SHOWN]) + more), _summary(part.walk))
        out.print(table)
        self._end(out)

    def _begin(self, title: str) -> Console:
        out = to_stdout()
        if not out.is_terminal:
            out.width = PIPE_WIDTH
        out.print(Text(f"{title}   {visible(self.asked_of)}", style="bold"))
        for change in self.reach.assumed:
            out.print(Text(f"assumed: {visible(change)}", style="bold magenta"))
        return out

    def _end(self, out: Console) -> None:
        out.print(Text(f"Records: ghost audit show {self.session_id}", style="dim"))


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _summary(walked: Walk) -> Text:
    if walked.blocker is not None:
        return Text(f"BLOCKED: {visible(walked.blocker.reason)}", "bold red")
    if walked.outcome == "passes":
        both_ways = any(hop.leg == "return" for hop in walked.hops)
        return Text(f"PASSES, {'in both directions' if both_ways else ONE_WAY}.", "bold green")
    reasons = dict.fromkeys(visible(hop.reason) for hop in walked.hops if hop.verdict == "unknown")
    return Text(f"UNKNOWN: {'; '.join(list(reasons)[:MAX_REASONS])}", "bold yellow")


def _then(fault: Fault) -> str:
    return {"passes": "it passes", "blocked": "the next fault blocks it", "unknown": "not known beyond"}[fault.outcome]


def _asked(network: Network, question: ReachQuestion, destination: str) -> str:
    port = "" if question.port is None else f"/{question.port}"
    to = f"{_name(network, destination)} {question.protocol.casefold()}{port}"
    return visible(f"→ {to}" if question.from_all else f"{question.source} → {to}")


def _name(network: Network, address: str) -> str:
    found = network.interfaces_with(address)
    return f"{name_of(found[0].machine or found[0].id)} ({address})" if len(found) == 1 else address


def _named(network: Network, flow: Flow, asked: str) -> str:
    port = "" if flow.destination_port is None else f"/{flow.destination_port}"
    resolved = "" if asked == flow.destination_address else f"{asked} = "
    destination = f"{resolved}{_name(network, flow.destination_address)}"
    return visible(f"{_name(network, flow.source_address)} → {destination} {flow.protocol.casefold()}{port}")
