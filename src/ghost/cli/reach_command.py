"""`ghost reach`: the way of a packet by configuration, read with SAFE commands, and what a change would do to it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ghost.cli.network_reads import NetworkReads, new_id
from ghost.cli.session_records import REACH
from ghost.cli.shell_options import lab_programs
from ghost.cli.terminal import to_stdout
from ghost.config import Settings
from ghost.errors import GhostError, UsageError
from ghost.lab import RunningLab, lab_behind_az, load_case
from ghost.lab import start as start_lab
from ghost.net import (
    FIRST_PUBLIC,
    Fault,
    Flow,
    Hop,
    Interface,
    Mend,
    Network,
    Part,
    Walk,
    check_form,
    collect,
    dns_name,
    explain,
    is_address,
    look_up,
    name_of,
    ports_to,
    proposal_of,
    proposed,
    public_address_of,
    read_interfaces,
    sources_of,
    walk,
)
from ghost.shell import SafeExecShell
from ghost.text import visible

STATUS: Final = {"passes": 0, "unknown": 3, "blocked": 4}
NOT_SHOWN: Final = (
    "Configuration does not show whether the guest's own firewall lets it in, whether anything listens there, nor loss "
    "and delay on the wire: see ghost investigate."
)
ONE_WAY: Final = "as far as Azure's configuration shows: the other end and its answer were not walked"
MAX_NAMES, MAX_NAME = 12, 80
"""Of names that are offered, and of the characters of one."""
MAX_SHOWN: Final = 8
"""Of sources or ranges of ports in a row."""
PIPE_WIDTH: Final = 1000
"""Rows are folded on a terminal only: in a pipe, each is one line."""
MAX_SOURCES: Final = 300
"""Of a walk from everywhere: `az` reads one machine a call."""
MAX_REASONS: Final = 3
"""Of what is unknown, in one line."""
PROTOCOLS: Final = {"tcp": "Tcp", "udp": "Udp", "icmp": "Icmp"}


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


def reach(question: Question, workspace_option: Path | None) -> int:
    """Print the way of a packet. Returns 0 if it passes, 3 if that is not known, 4 if it is blocked.

    Without a port, of all ports; with `from_all` of all sources: the highest.
    """
    protocol = _protocol(question)
    for text in question.assume:
        try:
            check_form(text)
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
    settings = Settings(workspace=workspace_option) if workspace_option else Settings()
    settings = replace(settings, workspace=settings.workspace.absolute())
    if settings.private:
        raise UsageError("a walk compares addresses, which private mode hides: unset GHOST_PRIVATE for ghost reach")
    reader = _Reader(settings, question)
    network = read_interfaces(reader.execute)
    if network.failed:
        raise GhostError(
            f"the network interfaces could not be read ({'; '.join(network.failed.values())}): see ghost doctor"
        )
    destination = _address_or_name(network, question.destination)
    sources = [_address(network, question.source)] if not question.from_all else _others(network, destination)
    flows = [Flow(protocol, source, None, destination, question.port) for source in sources]
    public = None
    if question.from_all:
        network, public = look_up(network, reader.execute, lambda known: public_address_of(known, destination))
        flows += [Flow(protocol, FIRST_PUBLIC, None, public, question.port)] if public else []
        if not flows:
            raise UsageError(
                f"nothing else than {question.destination} was read that could send to it: name a source, without --all"
            )
    network = collect(flows, reader.execute, network)
    changes: list[Mend] = []
    for text in question.assume:
        try:
            changes.append(proposed(text, _with(network, changes)))
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
        network = collect(flows, reader.execute, network, lambda known: _with(known, changes))
    network = _with(network, changes)
    told = _Told(network, destination, reader.asked_of, reader.session_id, [str(change) for change in changes])
    if question.from_all:
        return told.parts(sources_of(network, flows[0], public), "sources", question)
    if question.port is None and flows[0].has_ports:
        return told.parts(ports_to(network, flows[0]), "ports", question)
    walked, faults = walk(network, flows[0]), explain(network, flows[0])
    told.walk(walked, faults, question)
    return STATUS[walked.outcome]


def _with(network: Network, changes: Iterable[Mend]) -> Network:
    for change in changes:
        network = change.applied(network)
    return network


def _protocol(question: Question) -> str:
    protocol = PROTOCOLS.get(question.protocol.casefold())
    if protocol is None:
        raise UsageError(f"{question.protocol!r} is not a protocol: give one of {', '.join(PROTOCOLS)}")
    if question.port is not None and protocol == "Icmp":
        raise UsageError("icmp has no ports: leave the port out, or name tcp or udp with --protocol")
    if question.port is None and protocol != "Icmp" and question.from_all:
        raise UsageError("--all needs a destination port: give it as third word")
    return protocol


class _Reader:
    """Answers reads through a shell of its own session, with every command on record."""

    def __init__(self, settings: Settings, question: Question) -> None:
        self.session_id = new_id(REACH)
        lab = _lab(settings, question.lab, self.session_id)
        self.asked_of = f"lab {lab.briefing.name} (SIMULATED)" if lab else "Azure"
        port = "" if question.port is None else f"/{question.port}"
        asked = f"{question.source} → {question.destination} {question.protocol.casefold()}{port}"
        shell = SafeExecShell(
            self.session_id,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            anonymization_enabled=False,
            roots=[Path.cwd(), settings.workspace],
            **lab_programs(lab, own_az=question.lab is None),
        )
        self.execute = NetworkReads(shell, asked).execute


def _lab(settings: Settings, name: str | None, session_id: str) -> RunningLab | None:
    if name is None:
        return lab_behind_az()
    return start_lab(load_case(name), settings.workspace / "lab" / session_id, speed=settings.lab_speed)


def _address(network: Network, named: str) -> str:
    """Return the address that is meant by an address or the name of a machine or an interface."""
    try:
        return str(ip_address(named))
    except ValueError:
        pass
    names: dict[str, dict[str, str]] = {}
    for interface in network.all(Interface).values():
        for name in (interface.name, name_of(interface.machine or interface.id)):
            names.setdefault(name.casefold(), {})[interface.address] = interface.name
    found = names.get(named.casefold(), {})
    if len(found) > 1:
        each = ", ".join(f"{address} ({name})" for address, name in found.items())
        raise UsageError(f"{named!r} has several addresses: give one of {each}")
    if not found:
        known = get_close_matches(named.casefold(), names, MAX_NAMES) or sorted(names)
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        there = ", ".join(each[:MAX_NAME] for each in known[:MAX_NAMES]) or "none"
        raise UsageError(f"no machine or interface is named {named[:MAX_NAME]!r}; there are: {there}{more}")
    return next(iter(found))


def _address_or_name(network: Network, named: str) -> str:
    """Return the address that is meant, or a DNS name, which the source's machine resolves."""
    known = (i.name for i in network.all(Interface).values())
    machines = (name_of(i.machine) for i in network.all(Interface).values() if i.machine)
    if "." in named and not is_address(named) and named.casefold() not in map(str.casefold, (*known, *machines)):
        try:
            return dns_name(named)
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
    return _address(network, named)


def _others(network: Network, destination: str) -> list[str]:
    version = ip_address(destination).version if is_address(destination) else 4
    addresses = {ip_address(i.address) for i in network.all(Interface).values() if not i.has(destination)}
    found = [str(each) for each in sorted(addresses, key=lambda a: (a.version, a)) if each.version == version]
    if len(found) > MAX_SOURCES:
        raise UsageError(
            f"--all would read the state of {len(found)} machines one by one, and stops at {MAX_SOURCES}: name a source"
        )
    return found


_VERDICT = {"pass": ("pass", "green"), "rewrite": ("rewrite", "cyan"), "unknown": ("unknown", "yellow")}


@dataclass(frozen=True)
class _Told:
    """How an answer is printed: as tables for people, as JSON for machines."""

    network: Network
    destination: str
    """As it was asked for: an address or a DNS name."""
    asked_of: str
    session_id: str
    assumed: list[str]

    def walk(self, walked: Walk, faults: list[Fault], question: Question) -> None:
        if question.as_json:
            _print_json([self._as_dict(walked, faults)])
            return
        out = self._begin(_named(self.network, walked.flow, self.destination))
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
        mended = [(fault, text) for fault, text in _as_proposals(self.network, faults) if fault.mend is not None]
        for number, (fault, assume) in enumerate(mended):
            out.print(f"  {'and ' if number else ''}{visible(str(fault.mend))}: {_then(fault)}", markup=False)
            if assume is not None:
                out.print(Text(f"      --assume {visible(shlex.quote(assume))}", "dim"))
        if walked.outcome == "passes":
            out.print(NOT_SHOWN, markup=False)
        if walked.blocker is not None:
            out.print(Text(f"Azure's rule: {walked.blocker.page}", style="dim"))
        self._end(out)

    def parts(self, parts: list[Part], of: str, question: Question) -> int:
        """Print what ends alike: sources, or ports. Returns the highest exit status of the parts."""
        status = max(STATUS[part.walk.outcome] for part in parts)
        if question.as_json:
            _print_json([{of: part.of, **self._as_dict(part.walk, [])} for part in parts])
            return status
        out = self._begin(f"{_asked(self.network, question, self.destination)}: {of}")
        table = _table(of, "outcome")
        for part in sorted(parts, key=lambda part: STATUS[part.walk.outcome]):
            members = [visible(_name(self.network, each.removesuffix("/32"))) for each in part.of]
            more = f" and {len(members) - MAX_SHOWN} more" if len(members) > MAX_SHOWN else ""
            table.add_row(Text(", ".join(members[:MAX_SHOWN]) + more), _summary(part.walk))
        out.print(table)
        self._end(out)
        return status

    def _begin(self, title: str) -> Console:
        out = to_stdout()
        if not out.is_terminal:
            out.width = PIPE_WIDTH
        out.print(Text(f"{title}   {visible(self.asked_of)}", style="bold"))
        for change in self.assumed:
            out.print(Text(f"assumed: {visible(change)}", style="bold magenta"))
        return out

    def _end(self, out: Console) -> None:
        out.print(Text(f"Records: ghost audit show {self.session_id}", style="dim"))

    def _as_dict(self, walked: Walk, faults: list[Fault]) -> dict[str, Any]:
        about = {"network": self.asked_of, "session_id": self.session_id, "assumed": self.assumed}
        told = _as_dict(walked, self.destination, faults)
        for row, (_, assume) in zip(told["faults"], _as_proposals(self.network, faults), strict=True):
            row["assume"] = assume
        return {**about, **told}


def _as_proposals(network: Network, faults: Iterable[Fault]) -> Iterator[tuple[Fault, str | None]]:
    """Yield each fault with its mend as `--assume` reads it behind the mends before; None where it has no form."""
    for fault in faults:
        yield fault, None if fault.mend is None else proposal_of(fault.mend, network)
        network = network if fault.mend is None else fault.mend.applied(network)


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _print_json(told: list[dict[str, Any]]) -> None:
    print(json.dumps(told, ensure_ascii=False, indent=2))


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


def _asked(network: Network, question: Question, destination: str) -> str:
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


def _as_dict(walked: Walk, asked: str, faults: list[Fault]) -> dict[str, Any]:
    return {
        "flow": asdict(walked.flow),
        "name": None if is_address(asked) else asked,
        "outcome": walked.outcome,
        "hops": [_hop_as_dict(hop) for hop in walked.hops],
        "faults": [
            {
                "kind": fault.kind,
                "resource": fault.hop.resource,
                "rule": fault.hop.rule,
                "direction": fault.hop.direction,
                "mend": str(fault.mend) if fault.mend else None,
                "outcome_with_mend": fault.outcome,
                "derived": list(fault.derived),
            }
            for fault in faults
        ],
        "not_shown": NOT_SHOWN,
    }


def _hop_as_dict(hop: Hop) -> dict[str, Any]:
    told = asdict(replace(hop, mends=(), missing=None))
    missing = None if hop.missing is None else str(hop.missing)
    return {**told, "mends": [str(mend) for mend in hop.mends], "missing": missing, "page": hop.page}
