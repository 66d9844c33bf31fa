"""Bodies of load balancers, public addresses, private endpoints and private DNS zones in Azure Resource Manager's
format.

https://learn.microsoft.com/rest/api/load-balancer/, https://learn.microsoft.com/rest/api/virtualnetwork/,
https://learn.microsoft.com/rest/api/dns/privatedns/
"""

from __future__ import annotations

from ghost.lab.arm.bodies import TYPES, Body, etag, guid, id_of, part, part_id, reference, resource
from ghost.lab.arm.network_bodies import BALANCER_POOL, network_resource
from ghost.lab.network_services import AddressRecord, LoadBalancer, PrivateEndpoint, PrivateZone, PublicAddress
from ghost.lab.world import World

FRONTEND = "frontend"


def public_address(world: World, item: PublicAddress) -> Body:
    properties: Body = {
        "ipAddress": item.address,
        "publicIPAddressVersion": "IPv6" if ":" in item.address else "IPv4",
        "publicIPAllocationMethod": "Static",
        "idleTimeoutInMinutes": 4,
        "ipTags": [],
    }
    if item.interface is not None:
        nic = world.interface(item.interface)
        properties["ipConfiguration"] = {"id": part_id(world, nic, "ipConfigurations", "ipconfig1")}
    if item.fqdn is not None:
        properties["dnsSettings"] = {"domainNameLabel": item.fqdn.partition(".")[0], "fqdn": item.fqdn}
    return {**network_resource(world, item, properties), "sku": {"name": "Standard", "tier": "Regional"}}


def load_balancer(world: World, item: LoadBalancer) -> Body:
    network = world.network(item.network)
    front = {"id": part_id(world, item, "frontendIPConfigurations", FRONTEND)}
    pool = {"id": part_id(world, item, "backendAddressPools", BALANCER_POOL)}
    rules = [
        {
            "frontendIPConfiguration": front,
            "frontendPort": rule.port,
            "backendPort": rule.target_port,
            "enableFloatingIP": False,
            "idleTimeoutInMinutes": 4,
            "protocol": rule.protocol,
            "loadDistribution": "Default",
            "backendAddressPool": pool,
        }
        for rule in item.rules
    ]
    members = [world.interface(name) for name in item.members]
    frontend = {
        "privateIPAddress": item.address,
        "privateIPAllocationMethod": "Static",
        "subnet": {"id": part_id(world, network, "subnets", item.subnet)},
        "privateIPAddressVersion": "IPv4",
    }
    behind = {
        "backendIPConfigurations": [{"id": part_id(world, nic, "ipConfigurations", "ipconfig1")} for nic in members]
    }
    properties = {
        "frontendIPConfigurations": [part(world, item, "frontendIPConfigurations", FRONTEND, frontend)],
        "backendAddressPools": [part(world, item, "backendAddressPools", BALANCER_POOL, behind)],
        "loadBalancingRules": [
            part(world, item, "loadBalancingRules", rule.name, body)
            for rule, body in zip(item.rules, rules, strict=True)
        ],
        "probes": [],
        "inboundNatRules": [],
        "outboundRules": [],
        "inboundNatPools": [],
    }
    return {**network_resource(world, item, properties), "sku": {"name": "Standard", "tier": "Regional"}}


def private_endpoint(world: World, item: PrivateEndpoint) -> Body:
    nic = world.interface(item.interface)
    account = world.storage_account(item.storage_account)
    state = {"status": "Approved", "description": "Auto-Approved", "actionsRequired": "None"}
    connection = {
        "privateLinkServiceId": id_of(world, account),
        "groupIds": ["blob"],
        "privateLinkServiceConnectionState": state,
    }
    fqdn = f"{account.name}.blob.core.windows.net"
    properties = {
        "subnet": {"id": part_id(world, world.network(nic.network), "subnets", nic.subnet)},
        "networkInterfaces": [reference(world, nic)],
        "privateLinkServiceConnections": [part(world, item, "privateLinkServiceConnections", item.name, connection)],
        "manualPrivateLinkServiceConnections": [],
        "customDnsConfigs": [{"fqdn": fqdn, "ipAddresses": [nic.address]}],
    }
    body = network_resource(world, item, properties)
    del body["properties"]["resourceGuid"]
    return body


def private_zone(world: World, item: PrivateZone) -> Body:
    properties = {
        "maxNumberOfRecordSets": 25000,
        "numberOfRecordSets": len(item.records) + 1,
        "maxNumberOfVirtualNetworkLinks": 1000,
        "numberOfVirtualNetworkLinks": len(item.networks),
        "maxNumberOfVirtualNetworkLinksWithRegistration": 100,
        "numberOfVirtualNetworkLinksWithRegistration": 0,
    }
    return {**resource(world, item, properties, etag=guid(id_of(world, item)), tags={}), "location": "global"}


def address_record(world: World, zone: PrivateZone, record: AddressRecord) -> Body:
    own_id = part_id(world, zone, "A", record.name)
    return {
        "id": own_id,
        "name": record.name,
        "type": f"{TYPES[PrivateZone]}/A",
        "etag": guid(own_id),
        "properties": {
            "fqdn": f"{record.name}.{zone.name}.",
            "ttl": record.ttl,
            "isAutoRegistered": False,
            "aRecords": [{"ipv4Address": address} for address in record.addresses],
        },
    }


def zone_link(world: World, zone: PrivateZone, network: str) -> Body:
    linked = world.network(network)
    own_id = part_id(world, zone, "virtualNetworkLinks", link_name(network))
    return {
        "id": own_id,
        "name": link_name(network),
        "type": f"{TYPES[PrivateZone]}/virtualNetworkLinks",
        "location": "global",
        "etag": etag(own_id),
        "tags": {},
        "properties": {
            "provisioningState": "Succeeded",
            "virtualNetwork": reference(world, linked),
            "registrationEnabled": False,
            "virtualNetworkLinkState": "Completed",
        },
    }


def link_name(network: str) -> str:
    return f"{network}-link"
