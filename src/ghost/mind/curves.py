"""Urgency and recency over time: straight lines between knots, constant outside them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True)
class Line:
    """`level + slope * x` between two knots."""

    level: float
    slope: float


class Curve:
    """A curve through the knots `(seconds, value)`, in ascending order of seconds."""

    def __init__(self, knots: Sequence[tuple[float, float]]) -> None:
        self.knots = tuple(knots)
        self.lines = [Line(knots[0][1], 0.0)]
        for (x, value), (next_x, next_value) in pairwise(knots):
            slope = (next_value - value) / (next_x - x)
            self.lines.append(Line(value - slope * x, slope))
        self.lines.append(Line(knots[-1][1], 0.0))

    def at(self, x: float) -> float:
        line = self.lines[bisect_right(self.knots, x, key=lambda knot: knot[0])]
        return line.level + line.slope * x if line.slope else line.level

    def piece(self, anchor: float, now: float) -> int:
        """Return the index of the line valid at `now` for a curve anchored at `anchor`; see `turns`."""
        return bisect_right(self.knots, now, key=lambda knot: anchor + knot[0])

    def turns(self, anchor: float, piece: int) -> float | None:
        """Return when the next line begins; None after the last knot."""
        return anchor + self.knots[piece][0] if piece < len(self.knots) else None


URGENCY = Curve(((-DAY, 0.0), (-4 * HOUR, 0.25), (-HOUR, 0.5), (0.0, 1.0)))
"""Value by seconds since the deadline: 0 until a day before it, 0.25 four hours before, 0.5 an hour before, then 1."""

RECENCY = Curve(((0.0, 1.0), (HOUR, 0.5), (DAY, 0.0)))
"""Value by seconds since the last update: 1, half after an hour, nothing after a day."""
