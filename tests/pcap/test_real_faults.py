"""Faults that really happened, recorded among ordinary traffic: each is the first finding, with the right blame."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from tests.exhaustive import sample

from .netns import plays
from .netns.scene import SCENES, Scene
from .recording import play_all

pytestmark = [pytest.mark.needs("tcpdump", "ip", "nft", "ethtool", "ping")]

SEED = 7
FAULTS = sorted(name for name, scene in SCENES.items() if scene.kind != "none")
HEALTHY = sorted(name for name, scene in SCENES.items() if scene.play.__module__ == plays.healthy.__name__)


@pytest.fixture(autouse=True)
def _root() -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")


Judged = tuple[Scene, list[tuple[str, str, str]]]


def wrong(names: list[str], directory: Path, is_right: Callable[[Judged], bool]) -> dict[str, Judged]:
    """The scenes that are judged wrong, twice: a machine that starved a recording spoils it, and hardly ever alone."""
    first = {name for name, result in judged(names, directory).items() if not is_right(result)}
    if not first:
        return {}
    again = judged(sorted(first), directory / "again", at_once=1)
    return {name: result for name, result in again.items() if not is_right(result)}


def judged(names: list[str], directory: Path, at_once: int = 3) -> dict[str, Judged]:
    """What is found at the first place of recording: kind, blame, severity, most important first."""
    places = play_all([(name, SEED + number) for number, name in enumerate(names)], directory, at_once=at_once)
    return {
        name: (
            SCENES[name],
            [(f.kind, f.blame, f.severity) for f in find(analyse(place / f"{SCENES[name].at[0]}.pcap"))],
        )
        for name, place in zip(names, places, strict=True)
    }


def is_named_first(result: Judged) -> bool:
    scene, found = result
    return found[0][:2] == (scene.kind, scene.blame)


def is_healthy(result: Judged) -> bool:
    return all(severity in ("LOW", "INFO") for _, _, severity in result[1])


def test_a_real_fault_is_the_first_finding_with_the_right_blame(tmp_path: Path) -> None:
    missed = {
        name: {"label": (scene.kind, scene.blame), "found": found}
        for name, (scene, found) in wrong(sample(FAULTS, 8), tmp_path, is_named_first).items()
    }
    assert not missed, json.dumps(missed, indent=1)


def test_real_traffic_in_good_health_yields_nothing_above_low(tmp_path: Path) -> None:
    raised = {name: found for name, (_, found) in wrong(sample(HEALTHY, 3), tmp_path, is_healthy).items()}
    assert not raised, json.dumps(raised, indent=1)


def test_the_scenes_cover_many_kinds_of_faults_and_of_health() -> None:
    by_kind = defaultdict(list)
    for name in FAULTS:
        by_kind[SCENES[name].kind].append(name)
    assert len(by_kind) >= 30
    assert len(FAULTS) >= 40
    assert len(HEALTHY) >= 10
