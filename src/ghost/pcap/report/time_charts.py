"""Plots over time as inline SVG that follows the width of the page and its colours, and says in words what it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ghost.page import Markup, element
from ghost.pcap.findings.phrasing import duration

_WIDTH, _HEIGHT = 1000, 160
"""Of the plotting area in its own units; the page stretches it."""
_MOST_POINTS = 120
_LEAST = 1e-6
"""Of any unit; below it there is nothing to plot."""
_BRIDGED = 0.04
"""The part of the axis over which a line is drawn although it has no value there."""


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity over time; None where there is no value."""

    name: str
    values: Sequence[float | None]
    colour: int
    """Which of the page's series colours, from 1."""
    bars: bool = False


@dataclass(frozen=True, slots=True)
class TimeAxis:
    start_ns: int
    width_ns: int
    bins: int

    @property
    def together(self) -> int:
        """Bins that one point of a plot sums up."""
        return -(-self.bins // _MOST_POINTS)

    def summed(self, values: Sequence[int]) -> list[float]:
        """One number a point, of as many bins as `together` says."""
        return [float(sum(values[n : n + self.together])) for n in range(0, self.bins, self.together)]

    @property
    def point_seconds(self) -> float:
        return self.together * self.width_ns / 1e9

    @property
    def seconds(self) -> float:
        return self.bins * self.width_ns / 1e9


def time_chart(title: str, unit: str, axis: TimeAxis, lines: Sequence[Line], note: str = "") -> Markup | None:
    """A figure with title, legend, axes and the plot; None where no line has a value worth it."""
    top = max((value for line in lines for value in line.values if value is not None), default=0.0)
    if top < _LEAST:
        return None
    ceiling = _round_up(top) if unit else max(2 * math.ceil(_round_up(top) / 2), 2)  # half a packet there is none
    scale, prefix = _prefix(top, unit)
    lines = [line for line in lines if any(line.values)]
    plot = element(
        "svg",
        _grid(),
        [_bars(line, ceiling) if line.bars else _path(line, ceiling) for line in lines],
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}. {_words(lines, scale, f'{prefix}{unit}', axis)}",
    )
    labels = [f"{_number(ceiling * part / scale)}" for part in (1, 0.5, 0)]
    return element(
        "figure",
        element("figcaption", element("b", title), f" {prefix}{unit}", f" · {note}" if note else None, _legend(lines)),
        element(
            "div",
            element("div", [element("span", label) for label in labels], class_="y", aria_hidden="true"),
            element("div", plot, class_="area"),
            element("div", [element("span", mark) for mark in _marks(axis)], class_="x", aria_hidden="true"),
            class_="plot",
        ),
        class_="chart",
    )


def _legend(lines: Sequence[Line]) -> Markup | None:
    if len(lines) < 2:
        return None
    keys = [element("li", element("i", class_=f"key c{line.colour}"), line.name) for line in lines]
    return element("ul", keys, class_="legend")


def _grid() -> list[Markup]:
    rows = (0.5, _HEIGHT / 2, _HEIGHT - 0.5)
    return [element("line", x1=0, x2=_WIDTH, y1=f"{y:g}", y2=f"{y:g}", class_="grid") for y in rows]


def _path(line: Line, ceiling: float) -> Markup:
    """A line, broken where values are missing for long; a lone value becomes a short stroke."""
    step = _WIDTH / len(line.values)
    known = [(place, value) for place, value in enumerate(line.values) if value is not None]
    bridged = max(len(line.values) * _BRIDGED, 1)
    pieces: list[str] = []
    before = math.inf
    for n, (place, value) in enumerate(known):
        joins = 0 < place - before <= bridged
        pieces.append(f"{'L' if joins else 'M'}{(place + 0.5) * step:.1f} {_y(value, ceiling):.1f}")
        alone = not joins and (n + 1 == len(known) or known[n + 1][0] - place > bridged)
        if alone:
            pieces.append(f"h{max(step / 2, 3):.1f}")
        before = place
    return element("path", d="".join(pieces), class_=f"line c{line.colour}")


def _bars(line: Line, ceiling: float) -> Markup:
    step = _WIDTH / len(line.values)
    pieces = [
        f"M{place * step:.1f} {_HEIGHT}V{_y(value, ceiling):.1f}h{max(step * 0.9, 1.5):.1f}V{_HEIGHT}z"
        for place, value in enumerate(line.values)
        if value
    ]
    return element("path", d="".join(pieces), class_=f"bar c{line.colour}")


def _y(value: float, ceiling: float) -> float:
    return _HEIGHT - 1 - (_HEIGHT - 3) * value / ceiling


def _words(lines: Sequence[Line], scale: float, unit: str, axis: TimeAxis) -> str:
    """Return a text alternative for the plot."""
    said = []
    for line in lines:
        known = [(value, place) for place, value in enumerate(line.values) if value is not None]
        peak, place = max(known, key=lambda item: (item[0], -item[1]))
        mean = sum(value for value, _ in known) / len(known)
        when = duration(place / len(line.values) * axis.seconds * 1000)
        said.append(
            f"{line.name}: mean {_number(mean / scale)} {unit}, peak {_number(peak / scale)} {unit} {when} after start"
        )
    return "; ".join(said) + f". Over {duration(axis.seconds * 1000)}."


def _marks(axis: TimeAxis) -> list[str]:
    start = moment(axis.start_ns)
    return [start, f"+{duration(axis.seconds * 500)}", f"+{duration(axis.seconds * 1000)}"]


def moment(nanoseconds: int) -> str:
    """A timestamp in UTC, to the second."""
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _prefix(top: float, unit: str) -> tuple[float, str]:
    """What to divide by, and the SI prefix for it; times in ms and plain counts keep their unit."""
    if unit in ("ms", ""):
        return 1.0, ""
    power = min(max(int(math.log10(top) // 3), 0), 4)
    return 10.0 ** (3 * power), ("", "k", "M", "G", "T")[power]


def _round_up(top: float) -> float:
    """The next round number: at most two digits, and so has its half."""
    power = 10.0 ** math.floor(math.log10(top))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10) if top <= step * power * 1.0000001)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
