"""TCP streams as `model` values, made from columns on access. Reads state, changes none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast, overload

import numpy as np
from numpy.typing import NDArray

from ghost.pcap.array_types import Array
from ghost.pcap.layout import (
    D_ACK,
    D_EVENTS,
    D_FIRST_FRAME,
    D_FIRST_TIME,
    D_IN_FLIGHT,
    D_LARGEST,
    D_LARGEST_ACKED,
    D_LARGEST_LOST,
    D_LAST_TIME,
    D_MSS,
    D_NEXT,
    D_OFFERED_SCALE,
    D_PACKETS,
    D_PAYLOAD,
    D_RST_AFTER_FIN,
    D_RST_TTL,
    D_SACK,
    D_SEGMENTS,
    D_SILENCE,
    D_SMALLEST_LOST,
    D_SMALLEST_WINDOW,
    D_TTL,
    D_TTL_MAX,
    D_TTL_MIN,
    E_ACK_RTT,
    E_ACKED_UNSEEN,
    E_CAPTURE_GAP,
    E_COPY,
    E_COPY_ACK,
    E_COPY_RETRANSMISSION,
    E_COPY_RTO,
    E_DATA_AFTER_RST,
    E_DOUBTFUL,
    E_DUPLICATE_ACK,
    E_FAST,
    E_FIN,
    E_KEEP_ALIVE,
    E_KEEP_ALIVE_ACK,
    E_LOST_DOWNSTREAM,
    E_LOST_SEGMENT,
    E_LOST_UPSTREAM,
    E_NEEDLESS,
    E_OUT_OF_ORDER,
    E_REORDERED,
    E_RETRANSMISSION,
    E_REUSED_PORTS,
    E_RST,
    E_RTO,
    E_SPURIOUS,
    E_SYN,
    E_SYN_ACK,
    E_WINDOW_FULL,
    E_WINDOW_UPDATE,
    E_ZERO_WINDOW,
    E_ZERO_WINDOW_PROBE,
    ENCAPSULATIONS,
    EVENTS,
    S_CLIENT,
    S_COMPLETED,
    S_ENCAPSULATION,
    S_FIRST_FRAME,
    S_FIRST_RST,
    S_FIRST_TIME,
    S_GREETING,
    S_HIGH,
    S_KNOWN_BY,
    S_LAST_FRAME,
    S_LAST_TIME,
    S_LOW,
    S_REQUEST_END,
    S_REQUEST_OPEN,
    S_REQUEST_START,
    S_REQUEST_TIME,
    S_SYN_ACK_REPEATS,
    S_SYN_REPEATS,
    S_TO_CLIENT,
    S_TO_SERVER,
    S_UNPROMPTED,
    S_WIRE_BYTES,
    SAMPLE_DELTA,
    SAMPLE_REQUEST_ACKED,
    SAMPLE_RESPONSE,
    SAMPLE_RTT,
    SAMPLES,
)
from ghost.pcap.model import ConnectionStats, Direction, Endpoint, Occurrences, Statistics, Stream, TcpTotals
from ghost.pcap.sample_statistics import Samples, statistics
from ghost.pcap.tcp.evidence_frames import Evidence

KNOWN_BY: tuple[Literal["syn", "syn_ack", "port", "first_packet"], ...] = ("syn", "syn_ack", "port", "first_packet")
_SIDE_NAMES: tuple[Literal["client", "server"], ...] = ("client", "server")

Handshake = Literal["completed", "unanswered", "refused", "reset", "incomplete", "not_seen"]
_HANDSHAKES: tuple[Handshake, ...] = (
    "completed", "incomplete", "not_seen", "reset", "incomplete", "refused", "incomplete", "unanswered",
)  # fmt: skip

_FLAGS = {
    "retransmissions": E_RETRANSMISSION,
    "fast_retransmissions": E_FAST,
    "spurious_retransmissions": E_SPURIOUS,
    "rto_retransmissions": E_RTO,
    "out_of_order": E_OUT_OF_ORDER,
    "lost_segments": E_LOST_SEGMENT,
    "acked_unseen": E_ACKED_UNSEEN,
    "duplicate_acks": E_DUPLICATE_ACK,
    "zero_window": E_ZERO_WINDOW,
    "zero_window_probes": E_ZERO_WINDOW_PROBE,
    "window_full": E_WINDOW_FULL,
    "window_updates": E_WINDOW_UPDATE,
    "keep_alives": E_KEEP_ALIVE,
    "keep_alive_acks": E_KEEP_ALIVE_ACK,
    "lost_upstream": E_LOST_UPSTREAM,
    "lost_downstream": E_LOST_DOWNSTREAM,
    "needless": E_NEEDLESS,
    "reordered": E_REORDERED,
    "syn": E_SYN,
    "syn_ack": E_SYN_ACK,
    "fin": E_FIN,
    "rst": E_RST,
}
_TOTALS = {**_FLAGS, "reused_ports": E_REUSED_PORTS, "ack_rtt_samples": E_ACK_RTT}
_OCCURRENCES = {
    **_FLAGS,
    "capture_gaps": E_CAPTURE_GAP,
    "data_after_rst": E_DATA_AFTER_RST,
    "copies": E_COPY,
    "copied_retransmissions": E_COPY_RETRANSMISSION,
    "copied_rto": E_COPY_RTO,
    "copied_acks": E_COPY_ACK,
    "doubtful_repeats": E_DOUBTFUL,
}
assert max(_OCCURRENCES.values()) < EVENTS


class StreamView(Sequence[Stream]):
    """Streams made from columns when they are asked for."""

    def __init__(
        self,
        streams: Array,
        sides: Array,
        evidence: Evidence,
        samples: Samples,
        names: Mapping[int, str],
        address: Callable[[int], str],
        capture_end_ns: int,
        order: Array | None = None,
    ) -> None:
        self._streams, self._sides, self._evidence, self._samples = streams, sides, evidence, samples
        self._names, self._address, self._end = names, address, capture_end_ns
        self._order = np.arange(len(streams)) if order is None else order
        self._handshakes: NDArray[np.str_] | None = None

    def select(self, order: Array) -> StreamView:
        return StreamView(
            self._streams, self._sides, self._evidence, self._samples, self._names, self._address, self._end, order
        )

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Stream: ...
    @overload
    def __getitem__(self, index: slice) -> StreamView: ...
    def __getitem__(self, index: int | slice) -> Stream | StreamView:
        if isinstance(index, slice):
            return self.select(self._order[index])
        return self._stream(int(self._order[index]))

    # --------------------------------------------------------------------------------- all at once, for rules

    @property
    def rows(self) -> tuple[Array, Array]:
        """State of these streams, and of their two sides each, in the fields that `layout` names."""
        if len(self._order) == len(self._streams):
            return self._streams, self._sides
        return self._streams[self._order], self._sides[self._order]

    @property
    def capture_end_ns(self) -> int:
        """The latest timestamp of the capture."""
        return self._end

    def address(self, number: int) -> str:
        """The text of an address id."""
        return self._address(number)

    def first_fins(self) -> Array:
        """The frame of the first FIN of each side of these streams; 0 without one."""
        first = self._evidence.first(E_FIN, 2 * len(self._streams)).reshape(-1, 2)
        return first if len(self._order) == len(self._streams) else first[self._order]

    def samples(self, kind: int) -> tuple[Array, Array]:
        """Every single sample of a kind of the server's that is held: the number of its stream, and its nanoseconds."""
        sides, values = self._samples.of_kind(kind, SAMPLES)
        # Where it was only a guess who the client is, there are samples of both.
        mine = self._streams[sides // 2, S_CLIENT] != sides % 2
        return sides[mine] // 2, values[mine]

    # ------------------------------------------------------------------------------------------------- one stream

    def frames(self, index: int, name: str, *, server: bool) -> tuple[int, ...]:
        """What `Direction` says of the frames of one kind of event, without making the stream."""
        number = int(self._order[index])
        side = number * 2 + (int(self._streams[number, S_CLIENT]) ^ server)
        return self._evidence.of(side, _OCCURRENCES[name])

    def _stream(self, number: int) -> Stream:
        row = self._streams[number].tolist()
        client = row[S_CLIENT]
        sides = self._sides[number].tolist()
        ours, theirs = sides[client], sides[1 - client]
        endpoints = (row[S_LOW], row[S_HIGH])
        server_key = (number * 2 + 1 - client) * SAMPLES
        wait = None
        fins = ours[D_EVENTS + E_FIN], theirs[D_EVENTS + E_FIN]
        teardown: Literal["fin", "half_closed", "rst", "open"]
        if row[S_FIRST_RST] and not all(fins):
            teardown = "rst"
        else:
            teardown = "fin" if all(fins) else "half_closed" if any(fins) else "open"
        if row[S_REQUEST_OPEN]:
            until = self._end if teardown == "open" else row[S_LAST_TIME]
            wait = max(until - row[S_REQUEST_TIME], 0) / 1e6
        return Stream(
            stream_id=number,
            client=self._direction(number * 2 + client, ours, theirs, endpoints[client]),
            server=self._direction(number * 2 + 1 - client, theirs, ours, endpoints[1 - client]),
            client_known_by=KNOWN_BY[row[S_KNOWN_BY]],
            first_ns=row[S_FIRST_TIME],
            last_ns=row[S_LAST_TIME],
            first_frame=row[S_FIRST_FRAME],
            last_frame=row[S_LAST_FRAME],
            wire_bytes=row[S_WIRE_BYTES],
            handshake=self._handshake_of(number),
            syn_retransmissions=row[S_SYN_REPEATS],
            syn_ack_retransmissions=row[S_SYN_ACK_REPEATS],
            syn_to_syn_ack_ms=_ms(row[S_TO_SERVER]),
            syn_ack_to_ack_ms=_ms(row[S_TO_CLIENT]),
            response_ms=self._samples.of(server_key + SAMPLE_RESPONSE),
            request_acked_ms=self._samples.of(server_key + SAMPLE_REQUEST_ACKED),
            unanswered_request_ms=wait,
            unanswered_request_bytes=(row[S_REQUEST_END] - row[S_REQUEST_START]) & 0xFFFFFFFF
            if wait is not None
            else 0,
            unprompted=row[S_UNPROMPTED],
            greeting_ms=_ms(row[S_GREETING]),
            teardown=teardown,
            rst_from=_rst_from(row, sides, client),
            server_name=self._names.get(number),
            encapsulation=tuple(name for bit, name in enumerate(ENCAPSULATIONS) if row[S_ENCAPSULATION] >> bit & 1),
        )

    def _handshake_of(self, number: int) -> Handshake:
        if self._handshakes is None:
            self._handshakes = self.handshakes()
        return cast(Handshake, str(self._handshakes[number]))

    def _direction(self, side: int, mine: list[int], peer: list[int], endpoint: int) -> Direction:
        sent = mine[D_PACKETS] > 0
        unacked = (mine[D_NEXT] - peer[D_ACK]) & 0xFFFFFFFF if mine[D_NEXT] >= 0 and peer[D_ACK] >= 0 else 0
        return Direction(
            endpoint=Endpoint(self._address(endpoint >> 16), endpoint & 0xFFFF),
            packets=mine[D_PACKETS],
            payload_bytes=mine[D_PAYLOAD],
            data_segments=mine[D_SEGMENTS],
            first_ns=mine[D_FIRST_TIME] if sent else None,
            last_ns=mine[D_LAST_TIME] if sent else None,
            first_frame=mine[D_FIRST_FRAME],
            rst_after_fin=bool(mine[D_RST_AFTER_FIN]),
            ttl=_known(mine[D_TTL] if mine[D_TTL] >= 0 else mine[D_RST_TTL]),
            ttl_min=_known(mine[D_TTL_MIN]),
            ttl_max=_known(mine[D_TTL_MAX]),
            rst_ttl=_known(mine[D_RST_TTL]),
            mss=mine[D_MSS] or None,
            window_scale=_known(mine[D_OFFERED_SCALE]),
            sack_permitted=bool(mine[D_SACK]),
            smallest_window=_known(mine[D_SMALLEST_WINDOW]),
            largest_in_flight=mine[D_IN_FLIGHT],
            ack_rtt_ms=self._samples.of(side * SAMPLES + SAMPLE_RTT),
            delta_ms=self._samples.of(side * SAMPLES + SAMPLE_DELTA),
            largest_segment=mine[D_LARGEST],
            largest_acked_segment=mine[D_LARGEST_ACKED],
            largest_lost_segment=mine[D_LARGEST_LOST],
            smallest_lost_segment=mine[D_SMALLEST_LOST],
            unacked_bytes=unacked if unacked < 0x80000000 else 0,
            longest_silence_ms=mine[D_SILENCE] / 1e6,
            **{
                name: Occurrences(mine[D_EVENTS + kind], self._evidence.of(side, kind))
                if mine[D_EVENTS + kind]
                else _NEVER
                for name, kind in _OCCURRENCES.items()
            },
        )

    # ------------------------------------------------------------------------------------------------ all of them

    def handshakes(self) -> NDArray[np.str_]:
        """`Stream.handshake` of every stream, by columns."""
        every = np.arange(len(self._streams))
        client = self._streams[:, S_CLIENT]

        def at(side: Array, field: int) -> NDArray[np.bool_]:
            positive: NDArray[np.bool_] = self._sides[every, side, field] > 0
            return positive

        answered, asked = at(1 - client, D_EVENTS + E_SYN_ACK), at(client, D_EVENTS + E_SYN)
        server_rst = at(1 - client, D_EVENTS + E_RST)
        rst = server_rst | at(client, D_EVENTS + E_RST)
        states = [
            self._streams[:, S_COMPLETED] > 0,
            ~asked & answered,
            ~asked,
            answered & rst,
            answered,
            server_rst,
            at(1 - client, D_PACKETS),
        ]
        return np.select(states, [np.str_(name) for name in _HANDSHAKES[:-1]], np.str_(_HANDSHAKES[-1]))

    def totals(self) -> TcpTotals:
        events = self._sides[:, :, D_EVENTS:].sum(axis=(0, 1))
        return TcpTotals(
            packets=int(self._sides[:, :, D_PACKETS].sum()),
            payload_bytes=int(self._sides[:, :, D_PAYLOAD].sum()),
            **{name: int(events[kind]) for name, kind in _TOTALS.items()},
        )

    def connections(self) -> ConnectionStats:
        events = self._sides[:, :, D_EVENTS:]
        handshakes = self.handshakes()
        fins = (events[:, :, E_FIN] > 0).sum(axis=1)
        reset = (events[:, :, E_RST] > 0).any(axis=1) & (fins < 2)
        return ConnectionStats(
            syn_sent=int(events[:, :, E_SYN].sum()),
            syn_ack_received=int(events[:, :, E_SYN_ACK].sum()),
            connections_attempted=int((events[:, :, E_SYN] > 0).any(axis=1).sum()),
            handshakes_completed=int((handshakes == "completed").sum()),
            syn_retransmitted=int(self._streams[:, S_SYN_REPEATS].sum()),
            refused=int((handshakes == "refused").sum()),
            unanswered_syn=int((handshakes == "unanswered").sum()),
            rst_teardowns=int(reset.sum()),
            fin_teardowns=int((fins == 2).sum()),
            half_closed=int(((fins == 1) & ~reset).sum()),
        )

    def handshake_rtt(self) -> Statistics | None:
        there, back = self._streams[:, S_TO_SERVER], self._streams[:, S_TO_CLIENT]
        known = (there >= 0) & (back >= 0)
        return statistics((there + back)[known] / 1e6)

    def worst(self) -> Array:
        """Streams with something wrong, worst first."""
        events = self._sides[:, :, D_EVENTS:].sum(axis=1)
        failed = np.isin(self.handshakes(), ("unanswered", "refused", "reset"))
        broken = (events[:, E_RST] > 0) & ~self._sides[:, :, D_RST_AFTER_FIN].any(axis=1)
        waiting = self._streams[:, S_REQUEST_OPEN] > 0
        weight = (
            failed * 1000
            + broken * 200
            + (events[:, E_LOST_UPSTREAM] + events[:, E_LOST_DOWNSTREAM]) * 20
            + events[:, E_RETRANSMISSION] * 5
            + (events[:, E_ZERO_WINDOW] + events[:, E_WINDOW_FULL]) * 10
            + events[:, E_LOST_SEGMENT] * 3
            + events[:, E_OUT_OF_ORDER] * 2
            + events[:, E_REORDERED]
            + events[:, E_DATA_AFTER_RST] * 10
            + waiting * 2
        )
        ranked: Array = np.argsort(-weight, kind="stable")
        return ranked[: int((weight > 0).sum())]


def _rst_from(row: list[int], sides: list[list[int]], client: int) -> Literal["client", "server", "neither"] | None:
    if not row[S_FIRST_RST]:
        return None
    sender = row[S_FIRST_RST] - 1
    mine = sides[sender]
    # One hop more or less is a change of route; another system's distance or initial TTL is not.
    known = mine[D_TTL_MIN] >= 0
    if known and not mine[D_TTL_MIN] - 1 <= mine[D_RST_TTL] <= mine[D_TTL_MAX] + 1:
        return "neither"
    return _SIDE_NAMES[0 if sender == client else 1]


_NEVER = Occurrences()


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _ms(nanoseconds: int) -> float | None:
    return nanoseconds / 1e6 if nanoseconds >= 0 else None
