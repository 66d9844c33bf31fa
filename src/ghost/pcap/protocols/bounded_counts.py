"""Counts and times of bounded size. Ties are broken by name or frame."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.model import Occurrences, Statistics
from ghost.pcap.sample_statistics import EXACT, Histogram, statistics

OTHERS = "(others)"
Item = TypeVar("Item")


class Tally:
    """Count of each name; beyond `most` different names further ones count as `OTHERS`."""

    __slots__ = ("_most", "counts")

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self.counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        counts = self.counts
        if name in counts:
            counts[name] += 1
        else:
            if len(counts) >= self._most:
                name = OTHERS
            counts[name] = counts.get(name, 0) + 1

    def most(self, number: int | None = None) -> dict[str, int]:
        """The most frequent first."""
        ranked = sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))
        return dict(ranked[:number])

    def __len__(self) -> int:
        return len(self.counts)


class EventCounter:
    """A count, and the first frames and the last one that show it."""

    __slots__ = ("count", "frames", "last")

    def __init__(self) -> None:
        self.count = self.last = 0
        self.frames: list[int] = []

    def add(self, frame: int) -> None:
        self.count += 1
        self.last = frame
        if len(self.frames) < L.SAMPLE_FRAMES:
            self.frames.append(frame)

    def occurrences(self) -> Occurrences:
        return Occurrences(self.count, tuple(sorted(self.frames)))


class Times:
    """Durations in nanoseconds: all of them up to `EXACT`, a histogram beyond."""

    __slots__ = ("_histogram", "_values")

    def __init__(self) -> None:
        self._values = array("q")
        self._histogram: Histogram | None = None

    def add(self, nanoseconds: int) -> None:
        self._values.append(max(nanoseconds, 0))
        if len(self._values) > EXACT:
            self._spill()

    def merge(self, other: Times) -> None:
        self._values.extend(other._values)
        if other._histogram is not None:
            self._spill()
            assert self._histogram is not None
            self._histogram.merge(other._histogram)
        elif len(self._values) > EXACT or self._histogram is not None:
            self._spill()

    def _spill(self) -> None:
        if self._histogram is None:
            self._histogram = Histogram()
        self._histogram.add(np.array(self._values, np.int64))
        self._values = array("q")

    def statistics(self) -> Statistics | None:
        if self._histogram is None:
            return statistics(np.array(self._values, np.int64) / 1e6)
        self._spill()
        return self._histogram.statistics()


def keep_smallest(items: list[Item], most: int, order: Callable[[Item], object]) -> None:
    """Keep only the `most` smallest by `order`; cheap if called when the list has twice that length."""
    items.sort(key=order)  # type: ignore[arg-type]  # every order used is a number or a tuple of them
    del items[most:]


def round_robin(items: Sequence[Item], most: int, group_of: Callable[[Item], Hashable]) -> list[Item]:
    """Return `most` of the items in order, the first of every group before the second of any, so that a large group
    hides no other."""
    if len(items) <= most:
        return list(items)
    seen: Counter[Hashable] = Counter()
    ranks = []
    for number, item in enumerate(items):
        group = group_of(item)
        ranks.append((seen[group], number))
        seen[group] += 1
    return [items[number] for number in sorted(number for _, number in sorted(ranks)[:most])]


def merged_times(parts: Iterable[Times]) -> Times:
    whole = Times()
    for part in parts:
        whole.merge(part)
    return whole
