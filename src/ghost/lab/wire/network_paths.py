"""Paths between two hosts: turn what endpoints send into the frames that captures see on the way.

A path delays and loses packets between interfaces, so the sender's capture shows what the receiver's misses. Azure
answers every ARP request with one address and routes all frames, hence the gateway's address on all arriving frames:
https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from ghost.lab.wire.conditions import WireFault
from ghost.lab.wire.frames import (
    ACK,
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    PROTOCOL_ICMP,
    PROTOCOL_TCP,
    PROTOCOL_UDP,
    RST,
    SYN,
    TcpOptions,
    arp,
    ethernet,
    ipv4,
    mac_bytes,
    tcp,
    udp,
    unreachable,
)
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_segments import LINUX, Segment, Stack

AZURE_GATEWAY_MAC = mac_bytes("12:34:56:78:9a:bc")
BITS_PER_SECOND = 2_000_000_000
ETHERNET_HEADER_BYTES = 14
FORWARDING_SECONDS = 40e-6
SPACING_SECONDS = 1.2e-6

See = Callable[[float, bytes], None]


class Ends(NamedTuple):
    source: str
    destination: str
    source_port: int
    destination_port: int

    def reversed(self) -> Ends:
        return Ends(self.destination, self.source, self.destination_port, self.source_port)


@dataclass(frozen=True)
class Unreachable:
    """An ICMP error about a packet."""

    code: str
    about: Packet
    mtu: int = 0
    sender: str = ""
    """The address of a device on the way; empty: the packet's destination."""


@dataclass(frozen=True)
class Packet:
    """A segment, a datagram or an error, before it has addresses: these differ from place to place."""

    body: Segment | bytes | Unreachable
    identification: int = 0

    @property
    def protocol(self) -> int:
        if isinstance(self.body, Segment):
            return PROTOCOL_TCP
        return PROTOCOL_UDP if isinstance(self.body, bytes) else PROTOCOL_ICMP

    def datagram(self, ends: Ends, ttl: int) -> bytes:
        body, source = self.body, ends.source
        if isinstance(body, Segment):
            octets = tcp(
                *ends,
                sequence=body.sequence,
                acknowledgement=body.acknowledgement,
                flags=body.flags,
                window=body.window,
                options=body.options,
                payload=body.payload,
            )
        elif isinstance(body, bytes):
            octets = udp(*ends, body)
        else:
            source = body.sender or source
            octets = unreachable(body.code, body.about.datagram(ends.reversed(), ttl=63), body.mtu)
        return ipv4(source, ends.destination, self.protocol, octets, identification=self.identification, ttl=ttl)

    @property
    def size(self) -> int:
        """Return the octets of IP."""
        if isinstance(self.body, Segment):
            return 40 + len(self.body.options.encode()) + len(self.body.payload)
        return 28 + len(self.body) if isinstance(self.body, bytes) else 56


@dataclass
class Host:
    """Who sends on a path."""

    stack: Stack = LINUX
    identification: int = 0
    busy_until: float = field(default=0.0, init=False)


@dataclass(frozen=True)
class Station:
    """An interface on a path. `sees`, if given, is called with every frame and its time."""

    ends: Ends
    """Of packets there."""
    mac: bytes
    outgoing: bool
    sees: See | None = None


@dataclass
class Link:
    """The way between two hosts of a path."""

    delay: float
    jitter: float
    fault: WireFault
    middlebox: Middlebox | None = None
    last_arrival: float = 0.0

    def arrivals(self, random: Random, moment: float) -> list[float]:
        """Return when a packet arrives that leaves now: never if it is lost, twice if it is duplicated."""
        fault = self.fault
        if random.random() < fault.loss:
            return []
        jitter = self.jitter + fault.jitter_ms / 1000
        arrival = moment + self.delay + fault.delay_ms / 1000 + abs(random.gauss(0.0, jitter))
        if fault.reordered and random.random() < fault.reordered:
            arrival += random.uniform(1.0, 3.0) * max(self.delay, 0.0005)
        else:
            arrival = self.last_arrival = max(arrival, self.last_arrival + SPACING_SECONDS)
        copy = fault.duplicated and random.random() < fault.duplicated
        return [arrival, arrival + random.uniform(20e-6, 90e-6)] if copy else [arrival]


@dataclass
class Path:
    """One direction between two hosts, with an interface at either end that is ours."""

    simulation: Simulation
    random: Random
    sender: Host
    stations: tuple[Station, ...]
    links: tuple[Link, ...]
    delivers: bool = True
    """Whether the last host takes what comes to it."""
    hops: int = 0
    """Routers outside Azure, all before the first station or all behind the last."""
    deliver: Callable[[Packet], None] = lambda _packet: None
    opposite: Path | None = None

    def carry(self, body: Segment | bytes | Unreachable) -> None:
        """Send a packet now; `deliver` is called with it when, and if, it arrives."""
        if not self.stations:
            return
        sender = self.sender
        sender.identification += 1
        packet = Packet(body, sender.identification)
        departure = max(self.simulation.now + self.random.uniform(6e-6, 24e-6), sender.busy_until)
        sender.busy_until = departure + (packet.size + ETHERNET_HEADER_BYTES) * 8 / BITS_PER_SECOND
        if self.stations[0].outgoing:
            self._travel(packet, 0, departure, sender.stack.ttl)
        else:
            for arrival in self._crossing(packet, 0, departure):
                self._travel(packet, 0, arrival, sender.stack.ttl - self.hops)

    def inject(self, packet: Packet, number: int, moment: float, ttl: int) -> None:
        """Send a packet of a device in the middle of the link of that number, from the other end if negative."""
        places = [at + 1 for at, station in enumerate(self.stations) if station.outgoing]
        if not self.stations[0].outgoing:
            places.insert(0, 0)
        number = max(-len(places), min(number, len(places) - 1))  # The way back may have other links.
        link = self.links[number]
        link.last_arrival = max(moment + link.delay / 2, link.last_arrival + SPACING_SECONDS)
        self._travel(packet, places[number], link.last_arrival, ttl)

    def _travel(self, packet: Packet, start: int, moment: float, ttl: int) -> None:
        for number in range(start, len(self.stations)):
            station = self.stations[number]
            if station.outgoing and number > start:
                moment, ttl = moment + FORWARDING_SECONDS, ttl - 1
            if station.sees is not None:
                station.sees(moment, self._frame(station, packet, ttl))
            if station.outgoing:
                link = sum(each.outgoing for each in self.stations[:number]) + (not self.stations[0].outgoing)
                arrivals = self._crossing(packet, link, moment)
                if not arrivals:
                    return
                for copy in arrivals[1:]:
                    self._travel(packet, number + 1, copy, ttl)
                moment = arrivals[0]
        if self.delivers:
            self.simulation.after(moment - self.simulation.now, lambda: self.deliver(packet))

    def _crossing(self, packet: Packet, number: int, moment: float) -> list[float]:
        """Return when a packet arrives behind a link; empty if it does not."""
        link = self.links[number]
        fault, back, reached = link.fault, self.opposite, moment + link.delay / 2
        if fault.mtu is not None and packet.size > fault.mtu:
            if fault.mtu_told and back is not None:
                told = Unreachable("fragmentation-needed", packet, fault.mtu, fault.device)
                back.inject(Packet(told), -1 - number, reached, fault.device_ttl)
            return []
        if link.middlebox is not None and not link.middlebox.lets_pass(packet, self, number, reached):
            return []
        return link.arrivals(self.random, moment)

    def _frame(self, station: Station, packet: Packet, ttl: int) -> bytes:
        datagram = packet.datagram(station.ends, ttl)
        here, there = (AZURE_GATEWAY_MAC, station.mac) if station.outgoing else (station.mac, AZURE_GATEWAY_MAC)
        return ethernet(here, there, ETHERTYPE_IPV4, datagram)


@dataclass
class Middlebox:
    """A device between two hosts that follows one connection in both directions."""

    fault: WireFault
    heard: float | None = None
    closed: bool = False

    def lets_pass(self, packet: Packet, path: Path, number: int, moment: float) -> bool:
        segment = packet.body
        if not isinstance(segment, Segment):
            return True
        if segment.flags & SYN:
            self.closed = False
        idle = moment - self.heard if self.heard is not None else 0.0
        self.heard = moment
        expired = self.fault.idle_seconds is not None and idle > self.fault.idle_seconds
        text = self.fault.resets_on.encode()
        if expired and not self.closed:
            self.closed = True
            if self.fault.idle_reset:
                self._reset_sender(segment, path, number, moment)
        elif text and text in segment.payload and not self.closed:
            self.closed = True
            self._reset_sender(segment, path, number, moment)
            onward = Segment(segment.sequence, segment.acknowledgement, RST | ACK, 0, TcpOptions())
            path.inject(Packet(onward), number, moment, self.fault.device_ttl)
        return not self.closed

    def _reset_sender(self, segment: Segment, path: Path, number: int, moment: float) -> None:
        answer = Segment(segment.acknowledgement, segment.end, RST | ACK, 0, TcpOptions())
        if path.opposite is not None:
            path.opposite.inject(Packet(answer), -1 - number, moment, self.fault.device_ttl)


def gateway_arp_exchange(see: See, mac: bytes, address: str, gateway: str, answer_after: float) -> None:
    """Show an ARP request for the gateway, and Azure's reply."""
    broadcast, unknown = b"\xff" * 6, b"\0" * 6
    request = arp(1, mac, address, unknown, gateway)
    reply = arp(2, AZURE_GATEWAY_MAC, gateway, mac, address)
    see(0.0, ethernet(broadcast, mac, ETHERTYPE_ARP, request))
    see(answer_after, ethernet(mac, AZURE_GATEWAY_MAC, ETHERTYPE_ARP, reply))
