"""Bodies of networks, groups, routes, interfaces and watchers, from the compact tables of a world.

https://learn.microsoft.com/rest/api/virtualnetwork/, https://learn.microsoft.com/rest/api/network-watcher/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ghost.lab.network_services import LoadBalancer
from ghost.lab.tenant.bodies import interface_id
from ghost.lab.tenant.documents import Body, Documents, etag_of, guid
from ghost.lab.world import NetworkInterface, Peering, Subnet, UserRoute, VirtualNetwork, World
from ghost.net import SecurityRule, default_rules

NETWORKS, NICS = "Microsoft.Network/virtualNetworks", "Microsoft.Network/networkInterfaces"
GROUPS, TABLES = "Microsoft.Network/networkSecurityGroups", "Microsoft.Network/routeTables"
WATCHERS = "Microsoft.Network/networkWatchers"
BALANCER_POOL = "pool"


def of_world(world: World) -> Iterator[Body]:
    for network in world.networks:
        yield virtual_network(world, network)
    for group in world.security_groups:
        rules = [{"name": rule.name, "properties": security_rule(rule)} for rule in group.rules]
        yield _body(world, GROUPS, group.resource_group, group.name, {"securityRules": rules})
    for table in world.route_tables:
        routes = [{"name": item.name, "properties": _route(item)} for item in table.routes]
        properties = {"disableBgpRoutePropagation": False, "routes": routes}
        yield _body(world, TABLES, table.resource_group, table.name, properties)
    machines = {vm.interface: vm for vm in world.machines}
    for nic in world.interfaces:
        vm = machines.get(nic.name)
        own_id = interface_id(world, vm) if vm else world.resource_id(NICS, nic.resource_group, nic.name)
        yield {"id": own_id, "location": world.location_of(nic.resource_group), "properties": _interface(world, nic)}
    for watcher in world.watchers:
        yield {"id": world.resource_id(WATCHERS, watcher.resource_group, watcher.name), "properties": {}}


def subnet_id(world: World, network: str, subnet: str) -> str:
    home = world.virtual_network(network)
    return world.resource_id(f"{NETWORKS}/subnets", home.resource_group, home.name, subnet)


def virtual_network(world: World, network: VirtualNetwork) -> Body:
    servers = {"dhcpOptions": {"dnsServers": list(network.dns_servers)}} if network.dns_servers else {}
    properties = {
        "addressSpace": {"addressPrefixes": list(network.prefixes)},
        **servers,
        "privateEndpointVNetPolicies": "Disabled",
        "subnets": [{"name": item.name, "properties": _subnet(world, item)} for item in network.subnets],
        "virtualNetworkPeerings": [{"name": p.name, "properties": _peering(world, p)} for p in network.peerings],
        "enableDdosProtection": False,
    }
    return _body(world, NETWORKS, network.resource_group, network.name, properties)


def _body(world: World, kind: str, group: str, name: str, properties: Body) -> Body:
    own_id = world.resource_id(kind, group, name)
    return {"id": own_id, "properties": {"resourceGuid": guid(own_id), **properties}}


def _subnet(world: World, item: Subnet) -> Body:
    properties: Body = {
        "addressPrefix": item.prefix,
        "serviceEndpoints": [
            {"provisioningState": "Succeeded", "service": service, "locations": ["*"]}
            for service in item.service_endpoints
        ],
        "delegations": [],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
    }
    if item.security_group is not None:
        group = world.security_group(item.security_group)
        properties["networkSecurityGroup"] = {"id": world.resource_id(GROUPS, group.resource_group, group.name)}
    if item.route_table is not None:
        table = world.route_table(item.route_table)
        properties["routeTable"] = {"id": world.resource_id(TABLES, table.resource_group, table.name)}
    return properties


def _peering(world: World, item: Peering) -> Body:
    remote = world.virtual_network(item.remote)
    return {
        "peeringState": item.state,
        "peeringSyncLevel": "FullyInSync",
        "remoteVirtualNetwork": {"id": world.resource_id(NETWORKS, remote.resource_group, remote.name)},
        "allowVirtualNetworkAccess": item.allow_access,
        "allowForwardedTraffic": item.allow_forwarded,
        "allowGatewayTransit": item.allow_gateway_transit,
        "useRemoteGateways": item.use_remote_gateways,
        "doNotVerifyRemoteGateways": False,
    }


def security_rule(rule: SecurityRule) -> Body:
    return {
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


_PLURALS = {
    f"{end}{singular}": f"{end}{plural}"
    for end in ("source", "destination")
    for singular, plural in (("PortRange", "PortRanges"), ("AddressPrefix", "AddressPrefixes"))
}


def _one_or_many(singular: str, plural: str, values: Iterable[str]) -> Body:
    """Return a single value under the singular name, several as a list under the plural."""
    several = list(values)
    return {singular: several[0], plural: []} if len(several) == 1 else {plural: several}


def _route(item: UserRoute) -> Body:
    return {
        "addressPrefix": item.prefix,
        "nextHopType": item.next_hop_type,
        **({"nextHopIpAddress": item.next_hop_address} if item.next_hop_address else {}),
        "hasBgpOverride": False,
    }


def _interface(world: World, nic: NetworkInterface) -> Body:
    servers = list(nic.dns_servers)
    properties: Body = {
        "resourceGuid": guid(f"{nic.resource_group}/{nic.name}"),
        "ipConfigurations": [{"name": "ipconfig1", "properties": _ip_configuration(world, nic)}],
        "dnsSettings": {"dnsServers": servers, "appliedDnsServers": servers},
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
        group = world.security_group(nic.security_group)
        properties["networkSecurityGroup"] = {"id": world.resource_id(GROUPS, group.resource_group, group.name)}
    return properties


def _ip_configuration(world: World, nic: NetworkInterface) -> Body:
    network = "Microsoft.Network"
    publics = [
        world.resource_id(f"{network}/publicIPAddresses", item.resource_group, item.name)
        for item in world.public_addresses
        if item.interface == nic.name
    ]
    pools = [item for item in world.load_balancers if nic.name in item.members]
    asg = f"{network}/applicationSecurityGroups"
    groups = [{"id": world.resource_id(asg, nic.resource_group, name)} for name in nic.application_groups]
    return {
        "privateIPAddress": nic.address,
        "privateIPAllocationMethod": "Dynamic",
        "subnet": {"id": subnet_id(world, nic.network, nic.subnet)},
        "primary": True,
        "privateIPAddressVersion": "IPv6" if ":" in nic.address else "IPv4",
        **({"publicIPAddress": {"id": publics[0]}} if publics else {}),
        **({"loadBalancerBackendAddressPools": [{"id": _pool_id(world, item)} for item in pools]} if pools else {}),
        **({"applicationSecurityGroups": groups} if groups else {}),
    }


def _pool_id(world: World, balancer: LoadBalancer) -> str:
    kind = "Microsoft.Network/loadBalancers/backendAddressPools"
    return world.resource_id(kind, balancer.resource_group, balancer.name, BALANCER_POOL)


def complete(documents: Documents) -> None:
    """Fill in the default rules of groups, and what a peering knows of the other network."""
    for group in documents.of_type(GROUPS):
        properties = group["properties"]
        for rule in properties.setdefault("securityRules", []):
            for singular, plural in _PLURALS.items():
                if singular in rule["properties"]:
                    rule["properties"].setdefault(plural, [])
        properties["defaultSecurityRules"] = [
            {
                "name": rule.name,
                "id": f"{group['id']}/defaultSecurityRules/{rule.name}",
                "etag": etag_of(group["id"]),
                "type": f"{GROUPS}/defaultSecurityRules",
                "properties": {"provisioningState": "Succeeded", **security_rule(rule)},
            }
            for rule in default_rules()
        ]
    for table in documents.of_type(TABLES):
        table["properties"].setdefault("routes", [])
    for network in documents.of_type(NETWORKS):
        network["properties"].setdefault("subnets", [])
        for peering in network["properties"].setdefault("virtualNetworkPeerings", []):
            remote = documents.get(peering["properties"]["remoteVirtualNetwork"]["id"])
            if remote is not None:
                space = {"addressPrefixes": list(remote["properties"]["addressSpace"]["addressPrefixes"])}
                peering["properties"].setdefault("remoteAddressSpace", space)
                peering["properties"]["remoteVirtualNetworkAddressSpace"] = space
