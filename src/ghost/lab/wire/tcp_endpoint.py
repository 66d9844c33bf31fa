"""TCP endpoints: which segments they send and retransmit, and when. No frames, hosts or world.

Follows RFC 9293 (states), 6298 (retransmission timer), 5681 (congestion control, duplicate ACKs), 2018 and 6675
(selective acknowledgement and recovery), 7323 (window scale, timestamps). Sequence numbers are not wrapped; frames
reduce them to 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Literal

from ghost.lab.wire.frames import ACK, FIN, PSH, RST, SYN, TcpOptions
from ghost.lab.wire.simulation import Event, Simulation
from ghost.lab.wire.tcp_segments import InFlight, Segment, Stack, merged

DUPLICATE_ACKS_FOR_LOSS = 3
DELAYED_ACK_SECONDS = 0.040
INITIAL_RTO_SECONDS = 1.0
MAXIMUM_RTO_SECONDS = 60.0
INITIAL_WINDOW_SEGMENTS = 10
IP_AND_TCP_HEADERS = 40
TIMESTAMPS = 12
"""Octets of the option, padded."""

State = Literal["closed", "listen", "syn_sent", "syn_received", "established"]


class Endpoint:
    """One end of a connection. `transmit` receives its segments; the hooks inform the application."""

    def __init__(
        self,
        simulation: Simulation,
        random: Random,
        stack: Stack,
        transmit: Callable[[Segment], None],
        *,
        on_established: Callable[[], None] = lambda: None,
        on_octets: Callable[[int], None] = lambda _count: None,
        on_reset: Callable[[], None] = lambda: None,
    ) -> None:
        self._simulation, self._stack, self._transmit = simulation, stack, transmit
        self._on_established, self._on_octets, self._on_reset = on_established, on_octets, on_reset
        self.state: State = "closed"
        self._sequence_next = self._unacknowledged = random.getrandbits(32)
        self._timestamp_origin = random.getrandbits(31)
        self._flight: list[InFlight] = []
        self._pending = b""
        self._closing = self._fin_sent = False
        # What the peer sends.
        self._expected = 0
        self._ahead: list[tuple[int, int]] = []
        self._peer_fin: int | None = None
        self._peer_closed = False
        self._reads: int | None = None
        self._unread = 0
        self._peer_timestamp = 0
        self._peer_window = 0
        self._peer_scale = 0
        self._timestamps = stack.timestamps
        self._unacked_octets = 0
        self._delayed_ack: Event | None = None
        # Congestion and loss.
        self._mss = stack.mss
        self._congestion_window = INITIAL_WINDOW_SEGMENTS * self._mss
        self._slow_start_threshold = 1 << 30
        self._duplicate_acks = 0
        self._recovery_end: int | None = None
        self._smoothed_rtt: float | None = None
        self._rtt_variance = 0.0
        self._backoff = 0
        self._retransmission: Event | None = None
        self._window_probe: Event | None = None
        self._probes = 0

    # What the application does.

    def listen(self) -> None:
        self.state = "listen"

    def connect(self) -> None:
        self.state = "syn_sent"
        self._emit_new(SYN, b"")

    def send(self, octets: bytes) -> None:
        self._pending += octets
        if self.state == "established":
            self._fill_window()

    def close(self) -> None:
        """Send FIN once everything is sent."""
        self._closing = True
        if self.state == "established":
            self._fill_window()

    def abandon(self) -> None:
        """Stop at once without a segment, like a connection attempt after its application's timeout."""
        self.state = "closed"
        self._flight.clear()
        for event in (self._retransmission, self._delayed_ack, self._window_probe):
            if event is not None:
                event.cancel()

    def reset(self) -> None:
        """End the connection with a reset."""
        self._emit(Segment(self._sequence_next, self._expected, RST | ACK, 0, TcpOptions()))
        self.abandon()

    def stop_reading(self, after: int) -> None:
        """Read so many octets more and then none: the window closes when the buffer is full."""
        self._reads = after

    def read_again(self) -> None:
        octets, self._unread, self._reads = self._unread, 0, None
        if self.state == "established":
            self._acknowledge_now()
            self._on_octets(octets)

    # What arrives.

    def receive(self, segment: Segment) -> None:
        if self.state == "closed":
            if segment.flags & ACK and not segment.flags & RST:
                self._transmit(Segment(segment.acknowledgement, 0, RST, 0, TcpOptions()))
            return
        if segment.flags & RST:
            self.abandon()
            self._on_reset()
            return
        if segment.flags & SYN:
            self._receive_syn(segment)
            return
        if self.state == "listen":
            return
        if segment.options.timestamps is not None and segment.sequence <= self._expected:
            self._peer_timestamp = segment.options.timestamps[0]
        self._peer_window = segment.window << self._peer_scale
        self._receive_acknowledgement(segment)
        if segment.length:
            self._receive_octets(segment)
        elif segment.sequence == self._expected - 1:  # A probe of the window, or a keep-alive.
            self._acknowledge_now()
        if self.state == "established":
            self._fill_window()

    def too_big(self, mtu: int) -> None:
        """Go on with smaller segments, and repeat what is in flight in such: a router said that it takes no more."""
        self._mss = min(self._mss, mtu - IP_AND_TCP_HEADERS - (TIMESTAMPS if self._timestamps else 0))
        pieces: list[InFlight] = []
        for sent in self._flight:
            cuts = range(0, max(len(sent.payload), 1), self._mss) if len(sent.payload) > self._mss else (0,)
            for cut in cuts:
                piece = sent.payload[cut : cut + self._mss]
                pieces.append(replace(sent, sequence=sent.sequence + cut, payload=piece, lost=len(cuts) > 1))
        self._flight = pieces
        self._fill_window()

    def _receive_syn(self, segment: Segment) -> None:
        self._timestamps = self._stack.timestamps and segment.options.timestamps is not None
        self._mss = min(self._stack.mss, segment.options.mss or 536) - (TIMESTAMPS if self._timestamps else 0)
        if segment.options.timestamps is not None:
            self._peer_timestamp = segment.options.timestamps[0]
        self._peer_scale = segment.options.window_scale or 0
        self._peer_window = segment.window
        if self.state == "listen":
            self._expected = segment.end
            self.state = "syn_received"
            self._emit_new(SYN | ACK, b"")
        elif self.state == "syn_sent":
            self._expected = segment.end
            self.state = "established"
            self._receive_acknowledgement(segment)
            self._acknowledge_now()
            self._on_established()
            self._fill_window()
        elif self.state == "syn_received":
            self._retransmit(self._flight[0])
        else:
            self._acknowledge_now()

    def _receive_acknowledgement(self, segment: Segment) -> None:
        self._mark_sacked(segment.options.sack_blocks)
        if segment.acknowledgement > self._unacknowledged:
            self._advance(segment.acknowledgement)
        elif segment.acknowledgement == self._unacknowledged and self._flight and not segment.length:
            self._duplicate_acks += 1
        self._detect_loss()

    def _advance(self, acknowledgement: int) -> None:
        acknowledged = acknowledgement - self._unacknowledged
        for sent in [sent for sent in self._flight if sent.end <= acknowledgement]:
            if (
                sent.transmissions == 1 and not sent.sacked
            ):  # Karn: an answer to a repeated segment tells no round trip.
                self._measure(self._simulation.now - sent.sent_at)
            self._flight.remove(sent)
        self._unacknowledged = acknowledgement
        self._duplicate_acks = 0
        self._backoff = 0
        if self._recovery_end is not None and acknowledgement >= self._recovery_end:
            self._recovery_end = None
        if self._recovery_end is None:
            growth = min(acknowledged, 2 * self._mss)
            if self._congestion_window >= self._slow_start_threshold:
                growth = max(1, self._mss * growth // self._congestion_window)
            self._congestion_window += growth
        self._restart_timer()
        if self.state == "syn_received":
            self.state = "established"
            self._on_established()

    def _mark_sacked(self, blocks: tuple[tuple[int, int], ...]) -> None:
        for sent in self._flight:
            if any(left <= sent.sequence and sent.end <= right for left, right in blocks):
                sent.sacked = True

    def _detect_loss(self) -> None:
        """Detect loss: three later segments selectively acknowledged, or three duplicate ACKs (RFC 6675)."""
        sacked_above, found = 0, False
        for sent in reversed(self._flight):
            if sent.sacked:
                sacked_above += 1
            elif sacked_above >= DUPLICATE_ACKS_FOR_LOSS and sent.transmissions == 1 and not sent.lost:
                sent.lost = found = True
        if self._flight and self._duplicate_acks >= DUPLICATE_ACKS_FOR_LOSS:
            first = self._flight[0]
            if not first.sacked and first.transmissions == 1 and not first.lost:
                first.lost = found = True
        if found and self._recovery_end is None:
            self._recovery_end = self._sequence_next
            self._slow_start_threshold = max(self._in_the_pipe() // 2, 2 * self._mss)
            self._congestion_window = self._slow_start_threshold

    def _receive_octets(self, segment: Segment) -> None:
        in_order = segment.sequence <= self._expected < segment.end and not self._ahead
        if segment.end > self._expected:
            self._ahead = [(segment.sequence, segment.end), *self._ahead]
        if segment.flags & FIN:
            self._peer_fin = segment.end
        before = self._expected
        while block := next((block for block in self._ahead if block[0] <= self._expected), None):
            self._expected = max(self._expected, block[1])
            self._ahead.remove(block)
        arrived = self._expected - before
        self._unacked_octets += arrived
        fin_reached = self._peer_fin is not None and self._expected >= self._peer_fin and not self._peer_closed
        octets = self._taken(arrived - int(fin_reached))
        # RFC 5681: at once for every second full segment, for a segment out of order, and for one that fills a gap.
        if not in_order or fin_reached or self._unacked_octets >= 2 * self._mss:
            if fin_reached:
                self._peer_closed = self._closing = True
            if not (fin_reached and not self._fin_sent and not self._pending):
                self._acknowledge_now()
        elif self._delayed_ack is None:
            self._delayed_ack = self._simulation.after(DELAYED_ACK_SECONDS, self._acknowledge_now)
        if octets > 0:
            self._on_octets(octets)

    def _taken(self, octets: int) -> int:
        """Return how many of the octets that arrived the application reads; the others stay in the buffer."""
        if self._reads is None:
            return octets
        taken = min(octets, self._reads)
        self._reads, self._unread = self._reads - taken, self._unread + octets - taken
        return taken

    # What leaves.

    def _fill_window(self) -> None:
        while True:
            lost = next((sent for sent in self._flight if sent.lost), None)
            window = min(self._congestion_window, self._peer_window) - self._in_the_pipe()
            if lost is not None:
                if window < len(lost.payload) and self._in_the_pipe():
                    return
                self._retransmit(lost)
            elif self._pending:
                size = min(self._mss, len(self._pending))
                if window < size or self._sequence_next - self._unacknowledged + size > self._peer_window:
                    if not self._flight and self._window_probe is None:
                        self._probe_window_later()
                    return
                self._probes = 0
                payload, self._pending = self._pending[:size], self._pending[size:]
                self._emit_new(ACK | (PSH if not self._pending else 0), payload)
            elif self._closing and not self._fin_sent:
                self._fin_sent = True
                self._emit_new(FIN | ACK, b"")
            else:
                return

    def _probe_window_later(self) -> None:
        """Ask again and again whether a closed window has opened (RFC 9293, 3.8.6.1), as Linux does: without data."""
        wait = min(self._rto() * (1 << self._probes), MAXIMUM_RTO_SECONDS)
        self._probes += 1
        self._window_probe = self._simulation.after(wait, self._probe_window)

    def _probe_window(self) -> None:
        self._window_probe = None
        if self._flight or self._peer_window >= self._mss:
            return
        self._emit(Segment(self._sequence_next - 1, self._expected, ACK, self._window(), self._options()))
        self._probe_window_later()

    def _in_the_pipe(self) -> int:
        return sum(len(sent.payload) for sent in self._flight if not sent.sacked and not sent.lost)

    def _emit_new(self, flags: int, payload: bytes) -> None:
        sent = InFlight(self._sequence_next, flags, payload, self._simulation.now)
        self._flight.append(sent)
        self._sequence_next = sent.end
        self._emit_in_flight(sent)
        if self._retransmission is None:
            self._restart_timer()

    def _retransmit(self, sent: InFlight) -> None:
        sent.transmissions += 1
        sent.lost = False
        self._emit_in_flight(sent)

    def _emit_in_flight(self, sent: InFlight) -> None:
        acknowledgement = self._expected if sent.flags & ACK else 0
        self._emit(
            Segment(
                sent.sequence,
                acknowledgement,
                sent.flags,
                self._window(sent.flags),
                self._options(sent.flags),
                sent.payload,
            )
        )

    def _acknowledge_now(self) -> None:
        self._emit(Segment(self._sequence_next, self._expected, ACK, self._window(), self._options()))

    def _emit(self, segment: Segment) -> None:
        if segment.flags & ACK:
            self._unacked_octets = 0
            if self._delayed_ack is not None:
                self._delayed_ack.cancel()
                self._delayed_ack = None
        self._transmit(segment)

    def _window(self, flags: int = ACK) -> int:
        free = self._stack.syn_window - self._unread
        free = free if free >= self._mss else 0  # RFC 9293, 3.8.6.2.2: no silly windows.
        return free if flags & SYN else free >> self._stack.window_scale

    def _options(self, flags: int = ACK) -> TcpOptions:
        timestamps = None
        if self._timestamps:
            timestamps = (self._timestamp_origin + round(self._simulation.now * 1000), self._peer_timestamp)
        if flags & SYN:
            return TcpOptions(self._stack.mss, self._stack.window_scale, True, timestamps)
        max_blocks = 3 if timestamps else 4
        return TcpOptions(timestamps=timestamps, sack_blocks=tuple(merged(self._ahead)[:max_blocks]))

    # The retransmission timer.

    def _measure(self, rtt: float) -> None:
        if self._smoothed_rtt is None:
            self._smoothed_rtt, self._rtt_variance = rtt, rtt / 2
        else:
            self._rtt_variance = 0.75 * self._rtt_variance + 0.25 * abs(self._smoothed_rtt - rtt)
            self._smoothed_rtt = 0.875 * self._smoothed_rtt + 0.125 * rtt

    def _rto(self) -> float:
        base = INITIAL_RTO_SECONDS
        if self._smoothed_rtt is not None:
            base = self._smoothed_rtt + max(self._stack.minimum_rto_seconds, 4 * self._rtt_variance)
        return min(base * (1 << self._backoff), MAXIMUM_RTO_SECONDS)

    def _restart_timer(self) -> None:
        if self._retransmission is not None:
            self._retransmission.cancel()
        self._retransmission = self._simulation.after(self._rto(), self._timed_out) if self._flight else None

    def _timed_out(self) -> None:
        self._retransmission = None
        first = self._flight[0]
        self._backoff += 1
        if first.flags & SYN:
            if first.transmissions > self._stack.syn_retries:
                self.abandon()
                return
            self._retransmit(first)
        else:
            self._slow_start_threshold = max(self._in_the_pipe() // 2, 2 * self._mss)
            self._congestion_window = self._mss
            self._recovery_end = None
            self._duplicate_acks = 0
            for sent in self._flight:
                sent.lost = not sent.sacked
            self._retransmit(first)
        self._restart_timer()
