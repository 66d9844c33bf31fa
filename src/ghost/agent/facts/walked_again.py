"""A cause walked again: the session's own reads become one network, and what stops the cause's flow in it is told."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from ghost.agent.audit_evidence import Evidence
from ghost.agent.facts.recorded_facts import argv_in
from ghost.net import (
    FIRST_PUBLIC,
    Answer,
    Fault,
    Flow,
    Interface,
    Network,
    Read,
    absorb,
    dns_name,
    explain,
    home_in,
    is_address,
    key,
    missing_of,
    name_of,
    read_guest,
    walk,
)

INTERNET: Final = ("internet", "the internet", "anyone", "outside")
CHANGES_NO_NETWORK: Final = ("vm run-command", "network watcher", "storage")
"""Beginnings of commands that ask first, and change nothing that a walk depends on."""
_RUN: Final = "vm run-command invoke"
_PART: Final = re.compile(r"^----- begin (\w+) -----\n(.*?)^----- end \1: 0 -----$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class WalkedAgain:
    """`shown`: the fault is there; `not_shown`: something else, or nothing, stops the flow; `unknown`: not walked."""

    outcome: Literal["shown", "not_shown", "unknown"]
    records: tuple[str, ...] = ()
    """What the fault rests on."""
    told: str = ""
    """What mends it, walked, or what is there in its place."""


UNKNOWN: Final = WalkedAgain("unknown")


def network_of_records(evidence: Evidence, output: Callable[[str], str | None]) -> Network:
    """Return what the session read, the last read of each counting; a change makes what was read before it unread."""
    network, home = Network(), ""
    for audit_id, record in evidence.items():
        argv = [evidence.restored(word) for word in argv_in(record)]
        if record.get("status") != "completed" or record.get("exit_code") != 0 or argv[:1] != ["az"]:
            continue
        command = " ".join(argv[1:])
        if command.startswith(_RUN):
            network = _with_guest(network, argv, audit_id, output)
        elif record.get("classification") == "RISKY":
            network = network if command.startswith(CHANGES_NO_NETWORK) else Network()
        elif (text := output(audit_id)) is not None:
            home = home or home_in(text)
            if (missing := missing_of(argv, home)) is not None:
                network = absorb(network, Read(tuple(argv), missing), Answer(text, audit_id))
    return network


def _with_guest(network: Network, argv: list[str], audit_id: str, output: Callable[[str], str | None]) -> Network:
    """Return the network with a guest, from the parts that its script printed whole."""
    named = dict(pairwise(argv))
    name = (named.get("-n") or named.get("--name") or "").casefold()
    machines = {interface.machine for interface in network.all(Interface).values() if interface.machine}
    machine = next((each for each in machines if name_of(each).casefold() == name), None)
    parts = dict(_PART.findall((output(audit_id) or "").replace("\\n", "\n").replace('\\"', '"')))
    if machine is None or not parts:
        return network
    try:
        guest = read_guest(machine, parts, audit_id)
    except (ValueError, KeyError, RecursionError):
        return network
    return network.with_resources(type(guest), [guest])


def walked_again(network: Network, cause: Mapping[str, Any]) -> WalkedAgain:
    """Walk a cause's flow, from each interface that its source names, and look for its fault."""
    found = [_judged(network, cause, flow, source) for flow, source in _flows(network, cause.get("flow") or {})]
    shown = [each for each in found if each.outcome == "shown"]
    differing = {each.outcome for each in found}
    return shown[0] if shown else found[0] if differing == {"not_shown"} else UNKNOWN


def addresses_of(network: Network, end: str) -> list[str]:
    """Return the addresses that an end of a cause's flow stands for; none where that is not known, or the internet."""
    return [address for address, _ in _ends(network, end) if address != FIRST_PUBLIC]


def _judged(network: Network, cause: Mapping[str, Any], flow: Flow, source: str | None) -> WalkedAgain:
    faults = explain(network, flow, source=source)
    for fault in faults:
        if _is(fault, cause):
            mended = f"{fault.mend}: {_THEN[fault.outcome]}" if fault.mend is not None else "what mends it is not known"
            return WalkedAgain("shown", tuple(filter(None, fault.hop.references)), mended)
    if not faults:
        passes = walk(network, flow, source=source).outcome == "passes"
        return WalkedAgain("not_shown", told=f"{flow} passes") if passes else UNKNOWN
    if faults[-1].outcome != "passes":
        return UNKNOWN
    told = "; ".join(f"{fault.kind} at {name_of(fault.hop.resource)}" for fault in faults)
    return WalkedAgain("not_shown", told=f"what stops {flow} is {told}")


_THEN: Final = {"passes": "it passes", "blocked": "the next fault stops it", "unknown": "what follows is not known"}


def _is(fault: Fault, cause: Mapping[str, Any]) -> bool:
    """Return whether a fault is the cause: its kind, at its resource or what mends it, by its rule if it has one."""
    if cause["kind"] not in (fault.kind, *fault.derived):
        return False
    places = {fault.hop.resource, *_texts(fault.mend)}
    resource = key(str(cause["resource"]))
    here = cause["kind"] in fault.derived or any(resource in (key(each), key(name_of(each))) for each in places)
    rule, own = str(cause.get("rule") or "").casefold(), (fault.hop.rule or "").casefold()
    same_direction = cause.get("direction") in (None, "", fault.hop.direction)
    return here and same_direction and (not rule or not own or rule in own or own in rule or rule in _names(places))


def _names(places: set[str]) -> set[str]:
    return {name_of(each).casefold() for each in places}


def _texts(mend: object) -> Iterator[str]:
    """Yield the ids and names that a change is made at."""
    if dataclasses.is_dataclass(mend):
        for field in dataclasses.fields(mend):
            value = getattr(mend, field.name)
            yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, str))


def _flows(network: Network, stated: Mapping[str, Any]) -> Iterator[tuple[Flow, str | None]]:
    """Yield the flows that a cause means; none where an end is not known."""
    protocol, port = str(stated.get("protocol") or "Tcp").capitalize(), stated.get("port")
    sources = list(_ends(network, str(stated.get("source") or "")))
    for address, source in sources:
        for destination, _ in _ends(network, str(stated.get("destination") or ""), named=True):
            yield Flow(protocol, address, None, destination, port if protocol != "Icmp" else None), source


def _ends(network: Network, end: str, *, named: bool = False) -> Iterator[tuple[str, str | None]]:
    """Yield the addresses of an end, each with its interface where a name tells it; a DNS name as it is if `named`."""
    folded = end.casefold()
    if is_address(end):
        among = network.interfaces_with(end) if not named else []
        yield from ((end, each.id) for each in among) if len(among) > 1 else [(end, None)]
        return
    if folded in INTERNET:
        yield FIRST_PUBLIC, None
        return
    found = False
    for interface in network.all(Interface).values():
        if folded in (interface.name.casefold(), key(interface.id), *_machine_names(interface)):
            found = True
            yield interface.address, interface.id
    if named and not found and "." in end:
        try:
            yield dns_name(end), None
        except ValueError:
            return


def _machine_names(interface: Interface) -> tuple[str, ...]:
    machine = interface.machine or ""
    return (name_of(machine).casefold(), key(machine)) if machine else ()
