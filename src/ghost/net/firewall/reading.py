"""Readers from what `az resource show` prints of Azure Firewall. Raise `ValueError` if the JSON has another shape.

Rules of a policy stand in its groups, of a firewall without a policy in itself; both name the same things differently.
"""

from __future__ import annotations

from typing import Any, Final

from ghost.net.azure_shapes import Fields, id_of, items_of, object_of, objects_of, resources_in, text_of
from ghost.net.firewall.resources import (
    Action,
    AzureFirewall,
    FirewallPolicy,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
    RuleKind,
)

_ACTIONS: Final[dict[str, Action]] = {"allow": "Allow", "deny": "Deny", "dnat": "Dnat"}
_KINDS: Final[dict[str, RuleKind]] = {"networkrule": "network", "applicationrule": "application", "natrule": "nat"}
_NAMED: Final = ("destinationfqdns", "targetfqdns", "targeturls", "fqdntags", "webcategories")


def azure_firewalls(answer: Any, reference: str) -> list[AzureFirewall]:
    return [_firewall(fields, reference) for fields in resources_in(answer)]


def firewall_policies(answer: Any, reference: str) -> list[FirewallPolicy]:
    return [
        FirewallPolicy(
            id=text_of(fields, "id"),
            reference=reference,
            base=id_of(fields, "basepolicy"),
            groups=tuple(text_of(group, "id") for group in objects_of(fields, "rulecollectiongroups")),
            private_ranges=_texts(object_of(fields, "snat", {}), "privateranges"),
        )
        for fields in resources_in(answer)
    ]


def rule_collection_groups(answer: Any, reference: str) -> list[RuleCollectionGroup]:
    return [
        RuleCollectionGroup(
            id=text_of(fields, "id"),
            reference=reference,
            priority=_priority(fields),
            collections=tuple(_of_policy(each) for each in objects_of(fields, "rulecollections")),
        )
        for fields in resources_in(answer)
    ]


def ip_groups(answer: Any, reference: str) -> list[IpGroup]:
    return [
        IpGroup(id=text_of(fields, "id"), reference=reference, addresses=_texts(fields, "ipaddresses"))
        for fields in resources_in(answer)
    ]


def _firewall(fields: Fields, reference: str) -> AzureFirewall:
    configurations = objects_of(fields, "ipconfigurations")
    placed = next((each for each in configurations if each.get("privateipaddress")), None)
    if placed is None:
        raise ValueError(f"the firewall {text_of(fields, 'name')} has no address: it is stopped, or in a virtual hub")
    classic: dict[str, RuleKind] = {
        "natrulecollections": "nat",
        "networkrulecollections": "network",
        "applicationrulecollections": "application",
    }
    return AzureFirewall(
        id=text_of(fields, "id"),
        reference=reference,
        address=text_of(placed, "privateipaddress"),
        subnet=text_of(object_of(placed, "subnet"), "id"),
        public_addresses=tuple(filter(None, (id_of(each, "publicipaddress") for each in configurations))),
        policy=id_of(fields, "firewallpolicy"),
        collections=tuple(
            _collection(each, kind) for name, kind in classic.items() for each in objects_of(fields, name)
        ),
    )


def _of_policy(fields: Fields) -> RuleCollection:
    """Read a collection of a policy: its rules say their kind, and a collection holds one kind."""
    kinds = {_KINDS.get(str(rule.get("ruletype")).casefold()) for rule in objects_of(fields, "rules")}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None and objects_of(fields, "rules"):
        raise ValueError(f"the rules of {text_of(fields, 'name')} are of no known kind, or of several")
    return _collection(fields, kind or "network")


def _collection(fields: Fields, kind: RuleKind) -> RuleCollection:
    action = _ACTIONS.get(str(object_of(fields, "action").get("type")).casefold())
    if action is None:
        raise ValueError(f"{text_of(fields, 'name')} has no known action")
    return RuleCollection(
        name=text_of(fields, "name"),
        priority=_priority(fields),
        kind=kind,
        action=action,
        rules=tuple(_rule(rule) for rule in objects_of(fields, "rules")),
    )


def _rule(fields: Fields) -> FirewallRule:
    return FirewallRule(
        name=text_of(fields, "name"),
        protocols=_texts(fields, "ipprotocols") or tuple(_protocol(each) for each in items_of(fields, "protocols")),
        sources=_texts(fields, "sourceaddresses"),
        source_groups=_texts(fields, "sourceipgroups"),
        destinations=_texts(fields, "destinationaddresses"),
        destination_groups=_texts(fields, "destinationipgroups"),
        destination_ports=_texts(fields, "destinationports"),
        host_names=tuple(name for field in _NAMED for name in _texts(fields, field)),
        translated_address=str(fields.get("translatedaddress") or ""),
        translated_port=str(fields.get("translatedport") or ""),
    )


def _protocol(value: Any) -> str:
    return f"{value.get('protocoltype')}:{value.get('port')}" if isinstance(value, dict) else str(value)


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(map(str, items_of(fields, name)))


def _priority(fields: Fields) -> int:
    priority = fields.get("priority")
    if not isinstance(priority, int):
        raise ValueError(f"expected a priority of {text_of(fields, 'name')}")
    return priority
