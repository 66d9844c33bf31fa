"""What is bounded keeps a place for everybody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap.protocols.bounded_counts import round_robin


@given(st.lists(st.integers(0, 6)), st.integers(1, 40))
def test_a_large_group_hides_no_small_one(groups: list[int], most: int) -> None:
    items = list(enumerate(groups))
    kept = round_robin(items, most, lambda item: item[1])
    assert kept == sorted(kept)
    assert len(kept) == min(len(items), most)
    counts = {group: groups.count(group) for group in groups}
    left = {group: sum(each == group for _, each in kept) for group in counts}
    for group, number in left.items():
        # Nobody has two places more than a group that has some left out.
        if number < counts[group]:
            assert max(left.values()) <= number + 1


def test_the_first_of_a_group_are_those_kept() -> None:
    assert round_robin("aaaaab", 3, str) == ["a", "a", "b"]
