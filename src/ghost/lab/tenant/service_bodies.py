"""Bodies of load balancers, public addresses, private endpoints and zones, from the compact tables of a world.

https://learn.microsoft.com/rest/api/load-balancer/, https://learn.microsoft.com/rest/api/virtualnetwork/,
https://learn.microsoft.com/rest/api/dns/privatedns/
"""

from __future__ import annotations

from collections.abc import Iterator

from ghost.lab.network_services import AddressRecord, LoadBalancer, PrivateEndpoint, PrivateZone, Probe, PublicAddress
from ghost.lab.tenant.bodies import CREATED, STORAGE
from ghost.lab.tenant.documents import Body, Documents, etag_of, guid
from ghost.lab.tenant.network_bodies import BALANCER_POOL, NETWORKS, NICS, subnet_id
from ghost.lab.world import World

FRONTEND, PROBE = "frontend", "probe"
BALANCERS, ADDRESSES = "Microsoft.Network/loadBalancers", "Microsoft.Network/publicIPAddresses"
ENDPOINTS, ZONES = "Microsoft.Network/privateEndpoints", "Microsoft.Network/privateDnsZones"
STANDARD = {"name": "Standard", "tier": "Regional"}


def of_world(world: World) -> Iterator[Body]:
    yield from (public_address(world, item) for item in world.public_addresses)
    yield from (load_balancer(world, item) for item in world.load_balancers)
    yield from (private_endpoint(world, item) for item in world.private_endpoints)
    for zone in world.private_zones:
        yield private_zone(world, zone)
        own_id = world.resource_id(ZONES, zone.resource_group, zone.name)
        yield from (_record(own_id, zone, record) for record in zone.records)
        yield from (_link(world, own_id, network) for network in zone.networks)


def public_address(world: World, item: PublicAddress) -> Body:
    own_id = world.resource_id(ADDRESSES, item.resource_group, item.name)
    properties: Body = {
        "resourceGuid": guid(own_id),
        "ipAddress": item.address,
        "publicIPAddressVersion": "IPv6" if ":" in item.address else "IPv4",
        "publicIPAllocationMethod": "Static",
        "idleTimeoutInMinutes": 4,
        "ipTags": [],
    }
    if item.fqdn is not None:
        properties["dnsSettings"] = {"domainNameLabel": item.fqdn.partition(".")[0], "fqdn": item.fqdn}
    return {"id": own_id, "sku": STANDARD, "properties": properties}


def load_balancer(world: World, item: LoadBalancer) -> Body:
    own_id = world.resource_id(BALANCERS, item.resource_group, item.name)
    front = {"id": f"{own_id}/frontendIPConfigurations/{FRONTEND}"}
    pool = {"id": f"{own_id}/backendAddressPools/{BALANCER_POOL}"}
    rules = {
        rule.name: {
            "frontendIPConfiguration": front,
            "frontendPort": rule.port,
            "backendPort": rule.target_port,
            "enableFloatingIP": False,
            "idleTimeoutInMinutes": 4,
            "protocol": rule.protocol,
            "loadDistribution": "Default",
            "backendAddressPool": pool,
            **({"probe": {"id": f"{own_id}/probes/{PROBE}"}} if item.probe else {}),
        }
        for rule in item.rules
    }
    frontend = {
        "privateIPAddress": item.address,
        "privateIPAllocationMethod": "Static",
        "subnet": {"id": subnet_id(world, item.network, item.subnet)},
        "privateIPAddressVersion": "IPv4",
    }
    properties = {
        "resourceGuid": guid(own_id),
        "frontendIPConfigurations": [{"name": FRONTEND, "properties": frontend}],
        "backendAddressPools": [{"name": BALANCER_POOL}],
        "loadBalancingRules": [{"name": name, "properties": body} for name, body in rules.items()],
        "probes": [{"name": PROBE, "properties": _probe(item.probe)}] if item.probe else [],
        "inboundNatRules": [],
        "outboundRules": [],
        "inboundNatPools": [],
    }
    return {"id": own_id, "sku": STANDARD, "properties": properties}


def _probe(probe: Probe) -> Body:
    path = {"requestPath": probe.path or "/"} if probe.protocol != "Tcp" else {}
    numbers = {"intervalInSeconds": 5, "numberOfProbes": 1, "probeThreshold": 1}
    return {"protocol": probe.protocol, "port": probe.port, **path, **numbers}


def private_endpoint(world: World, item: PrivateEndpoint) -> Body:
    own_id = world.resource_id(ENDPOINTS, item.resource_group, item.name)
    nic = world.interface(item.interface)
    account = world.storage_account(item.storage_account)
    state = {"status": "Approved", "description": "Auto-Approved", "actionsRequired": "None"}
    connection = {
        "privateLinkServiceId": world.resource_id(STORAGE, account.resource_group, account.name),
        "groupIds": ["blob"],
        "privateLinkServiceConnectionState": state,
    }
    fqdn = f"{account.name}.blob.core.windows.net"
    properties = {
        "subnet": {"id": subnet_id(world, nic.network, nic.subnet)},
        "networkInterfaces": [{"id": world.resource_id(NICS, nic.resource_group, nic.name)}],
        "privateLinkServiceConnections": [{"name": item.name, "properties": connection}],
        "manualPrivateLinkServiceConnections": [],
        "customDnsConfigs": [{"fqdn": fqdn, "ipAddresses": [nic.address]}],
    }
    return {"id": own_id, "properties": properties}


def private_zone(world: World, item: PrivateZone) -> Body:
    own_id = world.resource_id(ZONES, item.resource_group, item.name)
    properties = {
        "maxNumberOfRecordSets": 25000,
        "maxNumberOfVirtualNetworkLinks": 1000,
        "maxNumberOfVirtualNetworkLinksWithRegistration": 100,
    }
    return {"id": own_id, "etag": guid(own_id), "tags": {}, "properties": properties}


def _record(zone_id: str, zone: PrivateZone, record: AddressRecord) -> Body:
    own_id = f"{zone_id}/A/{record.name}"
    properties = {
        "fqdn": f"{record.name}.{zone.name}.",
        "ttl": record.ttl,
        "isAutoRegistered": False,
        "aRecords": [{"ipv4Address": address} for address in record.addresses],
    }
    return {"id": own_id, "etag": guid(own_id), "properties": properties}


def _start_of_authority(zone: Body) -> Body:
    times = {"refreshTime": 3600, "retryTime": 300, "expireTime": 2419200, "minimumTtl": 10, "serialNumber": 1}
    server = {"host": "azureprivatedns.net", "email": "azureprivatedns-host.microsoft.com"}
    record = {"soaRecord": {**server, **times}}
    return {
        "etag": guid(f"{zone['id']}/SOA"),
        "properties": {"fqdn": f"{zone['name']}.", "ttl": 3600, "isAutoRegistered": False, **record},
    }


def _link(world: World, zone_id: str, network: str) -> Body:
    linked = world.virtual_network(network)
    own_id = f"{zone_id}/virtualNetworkLinks/{network}-link"
    properties = {
        "virtualNetwork": {"id": world.resource_id(NETWORKS, linked.resource_group, linked.name)},
        "registrationEnabled": False,
        "virtualNetworkLinkState": "Completed",
    }
    return {"id": own_id, "location": "global", "etag": etag_of(own_id), "tags": {}, "properties": properties}


def _encryption() -> Body:
    service = {"keyType": "Account", "enabled": True, "lastEnabledTime": CREATED}
    return {"services": {"file": dict(service), "blob": dict(service)}, "keySource": "Microsoft.Storage"}


def complete(documents: Documents) -> None:
    """Fill in the counts of zones, pools of rules, names of endpoints, and the other end of their connections."""
    for zone in documents.of_type(ZONES):
        documents.put(f"{zone['id']}/SOA/@", _start_of_authority(zone))
        links = documents.parts(zone["id"], "virtualNetworkLinks") or []
        below = [body for body in documents if body["id"].startswith(f"{zone['id']}/")]
        registering = sum(bool(link["properties"].get("registrationEnabled")) for link in links)
        zone["properties"] |= {
            "numberOfRecordSets": len(below) - len(links),
            "numberOfVirtualNetworkLinks": len(links),
            "numberOfVirtualNetworkLinksWithRegistration": registering,
        }
    for account in documents.of_type(STORAGE):
        account["properties"].setdefault("encryption", _encryption())
        for rule in account["properties"].get("networkAcls", {}).get("virtualNetworkRules", []):
            rule.setdefault("state", "Succeeded")
    for balancer in documents.of_type(BALANCERS):
        for rule in (each["properties"] for each in balancer["properties"].get("loadBalancingRules", [])):
            if pools := rule.get("backendAddressPools") or [
                rule[name] for name in ("backendAddressPool",) if name in rule
            ]:
                rule |= {"backendAddressPools": pools, "backendAddressPool": pools[0]}
    for endpoint in documents.of_type(ENDPOINTS):
        properties = endpoint["properties"]
        kinds = ("privateLinkServiceConnections", "manualPrivateLinkServiceConnections")
        for connection in [each for kind in kinds for each in properties.setdefault(kind, [])]:
            service = documents.get(connection["properties"]["privateLinkServiceId"])
            if service is not None:
                _connect(service, endpoint, connection["properties"])
        names = [config["fqdn"] for config in properties.get("customDnsConfigs", [])]
        for place in properties.get("networkInterfaces", []):
            nic = documents.get(place["id"])
            for item in nic["properties"]["ipConfigurations"] if nic else ():
                item["properties"].setdefault("privateLinkConnectionProperties", {"fqdns": names})


def _connect(service: Body, endpoint: Body, connection: Body) -> None:
    state = {"status": connection["privateLinkServiceConnectionState"]["status"]}
    name = f"{endpoint['name']}.{guid(endpoint['id'])}"
    kind = f"{service['type']}/privateEndpointConnections"
    properties = {
        "provisioningState": "Succeeded",
        "privateEndpoint": {"id": endpoint["id"]},
        "privateLinkServiceConnectionState": state,
    }
    own_id = f"{service['id']}/privateEndpointConnections/{name}"
    known = service["properties"].setdefault("privateEndpointConnections", [])
    known.append({"id": own_id, "name": name, "type": kind, "properties": properties})
