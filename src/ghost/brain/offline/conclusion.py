"""The end: what is certain, by which records, what was not verified, and what to do."""

from __future__ import annotations

from typing import Any, Literal

from ghost.brain.offline.case import LAYERS, Case, run
from ghost.brain.offline.hypotheses import ABSENT, FILTERED, LOST, MISROUTED
from ghost.brain.offline.names import LookUp, blame_unknown_name
from ghost.brain.offline.resolve import Ends
from ghost.brain.offline.steps import Call, Steps
from ghost.brain.offline.symptom import Symptom
from ghost.brain.offline.tenant import Tenant

ESSENTIAL = ("vm_state", "nsg_outbound", "nsg_inbound", "routes")
UNEXAMINED = {
    "guest_firewall": "Azure does not show what the guest's own firewall does",
    "wire": "configuration explains the symptom, so nothing was captured",
}
TESTED_BY = {FILTERED: ("nsg_outbound", "nsg_inbound"), MISROUTED: ("routes", "peering"), ABSENT: ("vm_state",)}

Confidence = Literal["high", "medium", "low"]


def conclude(case: Case, symptom: Symptom) -> Steps[None]:
    confidence = _confidence(case)
    yield from _complete(case, confidence, _summary(case, symptom), _actions(case))


def conclude_unresolved(case: Case, ends: Ends, missing: tuple[str, ...]) -> Steps[None]:
    """Nobody could say which machines are meant: nothing was tested, and the report says what it would take."""
    because = "".join(f" The {item}." for item in missing)
    summary = (
        f"No cause was sought, because {ends.missing} is not known: nothing that could be seen matches it, or several "
        f"things do, and no one could say which.{because}"
    )
    action = "Start again and name the source and the destination machine, with the port, as they are called in Azure."
    for layer in LAYERS:
        case.cover(layer, "not_verified", (), f"{ends.missing} is not known")
    yield from _complete(case, "low", summary, [action])


def conclude_without_port(case: Case, symptom: Symptom) -> Steps[None]:
    why = f"{symptom.invalid_port} is not a port: ports are 1 to 65535"
    action = "Start again with the port on which the destination listens."
    yield from _nothing_to_examine(case, f"No cause was sought, because {why}.", why, action)


def conclude_same(case: Case, machine: str) -> Steps[None]:
    why = f"{machine} is both source and destination"
    summary = (
        f"No cause was sought, because {why}: traffic of a machine with itself crosses no network, so no rule, route "
        "or wire of Azure can be at fault."
    )
    action = (
        f"On {machine}: does the service listen, on which address (ss -ltnp), and what does its own firewall drop "
        "(nft list ruleset)? If another machine is meant, start again and name it."
    )
    yield from _nothing_to_examine(case, summary, why, action)


def conclude_name(case: Case, name: LookUp, tenant: Tenant) -> Steps[None]:
    """A name without an address: there is no path that could be examined."""
    blame_unknown_name(case, name)
    machine = next((m for m in tenant.machines if m.name.casefold() == name.name.split(".")[0]), None)
    if machine is not None and machine.addresses:
        case.actions.insert(0, f"The machine {machine.name} has the address {machine.addresses[0]}; is that one meant?")
    for layer in LAYERS:
        if layer not in case.layers:
            case.cover(layer, "not_verified", (), f"{name.name} has no address, so there is no path to examine")
    cause = case.causes[0]
    yield from _complete(case, "medium", f"{cause.text.rstrip('.')}{_records(cause.audit_ids)}.", case.actions)


def _nothing_to_examine(case: Case, summary: str, why: str, action: str) -> Steps[None]:
    for layer in LAYERS:
        case.cover(layer, "not_verified", (), why)
    yield from _complete(case, "low", summary, [action])


def _complete(case: Case, confidence: Confidence, summary: str, actions: list[str]) -> Steps[None]:
    arguments: dict[str, Any] = {
        "confidence": confidence,
        "root_cause_summary": summary,
        "confirmed_hypotheses": [h for h, action in case.resolved.items() if action == "confirm"],
        "refuted_hypotheses": [h for h, action in case.resolved.items() if action == "refute"],
        "unverifiable_hypotheses": _unverifiable(case),
        "recommended_actions": actions,
        "statements": [{"text": text, "audit_ids": list(ids)} for text, ids in case.statements if ids],
        "coverage": [_coverage(case, layer) for layer in LAYERS],
    }
    yield from run(
        case, f"I conclude, with {confidence} confidence. {summary}", [Call("complete_investigation", arguments)]
    )


def _confidence(case: Case) -> Confidence:
    status = {layer: found.status for layer, found in case.layers.items()}
    all_known = all(status.get(layer) in ("cleared", "at_fault") for layer in ESSENTIAL)
    if case.causes:
        return "high" if all_known else "medium"
    return "medium" if all_known and status.get("wire") == "cleared" else "low"


def _summary(case: Case, symptom: Symptom) -> str:
    gaps = f" Not verified: {'; '.join(case.gaps)}." if case.gaps else ""
    if not case.causes:
        cleared = [layer for layer, found in case.layers.items() if found.status == "cleared"]
        records = _records([i for layer in cleared for i in case.layers[layer].audit_ids])
        return f"No fault found for {symptom.flow_name}. Cleared: {', '.join(cleared) or 'nothing'}{records}.{gaps}"
    found = [f"{cause.text.rstrip('.')}{_records(cause.audit_ids)}." for cause in case.causes]
    if len(found) == 1:
        return f"{found[0]}{gaps}"
    numbered = " ".join(f"({number}) {text}" for number, text in enumerate(found, 1))
    return f"{len(found)} faults, each to be mended: {numbered}{gaps}"


def _records(audit_ids: Any) -> str:
    unique = list(dict.fromkeys(audit_ids))
    return f" (records {', '.join(unique)})" if unique else ""


def _actions(case: Case) -> list[str]:
    if case.causes:
        return case.actions
    advice = [
        "Repeat the investigation while the symptom is present: at the time of these records nothing was wrong.",
        "Look inside the guest: whether the service listens, what its firewall drops, and what its log says.",
    ]
    return [*case.actions, *advice]


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
