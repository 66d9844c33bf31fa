"""Counts of the mind's work since its start, for metrics."""

from __future__ import annotations

import threading
from collections import Counter

NAMES = (
    "cycles",
    "cycle_failures",
    "provider_errors",
    "store_errors",
    "source_failures",
    "thoughts",
    "thoughts_repeated",
    "thoughts_refused",
    "thoughts_ungrounded",
    "memories_stored",
    "memories_refused",
    "decisions_malformed",
    "stimuli_ingested",
    "stimuli_consumed",
    "stimuli_dropped",
    "interrupts_created",
    "interrupts_answered",
    "interrupts_expired",
    "scrapes",
    "scrape_failures",
    "scrape_documents",
    "scrape_refusals",
    "consolidations",
    "summaries_made",
    "memories_merged",
)
"""Names of the counters. Also: `cycle_seconds`, the sum over all cycles, and `last_cycle_seconds`."""


class Counts:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
        self._seconds = self._last_seconds = 0.0

    def add(self, name: str, number: int = 1) -> None:
        if name not in NAMES:
            raise ValueError(f"{name} is not a counter")
        with self._lock:
            self._numbers[name] += number

    def cycle_took(self, seconds: float) -> None:
        with self._lock:
            self._seconds += seconds
            self._last_seconds = seconds

    def numbers(self) -> dict[str, float]:
        with self._lock:
            return {**self._numbers, "cycle_seconds": self._seconds, "last_cycle_seconds": self._last_seconds}
