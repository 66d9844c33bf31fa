"""The world round-trips, refuses contradictions, and what applies to an interface is what Azure would apply."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost import lab
from ghost.errors import LabError
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.effective_configuration import effective_routes, gates, reach, service_tags
from ghost.lab.world import Peering, UserRoute
from ghost.lab.world_validation import world_from_dict
from ghost.net import select_route
from tests.exhaustive import examples

WIRE = lab.load_scenario("wire-loss").world
PORT = lab.load_scenario("blocked-port").world


def test_names_are_looked_up_in_any_case_and_an_unknown_one_lists_the_known() -> None:
    assert WIRE.machine("APP-VM-01").name == "app-vm-01"
    with pytest.raises(LabError, match=r"no machine 'x'; it has app-vm-01, batch-vm-01, db-vm-01"):
        WIRE.machine("x")


def test_a_resource_id_has_a_type_and_a_name_for_each_level() -> None:
    found = WIRE.resource_id("Microsoft.Network/virtualNetworks/subnets", "app-rg", "app-vnet", "app-subnet")

    assert found == (
        "/subscriptions/b1d0a4f2-0c6e-4b57-a3c8-2f9e6d7c1b05/resourceGroups/app-rg/providers/Microsoft.Network/"
        "virtualNetworks/app-vnet/subnets/app-subnet"
    )


junk = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([]) | st.just({}) | st.just([1])


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    if not isinstance(value, (dict, list)) or not value or draw(st.integers(0, 5)) == 0:
        return draw(junk)
    if isinstance(value, list):
        index = draw(st.integers(0, len(value) - 1))
        return [draw(damaged(item)) if i == index else item for i, item in enumerate(value)]
    key = draw(st.sampled_from(sorted(value)))
    return {**value, key: draw(damaged(value[key]))}


@settings(max_examples=examples(400))
@given(damaged(PORT.to_dict()))
def test_a_damaged_world_is_read_or_refused_with_a_lab_error(value: Any) -> None:
    with contextlib.suppress(LabError):
        world = world_from_dict(value)
        assert world_from_dict(world.to_dict()) == world


# --- what applies to an interface ---


def test_a_peered_network_is_reached_by_a_peering_route_and_belongs_to_the_tag() -> None:
    nic = WIRE.interface_of("app-vm-01")

    chosen = select_route(effective_routes(WIRE, nic), "10.40.1.10")

    assert chosen is not None
    assert chosen.next_hop_type == "VNetPeering"
    assert service_tags(WIRE, nic).virtual_network == (
        "10.30.0.0/16",
        "10.40.0.0/16",
        "172.16.50.0/24",
        "168.63.129.16/32",
    )


@pytest.mark.parametrize("change", [{"state": "Disconnected"}, {"allow_access": False}])
def test_a_peering_that_does_not_work_carries_nothing(change: dict[str, Any]) -> None:
    peering: Peering = replace(WIRE.networks[0].peerings[0], **change)
    world = replace(WIRE, networks=(replace(WIRE.networks[0], peerings=(peering,)), WIRE.networks[1]))

    found = reach(world, "app-vm-01", "db-vm-01", "Tcp", 5432)

    assert found.source_route is not None
    assert found.source_route.next_hop_type == "None", "10.0.0.0/8 is dropped where no peering leads there"
    assert not found.leaves
    assert found.answers_return


def test_a_users_route_makes_the_default_route_it_replaces_invalid() -> None:
    table = WIRE.route_tables[0]
    own = UserRoute("all-to-appliance", "10.40.0.0/16", "VirtualAppliance", "10.30.2.9")
    world = replace(WIRE, route_tables=(replace(table, routes=(*table.routes, own)),))

    routes = effective_routes(world, world.interface_of("app-vm-01"))

    assert [(r.next_hop_type, r.state) for r in routes if r.prefix == "10.40.0.0/16"] == [
        ("VNetPeering", "Invalid"),
        ("VirtualAppliance", "Active"),
    ]
    assert not reach(world, "app-vm-01", "db-vm-01", "Tcp", 5432).leaves


def test_the_gates_of_an_interface_are_its_own_group_and_that_of_its_subnet() -> None:
    assert [(g.association, g.name.rpartition("/")[2]) for g in gates(PORT, PORT.interface_of("web-vm-01"))] == [
        ("subnet", "prod-nsg"),
        ("nic", "web-nic-nsg"),
    ]
    assert gates(WIRE, WIRE.interface_of("batch-vm-01")) == ()


def test_only_the_port_concerned_is_blocked() -> None:
    assert not reach(PORT, "web-vm-01", "redis-cache-01", "Tcp", 6379).arrives
    assert reach(PORT, "web-vm-01", "redis-cache-01", "Tcp", 22).arrives
    assert reach(PORT, "jobs-vm-01", "redis-cache-01", "Tcp", 6379).arrives
    assert reach(PORT, "web-vm-01", "redis-cache-01", "Icmp", None).arrives


# --- the lab on disk ---


def test_time_in_the_lab_passes_faster_by_its_speed() -> None:
    clock = LabClock(started=time.time() - 10.0, speed=30.0)

    assert clock.monotonic() == pytest.approx(300.0, abs=30.0)
    assert clock.now() - clock.now() < timedelta()
    before = time.perf_counter()
    clock.sleep(3.0)
    assert 0.09 < time.perf_counter() - before < 2.0


def test_a_lab_directory_opens_as_it_was_created(tmp_path: Path) -> None:
    scenario = lab.load_scenario("wire-loss")
    created = LabDirectory.create(tmp_path, scenario, LabClock(1000.0, 20.0))

    assert LabDirectory.open(tmp_path) == created
    assert LabDirectory.from_environment({"GHOST_LAB_DIR": str(tmp_path)}) == created
    assert not {"truth", "expected"} & json.loads((tmp_path / "world.json").read_text()).keys(), (
        "the answer is not lying about"
    )


def test_outside_a_lab_nothing_opens(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="GHOST_LAB_DIR is not set"):
        LabDirectory.from_environment({})
    with pytest.raises(LabError, match="there is no lab in"):
        LabDirectory.open(tmp_path)


def test_a_change_that_fails_halfway_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    directory = LabDirectory.create(tmp_path, lab.load_scenario("wire-loss"), LabClock(1000.0, 20.0))

    def change() -> None:
        with directory.changing() as state:
            state["captures"] = ["x"]
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        change()
    assert directory.state() == {}


def _count_up(path: Path) -> None:
    directory = LabDirectory.open(path)
    for _ in range(20):
        with directory.changing() as state:
            state["count"] = state.get("count", 0) + 1


def test_changes_by_several_processes_are_none_of_them_lost(tmp_path: Path) -> None:
    directory = LabDirectory.create(tmp_path, lab.load_scenario("wire-loss"), LabClock(1000.0, 20.0))
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count_up, args=(tmp_path,)) for _ in range(3)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)

    assert directory.state() == {"count": 60}
