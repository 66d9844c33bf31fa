"""How the CLI shows each resource: Azure's fields, those of `properties` at the top, and `resourceGroup` added.

https://learn.microsoft.com/rest/api/virtualnetwork/  https://learn.microsoft.com/rest/api/compute/
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ghost.lab.world import (
    Machine,
    NetworkInterface,
    Peering,
    Resource,
    ResourceGroup,
    RouteTable,
    SecurityGroup,
    StorageAccount,
    Subnet,
    UserRoute,
    VirtualNetwork,
    Watcher,
    World,
)
from ghost.net import SecurityRule, default_rules

TYPES: dict[type[Any], str] = {
    Machine: "Microsoft.Compute/virtualMachines",
    NetworkInterface: "Microsoft.Network/networkInterfaces",
    VirtualNetwork: "Microsoft.Network/virtualNetworks",
    SecurityGroup: "Microsoft.Network/networkSecurityGroups",
    RouteTable: "Microsoft.Network/routeTables",
    StorageAccount: "Microsoft.Storage/storageAccounts",
    Watcher: "Microsoft.Network/networkWatchers",
}
CREATED = "2025-09-02T08:15:04+00:00"
POWER_TEXT = {"running": "VM running", "stopped": "VM stopped", "deallocated": "VM deallocated"}


def id_of(world: World, item: Resource) -> str:
    return world.resource_id(TYPES[type(item)], item.resource_group, item.name)


def part_id(world: World, owner: Resource, kind: str, name: str) -> str:
    """Of a part: `kind` is `subnets`, `securityRules`, ..."""
    return world.resource_id(f"{TYPES[type(owner)]}/{kind}", owner.resource_group, owner.name, name)


def reference(world: World, item: Resource) -> dict[str, Any]:
    return {"id": id_of(world, item), "resourceGroup": item.resource_group}


def _common(world: World, item: Resource) -> dict[str, Any]:
    return {
        **reference(world, item),
        "location": world.location_of(item.resource_group),
        "name": item.name,
        "provisioningState": "Succeeded",
        "type": TYPES[type(item)],
    }


def _network_common(world: World, item: Resource) -> dict[str, Any]:
    return {**_common(world, item), "etag": _etag(id_of(world, item)), "resourceGuid": guid(id_of(world, item))}


def _part(world: World, owner: Resource, kind: str, name: str) -> dict[str, Any]:
    own_id = part_id(world, owner, kind, name)
    return {
        "etag": _etag(own_id),
        "id": own_id,
        "name": name,
        "provisioningState": "Succeeded",
        "resourceGroup": owner.resource_group,
        "type": f"{TYPES[type(owner)]}/{kind}",
    }


def guid(text: str) -> str:
    """The same for the same text, so that a lab answers alike each time."""
    return str(uuid5(NAMESPACE_URL, text))


def _etag(text: str) -> str:
    return f'W/"{guid(text + "#etag")}"'


# --- accounts, groups, any resource ---


def account(world: World) -> dict[str, Any]:
    subscription = world.subscription
    return {
        "environmentName": "AzureCloud",
        "homeTenantId": subscription.tenant,
        "id": subscription.id,
        "isDefault": True,
        "managedByTenants": [],
        "name": subscription.name,
        "state": "Enabled",
        "tenantId": subscription.tenant,
        "user": {"name": subscription.user, "type": "user"},
    }


def resource_group(world: World, group: ResourceGroup) -> dict[str, Any]:
    return {
        "id": world.group_id(group.name),
        "location": group.location,
        "managedBy": None,
        "name": group.name,
        "properties": {"provisioningState": "Succeeded"},
        "tags": {},
        "type": "Microsoft.Resources/resourceGroups",
    }


def generic(world: World, item: Resource) -> dict[str, Any]:
    """As `az resource` shows any resource."""
    return {
        **_common(world, item),
        "changedTime": CREATED,
        "createdTime": CREATED,
        "extendedLocation": None,
        "identity": None,
        "kind": "StorageV2" if isinstance(item, StorageAccount) else None,
        "managedBy": None,
        "plan": None,
        "properties": None,
        "sku": None,
        "tags": dict(item.tags) if isinstance(item, Machine) else {},
    }


# --- compute ---


def machine(world: World, vm: Machine) -> dict[str, Any]:
    interface = world.interface(vm.interface)
    linux = vm.os == "Linux"
    image = (
        {"offer": "ubuntu-24_04-lts", "publisher": "Canonical", "sku": "server"}
        if linux
        else {"offer": "WindowsServer", "publisher": "MicrosoftWindowsServer", "sku": "2022-datacenter-g2"}
    )
    return {
        **_common(world, vm),
        "hardwareProfile": {"vmSize": vm.size},
        "networkProfile": {"networkInterfaces": [{**reference(world, interface), "primary": True}]},
        "osProfile": {
            "adminUsername": "azureuser",
            "computerName": vm.name,
            **(
                {"linuxConfiguration": {"disablePasswordAuthentication": True, "provisionVMAgent": True}}
                if linux
                else {"windowsConfiguration": {"enableAutomaticUpdates": True, "provisionVMAgent": True}}
            ),
        },
        "storageProfile": {
            "dataDisks": [],
            "imageReference": {**image, "version": "latest"},
            "osDisk": {"caching": "ReadWrite", "createOption": "FromImage", "name": f"{vm.name}-os", "osType": vm.os},
        },
        "tags": dict(vm.tags),
        "timeCreated": CREATED,
        "vmId": guid(id_of(world, vm)),
    }


def machine_details(world: World, vm: Machine) -> dict[str, Any]:
    """What `--show-details` adds."""
    interface = world.interface(vm.interface)
    return {
        **machine(world, vm),
        "fqdns": "",
        "macAddresses": interface.mac,
        "powerState": POWER_TEXT[vm.power],
        "privateIps": interface.address,
        "publicIps": "",
    }


def instance_view(world: World, vm: Machine) -> dict[str, Any]:
    agent = "Ready" if vm.power == "running" else "Not Ready"
    view: dict[str, Any] = {
        "statuses": [
            _status("ProvisioningState/succeeded", "Provisioning succeeded"),
            _status(f"PowerState/{vm.power}", POWER_TEXT[vm.power]),
        ],
        "disks": [
            {"name": f"{vm.name}-os", "statuses": [_status("ProvisioningState/succeeded", "Provisioning succeeded")]}
        ],
        "vmAgent": {
            "statuses": [_status(f"ProvisioningState/{'succeeded' if agent == 'Ready' else 'Unavailable'}", agent)],
            "vmAgentVersion": "2.12.0.2",
        },
    }
    if vm.power == "running":
        view["computerName"] = vm.name
        view["osName"] = "ubuntu" if vm.os == "Linux" else "Windows Server 2022 Datacenter"
        view["extensions"] = [
            {
                "name": extension_name(kind),
                "statuses": [_status("ProvisioningState/succeeded", "Provisioning succeeded")],
                "type": f"Microsoft.Azure.NetworkWatcher.{kind}",
            }
            for kind in vm.extensions
        ]
    return {**machine(world, vm), "instanceView": view}


def extension(world: World, vm: Machine, kind: str) -> dict[str, Any]:
    return {
        **_part(world, vm, "extensions", extension_name(kind)),
        "autoUpgradeMinorVersion": True,
        "location": world.location_of(vm.resource_group),
        "publisher": "Microsoft.Azure.NetworkWatcher",
        "typeHandlerVersion": "1.4",
        "typePropertiesType": kind,
    }


def extension_name(kind: str) -> str:
    return "AzureNetworkWatcherExtension" if kind.startswith("NetworkWatcherAgent") else kind


def addresses(world: World, vm: Machine) -> dict[str, Any]:
    """As `az vm list-ip-addresses` shows a machine."""
    return {
        "virtualMachine": {
            "name": vm.name,
            "network": {"privateIpAddresses": [world.interface(vm.interface).address], "publicIpAddresses": []},
            "resourceGroup": vm.resource_group,
        }
    }


def _status(code: str, display: str) -> dict[str, Any]:
    return {"code": code, "displayStatus": display, "level": "Info", "time": CREATED}


# --- network ---


def virtual_network(world: World, network: VirtualNetwork) -> dict[str, Any]:
    return {
        **_network_common(world, network),
        "addressSpace": {"addressPrefixes": list(network.prefixes)},
        "enableDdosProtection": False,
        "privateEndpointVNetPolicies": "Disabled",
        "subnets": [subnet(world, network, item) for item in network.subnets],
        "tags": {},
        "virtualNetworkPeerings": [peering(world, network, item) for item in network.peerings],
    }


def subnet(world: World, network: VirtualNetwork, item: Subnet) -> dict[str, Any]:
    shape = {
        **_part(world, network, "subnets", item.name),
        "addressPrefix": item.prefix,
        "delegations": [],
        "ipConfigurations": [
            {
                "id": part_id(world, interface, "ipConfigurations", "ipconfig1"),
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
        shape["networkSecurityGroup"] = reference(world, world.security_group(item.security_group))
    if item.route_table is not None:
        shape["routeTable"] = reference(world, world.route_table(item.route_table))
    return shape


def peering(world: World, network: VirtualNetwork, item: Peering) -> dict[str, Any]:
    remote = world.network(item.remote)
    space = {"addressPrefixes": list(remote.prefixes)}
    return {
        **_part(world, network, "virtualNetworkPeerings", item.name),
        "allowForwardedTraffic": item.allow_forwarded,
        "allowGatewayTransit": False,
        "allowVirtualNetworkAccess": item.allow_access,
        "doNotVerifyRemoteGateways": False,
        "peeringState": item.state,
        "peeringSyncLevel": "FullyInSync",
        "remoteAddressSpace": space,
        "remoteVirtualNetwork": reference(world, remote),
        "remoteVirtualNetworkAddressSpace": space,
        "useRemoteGateways": False,
    }


def security_group(world: World, group: SecurityGroup) -> dict[str, Any]:
    return {
        **_network_common(world, group),
        "defaultSecurityRules": [security_rule(world, group, rule) for rule in default_rules()],
        "networkInterfaces": [reference(world, i) for i in world.interfaces if i.security_group == group.name],
        "securityRules": [security_rule(world, group, rule) for rule in group.rules],
        "subnets": [
            {"id": part_id(world, network, "subnets", item.name), "resourceGroup": network.resource_group}
            for network in world.networks
            for item in network.subnets
            if item.security_group == group.name
        ],
        "tags": {},
    }


def security_rule(world: World, group: SecurityGroup, rule: SecurityRule) -> dict[str, Any]:
    return {
        **_part(world, group, "defaultSecurityRules" if rule.is_default else "securityRules", rule.name),
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
        **_network_common(world, table),
        "disableBgpRoutePropagation": False,
        "routes": [route(world, table, item) for item in table.routes],
        "subnets": [
            {"id": part_id(world, network, "subnets", item.name), "resourceGroup": network.resource_group}
            for network in world.networks
            for item in network.subnets
            if item.route_table == table.name
        ],
        "tags": {},
    }


def route(world: World, table: RouteTable, item: UserRoute) -> dict[str, Any]:
    return {
        **_part(world, table, "routes", item.name),
        "addressPrefix": item.prefix,
        "hasBgpOverride": False,
        "nextHopType": item.next_hop_type,
        **({"nextHopIpAddress": item.next_hop_address} if item.next_hop_address else {}),
    }


def interface(world: World, nic: NetworkInterface) -> dict[str, Any]:
    shape = {
        **_network_common(world, nic),
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
        shape["networkSecurityGroup"] = reference(world, world.security_group(nic.security_group))
    for vm in world.machines:
        if vm.interface == nic.name:
            shape["virtualMachine"] = reference(world, vm)
    return shape


def ip_configuration(world: World, nic: NetworkInterface) -> dict[str, Any]:
    network = world.network(nic.network)
    return {
        **_part(world, nic, "ipConfigurations", "ipconfig1"),
        "primary": True,
        "privateIPAddress": nic.address,
        "privateIPAddressVersion": "IPv6" if ":" in nic.address else "IPv4",
        "privateIPAllocationMethod": "Dynamic",
        "subnet": {"id": part_id(world, network, "subnets", nic.subnet), "resourceGroup": network.resource_group},
    }


def watcher(world: World, item: Watcher) -> dict[str, Any]:
    shape = _network_common(world, item)
    del shape["resourceGuid"]
    return {**shape, "tags": {}}


# --- storage ---


def storage_account(world: World, item: StorageAccount) -> dict[str, Any]:
    location = world.location_of(item.resource_group)
    return {
        **_common(world, item),
        "accessTier": "Hot",
        "allowBlobPublicAccess": False,
        "allowSharedKeyAccess": True,
        "creationTime": CREATED,
        "enableHttpsTrafficOnly": True,
        "kind": "StorageV2",
        "minimumTlsVersion": "TLS1_2",
        "networkRuleSet": {
            "bypass": "AzureServices",
            "defaultAction": "Allow",
            "ipRules": [],
            "virtualNetworkRules": [],
        },
        "primaryEndpoints": {"blob": f"https://{item.name}.blob.core.windows.net/"},
        "primaryLocation": location,
        "sku": {"name": "Standard_LRS", "tier": "Standard"},
        "statusOfPrimary": "available",
        "tags": {},
    }
