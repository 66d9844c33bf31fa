"""NTP (RFC 5905): requests, unanswered clients, and clock offsets.

A server's offset from its client needs three clocks, and the capture's own cancels out: the request holds the client's
time when it was sent, the answer the server's when it came and went.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import NtpSection, NtpServer
from ghost.pcap.protocols.bounded_counts import EventCounter, Tally

WAIT_NS = 2_000_000_000
"""A request that the capture did not follow for so long is not called unanswered."""
_MOST_OPEN = 10_000
_MOST_SERVERS = 1_000
_MOST_OFFSETS = 1_000
_MOST_LISTED = 20
_KISSES = frozenset(
    ("ACST", "AUTH", "AUTO", "BCST", "CRYP", "DENY", "DROP", "MCST", "NKEY", "NTSN", "RATE", "RMOT", "RSTR")
)
"""RFC 5905, 7.4, and RFC 8915, 5.7."""
_EPOCH = 2_208_988_800
_ERA = 1 << 32
_DAY_NS = 86_400_000_000_000

_Ends = tuple[int, int, int, int]


@dataclass(slots=True)
class _Server:
    requests: int = 0
    client: int | None = None
    last: tuple[int, int, int] | None = None
    """Frame, stratum and leap indicator of the last answer."""
    offsets: list[tuple[int, int]] = field(default_factory=list)
    """Frame and nanoseconds, the first ones."""
    frames: list[int] = field(default_factory=list)


class NtpTracker:
    def __init__(self) -> None:
        self._requests = self._responses = self._other = 0
        self._open: OrderedDict[tuple[_Ends, bytes], tuple[int, int]] = OrderedDict()
        """Client, its port, server, its port, the request's transmit timestamp: when and in which frame."""
        self._servers: dict[int, _Server] = {}
        self._kisses = Tally(100)
        self._kissed, self._unsynchronised = EventCounter(), EventCounter()
        self._largest: tuple[int, int] | None = None
        """Offset in ns and frame."""

    def packet(self, payload: bytes, ends: _Ends, frame: int, now: int) -> None:
        """`ends` are source, its port, destination, its port."""
        mode = payload[0] & 7 if payload else 0
        if len(payload) < 48 or mode not in (3, 4):
            self._other += 1
        elif mode == 3:
            self._requests += 1
            server = self._server(ends[2])
            server.requests += 1
            if server.client is None:
                server.client = ends[0]
            self._open[ends, payload[40:48]] = (now, frame)
            if len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        else:
            self._response(payload, ends, frame, now)

    def _response(self, payload: bytes, ends: _Ends, frame: int, now: int) -> None:
        self._responses += 1
        server = self._server(ends[0])
        leap, stratum = payload[0] >> 6, payload[1]
        server.last = max(server.last or (0, 0, 0), (frame, stratum, leap))
        asked = self._open.pop(((ends[2], ends[3], ends[0], ends[1]), payload[24:32]), None)
        code = payload[12:16].decode("latin-1")
        if stratum == 0 and code not in ("INIT", "STEP") and (code in _KISSES or leap != 3):
            self._kisses.add(code if code in _KISSES else "other")
            self._kissed.add(frame)
            return
        if _unsynchronised(stratum, leap):
            self._unsynchronised.add(frame)
            if len(server.frames) < L.SAMPLE_FRAMES:
                server.frames.append(frame)
            return
        if asked is None:
            return
        said, came, went = (_nanoseconds(payload[at : at + 8], now) for at in (24, 32, 40))
        sent, _ = asked
        if abs(said - sent) > _DAY_NS:
            return  # a random number stands for the time, as some clients prefer
        offset = ((came - sent) + (went - now)) // 2 - (said - sent)
        if len(server.offsets) < _MOST_OFFSETS:
            server.offsets.append((frame, offset))
        self._largest = _larger(self._largest, (offset, frame))

    def _server(self, address: int) -> _Server:
        server = self._servers.get(address)
        if server is None:
            server = _Server()
            if len(self._servers) < _MOST_SERVERS:
                self._servers[address] = server
        return server

    def section(self, address: Callable[[int], str], capture_end_ns: int) -> NtpSection | None:
        if not (self._requests or self._responses or self._other):
            return None
        unanswered: dict[int, list[int]] = {}
        for (ends, _), (now, frame) in self._open.items():
            if capture_end_ns - now >= WAIT_NS:
                unanswered.setdefault(ends[2], []).append(frame)
        rows = [
            self._row(address(number), server, unanswered.get(number, []), address)
            for number, server in self._servers.items()
        ]
        rows.sort(key=lambda row: (-row.unsynchronised, -row.unanswered, -row.requests, row.server))
        return NtpSection(
            requests=self._requests,
            responses=self._responses,
            unanswered_total=sum(map(len, unanswered.values())),
            servers=tuple(rows[:_MOST_LISTED]),
            kiss_codes=self._kisses.most(),
            kiss_frames=tuple(sorted(self._kissed.frames)),
            unsynchronised=self._unsynchronised.occurrences(),
            largest_offset_ms=None if self._largest is None else round(self._largest[0] / 1e6, 3),
            largest_offset_frame=None if self._largest is None else self._largest[1],
            other=self._other,
        )

    def _row(
        self, name: str, server: _Server, unanswered: list[int], address: Callable[[int], str]
    ) -> NtpServer:  # fmt: skip
        offsets = sorted(offset for _, offset in server.offsets)
        stratum, leap = server.last[1:] if server.last is not None else (None, 0)
        return NtpServer(
            server=name,
            requests=server.requests,
            unanswered=len(unanswered),
            stratum=stratum,
            unsynchronised=stratum is not None and _unsynchronised(stratum, leap),
            offset_ms=round(offsets[(len(offsets) - 1) // 2] / 1e6, 3) if offsets else None,
            frames=tuple(sorted(server.frames + unanswered)[: L.SAMPLE_FRAMES]),
            client=None if server.client is None else address(server.client),
        )


def _unsynchronised(stratum: int, leap: int) -> bool:
    return leap == 3 or stratum == 16


def _larger(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the larger by size; the earlier frame of equals."""
    return max(filter(None, (one, other)), key=lambda each: (abs(each[0]), -each[1]), default=None)


def _nanoseconds(timestamp: bytes, near: int) -> int:
    """Return nanoseconds since 1970, in the NTP era (136 years) closest to `near`."""
    seconds = int.from_bytes(timestamp[:4], "big") - _EPOCH
    seconds += round((near // 1_000_000_000 - seconds) / _ERA) * _ERA
    return seconds * 1_000_000_000 + (int.from_bytes(timestamp[4:], "big") * 1_000_000_000 >> 32)
