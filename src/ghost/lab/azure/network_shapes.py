"""How the CLI shows what the network is made of: networks, groups, routes, interfaces, watchers.

https://learn.microsoft.com/rest/api/virtualnetwork/
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ghost.lab.azure import shapes
from ghost.lab.world import (
    NetworkInterface,
    Peering,
    RouteTable,
    SecurityGroup,
    Subnet,
    UserRoute,
    VirtualNetwork,
    Watcher,
    World,
)
from ghost.net import SecurityRule, default_rules


def virtual_network(world: World, network: VirtualNetwork) -> dict[str, Any]:
    return {
        **shapes.network_common(world, network),
        "addressSpace": {"addressPrefixes": list(network.prefixes)},
        "enableDdosProtection": False,
        "privateEndpointVNetPolicies": "Disabled",
        "subnets": [subnet(world, network, item) for item in network.subnets],
        "tags": {},
        "virtualNetworkPeerings": [peering(world, network, item) for item in network.peerings],
    }


def subnet(world: World, network: VirtualNetwork, item: Subnet) -> dict[str, Any]:
    shape = {
        **shapes.part(world, network, "subnets", item.name),
        "addressPrefix": item.prefix,
        "delegations": [],
        "ipConfigurations": [
            {
                "id": shapes.part_id(world, interface, "ipConfigurations", "ipconfig1"),
                "resourceGroup": interface.resource_group,
            }
            for interface in world.interfaces
            if (interface.network, interface.subnet) == (network.name, item.name)
        ],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
        "serviceEndpoints": [],
    }
    if item.security_group is not None:
        shape["networkSecurityGroup"] = shapes.reference(world, world.security_group(item.security_group))
    if item.route_table is not None:
        shape["routeTable"] = shapes.reference(world, world.route_table(item.route_table))
    return shape


def peering(world: World, network: VirtualNetwork, item: Peering) -> dict[str, Any]:
    remote = world.network(item.remote)
    space = {"addressPrefixes": list(remote.prefixes)}
    return {
        **shapes.part(world, network, "virtualNetworkPeerings", item.name),
        "allowForwardedTraffic": item.allow_forwarded,
        "allowGatewayTransit": False,
        "allowVirtualNetworkAccess": item.allow_access,
        "doNotVerifyRemoteGateways": False,
        "peeringState": item.state,
        "peeringSyncLevel": "FullyInSync",
        "remoteAddressSpace": space,
        "remoteVirtualNetwork": shapes.reference(world, remote),
        "remoteVirtualNetworkAddressSpace": space,
        "useRemoteGateways": False,
    }


def security_group(world: World, group: SecurityGroup) -> dict[str, Any]:
    return {
        **shapes.network_common(world, group),
        "defaultSecurityRules": [security_rule(world, group, rule) for rule in default_rules()],
        "networkInterfaces": [shapes.reference(world, i) for i in world.interfaces if i.security_group == group.name],
        "securityRules": [security_rule(world, group, rule) for rule in group.rules],
        "subnets": [
            {"id": shapes.part_id(world, network, "subnets", item.name), "resourceGroup": network.resource_group}
            for network in world.networks
            for item in network.subnets
            if item.security_group == group.name
        ],
        "tags": {},
    }


def security_rule(world: World, group: SecurityGroup, rule: SecurityRule) -> dict[str, Any]:
    return {
        **shapes.part(world, group, "defaultSecurityRules" if rule.is_default else "securityRules", rule.name),
        "access": rule.access,
        **({"description": rule.description} if rule.description else {}),
        "direction": rule.direction,
        "priority": rule.priority,
        "protocol": rule.protocol,
        **one_or_many("sourceAddressPrefix", "sourceAddressPrefixes", rule.source_prefixes),
        **one_or_many("sourcePortRange", "sourcePortRanges", rule.source_ports),
        **one_or_many("destinationAddressPrefix", "destinationAddressPrefixes", rule.destination_prefixes),
        **one_or_many("destinationPortRange", "destinationPortRanges", rule.destination_ports),
    }


def one_or_many(singular: str, plural: str, values: Iterable[str]) -> dict[str, Any]:
    """A single value stands under the singular name, several as a list under the plural one."""
    several = list(values)
    return {singular: several[0], plural: []} if len(several) == 1 else {plural: several}


def route_table(world: World, table: RouteTable) -> dict[str, Any]:
    return {
        **shapes.network_common(world, table),
        "disableBgpRoutePropagation": False,
        "routes": [route(world, table, item) for item in table.routes],
        "subnets": [
            {"id": shapes.part_id(world, network, "subnets", item.name), "resourceGroup": network.resource_group}
            for network in world.networks
            for item in network.subnets
            if item.route_table == table.name
        ],
        "tags": {},
    }


def route(world: World, table: RouteTable, item: UserRoute) -> dict[str, Any]:
    return {
        **shapes.part(world, table, "routes", item.name),
        "addressPrefix": item.prefix,
        "hasBgpOverride": False,
        "nextHopType": item.next_hop_type,
        **({"nextHopIpAddress": item.next_hop_address} if item.next_hop_address else {}),
    }


def interface(world: World, nic: NetworkInterface) -> dict[str, Any]:
    shape = {
        **shapes.network_common(world, nic),
        "auxiliaryMode": "None",
        "disableTcpStateTracking": False,
        "dnsSettings": {"appliedDnsServers": [], "dnsServers": []},
        "enableAcceleratedNetworking": True,
        "enableIPForwarding": nic.ip_forwarding,
        "hostedWorkloads": [],
        "ipConfigurations": [ip_configuration(world, nic)],
        "macAddress": nic.mac,
        "nicType": "Standard",
        "primary": True,
        "tags": {},
        "tapConfigurations": [],
        "vnetEncryptionSupported": False,
    }
    if nic.security_group is not None:
        shape["networkSecurityGroup"] = shapes.reference(world, world.security_group(nic.security_group))
    for vm in world.machines:
        if vm.interface == nic.name:
            shape["virtualMachine"] = shapes.reference(world, vm)
    return shape


def ip_configuration(world: World, nic: NetworkInterface) -> dict[str, Any]:
    network = world.network(nic.network)
    return {
        **shapes.part(world, nic, "ipConfigurations", "ipconfig1"),
        "primary": True,
        "privateIPAddress": nic.address,
        "privateIPAddressVersion": "IPv6" if ":" in nic.address else "IPv4",
        "privateIPAllocationMethod": "Dynamic",
        "subnet": {
            "id": shapes.part_id(world, network, "subnets", nic.subnet),
            "resourceGroup": network.resource_group,
        },
    }


def watcher(world: World, item: Watcher) -> dict[str, Any]:
    shape = shapes.network_common(world, item)
    del shape["resourceGuid"]
    return {**shape, "tags": {}}
