"""Readers from what `az` prints, or Azure's API answers, to the resources of a `Network`.

    az network nic list            interfaces
    az network vnet list           virtual_networks, with subnets and peerings
    az network nsg list            security_groups
    az network route-table list    route_tables
    az vm list -d                  machines

`az` lifts what the API has under `properties`, and names differ in case between its versions: both are read alike.
Raise `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from ghost.net.address_matching import parse_network
from ghost.net.azure_json import group_from_arm
from ghost.net.network import (
    Interface,
    IpConfiguration,
    Machine,
    Peering,
    RouteTable,
    RuleSet,
    Subnet,
    VirtualNetwork,
)
from ghost.net.routes import Route

Fields = Mapping[str, Any]


def interfaces(answer: Any, reference: str = "") -> list[Interface]:
    return [_interface(fields, reference) for fields in _resources(answer)]


def virtual_networks(answer: Any, reference: str = "") -> list[VirtualNetwork]:
    return [_virtual_network(fields, reference) for fields in _resources(answer)]


def security_groups(answer: Any, reference: str = "") -> list[RuleSet]:
    groups = (_lifted(group) for group in _list_of(answer))
    return [
        RuleSet(id=_text(_folded(group), "id"), reference=reference, rules=group_from_arm(group, "nic").rules)
        for group in groups
    ]


def route_tables(answer: Any, reference: str = "") -> list[RouteTable]:
    return [
        RouteTable(
            id=_text(fields, "id"),
            reference=reference,
            routes=tuple(_route(route) for route in _objects(fields, "routes")),
            propagates_bgp=not fields.get("disablebgproutepropagation"),
        )
        for fields in _resources(answer)
    ]


def machines(answer: Any, reference: str = "") -> list[Machine]:
    return [Machine(id=_text(fields, "id"), reference=reference, power=_power(fields)) for fields in _resources(answer)]


def _interface(fields: Fields, reference: str) -> Interface:
    configurations = sorted(_objects(fields, "ipconfigurations"), key=lambda c: not c.get("primary"))
    with_address = [c for c in configurations if c.get("privateipaddress")]
    if not with_address:
        raise ValueError(f"the interface {_text(fields, 'id')} has no private address")
    return Interface(
        id=_text(fields, "id"),
        reference=reference,
        subnet=_text(_object(with_address[0], "subnet"), "id"),
        configurations=tuple(_configuration(c) for c in with_address),
        security_group=_reference(fields, "networksecuritygroup"),
        machine=_reference(fields, "virtualmachine"),
        ip_forwarding=bool(fields.get("enableipforwarding")),
    )


def _configuration(fields: Fields) -> IpConfiguration:
    groups = tuple(_text(group, "id") for group in _objects(fields, "applicationsecuritygroups"))
    address = str(ip_address(_text(fields, "privateipaddress")))
    return IpConfiguration(address, _reference(fields, "publicipaddress"), groups)


def _virtual_network(fields: Fields, reference: str) -> VirtualNetwork:
    return VirtualNetwork(
        id=_text(fields, "id"),
        reference=reference,
        prefixes=_prefixes(_object(fields, "addressspace"), "addressprefixes"),
        subnets=tuple(_subnet(subnet, reference) for subnet in _objects(fields, "subnets")),
        peerings=tuple(_peering(peering) for peering in _objects(fields, "virtualnetworkpeerings")),
        dns_servers=tuple(map(str, _list(_object(fields, "dhcpoptions", {}), "dnsservers"))),
    )


def _subnet(fields: Fields, reference: str) -> Subnet:
    one = fields.get("addressprefix")
    return Subnet(
        id=_text(fields, "id"),
        reference=reference,
        prefixes=(str(one),) if one else _prefixes(fields, "addressprefixes"),
        security_group=_reference(fields, "networksecuritygroup"),
        route_table=_reference(fields, "routetable"),
        nat_gateway=_reference(fields, "natgateway"),
        service_endpoints=tuple(_text(endpoint, "service") for endpoint in _objects(fields, "serviceendpoints")),
    )


def _peering(fields: Fields) -> Peering:
    space = next((n for n in ("remotevirtualnetworkaddressspace", "remoteaddressspace") if fields.get(n)), None)
    return Peering(
        name=_text(fields, "name"),
        remote=_text(_object(fields, "remotevirtualnetwork"), "id"),
        state=_text(fields, "peeringstate"),
        remote_prefixes=_prefixes(_object(fields, space), "addressprefixes") if space else (),
        allow_access=bool(fields.get("allowvirtualnetworkaccess")),
        allow_forwarded=bool(fields.get("allowforwardedtraffic")),
        allow_gateway_transit=bool(fields.get("allowgatewaytransit")),
        use_remote_gateways=bool(fields.get("useremotegateways")),
    )


def _route(fields: Fields) -> Route:
    next_hop = fields.get("nexthopipaddress")
    return Route(
        prefix=_text(fields, "addressprefix"),
        next_hop_type=_text(fields, "nexthoptype"),
        next_hop_ip=str(next_hop) if next_hop else None,
        source="User",
        name=_text(fields, "name"),
    )


def _power(fields: Fields) -> str | None:
    """Return `running`, `deallocated`, ... of `powerState` (az vm list -d) or of an instance view."""
    state = fields.get("powerstate")
    if state is None:
        statuses = _objects(_object(fields, "instanceview", {}), "statuses")
        codes = [str(status.get("code") or "") for status in statuses]
        state = next((code.partition("/")[2] for code in codes if code.startswith("PowerState/")), None)
    return str(state).removeprefix("VM ").casefold() if state else None


def _resources(answer: Any) -> list[Fields]:
    return [_folded(_lifted(item)) for item in _list_of(answer)]


def _list_of(answer: Any) -> list[Any]:
    """Return a list, the list under `value` (the API), or a single resource as a list."""
    if isinstance(answer, Mapping):
        answer = answer["value"] if isinstance(answer.get("value"), list) else [answer]
    if not isinstance(answer, list) or not all(isinstance(item, Mapping) for item in answer):
        raise ValueError("expected a list of resources")
    return answer


def _lifted(value: Any) -> Any:
    """Return the value with what stands under `properties` lifted beside it, at every depth, as `az` prints it."""
    if isinstance(value, list):
        return [_lifted(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    inner = value.get("properties")
    whole = {**value, **inner} if isinstance(inner, Mapping) else value
    return {name: _lifted(item) for name, item in whole.items() if item is not inner}


def _folded(value: Any) -> Any:
    if isinstance(value, list):
        return [_folded(item) for item in value]
    return {str(n).casefold(): _folded(item) for n, item in value.items()} if isinstance(value, Mapping) else value


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected text in {name!r}, got {type(value).__name__}")
    return value


def _list(fields: Fields, name: str) -> list[Any]:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"expected a list in {name!r}, got {type(value).__name__}")
    return value or []


def _objects(fields: Fields, name: str) -> list[Fields]:
    items = _list(fields, name)
    if not all(isinstance(item, Mapping) for item in items):
        raise ValueError(f"expected objects in {name!r}")
    return items


def _object(fields: Fields, name: str, default: Fields | None = None) -> Fields:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object in {name!r}, got {type(value).__name__}")
    return value


def _reference(fields: Fields, name: str) -> str | None:
    """Return the id of a resource that another one names, or None."""
    return _text(_object(fields, name), "id") if fields.get(name) else None


def _prefixes(fields: Fields, name: str) -> tuple[str, ...]:
    prefixes = tuple(map(str, _list(fields, name)))
    if wrong := next((prefix for prefix in prefixes if parse_network(prefix) is None), None):
        raise ValueError(f"{wrong!r} in {name!r} is not a prefix")
    return prefixes
