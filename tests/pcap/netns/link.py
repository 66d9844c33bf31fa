"""A user-space link between two TAP devices: delay, jitter, loss, reordering, copies, bit errors, a rate and a queue.

Kernels without netem get all of it from this: each way has its own `Impairment`, one seeded generator decides.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import random
import select
import signal
import time
import types
from dataclasses import dataclass, field
from pathlib import Path

from tests.pcap.netns.space import die_with_parent

_FRAME = 65536
_MOST_WAITING = 20_000


@dataclass(frozen=True)
class Impairment:
    """What one way of a link does to frames. Probabilities are per frame."""

    delay_ms: float = 2.0
    jitter_ms: float = 0.0  # frames keep their order
    loss: float = 0.0
    burst: float = 1.0  # mean number of frames lost in a row
    reorder: float = 0.0
    reorder_ms: float = 2.0  # how much longer a reordered frame takes
    duplicate: float = 0.0
    corrupt: float = 0.0  # one bit of the transport's payload is turned over
    rate_mbit: float = 0.0  # 0: unlimited
    queue_bytes: int = 10_000_000
    mtu: int = 65535  # larger IP packets vanish
    outages: tuple[tuple[float, float], ...] = ()  # seconds since the first frame with payload, begin and end
    spare: int = 200  # frames below this size are never impaired by chance

    def __post_init__(self) -> None:
        chances = (self.loss, self.reorder, self.duplicate, self.corrupt)
        if not all(0 <= chance <= 1 for chance in chances) or self.burst < 1 or self.delay_ms < 0:
            raise ValueError(f"no such link: {self}")


@dataclass
class _Way:
    source: int
    sink: int
    does: Impairment
    free_at: float = 0.0  # when the queue before the bottleneck is empty
    last_due: float = 0.0  # frames keep their order
    losing: bool = False
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("passed", "lost", "dropped", "late", "copied", "damaged"), 0)
    )


class _Link:
    def __init__(self, ways: list[_Way], seed: int) -> None:
        self._ways = ways
        self._dice = random.Random(seed)
        self._due: list[tuple[float, int, int, bytes]] = []
        self._tick = 0
        self._began: float | None = None

    def run(self, until: float) -> None:
        sources = {way.source: way for way in self._ways}
        while (now := time.monotonic()) < until:
            while self._due and self._due[0][0] <= now:
                _, _, sink, frame = heapq.heappop(self._due)
                _put(sink, frame)
            wait = min(self._due[0][0] - now if self._due else 1.0, 1.0)
            ready, _, _ = select.select(list(sources), [], [], max(wait, 0))
            for source in ready:
                self._drain(sources[source])

    def _drain(self, way: _Way) -> None:
        for _ in range(64):
            try:
                frame = os.read(way.source, _FRAME)
            except (BlockingIOError, OSError):
                return
            self._take(way, frame, time.monotonic())

    def _take(self, way: _Way, frame: bytes, now: float) -> None:
        does, dice = way.does, self._dice
        if len(frame) - 14 > does.mtu or self._out(does, frame, now):
            way.counts["lost"] += 1
            return
        impaired = len(frame) >= does.spare and frame[12:14] != b"\x08\x06"
        if impaired and self._lost(way):
            way.counts["lost"] += 1
            return
        leaves = now
        if does.rate_mbit:
            backlog = max(way.free_at - now, 0.0) * does.rate_mbit * 125_000
            if backlog + len(frame) > does.queue_bytes or len(self._due) > _MOST_WAITING:
                way.counts["dropped"] += 1
                return
            way.free_at = max(way.free_at, now) + len(frame) / (does.rate_mbit * 125_000)
            leaves = way.free_at
        due = leaves + (does.delay_ms + dice.random() * does.jitter_ms) / 1000
        if impaired and dice.random() < does.reorder:
            way.counts["late"] += 1
            self._schedule(due + does.reorder_ms / 1000, way, frame)
            return
        due = way.last_due = max(due, way.last_due)
        if impaired and dice.random() < does.corrupt:
            way.counts["damaged"] += 1
            frame = _turned_over(frame, dice)
        self._schedule(due, way, frame)
        if impaired and dice.random() < does.duplicate:
            way.counts["copied"] += 1
            self._schedule(due + dice.random() * 0.0005, way, frame)

    def _out(self, does: Impairment, frame: bytes, now: float) -> bool:
        if not does.outages:
            return False
        if self._began is None and len(frame) > 120:
            self._began = now
        since = now - (self._began if self._began is not None else now)
        return any(begin <= since < end for begin, end in does.outages)

    def _lost(self, way: _Way) -> bool:
        """Gilbert's two states: once losing, it goes on for `burst` frames in the mean."""
        does = way.does
        if not does.loss:
            return False
        stay = 1 - 1 / does.burst
        begin = does.loss / does.burst / max(1 - does.loss, 1e-9)
        way.losing = self._dice.random() < (stay if way.losing else begin)
        return way.losing

    def _schedule(self, due: float, way: _Way, frame: bytes) -> None:
        self._tick += 1
        way.counts["passed"] += 1
        heapq.heappush(self._due, (due, self._tick, way.sink, frame))


def _put(sink: int, frame: bytes) -> None:
    try:
        os.write(sink, frame)
    except OSError:
        return  # the device is down or full: the frame is lost, as on a wire


def _turned_over(frame: bytes, dice: random.Random) -> bytes:
    if len(frame) < 80:
        return frame
    at = dice.randrange(60, len(frame))
    return frame[:at] + bytes([frame[at] ^ 1 << dice.randrange(8)]) + frame[at + 1 :]


def _end(number: int, frame: types.FrameType | None) -> None:
    raise SystemExit(0)


def start_link(one: int, other: int, there: Impairment, back: Impairment, seed: int, seconds: float, told: Path) -> int:
    """A child process that carries frames for at most `seconds`, and writes to `told` what it did with them.

    `there` is from `one` to `other`. Returns the child's id.
    """
    child = os.fork()
    if child:
        return child
    try:
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _end)
        ways = [_Way(one, other, there), _Way(other, one, back)]
        with contextlib.suppress(SystemExit):
            _Link(ways, seed).run(time.monotonic() + seconds)
        told.write_text(json.dumps({"there": ways[0].counts, "back": ways[1].counts}))
    finally:
        os._exit(0)
