"""QUIC (RFC 9000), cleartext parts only: connection attempts by version, and whether they are answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import QuicSection, QuicUnanswered
from ghost.pcap.protocols import quic_initial
from ghost.pcap.protocols.bounded_counts import EventCounter, Tally
from ghost.pcap.protocols.quic_initial import LongHeader, read_long_header
from ghost.pcap.protocols.tls_messages import read_client_hello

WAIT_NS = 3_000_000_000
"""An attempt that the capture did not follow for so long is not called unanswered."""
_MOST_ATTEMPTS = 50_000
_MOST_READ = 2_000
"""Connections whose server name is read: decrypting costs."""
_MOST_PACKETS_READ = 4
"""Of one connection."""
_MOST_LISTED = 50
_MOST_NAMES = 20
_VERSIONS = {1: "1", 0x6B3343CF: "2"}


@dataclass(slots=True)
class _Attempt:
    """One client port to one server port."""

    first: int
    destination: bytes
    """Connection id the client first wrote to."""
    packets: int = 0
    frames: list[int] = field(default_factory=list)
    answered: bool = False
    pieces: dict[int, bytes] | None = None
    """Of the client's hello; None where it was read or is not to be."""
    read: int = 0


class QuicTracker:
    def __init__(self) -> None:
        self._initials = 0
        self._versions = Tally(100)
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        """By the endpoints of client and server."""
        self._negotiated, self._retried = EventCounter(), EventCounter()
        self._server_names = Tally(10_000)
        self._read = 0

    def packet(self, datagram: bytes, ends: tuple[int, int], frame: int, now: int) -> None:
        """`ends` are source and destination, address id << 16 | port each."""
        header = read_long_header(datagram)
        if header is None:
            return
        kind = header.kind
        if kind == "version_negotiation":
            self._negotiated.add(frame)
        else:
            self._versions.add(_version_name(header.version))
            self._initials += kind == "initial"
            if kind == "retry":
                self._retried.add(frame)
        answered = self._attempts.get((ends[1], ends[0]))
        if answered is not None:
            answered.answered = True
            if kind == "retry":
                # The next Initial is written to the id that the server chose, and so are its keys.
                answered.destination = header.source
        elif kind == "initial" and not (ends[0] & 0xFFFF == 443 and ends[1] & 0xFFFF != 443):
            self._asked(ends, datagram, header, frame, now)

    def _asked(self, ends: tuple[int, int], datagram: bytes, header: LongHeader, frame: int, now: int) -> None:
        attempt = self._attempts.get(ends)
        if attempt is None:
            if len(self._attempts) >= _MOST_ATTEMPTS:
                return
            attempt = self._attempts[ends] = _Attempt(now, header.destination)
            if self._read < _MOST_READ and quic_initial.available():
                self._read += 1
                attempt.pieces = {}
        attempt.packets += 1
        if len(attempt.frames) < L.SAMPLE_FRAMES:
            attempt.frames.append(frame)
        if attempt.pieces is None:
            return
        attempt.read += 1
        for offset, piece in quic_initial.crypto_frames(datagram, header, attempt.destination):
            attempt.pieces[offset] = max(piece, attempt.pieces.get(offset, b""), key=len)
        body = quic_initial.joined(attempt.pieces)
        if body is not None:
            hello = read_client_hello(body)
            if hello is not None and hello.server_name is not None:
                self._server_names.add(hello.server_name.lower())
        if body is not None or attempt.read >= _MOST_PACKETS_READ:
            attempt.pieces = None

    def section(self, address: Callable[[int], str], capture_end_ns: int) -> QuicSection | None:
        if not (self._initials or self._negotiated.count or self._retried.count):
            return None
        silent: dict[tuple[int, int], list[_Attempt]] = {}
        answered: Counter[tuple[int, int]] = Counter()
        for (client, server), attempt in self._attempts.items():
            answered[client >> 16, server] += attempt.answered
            if not attempt.answered and capture_end_ns - attempt.first >= WAIT_NS:
                silent.setdefault((client >> 16, server), []).append(attempt)
        rows = [
            QuicUnanswered(
                client=address(client),
                server=address(server >> 16),
                port=server & 0xFFFF,
                attempts=len(attempts),
                packets=sum(attempt.packets for attempt in attempts),
                frames=tuple(sorted(frame for attempt in attempts for frame in attempt.frames)[: L.SAMPLE_FRAMES]),
                answered=answered[client, server],
            )
            for (client, server), attempts in silent.items()
        ]
        rows.sort(key=lambda row: (-row.attempts, row.frames))
        return QuicSection(
            initials=self._initials,
            connections=len(self._attempts),
            versions=self._versions.most(),
            unanswered=tuple(rows[:_MOST_LISTED]),
            unanswered_total=sum(map(len, silent.values())),
            version_negotiation=self._negotiated.occurrences(),
            retry=self._retried.occurrences(),
            server_names=self._server_names.most(_MOST_NAMES),
        )


def _version_name(version: int) -> str:
    if version in _VERSIONS:
        return _VERSIONS[version]
    if version >> 8 == 0xFF0000:
        return f"draft-{version & 0xFF}"
    return f"0x{version:08x}"
