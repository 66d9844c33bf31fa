"""The preflight reads on the real shell and the lab's az: their queries are run, their answers are az's own shape.

The az runs in the process of the test; as a process of its own it does in `test_in_the_lab`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost.lab import load_scenario, start
from ghost.lab.world import ScaleSet, UserRoute, World
from ghost.net import SecurityRule

from .capture_process import orchestrator
from .test_killed_processes import held

Change = Callable[[World], World]


def as_it_is(world: World) -> World:
    return world


def machine(**fields: Any) -> Change:
    def change(world: World) -> World:
        machines = [replace(vm, **fields) if vm.name == "web-vm-01" else vm for vm in world.machines]
        return replace(world, machines=tuple(machines))

    return change


def without_watchers(world: World) -> World:
    return replace(world, watchers=())


def without_containers(world: World) -> World:
    return replace(world, storage_accounts=tuple(replace(a, containers=()) for a in world.storage_accounts))


def default_route_to(hop: Any, address: str | None = None) -> Change:
    def change(world: World) -> World:
        route = UserRoute("out", "0.0.0.0/0", hop, address)
        tables = [replace(t, routes=(*t.routes, route)) if t.name == "prod-routes" else t for t in world.route_tables]
        return replace(world, route_tables=tuple(tables))

    return change


def outbound(access: Any, *to: str) -> Change:
    def change(world: World) -> World:
        rule = SecurityRule("lock-down", 100, "Outbound", access, destination_prefixes=to or ("*",))
        groups = [replace(g, rules=(*g.rules, rule)) if g.name == "prod-nsg" else g for g in world.security_groups]
        return replace(world, security_groups=tuple(groups))

    return change


def ask(tmp_path: Path, change: Change, target: str = "web-vm-01", *, private: bool = False) -> dict[str, Any]:
    scenario = load_scenario("blocked-port")
    world = change(scenario.world)
    start(replace(scenario, world=world), tmp_path / "lab", speed=60.0)
    parameters = {
        "resource_group": "prod-rg",
        "storage_account": world.storage_accounts[0].name,
        "duration_seconds": 5,
    }
    desk = orchestrator(tmp_path, "s1", private=private)
    return desk.orchestrate({"intent": "capture_traffic", "target": target, "parameters": parameters})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (machine(power="deallocated"), "az vm start -g prod-rg -n web-vm-01"),
        (machine(extensions=()), "agent extension is not installed on web-vm-01"),
        (without_watchers, "no network watcher is enabled in region eastus"),
        (default_route_to("None"), "0.0.0.0/0 -> None (out), User route drops"),
        (outbound("Deny"), "rule lock-down (priority 100, Deny) of the group prod-nsg at the subnet"),
        (outbound("Deny", "Internet"), "lock-down"),
    ],
)
def test_a_world_in_which_a_capture_cannot_work_is_recognised(tmp_path: Path, change: Change, says: str) -> None:
    response = ask(tmp_path, change)
    assert (response["status"], response["cleanup_status"], response["user_denied"]) == (
        "task_failed",
        "skipped",
        False,
    )
    assert says in response["error_detail"]


@pytest.mark.parametrize(
    ("change", "unsure"),
    [
        (as_it_is, {}),
        (machine(extensions=("NetworkWatcherAgentWindows",), os="Windows"), {}),
        (default_route_to("Internet"), {}),
        (default_route_to("VirtualAppliance", "10.20.3.10"), {"routes": "via 10.20.3.10"}),
        (outbound("Deny", "20.0.0.0/8"), {"gates": "it depends on rule lock-down"}),
        (outbound("Allow", "Storage"), {}),
    ],
)
def test_a_world_in_which_a_capture_may_work_is_captured_in(
    tmp_path: Path, change: Change, unsure: dict[str, str]
) -> None:
    response = ask(tmp_path, change)
    assert (response["status"], response["state"]) == ("task_pending", "PROVISIONING"), response
    assert len(response["preflight"]) == 8
    not_passed = {row["check"]: row["detail"] for row in response["preflight"] if row["passed"] is not True}
    assert not_passed.keys() == unsure.keys()
    for check, why in unsure.items():
        assert why in not_passed[check]


def test_a_full_id_is_addressed_in_its_own_subscription(tmp_path: Path) -> None:
    world = load_scenario("blocked-port").world
    vm = world.resource_id("Microsoft.Compute/virtualMachines", "prod-rg", "web-vm-01")
    assert ask(tmp_path, as_it_is, vm)["state"] == "PROVISIONING"
    other = ask(tmp_path, as_it_is, vm.replace(world.subscription.id, "00000000-0000-0000-0000-000000000000"))
    assert other["status"] == "task_failed"


def with_a_scale_set(world: World) -> World:
    return replace(world, scale_sets=(ScaleSet("jobs-set", "prod-rg", ("jobs-vm-01",)),))


def test_an_instance_of_a_scale_set_is_captured_from_request_to_cleanup(tmp_path: Path) -> None:
    world = with_a_scale_set(load_scenario("blocked-port").world)
    scale_set = world.resource_id("Microsoft.Compute/virtualMachineScaleSets", "prod-rg", "jobs-set")
    started = ask(tmp_path, with_a_scale_set, f"{scale_set}/virtualMachines/0")
    assert (started["status"], started["target_type"]) == ("task_pending", "vmss"), started
    passed = {row["check"]: row["passed"] for row in started["preflight"]}
    assert passed == {
        "machine": True,
        "captures": True,
        "identity": True,
        "account": True,
        "role": True,
        "storage": True,
        "routes": None,
        "gates": None,
    }
    desk = orchestrator(tmp_path, "s1")
    for intent, status, state in [("check", "task_completed", "COMPLETED"), ("cleanup", "task_completed", "DONE")]:
        answer = desk.orchestrate({"intent": f"{intent}_task", "task_id": started["task_id"]})
        assert (answer["status"], answer["state"]) == (status, state), answer
    assert held(tmp_path) == set()


def test_a_scale_set_as_a_whole_is_answered_with_how_to_name_one_instance(tmp_path: Path) -> None:
    answer = ask(tmp_path, with_a_scale_set, "jobs-set")
    assert answer["status"] == "task_failed"
    assert "az vmss list-instances -g prod-rg -n jobs-set" in answer["error_detail"]


def test_in_private_mode_the_checks_are_made_with_what_stands_for_hidden_ids(tmp_path: Path) -> None:
    started = ask(tmp_path, as_it_is, private=True)
    assert started["state"] == "PROVISIONING", started
    assert {row["passed"] for row in started["preflight"]} == {True}
    assert "/subscriptions/" not in (tmp_path / "audit" / "orchestrator_tasks_s1.jsonl").read_text()
    desk = orchestrator(tmp_path, "s1", private=True)
    for intent, state in (("check_task", "COMPLETED"), ("cleanup_task", "DONE")):
        assert desk.orchestrate({"intent": intent, "task_id": started["task_id"]})["state"] == state
    assert held(tmp_path) == set()
