"""A hostile tenant, by the lab's own az: slow operations, throttling, refusals, pages, a login that expires."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.lab.arm.api_messages import Request
from ghost.lab.arm.resource_manager import answer
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.lab.tenant_conditions import TenantConditions
from tests.lab.in_process import run_main

SUBSCRIPTION = "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211"
ROUTES = "az network nic show-effective-route-table -g prod-rg -n web-vm-01-nic"
RUN = "az vm run-command invoke -g prod-rg -n web-vm-01 --command-id RunShellScript --scripts hostname"
CAPTURE = "az network watcher packet-capture create -g prod-rg -n x --vm web-vm-01 --time-limit 3 --file-path /x.cap"
NO_TABLES = TenantConditions(forbidden_reads=("Microsoft.Network/routeTables/read",))
CASES: list[tuple[TenantConditions, str, int, str]] = [  # conditions, command, exit status, what is printed
    (TenantConditions(page_size=1), "az vm list --query length(@)", 0, "3"),
    (TenantConditions(throttle=2), "az vm list -d --query length(@)", 0, "3"),
    (TenantConditions(throttle=1), "az vm list", 1, "SubscriptionRequestsThrottled"),
    (NO_TABLES, "az network route-table list -g prod-rg",
     1, "(AuthorizationFailed)"),
    (NO_TABLES, "az vm list --query length(@)", 0, "3"),
    (TenantConditions(login_expires_after=1), "az vm list -d", 1, "Interactive authentication is needed."),
    (TenantConditions(locked=("/resourceGroups/prod-rg",)), "az network nsg delete -g prod-rg -n prod-nsg",
     1, "(ScopeLocked)"),
    (TenantConditions(captures_per_region=0), CAPTURE, 1, "(PacketCaptureCountLimitReached)"),
    (TenantConditions(lost_answers=1), CAPTURE, 1, "(PacketCaptureAlreadyExists)"),
    (TenantConditions(in_progress_seconds=1), ROUTES, 0, "VnetLocal"),
    (TenantConditions(in_progress_seconds=1), RUN, 0, "web-vm-01"),
    (TenantConditions(in_progress_seconds=1), CAPTURE, 0, "Succeeded"),
]  # fmt: skip


def _lab(path: Path, tenant: TenantConditions) -> LabDirectory:
    scenario = replace(lab.load_scenario("blocked-port"), tenant=tenant)
    return LabDirectory.create(path, scenario, LabClock(time.time(), 20.0))


@pytest.mark.parametrize(("tenant", "command", "status", "printed"), CASES)
def test_the_labs_az_in_a_hostile_tenant(
    tmp_path: Path, tenant: TenantConditions, command: str, status: int, printed: str
) -> None:
    here = _lab(tmp_path / "lab", tenant)
    done = run_main("ghost.lab.programs.az", shlex.split(command)[1:], {"GHOST_LAB_DIR": str(here.path)})
    said = (done.stdout + done.stderr).decode()
    assert (done.returncode, printed in said) == (status, True), said


def test_a_program_that_may_write_nothing_is_throttled_and_logged_out_by_the_clock(tmp_path: Path) -> None:
    """As in the sandbox of safe commands."""
    tenant = TenantConditions(throttle=2, login_expires_after=1000)
    here = _lab(tmp_path / "lab", tenant)
    (here.path / "state.lock").unlink(missing_ok=True)
    (here.path / "state.lock").mkdir()
    environment = {"GHOST_LAB_DIR": str(here.path)}
    assert run_main("ghost.lab.programs.az", ["vm", "list", "-d"], environment).returncode == 0

    later = replace(here, clock=LabClock(time.time() - 300, 20.0))
    assert answer(later, Request("GET", f"{SUBSCRIPTION}?api-version=2022-01-01")).status == 401


def test_a_fleet_is_listed_and_changed_like_other_machines(tmp_path: Path) -> None:
    scenario = lab.load_scenario("blocked-port")
    fleet = {"machines": 200, "groups": 60, "network": "prod-vnet", "subnet": "prod-subnet"}
    world = edited(scenario.world, [Edit(world={"fleet": [fleet]})])
    here = LabDirectory.create(tmp_path / "lab", replace(scenario, world=world), LabClock(time.time(), 20.0))

    def az(command: str) -> str:
        done = run_main("ghost.lab.programs.az", shlex.split(command), {"GHOST_LAB_DIR": str(here.path)})
        return (done.stdout + done.stderr).decode().strip()

    assert az("vm list --query length(@)") == "203"
    assert az("group list --query length(@)") == "62"
    shown = az("network nic show -g fleet-rg-20 -n fleet-200-nic --query ipConfigurations[0].privateIPAddress")
    assert shown == '"10.20.1.209"'
    with here.changing() as state:
        state["edits"] = [{"patch": "networkInterfaces/fleet-200-nic", "properties": {"enableIPForwarding": True}}]
    assert az("network nic show -g fleet-rg-20 -n fleet-200-nic --query enableIPForwarding") == "true"


def test_an_operation_is_in_progress_for_as_long_as_the_scenario_says(tmp_path: Path) -> None:
    here = _lab(tmp_path / "lab", TenantConditions(in_progress_seconds=2))
    nic = "/resourceGroups/prod-rg/providers/Microsoft.Network/networkInterfaces/web-vm-01-nic"
    version = "?api-version=2024-05-01"

    def ask(method: str, target: str) -> Any:
        return answer(here, Request(method, target.removeprefix("https://management.azure.com"), b"{}"))

    own = f"/subscriptions/{here.world.subscription.id}"
    first = ask("POST", f"{own}{nic}/effectiveRouteTable{version}")
    second = ask("GET", first.headers["Location"])
    here.clock.sleep(2)
    third = ask("GET", first.headers["Location"])
    assert [(each.status, each.body[:9]) for each in (first, second, third)] == [
        (202, b"null"), (202, b"null"), (200, b'{"value":')]  # fmt: skip
    assert "Location" in third.headers
    assert "Azure-AsyncOperation" not in first.headers

    vm = "/resourceGroups/prod-rg/providers/Microsoft.Compute/virtualMachines/web-vm-01"
    started = ask("POST", f"{own}{vm}/restart{version}")
    states = [ask("GET", started.headers["Azure-AsyncOperation"]).json()]
    here.clock.sleep(2)
    states.append(ask("GET", started.headers["Azure-AsyncOperation"]).json())
    assert [state["status"] for state in states] == ["InProgress", "Succeeded"]
    assert "endTime" in states[1]
    assert "endTime" not in states[0]
