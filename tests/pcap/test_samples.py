"""Samples: what parts hold adds up to what the whole holds, long times and grown keys included."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap import layout as L
from ghost.pcap import sample_statistics
from ghost.pcap.sample_statistics import EXACT, Samples, statistics
from ghost.pcap.tcp.scoreboard import sample

_TIMES = st.one_of(st.integers(0, 10**6), st.integers(0, 10**13))


@given(st.lists(st.tuples(st.integers(0, 9), _TIMES), min_size=1, max_size=80))
def test_statistics_of_a_key_and_of_a_kind_are_those_of_its_samples(taken: list[tuple[int, int]]) -> None:
    columns, kept = np.array(taken, np.int64), Samples()
    kept.add(columns[:, 0], columns[:, 1])
    for key in range(10):
        assert kept.of(key) == statistics(columns[columns[:, 0] == key, 1] / 1e6)
    assert kept.of_all(1, 2) == statistics(columns[columns[:, 0] % 2 == 1, 1] / 1e6)
    assert sorted(zip(*map(np.ndarray.tolist, kept.of_kind(0, 2)), strict=True)) == sorted(
        (key // 2, value) for key, value in taken if key % 2 == 0
    )


def test_memory_grows_with_keys_and_not_with_samples() -> None:
    kept = Samples()
    for _ in range(6 * sample_statistics._COMPACT_AT // 50_000):
        kept.add(np.arange(50_000) % 3, np.arange(50_000))
    assert kept._held <= sample_statistics._COMPACT_AT + 3 * EXACT
    found = kept.of(0)
    assert found is not None
    assert found.count == len(range(0, 50_000, 3)) * (6 * sample_statistics._COMPACT_AT // 50_000)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_lost_however_often_samples_are_moved(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(sample_statistics, "_COMPACT_AT", dice.choice([3, 10, 100]))
    monkeypatch.setattr(sample_statistics, "EXACT", dice.choice([1, 5, 50]))
    monkeypatch.setattr(sample_statistics, "_FIRST_ROOM", dice.choice([1, 16, 64]))
    monkeypatch.setattr(sample_statistics, "_AT_ONCE", dice.choice([1, 7, 1000]))
    whole = Samples()
    expected: dict[int, list[int]] = {}
    for _ in range(dice.randrange(1, 30)):
        taken = [(_some_key(dice), _some_time(dice)) for _ in range(dice.choice([0, 1, 10, 100]))]
        columns = np.array(taken, np.int64).reshape(-1, 2)
        whole.add(columns[:, 0], columns[:, 1])
        for key, value in taken:
            expected.setdefault(key, []).append(value)
    for key, values in expected.items():
        found, exact = whole.of(key), statistics(np.array(values) / 1e6)
        assert found is not None
        assert exact is not None
        assert (found.count, found.min, found.max) == (exact.count, exact.min, exact.max)
        tolerance = 0 if len(values) <= sample_statistics.EXACT else 0.0101
        assert found.median == pytest.approx(exact.median, rel=tolerance, abs=2e-6)
        assert found.p95 == pytest.approx(exact.p95, rel=tolerance, abs=2e-6)


def _some_key(dice: random.Random) -> int:
    return dice.choice([dice.randrange(5), dice.randrange(30), 2**31 - 1 - dice.randrange(3)])


def _some_time(dice: random.Random) -> int:
    """In ns; about the border of 32 bits, from which on a time is kept apart, too."""
    return dice.choice([0, dice.randrange(2**20), 2**32 - 1, 2**32, dice.randrange(2**40)])


def test_memory_does_not_grow_with_long_times_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_statistics, "_COMPACT_AT", 20_000)
    dice, taken = np.random.default_rng(7), Samples()
    tracemalloc.start()
    for _ in range(100):
        taken.add(np.zeros(2_000, np.int64), dice.integers(5 * 10**9, 10**10, 2_000))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_500_000  # 200,000 of them take 3.2 MB
    found = taken.of(0)
    assert found is not None
    assert found.count == 200_000


@given(st.lists(st.tuples(st.integers(0, 9), _TIMES), max_size=40))
def test_a_log_of_samples_says_what_its_columns_say(taken: list[tuple[int, int]]) -> None:
    log, counts = np.zeros(2 * len(taken) + 1, np.int64), np.zeros(L.COUNTERS, np.int64)
    for key, value in taken:
        sample(key % L.SAMPLES, key // L.SAMPLES, value, log, counts)
        assert counts[L.N_LAST_SAMPLE] == value
    logged, added = Samples(), Samples()
    logged.take(log[: counts[L.N_SAMPLES]])
    columns = np.array(taken, np.int64).reshape(-1, 2)
    added.add(columns[:, 0], columns[:, 1])
    assert [logged.of(key) for key in range(10)] == [added.of(key) for key in range(10)]
