"""Reachability of a storage account from a VM, by its effective routes and security groups.

The account's address is unknown: some public address on port 443. So the answer has three values: True or False hold
for every public address; None depends on the address, or on a device that Azure does not show, which is named.

https://learn.microsoft.com/azure/network-watcher/packet-capture-overview
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, ip_network

from ghost.net import HOST_ADDRESS, Flow, Prefix, Route, SecurityGroup, SecurityRule, ServiceTags, evaluate_gates

STORAGE_PORT = 443

# Stand for "the VM" and "some public address". Whatever rule or route singles out certain public addresses is taken
# out before these are looked up, so which public address it is plays no part.
_THE_VM, _SOME_PUBLIC_ADDRESS = "10.0.0.4", "20.0.0.1"
_PRIVATE = "10.255.255.255/32"
_HOST = ip_network(f"{HOST_ADDRESS}/32")
_CARRIES = {"internet": True, "virtualnetworkserviceendpoint": True, "none": False}


@dataclass(frozen=True)
class PathVerdict:
    """The answer: `open` as described above; `because` names what decided it or what it depends on."""

    open: bool | None
    because: str


def by_routes(routes: Iterable[Route]) -> PathVerdict:
    """Judge the active effective routes of the VM's interface."""
    public = [(route, network) for route in routes if (network := _public(route.prefix)) is not None]
    if not public:
        return PathVerdict(None, "no active route to a public address was listed")
    general = [route for route, network in public if network.prefixlen == 0]
    chosen = [min(general, key=_precedence)] if general else []
    special = [route for route, network in public if network.prefixlen > 0]
    known = {_carries(route) for route in (*chosen, *special)} if chosen else {None}
    if known == {True}:
        return PathVerdict(True, str(chosen[0]))
    if known == {False}:
        return PathVerdict(False, f"the route {chosen[0]} drops traffic to public addresses")
    if not chosen:
        return PathVerdict(
            None, "there is no default route, only routes to some public addresses: " + _names_of(special)
        )
    unsure = [route for route in (*chosen, *special) if _carries(route) is not True]
    return PathVerdict(None, "it depends on " + _names_of(unsure))


def by_gates(groups: Iterable[SecurityGroup], location: str | None) -> PathVerdict:
    """Judge the effective groups of the VM's interface; `location` is the account's region, if known."""
    relevant = [replace(group, rules=tuple(_of_public_addresses(rule) for rule in group.rules)) for group in groups]
    flow = Flow("Tcp", _THE_VM, None, _SOME_PUBLIC_ADDRESS, STORAGE_PORT)
    verdict = evaluate_gates(relevant, flow, "Outbound", _tags(location))
    if verdict.certain:
        return PathVerdict(verdict.allowed, _rule_text(verdict.rule, verdict.group))
    rule, group = next((rule, gate.group) for gate in verdict.gates for rule in gate.undecided)
    return PathVerdict(None, f"it depends on {_rule_text(rule, group)}")


def _public(prefix: str) -> Prefix | None:
    try:
        network = ip_network(prefix, strict=False)
    except ValueError:
        return None  # hidden, or no prefix: Azure hides none that is public
    if not isinstance(network, IPv4Network) or network == _HOST:
        return None  # storage accounts are reached by IPv4
    return network if network.prefixlen < 8 or network.is_global else None


def _precedence(route: Route) -> int:
    return {"user": 0, "virtualnetworkgateway": 1}.get(route.source.casefold(), 2)


def _carries(route: Route) -> bool | None:
    return _CARRIES.get(route.next_hop_type.casefold())


def _names_of(routes: list[Route]) -> str:
    return "; ".join(map(str, routes[:3])) + (f" and {len(routes) - 3} more" if len(routes) > 3 else "")


def _of_public_addresses(rule: SecurityRule) -> SecurityRule:
    """Return the rule restricted to flows from this VM to some public address."""
    return replace(
        rule,
        source_prefixes=tuple(_as_source(prefix) for prefix in rule.source_prefixes),
        destination_prefixes=tuple(_as_destination(prefix) for prefix in rule.destination_prefixes),
    )


def _as_source(prefix: str) -> str:
    """Return the source condition. The VM's own address is unknown, so a rule for certain addresses may or may not
    apply.
    """
    return "*" if prefix.casefold() in ("*", "0.0.0.0/0", "virtualnetwork") else f"source {prefix}"


def _as_destination(prefix: str) -> str:
    try:
        network = ip_network(prefix, strict=False)
    except ValueError:
        return _PRIVATE if prefix.startswith("[") else prefix  # a hidden prefix is a private one; else a tag
    if network.prefixlen == 0:
        return "*"
    return f"certain public addresses {prefix}" if _public(prefix) is not None else _PRIVATE


def _tags(location: str | None) -> ServiceTags:
    """Return the service tags that contain a storage account's address: Storage, global and regional.

    VirtualNetwork holds private addresses here; its other contents are among the rule's expanded prefixes.
    """
    own = f"{_SOME_PUBLIC_ADDRESS}/32"
    names = ["Storage", "AzureCloud", *([f"Storage.{location}", f"AzureCloud.{location}"] if location else [])]
    return ServiceTags((_PRIVATE,), dict.fromkeys(names, (own,)))


def _rule_text(rule: SecurityRule | None, group: SecurityGroup | None) -> str:
    if rule is None or group is None:
        return "no network security group is associated"
    where = group.name.rsplit("/", 1)[-1] or "unnamed"
    return f"rule {rule.name} (priority {rule.priority}, {rule.access}) of the group {where} at the {group.association}"
