"""What is read before a capture is created: each failure is told with its remedy, and nothing is created."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.agent.az_preflight import preflight as mistake_of
from ghost.cloud import preflight
from ghost.cloud.preflight import Check
from ghost.cloud.preflight_results import judge
from ghost.cloud.resource_names import is_placeholder
from ghost.cloud.shell_reply import Reply
from ghost.cloud.task import CaptureTask, State
from ghost.shell import classify

from .conftest import MakeDesk
from .preflight_answers import DENY_ALL, FAILURES, PASSES, UNKNOWNS, account, gates, machine, routes
from .scripted import (
    ACCOUNT_ID,
    DEFAULT_RULES,
    GROUP_ID,
    NIC_ID,
    VM,
    VM_ID,
    created,
    group,
    outbound,
    ran,
    route,
)


@pytest.mark.parametrize(
    ("answer", "check", "wrong", "remedy"), [row[1:] for row in FAILURES], ids=[r[0] for r in FAILURES]
)
def test_a_failed_check_says_what_is_wrong_and_what_to_do_and_creates_nothing(
    desk: MakeDesk, answer: tuple[str, Any], check: Check, wrong: str, remedy: str
) -> None:
    d = desk(answer)
    response = d.capture()
    assert (response["status"], response["state"], response["cleanup_status"]) == ("task_failed", "FAILED", "skipped")
    assert wrong in response["error_detail"]
    assert remedy in response["error_detail"]
    assert response["preflight"][-1]["check"] == check
    assert response["preflight"][-1]["passed"] is not True
    assert not d.shell.matching(" create | delete ")
    assert d.records()[-1]["cleanup_plan"] == []


@pytest.mark.parametrize(("answer", "check", "why"), [row[1:] for row in UNKNOWNS], ids=[row[0] for row in UNKNOWNS])
def test_a_check_that_could_not_be_made_is_said_and_the_capture_goes_on(
    desk: MakeDesk, answer: tuple[str, Any], check: Check, why: str
) -> None:
    d = desk(answer)
    response = d.capture()
    assert (response["status"], response["state"]) == ("task_pending", "PROVISIONING")
    found = {row["check"]: row for row in response["preflight"]}
    assert found[check]["passed"] is None
    assert why in found[check]["detail"]
    assert any(f"Not checked: {check}" in line for line in d.said)
    assert len(d.shell.matching(" create ")) == 1


@pytest.mark.parametrize(("answer", "check"), [row[1:] for row in PASSES], ids=[row[0] for row in PASSES])
def test_a_check_that_passes_says_nothing(desk: MakeDesk, answer: tuple[str, Any], check: Check) -> None:
    d = desk(answer)
    response = d.capture()
    assert {row["check"]: row["passed"] for row in response["preflight"]}[check] is True
    assert "[Cloud Orchestrator] Preflight: 8 of 8 checks passed, none failed" in d.said


def test_behind_a_private_endpoint_the_way_of_others_is_no_failure(desk: MakeDesk) -> None:
    d = desk(account(privateEndpoints=["x"]), gates(group(DENY_ALL)), routes(route("0.0.0.0/0", "None", "User", "x")))
    response = d.capture()
    assert response["status"] == "task_pending"
    unsure = {row["check"] for row in response["preflight"] if row["passed"] is None}
    assert unsure == {"routes", "gates"}


@pytest.mark.parametrize(
    ("region", "passed"), [("eastus", False), ("westus2", None), ("[AZURE_RESOURCE_4]", None), (None, None)]
)
def test_a_rule_for_the_storage_of_one_region_is_judged_by_where_the_account_is(
    desk: MakeDesk, region: str | None, passed: bool | None
) -> None:
    d = desk(account(location=region), gates(group(outbound("no-east", 100, "Deny", "Storage.eastus"))))
    found = {row["check"]: row for row in d.capture()["preflight"]}
    assert found["gates"]["passed"] is passed
    assert "no-east" in found["gates"]["detail"]


def test_a_denial_of_storage_where_the_account_is_fails_although_the_machine_is_elsewhere(desk: MakeDesk) -> None:
    d = desk(account(location="westus2"), gates(group(outbound("no-west", 100, "Deny", "Storage.westus2"))))
    response = d.capture()
    assert response["status"] == "task_failed"
    assert "no-west" in response["error_detail"]


def test_without_an_interface_the_way_is_not_checked(desk: MakeDesk) -> None:
    d = desk(machine(interfaces=[{"id": "nic; rm -rf /"}, {"id": 5}, "x"]))
    response = d.capture()
    assert response["status"] == "task_pending"
    assert not d.shell.matching("az network nic")
    assert {r["detail"] for r in response["preflight"] if r["passed"] is None} == {"the network interface is not known"}


def test_the_primary_interface_is_asked(desk: MakeDesk) -> None:
    d = desk(machine(interfaces=[{"id": f"{NIC_ID}-2", "primary": False}, {"id": NIC_ID, "primary": True}]))
    d.capture()
    assert {c.split(" --ids ")[1].split()[0] for c in d.shell.matching("az network nic")} == {NIC_ID}


def test_hidden_ids_stand_in_commands_as_they_were_given(desk: MakeDesk) -> None:
    """Under anonymisation the shell gives placeholders and takes them back."""
    found = [{"id": "[AZURE_RESOURCE_1]", "type": VM, "location": "eastus"}]
    d = desk(
        ("az resource", ran(found)),
        machine(interfaces=[{"id": "[AZURE_RESOURCE_2]", "primary": True}]),
        account(id="[AZURE_RESOURCE_3]"),
    )
    assert d.capture()["state"] == "PROVISIONING"
    words = [word for command in d.shell.commands for word in shlex.split(command) if is_placeholder(word)]
    assert words == [f"[AZURE_RESOURCE_{n}]" for n in (1, 3, 2, 2, 3)]


def test_a_creation_names_the_account_as_it_is_known_by_then(desk: MakeDesk) -> None:
    elsewhere = ACCOUNT_ID.replace("prod-rg", "storage-rg")
    d = desk(account(id=elsewhere, endpoint="https://forensics.z6.blob.storage.azure.net/"))
    d.capture()
    (create,) = d.shell.matching(" create ")
    assert (
        f"--storage-account {elsewhere} --storage-path https://forensics.z6.blob.storage.azure.net/captures/" in create
    )


@pytest.mark.parametrize(
    "endpoint", ["http://x/; rm", "https://elsewhere.example.com/", "https://forensics2.blob.core.windows.net/"]
)
def test_a_capture_is_sent_to_no_endpoint_of_another_account(endpoint: str, desk: MakeDesk) -> None:
    d = desk(account(id="no id", endpoint=endpoint))
    d.capture()
    (create,) = d.shell.matching(" create ")
    assert "--storage-account forensics --storage-path https://forensics.blob.core.windows.net/captures/" in create


# --- the table itself --------------------------------------------------------------------------------------------

VALUES = {
    "target_id": VM_ID,
    "network_interface": NIC_ID,
    "resource_group": "prod-rg",
    "scale_set": "web-set",
    "instance": "3",
    "location": "eastus",
    "principal": "ana@contoso.com",
    "storage_account": "forensics",
    "storage_account_id": ACCOUNT_ID,
    "storage_container": "captures",
    "capture_name": "ghost_web-vm-01_20250115T143200_k3x9",
    "storage_auth_mode": "login",
    "subscription": "3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211",
}


@pytest.mark.parametrize("row", preflight.checks(), ids=lambda row: f"{row.check} {'/'.join(sorted(row.target_types))}")
def test_every_check_only_reads_and_asks_nobody(row: preflight.CheckCommand) -> None:
    words = row.filled(VALUES)
    assert isinstance(words, list)
    assert classify(shlex.join(words))[0] == "SAFE"


def test_every_command_of_a_life_has_only_options_that_the_real_cli_knows(desk: MakeDesk) -> None:
    d = desk(("packet-capture create", [created, ran("{}")]))
    scale_set = f"{GROUP_ID}/Microsoft.Compute/virtualMachineScaleSets/web"
    for target in ("web-vm-01", VM_ID, f"{scale_set}/virtualMachines/0"):
        if target.endswith("/0"):
            kind = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
            d.shell.table.insert(0, ("az resource", [ran({"type": kind, "id": target, "location": "eastus"})]))
        task_id = d.capture(target, size_limit_bytes=1_000_000)["task_id"]
        d.ask("check_task", task_id=task_id)
        assert d.ask("cleanup_task", task_id=task_id)["state"] == "DONE"
    commands = {command for command in d.shell.commands if command.startswith("az ")}
    assert len(commands) > 30
    assert {command: mistake for command in commands if (mistake := mistake_of(command))} == {}


def test_each_kind_of_target_has_every_check_once() -> None:
    for kind in ("vm", "vmss"):
        assert sorted(row.check for row in preflight.of_target(kind)) == sorted(Check)
    assert [check for check in Check if preflight.required(check)] == [Check.STORAGE]


def test_the_rest_begins_behind_the_check_that_was_made() -> None:
    names = [row.check for row in preflight.after(None, "vm")]
    for number, check in enumerate(names):
        assert [row.check for row in preflight.after(check, "vm")] == names[number + 1 :]


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=12)
    | st.sampled_from(["0.0.0.0/0", "None", "Deny", "x/y"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "power",
                        "extensions",
                        "interfaces",
                        "id",
                        "name",
                        "type",
                        "location",
                        "addressPrefix",
                        "nextHopType",
                        "exists",
                    ),
                    *(
                        "effectiveSecurityRules",
                        "association",
                        "priority",
                        "access",
                        "direction",
                        "destinationPortRange",
                    ),
                    *("defaultAction", "privateEndpoints", "networkSecurityGroup", "endpoint", "statuses", "agent"),
                ]
            ),
            inner,
            max_size=6,
        )
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.sampled_from(list(Check)), anything)
def test_no_answer_breaks_a_check_or_gets_an_unusable_id_into_the_task(check: Check, answer: Any) -> None:
    task = CaptureTask(task_id="ghost_a", session_id="s1", state=State.DETECTING, target="web", target_type="vm")
    found = judge(check, task, Reply.of(ran(json.dumps(answer))))
    assert found.check is check
    assert found.detail.isprintable()
    CaptureTask.model_validate(
        {**task.model_dump(), "storage_account_id": found.learned.storage_account_id}
        | {"network_interface": found.learned.network_interface, "storage_endpoint": found.learned.storage_endpoint}
        | {"storage_location": found.learned.storage_location}
    )


def test_the_default_rules_let_storage_be_reached(desk: MakeDesk) -> None:
    alone = group()
    assert alone["effectiveSecurityRules"] == DEFAULT_RULES
    found = {row["check"]: row for row in desk(gates(alone)).capture()["preflight"]}
    assert found["gates"]["passed"] is True
    assert "AllowInternetOutBound" in found["gates"]["detail"]
