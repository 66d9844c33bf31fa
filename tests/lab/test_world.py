"""The world round-trips, refuses contradictions, and what applies to an interface is what Azure would apply."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost import lab
from ghost.errors import LabError
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.lab.world_validation import world_from_dict
from ghost.net import Flow, walk
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


# --- edits ---

CACHE = "networkSecurityGroups/cache-nsg"
CLOSED = f"{CACHE}/securityRules/close-legacy-ports"
TO_CACHE = Flow("Tcp", "10.20.1.4", None, "10.20.2.5", 6379)


def test_a_network_follows_its_edits() -> None:
    faulty = walk(PORT.network, TO_CACHE)
    assert (faulty.outcome, faulty.blocker and faulty.blocker.rule) == ("blocked", "close-legacy-ports")
    assert walk(edited(PORT, [Edit(delete=CLOSED)]).network, TO_CACHE).outcome == "passes"
    allowed = Edit(patch=CLOSED, properties={"access": "Allow"})
    assert walk(edited(PORT, [allowed]).network, TO_CACHE).outcome == "passes"
    stopped = walk(edited(PORT, [allowed, Edit(machine="redis-cache-01", set={"power": "stopped"})]).network, TO_CACHE)
    assert stopped.blocker is not None
    assert stopped.blocker.fault == "machine_stopped"


def test_resources_in_azures_own_words_refer_to_each_other_by_type_and_name() -> None:
    place = "virtualNetworks/prod-vnet/subnets/prod-subnet"
    edits = [
        Edit(put="natGateways/out", properties={"publicIpAddresses": [{"id": "publicIPAddresses/out-ip"}]}),
        Edit(put="publicIPAddresses/out-ip", properties={"ipAddress": "20.1.2.3"}, more={"sku": {"name": "Standard"}}),
        Edit(patch=place, properties={"natGateway": {"id": "natGateways/out"}}),
    ]
    world = edited(PORT, edits)

    (gateway,) = world.documents.of_type("Microsoft.Network/natGateways")
    assert gateway["properties"]["subnets"][0]["id"].endswith("/virtualNetworks/prod-vnet/subnets/prod-subnet")
    assert world.documents.existing("publicIPAddresses/out-ip")["properties"]["natGateway"] == {"id": gateway["id"]}
    reasons = [hop.reason for hop in walk(world.network, Flow("Tcp", "10.20.1.4", None, "20.42.65.92", 443)).hops]
    assert any("20.1.2.3" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("edit", "error"),
    [
        (Edit(delete=f"{CACHE}/securityRules/nope"), r"edits\[0\]: there is no 'network.*nope'"),
        (Edit(put="virtualNetworks/nope/subnets/x"), r"edits\[0\]: there is no .*virtualNetworks/nope"),
        (Edit(put="wrong/x"), r"edits\[0\]: 'wrong/x' names no resource"),
        (Edit(), r"edits\[0\]: give one of put, patch"),
        (Edit(machine="nope"), r"edits\[0\]: the world has no machine 'nope'; it has web-vm-01"),
        (Edit(machine="web-vm-01", set={"powr": 1}), r"edits\[0\].set: unknown field 'powr'"),
        (Edit(patch=CLOSED, properties={"priority": "x"}), "is not valid in Azure"),
    ],
)
def test_an_edit_of_what_is_not_there_names_its_place(edit: Edit, error: str) -> None:
    with pytest.raises(LabError, match=error):
        assert edited(PORT, [edit]).network


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
