"""Policers that several conversations pass: the transfer that they hold back comes first, and hides no other fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ghost.pcap.findings import Finding
from tests.exhaustive import EXHAUSTIVE

from .labelled.scene import judged_samples, told
from .labelled.shared_rate import RANDOM_LOSS, SHARED_RATE

SEEDS = (11, 402, 3, 4)
Found = tuple[Finding, ...]


def wrong(name: str, directory: Path, is_right: Callable[[Found], bool]) -> list[tuple[str, list[str]]]:
    samples = judged_samples(SHARED_RATE[name], directory, seeds=SEEDS)
    return [(place, told(found)) for place, found in samples if not is_right(found)]


def policed(found: Found) -> bool:
    first, *others = found
    return (first.kind, first.blame) == ("throughput_limited", "network") and not [
        finding for finding in others if finding.severity == "HIGH"
    ]


def test_what_others_lose_to_a_policer_does_not_come_before_it_and_is_told_with_it(tmp_path: Path) -> None:
    def with_others(found: Found) -> bool:
        return policed(found) and found[0].measured["others"] >= 1 and "beside it" in found[0].detail

    assert not wrong("policer_of_everything", tmp_path, with_others)
    assert not wrong("policer_and_small_talk", tmp_path, policed)


def test_a_path_that_loses_without_the_transfer_is_a_fault_of_its_own(tmp_path: Path) -> None:
    def both(found: Found) -> bool:
        return (found[0].kind, found[0].severity) == ("loss", "HIGH") and "throughput_limited" in {
            f.kind for f in found
        }

    assert not wrong("policer_beside_a_lossy_path", tmp_path, both)


def test_random_loss_of_everybody_is_not_told_with_a_policer(tmp_path: Path) -> None:
    def loss(found: Found) -> bool:
        severities = {f.severity for f in found if f.kind == "loss"}
        return bool(severities & {"HIGH", "MEDIUM"}) and not any("others" in f.measured for f in found)

    assert not wrong("random_loss_of_everything", tmp_path, loss)


def test_random_loss_of_a_long_transfer_is_no_policer(tmp_path: Path) -> None:
    failed = []
    for scene in RANDOM_LOSS.values() if EXHAUSTIVE else [*RANDOM_LOSS.values()][:2]:
        for place, found in judged_samples(scene, tmp_path, seeds=range(3)):
            if found[0].kind not in ("loss", "rto_loss") or "throughput_limited" in {f.kind for f in found}:
                failed.append((place, told(found)))
    assert not failed
