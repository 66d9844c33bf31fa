"""How the CLI shows accounts, machines and storage: Azure's fields, `properties` at the top, `resourceGroup` added.

https://learn.microsoft.com/rest/api/compute/
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from ghost.lab.world import (
    Machine,
    NetworkInterface,
    Resource,
    ResourceGroup,
    RouteTable,
    SecurityGroup,
    StorageAccount,
    VirtualNetwork,
    Watcher,
    World,
)

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


def network_common(world: World, item: Resource) -> dict[str, Any]:
    return {**_common(world, item), "etag": _etag(id_of(world, item)), "resourceGuid": guid(id_of(world, item))}


def part(world: World, owner: Resource, kind: str, name: str) -> dict[str, Any]:
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
        **part(world, vm, "extensions", extension_name(kind)),
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
