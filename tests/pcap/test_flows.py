"""Where flows lie in tables: nobody who does not know the seed can put many into one slot."""

from __future__ import annotations

from collections import Counter

import pytest

from ghost.pcap.flows import mixed_ends

SLOTS = 1 << 10


@pytest.mark.parametrize("seed", [0x2F0B31C7, 0x9D2C5680, 0xFFFFFFFF])
def test_flows_chosen_to_share_a_slot_are_spread_by_another_seed(seed: int) -> None:
    ends = ((source, 1 << 16 | destination) for source in range(1000) for destination in range(1000))
    chosen = [(low, high) for low, high in ends if mixed_ends(low, high, 0) % SLOTS == 0]
    assert len(chosen) > SLOTS // 2
    assert max(Counter(mixed_ends(low, high, seed) % SLOTS for low, high in chosen).values()) < 16
