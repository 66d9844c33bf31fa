"""Lines about names and private endpoints in a described network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ghost.net.balancing import LoadBalancer
from ghost.net.names import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    RecordSet,
    ZoneGroups,
    ZoneLink,
    ZoneLinks,
    ZoneRecords,
)
from ghost.net.network import Network
from ghost.net.resources import Interface, IpConfiguration, Subnet, VirtualNetwork, key
from tests.net.small_network import PROVIDER, nic_id, subnet_id, vnet_id

SUBSCRIPTION = "/subscriptions/s"
Lines = Iterable[tuple[list[str], dict[str, str]]]


def zone_id(name: str) -> str:
    return f"{PROVIDER}/privateDnsZones/{name}"


def endpoint_id(name: str) -> str:
    return f"{PROVIDER}/privateEndpoints/{name}"


def with_names(network: Network, of: Mapping[str, Lines]) -> Network:
    """Add what these lines describe.

    endpoint NAME ADDRESS SUBNET [names=NAMES] [status=Pending] [zones=NAMES: of another subscription]
    policies SUBNET Enabled|NetworkSecurityGroupEnabled|RouteTableEnabled
    dns NETWORK|VM SERVERS
    zone NAME       link ZONE NETWORK [registers=yes] [falls-back=yes] [state=InProgress]
    record ZONE NAME [ADDRESSES] [alias=NAME]       ruleset NAME
    """
    servers = {names[0]: tuple(names[1].split(",")) for names, _ in of.get("dns", ())}
    policies = {key(subnet_id(names[0])): names[1] for names, _ in of.get("policies", ())}

    def subnet(known: Subnet) -> Subnet:
        return replace(known, private_endpoint_policies=policies.get(key(known.id), "Disabled"))

    networks = [
        replace(known, dns_servers=servers.get(known.name, ()), subnets=tuple(map(subnet, known.subnets)))
        for known in network.all(VirtualNetwork).values()
    ]
    network = network.with_resources(VirtualNetwork, networks)
    interfaces = [replace(i, dns_servers=servers.get(i.name[:-4], ())) for i in network.all(Interface).values()]
    endpoints, groups = [], []
    for (name, address, place), settings in of.get("endpoint", ()):
        called = tuple(settings.get("names", "").split(",")) if settings.get("names") else ()
        configuration = IpConfiguration(address, names=called)
        interfaces.append(Interface(id=nic_id(name), subnet=subnet_id(place), configurations=(configuration,)))
        statuses = (settings.get("status", "Approved"),)
        elsewhere = tuple(zone_id(zone).replace("/s/", "/t/") for zone in settings.get("zones", "").split(",") if zone)
        groups.append(ZoneGroups(id=endpoint_id(name), zones=elsewhere))
        endpoints.append(PrivateEndpoint(id=endpoint_id(name), interfaces=(nic_id(name),), statuses=statuses))
    network = network.with_resources(Interface, interfaces).with_resources(PrivateEndpoint, endpoints, complete=True)
    network = network.with_resources(ZoneGroups, groups, complete=True)
    zones = [names[0] for names, _ in of.get("zone", ())]
    links = [
        ZoneLinks(
            id=zone_id(zone),
            links=tuple(
                ZoneLink(
                    vnet_id(names[1]),
                    registers=settings.get("registers") == "yes",
                    falls_back=settings.get("falls-back") == "yes",
                    state=settings.get("state", "Completed"),
                )
                for names, settings in of.get("link", ())
                if names[0] == zone
            ),
        )
        for zone in zones
    ]
    records = [
        ZoneRecords(
            id=zone_id(zone),
            records=tuple(
                RecordSet(names[1], tuple(names[2].split(",")) if len(names) > 2 else (), settings.get("alias"))
                for names, settings in of.get("record", ())
                if names[0] == zone
            ),
        )
        for zone in zones
    ]
    if zones:
        network = network.with_resources(LoadBalancer, [], complete=True)
    rulesets = tuple(names[0] for names, _ in of.get("ruleset", ()))
    network = network.with_resources(PrivateZones, [PrivateZones(id=SUBSCRIPTION, zones=tuple(map(zone_id, zones)))])
    network = network.with_resources(ForwardingRulesets, [ForwardingRulesets(id=SUBSCRIPTION, names=rulesets)])
    return network.with_resources(ZoneLinks, links, complete=True).with_resources(ZoneRecords, records, complete=True)
