"""Policers that several conversations pass: the transfer that they hold back comes first, and hides no other fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, find

from .labelled.network import Point
from .labelled.shared_rate import RANDOM_LOSS, SHARED_RATE

SEEDS = (11, 402, 3, 4)


def found_in(name: str, seed: int, directory: Path) -> tuple[Finding, ...]:
    return find(analyse(SHARED_RATE[name].save(directory / "scene.pcap", seed, "client"), compile_kernels=False))


def told(found: tuple[Finding, ...]) -> list[str]:
    return [f"{f.severity} {f.kind} {f.blame}: {f.title} {f.detail}" for f in found]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["policer_of_everything", "policer_and_small_talk"])
def test_what_small_talk_loses_to_a_policer_does_not_come_before_it(name: str, seed: int, tmp_path: Path) -> None:
    found = found_in(name, seed, tmp_path)
    assert (found[0].kind, found[0].blame) == ("throughput_limited", "network"), told(found)
    assert not [finding for finding in found[1:] if finding.severity == "HIGH"], told(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_others_that_lose_to_a_policer_are_told_with_it(seed: int, tmp_path: Path) -> None:
    first, *_ = found = found_in("policer_of_everything", seed, tmp_path)
    assert first.measured["others"] >= 1, told(found)
    assert "beside it" in first.detail


@pytest.mark.parametrize("seed", SEEDS)
def test_a_path_that_loses_without_the_transfer_is_a_fault_of_its_own(seed: int, tmp_path: Path) -> None:
    found = found_in("policer_beside_a_lossy_path", seed, tmp_path)
    assert (found[0].kind, found[0].severity) == ("loss", "HIGH"), told(found)
    assert "throughput_limited" in [finding.kind for finding in found], told(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_loss_of_everybody_is_not_told_with_a_policer(seed: int, tmp_path: Path) -> None:
    found = found_in("random_loss_of_everything", seed, tmp_path)
    assert any(finding.kind == "loss" and finding.severity in ("HIGH", "MEDIUM") for finding in found), told(found)
    assert not any("others" in finding.measured for finding in found), told(found)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("point", ["client", "server"])
@pytest.mark.parametrize("name", RANDOM_LOSS)
def test_random_loss_of_a_long_transfer_is_no_policer(name: str, point: Point, seed: int, tmp_path: Path) -> None:
    capture = RANDOM_LOSS[name].save(tmp_path / "scene.pcap", seed, point)
    found = find(analyse(capture, compile_kernels=False))
    assert found[0].kind in ("loss", "rto_loss"), told(found)
    assert "throughput_limited" not in [finding.kind for finding in found], told(found)
