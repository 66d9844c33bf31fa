"""Publication of the mind's events to listeners, without ever waiting for them.

Each listener has a queue and a thread. A slow listener loses the oldest events of its queue and affects nobody else.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_log = logging.getLogger(__name__)

WAITING_EVENTS = 1000
"""Queue length per listener; then the oldest are dropped."""
LAST_WORDS_SECONDS = 0.5


class Kind(StrEnum):
    STIMULUS = "stimulus"
    THOUGHT = "thought"
    STORED = "stored"
    INTERRUPT = "interrupt"
    ANSWER = "answer"
    SCRAPE = "scrape"
    TASK = "task"
    ERROR = "error"


@dataclass(frozen=True)
class Event:
    """An event. `data` is JSON; its texts are redacted but remain external text."""

    kind: Kind
    ts: float
    data: dict[str, Any] = field(default_factory=dict)


Listener = Callable[[Event], None]


class Events:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: list[_Subscription] = []

    def publish(self, event: Event) -> None:
        """Publish an event; never blocks and never raises."""
        with self._lock:
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.put(event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in order, on one thread; return a function that stops it."""
        subscription = _Subscription(listener)
        with self._lock:
            self._subscriptions.append(subscription)

        def unsubscribe() -> None:
            with self._lock:
                if subscription in self._subscriptions:
                    self._subscriptions.remove(subscription)
            subscription.close()

        return unsubscribe

    def close(self) -> None:
        with self._lock:
            subscriptions, self._subscriptions = self._subscriptions, []
        for subscription in subscriptions:
            subscription.close()


class _Subscription:
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._events: deque[Event] = deque(maxlen=WAITING_EVENTS)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._deliver, name="mind-events", daemon=True)
        self._thread.start()

    def put(self, event: Event) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify()

    def close(self) -> None:
        """Deliver the events published so far, unless the listener takes too long."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join(LAST_WORDS_SECONDS)

    def _deliver(self) -> None:
        while True:
            with self._changed:
                while not self._events and not self._closed:
                    self._changed.wait()
                if not self._events:
                    return
                event = self._events.popleft()
            try:
                self._listener(event)
            except Exception:  # noqa: BLE001  a listener's mistake is the listener's
                _log.exception("a listener failed on an event of kind %s", event.kind)
