"""Where flows lie in tables: nobody who does not know the seed can put many into one slot."""

from __future__ import annotations

import itertools
import secrets
from collections import Counter

import pytest

from ghost.pcap import layout as L
from ghost.pcap.kernels.address_table import intern_address
from ghost.pcap.kernels.flow_hash import hash_endpoints

SLOTS = 1 << 10


def test_flows_chosen_to_share_a_slot_are_spread_by_another_seed() -> None:
    ends = ((source, 1 << 16 | destination) for source in range(1000) for destination in range(1000))
    chosen = [(low, high) for low, high in ends if hash_endpoints(low, high, 0) % SLOTS == 0]
    assert len(chosen) > SLOTS // 2
    for seed in (0x2F0B31C7, 0x9D2C5680, 0xFFFFFFFF):
        assert max(Counter(hash_endpoints(low, high, seed) % SLOTS for low, high in chosen).values()) < 16, seed


@pytest.mark.parametrize("seed", [0, 0x2F0B31C7, (1 << 62) - 1])
def test_flows_that_differ_in_high_bits_alone_are_spread_by_any_seed(seed: int) -> None:
    """What a product is shifted by, sums and exclusive ors of products are: a seed does not help against that."""
    ends = [(a << 26 | 80, b << 26 | 81) for a in range(64) for b in range(64)]
    assert len({hash_endpoints(low, high, seed) for low, high in ends}) > 4000


@pytest.mark.parametrize("shift", [0, 13, 27, 29])
def test_addresses_that_differ_in_a_few_bits_of_each_word_are_spread(shift: int) -> None:
    count, size = 6**4, 1 << 13
    counters = [0, *(secrets.randbits(62) | 1 for _ in range(4))]
    table, slots = [0] * (count * L.ADDRESS), [0] * size
    for number, words in enumerate(itertools.product(range(6), repeat=4)):
        assert intern_address(6, *(word << shift for word in words), table, slots, counters) == number
    runs = "".join("x" if held else " " for held in slots).split()
    assert sum(map(len, runs)) == count
    assert max(map(len, runs)) < 80
