"""Parsers from the Azure CLI's JSON to rules, groups and routes.

    az network nic list-effective-nsg           groups_from_effective_nsg
    az network nsg show | list                  group_from_arm
    any of these, or nsg rule list              security_rules_in
    az network nic show-effective-route-table   routes_from_effective_table

Raise `ValueError` if the JSON does not have that shape; absent or null fields take Azure's defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, get_args

from ghost.net.address_matching import parse_network, parse_ports
from ghost.net.routes import Route
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Access, Association, Direction, SecurityGroup, SecurityRule

UNSTATED = "(none stated)"
"""In place of prefixes that Azure does not show: it covers nobody for sure."""


def groups_from_effective_nsg(answer: Any) -> tuple[SecurityGroup, ...]:
    """Return the groups of one network interface, with the expanded prefixes of their tags."""
    return tuple(_effective_group(item) for item in _items(answer, "list-effective-nsg"))


def group_from_arm(answer: Any, association: Association) -> SecurityGroup:
    """Return one group as given by `nsg show`; `association` says at which gate it applies."""
    group = _mapping(answer, "network security group")
    rules = [*_list(group, "securityRules"), *_list(group, "defaultSecurityRules")]
    return SecurityGroup(
        str(group.get("id") or group.get("name") or ""), association, tuple(_arm_rule(rule) for rule in rules)
    )


def security_rules_in(answer: Any) -> Iterator[SecurityRule]:
    """Return the rules anywhere in an answer about groups, also one that `--query` reduced to rows of JSON text.

    What does not parse as a rule is none.
    """
    if isinstance(answer, str) and answer.startswith("{"):
        with suppress(ValueError):
            answer = json.loads(answer)
    if isinstance(answer, Mapping):
        with suppress(ValueError):
            yield _arm_rule(answer)
    values = answer.values() if isinstance(answer, Mapping) else answer if isinstance(answer, list) else ()
    for value in values:
        yield from security_rules_in(value)


def routes_from_effective_table(answer: Any) -> tuple[Route, ...]:
    """Return one `Route` per prefix; Azure groups prefixes that share a next hop."""
    return tuple(
        Route(
            prefix=str(prefix),
            next_hop_type=str(row.get("nextHopType") or "None"),
            next_hop_ip=next((str(hop) for hop in _list(row, "nextHopIpAddress")), None),
            source=str(row.get("source") or "Default"),
            state=str(row.get("state") or "Active"),
            name=str(row["name"]) if row.get("name") else None,
        )
        for row in (_mapping(item, "route") for item in _items(answer, "show-effective-route-table"))
        for prefix in _list(row, "addressPrefix")
    )


def _effective_group(answer: Any) -> SecurityGroup:
    group = _mapping(answer, "effective group")
    place = _mapping(group.get("association") or {}, "association")
    association: Association = "nic" if place.get("networkInterface") else "subnet"
    rules = (_effective_rule(_mapping(rule, "rule")) for rule in _list(group, "effectiveSecurityRules"))
    group_reference = _mapping(group.get("networkSecurityGroup") or {}, "network security group")
    return SecurityGroup(str(group_reference.get("id") or ""), association, tuple(rules))


def _effective_rule(rule: Mapping[str, Any]) -> SecurityRule:
    return _rule(
        rule,
        name=str(rule.get("name") or "").rpartition("/")[2],
        sources=_effective_prefixes(rule, "sourceAddressPrefix", "expandedSourceAddressPrefix"),
        destinations=_effective_prefixes(rule, "destinationAddressPrefix", "expandedDestinationAddressPrefix"),
    )


def _effective_prefixes(rule: Mapping[str, Any], stated_field: str, expanded_field: str) -> tuple[str, ...]:
    """Return the prefixes with tags replaced by their expansion.

    A default rule's 0.0.0.0/0 means every address, IPv6 included. A rule for application security groups may state
    none: whom it matches is not known then.
    """
    stated = _values(rule, stated_field)
    expanded = tuple(str(prefix) for prefix in _list(rule, expanded_field))
    if expanded:
        return (*expanded, *(prefix for prefix in stated if prefix == "*" or parse_network(prefix)))
    if _priority(rule) >= FIRST_DEFAULT_PRIORITY and stated == ("0.0.0.0/0",):
        return ("*",)
    return stated or (UNSTATED,)


def _arm_rule(answer: Any) -> SecurityRule:
    rule = _mapping(answer, "rule")
    return _rule(
        rule,
        name=str(rule.get("name") or ""),
        sources=_values(rule, "sourceAddressPrefix") or _group_ids(rule, "sourceApplicationSecurityGroups"),
        destinations=_values(rule, "destinationAddressPrefix")
        or _group_ids(rule, "destinationApplicationSecurityGroups"),
    )


def _rule(
    rule: Mapping[str, Any], *, name: str, sources: tuple[str, ...], destinations: tuple[str, ...]
) -> SecurityRule:
    ports = _values(rule, "sourcePortRange"), _values(rule, "destinationPortRange")
    for text in (*ports[0], *ports[1]):
        parse_ports(text)
    return SecurityRule(
        name=name,
        priority=_priority(rule),
        direction=_direction(rule.get("direction")),
        access=_access(rule.get("access")),
        protocol=str(rule.get("protocol") or "*"),
        source_prefixes=sources or ("*",),
        source_ports=ports[0] or ("*",),
        destination_prefixes=destinations or ("*",),
        destination_ports=ports[1] or ("*",),
        description=str(rule.get("description") or ""),
    )


def _values(rule: Mapping[str, Any], singular: str) -> tuple[str, ...]:
    """Return the distinct values of an augmented rule (plural field, list) or a plain one (singular field, text)."""
    plural = f"{singular}es" if singular.endswith("x") else f"{singular}s"
    values = [*_list(rule, plural), *([rule[singular]] if rule.get(singular) else ())]
    return tuple(dict.fromkeys(str(value) for value in values if value))


def _group_ids(rule: Mapping[str, Any], field: str) -> tuple[str, ...]:
    return tuple(str(_mapping(group, "application security group").get("id") or "") for group in _list(rule, field))


def _priority(rule: Mapping[str, Any]) -> int:
    priority = rule.get("priority") or 0
    if not isinstance(priority, int):
        raise ValueError(f"{priority!r} is not a rule priority: a whole number is expected")
    return priority


def _direction(value: Any) -> Direction:
    for direction in get_args(Direction):
        if str(value).casefold() == direction.casefold():
            return "Inbound" if direction == "Inbound" else "Outbound"
    raise ValueError(f"{value!r} is not a rule direction: Inbound or Outbound")


def _access(value: Any) -> Access:
    if str(value).casefold() == "allow":
        return "Allow"
    if str(value).casefold() == "deny":
        return "Deny"
    raise ValueError(f"{value!r} is not a rule access: Allow or Deny")


def _items(answer: Any, command: str) -> list[Any]:
    """Return the list itself, or the list under `value`: the CLI gives an object, REST clients often the list."""
    items = answer.get("value") if isinstance(answer, Mapping) else answer
    if items is None or not isinstance(items, list):
        raise ValueError(f"not the JSON of {command}: expected a list or an object with 'value'")
    return items


def _list(owner: Mapping[str, Any], field: str) -> list[Any]:
    """Return the list in a field; empty if the field is absent or null."""
    items = owner.get(field)
    if items is None:
        return []
    if not isinstance(items, list):
        raise ValueError(f"expected a list in {field!r}, got {type(items).__name__}")
    return items


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object for a {what}, got {type(value).__name__}")
    return value
