"""Small numpy queries that avoid importing `numpy.ma` and its checks.

Numpy's own functions import `numpy.ma` when they are first called, which takes longer than a small capture; and a
thousand calls of them are slow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array


def distinct(values: Array) -> Array:
    """Return the distinct values, ascending."""
    ordered = np.sort(values, axis=None)
    fresh = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=fresh[1:])
    return ordered[fresh]


def among(values: Array, known: Array | Sequence[int]) -> NDArray[np.bool_]:
    """Return a mask of `values`: True where the value is one of `known`."""
    ordered = np.sort(np.asarray(known, np.int64), axis=None)
    if not len(ordered):
        return np.zeros(values.shape, np.bool_)
    found: NDArray[np.bool_] = ordered.take(ordered.searchsorted(values), mode="clip") == values
    return found


def without(values: Array, others: Array) -> Array:
    """Return the distinct values that are not in `others`, ascending."""
    return distinct(values[~among(values, others)])


def first_and_last(times: Array, group_of: Array, groups: int) -> tuple[Array, Array]:
    """Return the earliest and the latest time of each group; `group_of` gives the group of each time."""
    first, last = np.full(groups, np.iinfo(np.int64).max), np.zeros(groups, np.int64)
    np.minimum.at(first, group_of, times)
    np.maximum.at(last, group_of, times)
    return first, last


def percentiles(values: NDArray[np.float64] | Array | Sequence[float], shares: Sequence[float]) -> list[float]:
    """Return percentiles; `shares` are percent, values between two samples are interpolated."""
    places = np.array(shares) / 100 * (len(values) - 1)
    found: list[float] = np.interp(places, np.arange(len(values)), np.sort(values)).tolist()
    return found


def median(values: NDArray[np.float64] | Array | Sequence[float]) -> float:
    return percentiles(values, (50,))[0]
