"""Simulation of one conversation between two hosts: TCP with a dialogue, or datagrams.

Each has its own simulation starting at 0 and its own randomness, so captures at both ends, whenever started, see the
same conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ghost.lab.wire.conditions import ServiceFault
from ghost.lab.wire.dialogues import Turn
from ghost.lab.wire.frames import ACK, RST, TcpOptions
from ghost.lab.wire.network_paths import Packet, Path, Unreachable
from ghost.lab.wire.simulation import Event, Simulation
from ghost.lab.wire.tcp_endpoint import Endpoint
from ghost.lab.wire.tcp_segments import Segment, Stack

LIFETIME_SECONDS = 40.0
"""A conversation that is not over by then is not followed further."""
CONNECT_TIMEOUT_SECONDS = 10.0
"""After which a client's application gives up a connection that nobody answers."""
DATAGRAM_RETRY_SECONDS = (0.0, 2.0, 4.0)
LOOKUP_RETRY_SECONDS = (0.0, 5.0)
"""Of a stub resolver: resolv.conf(5)."""


@dataclass(frozen=True)
class HostPair:
    """The two hosts and the paths between them."""

    simulation: Simulation
    random: Random
    forward: Path
    backward: Path
    refusal: str | None = None
    """With what who gets a packet refuses it, `tcp reset` or `icmp ...`; None: it listens."""
    refused_by: str = ""
    """The address of a device that refuses in place of the destination."""

    def refuse(self, packet: Packet) -> None:
        if self.refusal is None or (isinstance(packet.body, Segment) and packet.body.flags & RST):
            return
        kind, _, code = self.refusal.partition(" ")
        if kind == "icmp":
            self.backward.carry(Unreachable(code, packet, sender=self.refused_by))
        elif isinstance(packet.body, Segment):
            self.backward.carry(Segment(0, packet.body.end, RST | ACK, 0, TcpOptions()))


class TcpConversation:
    """A client that connects, exchanges turns with the server, and closes."""

    def __init__(self, pair: HostPair, turns: Sequence[Turn], service: ServiceFault | None = None) -> None:
        self._pair, self._service = pair, service
        self._turns: Iterator[Turn] = iter(turns)
        self._outstanding = 0
        self._client = self._endpoint(pair.forward.sender.stack, pair.forward, self._connected)
        self._server = self._endpoint(pair.backward.sender.stack, pair.backward, lambda: None)
        pair.forward.deliver = self._arrive_at_server
        pair.backward.deliver = self._arrive_at_client
        self._give_up: Event | None = None

    def _endpoint(self, stack: Stack, path: Path, on_established: Callable[[], None]) -> Endpoint:
        return Endpoint(
            self._pair.simulation,
            self._pair.random,
            stack,
            path.carry,
            on_established=on_established,
            on_octets=self._octets_read,
        )

    def start(self) -> None:
        if self._pair.refusal is None:
            self._server.listen()
        if self._service is not None and self._service.reads_bytes is not None:
            self._server.stop_reading(self._service.reads_bytes)
            if (pause := self._service.reads_again_after_seconds) is not None:
                self._pair.simulation.after(pause, self._server.read_again)
        self._client.connect()
        self._give_up = self._pair.simulation.after(CONNECT_TIMEOUT_SECONDS, self._client.abandon)

    def _connected(self) -> None:
        if self._give_up is not None:
            self._give_up.cancel()
        self._next_turn()

    def _octets_read(self, count: int) -> None:
        self._outstanding -= count
        if self._outstanding <= 0:
            self._next_turn()

    def _next_turn(self) -> None:
        turn = next(self._turns, None)
        if turn is None:
            self._pair.simulation.after(0.0009, self._client.close)
            return
        self._outstanding = len(turn.octets)
        speaker = self._client if turn.side == "client" else self._server
        act = {"": lambda: speaker.send(turn.octets), "close": speaker.close, "reset": speaker.reset}[turn.ends]
        self._pair.simulation.after(turn.pause, act)

    def _arrive_at_client(self, packet: Packet) -> None:
        self._arrive(self._client, packet)

    def _arrive_at_server(self, packet: Packet) -> None:
        if self._pair.refusal is None:
            self._arrive(self._server, packet)
        else:
            self._pair.refuse(packet)

    def _arrive(self, endpoint: Endpoint, packet: Packet) -> None:
        if isinstance(packet.body, Segment):
            endpoint.receive(packet.body)
        elif isinstance(packet.body, Unreachable):
            if packet.body.mtu:
                endpoint.too_big(packet.body.mtu)
            elif endpoint.state == "syn_sent":
                endpoint.abandon()


class UdpExchange:
    """A client that sends requests and repeats them without an answer."""

    def __init__(
        self,
        pair: HostPair,
        question: bytes,
        answer: bytes | None,
        thinking: float,
        *,
        retries: Sequence[float] = DATAGRAM_RETRY_SECONDS,
        on_answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._pair, self._question, self._answer, self._thinking = pair, question, answer, thinking
        self._retries, self._on_answered = retries, on_answered
        self._answered = False
        pair.forward.deliver = self._request
        pair.backward.deliver = self._done

    def start(self) -> None:
        for delay in self._retries:
            self._pair.simulation.after(delay, self._ask)

    def _ask(self) -> None:
        if not self._answered:
            self._pair.forward.carry(self._question)

    def _request(self, packet: Packet) -> None:
        if self._pair.refusal is not None:
            self._pair.refuse(packet)
        elif (answer := self._answer) is not None:
            self._pair.simulation.after(self._thinking, lambda: self._pair.backward.carry(answer))

    def _done(self, packet: Packet) -> None:
        if isinstance(packet.body, bytes) and not self._answered:
            self._answered = True
            self._on_answered()
