"""The hypotheses that are tested, each with the observation that would refute it, and the layers that decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ghost.brain.offline.case import LAYERS, Case, confirm, refute
from ghost.brain.offline.complaint import Complaint
from ghost.brain.offline.steps import Call

FILTERED, MISROUTED, ABSENT, LOST = "H1", "H2", "H3", "H4"
TESTED_BY: Final = {
    FILTERED: ("nsg_outbound", "nsg_inbound"),
    MISROUTED: ("routes", "peering"),
    ABSENT: ("vm_state", "dns", "service_endpoints", "load_balancer"),
    LOST: ("guest_firewall", "wire"),
}
HYPOTHESIS_OF: Final[Mapping[str, str]] = {
    **{layer: hypothesis for hypothesis, layers in TESTED_BY.items() for layer in layers},
    "local_probe": LOST,
}


def register_all(case: Case, complaint: Complaint, suspected: Sequence[str] = ()) -> None:
    """Register all four, those that memory's layers suspect first; three are active at once."""
    first = complaint.candidates[0]
    here, there = first.source.label, first.destination.label
    explanations = {
        FILTERED: (
            f"A security group denies {first}.",
            "the rules at both ends, outbound at the source and inbound at the destination, let the flow pass",
        ),
        MISROUTED: (
            f"Routing or peering does not carry packets between {here} and {there}.",
            "the routes of each end lead to the other, and each peering on the path is connected",
        ),
        ABSENT: (
            f"{there} cannot be reached: it is off, its name resolves elsewhere, or a service before it refuses.",
            "both ends run, any name used resolves to the destination, and balancers and services on the path accept",
        ),
        LOST: (
            f"Packets from {here} to {there} are lost on the wire, or the guest does not answer them.",
            "the guest accepts the flow and something listens, or a capture shows no fault between the two",
        ),
    }
    first_tested = [HYPOTHESIS_OF[layer] for layer in suspected if layer in HYPOTHESIS_OF]
    for hypothesis in dict.fromkeys((*first_tested, *explanations)):
        description, refuted_by = explanations[hypothesis]
        arguments = {"action": "register", "id": hypothesis, "description": description, "refuted_by": refuted_by}
        case.verdicts.append(Call("manage_hypotheses", arguments))


def settle_hypotheses(case: Case) -> None:
    """Confirm what causes show; refute what the layers that would show it clear."""
    for hypothesis, layers in TESTED_BY.items():
        causes = [cause for cause in case.causes if cause.hypothesis == hypothesis and cause.audit_ids]
        found = [case.layers[layer] for layer in layers if layer in case.layers]
        if hypothesis in case.contradicted:
            continue
        if any(not cause.likely for cause in causes):
            confirm(case, hypothesis, [audit_id for cause in causes for audit_id in cause.audit_ids])
        elif not causes and _clear(case, hypothesis) and found:
            refute(case, hypothesis, [audit_id for each in found for audit_id in each.audit_ids])


def unverifiable(case: Case) -> list[str]:
    """Return the hypotheses that neither a cause confirms nor the layers refute."""
    return [each for each in TESTED_BY if each not in case.resolved and each not in case.contradicted]


def _clear(case: Case, hypothesis: str) -> bool:
    """Return whether every layer that decides it is clear; a name that nobody uses decides nothing."""
    needed = [layer for layer in TESTED_BY[hypothesis] if layer in LAYERS and layer not in ("dns", "guest_firewall")]
    used = [layer for layer in ("dns", "guest_firewall") if layer in case.layers and layer in TESTED_BY[hypothesis]]
    return all(layer in case.layers and case.layers[layer].status == "cleared" for layer in (*needed, *used))
