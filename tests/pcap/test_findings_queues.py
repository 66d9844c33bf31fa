"""Repeats of what only waited in a queue are no loss; what is lost beside a queue still is, and about as often."""

from __future__ import annotations

from pathlib import Path

from .labelled.queues import LOST, QUEUES
from .labelled.scene import judged_samples, told

MINOR = ("LOW", "INFO")


def test_answers_that_wait_in_a_queue_are_the_queue_alone(tmp_path: Path) -> None:
    for place, found in judged_samples(QUEUES["a_queue_that_answers_wait_in"], tmp_path):
        assert [f.kind for f in found if f.severity not in MINOR] == ["bufferbloat"], (place, told(found))


def test_loss_beside_a_queue_is_found_with_it_and_not_more_than_there_is(tmp_path: Path) -> None:
    for name in ("a_queue_and_loss_the_other_way", "a_queue_and_loss_without_timestamps"):
        for place, found in judged_samples(QUEUES[name], tmp_path):
            first, *others = (f for f in found if f.severity not in MINOR)
            assert (first.kind, first.blame, first.severity) == ("rto_loss", "network", "HIGH"), (place, told(found))
            assert "bufferbloat" in [f.kind for f in others], (place, told(found))
            assert 100 * LOST / 2 < first.measured["loss_pct"] < 100 * LOST * 1.5, (place, told(found))
