"""Who may use the emulator's storage: roles of Resource Manager and of data, the account's firewall, its keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.lab.role_definitions import Role
from ghost.lab.tenant import guid
from ghost.lab.tenant_conditions import TenantConditions
from tests.lab.emulated import SUBSCRIPTION, Client, emulated

GROUP = "/resourceGroups/prod-rg/providers"
STORAGE = f"{GROUP}/Microsoft.Storage/storageAccounts/prodforensics01"
SUBNET = f"{SUBSCRIPTION}{GROUP}/Microsoft.Network/virtualNetworks/prod-vnet/subnets/prod-subnet"
WATCHER = "/resourceGroups/NetworkWatcherRG/providers/Microsoft.Network/networkWatchers/NetworkWatcher_eastus"
LIST = "/captures?restype=container&comp=list"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with emulated(tmp_path / "lab", lab.load_scenario("blocked-port")) as up:
        yield up


def created(client: Client, name: str, container: str = "captures") -> int:
    place = {
        "storageId": f"{SUBSCRIPTION}{STORAGE}",
        "storagePath": f"https://prodforensics01.blob.core.windows.net/{container}/{name}.cap",
    }
    target = f"{SUBSCRIPTION}{GROUP}/Microsoft.Compute/virtualMachines/web-vm-01"
    body = {"properties": {"target": target, "storageLocation": place, "timeLimitInSeconds": 1}}
    return client.arm("PUT", f"{WATCHER}/packetCaptures/{name}", body).status


def errors(client: Client, name: str) -> Any:
    return client.arm("POST", f"{WATCHER}/packetCaptures/{name}/queryStatus").json["packetCaptureError"]


ALLOWED = [  # roles; the answers to: show the container, list its blobs, create one, keys, a capture
    (("Reader", "Network Contributor"), 200, 403, 403, 403, 201),
    (("Reader", "Storage Blob Data Reader"), 200, 200, 403, 403, 403),
    (("Reader", "Storage Blob Data Contributor"), 200, 200, 201, 403, 403),
    (("Contributor",), 200, 403, 201, 200, 201),
    (("Captures",), 200, 200, 403, 403, 201),
]
CAPTURES = Role(
    "Captures", ("*/read", "Microsoft.Network/networkWatchers/packetCaptures/*"), data_actions=("*/blobs/read",)
)


@pytest.mark.parametrize("row", ALLOWED, ids=lambda row: " and ".join(row[0]))
def test_a_role_allows_what_azure_says_and_one_more_is_assigned(tmp_path: Path, row: tuple[Any, ...]) -> None:
    scenario = lab.load_scenario("blocked-port")
    tenant = TenantConditions(roles=row[0], custom_roles=(CAPTURES,))
    with emulated(tmp_path / "lab", replace(scenario, tenant=tenant)) as client:
        statuses = (
            client.blob("GET", "/captures?restype=container").status,
            client.blob("GET", LIST).status,
            client.blob("PUT", "/more?restype=container").status,
            client.arm("POST", f"{STORAGE}/listKeys").status,
            created(client, "c1"),
        )
        assert statuses == row[1:]


def test_an_owner_assigns_a_role_of_data_by_name(tmp_path: Path) -> None:
    scenario = replace(lab.load_scenario("blocked-port"), tenant=TenantConditions(roles=("Owner",)))
    with emulated(tmp_path / "lab", scenario) as client:
        assert client.blob("GET", LIST).status == 403
        (definition,) = [
            each
            for each in client.arm("GET", "/providers/Microsoft.Authorization/roleDefinitions").json["value"]
            if each["properties"]["roleName"] == "Storage Blob Data Reader"
        ]
        made = {"roleDefinitionId": definition["id"], "principalId": guid(scenario.world.subscription.user)}
        path = f"{STORAGE}/providers/Microsoft.Authorization/roleAssignments/{guid('one')}"
        assert [client.arm("PUT", path, {"properties": made}).status for _ in range(2)] == [201, 409]
        assert client.blob("GET", LIST).status == 200
        listed = client.arm("GET", f"{STORAGE}/providers/Microsoft.Authorization/roleAssignments").json["value"]
        assert len(listed) == 2


OWN_ADDRESS = {"value": "198.51.100.0/24", "action": "Allow"}


def test_the_firewall_of_an_account_admits_the_addresses_and_subnets_of_its_rules(client: Client) -> None:
    for number, (address, subnet) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        rules = {
            "ipRules": [OWN_ADDRESS] * address,
            "virtualNetworkRules": [{"id": SUBNET, "action": "Allow"}] * subnet,
        }
        client.arm("PATCH", STORAGE, {"properties": {"networkAcls": {"defaultAction": "Deny", **rules}}})
        listed = client.blob("GET", LIST)
        assert listed.status == (200 if address else 403)
        assert (b"<Code>AuthorizationFailure</Code>" in listed.body) is not address
        assert created(client, f"c{number}") == 201
        assert errors(client, f"c{number}") == ([] if subnet else ["StorageFailed"])


def test_a_container_that_was_made_takes_captures_and_an_account_may_refuse_keys(client: Client) -> None:
    for made, error in ((False, ["StorageFailed"]), (True, [])):
        if made:
            assert client.blob("PUT", "/fresh?restype=container").status == 201
        created(client, f"c{made}", "fresh")
        assert errors(client, f"c{made}") == error
    client.arm("PATCH", STORAGE, {"properties": {"allowSharedKeyAccess": False}})
    headers = {"x-ms-date": "Sun, 22 Nov 2026 05:00:00 GMT", "Authorization": "SharedKey prodforensics01:x"}
    refused = client.ask("GET", "/captures?restype=container", "prodforensics01.blob.core.lab.invalid", None, headers)
    assert (refused.status, refused.headers["x-ms-error-code"]) == (403, "KeyBasedAuthenticationNotPermitted")
