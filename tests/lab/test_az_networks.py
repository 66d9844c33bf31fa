"""What is read with the lab's az walks like the lab's own network, and a change by az is walked anew."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.lab.scenario import world_from_source
from ghost.lab.world import World
from ghost.net import (
    Answer,
    Flow,
    Guest,
    ListedResource,
    Missing,
    Network,
    Read,
    Walk,
    absorb,
    collect,
    missing_of,
    read_of,
    walk,
)
from tests.lab.in_process import run_main
from tests.lab.test_conformance import hub_scenario

FLOWS = {
    "hub": """front-01 orders 8443, front-01 sql-vm 1433, orders sql-vm 1433, batch-01 search 9200, jump sql-vm 22,
        orders retailassets.blob.core.windows.net 443, orders retail-sql.database.windows.net 1433,
        orders billing.retail.internal 8443, orders 172.16.4.4 443, orders 20.42.65.92 443, dns orders 22,
        orders retail-cache.redis.cache.windows.net 6380, front-01 orders 23""",
    "two-tier": """web-01 app-01 8080, web-01 db-01 5432, app-01 db-01 5432, app-01 10.50.3.100 5432,
        app-02 cache-01 6379, ops-01 db-02 22, ops-01 app-01 22, app-01 192.168.70.1 443, web-01 20.42.65.92 443,
        web-01 20.42.65.92 25,
        payments app-01 443, db-01 web-01 443""",
}
WORLDS: dict[str, Callable[[], World]] = {
    "hub": lambda: hub_scenario().world,
    "two-tier": lambda: world_from_source({"base": "two-tier"}, ""),
}
UNTOLD = "hub-firewall"
"""Azure tells no effective routes of a firewall: what leaves one for the office or the internet stays unknown."""
RULE = "network nsg rule update -g data-rg --nsg-name databases-nsg -n allow-services --access"
ROUTE, TO_NOWHERE = "network route-table route", "--address-prefix 10.2.1.4/32 --next-hop-type None"
FAULTS = [
    (f"{RULE} Deny", f"{RULE} Allow"),
    (
        f"{ROUTE} create -g hub-rg --route-table-name spoke-routes -n hijack {TO_NOWHERE}",
        f"{ROUTE} delete -g hub-rg --route-table-name spoke-routes -n hijack",
    ),
    ("vm deallocate -g data-rg -n sql-vm", "vm start -g data-rg -n sql-vm"),
]
"""Each with what mends it."""


def _lab(directory: Path, world: World) -> LabDirectory:
    scenario = replace(lab.load_scenario("blocked-port"), world=world)
    return LabDirectory.create(directory, scenario, LabClock(1_700_000_000.0, 1e-12))


def _az(home: LabDirectory, *words: str) -> Answer:
    done = run_main("ghost.lab.programs.az", words, {"GHOST_LAB_DIR": str(home.path)})
    return Answer(done.stdout.decode(), shlex.join(words), done.stderr.decode() if done.returncode else None)


def _flows(world: World, text: str) -> Iterator[Flow]:
    addresses = {vm.name: world.interface(vm.interface).address for vm in world.machines}
    for row in text.split(","):
        source, destination, port = row.split()
        yield Flow("Tcp", addresses[source], None, addresses.get(destination, destination), int(port))


def _seen(walked: Walk) -> tuple[str, str | None, str | None]:
    stop = walked.blocker
    return walked.outcome, stop and stop.kind, stop and stop.resource


@pytest.mark.parametrize("name", WORLDS)
def test_what_az_tells_walks_like_the_lab(name: str, tmp_path: Path) -> None:
    world = WORLDS[name]()
    home, flows, failed = _lab(tmp_path / "lab", world), list(_flows(world, FLOWS[name])), []

    def execute(read: Read) -> Answer:
        answer = _az(home, *read.argv[1:])
        failed.extend([read.argv, answer.failure] if answer.failure else [])
        return answer

    network = collect(flows, execute)

    assert failed == []
    told, wrong = world.network.without(Guest), []
    for flow in flows:
        seen, expected = walk(network, flow), walk(told, flow)
        unknown = [hop for hop in seen.hops if hop.verdict == "unknown"]
        if _seen(seen) != _seen(expected) and not (unknown and all(hop.resource.endswith(UNTOLD) for hop in unknown)):
            wrong.append(f"{flow}: {_seen(seen)}, in the lab {_seen(expected)}; {[hop.reason for hop in unknown]}")
    assert not wrong, "\n".join(wrong)


def test_a_fault_that_az_makes_is_walked_and_mended_by_az(tmp_path: Path) -> None:
    world = hub_scenario().world
    home, (flow,) = _lab(tmp_path / "lab", world), _flows(world, "orders sql-vm 1433")
    for fault, mend in FAULTS:
        assert walk(home.world.network, flow).blocker is None, fault
        assert _az(home, *shlex.split(fault)).failure is None
        network = collect([flow], lambda read: _az(home, *read.argv[1:]))
        assert _seen(walk(network, flow)) == _seen(walk(home.world.network, flow)) != ("passes", None, None), fault
        assert _az(home, *shlex.split(mend)).failure is None
    assert walk(home.world.network, flow).blocker is None


def test_what_a_read_of_several_does_not_tell_is_read_alone(tmp_path: Path) -> None:
    world = WORLDS["two-tier"]()
    home, (flow,) = _lab(tmp_path / "lab", world), _flows(world, "web-01 db-01 5432")
    hidden: list[Callable[[list[Any]], list[Any]]] = [lambda told: told, lambda told: told[1:], lambda _: []]
    counts = []
    for hide in hidden:
        asked: list[str] = []

        def execute(read: Read) -> Answer:
            asked.append(shlex.join(read.argv))  # noqa: B023 - called within the turn of the loop
            answer = _az(home, *read.argv[1:])
            told = hide(json.loads(answer.text)) if read.missing.others else None  # noqa: B023
            return answer if told is None else replace(answer, text=json.dumps(told))

        network = collect([flow], execute)
        assert _seen(walk(network, flow)) == _seen(walk(world.network, flow))
        assert len(asked) == len(set(asked))
        counts.append(len(asked))
    assert counts[0] < counts[1] <= counts[2] <= 12


def test_200_machines_cost_no_more_reads_than_two(tmp_path: Path) -> None:
    fleet = {"machines": 200, "groups": 60, "network": "prod-vnet", "subnet": "prod-subnet"}
    world = edited(lab.load_scenario("blocked-port").world, [Edit(world={"fleet": [fleet]})])
    home, asked = _lab(tmp_path / "lab", world), list[Read]()
    collect(
        [Flow("Tcp", "10.20.1.4", None, "10.20.2.5", 6379)],
        lambda read: asked.append(read) or _az(home, *read.argv[1:]),
    )
    assert len(asked) == 6


@pytest.mark.parametrize("name", WORLDS)
def test_the_list_of_resources_spares_reads_and_changes_no_verdict(name: str, tmp_path: Path) -> None:
    world = WORLDS[name]()
    home, flows, asked = _lab(tmp_path / "lab", world), list(_flows(world, FLOWS[name]))[:6], list[list[Read]]()

    def execute(read: Read) -> Answer:
        asked[-1].append(read)
        return _az(home, *read.argv[1:])

    walks = []
    for first in ([], [read_of(Network(), Missing(ListedResource))]):
        asked.append([])
        network = Network()
        for read in first:
            assert missing_of(read.argv) == read.missing
            network = absorb(network, read, _az(home, *read.argv[1:]))
        network = collect(flows, execute, network)
        walks.append([_seen(walk(network, flow)) for flow in flows])
    assert walks[0] == walks[1]
    assert len(asked[1]) < len(asked[0])
