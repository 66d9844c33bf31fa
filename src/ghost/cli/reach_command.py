"""`ghost reach`: the way of a packet by configuration, read with SAFE commands, and what a change would do to it."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from ghost.cli.shell_options import lab_programs
from ghost.cli.terminal import to_stderr, to_stdout
from ghost.config import Settings
from ghost.errors import GhostError, RecordError, UsageError
from ghost.lab import RunningLab, lab_behind_az, load_scenario
from ghost.lab import start as start_lab
from ghost.net import (
    FIRST_PUBLIC,
    Answer,
    Fault,
    Flow,
    Hop,
    Interface,
    Mend,
    Network,
    Part,
    Read,
    Walk,
    collect,
    dns_name,
    explain,
    is_address,
    look_up,
    name_of,
    ports_to,
    proposed,
    public_address_of,
    read_interfaces,
    sources_of,
    walk,
)
from ghost.records import SystemClock, new_session_id
from ghost.shell import SafeExecShell, whole_output
from ghost.text import visible

STATUS: Final = {"passes": 0, "unknown": 3, "blocked": 4}
NOT_SHOWN: Final = (
    "Configuration does not show whether a guest's firewall lets it in and something listens there, nor loss and delay "
    "on the wire: see ghost investigate."
)
MAX_SHOWN: Final = 8
"""Of sources or ranges of ports in a row."""
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

    Without a port, of all ports; with `from_all` of all sources, and 0.
    """
    protocol = _protocol(question)
    settings = Settings(workspace=workspace_option) if workspace_option else Settings()
    settings = replace(settings, workspace=settings.workspace.absolute())
    if settings.private:
        raise UsageError("a walk compares addresses, which private mode hides: unset GHOST_PRIVATE for ghost reach")
    reader = _Reader(settings, question)
    network = read_interfaces(reader.execute)
    if network.failed:
        raise GhostError(f"the network interfaces could not be read: {'; '.join(network.failed.values())}")
    destination = _address_or_name(network, question.destination)
    sources = [_address(network, question.source)] if not question.from_all else _others(network, destination)
    flows = [Flow(protocol, source, None, destination, question.port) for source in sources]
    public = None
    if question.from_all:
        network, public = look_up(network, reader.execute, lambda known: public_address_of(known, destination))
        flows += [Flow(protocol, FIRST_PUBLIC, None, public, question.port)] if public else []
        if not flows:
            raise UsageError(f"nothing else than {question.destination} was read that could send to it")
    network = collect(flows, reader.execute, network)
    changes: list[Mend] = []
    for text in question.assume:
        try:
            changes.append(proposed(text, _with(network, changes)))
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
        network = collect(flows, reader.execute, network, lambda known: _with(known, changes))
    network = _with(network, changes)
    if question.from_all:
        _tell_parts(network, sources_of(network, flows[0], public), "sources", question, destination)
        return 0
    if question.port is None and flows[0].has_ports:
        parts = ports_to(network, flows[0])
        _tell_parts(network, parts, "ports", question, destination)
        return max(STATUS[part.walk.outcome] for part in parts)
    walked, faults = walk(network, flows[0]), explain(network, flows[0])
    if question.as_json:
        print(json.dumps([_as_dict(walked, destination, faults)], ensure_ascii=False, indent=2))
    else:
        _show(network, walked, destination, faults)
    return STATUS[walked.outcome]


def _with(network: Network, changes: Iterable[Mend]) -> Network:
    for change in changes:
        network = change.applied(network)
    return network


def _protocol(question: Question) -> str:
    protocol = PROTOCOLS.get(question.protocol.casefold())
    if protocol is None:
        raise UsageError(f"{question.protocol!r} is no protocol: give one of {', '.join(PROTOCOLS)}")
    if question.port is not None and protocol == "Icmp":
        raise UsageError("icmp has no ports")
    if question.port is None and protocol != "Icmp" and question.from_all:
        raise UsageError("--all needs a destination port")
    return protocol


class _Reader:
    """Answers reads through a shell of its own session, with every command on record."""

    def __init__(self, settings: Settings, question: Question) -> None:
        self._status = to_stderr()
        moment = new_session_id(SystemClock().now()).removeprefix("ghost_")
        session_id = f"reach_{moment}_{secrets.token_hex(3)}"
        lab = _lab(settings, question.lab, session_id)
        self._shell = SafeExecShell(
            session_id,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            anonymization_enabled=False,
            roots=[Path.cwd(), settings.workspace],
            **lab_programs(lab, own_az=question.lab is None),
        )

    def execute(self, read: Read) -> Answer:
        command = shlex.join(read.argv)
        if self._status.is_terminal:
            self._status.print(Text(f"reading: {visible(command)[:100]}", style="dim"))
        response = self._shell.execute({"command": command, "reasoning": f"The way of a packet needs: {read.missing}."})
        if response["status"] != "completed" or response["exit_code"] != 0:
            said = str(response["stderr"]).strip().splitlines()
            why = said[-1] if said else str(response["message"] or response["error"] or response["status"])
            return Answer("", str(response["audit_id"]), visible(why)[:300])
        try:
            return Answer(whole_output(response), str(response["audit_id"]))
        except RecordError as part:
            return Answer("", str(response["audit_id"]), visible(str(part))[:300])


def _lab(settings: Settings, name: str | None, session_id: str) -> RunningLab | None:
    if name is None:
        return lab_behind_az()
    return start_lab(load_scenario(name), settings.workspace / "lab" / session_id, speed=settings.lab_speed)


def _address(network: Network, named: str) -> str:
    """Return the address that is meant by an address or the name of a machine or an interface."""
    try:
        return str(ip_address(named))
    except ValueError:
        pass
    names = {
        address_name.casefold(): interface
        for interface in network.all(Interface).values()
        for address_name in (interface.name, name_of(interface.machine or interface.id))
    }
    if named.casefold() in names:
        return names[named.casefold()].address
    raise UsageError(f"no machine or interface is named {named!r}; there are: {', '.join(sorted(names)) or 'none'}")


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
    return sorted({i.address for i in network.all(Interface).values() if not i.has(destination)}, key=ip_address)


_VERDICT = {"pass": ("pass", "green"), "rewrite": ("rewrite", "cyan"), "unknown": ("unknown", "yellow")}


def _show(network: Network, walked: Walk, asked: str, faults: list[Fault]) -> None:
    out = to_stdout()
    out.print(Text(_named(network, walked.flow, asked), style="bold"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(5):
        table.add_column(overflow="fold")
    for hop in walked.hops:
        verdict, style = _VERDICT.get(hop.verdict, (hop.verdict.upper(), "bold red"))
        table.add_row(
            "→" if hop.leg == "forward" else "←",
            hop.kind.replace("_", " "),
            Text(verdict, style=style),
            visible(hop.reason),
            Text(" ".join(dict.fromkeys(reference.rpartition("_")[2] for reference in hop.references)), style="dim"),
        )
    out.print(table)
    out.print(Text(_summary(walked), style="bold"))
    for fault in faults:
        if fault.mend is not None:
            out.print(f"  {visible(str(fault.mend))}: {_then(fault)}", markup=False)
    if walked.outcome == "passes":
        out.print(NOT_SHOWN, markup=False)
    records = next((reference for hop in walked.hops for reference in hop.references), "").rpartition("_")[0]
    if records:
        out.print(Text(f"Records: ghost audit show {records}", style="dim"))


def _summary(walked: Walk) -> str:
    if walked.blocker is not None:
        return f"BLOCKED: {visible(walked.blocker.reason)}  ({walked.blocker.page})"
    if walked.outcome == "passes":
        return "PASSES, there and back."
    unknown = next(hop for hop in walked.hops if hop.verdict == "unknown")
    return f"UNKNOWN: {visible(unknown.reason)}"


def _then(fault: Fault) -> str:
    return {"passes": "it passes", "blocked": "the next fault blocks it", "unknown": "not known beyond"}[fault.outcome]


def _tell_parts(network: Network, parts: list[Part], of: str, question: Question, destination: str) -> None:
    """Print what ends alike: sources, or ports."""
    if question.as_json:
        told = [{of: part.of, **_as_dict(part.walk, destination, [])} for part in parts]
        print(json.dumps(told, ensure_ascii=False, indent=2))
        return
    out = to_stdout()
    out.print(Text(f"{_asked(network, question, destination)}: {of}", style="bold"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(2):
        table.add_column(overflow="fold")
    for part in sorted(parts, key=lambda part: STATUS[part.walk.outcome]):
        members = [visible(_name(network, each.removesuffix("/32"))) for each in part.of]
        more = f" and {len(members) - MAX_SHOWN} more" if len(members) > MAX_SHOWN else ""
        table.add_row(", ".join(members[:MAX_SHOWN]) + more, _summary(part.walk))
    out.print(table)


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
