"""What a world tells of its tenant beyond resources: what was done lately, and where Azure's own check errs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ghost.net import Flow


@dataclass(frozen=True)
class Activity:
    """An entry of the activity log."""

    minutes_ago: float
    """Before the lab was started."""
    caller: str
    operation: str
    """Microsoft.Network/networkSecurityGroups/securityRules/write"""
    resource: str
    """`TYPE/NAME[/PART/NAME]`, or an id."""
    status: Literal["Succeeded", "Failed", "Started", "Accepted"] = "Succeeded"


@dataclass(frozen=True)
class AzureSays:
    """What IP flow verify answers for a flow, in place of what the rules say."""

    machine: str
    """Its name, or that of its interface."""
    direction: Literal["Inbound", "Outbound"]
    address: str
    """Of the other end."""
    access: Literal["Allow", "Deny"]
    rule: str
    """As Azure names it: securityRules/x, defaultSecurityRules/DenyAllInBound."""
    port: int | None = None
    """Where packets go; None: any."""

    def concerns(self, interface: str, machine: str, direction: str, flow: Flow) -> bool:
        other = flow.source_address if direction == "Inbound" else flow.destination_address
        here = self.machine.casefold() in (interface.casefold(), machine.casefold())
        return (
            here and (self.direction, self.address) == (direction, other) and self.port in (None, flow.destination_port)
        )


@dataclass(frozen=True)
class Fleet:
    """Many machines that have nothing to do with the case: PREFIX-001 and so on, in groups PREFIX-rg-01 ..."""

    machines: int
    groups: int
    network: str
    subnet: str
    prefix: str = "fleet"
    first_address: int = 10
    """How many addresses of the subnet are left free."""
