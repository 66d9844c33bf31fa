"""Simulation of one conversation between two hosts: TCP with a dialogue, or datagrams.

Each has its own simulation starting at 0 and its own randomness, so captures at both ends, whenever started, see the
same conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ghost.lab.wire.dialogues import Turn
from ghost.lab.wire.frames import ACK, PROTOCOL_TCP, PROTOCOL_UDP, RST, TcpOptions, tcp, udp
from ghost.lab.wire.network_paths import Host, Path
from ghost.lab.wire.simulation import Event, Simulation
from ghost.lab.wire.tcp_endpoint import Endpoint, Segment

LIFETIME_SECONDS = 40.0
"""A conversation that is not over by then is not followed further."""
CONNECT_TIMEOUT_SECONDS = 10.0
"""After which a client's application gives up a connection that nobody answers."""
DATAGRAM_RETRY_SECONDS = (0.0, 2.0, 4.0)


@dataclass(frozen=True)
class HostPair:
    """The two hosts and the paths between them."""

    simulation: Simulation
    random: Random
    client: Host
    server: Host
    client_port: int
    server_port: int
    forward: Path
    backward: Path
    listening: bool


class TcpConversation:
    """A client that connects, exchanges turns with the server, and closes."""

    def __init__(self, meeting: HostPair, turns: Sequence[Turn]) -> None:
        self._meeting = meeting
        self._turns: Iterator[Turn] = iter(turns)
        self._outstanding = 0
        self._client = Endpoint(
            meeting.simulation,
            meeting.random,
            meeting.client.stack,
            self._send_forward,
            on_established=self._connected,
            on_octets=self._octets_read,
        )
        self._server = Endpoint(
            meeting.simulation,
            meeting.random,
            meeting.server.stack,
            self._send_backward,
            on_octets=self._octets_read,
        )
        self._give_up: Event | None = None

    def run(self) -> None:
        if self._meeting.listening:
            self._server.listen()
        self._client.connect()
        self._give_up = self._meeting.simulation.after(CONNECT_TIMEOUT_SECONDS, self._client.abandon)
        self._meeting.simulation.run(LIFETIME_SECONDS)

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
            self._meeting.simulation.after(0.0009, self._client.close)
            return
        self._outstanding = len(turn.octets)
        speaker = self._client if turn.side == "client" else self._server
        self._meeting.simulation.after(turn.pause, lambda: speaker.send(turn.octets))

    def _send_forward(self, segment: Segment) -> None:
        meeting = self._meeting
        octets = self._encode(segment, (meeting.client, meeting.client_port), (meeting.server, meeting.server_port))
        meeting.forward.carry(PROTOCOL_TCP, octets, lambda: self._arrive_at_server(segment))

    def _send_backward(self, segment: Segment) -> None:
        meeting = self._meeting
        octets = self._encode(segment, (meeting.server, meeting.server_port), (meeting.client, meeting.client_port))
        meeting.backward.carry(PROTOCOL_TCP, octets, lambda: self._client.receive(segment))

    def _arrive_at_server(self, segment: Segment) -> None:
        if self._meeting.listening:
            self._server.receive(segment)
        elif not segment.flags & RST:
            self._send_backward(Segment(0, segment.end, RST | ACK, 0, TcpOptions()))

    def _encode(self, segment: Segment, source: tuple[Host, int], destination: tuple[Host, int]) -> bytes:
        return tcp(
            source[0].address,
            destination[0].address,
            source[1],
            destination[1],
            sequence=segment.sequence,
            acknowledgement=segment.acknowledgement,
            flags=segment.flags,
            window=segment.window,
            options=segment.options,
            payload=segment.payload,
        )


class UdpExchange:
    """A client that sends requests and repeats them without an answer."""

    def __init__(self, meeting: HostPair, question: bytes, answer: bytes, thinking: float) -> None:
        self._meeting, self._question, self._answer, self._thinking = meeting, question, answer, thinking
        self._answered = False

    def run(self) -> None:
        for delay in DATAGRAM_RETRY_SECONDS:
            self._meeting.simulation.after(delay, self._ask)
        self._meeting.simulation.run(LIFETIME_SECONDS)

    def _ask(self) -> None:
        if self._answered:
            return
        meeting = self._meeting
        datagram = udp(
            meeting.client.address, meeting.server.address, meeting.client_port, meeting.server_port, self._question
        )
        meeting.forward.carry(PROTOCOL_UDP, datagram, self._request)

    def _request(self) -> None:
        if self._meeting.listening:
            self._meeting.simulation.after(self._thinking, self._reply)

    def _reply(self) -> None:
        meeting = self._meeting
        datagram = udp(
            meeting.server.address, meeting.client.address, meeting.server_port, meeting.client_port, self._answer
        )
        meeting.backward.carry(PROTOCOL_UDP, datagram, self._done)

    def _done(self) -> None:
        self._answered = True
