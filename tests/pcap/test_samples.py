"""Samples: what parts hold adds up to what the whole holds, long times and grown keys included."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap import samples
from ghost.pcap.samples import EXACT, Samples, statistics

_TIMES = st.one_of(st.integers(0, 10**6), st.integers(0, 10**13))


@given(st.lists(st.tuples(st.integers(0, 9), _TIMES), min_size=1, max_size=80), st.integers(1, 7))
def test_parts_added_up_say_what_the_whole_says(taken: list[tuple[int, int]], parts: int) -> None:
    whole, several = Samples(), [Samples() for _ in range(parts)]
    columns = np.array(taken, np.int64)
    whole.add(columns[:, 0], columns[:, 1])
    for number, part in enumerate(several):
        mine = columns[number::parts]
        # A part numbers its keys as it likes.
        part.add(9 - mine[:, 0], mine[:, 1])
    merged = Samples()
    for part in several:
        merged.merge(part, np.arange(9, -1, -1))
    for key in range(10):
        expected = statistics(columns[columns[:, 0] == key, 1] / 1e6)
        assert whole.of(key) == merged.of(key) == expected
    assert whole.of_all(1, 2) == merged.of_all(1, 2) == statistics(columns[columns[:, 0] % 2 == 1, 1] / 1e6)
    assert sorted(zip(*map(np.ndarray.tolist, whole.of_kind(0, 2)), strict=True)) == sorted(
        (key // 2, value) for key, value in taken if key % 2 == 0
    )


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**31))
def test_a_key_that_outgrew_exactness_adds_up_too(seed: int) -> None:
    dice = np.random.default_rng(seed)
    values, keys = dice.integers(0, 10**10, 3 * EXACT), dice.integers(0, 2, 3 * EXACT)
    whole, merged = Samples(), Samples()
    whole.add(keys, values)
    for part in np.array_split(np.arange(len(keys)), 3):
        one = Samples()
        one.add(keys[part], values[part])
        merged.merge(one)
    assert [whole.of(key) for key in (0, 1)] == [merged.of(key) for key in (0, 1)]
    assert whole.of_all(0, 1) == merged.of_all(0, 1)


def test_memory_grows_with_keys_and_not_with_samples() -> None:
    kept = Samples()
    for _ in range(6 * samples._COMPACT_AT // 50_000):
        kept.add(np.arange(50_000) % 3, np.arange(50_000))
    assert kept._held <= samples._COMPACT_AT + 3 * EXACT
    found = kept.of(0)
    assert found is not None
    assert found.count == len(range(0, 50_000, 3)) * (6 * samples._COMPACT_AT // 50_000)
