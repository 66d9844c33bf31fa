"""Bodies of networks, groups, routes, interfaces and watchers in Azure Resource Manager's format.

https://learn.microsoft.com/rest/api/virtualnetwork/, https://learn.microsoft.com/rest/api/network-watcher/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ghost.lab.arm.bodies import Body, etag, guid, id_of, part, part_id, reference, resource
from ghost.lab.world import (
    NetworkInterface,
    Peering,
    Resource,
    RouteTable,
    SecurityGroup,
    Subnet,
    UserRoute,
    VirtualNetwork,
    Watcher,
    World,
)
from ghost.net import SecurityRule, default_rules

BALANCER_POOL = "pool"


def network_resource(world: World, item: Resource, properties: Body) -> Body:
    """Return a network resource with etag, tags and GUID."""
    own = id_of(world, item)
    return resource(world, item, {"resourceGuid": guid(own), **properties}, etag=etag(own), tags={})


def virtual_network(world: World, network: VirtualNetwork) -> Body:
    return network_resource(
        world,
        network,
        {
            "addressSpace": {"addressPrefixes": list(network.prefixes)},
            "privateEndpointVNetPolicies": "Disabled",
            "subnets": [subnet(world, network, item) for item in network.subnets],
            "virtualNetworkPeerings": [peering(world, network, item) for item in network.peerings],
            "enableDdosProtection": False,
        },
    )


def subnet(world: World, network: VirtualNetwork, item: Subnet) -> Body:
    properties: Body = {
        "addressPrefix": item.prefix,
        "ipConfigurations": [
            {"id": part_id(world, interface, "ipConfigurations", "ipconfig1")}
            for interface in world.interfaces
            if (interface.network, interface.subnet) == (network.name, item.name)
        ],
        "serviceEndpoints": [],
        "delegations": [],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
    }
    if item.security_group is not None:
        properties["networkSecurityGroup"] = reference(world, world.security_group(item.security_group))
    if item.route_table is not None:
        properties["routeTable"] = reference(world, world.route_table(item.route_table))
    return part(world, network, "subnets", item.name, properties)


def peering(world: World, network: VirtualNetwork, item: Peering) -> Body:
    remote = world.network(item.remote)
    space = {"addressPrefixes": list(remote.prefixes)}
    properties = {
        "peeringState": item.state,
        "peeringSyncLevel": "FullyInSync",
        "remoteVirtualNetwork": reference(world, remote),
        "allowVirtualNetworkAccess": item.allow_access,
        "allowForwardedTraffic": item.allow_forwarded,
        "allowGatewayTransit": False,
        "useRemoteGateways": False,
        "doNotVerifyRemoteGateways": False,
        "remoteAddressSpace": space,
        "remoteVirtualNetworkAddressSpace": space,
    }
    return part(world, network, "virtualNetworkPeerings", item.name, properties)


def security_group(world: World, group: SecurityGroup) -> Body:
    return network_resource(
        world,
        group,
        {
            "securityRules": [security_rule(world, group, rule) for rule in group.rules],
            "defaultSecurityRules": [security_rule(world, group, rule) for rule in default_rules()],
            "networkInterfaces": [reference(world, i) for i in world.interfaces if i.security_group == group.name],
            "subnets": _subnets(world, lambda item: item.security_group == group.name),
        },
    )


def _subnets(world: World, included: Callable[[Subnet], bool]) -> list[Body]:
    return [
        {"id": part_id(world, network, "subnets", item.name)}
        for network in world.networks
        for item in network.subnets
        if included(item)
    ]


def security_rule(world: World, group: SecurityGroup, rule: SecurityRule) -> Body:
    properties = {
        **({"description": rule.description} if rule.description else {}),
        "protocol": rule.protocol,
        **_one_or_many("sourcePortRange", "sourcePortRanges", rule.source_ports),
        **_one_or_many("destinationPortRange", "destinationPortRanges", rule.destination_ports),
        **_one_or_many("sourceAddressPrefix", "sourceAddressPrefixes", rule.source_prefixes),
        **_one_or_many("destinationAddressPrefix", "destinationAddressPrefixes", rule.destination_prefixes),
        "access": rule.access,
        "priority": rule.priority,
        "direction": rule.direction,
    }
    return part(world, group, "defaultSecurityRules" if rule.is_default else "securityRules", rule.name, properties)


def _one_or_many(singular: str, plural: str, values: Iterable[str]) -> Body:
    """Return a single value under the singular name, several as a list under the plural."""
    several = list(values)
    return {singular: several[0], plural: []} if len(several) == 1 else {plural: several}


def route_table(world: World, table: RouteTable) -> Body:
    return network_resource(
        world,
        table,
        {
            "disableBgpRoutePropagation": False,
            "routes": [route(world, table, item) for item in table.routes],
            "subnets": _subnets(world, lambda item: item.route_table == table.name),
        },
    )


def route(world: World, table: RouteTable, item: UserRoute) -> Body:
    properties = {
        "addressPrefix": item.prefix,
        "nextHopType": item.next_hop_type,
        **({"nextHopIpAddress": item.next_hop_address} if item.next_hop_address else {}),
        "hasBgpOverride": False,
    }
    return part(world, table, "routes", item.name, properties)


def interface(world: World, nic: NetworkInterface) -> Body:
    properties: Body = {
        "ipConfigurations": [ip_configuration(world, nic)],
        "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
        "macAddress": nic.mac,
        "vnetEncryptionSupported": False,
        "enableAcceleratedNetworking": True,
        "enableIPForwarding": nic.ip_forwarding,
        "disableTcpStateTracking": False,
        "primary": True,
        "hostedWorkloads": [],
        "tapConfigurations": [],
        "nicType": "Standard",
        "auxiliaryMode": "None",
    }
    if nic.security_group is not None:
        properties["networkSecurityGroup"] = reference(world, world.security_group(nic.security_group))
    for vm in world.machines:
        if vm.interface == nic.name:
            properties["virtualMachine"] = reference(world, vm)
    for endpoint in world.private_endpoints:
        if endpoint.interface == nic.name:
            properties["privateEndpoint"] = reference(world, endpoint)
    return network_resource(world, nic, properties)


def ip_configuration(world: World, nic: NetworkInterface) -> Body:
    properties: Body = {
        "privateIPAddress": nic.address,
        "privateIPAllocationMethod": "Dynamic",
        "subnet": {"id": part_id(world, world.network(nic.network), "subnets", nic.subnet)},
        "primary": True,
        "privateIPAddressVersion": "IPv6" if ":" in nic.address else "IPv4",
    }
    for public in world.public_addresses:
        if public.interface == nic.name:
            properties["publicIPAddress"] = reference(world, public)
    pools = [item for item in world.load_balancers if nic.name in item.members]
    if pools:
        properties["loadBalancerBackendAddressPools"] = [
            {"id": part_id(world, item, "backendAddressPools", BALANCER_POOL)} for item in pools
        ]
    return part(world, nic, "ipConfigurations", "ipconfig1", properties)


def watcher(world: World, item: Watcher) -> Body:
    shape = network_resource(world, item, {})
    del shape["properties"]["resourceGuid"]
    return shape
