"""The event feed: passes the mind's events to every client of `/events`.

Events are published from threads and handed to the loop; everything else runs in the loop. Each is encoded once for all
clients. A slow client loses its oldest waiting events and is told so; a reconnecting one gets the missed events, by
`Last-Event-ID`, as far as they are still buffered.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from ghost.server.request_limits import EVENT_CLIENTS, EVENTS_KEPT

GAP: Final = "gap"
"""The event that tells a client that events were lost; it should reload its data."""


class Feed:
    def __init__(self, run: str) -> None:
        """Create a feed; `run` distinguishes this process's events from an earlier one's."""
        self._run = run
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=EVENTS_KEPT)
        self._followers: set[Follower] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[tuple[str, float, Mapping[str, Any]]] = deque(maxlen=EVENTS_KEPT)
        self._lock = threading.Lock()
        self.closed = False

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start delivery; events published before are delivered first."""
        self._loop = loop
        self._hand_over()

    def publish(self, kind: str, ts: float, data: Mapping[str, Any]) -> None:
        """Publish from any thread; never waits."""
        with self._lock:
            first = not self._waiting
            self._waiting.append((kind, ts, data))
        if first and self._loop is not None and not self.closed:
            try:
                self._loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:
                self.closed = True  # the loop has ended: nobody listens any more

    def follow(self, last_event_id: str | None) -> Follower | None:
        """Return a follower; None if the maximum is reached or the server is stopping."""
        if self.closed or len(self._followers) >= EVENT_CLIENTS:
            return None
        follower = Follower(self)
        for content in self._missed(last_event_id):
            follower.give(content)
        self._followers.add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        self._followers.discard(follower)

    def close(self) -> None:
        """End every client's stream and accept no new one."""
        self.closed = True
        for follower in self._followers:
            follower.wake()

    @property
    def clients(self) -> int:
        return len(self._followers)

    def _hand_over(self) -> None:
        with self._lock:
            announced = list(self._waiting)
            self._waiting.clear()
        for kind, ts, data in announced:
            self._number += 1
            content = encoded(kind, {"ts": ts, **data}, f"{self._run}-{self._number}")
            self._kept.append((self._number, content))
            for follower in self._followers:
                follower.give(content)

    def _missed(self, last_event_id: str | None) -> list[bytes]:
        if last_event_id is None:
            return []
        run, _, number = last_event_id.rpartition("-")
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if run == self._run and number.isdecimal() and len(number) < 16 and oldest - 1 <= int(number) <= self._number:
            return [content for event_number, content in self._kept if event_number > int(number)]
        return [encoded(GAP, {"missed": None}, None)]


class Follower:
    """One client's events, bounded."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._events: deque[bytes] = deque()
        self._missed = 0
        self._ready = asyncio.Event()

    def give(self, content: bytes) -> None:
        if len(self._events) >= EVENTS_KEPT:
            self._events.popleft()
            self._missed += 1
        self._events.append(content)
        self._ready.set()

    def wake(self) -> None:
        self._ready.set()

    async def next(self, seconds: float) -> bytes | None:
        """Return all waiting events; empty after `seconds` without any; None at the end of the stream."""
        if not self._events and not self._feed.closed:
            try:
                # Not `wait_for`: before Python 3.12 it loses a cancellation that meets an event.
                async with asyncio.timeout(seconds):
                    await self._ready.wait()
            except TimeoutError:
                return b""
        self._ready.clear()
        if self._feed.closed and not self._events:
            return None
        lost = [encoded(GAP, {"missed": self._missed}, None)] if self._missed else []
        self._missed = 0
        content = b"".join([*lost, *self._events])
        self._events.clear()
        return content


def encoded(kind: str, data: Mapping[str, Any], event_id: str | None) -> bytes:
    """Return an event as encoded for the wire: JSON has no line feed, so it is one `data:` line."""
    identity = f"id: {event_id}\n" if event_id else ""
    return f"{identity}event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode("ascii")
