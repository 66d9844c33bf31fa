"""How urgent and how fresh a task is as time passes: straight lines between knots, level outside them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True)
class Line:
    """`level + slope * x` from one knot to the next."""

    level: float
    slope: float


class Curve:
    """Through the knots `(seconds, value)`, in rising order of seconds."""

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
        """Which line holds at `now` for what is anchored at `anchor`; it changes at `turns(anchor, piece)`."""
        return bisect_right(self.knots, now, key=lambda knot: anchor + knot[0])

    def turns(self, anchor: float, piece: int) -> float | None:
        """When the next line begins; None behind the last knot."""
        return anchor + self.knots[piece][0] if piece < len(self.knots) else None


URGENCY = Curve(((-DAY, 0.0), (-4 * HOUR, 0.25), (-HOUR, 0.5), (0.0, 1.0)))
"""By seconds since the deadline: 0 until a day before it, 0.25 four hours before, 0.5 an hour before, then 1."""

RECENCY = Curve(((0.0, 1.0), (HOUR, 0.5), (DAY, 0.0)))
"""By seconds since the last update: 1, half after an hour, nothing after a day."""
