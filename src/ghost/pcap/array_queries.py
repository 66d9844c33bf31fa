"""Questions to arrays of numbers that are asked often, and mostly of few.

Numpy's own functions import `numpy.ma` when they are first called, for longer than a small capture takes; and they
check so much that a thousand calls are felt.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array


def distinct(values: Array) -> Array:
    """The different ones, ascending."""
    ordered = np.sort(values, axis=None)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def among(values: Array, known: Array | Sequence[int]) -> NDArray[np.bool_]:
    """Which of `values` are one of `known`."""
    ordered = np.sort(np.asarray(known, np.int64), axis=None)
    if not len(ordered):
        return np.zeros(values.shape, np.bool_)
    found: NDArray[np.bool_] = ordered.take(ordered.searchsorted(values), mode="clip") == values
    return found


def without(values: Array, others: Array) -> Array:
    """The different ones that are none of `others`, ascending."""
    return distinct(values[~among(values, others)])


def percentiles(values: NDArray[np.float64] | Array | Sequence[float], shares: Sequence[float]) -> list[float]:
    """In percent, between the two nearest values where none lies there."""
    places = np.array(shares) / 100 * (len(values) - 1)
    found: list[float] = np.interp(places, np.arange(len(values)), np.sort(values)).tolist()
    return found


def median(values: NDArray[np.float64] | Array | Sequence[float]) -> float:
    return percentiles(values, (50,))[0]
