"""The first format of scenarios: one symptom, and one cause under `[expected]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ghost.errors import LabError
from ghost.lab.briefing import Approvals
from ghost.lab.edits import Edit
from ghost.lab.truth import Expect, Fault, NamedFlow, Symptom, Truth
from ghost.lab.world import World
from ghost.policy import from_dict


@dataclass(frozen=True)
class ExpectedCause:
    kind: Literal["nsg_deny", "packet_loss", "none"]
    source: str
    """The machine at which the flow concerned begins."""
    destination: str
    port: int
    resource: str | None = None
    """The network security group at fault."""
    rule: str | None = None
    direction: Literal["Inbound", "Outbound"] | None = None
    lossy_from: str | None = None
    """For loss: the machine whose packets are lost on their way."""


@dataclass(frozen=True)
class FirstFormat:
    name: str
    title: str
    symptom: str
    world: World
    expected: ExpectedCause
    approvals: Approvals = field(default_factory=Approvals)
    format: Literal[1] = 1


def from_first_format(value: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the fields of the second format. Raises `LabError` with the place that does not fit."""
    file = from_dict(FirstFormat, value, place, LabError)
    expect, fault = _fault(file.expected, f"{place}expected")
    cause = file.expected
    flow = NamedFlow(name="main", source=cause.source, destination=cause.destination, port=cause.port, expect=expect)
    return {
        "name": file.name,
        "title": file.title,
        "world": file.world,
        "flows": [flow],
        "symptoms": [Symptom(file.symptom)],
        "truth": Truth((fault,) if fault else ()),
        "approvals": file.approvals,
    }


def _fault(cause: ExpectedCause, place: str) -> tuple[Expect, Fault | None]:
    if cause.kind == "none":
        return "works", None
    if cause.kind == "packet_loss":
        sender = cause.lossy_from or cause.source
        receiver = cause.source if sender == cause.destination else cause.destination
        mend = Edit(wire={"source": sender, "destination": receiver, "loss": 0.0})
        return "lossy", Fault("packet_loss", sender, mend=(mend,))
    if cause.resource is None or cause.rule is None:
        raise LabError(f"{place}: a cause of the kind nsg_deny needs `resource` and `rule`")
    group = f"networkSecurityGroups/{cause.resource}"
    mend = Edit(delete=f"{group}/securityRules/{cause.rule}")
    return "blocked", Fault("security_rule", group, cause.rule, cause.direction, mend=(mend,))
