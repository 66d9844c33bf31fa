"""The hypotheses that are tested, each with the observation that would refute it."""

from __future__ import annotations

from ghost.brain.offline.case import Case
from ghost.brain.offline.steps import Call
from ghost.brain.offline.symptom import Symptom

FILTERED, MISROUTED, ABSENT, LOST = "H1", "H2", "H3", "H4"


def register_all(case: Case, symptom: Symptom, source: str, destination: str) -> None:
    """Register all four; three are active at once, the fourth when one of them is resolved."""
    path = f"{symptom.flow_name} from {source} to {destination}"
    explanations = {
        FILTERED: (
            f"A network security group denies {path}.",
            "the effective rules at both ends, outbound at the source and inbound at the destination, allow the flow",
        ),
        MISROUTED: (
            f"Routing or peering does not carry packets between {source} and {destination}.",
            "the effective routes of both interfaces lead to the other end, and any peering on the way is connected",
        ),
        ABSENT: (
            f"{destination} or {source} is absent: it is not running, or its name resolves to another address.",
            "both machines are running, and a name that is used resolves to the destination's address",
        ),
        LOST: (
            f"Packets between {source} and {destination} are lost on the wire, or the guest does not serve them.",
            "a capture shows nothing broken between the two: handshakes answered, no losses in either direction",
        ),
    }
    for hypothesis, (description, refuted_by) in explanations.items():
        arguments = {"action": "register", "id": hypothesis, "description": description, "refuted_by": refuted_by}
        case.verdicts.append(Call("manage_hypotheses", arguments))


def activate(case: Case, hypothesis: str) -> None:
    case.verdicts.append(Call("manage_hypotheses", {"action": "activate", "id": hypothesis}))
