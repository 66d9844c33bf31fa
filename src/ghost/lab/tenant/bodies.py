"""Bodies of machines, scale sets and storage accounts, from the compact tables of a world.

https://learn.microsoft.com/rest/api/compute/, https://learn.microsoft.com/rest/api/storagerp/
"""

from __future__ import annotations

from collections.abc import Iterator

from ghost.lab.tenant.documents import Body, guid
from ghost.lab.world import Machine, ScaleSet, StorageAccount, World

CREATED = "2025-09-02T08:15:04+00:00"
POWER_TEXT = {"running": "VM running", "stopped": "VM stopped", "deallocated": "VM deallocated"}
VM, SET = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachineScaleSets"
STORAGE = "Microsoft.Storage/storageAccounts"


def of_world(world: World) -> Iterator[Body]:
    yield from (machine(world, vm) for vm in world.single_machines())
    for item in world.scale_sets:
        yield scale_set(world, item)
        yield from (instance(world, item, world.machine(name)) for name in item.machines)
    yield from (extension(world, vm, kind) for vm in world.single_machines() for kind in vm.extensions)
    yield from (storage_account(world, item) for item in world.storage_accounts)


def id_of(world: World, vm: Machine) -> str:
    """Return the id of a machine, also of one of a scale set."""
    for item in world.scale_sets:
        if vm.name in item.machines:
            owner = world.resource_id(SET, item.resource_group, item.name)
            return f"{owner}/virtualMachines/{instance_number(item, vm)}"
    return world.resource_id(VM, vm.resource_group, vm.name)


def interface_id(world: World, vm: Machine) -> str:
    """Return the id of a machine's interface; that of a scale set's machine is a part of it."""
    if any(vm.name in item.machines for item in world.scale_sets):
        return f"{id_of(world, vm)}/networkInterfaces/{vm.interface}"
    nic = world.interface(vm.interface)
    return world.resource_id("Microsoft.Network/networkInterfaces", nic.resource_group, nic.name)


# --- compute ---

_IMAGES: dict[str, Body] = {
    "Linux": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server"},
    "Windows": {"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": "2022-datacenter-g2"},
}
_SYSTEM_SETTINGS: dict[str, Body] = {
    "Linux": {"linuxConfiguration": {"disablePasswordAuthentication": True, "provisionVMAgent": True}},
    "Windows": {"windowsConfiguration": {"provisionVMAgent": True, "enableAutomaticUpdates": True}},
}


def machine(world: World, vm: Machine) -> Body:
    return {"id": id_of(world, vm), "tags": dict(vm.tags), "properties": _machine_properties(world, vm)}


def scale_set(world: World, item: ScaleSet) -> Body:
    members = [world.machine(name) for name in item.machines]
    own_id = world.resource_id(SET, item.resource_group, item.name)
    properties = {
        "singlePlacementGroup": True,
        "orchestrationMode": "Uniform",
        "upgradePolicy": {"mode": "Manual"},
        "overprovision": False,
        "uniqueId": guid(own_id),
        "timeCreated": CREATED,
    }
    size = members[0].size if members else "Standard_D2s_v5"
    return {
        "id": own_id,
        "sku": {"name": size, "tier": "Standard", "capacity": len(members)},
        "tags": {},
        "properties": properties,
    }


def scale_set_view(count: int) -> Body:
    done = {"code": "ProvisioningState/succeeded", "count": count}
    return {
        "virtualMachine": {"statusesSummary": [done]},
        "statuses": [_status("ProvisioningState/succeeded", "Provisioning succeeded")],
    }


def instance(world: World, item: ScaleSet, vm: Machine) -> Body:
    """Return a machine of a scale set."""
    return {
        "id": id_of(world, vm),
        "name": f"{item.name}_{instance_number(item, vm)}",
        "location": world.location_of(item.resource_group),
        "instanceId": instance_number(item, vm),
        "tags": dict(vm.tags),
        "properties": {"latestModelApplied": True, **_machine_properties(world, vm)},
    }


def instance_number(item: ScaleSet, vm: Machine) -> str:
    return str(item.machines.index(vm.name))


def _machine_properties(world: World, vm: Machine) -> Body:
    return {
        "vmId": guid(f"{vm.resource_group}/{vm.name}"),
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
        "networkProfile": {"networkInterfaces": [{"id": interface_id(world, vm), "properties": {"primary": True}}]},
        "timeCreated": CREATED,
        "instanceView": instance_view(vm),
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
    own_id = f"{id_of(world, vm)}/extensions/{extension_name(kind)}"
    return {"id": own_id, "location": world.location_of(vm.resource_group), "properties": properties}


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
    return {
        "id": world.resource_id(STORAGE, item.resource_group, item.name),
        "sku": {"name": "Standard_LRS", "tier": "Standard"},
        "kind": "StorageV2",
        "tags": {},
        "properties": properties,
    }
