"""Faults of name resolution and what looks like them: found behind many of their kind, and never where they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ghost.pcap.findings import Finding
from tests.exhaustive import sample

from .labelled.faults.silence import WELL_ANSWERED
from .labelled.lookups import (
    LOOKUPS,
    one_way_to_one_host_and_a_dead_resolver,
    slow_pages_and_slow_names_of_others,
    slow_pages_of_a_server_with_slow_names,
)
from .labelled.office import Office
from .labelled.scene import Scene, judged, judged_samples, told

SEEDS = sample((11, 402), 1)
MINOR = ("LOW", "INFO")


def found_in(name: str, seed: int, directory: Path) -> tuple[Finding, ...]:
    capture = LOOKUPS[name].save(directory / f"{seed}.pcap", seed, LOOKUPS[name].points[0])
    return judged(capture)


def alarms(found: tuple[Finding, ...]) -> set[str]:
    return {finding.kind for finding in found if finding.severity not in MINOR}


def test_a_fault_is_the_first_finding_and_nothing_of_another_kind_is(tmp_path: Path) -> None:
    wrong = []
    for scene in (scene for scene in LOOKUPS.values() if scene.kind != "none"):
        for place, found in judged_samples(scene, tmp_path):
            right = (found[0].kind, found[0].blame) == (scene.kind, scene.blame) and found[0].evidence
            if not right or alarms(found) != {scene.kind}:
                wrong.append((place, told(found)))
    assert not wrong


def test_what_only_looks_like_one_raises_no_alarm(tmp_path: Path) -> None:
    """Also where a server answers at times, or elsewhere."""
    healthy = (*(scene for scene in LOOKUPS.values() if scene.kind == "none"), *WELL_ANSWERED.values())
    judged = (result for scene in healthy for result in judged_samples(scene, tmp_path))
    assert not [(place, told(found)) for place, found in judged if alarms(found)]


def test_generated_names_of_one_client_hide_no_name_that_another_misses(tmp_path: Path) -> None:
    def both(office: Office) -> None:
        LOOKUPS["algorithm_behind_a_search_list"].play(office)
        missing = office.name("db-primry", "prod")
        office.lookups[missing] = office.lookups["biz"]
        for n in range(4):
            office.lookup(missing, 9.0 + n)
            office.lookup(f"{office.name('db')}.biz", 9.5 + n)

    scene = Scene("both", "dns_suspicious", "client", both)
    found = judged(scene.save(tmp_path / "both.pcap", 5, "client"))
    assert [(f.kind, f.severity) for f in found] == [("dns_suspicious", "HIGH"), ("dns_nxdomain", "MEDIUM")]
    assert found[1].measured["nxdomain"] == 8


def test_all_failures_are_counted_for_the_server_that_made_them(tmp_path: Path) -> None:
    servers = {f.who.dst: f.measured for f in found_in("failing_server_behind_another", 7, tmp_path)}
    assert sorted(measured["failed"] for measured in servers.values()) == [20, 80]
    slow = [f.measured["slow"] for f in found_in("slow_server_behind_a_slower_one", 7, tmp_path)]
    assert slow == [200, 200]
    (missing,) = (f for f in found_in("lost_name_behind_a_search_list", 7, tmp_path) if f.kind == "dns_nxdomain")
    assert missing.measured == {"nxdomain": 6, "names": 1}
    (dead,) = (f for f in found_in("dead_resolver_behind_lost_queries", 7, tmp_path) if f.severity == "HIGH")
    assert dead.measured["unanswered"] == 12


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_that_is_heard_otherwise_shows_that_its_resolver_is_silent(seed: int, tmp_path: Path) -> None:
    scene = Scene("both", "dns_timeout", "dns", one_way_to_one_host_and_a_dead_resolver)
    found = judged(scene.save(tmp_path / "both.pcap", seed, "client"))
    assert {(f.kind, f.severity) for f in found if f.severity not in MINOR} == {
        ("dns_timeout", "HIGH"),
        ("asymmetric", "MEDIUM"),
    }, told(found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("play", [slow_pages_of_a_server_with_slow_names, slow_pages_and_slow_names_of_others])
def test_slow_names_explain_no_page_that_would_be_slow_without_them(
    play: Callable[[Office], None], seed: int, tmp_path: Path
) -> None:
    scene = Scene("both", "http_slow", "server_application", play, seconds=40.0)
    found = judged(scene.save(tmp_path / "both.pcap", seed, "between"))
    assert {f.kind for f in found if f.severity not in MINOR} == {"http_slow", "dns_slow"}, told(found)
