"""Every body of the emulator holds to the models of Azure's SDK, where the SDK is at hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost.lab.arm import resource_manager
from ghost.lab.arm.api_messages import Request
from ghost.lab.arm.resource_manager import answer
from ghost.lab.directory import LabDirectory
from ghost.lab.world_validation import world_from_dict
from tests.lab.real_az import CI_CACHE, newest
from tests.lab.test_conformance import PLACES, SUBSCRIPTION, _scenario, _still_lab

assert resource_manager.SERVICES
_NAMED = os.environ.get("GHOST_AZURE_SDK")
SDK = newest([Path(_NAMED)] if _NAMED else CI_CACHE.glob("azure-sdk-*/bin/python"))
NETWORK, COMPUTE, STORAGE = "azure.mgmt.network.models", "azure.mgmt.compute.models", "azure.mgmt.storage.models"
GROUP = f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers"
WATCHER = (
    f"{SUBSCRIPTION}/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_eastus"
)
PRIVATE_DNS = "azure.mgmt.privatedns.models"
ZONE = f"{GROUP}/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"
VNET, NSG = f"{GROUP}/Microsoft.Network/virtualNetworks/prod-vnet", f"{GROUP}/Microsoft.Network/networkSecurityGroups"
ROUTES = f"{GROUP}/Microsoft.Network/routeTables/prod-routes/routes"

READ = {
    f"{SUBSCRIPTION}/providers/Microsoft.Network/virtualNetworks": (NETWORK, "VirtualNetwork"),
    f"{VNET}/subnets": (NETWORK, "Subnet"),
    f"{VNET}/virtualNetworkPeerings": (NETWORK, "VirtualNetworkPeering"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/networkSecurityGroups": (NETWORK, "NetworkSecurityGroup"),
    f"{NSG}/cache-nsg/securityRules": (NETWORK, "SecurityRule"),
    f"{NSG}/cache-nsg/defaultSecurityRules": (NETWORK, "SecurityRule"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/routeTables": (NETWORK, "RouteTable"),
    ROUTES: (NETWORK, "Route"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/networkInterfaces": (NETWORK, "NetworkInterface"),
    f"{PLACES['nic']}/ipConfigurations": (NETWORK, "NetworkInterfaceIPConfiguration"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/networkWatchers": (NETWORK, "NetworkWatcher"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/loadBalancers": (NETWORK, "LoadBalancer"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/publicIPAddresses": (NETWORK, "PublicIPAddress"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/privateEndpoints": (NETWORK, "PrivateEndpoint"),
    f"{SUBSCRIPTION}/providers/Microsoft.Network/privateDnsZones": (PRIVATE_DNS, "PrivateZone"),
    f"{ZONE}/ALL": (PRIVATE_DNS, "RecordSet"),
    f"{ZONE}/virtualNetworkLinks": (PRIVATE_DNS, "VirtualNetworkLink"),
    f"{WATCHER}/packetCaptures": (NETWORK, "PacketCaptureResult"),
    f"{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines": (COMPUTE, "VirtualMachine"),
    f"{PLACES['vm']}?$expand=instanceView": (COMPUTE, "VirtualMachine"),
    f"{PLACES['vm']}/instanceView": (COMPUTE, "VirtualMachineInstanceView"),
    f"{PLACES['vm']}/extensions": (COMPUTE, "VirtualMachineExtension"),
    f"{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachineScaleSets": (COMPUTE, "VirtualMachineScaleSet"),
    f"{PLACES['set']}/instanceView": (COMPUTE, "VirtualMachineScaleSetInstanceView"),
    f"{PLACES['set']}/virtualMachines": (COMPUTE, "VirtualMachineScaleSetVM"),
    f"{PLACES['set']}/virtualMachines/0/instanceView": (COMPUTE, "VirtualMachineScaleSetVMInstanceView"),
    f"{SUBSCRIPTION}/providers/Microsoft.Storage/storageAccounts": (STORAGE, "StorageAccount"),
    f"{SUBSCRIPTION}/resourcegroups": ("azure.mgmt.resource.resources.models", "ResourceGroup"),
    f"{SUBSCRIPTION}/resources?$expand=createdTime,changedTime,provisioningState": (
        "azure.mgmt.resource.resources.models",
        "GenericResourceExpanded",
    ),
    f"{SUBSCRIPTION}/providers/Microsoft.Network": ("azure.mgmt.resource.resources.models", "Provider"),
    f"{SUBSCRIPTION}": ("azure.mgmt.resource.subscriptions.models", "Subscription"),
    "/tenants": ("azure.mgmt.resource.subscriptions.models", "TenantIdDescription"),
}
DOCUMENTED = {
    # "This list of sizes is no longer updated": https://learn.microsoft.com/rest/api/compute/virtual-machines/get
    "hardwareProfile.vmSize",
    # https://learn.microsoft.com/azure/virtual-network/diagnose-network-routing-problem shows it
    "nextHopType",
}
"""Fields whose words Azure gives without its models listing them."""

RECORDED = ("PacketCaptureResult.type", ".ruleId", "].hasBgpOverride", "].destinationServiceTags", "].tagMap")
"""Fields that Azure answered, as its own tests recorded, and that its models lack."""

POSTED: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    (f"{PLACES['nic']}/effectiveRouteTable", {}, (NETWORK, "EffectiveRouteListResult")),
    (f"{PLACES['nic']}/effectiveNetworkSecurityGroups", {}, (NETWORK, "EffectiveNetworkSecurityGroupListResult")),
    (f"{WATCHER}/packetCaptures/done/queryStatus", {}, (NETWORK, "PacketCaptureQueryStatusResult")),
    (f"{WATCHER}/packetCaptures/busy/queryStatus", {}, (NETWORK, "PacketCaptureQueryStatusResult")),
    (
        f"{WATCHER}/nextHop",
        {"targetResourceId": PLACES["vm"], "sourceIPAddress": "10.20.1.4", "destinationIPAddress": "172.20.0.9"},
        (NETWORK, "NextHopResult"),
    ),
    (
        f"{WATCHER}/ipFlowVerify",
        {
            "targetResourceId": PLACES["vm"],
            "direction": "Outbound",
            "protocol": "TCP",
            "localIPAddress": "10.20.1.4",
            "localPort": "1",
            "remoteIPAddress": "10.20.2.5",
            "remotePort": "2",
        },
        (NETWORK, "VerificationIPFlowResult"),
    ),
    (
        f"{PLACES['vm']}/runCommand",
        {"commandId": "RunShellScript", "script": ["hostname"]},
        (COMPUTE, "RunCommandResult"),
    ),
    (f"{PLACES['account']}/listKeys", {}, (STORAGE, "StorageAccountListKeysResult")),
]


def _get(lab: LabDirectory, target: str) -> Any:
    response = answer(lab, Request("GET", f"{target}{'&' if '?' in target else '?'}api-version=2024-05-01"))
    assert response.status == 200, response.body
    return response.json()


def _bodies(lab: LabDirectory) -> Iterator[tuple[str, str, Any]]:
    for target, (module, model) in READ.items():
        body = _get(lab, target)
        for item in body["value"] if set(body) == {"value"} else [body]:
            yield module, model, item
    for target, asked, (module, model) in POSTED:
        response = answer(lab, Request("POST", f"{target}?api-version=2024-05-01", json.dumps(asked).encode()))
        if response.status == 202:
            yield module, model, _get(lab, response.headers["Location"].partition("azure.com")[2])
        else:
            yield module, model, response.json()


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, Any]]:
    return list(_bodies(_still_lab(tmp_path_factory.mktemp("bodies") / "lab")))


def _misfits(bodies: list[tuple[str, str, Any]]) -> dict[str, str]:
    program = Path(__file__).with_name("sdk_check.py")
    done = subprocess.run([SDK, "-I", program], input=json.dumps(bodies), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, str] = json.loads(done.stdout)
    return found


needs_sdk = pytest.mark.skipif(
    SDK is None, reason="takes a Python with Azure's SDK (GHOST_AZURE_SDK), which .ci/run installs"
)


@needs_sdk
def test_every_body_holds_to_the_model_of_azures_sdk(bodies: list[tuple[str, str, Any]]) -> None:
    assert len(bodies) > 60
    found = {place: wrong for place, wrong in _misfits(bodies).items() if not place.endswith(RECORDED)}
    assert {place: wrong for place, wrong in found.items() if not place.endswith(tuple(DOCUMENTED))} == {}
    assert all("is not among" in wrong for wrong in found.values())


@needs_sdk
@pytest.mark.parametrize(
    "change",
    [
        {"nonsense": 1},
        {"location": 7},
        {"properties": {"securityRules": [{"properties": {"access": "Maybe"}}]}},
        {"properties": {"securityRules": {}}},
        {"properties": {"securityRules": [{"properties": {"priority": "100"}}]}},
    ],
)
def test_the_check_finds_what_does_not_fit(change: dict[str, Any]) -> None:
    assert len(_misfits([(NETWORK, "NetworkSecurityGroup", change)])) == 1


def test_every_type_of_the_documents_is_among_the_bodies(bodies: list[tuple[str, str, Any]]) -> None:
    seen = {str(item.get("type")).casefold() for _, _, item in bodies if isinstance(item, dict)}
    assert {body["type"].casefold() for body in _scenario().world.documents} <= seen | {
        "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces"
    }


def test_a_private_endpoint_leads_to_its_account_however_that_is_written() -> None:
    world = _scenario().world
    (endpoint,) = world.private_endpoints
    shouted = replace(world, private_endpoints=(replace(endpoint, storage_account="PRODFORENSICS01"),))

    assert list(world_from_dict(shouted.to_dict()).documents) == list(world.documents)
