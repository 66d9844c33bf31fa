"""Long polls: requests that the server holds on purpose until there is news or an agreed time has passed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import SERVER, Floats, StreamRows
from ghost.pcap.model import HttpExchange, HttpSection

HELD = " Many waits end after the same time, as those of long polls do."
_SAME = 0.02
"""Share by which a timer's waits differ."""


def is_long_poll(times: Floats) -> bool:
    """Return whether every answer took the same long time: a long poll."""
    if len(times) < 2 or times.min() < threshold("slow_application.long_poll_ms"):
        return False
    return bool(times.max() - times.min() <= threshold("slow_application.long_poll_jitter") * times.min())


def may_be_long_poll(times: Floats) -> bool:
    """Return whether at least half of the answers took the same long time and none longer.

    An overload with a timeout looks the same.
    """
    if not len(times) or times.max() < threshold("slow_application.long_poll_ms"):
        return False
    at_the_end = int((times >= (1 - _SAME) * times.max()).sum())
    return at_the_end >= max(threshold("slow_application.min_polls"), len(times) / 2)


def answers_nothing(seen: Observed, rows: StreamRows, times: Floats) -> bool:
    """Return whether every wait is the same and the answer is too short to hold more than "nothing new"."""
    if len(times) < threshold("slow_application.min_polls") or times.max() - times.min() > _SAME * times.max():
        return False
    c = seen.columns
    streams = np.unique(rows, return_counts=True)[0]
    answers = int(among(c.samples("response_ms")[0], streams).sum())
    size = int(c.sides("payload_bytes")[streams, SERVER].sum())
    return size <= threshold("slow_application.nothing_bytes") * answers


def http_polls(exchanges: Iterable[HttpExchange]) -> list[HttpExchange]:
    """Return exchanges on polled paths: requests held for the same time each and answered empty, and quicker ones on
    the same path."""
    by_path: defaultdict[tuple[str, int, int | None], dict[tuple[int, ...], HttpExchange]] = defaultdict(dict)
    for exchange in exchanges:
        if exchange.path is not None:
            by_path[exchange.server, exchange.port, exchange.path][exchange.frames] = exchange
    return [exchange for some in by_path.values() if _is_polling(some.values()) for exchange in some.values()]


def _is_polling(exchanges: Collection[HttpExchange]) -> bool:
    empty = [exchange.response_ms or 0.0 for exchange in exchanges if exchange.empty]
    news = [exchange.response_ms or 0.0 for exchange in exchanges if not exchange.empty]
    if len(empty) < threshold("slow_application.min_empty_polls"):
        return False
    at_once = max(empty) - min(empty) <= threshold("slow_application.long_poll_jitter") * min(empty)
    return at_once and max(news, default=0.0) <= (1 + _SAME) * max(empty)


def polls_of(seen: Observed) -> dict[int, tuple[float, float]]:
    """Return services polled by cleartext HTTP, with the shortest and longest time (ms) of an unanswered poll."""
    http = seen.analysis.http
    held: dict[int, tuple[float, float]] = {}
    for exchange in http_polls(every_slow(http)) if http else ():
        if exchange.empty:
            service = seen.number_of.get(exchange.server, -1) << 16 | exchange.port
            waited = exchange.response_ms or 0.0
            least, most = held.get(service, (waited, waited))
            held[service] = (min(least, waited), max(most, waited))
    return held


def every_slow(http: HttpSection) -> list[HttpExchange]:
    """Return the slowest exchanges, and the first of each path."""
    return [*http.slow, *(exchange for path in http.slow_paths for exchange in path.exchanges)]
