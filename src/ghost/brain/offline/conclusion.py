"""The conclusion: what is certain and by which records, what was not verified, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from ghost import net
from ghost.brain.offline.case import LAYERS, Case, run
from ghost.brain.offline.complaint import Complaint
from ghost.brain.offline.hypothesis_catalogue import settle_hypotheses, unverifiable
from ghost.brain.offline.steps import Call, Steps
from ghost.net import Flow

ESSENTIAL: Final = ("vm_state", "nsg_outbound", "nsg_inbound", "routes")
ALL_OF_PATH: Final = ("peering", "service_endpoints", "load_balancer")
"""Layers that must be clear too, for a path to be called healthy. What a DNS name lacks is a gap."""
UNEXAMINED: Final = {
    "local_probe": "a probe from the engineer's machine would show nothing about this path",
    "dns": "the symptom gives no DNS name",
    "guest_firewall": "Azure does not show what the guest's own firewall does, and the guest was not read",
    "wire": "configuration explains the symptom, so nothing was captured",
}
WORDS: Final = {
    "local_probe": "the probe from the engineer's local machine",
    "vm_state": "the state of the machines",
    "nsg_outbound": "the outbound security rules at the source",
    "nsg_inbound": "the inbound security rules at the destination",
    "routes": "the routes",
    "peering": "the peering",
    "dns": "the name",
    "service_endpoints": "private and service endpoints",
    "load_balancer": "load balancers",
    "guest_firewall": "the guest",
    "wire": "the wire",
}
MAX_LISTED: Final = 10
MAX_TRAFFIC: Final = 3

Confidence = Literal["high", "medium", "low"]
Outcome = Literal["cause_found", "healthy", "inconclusive", "not_investigated"]


def conclude(case: Case, complaint: Complaint) -> Steps[None]:
    if case.explained:  # what a capture shows of it remains a statement
        case.causes = [cause for cause in case.causes if cause.kind]
    settle_hypotheses(case)
    confidence = _confidence(case, complaint)
    outcome = _outcome(case, complaint)
    summary, traffic = _summary(case, complaint), [candidate.flow for candidate in complaint.candidates]
    yield from _complete(case, outcome, confidence, summary, _actions(case), unverifiable(case), traffic)


def conclude_not_begun(case: Case, complaint: Complaint) -> Steps[None]:
    """Conclude where no traffic could be made out: nothing was tested; the report names what is missing."""
    unread = next((r for command, r in case.reads.items() if command.startswith("az network ") and not r.ok), None)
    if unread is not None and not case.network.all(net.Interface):
        why = f"the network could not be read: {unread.why.rstrip('.… ')}{_records(unread.audit_ids)}"
        action = "Check what `ghost doctor` says, then start again."
    elif complaint.invalid_port:
        why = f"{complaint.invalid_port} is not a port: ports are 1 to 65535"
        action = "Start again with the port on which the destination listens."
    elif complaint.same:
        why = (
            f"{complaint.same} is both source and destination: what a machine sends to itself crosses no network, so "
            "no rule, route or wire of Azure can be at fault"
        )
        action = (
            f"On {complaint.same}: does the service listen, on which address (ss -ltnp), and what does its own "
            "firewall drop (nft list ruleset)? If another machine is meant, start again and name it."
        )
    else:
        why = f"{complaint.missing or 'the destination of the traffic'} is not known, and nobody could name it"
        action = "Start again and name the source and the destination, with the port, as they are called in Azure."
    for layer in LAYERS:
        case.cover(layer, "not_verified", (), why)
    machines = sorted({net.name_of(i.machine) for i in case.network.all(net.Interface).values() if i.machine})
    more = f" and {len(machines) - MAX_LISTED} more" if len(machines) > MAX_LISTED else ""
    listed = f"Visible machines: {', '.join(machines[:MAX_LISTED]) or 'none'}{more}."
    records = tuple(i.reference for i in list(case.network.all(net.Interface).values())[:1] if i.reference)
    case.statements.append((listed, records))
    yield from _complete(case, "not_investigated", "low", f"No investigation was made, because {why}.", [action])


def _complete(
    case: Case,
    outcome: Outcome,
    confidence: Confidence,
    summary: str,
    actions: Sequence[str],
    untested: Sequence[str] = (),
    traffic: Iterable[Flow] = (),
) -> Steps[None]:
    """Conclude. `untested`: hypotheses that were registered; without traffic to examine there are none."""
    arguments: dict[str, Any] = {
        "outcome": outcome,
        "causes": causes_of(case, confidence),
        "traffic": [stated_flow(flow) for flow in dict.fromkeys(traffic)][:MAX_TRAFFIC],
        "confidence": confidence,
        "root_cause_summary": summary,
        "confirmed_hypotheses": [h for h, action in case.resolved.items() if action == "confirm"],
        "refuted_hypotheses": [h for h, action in case.resolved.items() if action == "refute"],
        "unverifiable_hypotheses": list(untested),
        "contradicted_hypotheses": sorted(case.contradicted),
        "recommended_actions": list(actions),
        "statements": [{"text": text, "audit_ids": list(ids)} for text, ids in _cause_first(case) if ids],
        "coverage": [coverage_of(case, layer) for layer in LAYERS],
    }
    case.notes = [note for note in case.notes if note.rstrip(".") not in summary]
    yield from run(
        case, f"I conclude, with {confidence} confidence. {summary}", [Call("complete_investigation", arguments)]
    )


def causes_of(case: Case, confidence: Confidence) -> list[dict[str, Any]]:
    """Return the causes whose kind is known, each once."""
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    for cause in case.causes:
        if not cause.kind:
            continue
        row = known.setdefault(
            (cause.kind, cause.resource.casefold(), cause.rule, cause.direction or ""),
            {
                "kind": cause.kind,
                "resource": cause.resource,
                "rule": cause.rule,
                "direction": cause.direction,
                "flow": stated_flow(flow, cause.port) if (flow := cause.flow or cause.seen_on) else None,
                "confidence": "medium" if cause.likely else confidence,
                "audit_ids": [],
            },
        )
        row["audit_ids"] = list(dict.fromkeys((*row["audit_ids"], *cause.audit_ids)))
    return list(known.values())


def stated_flow(flow: Flow, port: int | None = None) -> dict[str, Any]:
    return {
        "source": flow.source_address,
        "destination": flow.destination_address,
        "protocol": flow.protocol.capitalize(),
        "port": port or flow.destination_port,
    }


def _outcome(case: Case, complaint: Complaint) -> Outcome:
    if any(cause.kind for cause in case.causes):
        return "cause_found"
    if not any(reading.ok for command, reading in case.reads.items() if command.startswith("az ")):
        return "not_investigated"
    return "healthy" if not case.causes and _is_healthy(case, complaint) else "inconclusive"


def _is_healthy(case: Case, complaint: Complaint) -> bool:
    """Return whether the records clear the whole path of the very traffic, and show no other trouble either."""
    the_traffic_itself = complaint.source_known and complaint.port_stated and complaint.ends_sure
    gaps = [layer for layer, _ in case.gaps if layer != "guest_firewall"]  # a clean capture shows that guests serve
    return the_traffic_itself and _all_layers_checked(case, *ALL_OF_PATH) and not (gaps or case.observations)


def _cause_first(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    causes = {cause.text for cause in case.causes}
    return sorted(case.statements, key=lambda statement: statement[0] not in causes)


def _confidence(case: Case, complaint: Complaint) -> Confidence:
    status = {layer: found.status for layer, found in case.layers.items()}
    all_known = all(status.get(layer) in ("cleared", "at_fault") for layer in ESSENTIAL)
    if case.causes:
        certain = [cause for cause in case.causes if cause.kind and not cause.likely]
        sure = certain and (all_known or any(cause.conclusive for cause in certain))
        told = complaint.ends_sure and (complaint.port_stated or complaint.kind == "dns")
        return "high" if sure and told else "medium"
    return "medium" if all_known and status.get("wire") == "cleared" and complaint.source_known else "low"


def _summary(case: Case, complaint: Complaint) -> str:
    unsure = "; ".join(_unverified_text(layer, note) for layer, note in case.gaps)
    gaps = f" Not verified: {unsure}." if unsure else ""
    besides = "".join(f" {text}." for text in case.observations)
    if not case.causes:
        return f"{_nothing_found(case, complaint)}{gaps}{besides}"
    found = [f"{cause.text.rstrip('.')}{_records(cause.audit_ids)}." for cause in case.causes]
    if len(found) == 1:
        return f"{found[0]}{gaps}{besides}"
    numbered = " ".join(f"({number}) {text}" for number, text in enumerate(found, 1))
    return f"{len(found)} faults, each to be corrected: {numbered}{gaps}{besides}"


def _unverified_text(layer: str, note: str) -> str:
    """Return the text for a layer that was not verified."""
    return note if layer in ("wire", "dns") else f"{WORDS[layer]} ({note})"


def _all_layers_checked(case: Case, *besides: str) -> bool:
    layers = (*ESSENTIAL, "wire", *besides)
    return all(layer in case.layers and case.layers[layer].status == "cleared" for layer in layers)


def _nothing_found(case: Case, complaint: Complaint) -> str:
    cleared = [layer for layer, found in case.layers.items() if found.status == "cleared"]
    listed = ", ".join(WORDS[layer] for layer in cleared) or "nothing"
    opening = "No fault found" if _all_layers_checked(case) else "No cause found in what could be checked"
    traffic = "; ".join(dict.fromkeys(str(candidate) for candidate in complaint.candidates[:3]))
    records = [audit_id for layer in cleared for audit_id in case.layers[layer].audit_ids]
    case.statements.append((f"Checked, no fault found: {listed}.", tuple(dict.fromkeys(records))))
    return f"{opening} for {traffic}. Checked, no fault found: {listed}."


def _records(audit_ids: Iterable[str]) -> str:
    unique = list(dict.fromkeys(audit_ids))
    return f" (record{'s' if len(unique) > 1 else ''} {', '.join(unique)})" if unique else ""


def _actions(case: Case) -> list[str]:
    if case.causes:
        return case.actions
    guest = case.layers.get("guest_firewall")
    is_clear = guest is not None and guest.status == "cleared"
    unread = "" if is_clear else "whether the service listens, what its firewall drops and "
    advice = [f"Check inside the guest {unread}what its log says."]
    if _all_layers_checked(case):
        advice.insert(0, "Repeat the investigation while the symptom is present: these records show no fault.")
    return list(dict.fromkeys([*case.actions, *advice]))


def coverage_of(case: Case, layer: str) -> dict[str, Any]:
    found = case.layers.get(layer)
    if found is None:
        note = UNEXAMINED.get(layer, "not examined")
        return {"layer": layer, "status": "not_verified", "audit_ids": [], "note": note}
    return {"layer": layer, "status": found.status, "audit_ids": list(found.audit_ids), "note": found.note}
