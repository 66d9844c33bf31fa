"""TCP streams as `model` values, made from columns on access. Reads state, changes none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_queries import constant_once
from ghost.pcap.array_types import Array, RowIndices
from ghost.pcap.model import ConnectionStats, Direction, Endpoint, Occurrences, Statistics, Stream, TcpTotals
from ghost.pcap.sample_statistics import statistics

if TYPE_CHECKING:
    from ghost.pcap.tcp.stream_state import StreamState

KNOWN_BY: tuple[Literal["syn", "syn_ack", "port", "first_packet"], ...] = ("syn", "syn_ack", "port", "first_packet")
_SIDE_NAMES: tuple[Literal["client", "server"], ...] = ("client", "server")

Handshake = Literal["completed", "unanswered", "refused", "reset", "incomplete", "not_seen"]
_HANDSHAKES: tuple[Handshake, ...] = (
    "completed", "incomplete", "not_seen", "reset", "incomplete", "refused", "incomplete", "unanswered",
)  # fmt: skip

_FLAGS = {
    "retransmissions": L.E_RETRANSMISSION,
    "fast_retransmissions": L.E_FAST,
    "spurious_retransmissions": L.E_SPURIOUS,
    "rto_retransmissions": L.E_RTO,
    "out_of_order": L.E_OUT_OF_ORDER,
    "lost_segments": L.E_LOST_SEGMENT,
    "acked_unseen": L.E_ACKED_UNSEEN,
    "duplicate_acks": L.E_DUPLICATE_ACK,
    "zero_window": L.E_ZERO_WINDOW,
    "zero_window_probes": L.E_ZERO_WINDOW_PROBE,
    "window_full": L.E_WINDOW_FULL,
    "window_updates": L.E_WINDOW_UPDATE,
    "keep_alives": L.E_KEEP_ALIVE,
    "keep_alive_acks": L.E_KEEP_ALIVE_ACK,
    "lost_upstream": L.E_LOST_UPSTREAM,
    "lost_downstream": L.E_LOST_DOWNSTREAM,
    "needless": L.E_NEEDLESS,
    "reordered": L.E_REORDERED,
    "syn": L.E_SYN,
    "syn_ack": L.E_SYN_ACK,
    "fin": L.E_FIN,
    "rst": L.E_RST,
}
_TOTALS = {**_FLAGS, "reused_ports": L.E_REUSED_PORTS, "ack_rtt_samples": L.E_ACK_RTT}
_OCCURRENCES = {
    **_FLAGS,
    "capture_gaps": L.E_CAPTURE_GAP,
    "data_after_rst": L.E_DATA_AFTER_RST,
    "copies": L.E_COPY,
    "copied_retransmissions": L.E_COPY_RETRANSMISSION,
    "copied_rto": L.E_COPY_RTO,
    "copied_acks": L.E_COPY_ACK,
    "doubtful_repeats": L.E_DOUBTFUL,
}
_WEIGHTS = {
    L.E_LOST_UPSTREAM: 20,
    L.E_LOST_DOWNSTREAM: 20,
    L.E_RETRANSMISSION: 5,
    L.E_ZERO_WINDOW: 10,
    L.E_WINDOW_FULL: 10,
    L.E_LOST_SEGMENT: 3,
    L.E_OUT_OF_ORDER: 2,
    L.E_REORDERED: 1,
    L.E_DATA_AFTER_RST: 10,
}
assert max(_OCCURRENCES.values()) < L.EVENTS


class StreamView(Sequence[Stream]):
    """Streams made from columns when they are asked for."""

    def __init__(
        self,
        state: StreamState,
        names: Mapping[int, str],
        address: Callable[[int], str],
        capture_end_ns: int,
        order: RowIndices | None = None,
    ) -> None:
        self._all, self._evidence, self._samples = state, state.evidence, state.samples
        self._names, self._address, self._end = names, address, capture_end_ns
        self._order = np.arange(len(state)) if order is None else order
        self._state = state if order is None else replace(state, places=state.places[order])
        self._handshakes: NDArray[np.str_] | None = None

    def select(self, order: RowIndices) -> StreamView:
        return StreamView(self._all, self._names, self._address, self._end, order)

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> Stream: ...
    @overload
    def __getitem__(self, index: slice) -> StreamView: ...
    def __getitem__(self, index: int | slice) -> Stream | StreamView:
        if isinstance(index, slice):
            return self.select(self._order[index])
        return self._stream(range(len(self))[index])

    # --------------------------------------------------------------------------------- all at once, for rules

    @property
    def state(self) -> StreamState:
        """The state of these streams, in the fields of `layout`."""
        return self._state

    @property
    def capture_end_ns(self) -> int:
        """The latest timestamp of the capture."""
        return self._end

    @property
    def server_names(self) -> dict[int, str]:
        """Return the TLS server name or HTTP host of these streams, where one was readable."""
        if len(self._order) == len(self._all):
            return dict(self._names)
        return {row: self._names[number] for row, number in enumerate(self._order.tolist()) if number in self._names}

    def address(self, number: int) -> str:
        """Return the text of an address id."""
        return self._address(number)

    def first_frames(self, event: int) -> Array:
        """Return int64[streams, 2], the frame of the first event of a kind of each side; 0 without one."""
        return self._evidence.first(event, 2 * len(self._all)).reshape(-1, 2)[self._order]

    def samples(self, kind: int) -> tuple[Array, Array]:
        """Return stream numbers and times (ns) of all samples of one kind of the server's side."""
        sides, values = self._samples.of_kind(kind, L.SAMPLES)
        # Where it was only a guess who the client is, there are samples of both.
        mine = self._all.stream(L.S_CLIENT)[sides // 2] != sides % 2
        return sides[mine] // 2, values[mine]

    # ------------------------------------------------------------------------------------------------- one stream

    def frames(self, index: int, name: str, *, server: bool) -> tuple[int, ...]:
        """Return the frames of one kind of event of a side, without making the stream."""
        (row, _), number = self._state.row(index), int(self._order[index])
        return self._evidence.of(number * 2 + (row[L.S_CLIENT] ^ server), _OCCURRENCES[name])

    def _stream(self, index: int) -> Stream:
        (row, sides), number = self._state.row(index), int(self._order[index])
        client = row[L.S_CLIENT]
        ours, theirs = sides[client], sides[1 - client]
        endpoints = (row[L.S_LOW], row[L.S_HIGH])
        server_key = (number * 2 + 1 - client) * L.SAMPLES
        wait = None
        fins = ours[L.D_EVENTS + L.E_FIN], theirs[L.D_EVENTS + L.E_FIN]
        teardown: Literal["fin", "half_closed", "rst", "open"]
        if row[L.S_FIRST_RST] and not all(fins):
            teardown = "rst"
        else:
            teardown = "fin" if all(fins) else "half_closed" if any(fins) else "open"
        if row[L.S_REQUEST_OPEN]:
            # Who asks and closes its side may still be answered.
            over = row[L.S_FIRST_RST] or fins[1]
            until = row[L.S_LAST_TIME] if over else self._end
            wait = max(until - row[L.S_REQUEST_TIME], 0) / 1e6
        return Stream(
            stream_id=number,
            client=self._direction(number * 2 + client, ours, theirs, endpoints[client]),
            server=self._direction(number * 2 + 1 - client, theirs, ours, endpoints[1 - client]),
            client_known_by=KNOWN_BY[row[L.S_KNOWN_BY]],
            first_ns=row[L.S_FIRST_TIME],
            last_ns=row[L.S_LAST_TIME],
            first_frame=row[L.S_FIRST_FRAME],
            last_frame=row[L.S_LAST_FRAME],
            wire_bytes=row[L.S_WIRE_BYTES],
            handshake=self._handshake_of(index),
            syn_retransmissions=row[L.S_SYN_REPEATS],
            syn_ack_retransmissions=row[L.S_SYN_ACK_REPEATS],
            syn_to_syn_ack_ms=_ms(row[L.S_TO_SERVER]),
            syn_ack_to_ack_ms=_ms(row[L.S_TO_CLIENT]),
            response_ms=self._samples.of(server_key + L.SAMPLE_RESPONSE),
            request_acked_ms=self._samples.of(server_key + L.SAMPLE_REQUEST_ACKED),
            unanswered_request_ms=wait,
            unanswered_request_bytes=(row[L.S_REQUEST_END] - row[L.S_REQUEST_START]) & 0xFFFFFFFF
            if wait is not None
            else 0,
            unprompted=row[L.S_UNPROMPTED],
            greeting_ms=_ms(row[L.S_GREETING]),
            teardown=teardown,
            rst_from=_rst_from(row, sides, client),
            server_name=self._names.get(number),
            encapsulation=tuple(name for bit, name in enumerate(L.ENCAPSULATIONS) if row[L.S_ENCAPSULATION] >> bit & 1),
        )

    def _handshake_of(self, index: int) -> Handshake:
        if self._handshakes is None:
            self._handshakes = constant_once(self.handshakes())
        return cast(Handshake, str(self._handshakes[index]))

    def _direction(self, side: int, mine: list[int], peer: list[int], endpoint: int) -> Direction:
        sent = mine[L.D_PACKETS] > 0
        unacked = (mine[L.D_NEXT] - peer[L.D_ACK]) & 0xFFFFFFFF if mine[L.D_NEXT] >= 0 and peer[L.D_ACK] >= 0 else 0
        return Direction(
            endpoint=Endpoint(self._address(endpoint >> 16), endpoint & 0xFFFF),
            packets=mine[L.D_PACKETS],
            payload_bytes=mine[L.D_PAYLOAD],
            data_segments=mine[L.D_SEGMENTS],
            first_ns=mine[L.D_FIRST_TIME] if sent else None,
            last_ns=mine[L.D_LAST_TIME] if sent else None,
            first_frame=mine[L.D_FIRST_FRAME],
            rst_after_fin=bool(mine[L.D_RST_AFTER_FIN]),
            ttl=_known(mine[L.D_TTL] if mine[L.D_TTL] >= 0 else mine[L.D_RST_TTL]),
            ttl_min=_known(mine[L.D_TTL_MIN]),
            ttl_max=_known(mine[L.D_TTL_MAX]),
            rst_ttl=_known(mine[L.D_RST_TTL]),
            mss=mine[L.D_MSS] or None,
            window_scale=_known(mine[L.D_OFFERED_SCALE]),
            sack_permitted=bool(mine[L.D_SACK]),
            smallest_window=_known(mine[L.D_SMALLEST_WINDOW]),
            largest_in_flight=mine[L.D_IN_FLIGHT],
            ack_rtt_ms=self._samples.of(side * L.SAMPLES + L.SAMPLE_RTT),
            delta_ms=self._samples.of(side * L.SAMPLES + L.SAMPLE_DELTA),
            largest_segment=mine[L.D_LARGEST],
            largest_acked_segment=mine[L.D_LARGEST_ACKED],
            largest_lost_segment=mine[L.D_LARGEST_LOST],
            smallest_lost_segment=mine[L.D_SMALLEST_LOST],
            unacked_bytes=unacked if unacked < 0x80000000 else 0,
            longest_silence_ms=mine[L.D_SILENCE] / 1e6,
            silent_from_ns=mine[L.D_SILENT_FROM],
            first_lost_frame=mine[L.D_FIRST_LOST],
            last_lost_frame=mine[L.D_LAST_LOST],
            **{
                name: Occurrences(mine[L.D_EVENTS + kind], self._evidence.of(side, kind))
                if mine[L.D_EVENTS + kind]
                else _NEVER
                for name, kind in _OCCURRENCES.items()
            },
        )

    # ------------------------------------------------------------------------------------------------ all of them

    def handshakes(self) -> NDArray[np.str_]:
        """Return `Stream.handshake` of every stream."""
        state = self._state
        of_client = state.stream(L.S_CLIENT)[:, None] == (0, 1)

        def by_client(field: int) -> NDArray[np.bool_]:
            return np.asarray(((state.sides(field) > 0) & of_client).any(axis=1))

        def by_server(field: int) -> NDArray[np.bool_]:
            return np.asarray(((state.sides(field) > 0) & ~of_client).any(axis=1))

        answered, asked = by_server(L.D_EVENTS + L.E_SYN_ACK), by_client(L.D_EVENTS + L.E_SYN)
        server_rst = by_server(L.D_EVENTS + L.E_RST)
        rst = server_rst | by_client(L.D_EVENTS + L.E_RST)
        states = [
            state.stream(L.S_COMPLETED) > 0,
            ~asked & answered,
            ~asked,
            answered & rst,
            answered,
            server_rst,
            by_server(L.D_PACKETS),
        ]
        return np.select(states, [np.str_(name) for name in _HANDSHAKES[:-1]], np.str_(_HANDSHAKES[-1]))

    def totals(self) -> TcpTotals:
        return TcpTotals(
            packets=int(self._state.sides(L.D_PACKETS).sum()),
            payload_bytes=int(self._state.sides(L.D_PAYLOAD).sum()),
            **{name: int(self._state.event(kind).sum()) for name, kind in _TOTALS.items()},
        )

    def connections(self) -> ConnectionStats:
        state, handshakes = self._state, self.handshakes()
        syns = state.event(L.E_SYN)
        fins = (state.event(L.E_FIN) > 0).sum(axis=1)
        reset = (state.event(L.E_RST) > 0).any(axis=1) & (fins < 2)
        return ConnectionStats(
            syn_sent=int(syns.sum()),
            syn_ack_received=int(state.event(L.E_SYN_ACK).sum()),
            connections_attempted=int((syns > 0).any(axis=1).sum()),
            handshakes_completed=int((handshakes == "completed").sum()),
            syn_retransmitted=int(state.stream(L.S_SYN_REPEATS).sum()),
            refused=int((handshakes == "refused").sum()),
            unanswered_syn=int((handshakes == "unanswered").sum()),
            rst_teardowns=int(reset.sum()),
            fin_teardowns=int((fins == 2).sum()),
            half_closed=int(((fins == 1) & ~reset).sum()),
        )

    def handshake_rtt(self) -> Statistics | None:
        there, back = self._state.stream(L.S_TO_SERVER), self._state.stream(L.S_TO_CLIENT)
        known = (there >= 0) & (back >= 0)
        return statistics((there + back)[known] / 1e6)

    def worst(self) -> Array:
        """Return streams with issues, worst first."""
        state = self._state
        failed = np.isin(self.handshakes(), ("unanswered", "refused", "reset"))
        broken = (state.event(L.E_RST) > 0).any(axis=1) & ~state.sides(L.D_RST_AFTER_FIN).any(axis=1)
        waiting = state.stream(L.S_REQUEST_OPEN) > 0
        weight = failed * 1000 + broken * 200 + waiting * 2
        for kind, each in _WEIGHTS.items():
            weight += state.event(kind).sum(axis=1) * each
        ranked: Array = np.argsort(-weight, kind="stable")
        return ranked[: int((weight > 0).sum())]


def _rst_from(row: list[int], sides: list[list[int]], client: int) -> Literal["client", "server", "neither"] | None:
    if not row[L.S_FIRST_RST]:
        return None
    sender = row[L.S_FIRST_RST] - 1
    mine = sides[sender]
    # One hop more or less is a change of route; another system's distance or initial TTL is not.
    known = mine[L.D_TTL_MIN] >= 0
    if known and not mine[L.D_TTL_MIN] - 1 <= mine[L.D_RST_TTL] <= mine[L.D_TTL_MAX] + 1:
        return "neither"
    return _SIDE_NAMES[0 if sender == client else 1]


_NEVER = Occurrences()


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _ms(nanoseconds: int) -> float | None:
    return nanoseconds / 1e6 if nanoseconds >= 0 else None
