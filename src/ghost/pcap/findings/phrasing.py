"""Numbers and addresses as text for findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain

from ghost.records import isoformat

FRAMES = 5


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 SYN`, `2 SYNs`, `3,000 addresses`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def at(host: str, port: int | None) -> str:
    """`10.0.0.1:80`, `[::1]:80`."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def few(items: Sequence[object], most: int = 3) -> str:
    """The first of `items`, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole else 0.0


def rate(value: float) -> str:
    """Return a percentage with suitable digits: `12%`, `1.2%`, `0.03%`."""
    return f"{value:.0f}%" if value >= 10 else f"{value:.1f}%" if value >= 1 else f"{value:.2g}%"


def duration(ms: float) -> str:
    """Return milliseconds with a readable unit: `0.4 ms`, `350 ms`, `2.5 s`, `12 min`, `3.0 h`, `4.2 days`."""
    if ms < 0:
        return f"-{duration(-ms)}"
    if ms < 1000:
        return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
    seconds = ms / 1000
    if seconds < 300:
        return f"{seconds:.1f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:,.1f} days"


def utc(ns: int) -> str:
    """Return a time since 1970 as `2026-11-28T14:03:12.345Z`."""
    try:
        return isoformat(datetime.fromtimestamp(ns / 1e9, UTC))
    except (OverflowError, ValueError, OSError):  # a clock that was never set, far outside the calendar
        return f"{ns / 1e9:.3f} s since 1970"


def clock(ns: int) -> str:
    """Return a time since 1970 to the second: `2026-11-28 14:03:12 UTC`."""
    return f"{utc(ns)[:19].replace('T', ' ')} UTC"


def span(first_ns: int, last_ns: int) -> str:
    """Return `2026-11-28 14:03:12 to 14:05:10 UTC`, with the second date where it differs."""
    first, last = clock(first_ns), clock(last_ns)
    if first == last:
        return first
    return f"{first[:-4]} to {last[11:] if first[:11] == last[:11] else last}"


def first_frames(groups: Iterable[Iterable[int]]) -> tuple[int, ...]:
    return tuple(sorted(set(chain.from_iterable(groups)) - {0})[:FRAMES])


def bit_rate(bits: float) -> str:
    """`300 bit/s`, `850 kbit/s`, `4.2 Mbit/s`, `1.3 Gbit/s`."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits >= size:
            return f"{bits / size:.3g} {unit}"
    return f"{bits:.3g} bit/s"
