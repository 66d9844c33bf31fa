"""Hosts, their interfaces and the paths between them: turns segments into captured frames.

A path delays, preserves order, and loses packets after the sender's interface, so the sender's capture shows what the
receiver's misses. Azure answers every ARP request with one address and routes all frames, hence the gateway's address
on all arriving frames: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ghost.lab.wire.frames import ETHERTYPE_ARP, ETHERTYPE_IPV4, arp, ethernet, ipv4, mac_bytes
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_endpoint import LINUX, Stack

AZURE_GATEWAY_MAC = mac_bytes("12:34:56:78:9a:bc")
BITS_PER_SECOND = 2_000_000_000
ETHERNET_HEADER_BYTES = 14


@dataclass
class Host:
    """One interface. `sees`, if given, is called with every frame sent or received and its time."""

    address: str
    mac: bytes
    stack: Stack = LINUX
    sees: Callable[[float, bytes], None] | None = None
    identification: int = 0
    busy_until: float = field(default=0.0, init=False)

    def emit(self, moment: float, frame: bytes) -> None:
        if self.sees is not None:
            self.sees(moment, frame)


@dataclass
class Path:
    """One direction between two hosts."""

    simulation: Simulation
    random: Random
    source: Host
    destination: Host
    delay: float
    jitter: float
    loss: float = 0.0
    hops: int = 0
    """Number of routers that decrement the TTL; 0 inside a virtual network."""
    open: bool = True
    last_arrival: float = field(default=0.0, init=False)

    def carry(self, protocol: int, payload: bytes, on_arrival: Callable[[], None]) -> None:
        """Send one datagram now; `on_arrival` runs when, and if, it arrives."""
        source, destination = self.source, self.destination
        processing = self.random.uniform(6e-6, 24e-6)
        departure = max(self.simulation.now + processing, source.busy_until)
        source.busy_until = departure + (len(payload) + 20 + ETHERNET_HEADER_BYTES) * 8 / BITS_PER_SECOND
        source.identification += 1
        if source.sees is not None:
            source.emit(departure, self._frame(AZURE_GATEWAY_MAC, source.mac, protocol, payload, 0))
        lost = self.random.random() < self.loss
        if lost or not self.open:
            return
        travel = self.delay + abs(self.random.gauss(0.0, self.jitter))
        arrival = self.last_arrival = max(departure + travel, self.last_arrival + 1.2e-6)

        frame = b""
        if destination.sees is not None:
            frame = self._frame(destination.mac, AZURE_GATEWAY_MAC, protocol, payload, self.hops)

        def arrive() -> None:
            destination.emit(arrival, frame)
            on_arrival()

        self.simulation.after(arrival - self.simulation.now, arrive)

    def _frame(self, to: bytes, by: bytes, protocol: int, payload: bytes, hops: int) -> bytes:
        datagram = ipv4(
            self.source.address,
            self.destination.address,
            protocol,
            payload,
            identification=self.source.identification,
            ttl=self.source.stack.ttl - hops,
        )
        return ethernet(to, by, ETHERTYPE_IPV4, datagram)


def gateway_arp_exchange(simulation: Simulation, host: Host, gateway: str, answer_after: float) -> None:
    """Return an ARP request for the gateway, and Azure's reply."""
    broadcast, unknown = b"\xff" * 6, b"\0" * 6
    request = arp(1, host.mac, host.address, unknown, gateway)
    reply = arp(2, AZURE_GATEWAY_MAC, gateway, host.mac, host.address)
    host.emit(simulation.now, ethernet(broadcast, host.mac, ETHERTYPE_ARP, request))
    host.emit(simulation.now + answer_after, ethernet(host.mac, AZURE_GATEWAY_MAC, ETHERTYPE_ARP, reply))
