"""What Azure Resource Manager answers for accounts, groups, machines and storage: bodies built from the world.

https://learn.microsoft.com/rest/api/resources/, https://learn.microsoft.com/rest/api/compute/,
https://learn.microsoft.com/rest/api/storagerp/
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ghost.lab.network_services import LoadBalancer, PrivateEndpoint, PrivateZone, PublicAddress
from ghost.lab.world import (
    Machine,
    NetworkInterface,
    Resource,
    ResourceGroup,
    RouteTable,
    ScaleSet,
    SecurityGroup,
    StorageAccount,
    VirtualNetwork,
    Watcher,
    World,
)

Body = dict[str, Any]

TYPES: dict[type[Any], str] = {
    Machine: "Microsoft.Compute/virtualMachines",
    ScaleSet: "Microsoft.Compute/virtualMachineScaleSets",
    NetworkInterface: "Microsoft.Network/networkInterfaces",
    VirtualNetwork: "Microsoft.Network/virtualNetworks",
    SecurityGroup: "Microsoft.Network/networkSecurityGroups",
    RouteTable: "Microsoft.Network/routeTables",
    StorageAccount: "Microsoft.Storage/storageAccounts",
    Watcher: "Microsoft.Network/networkWatchers",
    LoadBalancer: "Microsoft.Network/loadBalancers",
    PublicAddress: "Microsoft.Network/publicIPAddresses",
    PrivateEndpoint: "Microsoft.Network/privateEndpoints",
    PrivateZone: "Microsoft.Network/privateDnsZones",
}
CREATED = "2025-09-02T08:15:04+00:00"
POWER_TEXT = {"running": "VM running", "stopped": "VM stopped", "deallocated": "VM deallocated"}


def id_of(world: World, item: Resource) -> str:
    return world.resource_id(TYPES[type(item)], item.resource_group, item.name)


def part_id(world: World, owner: Resource, kind: str, name: str) -> str:
    """Return the id of a part; `kind` is `subnets`, `securityRules`, ..."""
    return world.resource_id(f"{TYPES[type(owner)]}/{kind}", owner.resource_group, owner.name, name)


def reference(world: World, item: Resource) -> Body:
    return {"id": id_of(world, item)}


def resource(world: World, item: Resource, properties: Body, **more: Any) -> Body:
    return {
        "id": id_of(world, item),
        "name": item.name,
        "type": TYPES[type(item)],
        "location": world.location_of(item.resource_group),
        **more,
        "properties": {"provisioningState": "Succeeded", **properties},
    }


def part(world: World, owner: Resource, kind: str, name: str, properties: Body) -> Body:
    own_id = part_id(world, owner, kind, name)
    return {
        "id": own_id,
        "name": name,
        "type": f"{TYPES[type(owner)]}/{kind}",
        "etag": etag(own_id),
        "properties": {"provisioningState": "Succeeded", **properties},
    }


def guid(text: str) -> str:
    """Return a GUID derived from the text, so that answers are reproducible."""
    return str(uuid5(NAMESPACE_URL, text))


def etag(text: str) -> str:
    return f'W/"{guid(text + "#etag")}"'


# --- subscriptions, groups, any resource ---


def subscription(world: World) -> Body:
    own = world.subscription
    return {
        "id": f"/subscriptions/{own.id}",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "subscriptionId": own.id,
        "tenantId": own.tenant,
        "displayName": own.name,
        "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "EnterpriseAgreement_2014-09-01",
            "spendingLimit": "Off",
        },
    }


def tenant(world: World) -> Body:
    own = world.subscription
    return {"id": f"/tenants/{own.tenant}", "tenantId": own.tenant, "tenantCategory": "Home", "displayName": own.name}


def resource_group(world: World, group: ResourceGroup) -> Body:
    return {
        "id": world.group_id(group.name),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": group.location,
        "tags": {},
        "properties": {"provisioningState": "Succeeded"},
    }


def generic(world: World, item: Resource) -> Body:
    """Return the entry in a list of all resources: without its properties."""
    return {
        "id": id_of(world, item),
        "name": item.name,
        "type": TYPES[type(item)],
        "location": "global" if isinstance(item, PrivateZone) else world.location_of(item.resource_group),
        **({"kind": "StorageV2"} if isinstance(item, StorageAccount) else {}),
        "tags": dict(item.tags) if isinstance(item, Machine) else {},
        "createdTime": CREATED,
        "changedTime": CREATED,
        "provisioningState": "Succeeded",
    }


# --- compute ---

_IMAGES: dict[str, Body] = {
    "Linux": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server"},
    "Windows": {"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": "2022-datacenter-g2"},
}
_SYSTEM_SETTINGS: dict[str, Body] = {
    "Linux": {"linuxConfiguration": {"disablePasswordAuthentication": True, "provisionVMAgent": True}},
    "Windows": {"windowsConfiguration": {"provisionVMAgent": True, "enableAutomaticUpdates": True}},
}


def machine(world: World, vm: Machine, *, with_instance_view: bool = False) -> Body:
    properties = _machine_properties(world, vm, reference(world, world.interface(vm.interface)))
    if with_instance_view:
        properties["instanceView"] = instance_view(vm)
    return resource(world, vm, properties, tags=dict(vm.tags))


def scale_set(world: World, item: ScaleSet) -> Body:
    members = [world.machine(name) for name in item.machines]
    properties = {
        "singlePlacementGroup": True,
        "orchestrationMode": "Uniform",
        "upgradePolicy": {"mode": "Manual"},
        "overprovision": False,
        "uniqueId": guid(id_of(world, item)),
        "timeCreated": CREATED,
    }
    size = members[0].size if members else "Standard_D2s_v5"
    sku = {"name": size, "tier": "Standard", "capacity": len(members)}
    return resource(world, item, properties, sku=sku, tags={})


def scale_set_view(item: ScaleSet) -> Body:
    done = {"code": "ProvisioningState/succeeded", "count": len(item.machines)}
    return {
        "virtualMachine": {"statusesSummary": [done]},
        "statuses": [_status("ProvisioningState/succeeded", "Provisioning succeeded")],
    }


def instance(world: World, item: ScaleSet, vm: Machine, *, with_instance_view: bool = False) -> Body:
    """Return a machine of a scale set; its interface is a part of it."""
    number = instance_number(item, vm)
    own_id = part_id(world, item, "virtualMachines", number)
    properties = _machine_properties(world, vm, {"id": f"{own_id}/networkInterfaces/{vm.interface}"})
    if with_instance_view:
        properties["instanceView"] = instance_view(vm)
    return {
        "id": own_id,
        "name": f"{item.name}_{number}",
        "type": f"{TYPES[ScaleSet]}/virtualMachines",
        "location": world.location_of(item.resource_group),
        "instanceId": number,
        "tags": dict(vm.tags),
        "properties": {"latestModelApplied": True, "provisioningState": "Succeeded", **properties},
    }


def instance_number(item: ScaleSet, vm: Machine) -> str:
    return str(item.machines.index(vm.name))


def _machine_properties(world: World, vm: Machine, nic: Body) -> Body:
    return {
        "vmId": guid(id_of(world, vm)),
        "hardwareProfile": {"vmSize": vm.size},
        "storageProfile": {
            "imageReference": {**_IMAGES[vm.os], "version": "latest"},
            "osDisk": {
                "osType": vm.os,
                "name": f"{vm.name}-os",
                "createOption": "FromImage",
                "caching": "ReadWrite",
            },
            "dataDisks": [],
        },
        "osProfile": {"computerName": vm.name, "adminUsername": "azureuser", **_SYSTEM_SETTINGS[vm.os]},
        "networkProfile": {"networkInterfaces": [{**nic, "properties": {"primary": True}}]},
        "timeCreated": CREATED,
    }


def instance_view(vm: Machine) -> Body:
    running = vm.power == "running"
    agent = _status("ProvisioningState/succeeded", "Ready") if running else _status("Unavailable", "Not Ready")
    done = _status("ProvisioningState/succeeded", "Provisioning succeeded")
    view: Body = {
        "vmAgent": {"vmAgentVersion": "2.12.0.2" if running else "Unknown", "statuses": [agent]},
        "disks": [{"name": f"{vm.name}-os", "statuses": [done]}],
        "statuses": [done, _status(f"PowerState/{vm.power}", POWER_TEXT[vm.power])],
    }
    if running:
        view["computerName"] = vm.name
        view["osName"] = "ubuntu" if vm.os == "Linux" else "Windows Server 2022 Datacenter"
        view["extensions"] = [
            {
                "name": extension_name(kind),
                "type": f"Microsoft.Azure.NetworkWatcher.{kind}",
                "typeHandlerVersion": "1.4.3783.1",
                "statuses": [done],
            }
            for kind in vm.extensions
        ]
    return view


def extension(world: World, vm: Machine, kind: str) -> Body:
    properties = {
        "autoUpgradeMinorVersion": True,
        "publisher": "Microsoft.Azure.NetworkWatcher",
        "type": kind,
        "typeHandlerVersion": "1.4",
    }
    own = part(world, vm, "extensions", extension_name(kind), properties)
    del own["etag"]
    return {**own, "location": world.location_of(vm.resource_group)}


def extension_name(kind: str) -> str:
    return "AzureNetworkWatcherExtension" if kind.startswith("NetworkWatcherAgent") else kind


def _status(code: str, display: str) -> Body:
    return {"code": code, "level": "Info", "displayStatus": display, "time": CREATED}


# --- storage ---


def storage_account(world: World, item: StorageAccount) -> Body:
    location = world.location_of(item.resource_group)
    properties = {
        "accessTier": "Hot",
        "allowBlobPublicAccess": False,
        "allowSharedKeyAccess": True,
        "creationTime": CREATED,
        "minimumTlsVersion": "TLS1_2",
        "networkAcls": {"bypass": "AzureServices", "virtualNetworkRules": [], "ipRules": [], "defaultAction": "Allow"},
        "primaryEndpoints": {"blob": f"https://{item.name}.blob.core.windows.net/"},
        "primaryLocation": location,
        "statusOfPrimary": "available",
        "supportsHttpsTrafficOnly": True,
    }
    sku = {"name": "Standard_LRS", "tier": "Standard"}
    return resource(world, item, properties, sku=sku, kind="StorageV2", tags={})
