"""Readers from what `az` prints, or Azure's API answers, to the resources of a `Network`.

    az network nic list            interfaces
    az network vnet list           virtual_networks, with subnets and peerings
    az network nsg list            security_groups
    az network route-table list    route_tables
    az vm list -d                  machines

Raise `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from ghost.net.address_matching import HOST_ADDRESS
from ghost.net.azure_json import group_from_arm
from ghost.net.azure_shapes import (
    Fields,
    folded,
    id_of,
    items_of,
    lifted,
    list_of,
    object_of,
    objects_of,
    prefixes_of,
    resources_in,
    text_of,
)
from ghost.net.resources import (
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

SHARED: Final = (
    "delegations", "serviceassociationlinks", "resourcenavigationlinks", "ipconfigurationprofiles",
    "applicationgatewayipconfigurations",
)  # fmt: skip
"""What a subnet names of services that have addresses in it."""


def interfaces(answer: Any, reference: str = "") -> list[Interface]:
    return [_interface(fields, reference) for fields in resources_in(answer)]


def virtual_networks(answer: Any, reference: str = "") -> list[VirtualNetwork]:
    return [_virtual_network(fields, reference) for fields in resources_in(answer)]


def security_groups(answer: Any, reference: str = "") -> list[RuleSet]:
    groups = (lifted(group) for group in list_of(answer))
    return [
        RuleSet(id=text_of(folded(group), "id"), reference=reference, rules=group_from_arm(group, "nic").rules)
        for group in groups
    ]


def route_tables(answer: Any, reference: str = "") -> list[RouteTable]:
    return [
        RouteTable(
            id=text_of(fields, "id"),
            reference=reference,
            routes=tuple(_route(route) for route in objects_of(fields, "routes")),
            propagates_bgp=not fields.get("disablebgproutepropagation"),
        )
        for fields in resources_in(answer)
    ]


def machines(answer: Any, reference: str = "") -> list[Machine]:
    return [
        Machine(
            id=text_of(fields, "id"),
            reference=reference,
            power=_power(fields),
            os=str(object_of(object_of(fields, "storageprofile", {}), "osdisk", {}).get("ostype") or ""),
            scale_set=id_of(fields, "virtualmachinescaleset"),
        )
        for fields in resources_in(answer)
    ]


def _interface(fields: Fields, reference: str) -> Interface:
    configurations = sorted(objects_of(fields, "ipconfigurations"), key=lambda c: not c.get("primary"))
    with_address = [c for c in configurations if c.get("privateipaddress")]
    if not with_address:
        raise ValueError(f"the interface {text_of(fields, 'id')} has no private address")
    return Interface(
        id=text_of(fields, "id"),
        reference=reference,
        subnet=text_of(object_of(with_address[0], "subnet"), "id"),
        configurations=tuple(_configuration(c) for c in with_address),
        security_group=id_of(fields, "networksecuritygroup"),
        machine=id_of(fields, "virtualmachine"),
        ip_forwarding=bool(fields.get("enableipforwarding")),
        dns_servers=_dns_servers(object_of(fields, "dnssettings", {})),
    )


def _configuration(fields: Fields) -> IpConfiguration:
    groups = tuple(text_of(group, "id") for group in objects_of(fields, "applicationsecuritygroups"))
    address = str(ip_address(text_of(fields, "privateipaddress")))
    link = object_of(fields, "privatelinkconnectionproperties", {})
    names = tuple(str(name).casefold() for name in items_of(link, "fqdns"))
    pools = tuple(text_of(pool, "id") for pool in objects_of(fields, "loadbalancerbackendaddresspools"))
    nat_rules = tuple(text_of(rule, "id") for rule in objects_of(fields, "loadbalancerinboundnatrules"))
    own_name = str(fields.get("name") or "")
    return IpConfiguration(address, id_of(fields, "publicipaddress"), groups, names, own_name, pools, nat_rules)


def _dns_servers(settings: Fields) -> tuple[str, ...]:
    """Return what the machine gets: all servers of its availability set, or those of the interface."""
    servers = items_of(settings, "applieddnsservers") or items_of(settings, "dnsservers")
    return tuple(HOST_ADDRESS if str(server).casefold() == "azureprovideddns" else str(server) for server in servers)


def _virtual_network(fields: Fields, reference: str) -> VirtualNetwork:
    return VirtualNetwork(
        id=text_of(fields, "id"),
        reference=reference,
        prefixes=prefixes_of(object_of(fields, "addressspace"), "addressprefixes"),
        subnets=tuple(_subnet(subnet, reference) for subnet in objects_of(fields, "subnets")),
        peerings=tuple(_peering(peering) for peering in objects_of(fields, "virtualnetworkpeerings")),
        dns_servers=tuple(map(str, items_of(object_of(fields, "dhcpoptions", {}), "dnsservers"))),
        location=str(fields.get("location") or ""),
        nat_gateway=id_of(fields, "defaultpublicnatgateway"),
    )


def _subnet(fields: Fields, reference: str) -> Subnet:
    one = fields.get("addressprefix")
    return Subnet(
        id=text_of(fields, "id"),
        reference=reference,
        prefixes=(str(one),) if one else prefixes_of(fields, "addressprefixes"),
        security_group=id_of(fields, "networksecuritygroup"),
        route_table=id_of(fields, "routetable"),
        nat_gateway=id_of(fields, "natgateway"),
        occupants=tuple(text_of(each, "id") for each in objects_of(fields, "ipconfigurations")),
        is_shared=any(items_of(fields, name) for name in SHARED),
        service_endpoints=tuple(text_of(endpoint, "service") for endpoint in objects_of(fields, "serviceendpoints")),
        endpoint_policies=tuple(text_of(policy, "id") for policy in objects_of(fields, "serviceendpointpolicies")),
        private_endpoint_policies=str(fields.get("privateendpointnetworkpolicies") or "Disabled"),
        default_outbound=fields.get("defaultoutboundaccess") is not False,
    )


def _peering(fields: Fields) -> Peering:
    space = next((n for n in ("remoteaddressspace", "remotevirtualnetworkaddressspace") if fields.get(n)), None)
    return Peering(
        name=text_of(fields, "name"),
        remote=text_of(object_of(fields, "remotevirtualnetwork"), "id"),
        state=text_of(fields, "peeringstate"),
        remote_prefixes=prefixes_of(object_of(fields, space), "addressprefixes") if space else (),
        current_prefixes=prefixes_of(object_of(fields, "remotevirtualnetworkaddressspace", {}), "addressprefixes"),
        allow_access=bool(fields.get("allowvirtualnetworkaccess")),
        allow_forwarded=bool(fields.get("allowforwardedtraffic")),
        allow_gateway_transit=bool(fields.get("allowgatewaytransit")),
        use_remote_gateways=bool(fields.get("useremotegateways")),
    )


def _route(fields: Fields) -> Route:
    next_hop = fields.get("nexthopipaddress")
    return Route(
        prefix=text_of(fields, "addressprefix"),
        next_hop_type=text_of(fields, "nexthoptype"),
        next_hop_ip=str(next_hop) if next_hop else None,
        source="User",
        name=text_of(fields, "name"),
    )


def _power(fields: Fields) -> str | None:
    """Return `running`, `deallocated`, ... of `powerState` (az vm list -d) or of an instance view."""
    state = fields.get("powerstate")
    if state is None:
        statuses = objects_of(object_of(fields, "instanceview", {}), "statuses")
        codes = [str(status.get("code") or "") for status in statuses]
        state = next((code.partition("/")[2] for code in codes if code.startswith("PowerState/")), None)
    return str(state).removeprefix("VM ").casefold() if state else None
