"""What a target is: one machine, or one instance of a scale set; anything else is answered."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import MakeDesk
from .preflight_answers import machine
from .scripted import (
    GROUP_ID,
    VM,
    VM_ID,
    failed,
    ran,
)

VMSS_ID = f"{GROUP_ID}/Microsoft.Compute/virtualMachineScaleSets/web-set"


def test_a_short_name_of_another_group_is_found_there_and_not_taken(desk: MakeDesk) -> None:
    elsewhere = ran([{"id": VM_ID, "type": VM, "location": "eastus", "resourceGroup": "test-rg"}])
    d = desk(("az resource list -g", ran([])), ("az resource list -n", elsewhere))
    response = d.capture()
    assert response["status"] == "task_failed"
    assert "It is in test-rg: name that group, or give the full resource id" in response["error_detail"]
    assert len(d.shell.matching("az resource")) == 2


@pytest.mark.parametrize("elsewhere", [ran([]), ran("x"), failed("ERROR: x"), ran([{"type": "Microsoft.Network/x"}])])
def test_a_target_that_is_nowhere_is_not_found(desk: MakeDesk, elsewhere: dict[str, Any]) -> None:
    d = desk(("az resource list -g", ran([])), ("az resource list -n", elsewhere))
    assert "Resource not found: web-vm-01 in resource group prod-rg" in d.capture()["error_detail"]


def test_a_name_of_several_that_could_be_captured_is_ambiguous(desk: MakeDesk) -> None:
    aks = {"id": f"{GROUP_ID}/Microsoft.ContainerService/managedClusters/web", "location": "eastus"}
    rows = [
        {"id": VM_ID, "type": VM, "location": "eastus"},
        {**aks, "type": "Microsoft.ContainerService/managedClusters"},
    ]
    response = desk(("az resource", ran(rows))).capture()
    assert response["status"] == "task_failed"
    assert "names several resources" in response["error_detail"]
    assert VM_ID in response["error_detail"]
    assert "Give the full resource id" in response["error_detail"]


def test_a_scale_set_is_not_one_machine(desk: MakeDesk) -> None:
    rows = [{"id": VMSS_ID, "type": "Microsoft.Compute/virtualMachineScaleSets", "location": "eastus"}]
    response = desk(("az resource", ran(rows))).capture("web-set")
    assert "Name one instance by its full id" in response["error_detail"]
    assert "az vmss list-instances -g prod-rg -n web-set" in response["error_detail"]


INSTANCE = {
    "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
    "id": f"{VMSS_ID}/virtualMachines/3",
    "location": "eastus",
}


def test_an_instance_of_a_scale_set_is_captured_as_az_takes_it(desk: MakeDesk) -> None:
    d = desk(("az resource", ran(INSTANCE)), machine(interfaces=None))
    response = d.capture(f"{VMSS_ID}/virtualMachines/3")
    assert (response["state"], response["target_type"]) == ("PROVISIONING", "vmss")
    subscription = VMSS_ID.split("/")[2]
    (view,) = d.shell.matching("az vmss get-instance-view -g prod-rg -n web-set --instance-id 3 ")
    assert view.endswith(f"--subscription {subscription}")
    (create,) = d.shell.matching(" create ")
    assert f" --target {VMSS_ID} --target-type AzureVMSS --include 3 --storage-account" in create
    assert f"--subscription {subscription}" in create
    assert "--vm" not in create
    unsure = {row["check"] for row in response["preflight"] if row["passed"] is None}
    assert unsure == {"routes", "gates"}
    assert any("Target type: scale set instance." in line for line in d.said)
    done = d.ask("check_task", task_id=response["task_id"])
    assert done["status"] == "task_completed"
    watched = d.shell.matching("packet-capture (show-status|list .*--subscription)")
    assert all(f"--subscription {subscription}" in command for command in watched)


@pytest.mark.parametrize(
    ("view", "remedy"),
    [
        ({"power": ["PowerState/deallocated"]}, "az vmss start -g prod-rg -n web-set --instance-ids 3"),
        ({"extensions": []}, "az vmss extension set -g prod-rg --vmss-name web-set --name NetworkWatcherAgentLinux"),
    ],
)
def test_an_instance_that_cannot_be_captured_on_says_so(desk: MakeDesk, view: dict[str, Any], remedy: str) -> None:
    d = desk(("az resource", ran(INSTANCE)), machine(**view))
    assert remedy in d.capture(f"{VMSS_ID}/virtualMachines/3")["error_detail"]


@pytest.mark.parametrize(
    "answer",
    [
        machine(power=["PowerState/deallocated"]),
        machine(extensions=[]),
        ("packet-capture list", failed("ERROR: (NetworkWatcherNotEnabled) x")),
    ],
)
def test_the_remedy_for_a_target_of_another_subscription_is_for_that_one(desk: MakeDesk, answer: Any) -> None:
    other = VM_ID.replace("3f6c1c7e", "00000000")
    d = desk(("az resource", ran({"id": other, "type": VM, "location": "eastus"})), answer)
    assert d.capture(other)["error_detail"].endswith(f" --subscription {other.split('/')[2]}")


def test_an_instance_whose_id_is_hidden_is_refused(desk: MakeDesk) -> None:
    d = desk(("az resource", ran({**INSTANCE, "id": "[AZURE_RESOURCE_1]"})))
    assert "only its full id identifies it" in d.capture("[AZURE_RESOURCE_1]")["error_detail"]


def test_a_target_of_another_subscription_is_addressed_there_to_the_end(desk: MakeDesk) -> None:
    other = VM_ID.replace("3f6c1c7e", "00000000")
    d = desk(("az resource", ran({"id": other, "type": VM, "location": "eastus"})))
    task_id = d.capture(other)["task_id"]
    d.ask("check_task", task_id=task_id)
    d.ask("cleanup_task", task_id=task_id)
    for pattern in (" create ", "show-status", "packet-capture delete", "storage account show"):
        (command,) = d.shell.matching(pattern)
        assert f"--subscription {other.split('/')[2]}" in command
