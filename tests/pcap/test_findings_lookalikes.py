"""Faults and what looks like them, side by side: each is told from its twin, wherever it was captured."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, find

from .labelled import (
    crowds,
    datagrams,
    kept,
    masses,
    missing,
    nat,
    neighbours,
    older_tls,
    restarts,
    takeovers,
    told,
    turned_away,
    unasked,
    ways,
)
from .labelled.scene import Scene

SCENES = {
    **takeovers.TAKEOVERS,
    **masses.MASSES,
    **told.TOLD,
    **nat.NAT,
    **missing.MISSING,
    **crowds.CROWDS,
    **unasked.UNASKED,
    **older_tls.OLDER_TLS,
    **restarts.RESTARTS,
    **neighbours.NEIGHBOURS,
    **datagrams.DATAGRAMS,
    **kept.KEPT,
    **ways.WAYS,
    **turned_away.TURNED_AWAY,
}
SEVERITIES = {
    **takeovers.SEVERITIES,
    **masses.SEVERITIES,
    **told.SEVERITIES,
    **nat.SEVERITIES,
    **missing.SEVERITIES,
    **crowds.SEVERITIES,
    **unasked.SEVERITIES,
    **older_tls.SEVERITIES,
    **restarts.SEVERITIES,
    **neighbours.SEVERITIES,
    **datagrams.SEVERITIES,
    **kept.SEVERITIES,
    **ways.SEVERITIES,
    **turned_away.SEVERITIES,
}
BESIDE = {**told.BESIDE, **nat.BESIDE, **crowds.BESIDE, **turned_away.BESIDE}
SAID_AS_LOW = {**kept.SAID_AS_LOW, **ways.SAID_AS_LOW, **turned_away.SAID_AS_LOW}
MINOR = ("LOW", "INFO")


def found_in(scene: Scene, directory: Path) -> list[tuple[str, tuple[Finding, ...]]]:
    """What is found with two seeds at each capture point."""
    results = []
    for point in scene.points:
        for seed in (11, 402):
            capture = scene.save(directory / f"{point}{seed}.pcap", seed, point)
            results.append((f"{point} {seed}", find(analyse(capture, compile_kernels=False))))
    return results


def said(found: tuple[Finding, ...]) -> list[str]:
    return [f"{f.severity} {f.kind} {f.blame} {f.confidence}: {f.title} {f.detail}" for f in found]


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.kind == "none"])
def test_what_only_looks_like_a_fault_raises_no_alarm(name: str, tmp_path: Path) -> None:
    for place, found in found_in(SCENES[name], tmp_path):
        assert all(finding.severity in MINOR for finding in found), (place, said(found))
        worth_knowing = [(finding.kind, finding.blame) for finding in found if finding.severity == "LOW"]
        assert worth_knowing == SAID_AS_LOW.get(name, worth_knowing), (place, said(found))


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.kind != "none"])
def test_the_twin_is_the_only_finding_that_matters(name: str, tmp_path: Path) -> None:
    scene = SCENES[name]
    for place, found in found_in(scene, tmp_path):
        assert (found[0].kind, found[0].blame) == (scene.kind, scene.blame), (place, said(found))
        assert found[0].severity == SEVERITIES[name], (place, said(found))
        others = [f"{f.severity} {f.kind} {f.blame}" for f in found[1:] if f.severity not in MINOR]
        assert others == BESIDE.get(name, []), (place, said(found))
        assert found[0].evidence
        numbers = crowds.NUMBERS.get(name, {})
        assert numbers.items() <= found[0].measured.items(), (place, said(found))


def test_quic_that_races_tcp_is_not_mentioned_where_it_is_answered_at_times(tmp_path: Path) -> None:
    for name in ("quic_that_is_answered_late", "quic_that_loses_the_race_at_times"):
        for place, found in found_in(datagrams.DATAGRAMS[name], tmp_path):
            assert [finding.kind for finding in found] == ["none"], (place, said(found))


def test_a_name_that_is_needed_is_named_before_those_that_were_tried(tmp_path: Path) -> None:
    scene = missing.MISSING["needed_name_behind_a_browsers"]
    first = find(analyse(scene.save(tmp_path / "scene.pcap", 11, "client"), compile_kernels=False))[0]
    assert first.title.startswith("“orders-db.prod.example”")
    assert "orders-db.prod.example" in first.remediation[0].command
