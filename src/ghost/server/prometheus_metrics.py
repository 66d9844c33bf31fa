"""Prometheus metrics in a registry of their own. No label contains client input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CYCLE_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_REQUEST_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)

# What the engine counts (`Engine.observe`), as metrics: name, documentation, label, the count behind each value.
_COUNTED: Final[tuple[tuple[str, str, str | None, Mapping[str, str]], ...]] = (
    ("ghost_cycles", "Cycles of the mind that ended.", None, {"": "cycles"}),
    ("ghost_cycle_failures", "Cycles of the mind that failed.", None, {"": "cycle_failures"}),
    (
        "ghost_failures",
        "What failed below a cycle.",
        "where",
        {"provider": "provider_errors", "store": "store_errors", "task_source": "source_failures"},
    ),
    (
        "ghost_thoughts_made",
        "Thoughts, by outcome.",
        "outcome",
        {
            "thought": "thoughts",
            "repeated": "thoughts_repeated",
            "ungrounded": "thoughts_ungrounded",
            "refused": "thoughts_refused",
        },
    ),
    (
        "ghost_memory_decisions",
        "Decisions whether to store a thought.",
        "outcome",
        {"stored": "memories_stored", "refused": "memories_refused", "malformed": "decisions_malformed"},
    ),
    ("ghost_stimuli_consumed", "Stimuli processed by a cycle.", None, {"": "stimuli_consumed"}),
    (
        "ghost_stimuli_dropped",
        "Stimuli remembered without a thought, since the model gave none.",
        None,
        {"": "stimuli_dropped"},
    ),
    (
        "ghost_interrupts",
        "Questions to a person.",
        "outcome",
        {"created": "interrupts_created", "answered": "interrupts_answered", "expired": "interrupts_expired"},
    ),
    ("ghost_scrapes", "Plans to read pages.", "outcome", {"done": "scrapes", "failed": "scrape_failures"}),
    ("ghost_scraped_pages", "Pages.", "outcome", {"kept": "scrape_documents", "refused": "scrape_refusals"}),
    ("ghost_consolidations", "Consolidations of memory.", None, {"": "consolidations"}),
)
_HELD: Final = (
    ("ghost_stimuli_waiting", "Stimuli waiting for a cycle.", "stimuli_waiting"),
    ("ghost_thoughts", "Thoughts in working memory.", "thoughts_held"),
    ("ghost_tasks", "Tasks in attention.", "tasks_held"),
)


@dataclass(frozen=True)
class Levels:
    """Current gauges, read on request."""

    memories: Mapping[str, int] | None
    """By type; None if the store cannot be read."""
    open_interrupts: int | None
    investigations: Mapping[str, int]
    event_clients: int
    user_available: bool
    stream_running: bool


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # when each series began is nobody's question, and half of all lines
        self.registry = CollectorRegistry()
        self.stimuli = Counter("ghost_stimuli", "Stimuli received, by source.", ["source"], registry=self.registry)
        self.cycle_seconds = Histogram(
            "ghost_cycle_seconds", "Duration of cycles in seconds.", buckets=_CYCLE_SECONDS, registry=self.registry
        )
        self._requests = Counter(
            "ghost_http_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._request_seconds = Histogram(
            "ghost_http_request_seconds",
            "Duration of responses in seconds, without event streams.",
            ["route"],
            buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )
        self._started = Gauge("ghost_start_time_seconds", "Start time of this server.", registry=self.registry)
        self._started.set(time.time())

    def describe(self, counts: Callable[[], Mapping[str, float]], levels: Callable[[], Levels]) -> None:
        """Register the sources of the other metrics, once all exist."""
        self.registry.register(_Now(counts, levels))

    def answered(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request by its route template, `/memories/{memory_id}`, never by its values."""
        route = getattr(scope.get("route"), "path", None) or "unmatched"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(method, route, str(status or "closed")).inc()
        if route != "/events":
            self._request_seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Now(Collector):
    def __init__(self, counts: Callable[[], Mapping[str, float]], levels: Callable[[], Levels]) -> None:
        self._counts = counts
        self._levels = levels

    def describe(self) -> Iterable[Metric]:
        return ()  # nothing is read before somebody asks

    def collect(self) -> Iterable[Metric]:
        counts = self._counts()
        for name, documentation, label, sources in _COUNTED:
            family = CounterMetricFamily(name, documentation, labels=[label] if label else [])
            for value, source in sources.items():
                family.add_metric([value] if label else [], counts.get(source, 0))
            yield family
        for name, documentation, source in _HELD:
            yield GaugeMetricFamily(name, documentation, counts.get(source, 0))
        yield from self._of_levels(self._levels())

    @staticmethod
    def _of_levels(now: Levels) -> Iterable[Metric]:
        readable = now.memories is not None
        yield GaugeMetricFamily("ghost_store_readable", "1 while the store can be read.", int(readable))
        if now.memories is not None:
            yield _by("ghost_memories", "Memories, by type.", "type", now.memories)
        yield _by("ghost_investigations", "Investigations of the workspace, by state.", "state", now.investigations)
        if now.open_interrupts is not None:
            yield GaugeMetricFamily("ghost_open_interrupts", "Open questions.", now.open_interrupts)
        yield GaugeMetricFamily("ghost_event_clients", "Clients of /events.", now.event_clients)
        yield GaugeMetricFamily("ghost_user_available", "1 while a user is available.", int(now.user_available))
        yield GaugeMetricFamily("ghost_stream_running", "1 while the stream of thoughts runs.", int(now.stream_running))


def _by(name: str, documentation: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, documentation, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
