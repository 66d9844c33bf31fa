"""The path of the failing traffic, for the report: the session's own reads become one network and are walked again.

What the reads do not tell is left out, and without enough of them there is no path. A fault that no configuration
shows, such as loss on the wire, is put in its place as a hop of its own, with the records that show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ghost.agent.facts import Proofs
from ghost.agent.facts.second_walk import NOT_CONFIGURED, NOT_WALKED, flows_of, is_at, is_cause
from ghost.net import FIRST_PUBLIC, Fault, Flow, Hop, Network, Walk, explain, known_kinds, name_of, walk

MAX_FLOWS: Final = 3
AT_A_MACHINE: Final = ("receiver_full", "slow_service", "failing_service", "tls_failure", "flood")
"""Kinds of fault that a capture shows, whose place is a machine and not the wire to it."""

Rows = list[dict[str, Any]]


def paths_of(report: Mapping[str, Any], traffic: Sequence[Mapping[str, Any]], proofs: Proofs) -> Rows:
    """Return the paths of the supported causes' flows; of `traffic`, which was examined, where a cause has no flow.

    `report`: its causes, coverage and statements, with real values.
    """
    if proofs.is_masked:
        return []
    causes = [cause for cause in report.get("causes") or [] if cause["supported"]]
    stated = [cause["flow"] for cause in causes if cause.get("flow")]
    stated += traffic if len(stated) < len(causes) or not causes else []
    paths: Rows = []
    for each in stated:
        flows = list(flows_of(proofs.network, each))
        if not flows or len(paths) == MAX_FLOWS:
            continue
        about = [cause for cause in causes if cause.get("flow") in (None, each)]
        found = _path(proofs.network, flows, about, report)
        if found is not None and found["flow"] not in [path["flow"] for path in paths]:
            paths.append(found)
    return paths


def differences(stated: Sequence[Mapping[str, Any]], recorded: Rows) -> Iterator[str]:
    """Yield where the paths of a report are not those that its records give."""
    if len(stated) != len(recorded):
        yield f"{len(stated)} in the report, {len(recorded)} by the records"
    for number, (said, path) in enumerate(zip(stated, recorded, strict=False), 1):
        about = [name for name in path if name != "hops" and said.get(name) != path[name]]
        yield from (f"{number}: {name} is {said.get(name)!r}, by the records {path[name]!r}" for name in about)
        if len(said["hops"]) != len(path["hops"]):
            yield f"{number}: {len(said['hops'])} hops, by the records {len(path['hops'])}"
        for place, (shown, hop) in enumerate(zip(said["hops"], path["hops"], strict=False), 1):
            wrong = [name for name in hop if shown.get(name) != hop[name]]
            yield from (
                f"{number}, hop {place}: {name} is {shown.get(name)!r}, by the records {hop[name]!r}" for name in wrong
            )


def _path(
    network: Network,
    flows: Sequence[tuple[Flow, str | None]],
    causes: Sequence[Mapping[str, Any]],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the path of the flow that meets a cause, else a fault, else of the first; None if nothing is known."""
    explained = [(flow, source, explain(network, flow, source=source)) for flow, source in flows]
    flow, source, faults = max(explained, key=lambda each: (bool(_blamed(each[2], causes)), bool(each[2])))
    blamed = _blamed(faults, causes) or faults[:1]
    walked = walk(network, flow, source=source)
    way = next(
        (each for each in _ways(walked) if any(_is_same(hop, f.hop) for hop in each.hops for f in blamed)), walked
    )
    if all(hop.verdict == "unknown" for hop in way.hops):
        return None
    if way.blocker is not None and not causes:  # a picture is no place for a fault that the report does not name
        return None
    hops = [_hop(hop, [f for f in blamed if _is_same(hop, f.hop)]) for hop in way.hops]
    for member in (hop for hop in walked.hops if hop.kind == "load_balancer" and way is not walked):
        of_member = (each for each in hops if each["kind"] == member.kind and each["resource"] == member.resource)
        for each in of_member:  # it tells at how many members it fails
            each["reason"] = member.reason
    path = {
        "flow": {
            "source": flow.source_address,
            "destination": flow.destination_address,
            "protocol": flow.protocol,
            "port": flow.destination_port,
        },
        "source_name": _name(network, flow.source_address, source),
        "destination_name": _name(network, flow.destination_address),
        "outcome": way.outcome,
        "hops": hops,
    }
    seen = [cause for cause in causes if _is_seen(cause) and not any(is_cause(fault, cause) for fault in blamed)]
    stopping = [at for cause in seen if (at := _put_in(path, cause, report)) is not None]
    stopping += [at for at, hop in enumerate(hops) if hop["fault"] and hop["verdict"] != "at_fault"]
    for hop in hops[min(stopping, default=len(hops)) + 1 :]:
        hop["reached"] = False
    return path


def _blamed(faults: Sequence[Fault], causes: Sequence[Mapping[str, Any]]) -> list[Fault]:
    return [fault for fault in faults if any(is_cause(fault, cause) for cause in causes)]


def _ways(walked: Walk) -> Iterator[Walk]:
    yield walked
    for other in walked.others:
        yield from _ways(other)


def _is_same(hop: Hop, fault: Hop) -> bool:
    return (hop.leg, hop.kind, hop.direction, hop.reason) == (fault.leg, fault.kind, fault.direction, fault.reason)


def _hop(hop: Hop, faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "leg": hop.leg,
        "kind": hop.kind,
        "name": name_of(hop.resource),
        "resource": hop.resource,
        "verdict": hop.verdict,
        "reason": hop.reason,
        "rule": faults[0].rule or hop.rule if faults else hop.rule,
        "direction": hop.direction,
        "audit_ids": list(dict.fromkeys(filter(None, hop.references))),
        "fault": bool(faults),
        "reached": True,
    }


def _name(network: Network, address: str, interface: str | None = None) -> str:
    if address == FIRST_PUBLIC:
        return "the internet"
    found = [each for each in network.interfaces_with(address) if interface in (None, each.id)]
    return name_of(found[0].machine or found[0].id) if len(found) == 1 else address


# Faults that no configuration shows


def _is_seen(cause: Mapping[str, Any]) -> bool:
    return known_kinds()[cause["kind"]].layer in NOT_CONFIGURED or cause["kind"] in NOT_WALKED


def _put_in(path: dict[str, Any], cause: Mapping[str, Any], report: Mapping[str, Any]) -> int | None:
    """Put a cause into the path; return where, if it lets nothing pass: loss and delay on the wire let most pass.

    None too where the path does not come to its machine.
    """
    hops, layer = path["hops"], known_kinds()[cause["kind"]].layer
    if layer not in NOT_CONFIGURED:
        for hop in [hop for hop in hops if is_at(hop["resource"], cause)][:1]:
            hop |= {"verdict": "at_fault", "reason": _told(cause, layer, report), "fault": True}
            hop["audit_ids"] = list(dict.fromkeys([*hop["audit_ids"], *cause["audit_ids"]]))
        return None
    at_machine = layer == "guest_firewall" or cause["kind"] in AT_A_MACHINE
    ends = path["source_name"], path["destination_name"]
    machines = [n for n, hop in enumerate(hops) if hop["kind"] == "machine" and is_at(hop["resource"], cause)]
    if not machines:
        return None
    if at_machine:
        after, leg, name = machines[0], "forward", hops[machines[0]]["name"]
    else:
        answers = hops[machines[0]]["name"] != ends[0] and any(hops[n]["leg"] == "return" for n in machines)
        leg, (sender, receiver) = ("return", reversed(ends)) if answers else ("forward", ends)
        after, name = _last_of_sender(hops, leg), f"{sender} to {receiver}"
    put = {
        "leg": leg,
        "kind": "guest" if at_machine else "wire",
        "name": name,
        "resource": cause["resource"],
        "verdict": "at_fault",
        "reason": _told(cause, layer, report),
        "rule": cause.get("rule") or None,
        "direction": None,
        "audit_ids": list(cause["audit_ids"]),
        "fault": True,
        "reached": True,
    }
    hops.insert(after + 1, put)
    if layer != "guest_firewall":
        return None
    path["outcome"] = "blocked"
    return after + 1


def _last_of_sender(hops: Rows, leg: str) -> int:
    """Return the last hop at who sends, on a leg: its route, else what lets it out, else its machine."""
    own = [n for n, hop in enumerate(hops) if hop["leg"] == leg]
    routes = [n for n in own if hops[n]["kind"] == "route"]
    outbound = [n for n in own if hops[n]["direction"] == "Outbound"]
    return routes[0] if routes else outbound[-1] if outbound else own[0]


def _told(cause: Mapping[str, Any], layer: str, report: Mapping[str, Any]) -> str:
    """Return what the coverage, else a statement, says of a cause by the same records; else how it was checked."""
    ids = set(cause["audit_ids"])
    notes = (row["note"] for row in report["coverage"] if row["layer"] == layer and row["status"] == "at_fault")
    said = (each["text"] for each in report["statements"] if each["supported"] and ids.intersection(each["audit_ids"]))
    return next(filter(None, notes), None) or next(said, None) or str(cause.get("checked") or "")
