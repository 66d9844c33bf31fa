"""What a kernel is given, and how it is run: interpreted over memoryviews, or compiled over arrays.

A kernel is a plain function over flat integer sequences. Interpreted, it gets memoryviews, whose items are plain
integers and cost a third of a numpy scalar. Compiled, it gets the arrays themselves. Both see the same memory, so
state may pass from one to the other at any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.int64]


class Ints(Protocol):
    """A flat sequence of integers that can be written."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...
    def __len__(self) -> int: ...


Vector: TypeAlias = Callable[[NDArray[Any]], Ints]
Kernel: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def interpreted_vector(array: NDArray[Any]) -> Ints:
    return array.data


def interpreted_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
