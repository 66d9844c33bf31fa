"""Security admin rules of Azure Virtual Network Manager, which stand before all security groups.

Deny ends the way, Always Allow passes the groups by, Allow leaves it to them. They are asked only where a network
manager exists in the subscription: Azure tells the rules of a network by a command that a plain `az` does not have.

https://learn.microsoft.com/azure/virtual-network-manager/concept-security-admins
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ghost.net.address_matching import ServiceTags, parse_ports
from ghost.net.azure_shapes import Fields, folded, items_of, lifted, list_of, objects_of, resources_in, text_of
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, Resource, key, name_of
from ghost.net.security import Direction, Flow, SecurityRule

Effect = Literal["Allow", "AlwaysAllow", "Deny"]


@dataclass(frozen=True, kw_only=True)
class NetworkManager(Resource):
    kind = "network manager"


@dataclass(frozen=True, kw_only=True)
class AdminRule(Resource):
    kind = "security admin rule"

    effect: Effect
    matches: SecurityRule
    """What it matches; its access says nothing."""

    @property
    def manager(self) -> str:
        return key(self.id).partition("/securityadminconfigurations/")[0]


@dataclass(frozen=True, kw_only=True)
class AdminRules(Resource):
    """The rules that managers deployed to a virtual network; `id` is the network's."""

    kind = "security admin rules"

    rules: tuple[AdminRule, ...]


@dataclass(frozen=True)
class Decision:
    """What the rules say of a packet: the hop to show, if a rule matches, and whether the groups are passed by."""

    hop: Hop | None = None
    skips_groups: bool = False
    may_skip_groups: bool = False


def decide(network: Network, interface: Interface, flow: Flow, direction: Direction, tags: ServiceTags) -> Decision:
    """Return what the admin rules of the interface's network decide; nothing for a private endpoint."""
    if interface.machine is None:
        return Decision()
    home = interface.subnet.partition("/subnets/")[0]
    try:
        known = network.one(AdminRules, home) if network.whole(NetworkManager) else None
    except Unread as unread:
        hop = Hop("admin_rule", home, "unknown", unread.reason, direction=direction, missing=unread.missing)
        return Decision(hop, may_skip_groups=True)
    if known is None:
        return Decision()
    matching, unclear = [], []
    for rule in sorted(known.rules, key=lambda rule: rule.matches.priority):
        matched = rule.matches.matches(flow, tags) if rule.matches.direction == direction else False
        if matched is None:
            unclear.append(rule)
        elif matched:
            matching.append(rule)
    if not matching and not unclear:
        return Decision()
    return _decided(matching, unclear, Hop("admin_rule", home, "pass", "", direction=direction,
                                           references=(known.reference,)))  # fmt: skip


def _decided(matching: list[AdminRule], unclear: list[AdminRule], hop: Hop) -> Decision:
    """Return the decision of the first rule, unless one of another manager, or one that may match, says otherwise."""
    first = matching[0] if matching else None
    effect = first.effect if first else "Allow"
    ahead = [rule for rule in unclear if first is None or rule.matches.priority <= first.matches.priority]
    if any(rule.effect != effect for rule in ahead):
        reason = f"{_names(ahead)} may match: the prefixes of a tag are not known"
        return _unclear(hop, reason, [*ahead, *matching[:1]])
    rivals = [rule for rule in matching[1:] if first and _may_precede(rule, first) and rule.effect != effect]
    if rivals and first is not None:
        reason = f"{_names([first, *rivals])} differ, and which of them comes first is not known"
        return _unclear(hop, reason, [first, *rivals])
    if first is None:
        return Decision()
    where = (hop.direction or "").lower()
    reason = f"{first.effect} by the security admin rule {first.matches}, before any group, {where}"
    hop = replace(hop, reason=reason, rule=first.name, resource=first.id, priority=first.matches.priority)
    if effect == "Deny":
        return Decision(replace(hop, verdict="drop", fault="admin_rule"))
    return Decision(hop, skips_groups=effect == "AlwaysAllow")


def _unclear(hop: Hop, reason: str, rules: Iterable[AdminRule]) -> Decision:
    always = any(rule.effect == "AlwaysAllow" for rule in rules)
    return Decision(replace(hop, verdict="unknown", reason=reason), may_skip_groups=always)


def _may_precede(rule: AdminRule, first: AdminRule) -> bool:
    """Return whether the rule may come first: by its manager's scope, or with the same priority."""
    return rule.manager != first.manager or rule.matches.priority == first.matches.priority


def _names(rules: Iterable[AdminRule]) -> str:
    return ", ".join(rule.name for rule in rules)


def network_managers(answer: Any, reference: str) -> list[NetworkManager]:
    return [NetworkManager(id=text_of(fields, "id"), reference=reference) for fields in resources_in(answer)]


def read_admin_rules(of: str, answer: Any, reference: str) -> AdminRules:
    """Read what `az network manager list-effective-security-admin-rule` prints. Raises `ValueError`."""
    if isinstance(answer, dict) and answer.get("skipToken"):
        raise ValueError("the list goes on: it is a part of the rules only")
    rules = [_admin_rule(folded(lifted(item)), reference) for item in list_of(answer)]
    return AdminRules(id=of, reference=reference, rules=tuple(rules))


def _admin_rule(fields: Fields, reference: str) -> AdminRule:
    effects: dict[str, Effect] = {"allow": "Allow", "alwaysallow": "AlwaysAllow", "deny": "Deny"}
    directions: dict[str, Direction] = {"inbound": "Inbound", "outbound": "Outbound"}
    effect = effects.get(str(fields.get("access")).casefold())
    direction = directions.get(str(fields.get("direction")).casefold())
    priority = fields.get("priority")
    if effect is None or direction is None or not isinstance(priority, int):
        raise ValueError("expected access, direction and priority of a security admin rule")
    ports = {name: tuple(map(str, items_of(fields, name))) or ("*",) for name in _PORTS}
    for text in (text for texts in ports.values() for text in texts):
        parse_ports(text)
    matches = SecurityRule(
        name_of(text_of(fields, "id")), priority, direction, "Deny" if effect == "Deny" else "Allow",
        "*" if str(fields.get("protocol")).casefold() == "any" else text_of(fields, "protocol"),
        _prefixes(fields, "sources"), ports["sourceportranges"], _prefixes(fields, "destinations"),
        ports["destinationportranges"],
    )  # fmt: skip
    return AdminRule(id=text_of(fields, "id"), reference=reference, effect=effect, matches=matches)


_PORTS = ("sourceportranges", "destinationportranges")


def _prefixes(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(text_of(each, "addressprefix") for each in objects_of(fields, name)) or ("*",)
