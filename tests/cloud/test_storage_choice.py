"""Which storage account takes the capture: the one that is named, or the first of the region that can."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jmespath
import pytest

from ghost.cloud.storage_choice import MAX_WITHOUT_CONTAINER

from .conftest import MakeDesk
from .scripted import ACCOUNT, SUBNET, SUBSCRIPTION, failed, ran, refused

NO_CONTAINER = ran({"exists": False})


def account(name: str, **fields: Any) -> dict[str, Any]:
    """A row of `az storage account list`."""
    rules = {"defaultAction": fields.pop("firewall", "Allow")}
    return {
        "name": name,
        "resourceGroup": "other-rg",
        "location": "eastus",
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
        "isHnsEnabled": None,
        "publicNetworkAccess": "Enabled",
        "networkRuleSet": rules,
        **fields,
    }


def tenant(*rows: dict[str, Any]) -> list[tuple[str, Any]]:
    """An Azure with these accounts, which runs the query of the list as az does."""

    def listed(command: str) -> dict[str, Any]:
        words = shlex.split(command)
        return ran(jmespath.search(words[words.index("--query") + 1], list(rows)))

    def shown(command: str) -> dict[str, Any]:
        name = shlex.split(command)[5]
        where = {"id": f"{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/{name}"}
        return ran({**ACCOUNT, **where, "endpoint": f"https://{name}.blob.core.windows.net/"})

    return [("storage account list", listed), ("storage account show", shown)]


def tried(d: Any) -> list[str]:
    return [shlex.split(command)[5] for command in d.shell.matching("storage account show")]


def test_unfit_accounts_are_left_out_and_the_likeliest_is_tried_first(desk: MakeDesk) -> None:
    rows = [
        account("aclosed", firewall="Deny"),
        account("bplain"),
        account("ccaptures"),
        account("down", resourceGroup="prod-rg"),
        account("dpremium", sku={"name": "Premium_LRS"}),
        account("elake", isHnsEnabled=True),
        account("ffiles", kind="FileStorage"),
        account("gprivate", publicNetworkAccess="Disabled"),
        account("hwest", location="westus"),
    ]
    d = desk(*tenant(*rows), ("container exists", failed("ERROR: The request may be blocked by network rules", 1)))
    response = d.capture(storage_account="*")
    assert tried(d) == ["down", "ccaptures", "bplain", "aclosed"]
    assert response["status"] == "task_failed"
    assert response["error_detail"].startswith(
        "No storage account of eastus can take the capture: (1) down: Storage down/"
    )
    assert response["error_detail"].endswith("name another: --storage-account")
    assert not d.shell.matching("create")


def test_of_three_hundred_accounts_the_list_is_short_and_the_first_that_can_is_used(desk: MakeDesk) -> None:
    rows = [account(f"account{n:03d}withalongname0") for n in range(301)]
    answers = [failed("ERROR: You do not have the required permissions", 1)] * 7 + [ran({"exists": True})]
    d = desk(*tenant(*rows), ("container exists", answers))
    response = d.capture(storage_account="*")
    (create,) = d.shell.matching("packet-capture create")
    assert "https://account007withalongname0.blob.core.windows.net/captures/" in create
    assert response["state"] == "PROVISIONING"
    (command,) = d.shell.matching("storage account list")
    words = shlex.split(command)
    assert len(json.dumps(jmespath.search(words[words.index("--query") + 1], rows))) < 16_000
    assert {row["passed"] for row in response["preflight"]} == {True}


def test_of_closed_accounts_the_one_that_admits_the_machines_subnet_and_this_machine_is_taken(desk: MakeDesk) -> None:
    """Each other one is told with its own reason and remedy."""
    subnets = {"acaptures": [f"{SUBNET}-2"], "bcaptures": [SUBNET.upper()], "ccaptures": []}
    table = tenant(*(account(name, firewall="Deny") for name in subnets))
    shown = table[1][1]

    def closed(command: str) -> dict[str, Any]:
        value = json.loads(shown(command)["output"])
        return ran({**value, "defaultAction": "Deny", "subnets": subnets[shlex.split(command)[5]]})

    response = desk(table[0], ("storage account show", closed)).capture(storage_account="*")
    assert {row["check"]: row["passed"] for row in response["preflight"]}["subnet"] is True
    blocked = failed("ERROR: The request may be blocked by network rules of storage account.", 1)
    d = desk(table[0], ("storage account show", closed), ("container exists", blocked))
    response = d.capture(storage_account="*")
    for number, remedy in enumerate((f"--subnet {SUBNET}", "--ip-address YOUR-PUBLIC-ADDRESS", f"--subnet {SUBNET}")):
        name = list(subnets)[number]
        reason = response["error_detail"].partition(f"({number + 1}) {name}: ")[2].partition("; (")[0]
        assert f"az storage account network-rule add --account-name {name} {remedy}" in reason
    assert not d.shell.matching("create")


@pytest.mark.parametrize(("count", "looked_at"), [(1, 1), (3, 3), (20, MAX_WITHOUT_CONTAINER)])
def test_a_missing_container_is_created_in_the_first_account_once_no_other_has_it(
    desk: MakeDesk, count: int, looked_at: int
) -> None:
    d = desk(*tenant(*(account(f"logs{n:02d}") for n in range(count))), ("container exists", NO_CONTAINER))
    response = d.capture(storage_account="*")
    (create,) = d.shell.matching("container create")
    assert create == ("az storage container create --account-name logs00 --name captures --auth-mode login -o none")
    assert len(set(tried(d))) == looked_at
    (capture,) = d.shell.matching("packet-capture create")
    assert "https://logs00.blob.core.windows.net/captures/" in capture
    assert "storageAccounts/logs00 " in capture
    assert response["state"] == "PROVISIONING"
    assert [row["check"] for row in response["preflight"]].count("storage") == 1


def test_a_container_that_is_denied_or_fails_ends_the_task_before_anything_exists(desk: MakeDesk) -> None:
    denied = desk(("container exists", NO_CONTAINER), ("container create", refused("not in that account")))
    response = denied.capture()
    assert (response["status"], response["user_denied"]) == ("task_cancelled", True)
    assert response["error_detail"] == "The container of the capture was not approved: not in that account"
    assert not denied.shell.matching("packet-capture create")
    fails = desk(("container exists", NO_CONTAINER), ("container create", failed("ERROR: AuthorizationFailure", 1)))
    response = fails.capture()
    assert response["status"] == "task_failed"
    assert "Create it yourself" in response["error_detail"]
    assert not fails.shell.matching("packet-capture create")


def test_without_an_account_the_person_is_told_to_name_one(desk: MakeDesk) -> None:
    for answer, why in (
        (ran({"own": None, "open": "", "closed": ""}), "has none in eastus"),
        (failed("ERROR: (AuthorizationFailed) no rights", 1), "AuthorizationFailed"),
        ({**ran("{}"), "output_metadata": {"truncation_applied": True}}, "truncated"),
    ):
        response = desk(("storage account list", answer)).capture(storage_account="*")
        assert response["status"] == "task_failed"
        assert why in response["error_detail"]
        assert "--storage-account" in response["error_detail"]


def test_an_interrupted_choice_begins_anew(desk: MakeDesk) -> None:
    answers = [failed("ERROR: x", 1), KeyboardInterrupt, ran({"exists": True})]

    def interrupted(_: str) -> dict[str, Any]:
        answer = answers.pop(0)
        if answer is KeyboardInterrupt:
            raise KeyboardInterrupt
        assert isinstance(answer, dict)
        return answer

    d = desk(*tenant(account("logs00"), account("logs01")), ("container exists", interrupted))
    with pytest.raises(KeyboardInterrupt):
        d.capture(storage_account="*")
    d.restarted()
    (task,) = d.ask("list_tasks")["tasks"]
    assert d.ask("check_task", task_id=task["task_id"])["status"] == "task_completed"
    assert "logs00.blob" in d.shell.matching("packet-capture create")[0]


def test_with_the_key_no_role_is_asked_for(desk: MakeDesk) -> None:
    d = desk()
    response = d.capture(storage_auth_mode="key")
    assert response["state"] == "PROVISIONING"
    assert not d.shell.matching("az account show|role assignment")
