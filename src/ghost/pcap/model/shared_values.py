"""Values shared by the sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["client", "server"]


@dataclass(frozen=True, slots=True)
class Statistics:
    """Nearest-rank statistics of a set of samples."""

    count: int
    min: float
    median: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True)
class Occurrences:
    """A count, and the first frames that show it."""

    count: int = 0
    frames: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    address: str
    port: int
