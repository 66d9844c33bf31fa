"""Scenes with a known fault, or none: the fault is the first finding, with the right blame; health raises no alarm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding
from ghost.pcap.findings.finding import BLAMES, SEVERITIES
from ghost.pcap.findings.finding_cases import load_cases
from ghost.pcap.findings.stream_columns import SIDE_EVENTS, SIDE_FIELDS, columns_of

from .labelled.faults import FAULTS
from .labelled.healthy import HEALTHY
from .labelled.scene import Scene, judged, told

MINOR = ("LOW", "INFO")


def seed_of(scene: Scene) -> int:
    return 77 + sum(map(ord, scene.name))


def found_in(scene: Scene, path: Path) -> tuple[Finding, ...]:
    """Findings of a scene at one of its capture points, both chosen by its name."""
    seed = seed_of(scene)
    capture = scene.save(path / "scene.pcap", seed, scene.points[seed % len(scene.points)])
    return judged(capture)


def test_the_scenes_cover_every_kind_of_fault() -> None:
    assert {scene.kind for scene in FAULTS.values()} == {case.kind for case in load_cases().values()} - {"none"}


def test_a_fault_is_the_first_finding_with_the_right_blame(tmp_path: Path) -> None:
    wrong = []
    for name, scene in FAULTS.items():
        first, *others = found = found_in(scene, tmp_path)
        alarms = [finding for finding in others if finding.severity not in MINOR and finding.kind != scene.kind]
        sound = first.remediation and all(frame > 0 for frame in first.evidence)
        if (first.kind, first.blame) != (scene.kind, scene.blame) or alarms or not sound:
            wrong.append((name, told(found)))
    assert not wrong


def test_a_healthy_capture_raises_no_alarm(tmp_path: Path) -> None:
    wrong = []
    for name, scene in HEALTHY.items():
        found = found_in(scene, tmp_path)
        if any(finding.severity not in MINOR for finding in found):
            wrong.append((name, told(found)))
    assert not wrong


@pytest.mark.parametrize("name", ["ordinary_day", "server_crashes", "lossy_up", "forgotten_while_idle"])
def test_columns_say_of_every_stream_what_the_stream_says(name: str, tmp_path: Path) -> None:
    scene = {**FAULTS, **HEALTHY}[name]
    streams = analyse(scene.save(tmp_path / "scene.pcap", 5, "client"), compile_kernels=False).tcp
    assert streams is not None
    fast, slow = columns_of(streams.streams), columns_of(list(streams.streams))
    for side in (*SIDE_FIELDS, *SIDE_EVENTS):
        # A field that the model gives as None or False where nothing was seen may hold 0 or -1 in the columns.
        known = slow.sides(side) > 0
        assert (fast.sides(side)[known] == slow.sides(side)[known]).all(), side
        assert (fast.sides(side)[~known] <= 0).all(), side
    assert [[fast.host(n) for n in pair] for pair in fast.hosts] == [
        [slow.host(n) for n in pair] for pair in slow.hosts
    ]
    for field in ("ports", "first_ns", "last_ns", "handshake", "syn_retransmissions", "unacked_bytes"):
        assert (getattr(fast, field) == getattr(slow, field)).all(), field
    for field in ("syn_to_syn_ack_ms", "syn_ack_to_ack_ms", "request_ms"):
        assert np.allclose(getattr(fast, field), getattr(slow, field), equal_nan=True), field


def test_labels_keep_to_the_vocabulary() -> None:
    for scene in (*FAULTS.values(), *HEALTHY.values()):
        assert scene.blame in BLAMES
    assert len(SEVERITIES) == 5
