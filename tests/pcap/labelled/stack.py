"""A TCP endpoint good enough to be captured: handshake, windows, delayed ACKs, fast retransmit, timers, probes, close.

NewReno with Linux' timers (RFC 5681, 6298, 6582); window scaling and time stamps (RFC 7323).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from ..wire import ACK, FIN, PSH, RST, SYN
from .network import TCP_PROTOCOL, Host, Packet, Segment

_DELAYED_ACK = 0.04
_LEAST_RTO = 0.2
_SYN_RTO = 1.0
_MOST_REPEATS = 6


@dataclass
class Options:
    """How one end is set up."""

    mss: int = 1460
    scale: int = 7
    timestamps: bool = True
    receive_buffer: int = 256 * 1024
    offload: bool = False


class Connection:
    """One end. `on_data(received_bytes)` tells the program how much arrived in all, `on_close` that the peer closed."""

    def __init__(
        self, host: Host, port: int, peer: str, peer_port: int, options: Options | None = None, *,
        on_open: Callable[[], None] | None = None, on_data: Callable[[int], None] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self.host, self.world, self.port = host, host.world, port
        self.peer, self.peer_port, self.options = peer, peer_port, options or Options()
        self.on_open, self.on_data, self.on_close = on_open, on_data, on_close
        self.isn, self.peer_isn = self.world.dice.randrange(1 << 32), 0
        self.mss, self.scale, self.peer_scale, self.timestamps = 536, 0, 0, False
        self.state = "closed"
        # sending: offsets into the bytes the program wrote; a FIN is one beyond them
        self.out = bytearray()
        self.una = self.nxt = 0
        self.closing = False
        self.cwnd, self.ssthresh = 0, 1 << 30
        self.peer_window = 0
        self.duplicates, self.recover = 0, -1
        self.rto, self.srtt, self.rttvar = _SYN_RTO, 0.0, 0.0
        self.timed: tuple[int, float] | None = None
        self.repeats = 0
        self.timer = 0
        # receiving
        self.received = 0
        self.later_segments: dict[int, int] = {}
        self.unread = 0
        self.reading = True
        self.window_shown = 0
        self.peer_fin: int | None = None
        self.ack_owed = 0
        self.ack_timer = 0
        self.recent = 0
        self.edge = 0
        self.twice: tuple[int, int] | None = None
        self._clock = self.world.dice.randrange(1 << 30)
        host.sockets[port, peer, peer_port] = self.receive

    # ------------------------------------------------------------------------------------------------ the program

    def open(self) -> None:
        self.state = "syn_sent"
        self._send_syn(SYN)

    def write(self, data: bytes) -> None:
        self.out += data
        self._output()

    def close(self) -> None:
        self.closing = True
        self._output()

    def abort(self) -> None:
        self._emit(self.nxt, RST | ACK)
        self._forget()

    def stop_reading(self) -> None:
        self.reading = False

    def read(self, size: int) -> None:
        """The program takes bytes out of the receive buffer."""
        self.unread = max(self.unread - size, 0)
        if self.window_shown < 2 * self.mss <= self._window():
            self._acknowledge()

    def keep_alive(self) -> None:
        if self.state == "open":
            self._emit(self.una - 1, ACK)

    # ------------------------------------------------------------------------------------------------ sending

    def _send_syn(self, flags: int) -> None:
        self._emit(-1, flags)
        self._arm(self.rto, lambda: self._again_syn(flags))

    def _again_syn(self, flags: int) -> None:
        self.repeats += 1
        if self.repeats <= _MOST_REPEATS:
            self.rto *= 2
            self._send_syn(flags)

    def _emit(self, offset: int, flags: int, data: bytes = b"") -> None:
        window = self._window()
        self.window_shown = window
        if not flags & SYN:
            window = window >> self.scale << self.scale
            self.edge = max(self.edge, self.received + window)
        options = b""
        if flags & SYN:
            window = min(window, 65535)
            options = struct.pack(">BBH", 2, 4, self.options.mss)
            options += b"\1\3\3" + bytes([self.options.scale]) + b"\1\1\4\2"
            if self.options.timestamps and (not flags & ACK or self.timestamps):
                options += b"\1\1\x08\x0a" + struct.pack(">II", self._stamp(), self.recent)
        else:
            window = min(window >> self.scale, 65535)
            if self.timestamps and not flags & RST:
                options = b"\1\1\x08\x0a" + struct.pack(">II", self._stamp(), self.recent)
            options += self._selective() if not data and not flags & (RST | FIN) else b""
        ack = self.peer_isn + 1 + self.received + (1 if self.peer_fin == self.received else 0) if flags & ACK else 0
        segment = Segment(
            self.port, self.peer_port, (self.isn + 1 + offset) & 0xFFFFFFFF, ack & 0xFFFFFFFF, flags, data, window,
            options,
        )  # fmt: skip
        if flags & ACK:
            self.ack_owed = 0
            self.ack_timer += 1
        self.host.send(Packet(self.host.address, self.peer, TCP_PROTOCOL, segment))

    def _selective(self) -> bytes:
        """What arrived twice (RFC 2883), and what arrived beyond a gap (RFC 2018)."""
        blocks = [self.twice] if self.twice else []
        self.twice = None
        edge = self.peer_isn + 1
        for start in sorted(self.later_segments)[: 3 - len(blocks)]:
            blocks.append((start, start + self.later_segments[start]))
        if not blocks:
            return b""
        packed = b"".join(struct.pack(">II", (edge + a) & 0xFFFFFFFF, (edge + b) & 0xFFFFFFFF) for a, b in blocks)
        return b"\1\1\5" + bytes([2 + len(packed)]) + packed

    def _stamp(self) -> int:
        return (self._clock + int(self.world.now * 1000)) & 0xFFFFFFFF

    def _room(self) -> int:
        known = self.host.path_mtu.get(self.peer)
        return self.mss if known is None else min(self.mss, known - 40 - (12 if self.timestamps else 0))

    def _output(self) -> None:
        if self.state != "open":
            return
        size = self._room() * (16 if self.options.offload else 1)
        while self.nxt < len(self.out):
            allowed = min(self.cwnd, self.peer_window) - (self.nxt - self.una)
            part = min(size, allowed, len(self.out) - self.nxt)
            if part <= 0 or (part < self._room() and part < len(self.out) - self.nxt and self.nxt > self.una):
                break
            self._send_data(self.nxt, part)
            self.nxt += part
        if self.closing and self.nxt == len(self.out):
            self._emit(self.nxt, FIN | ACK)
            self.nxt += 1
        if self.nxt > self.una:
            if not self.timer_running:
                self._arm(self.rto, self._timeout)
        elif self.una < len(self.out) and self.peer_window < self._room():
            self._arm(max(self.rto, _LEAST_RTO), self._probe)

    def _send_data(self, offset: int, size: int) -> None:
        data = bytes(self.out[offset : offset + size])
        last = offset + size >= len(self.out)
        if offset >= self.nxt and self.timed is None:
            self.timed = (offset + size, self.world.now)
        self._emit(offset, ACK | (PSH if last else 0), data)

    def resend(self) -> None:
        self.timed = None
        if self.una >= len(self.out):
            self._emit(self.una, FIN | ACK)
        else:
            self._send_data(self.una, min(self._room(), len(self.out) - self.una))

    @property
    def timer_running(self) -> bool:
        return self.timer % 2 == 1

    def _arm(self, seconds: float, what: Callable[[], None]) -> None:
        self.timer += 2 if self.timer_running else 1
        mine = self.timer

        def fire() -> None:
            if self.timer == mine:
                self.timer += 1
                what()

        self.world.later(seconds, fire)

    def _disarm(self) -> None:
        if self.timer_running:
            self.timer += 1

    def _timeout(self) -> None:
        self.repeats += 1
        if self.repeats > _MOST_REPEATS or self.state != "open":
            return
        self.ssthresh = max((self.nxt - self.una) // 2, 2 * self.mss)
        self.cwnd, self.recover, self.duplicates = self.mss, self.nxt, 0
        self.resend()
        self.rto = min(self.rto * 2, 60.0)
        self._arm(self.rto, self._timeout)

    def _probe(self) -> None:
        if self.state != "open" or self.repeats > 12:
            return
        self.repeats += 1
        self._emit(self.una - 1, ACK)
        self._arm(min(self.rto * 2 ** min(self.repeats, 6), 30.0), self._probe)

    # ---------------------------------------------------------------------------------------------- receiving

    def _window(self) -> int:
        free = self.options.receive_buffer - self.unread
        promised = self.edge - self.received  # what was offered once is never taken back (RFC 9293, 3.8.6.2.1)
        return max(free if free >= self.mss else 0, promised)

    def _acknowledge(self) -> None:
        if self.state == "open":
            self._emit(self.nxt, ACK)

    def receive(self, packet: Packet) -> None:
        segment = packet.segment
        assert segment is not None
        if segment.flags & RST:
            if self.state != "closed":
                self._forget()
                if self.on_close:
                    self.on_close()
            return
        if self.timestamps and len(segment.options) >= 12 and not segment.flags & SYN:
            self.recent = int.from_bytes(segment.options[4:8], "big")
        if segment.flags & SYN:
            self._handshake(segment)
            return
        if self.state == "syn_received" and segment.flags & ACK:
            self._opened()
        if self.state != "open":
            return
        self._take_ack(segment)
        if self.state == "open":
            self._take_data(segment)

    def _handshake(self, segment: Segment) -> None:
        if self.state == "open":
            self._acknowledge()
            return
        self.peer_isn = segment.seq
        offers = _offers(segment.options)
        self.mss = min(self.options.mss, offers.get(2, 536))
        self.peer_scale, self.scale = offers.get(3, 0), self.options.scale
        self.timestamps = self.options.timestamps and 8 in offers
        if self.timestamps:
            self.recent = offers[8]
            self.mss -= 12
        self.peer_window = segment.window
        if segment.flags & ACK:
            if self.state == "syn_sent":
                self._opened()
                self._emit(0, ACK)
                if self.on_open:
                    self.on_open()
        elif self.state == "closed":
            self.state = "syn_received"
            self._send_syn(SYN | ACK)

    def _opened(self) -> None:
        self._disarm()
        self.state, self.repeats, self.rto = "open", 0, _LEAST_RTO * 1.5
        path = self.world.paths.get((self.host.address, self.peer))
        if path is not None:
            self.rto = max(_LEAST_RTO, 3 * path.delay * 2)
        self.cwnd = 10 * self.mss

    def _take_ack(self, segment: Segment) -> None:
        acked = ((segment.ack - self.isn - 1 - self.una + (1 << 31)) & 0xFFFFFFFF) - (1 << 31) + self.una
        window = segment.window << self.peer_scale
        if acked > self.nxt:
            return
        if acked > self.una:
            self._new_ack(acked)
            self.peer_window = window
        elif acked == self.una:
            same = window == self.peer_window and not segment.data and not segment.flags & FIN
            self.peer_window = window
            if same and self.nxt > self.una and (segment.seq - self.peer_isn - 1) & 0xFFFFFFFF == self.received:
                self.duplicates += 1
                if self.duplicates == 3 and self.una > self.recover:
                    self.recover = self.nxt
                    self.ssthresh = max((self.nxt - self.una) // 2, 2 * self.mss)
                    self.cwnd = self.ssthresh
                    self.resend()
        self._output()

    def _new_ack(self, acked: int) -> None:
        if self.timed is not None and acked >= self.timed[0]:
            took = self.world.now - self.timed[1]
            if not self.srtt:
                self.srtt, self.rttvar = took, took / 2
            else:
                self.rttvar += (abs(took - self.srtt) - self.rttvar) / 4
                self.srtt += (took - self.srtt) / 8
            self.timed = None
        if self.srtt:
            self.rto = max(_LEAST_RTO, self.srtt + max(4 * self.rttvar, 0.05))
        gained, self.una, self.duplicates, self.repeats = acked - self.una, acked, 0, 0
        self.nxt = max(self.nxt, acked)
        self.cwnd += min(gained, 2 * self.mss) if self.cwnd < self.ssthresh else self.mss * self.mss // self.cwnd
        if self.una < self.recover:
            self.resend()
        self._disarm()
        if self.nxt > self.una:
            self._arm(self.rto, self._timeout)

    def _take_data(self, segment: Segment) -> None:
        offset = ((segment.seq - self.peer_isn - 1 - self.received + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        offset += self.received
        if segment.flags & FIN:
            self.peer_fin = offset + len(segment.data)
        if not segment.data and not segment.flags & FIN:
            if offset < self.received:
                self._acknowledge()
            return
        if len(segment.data) > self._window() and segment.data:
            self._acknowledge()
            return
        before = self.received
        if segment.data and offset + len(segment.data) <= self.received:
            self.twice = (offset, offset + len(segment.data))
        elif segment.data:
            self.later_segments[offset] = max(len(segment.data), self.later_segments.get(offset, 0))
        for start in sorted(self.later_segments):
            if start > self.received:
                break
            self.received = max(self.received, start + self.later_segments.pop(start))
        arrived = self.received - before
        if not self.reading:
            self.unread += arrived
        gap = bool(self.later_segments) or (segment.data and not arrived)
        self.ack_owed += max(-(-arrived // max(self.mss, 1)), 1)
        if self.peer_fin == self.received:
            self._acknowledge()
            closed, self.on_close = self.on_close, None
            if arrived and self.on_data:
                self.on_data(self.received)
            if closed:
                closed()
            return
        if gap or self.ack_owed >= 2 or arrived < len(segment.data):
            self._acknowledge()
        else:
            self.ack_timer += 1
            mine = self.ack_timer

            def delayed() -> None:
                if self.ack_timer == mine and self.ack_owed:
                    self._acknowledge()

            self.world.later(_DELAYED_ACK, delayed)
        if arrived and self.on_data:
            self.on_data(self.received)

    def _forget(self) -> None:
        self.state = "closed"
        self._disarm()
        self.host.sockets.pop((self.port, self.peer, self.peer_port), None)


def _offers(options: bytes) -> dict[int, int]:
    """MSS, window scale and time stamp of a SYN."""
    found: dict[int, int] = {}
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 1:
            at += 1
            continue
        if kind == 0 or at + 1 >= len(options):
            break
        size = options[at + 1]
        found[kind] = int.from_bytes(options[at + 2 : at + (6 if kind == 8 else size)], "big")
        at += size
    return found
