"""All TCP streams as columns, so that a rule asks one question of every stream at once.

A capture may hold a hundred thousand streams, nearly all healthy; a `Stream` is made only of those a finding shows.
Columns have the names of the fields of `model.Stream` and `model.Direction`. Those of a side have two columns: what
the client sent, and what the server sent. Where the model says None, a column of times holds NaN and others hold -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_queries import constant_once, narrow
from ghost.pcap.array_types import Array
from ghost.pcap.model import Occurrences, Stream
from ghost.pcap.protocols.tls_session_tickets import is_opening
from ghost.pcap.tcp.stream_view import StreamView

StreamRows: TypeAlias = NDArray[np.int64]
"""int64[n]: numbers of streams, which are rows of `Columns`."""
PerStream: TypeAlias = NDArray[np.int64]
"""int64[streams]: a number for each stream."""
PerSide: TypeAlias = NDArray[np.int64]
"""int64[streams, 2]: a number for each side, CLIENT and SERVER."""
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

CLIENT, SERVER = 0, 1

SIDE_FIELDS = {
    "packets": L.D_PACKETS,
    "payload_bytes": L.D_PAYLOAD,
    "data_segments": L.D_SEGMENTS,
    "rst_ttl": L.D_RST_TTL,
    "ttl_min": L.D_TTL_MIN,
    "ttl_max": L.D_TTL_MAX,
    "mss": L.D_MSS,
    "largest_segment": L.D_LARGEST,
    "largest_acked_segment": L.D_LARGEST_ACKED,
    "smallest_lost_segment": L.D_SMALLEST_LOST,
    "smallest_window": L.D_SMALLEST_WINDOW,
    "window_scale": L.D_OFFERED_SCALE,
    "largest_in_flight": L.D_IN_FLIGHT,
    "rst_after_fin": L.D_RST_AFTER_FIN,
    "longest_silence_ms": L.D_SILENCE,
    "last_ns": L.D_LAST_TIME,
    "first_lost_frame": L.D_FIRST_LOST,
    "last_lost_frame": L.D_LAST_LOST,
    "silent_from_ns": L.D_SILENT_FROM,
}
SIDE_EVENTS = {
    "retransmissions": L.E_RETRANSMISSION,
    "fast_retransmissions": L.E_FAST,
    "rto_retransmissions": L.E_RTO,
    "duplicate_acks": L.E_DUPLICATE_ACK,
    "acked_unseen": L.E_ACKED_UNSEEN,
    "lost_segments": L.E_LOST_SEGMENT,
    "zero_window": L.E_ZERO_WINDOW,
    "zero_window_probes": L.E_ZERO_WINDOW_PROBE,
    "window_full": L.E_WINDOW_FULL,
    "keep_alives": L.E_KEEP_ALIVE,
    "keep_alive_acks": L.E_KEEP_ALIVE_ACK,
    "lost_upstream": L.E_LOST_UPSTREAM,
    "lost_downstream": L.E_LOST_DOWNSTREAM,
    "needless": L.E_NEEDLESS,
    "capture_gaps": L.E_CAPTURE_GAP,
    "reordered": L.E_REORDERED,
    "syn": L.E_SYN,
    "syn_ack": L.E_SYN_ACK,
    "fin": L.E_FIN,
    "rst": L.E_RST,
    "data_after_rst": L.E_DATA_AFTER_RST,
    "copies": L.E_COPY,
    "copied_retransmissions": L.E_COPY_RETRANSMISSION,
    "copied_rto": L.E_COPY_RTO,
    "copied_acks": L.E_COPY_ACK,
    "doubtful_repeats": L.E_DOUBTFUL,
}
_COPIES_AMONG = {
    "data_segments": "copies", "retransmissions": "copied_retransmissions", "rto_retransmissions": "copied_rto",
    "duplicate_acks": "copied_acks",
}  # fmt: skip
"""What counts packets that are there twice, and the column that says how many. Rules ask what the ends did."""


@dataclass(frozen=True)
class Columns:
    """One row a stream."""

    streams: Sequence[Stream]
    addresses: Sequence[str]
    hosts: PerSide
    """Indexes into `addresses`: client, server."""
    ports: PerSide
    first_ns: PerStream
    last_ns: PerStream
    answered_syn_ns: PerStream
    """When the SYN was sent that was answered, or the last one; when it begins where there is none."""
    handshake: NDArray[np.str_]
    syn_retransmissions: PerStream
    syn_ack_retransmissions: PerStream
    syn_to_syn_ack_ms: Floats
    syn_ack_to_ack_ms: Floats
    request_ms: Floats
    """How long the client's last request had waited without any answer; NaN where it was answered."""
    request_bytes: PerStream
    """The size of that request; 0 where it was answered."""
    unprompted: PerStream
    notices: PerStream
    """Short messages of the server after a pause, while no request waited."""
    only_tickets: Mask
    """TLS 1.3: the client asked something, and behind the handshake the server sent nothing but session tickets."""
    closed_first: PerStream
    """Which side sent the first FIN; -1 where neither did."""
    greeting_ms: Floats
    unacked_bytes: PerStream
    server_names: Mapping[int, str]
    """TLS server name or HTTP host of the streams on which one was readable."""
    sides: Callable[[str], PerSide]
    """A column pair by the name of a field of `Direction`: client, server. Copies are left out of counts."""
    first_frames: Callable[[str], PerSide]
    """The frame of the first event of a kind, by the name of a field of `Direction`; 0 without one."""
    samples: Callable[[str], tuple[StreamRows, Floats]]
    """`response_ms` or `request_acked_ms`: the stream and the value of every sample."""

    def __len__(self) -> int:
        return len(self.first_ns)

    def host(self, number: int) -> str:
        return self.addresses[number]

    def lost(self) -> PerSide:
        return self.sides("lost_upstream") + self.sides("lost_downstream")

    def frames(self, row: int, name: str, side: int) -> tuple[int, ...]:
        """Of one kind of event of a side of a stream, by the name of a field of `Direction`."""
        if isinstance(self.streams, StreamView):
            return self.streams.frames(row, name, server=side == SERVER)
        stream = self.streams[row]
        occurrences: Occurrences = getattr((stream.client, stream.server)[side], name)
        return occurrences.frames

    def make(self, rows: Sequence[int] | StreamRows) -> list[Stream]:
        return [self.streams[int(row)] for row in rows]


def columns_of(streams: Sequence[Stream]) -> Columns:
    """Return the columns, from the engine's state or from a list of `Stream`."""
    return _of_view(streams) if isinstance(streams, StreamView) else _of_streams(streams)


# ------------------------------------------------------------------------------------------------ from the engine


def _of_view(view: StreamView) -> Columns:
    state = view.state
    turned = state.stream(L.S_CLIENT) > 0

    def of(column: int) -> PerStream:
        return constant_once(state.stream(column))

    def in_order(sides: PerSide) -> PerSide:
        """The client's side first."""
        return np.where(turned[:, None], sides[:, ::-1], sides)

    ends = in_order(np.stack([state.stream(L.S_LOW), state.stream(L.S_HIGH)], axis=1))
    numbers, hosts = np.unique(ends >> 16, return_inverse=True)

    def field(column: int) -> PerSide:
        return in_order(state.sides(column))

    def sides(name: str) -> PerSide:
        if name in SIDE_EVENTS:
            return field(L.D_EVENTS + SIDE_EVENTS[name])
        found = field(SIDE_FIELDS[name])
        return found // 1_000_000 if name.endswith("_ms") else found

    def samples(name: str) -> tuple[StreamRows, Floats]:
        kind = {"response_ms": L.SAMPLE_RESPONSE, "request_acked_ms": L.SAMPLE_REQUEST_ACKED}[name]
        rows, values = view.samples(kind)
        return rows, values / 1e6

    def first_frames(name: str) -> PerSide:
        return in_order(view.first_frames(SIDE_EVENTS[name]))

    following, acked = field(L.D_NEXT), field(L.D_ACK)[:, ::-1]
    unacked = np.where((following >= 0) & (acked >= 0), (following - acked) & 0xFFFFFFFF, 0)
    unacked[unacked >= 0x80000000] = 0
    waiting = of(L.S_REQUEST_OPEN) > 0
    over = (sides("fin")[:, SERVER] > 0) | (of(L.S_FIRST_RST) > 0)  # who closes its side may still be answered
    until = np.where(over, of(L.S_LAST_TIME), view.capture_end_ns)
    wait = np.maximum(until - of(L.S_REQUEST_TIME), 0) / 1e6
    return Columns(
        streams=view,
        addresses=_Addresses(numbers, view.address),
        hosts=hosts.reshape(-1, 2).astype(np.int64),
        ports=ends & 0xFFFF,
        first_ns=of(L.S_FIRST_TIME),
        last_ns=of(L.S_LAST_TIME),
        answered_syn_ns=np.maximum(of(L.S_CLIENT_SYN_TIME), of(L.S_FIRST_TIME)),
        handshake=constant_once(view.handshakes()),
        syn_retransmissions=of(L.S_SYN_REPEATS),
        syn_ack_retransmissions=of(L.S_SYN_ACK_REPEATS),
        syn_to_syn_ack_ms=constant_once(_times(of(L.S_TO_SERVER))),
        syn_ack_to_ack_ms=constant_once(_times(of(L.S_TO_CLIENT))),
        request_ms=constant_once(np.where(waiting, wait, np.nan)),
        request_bytes=constant_once(np.where(waiting, (of(L.S_REQUEST_END) - of(L.S_REQUEST_START)) & 0xFFFFFFFF, 0)),
        unprompted=of(L.S_UNPROMPTED),
        notices=of(L.S_NOTICES),
        only_tickets=waiting & (of(L.S_ASKED) > 0) & is_opening(of(L.S_TLS)),
        closed_first=constant_once(_earlier(first_frames("fin"))),
        first_frames=cache(first_frames),
        greeting_ms=constant_once(_times(of(L.S_GREETING))),
        unacked_bytes=constant_once(unacked),
        server_names=view.server_names,
        sides=_kept_narrow(_without_duplicates(sides)),
        samples=cache(samples),
    )


class _Addresses(Sequence[str]):
    """Texts made when they are asked for: a flood comes from a million addresses."""

    def __init__(self, numbers: Array, text: Callable[[int], str]) -> None:
        self._numbers, self._text = numbers, text

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> str:  # type: ignore[override]  # of single ones
        return self._text(int(self._numbers[index]))


def _kept_narrow(sides: Callable[[str], PerSide]) -> Callable[[str], PerSide]:
    """Keep what was asked for in as few bytes as it takes."""
    kept = cache(lambda name: narrow(sides(name)))
    return lambda name: kept(name).astype(np.int64, copy=False)


def _without_duplicates(sides: Callable[[str], PerSide]) -> Callable[[str], PerSide]:
    def counted(name: str) -> PerSide:
        copies = _COPIES_AMONG.get(name)
        return sides(name) if copies is None else sides(name) - sides(copies)

    return counted


def _earlier(frames: Array) -> Array:
    """Return the side whose frame comes first, among those with one."""
    known = np.where(frames > 0, frames, np.iinfo(np.int64).max)
    return np.where((frames > 0).any(axis=1), known.argmin(axis=1), -1)


def _times(nanoseconds: Array) -> Floats:
    return np.where(nanoseconds >= 0, nanoseconds / 1e6, np.nan)


# -------------------------------------------------------------------------------------------- from streams at hand


def _of_streams(streams: Sequence[Stream]) -> Columns:
    pairs = [(stream.client, stream.server) for stream in streams]
    texts = sorted({side.endpoint.address for pair in pairs for side in pair})
    number = {text: n for n, text in enumerate(texts)}

    def numbers(values: list[int]) -> Array:
        return np.array(values, np.int64)

    def times(values: list[float | None]) -> Floats:
        return np.array([np.nan if value is None else value for value in values], np.float64)

    def first_frames(name: str) -> PerSide:
        return numbers([next(iter(getattr(side, name).frames), 0) for pair in pairs for side in pair]).reshape(-1, 2)

    def sides(name: str) -> PerSide:
        return numbers([_plain(getattr(side, name)) for pair in pairs for side in pair]).reshape(-1, 2)

    def samples(name: str) -> tuple[StreamRows, Floats]:
        # Single samples are not known; the middle and the longest stand for them.
        found = [
            (row, value)
            for row, stream in enumerate(streams)
            if (stats := getattr(stream, name)) is not None
            for value in [stats.median] * (stats.count - 1) + [stats.max]
        ]
        return numbers([row for row, _ in found]), times([value for _, value in found])

    return Columns(
        streams=streams,
        addresses=texts,
        hosts=numbers([number[side.endpoint.address] for pair in pairs for side in pair]).reshape(-1, 2),
        ports=numbers([side.endpoint.port for pair in pairs for side in pair]).reshape(-1, 2),
        first_ns=numbers([stream.first_ns for stream in streams]),
        last_ns=numbers([stream.last_ns for stream in streams]),
        # A SYN is repeated after 1, 3, 7 s (RFC 6298).
        answered_syn_ns=numbers([s.first_ns + (2**s.syn_retransmissions - 1) * 1_000_000_000 for s in streams]),
        handshake=np.array([stream.handshake for stream in streams], np.str_),
        syn_retransmissions=numbers([stream.syn_retransmissions for stream in streams]),
        syn_ack_retransmissions=numbers([stream.syn_ack_retransmissions for stream in streams]),
        syn_to_syn_ack_ms=times([stream.syn_to_syn_ack_ms for stream in streams]),
        syn_ack_to_ack_ms=times([stream.syn_ack_to_ack_ms for stream in streams]),
        request_ms=times([stream.unanswered_request_ms for stream in streams]),
        request_bytes=numbers([stream.unanswered_request_bytes for stream in streams]),
        unprompted=numbers([stream.unprompted for stream in streams]),
        # A stream does not tell these.
        notices=numbers([0 for _ in streams]),
        only_tickets=np.zeros(len(streams), np.bool_),
        closed_first=_earlier(first_frames("fin")),
        first_frames=cache(first_frames),
        greeting_ms=times([stream.greeting_ms for stream in streams]),
        unacked_bytes=sides("unacked_bytes"),
        server_names={row: stream.server_name for row, stream in enumerate(streams) if stream.server_name},
        sides=cache(_without_duplicates(sides)),
        samples=cache(samples),
    )


def _plain(value: object) -> int:
    if isinstance(value, Occurrences):
        return value.count
    return -1 if value is None else int(value)  # type: ignore[call-overload]
