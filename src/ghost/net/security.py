"""Network security groups: which rule decides about a flow, at which gate, and why.

Rules are taken in order of priority, lowest number first, and the first that matches decides. Every group ends with
the same default rules. A flow meets the group of the subnet and that of the network interface, inbound in this order,
outbound in the other; both must allow it, and a gate without a group allows everything.

https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview
https://learn.microsoft.com/azure/virtual-network/network-security-group-how-it-works
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from ghost.net.address_matching import ServiceTags, covers_address, covers_port

Direction = Literal["Inbound", "Outbound"]
Access = Literal["Allow", "Deny"]
Association = Literal["subnet", "nic"]

GATE_ORDER: dict[Direction, tuple[Association, Association]] = {
    "Inbound": ("subnet", "nic"),
    "Outbound": ("nic", "subnet"),
}
FIRST_DEFAULT_PRIORITY = 65000


@dataclass(frozen=True)
class Flow:
    """The first packet of a conversation; Azure is stateful and lets the answers of an allowed flow pass."""

    protocol: str
    """Tcp, Udp, Icmp, Esp or Ah, in any case."""
    source_address: str
    source_port: int | None
    """None if unknown, or if the protocol has no ports."""
    destination_address: str
    destination_port: int | None

    def reversed(self) -> Flow:
        """Return the flow of the answer."""
        return Flow(
            self.protocol, self.destination_address, self.destination_port, self.source_address, self.source_port
        )

    @property
    def has_ports(self) -> bool:
        return self.protocol.casefold() in ("tcp", "udp")

    def __str__(self) -> str:
        port = "" if self.destination_port is None else f":{self.destination_port}"
        return f"{self.protocol.upper()} {self.source_address} -> {self.destination_address}{port}"


@dataclass(frozen=True)
class SecurityRule:
    name: str
    priority: int
    direction: Direction
    access: Access
    protocol: str = "*"
    source_prefixes: tuple[str, ...] = ("*",)
    source_ports: tuple[str, ...] = ("*",)
    destination_prefixes: tuple[str, ...] = ("*",)
    destination_ports: tuple[str, ...] = ("*",)
    description: str = ""

    @property
    def is_default(self) -> bool:
        return self.priority >= FIRST_DEFAULT_PRIORITY

    def matches(self, flow: Flow, tags: ServiceTags) -> bool | None:
        """Return whether the rule matches; None if a tag or port is unknown and everything else matches."""
        parts = (
            self.protocol.casefold() in ("*", "all", "any", flow.protocol.casefold()),
            covers_address(self.source_prefixes, flow.source_address, tags),
            covers_address(self.destination_prefixes, flow.destination_address, tags),
            covers_port(self.source_ports, flow.source_port, has_ports=flow.has_ports),
            covers_port(self.destination_ports, flow.destination_port, has_ports=flow.has_ports),
        )
        if False in parts:
            return False
        return None if None in parts else True

    def __str__(self) -> str:
        return (
            f"{self.name} (priority {self.priority}, {self.access} {self.protocol} "
            f"{_few(self.source_prefixes)} -> {_few(self.destination_prefixes)}:"
            f"{_few([_port(text) for text in self.destination_ports])})"
        )


def _few(texts: Sequence[str]) -> str:
    """Azure replaces a tag by up to hundreds of prefixes."""
    return ",".join(texts) if len(texts) <= 5 else f"{','.join(texts[:3])} and {len(texts) - 3} more"


def _port(text: str) -> str:
    low, _, high = text.partition("-")
    return "*" if text == "0-65535" else low if low == high else text


@dataclass(frozen=True)
class SecurityGroup:
    name: str
    """A name or a full resource id."""
    association: Association
    rules: tuple[SecurityRule, ...] = ()
    """Custom rules; default rules may be among them and are added where they are not."""

    @cached_property
    def in_order(self) -> dict[Direction, list[SecurityRule]]:
        """The rules of each direction by priority, default rules last."""
        names = {rule.name.casefold() for rule in self.rules if rule.is_default}
        missing = [rule for rule in default_rules() if rule.name.casefold() not in names]
        ordered = sorted((*self.rules, *missing), key=lambda rule: rule.priority)
        return {each: [rule for rule in ordered if rule.direction == each] for each in GATE_ORDER}


@dataclass(frozen=True)
class GateVerdict:
    """The decision of one group, and the rule that made it."""

    allowed: bool
    rule: SecurityRule | None
    group: SecurityGroup
    direction: Direction
    reason: str
    undecided: tuple[SecurityRule, ...] = ()
    """Rules of higher priority that may match too: their tags, or the flow's port, are not known."""

    @property
    def gate(self) -> Association:
        return self.group.association

    @property
    def certain(self) -> bool:
        """True if no undecided rule could change the verdict."""
        return all((rule.access == "Allow") == self.allowed for rule in self.undecided)


@dataclass(frozen=True)
class Verdict:
    """The decision of all gates of one direction: allowed if each allows, else denied by the first that denies."""

    allowed: bool
    deciding: GateVerdict | None
    """The first gate that denies, else the last that allows; None where no group is associated."""
    gates: tuple[GateVerdict, ...]
    """In the order the packet meets them, up to the one that denies."""

    @property
    def rule(self) -> SecurityRule | None:
        return self.deciding.rule if self.deciding else None

    @property
    def group(self) -> SecurityGroup | None:
        return self.deciding.group if self.deciding else None

    @property
    def gate(self) -> Association | None:
        return self.deciding.gate if self.deciding else None

    @property
    def reason(self) -> str:
        return self.deciding.reason if self.deciding else "allowed: no network security group is associated"

    @property
    def certain(self) -> bool:
        return all(gate.certain for gate in self.gates)


def evaluate_gates(
    groups: Iterable[SecurityGroup], flow: Flow, direction: Direction, tags: ServiceTags | None = None
) -> Verdict:
    """Return the decision about `flow` of one network interface's groups, given in any order."""
    order = GATE_ORDER[direction]
    passed: list[GateVerdict] = []
    for group in sorted(groups, key=lambda group: order.index(group.association)):
        verdict = evaluate_group(group, flow, direction, tags)
        passed.append(verdict)
        if not verdict.allowed:
            break
    return Verdict(all(verdict.allowed for verdict in passed), passed[-1] if passed else None, tuple(passed))


def evaluate_group(
    group: SecurityGroup, flow: Flow, direction: Direction, tags: ServiceTags | None = None
) -> GateVerdict:
    """Return the decision of one group: certain too where it is the same whether VirtualNetwork or Internet holds
    the other end.
    """
    known_tags = tags or ServiceTags()
    verdict = _evaluated(group, flow, direction, known_tags)
    if verdict.certain or not known_tags.may_hold_more:
        return verdict
    near, far = flow.source_address, flow.destination_address
    if direction == "Inbound":
        near, far = far, near
    ways = [_evaluated(group, flow, direction, each) for each in known_tags.settled(near, far)]
    if ways and all(way.certain and way.allowed == ways[0].allowed for way in ways):
        return ways[0]
    return verdict


def _evaluated(group: SecurityGroup, flow: Flow, direction: Direction, known_tags: ServiceTags) -> GateVerdict:
    undecided: list[SecurityRule] = []
    for rule in group.in_order[direction]:
        match rule.matches(flow, known_tags):
            case True:
                reason = (
                    f"{_past(rule.access)} by {rule} of {group.name} at the {group.association}, {direction.lower()}"
                )
                return GateVerdict(rule.access == "Allow", rule, group, direction, reason, tuple(undecided))
            case None:
                undecided.append(rule)
    reason = f"denied: no rule of {group.name} at the {group.association} matches, {direction.lower()}"
    return GateVerdict(False, None, group, direction, reason, tuple(undecided))


@cache
def default_rules() -> tuple[SecurityRule, ...]:
    """Return the six default rules of every group."""
    vnet, probe, everywhere = ("VirtualNetwork",), ("AzureLoadBalancer",), ("*",)
    return (
        _default("AllowVnetInBound", 65000, "Inbound", "Allow", vnet, vnet),
        _default("AllowAzureLoadBalancerInBound", 65001, "Inbound", "Allow", probe, everywhere),
        _default("DenyAllInBound", 65500, "Inbound", "Deny", everywhere, everywhere),
        _default("AllowVnetOutBound", 65000, "Outbound", "Allow", vnet, vnet),
        _default("AllowInternetOutBound", 65001, "Outbound", "Allow", everywhere, ("Internet",)),
        _default("DenyAllOutBound", 65500, "Outbound", "Deny", everywhere, everywhere),
    )


def _default(
    name: str,
    priority: int,
    direction: Direction,
    access: Access,
    sources: tuple[str, ...],
    destinations: tuple[str, ...],
) -> SecurityRule:
    return SecurityRule(name, priority, direction, access, source_prefixes=sources, destination_prefixes=destinations)


def _past(access: Access) -> str:
    return "allowed" if access == "Allow" else "denied"
