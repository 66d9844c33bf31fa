"""What the mind announces, passed on to every client of `/events`.

Announcements come from threads and are handed to the loop; everything else here runs in the loop. Each is written down
once as the bytes all clients get. A client that reads too slowly loses the oldest that wait for it, and is told so; one
that comes back with `Last-Event-ID` gets what it missed, as far as it is still kept.
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
"""The kind of what a client gets when events were lost: it should read again what it shows."""


class Feed:
    def __init__(self, run: str) -> None:
        """`run` tells this process's events from those of one before it."""
        self._run = run
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=EVENTS_KEPT)
        self._followers: set[Follower] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[tuple[str, float, Mapping[str, Any]]] = deque(maxlen=EVENTS_KEPT)
        self._lock = threading.Lock()
        self.closed = False

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """From here on announcements go out; those made before it wait."""
        self._loop = loop
        self._hand_over()

    def publish(self, kind: str, ts: float, data: Mapping[str, Any]) -> None:
        """From any thread. Never waits."""
        with self._lock:
            first = not self._waiting
            self._waiting.append((kind, ts, data))
        if first and self._loop is not None and not self.closed:
            try:
                self._loop.call_soon_threadsafe(self._hand_over)
            except RuntimeError:
                self.closed = True  # the loop has ended: nobody listens any more

    def follow(self, last_event_id: str | None) -> Follower | None:
        """None where as many follow already as may, or where the server stops."""
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
        """Ends every client's stream, and takes no new one."""
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
            content = written(kind, {"ts": ts, **data}, f"{self._run}-{self._number}")
            self._kept.append((self._number, content))
            for follower in self._followers:
                follower.give(content)

    def _missed(self, last_event_id: str | None) -> list[bytes]:
        if last_event_id is None:
            return []
        run, _, number = last_event_id.rpartition("-")
        oldest = self._kept[0][0] if self._kept else self._number + 1
        if run == self._run and number.isdecimal() and len(number) < 16 and oldest - 1 <= int(number) <= self._number:
            return [content for kept, content in self._kept if kept > int(number)]
        return [written(GAP, {"missed": None}, None)]


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
        """What waits, all at once; empty after `seconds` without any; None when the stream is at its end."""
        if not self._events and not self._feed.closed:
            try:
                await asyncio.wait_for(self._ready.wait(), seconds)
            except TimeoutError:
                return b""
        self._ready.clear()
        if self._feed.closed and not self._events:
            return None
        lost = [written(GAP, {"missed": self._missed}, None)] if self._missed else []
        self._missed = 0
        content = b"".join([*lost, *self._events])
        self._events.clear()
        return content


def written(kind: str, data: Mapping[str, Any], event_id: str | None) -> bytes:
    """An event as it stands on the wire: JSON holds no line feed, so it is one `data:` line."""
    identity = f"id: {event_id}\n" if event_id else ""
    return f"{identity}event: {kind}\ndata: {json.dumps(data, default=str)}\n\n".encode("ascii")
