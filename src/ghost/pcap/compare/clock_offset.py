"""Clock offset between two captures, from packets that both hold.

A packet from A to B shows offset + delay, one from B to A offset - delay. The minimum of the first and the maximum of
the second enclose the offset; the midpoint is accurate to half their difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array

_WINDOWS = 64
_ENOUGH = 50
"""Packets each way, below which a drift is not looked for."""
_LONG_ENOUGH_NS = 5_000_000_000
_MOST_DRIFT = 1e-3
_WORST_DRIFT = 2e-2
"""Of clocks that nothing disciplines, as in virtual machines that were paused: thought of where nothing else explains
packets that arrive before they leave."""
_SURELY_NS = 1_000_000
"""Two capturers on one machine stamp a packet in any order, within less than that."""
_CLEARLY = 1.2
_CLEARLY_NS = 20_000


@dataclass(frozen=True, slots=True)
class Clock:
    """B's clock relative to A's."""

    offset_ns: float
    """B shows this much more than A, at `at_ns`."""
    at_ns: int
    drift: float
    """Seconds a second; 0 where none is apparent."""
    uncertainty_ns: float | None
    """The offset is right to this; None where packets were seen one way only and delay cannot be told from offset."""
    changed_ns: float = 0.0
    """B's clock changed against A's by at least this meanwhile: no offset lets all packets arrive after they left."""

    def offset_at(self, a_time: Array) -> NDArray[np.float64]:
        result: NDArray[np.float64] = (self.offset_ns + self.drift * (a_time - self.at_ns)).astype(np.float64)
        return result


def compare_clocks(there_at: Array, there: Array, back_at: Array, back: Array) -> Clock | None:
    """Return the clock offset from times at A and the differences (time at B - time at A) of packets to B and of
    packets back, all in ns."""
    if not len(there) and not len(back):
        return None
    if not len(there) or not len(back):
        # As if the fastest packet had taken no time.
        only = int(there.min()) if len(there) else int(back.max())
        return Clock(float(only), int(np.concatenate([there_at, back_at]).min()), 0.0, None)
    origin = int(min(there_at.min(), back_at.min()))
    low_at, low = _extremes(there_at - origin, there, least=True)
    high_at, high = _extremes(back_at - origin, back, least=False)

    def gap(drift: float) -> float:
        return float((low - drift * low_at).min() - (high - drift * high_at).max())

    drift = 0.0
    spread = min(float(np.ptp(low_at)), float(np.ptp(high_at)))
    if min(len(there), len(back)) >= _ENOUGH and spread >= _LONG_ENOUGH_NS:
        best = _greatest(gap, _MOST_DRIFT)
        if gap(best) < -_SURELY_NS:
            best = _greatest(gap, _WORST_DRIFT)
            best = best if gap(best) > -_SURELY_NS else 0.0
        if gap(best) > _CLEARLY * max(gap(0.0), 0.0) + _CLEARLY_NS:
            drift = best
    least, most = float((low - drift * low_at).min()), float((high - drift * high_at).max())
    early = most - least if most - least > _SURELY_NS else 0.0
    return Clock((least + most) / 2, origin, drift, max(least - most, early, 0.0) / 2, early)


def _extremes(at: Array, values: Array, *, least: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the minimum (or maximum) in each interval of time."""
    window = np.minimum(at * _WINDOWS // max(int(at.max()) + 1, 1), _WINDOWS - 1)
    order = np.lexsort((values if least else -values, window))
    first = order[np.flatnonzero(np.r_[True, np.diff(window[order]) != 0])]
    return at[first].astype(np.float64), values[first].astype(np.float64)


def _greatest(gap: Callable[[float], float], most: float) -> float:
    """Return where a concave function of the drift is greatest, within ±`most`."""
    low, high = -most, most
    for _ in range(80):
        third = (high - low) / 3
        if gap(low + third) < gap(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2
