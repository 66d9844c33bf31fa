"""How much a test tries: a seeded sample in `make test`, everything in `make test-exhaustive`."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

EXHAUSTIVE = os.environ.get("GHOST_TEST_EXHAUSTIVE") == "1"


def sample(rows: Iterable[T], most: int, seed: int = 0) -> list[T]:
    """At most `most` of the rows, the same ones each time, in their order; all of them when exhaustive."""
    listed = list(rows)
    if EXHAUSTIVE or len(listed) <= most:
        return listed
    return [listed[place] for place in sorted(random.Random(seed).sample(range(len(listed)), most))]


def examples(count: int) -> int:
    """`max_examples` of a property test: a quarter in `make test`, the same each time; ten times in full."""
    return count * 10 if EXHAUSTIVE else max(count // 4, 5)
