"""The conclusion: what is certain and by which records, what was not verified, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ghost.brain.offline.case import LAYERS, Case, run
from ghost.brain.offline.dns_resolution import LookUp, blame_unknown_name
from ghost.brain.offline.endpoint_resolution import Ends
from ghost.brain.offline.hypothesis_catalogue import ABSENT, FILTERED, LOST, MISROUTED
from ghost.brain.offline.steps import Call, Steps
from ghost.brain.offline.symptom import Symptom
from ghost.brain.offline.tenant import Tenant

ESSENTIAL = ("vm_state", "nsg_outbound", "nsg_inbound", "routes")
ALL_OF_PATH = ("peering", "service_endpoints", "load_balancer")
"""Layers that must be clear too, for a path to be called healthy. What a DNS name lacks is a gap."""
UNEXAMINED = {
    "guest_firewall": "Azure does not show what the guest's own firewall does",
    "wire": "configuration explains the symptom, so nothing was captured",
}
WORDS = {
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
TESTED_BY = {FILTERED: ("nsg_outbound", "nsg_inbound"), MISROUTED: ("routes", "peering"), ABSENT: ("vm_state",)}

MAX_LISTED = 10

Confidence = Literal["high", "medium", "low"]
Outcome = Literal["cause_found", "healthy", "inconclusive", "not_investigated"]


def conclude(case: Case, symptom: Symptom) -> Steps[None]:
    confidence = _confidence(case)
    outcome = _outcome(case, symptom)
    yield from _complete(
        case, symptom, outcome, confidence, _summary(case, symptom), _actions(case), _unverifiable(case)
    )


def conclude_unresolved(case: Case, symptom: Symptom, ends: Ends, tenant: Tenant) -> Steps[None]:
    """Conclude without knowing the machines: nothing was tested; the report names the missing information."""
    because = "".join(f" The {item}." for item in tenant.missing)
    named_wrongly = ends.source.unknown or ends.destination.unknown
    why = (
        "nobody could say which machine is meant."
        if named_wrongly
        else "no visible resource matches it, or several do and nobody could say which."
    )
    summary = f"No investigation was made, because {ends.missing} is not known: {why}{because}"
    action = "Start again and name the source and the destination machine, with the port, as they are called in Azure."
    for layer in LAYERS:
        case.cover(layer, "not_verified", (), f"{ends.missing} is not known")
    _tenant_records(case, tenant)
    yield from _complete(case, symptom, "not_investigated", "low", summary, [action])


def conclude_without_port(case: Case, symptom: Symptom, tenant: Tenant) -> Steps[None]:
    why = f"{symptom.invalid_port} is not a port: ports are 1 to 65535"
    action = "Start again with the port on which the destination listens."
    _tenant_records(case, tenant)
    yield from _nothing_to_examine(case, symptom, f"No investigation was made, because {why}.", why, action)


def conclude_same(case: Case, symptom: Symptom, machine: str, tenant: Tenant) -> Steps[None]:
    why = f"{machine} is both source and destination"
    summary = (
        f"No investigation was made, because {why}: traffic of a machine with itself crosses no network, "
        "so no rule, route "
        "or wire of Azure can be at fault."
    )
    action = (
        f"On {machine}: does the service listen, on which address (ss -ltnp), and what does its own firewall drop "
        "(nft list ruleset)? If another machine is meant, start again and name it."
    )
    _tenant_records(case, tenant)
    yield from _nothing_to_examine(case, symptom, summary, why, action)


def conclude_name(case: Case, symptom: Symptom, name: LookUp, tenant: Tenant) -> Steps[None]:
    """Conclude for a name without an address: there is no path to examine."""
    blame_unknown_name(case, name)
    machine = next((m for m in tenant.machines if m.name.casefold() == name.name.split(".")[0]), None)
    if machine is not None and machine.addresses:
        case.actions.insert(0, f"The machine {machine.name} has the address {machine.addresses[0]}; is that one meant?")
    for layer in LAYERS:
        if layer not in case.layers:
            case.cover(layer, "not_verified", (), f"{name.name} has no address, so there is no path to examine")
    cause = case.causes[0]
    summary = f"{cause.text.rstrip('.')}{_records(cause.audit_ids)}."
    yield from _complete(case, symptom, "cause_found", "medium", summary, case.actions)


def _tenant_records(case: Case, tenant: Tenant) -> None:
    """Return the evidence of a conclusion without an investigation: the list of machines."""
    names = [machine.name for machine in tenant.machines]
    listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
    case.statements.append((f"Machines that can be seen: {listed or 'none'}.", tenant.audit_ids))


def _nothing_to_examine(case: Case, symptom: Symptom, summary: str, why: str, action: str) -> Steps[None]:
    for layer in LAYERS:
        case.cover(layer, "not_verified", (), why)
    yield from _complete(case, symptom, "not_investigated", "low", summary, [action])


def _complete(
    case: Case,
    symptom: Symptom,
    outcome: Outcome,
    confidence: Confidence,
    summary: str,
    actions: list[str],
    unverifiable: Sequence[str] = (),
) -> Steps[None]:
    """Conclude. `unverifiable`: hypotheses that were registered; without a path to examine there are none."""
    arguments: dict[str, Any] = {
        "outcome": outcome,
        "causes": _structured(case, symptom, confidence),
        "confidence": confidence,
        "root_cause_summary": summary,
        "confirmed_hypotheses": [h for h, action in case.resolved.items() if action == "confirm"],
        "refuted_hypotheses": [h for h, action in case.resolved.items() if action == "refute"],
        "unverifiable_hypotheses": list(unverifiable),
        "recommended_actions": actions,
        "statements": [{"text": text, "audit_ids": list(ids)} for text, ids in _cause_first(case) if ids],
        "coverage": [_coverage(case, layer) for layer in LAYERS],
    }
    case.notes = [note for note in case.notes if note.rstrip(".") not in summary]
    yield from run(
        case, f"I conclude, with {confidence} confidence. {summary}", [Call("complete_investigation", arguments)]
    )


def _structured(case: Case, symptom: Symptom, confidence: Confidence) -> list[dict[str, Any]]:
    """Return the causes whose kind is known, each once."""
    source, destination = case.ends
    known: dict[tuple[str, ...], dict[str, Any]] = {}
    for cause in case.causes:
        if not cause.kind:
            continue
        flow = {"source": source, "destination": destination, "protocol": symptom.protocol}
        row = known.setdefault(
            (cause.kind, cause.resource.casefold(), cause.rule, cause.direction or ""),
            {
                "kind": cause.kind,
                "resource": cause.resource,
                "rule": cause.rule,
                "direction": cause.direction,
                "flow": {**flow, "port": cause.port or symptom.port},
                "confidence": "medium" if cause.likely else confidence,
                "audit_ids": [],
            },
        )
        row["audit_ids"] = list(dict.fromkeys((*row["audit_ids"], *cause.audit_ids)))
    return list(known.values())


def _outcome(case: Case, symptom: Symptom) -> Outcome:
    if any(cause.kind for cause in case.causes):
        return "cause_found"
    if not any(reading.ok for command, reading in case.reads.items() if command.startswith("az ")):
        return "not_investigated"
    return "healthy" if not case.causes and _is_healthy(case, symptom) else "inconclusive"


def _is_healthy(case: Case, symptom: Symptom) -> bool:
    """Return whether the records clear the whole path of the very traffic, and show no other trouble either."""
    the_traffic_itself = symptom.port_decides or symptom.protocol == "Icmp"
    return the_traffic_itself and _all_layers_checked(case, *ALL_OF_PATH) and not (case.gaps or case.observations)


def _cause_first(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    causes = {cause.text for cause in case.causes}
    return sorted(case.statements, key=lambda statement: statement[0] not in causes)


def _confidence(case: Case) -> Confidence:
    status = {layer: found.status for layer, found in case.layers.items()}
    all_known = all(status.get(layer) in ("cleared", "at_fault") for layer in ESSENTIAL)
    if case.causes:
        certain = [cause for cause in case.causes if cause.kind and not cause.likely]
        return "high" if certain and (all_known or any(cause.conclusive for cause in certain)) else "medium"
    return "medium" if all_known and status.get("wire") == "cleared" else "low"


def _summary(case: Case, symptom: Symptom) -> str:
    unsure = "; ".join(_unverified_text(layer, note) for layer, note in case.gaps)
    gaps = f" Not verified: {unsure}." if unsure else ""
    besides = "".join(f" {text}." for text in case.observations)
    if not case.causes:
        return f"{_nothing_found(case, symptom)}{gaps}{besides}"
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


def _nothing_found(case: Case, symptom: Symptom) -> str:
    cleared = [layer for layer, found in case.layers.items() if found.status == "cleared"]
    listed = ", ".join(WORDS[layer] for layer in cleared) or "nothing"
    whole = _all_layers_checked(case)
    opening = "No fault found" if whole else "No cause found in what could be checked"
    text = f"{opening} for {symptom.flow_name}. Checked, no fault found: {listed}."
    records = [audit_id for layer in cleared for audit_id in case.layers[layer].audit_ids]
    case.statements.append((f"Checked, no fault found: {listed}.", tuple(dict.fromkeys(records))))
    return text


def _records(audit_ids: Any) -> str:
    unique = list(dict.fromkeys(audit_ids))
    return f" (record{'s' if len(unique) > 1 else ''} {', '.join(unique)})" if unique else ""


def _actions(case: Case) -> list[str]:
    if case.causes:
        return case.actions
    advice = ["Look inside the guest: whether the service listens, what its firewall drops, and what its log says."]
    if _all_layers_checked(case):
        advice.insert(0, "Repeat the investigation while the symptom is present: these records show no fault.")
    return list(dict.fromkeys([*case.actions, *advice]))


def _unverifiable(case: Case) -> list[str]:
    tested = dict(TESTED_BY)
    if "wire" in case.layers:
        tested[LOST] = ("wire",)
    return [
        hypothesis
        for hypothesis, layers in tested.items()
        if hypothesis not in case.resolved
        and any(layer not in case.layers or case.layers[layer].status == "not_verified" for layer in layers)
    ]


def _coverage(case: Case, layer: str) -> dict[str, Any]:
    found = case.layers.get(layer)
    if found is None:
        return {
            "layer": layer,
            "status": "not_verified",
            "audit_ids": [],
            "note": UNEXAMINED.get(layer, "not examined"),
        }
    return {"layer": layer, "status": found.status, "audit_ids": list(found.audit_ids), "note": found.note}
