"""A cause walked again: the session's own reads become one network, and what stops the cause's flow in it is told."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

from ghost.agent.audit_evidence import Evidence
from ghost.agent.facts.recorded_facts import argv_in, names_in
from ghost.net import (
    FIRST_PUBLIC,
    GUEST_SCRIPT,
    Answer,
    EffectiveGroups,
    Fault,
    Flow,
    Guest,
    Interface,
    Network,
    Read,
    RuleSet,
    SecurityRule,
    ServiceTags,
    absorb,
    dns_name,
    explain,
    home_in,
    is_address,
    key,
    known_kinds,
    missing_of,
    name_of,
    needed,
    read_inside,
    walk,
)
from ghost.text import one_line

INTERNET: Final = ("internet", "the internet", "anyone", "outside")
CHANGES_NO_NETWORK: Final = ("az vm run-command", "az network watcher", "az storage")
"""Beginnings of commands that ask first, and change nothing that a walk depends on."""
_RUN: Final = "vm run-command invoke"


@dataclass(frozen=True)
class WalkedAgain:
    """`shown`: the fault is there; `not_shown`: something else, or nothing, stops the flow; `unknown`: not walked."""

    outcome: Literal["shown", "not_shown", "unknown"]
    records: tuple[str, ...] = ()
    """What the fault rests on."""
    told: str = ""
    """What mends it, walked; what is there in its place; or what to read, to walk it."""


NOT_CONFIGURED: Final = ("guest_firewall", "wire")
NOT_WALKED: Final = ("snat_ports_exhausted", "balancer_no_healthy_member")
"""Kinds of fault that no configuration shows, beside those of the layers of `NOT_CONFIGURED`."""
MAX_HOPS: Final = 16
MAX_REASON: Final = 240
MAX_READS: Final = 3
"""Of the reads that are named to a brain."""


def network_of_records(evidence: Evidence, output: Callable[[str], str | None]) -> Network:
    """Return what the session read, and an earlier one for it, the last read of each counting; a change makes what was
    read before it unread.
    """
    network, home = Network(), ""
    for audit_id, record in evidence.since_earlier():
        argv = [evidence.restored(word) for word in argv_in(record)]
        if record.get("status") != "completed" or argv[:1] not in (["az"], ["dig"]):
            continue
        command = " ".join(argv[1:])
        if record.get("exit_code") != 0:
            if (missing := missing_of(argv, home)) is not None:
                network = absorb(network, Read(tuple(argv), missing), Answer("", audit_id, "the command failed"))
        elif command.startswith(_RUN):
            network = _with_guest(network, argv, audit_id, output)
        elif record.get("classification") == "RISKY":
            network = network if " ".join(argv).startswith(CHANGES_NO_NETWORK) else Network()
        elif (text := output(audit_id)) is not None:
            home = home or home_in(text)
            if (missing := missing_of(argv, home)) is not None:
                network = absorb(network, Read(tuple(argv), missing), Answer(text, audit_id))
    return network


def _with_guest(network: Network, argv: list[str], audit_id: str, output: Callable[[str], str | None]) -> Network:
    """Return the network with a guest, if `ghost.net`'s own script printed it: another one prints what it likes."""
    named = dict(pairwise(argv))
    name = (named.get("-n") or named.get("--name") or "").casefold()
    machines = {interface.machine for interface in network.all(Interface).values() if interface.machine}
    machine = next((each for each in machines if name_of(each).casefold() == name), None)
    if machine is None or tuple(word for word in argv if word in GUEST_SCRIPT) != GUEST_SCRIPT:
        return network
    try:
        inside = read_inside(machine, json.loads(output(audit_id) or ""), audit_id, six=False)
    except ValueError:
        return network
    return network.with_resources(Guest, [inside.part_of_filter or inside.guest]) if inside is not None else network


def walked_again(network: Network, cause: Mapping[str, Any]) -> WalkedAgain:
    """Walk a cause's flow, from each interface that its source names, and look for its fault."""
    flows = list(flows_of(network, cause.get("flow") or {}))
    found = [_judged(network, cause, flow, source) for flow, source in flows]
    for outcome in ("shown", "unknown", "not_shown"):
        if of_outcome := [each for each in found if each.outcome == outcome]:
            return of_outcome[0]
    return WalkedAgain("unknown", told="name its flow by addresses, or machines that `az network nic list` shows")


def addresses_of(network: Network, end: str) -> list[str]:
    """Return the addresses that an end of a cause's flow stands for; none where that is not known, or the internet."""
    return [address for address, _ in _ends(network, end) if address != FIRST_PUBLIC]


def _judged(network: Network, cause: Mapping[str, Any], flow: Flow, source: str | None) -> WalkedAgain:
    faults = explain(network, flow, source=source)
    for fault in faults:
        if is_cause(fault, cause):
            mended = f"{fault.mend}: {_THEN[fault.outcome]}" if fault.mend is not None else "no correction is known"
            return WalkedAgain("shown", tuple(filter(None, fault.hop.references)), mended)
    if not faults:
        return _without_fault(network, cause, flow, source)
    told = "; ".join(f"{f.kind} at {name_of(f.hop.resource)}{f' ({f.hop.rule})' if f.hop.rule else ''}" for f in faults)
    behind = "" if faults[-1].outcome == "passes" else "; what follows is not known from the records"
    way = told_walk(network, flow, source)
    return WalkedAgain("not_shown", told=f"what stops {flow} is {told}{behind}; the walk: {way}")


def _without_fault(network: Network, cause: Mapping[str, Any], flow: Flow, source: str | None) -> WalkedAgain:
    """Return what a walk that nothing certain stops says to a cause."""
    walked, kind = walk(network, flow, source=source), cause["kind"]
    if walked.outcome == "passes" and kind not in NOT_WALKED and known_kinds()[kind].layer not in NOT_CONFIGURED:
        return WalkedAgain("not_shown", told=told_walk(network, flow, source))
    if kind == "security_rule":
        direction = cause.get("direction")
        for hop in walked.hops:
            same = hop.kind == "security_group" and is_at(hop.resource, cause) and direction in (None, hop.direction)
            if same and hop.verdict == "pass":
                return WalkedAgain("not_shown", told=f"{hop.reason} lets {flow} pass")
        if any(not _may_match(rule, flow) for rule in _rules_of(network, cause)):
            return WalkedAgain("not_shown", told=f"{cause['rule']} is not about {flow}")
    reads = [shlex.join(read.argv) for read in needed(network, [flow])[:MAX_READS]]
    return WalkedAgain("unknown", told=f"read {'; '.join(reads)}" if reads else "")


def told_walk(network: Network, flow: Flow, source: str | None = None) -> str:
    """Return a walk in one line: each hop with its verdict, and of what does not let it pass the reason and records."""
    walked = walk(network, flow, source=source)
    said = []
    for hop in walked.hops:
        why = f"{hop.reason}; {', '.join(hop.references)}" if hop.stops or hop.verdict == "unknown" else ""
        said.append(
            f"{hop.kind} {name_of(hop.resource)} {hop.verdict}{f' ({one_line(why, MAX_REASON)})' if why else ''}"
        )
        if hop is walked.blocker or len(said) == MAX_HOPS:
            break
    return f"{flow} {walked.outcome}: {', '.join(said)}"


def _rules_of(network: Network, cause: Mapping[str, Any]) -> Iterator[SecurityRule]:
    named = str(cause.get("rule") or "").casefold()
    computed = (group for each in network.all(EffectiveGroups).values() for group in each.groups)
    for of, rules in (
        *((each.id, each.rules) for each in network.all(RuleSet).values()),
        *((g.name, g.rules) for g in computed),
    ):
        if is_at(of, cause):
            yield from (rule for rule in rules if rule.name.casefold() == named)


def _may_match(rule: SecurityRule, flow: Flow) -> bool:
    """Return whether a rule may be about a flow; the address behind a DNS name is not known."""
    if not is_address(flow.destination_address):
        rule = dataclasses.replace(rule, destination_prefixes=("*",))
    return rule.matches(flow, ServiceTags()) is not False


_THEN: Final = {"passes": "it passes", "blocked": "the next fault stops it", "unknown": "what follows is not known"}


def is_cause(fault: Fault, cause: Mapping[str, Any]) -> bool:
    """Return whether a fault is the cause: its kind, at its resource or what mends it, by its rule if it has one."""
    led_to = fault.kind == "dns_server_unreachable" and any(is_at(each, cause) for each in _texts(fault.mend))
    if led_to or cause["kind"] not in (fault.kind, *fault.derived):
        return led_to
    places = {fault.resource, fault.hop.resource, *_texts(fault.mend)}
    here = cause["kind"] in fault.derived or any(is_at(each, cause) for each in places)
    rule, own = str(cause.get("rule") or "").casefold(), (fault.hop.rule or "").casefold()
    same_direction = cause.get("direction") in (None, "", fault.hop.direction)
    return here and same_direction and (not rule or not own or rule in own or own in rule or rule in _names(places))


def is_at(place: str, cause: Mapping[str, Any]) -> bool:
    """Return whether an id is the cause's resource, or of a part of it; the cause may give the name alone."""
    resource = key(str(cause["resource"]))
    if resource.startswith("/"):
        return f"{key(place)}/".startswith(f"{resource}/")
    return resource.rpartition("/")[2] in (each.casefold() for each in names_in(place))


def _names(places: set[str]) -> set[str]:
    return {name_of(each).casefold() for each in places}


def _texts(mend: object) -> Iterator[str]:
    """Yield the ids and names that a change is made at."""
    if dataclasses.is_dataclass(mend):
        for field in dataclasses.fields(mend):
            value = getattr(mend, field.name)
            yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, str))


def flows_of(network: Network, stated: Mapping[str, Any]) -> Iterator[tuple[Flow, str | None]]:
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
