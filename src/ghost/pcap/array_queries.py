"""Small numpy queries that avoid importing `numpy.ma` and its checks.

Numpy's own functions import `numpy.ma` when they are first called, which takes longer than a small capture; and a
thousand calls of them are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array

_INTEGERS = (np.int8, np.int16, np.int32, np.int64)
AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def constant_once(values: AnyArray) -> AnyArray:
    """Return the rows, stored once and read-only if all are the same, as in most columns of most captures."""
    first = values[:1].copy()
    same = (values == first).all() or (values.dtype.kind == "f" and np.isnan(values).all())
    return np.broadcast_to(first, values.shape) if len(values) and same else values  # type: ignore[return-value]


def narrow(values: Array) -> Array:
    """Return the values in as few bytes as they take. Sums of them may overflow: widen them first."""
    once = constant_once(values)
    if once is not values or not len(values):
        return once
    low, high = int(values.min()), int(values.max())
    return values.astype(next(kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max))


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
