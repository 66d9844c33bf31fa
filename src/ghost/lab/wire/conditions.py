"""What is wrong on the wire and with services, as data of a world: nothing in Azure's configuration shows it.

Machines are named; an outside host by its address.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Literal

from ghost.net import HOST_ADDRESS

ANYWHERE = "*"


@dataclass(frozen=True)
class Traffic:
    """Repeated connections of a client to a server: connect, request, response, close."""

    client: str
    """A machine, or the address of an outside host."""
    server: str
    """A machine, or an address: of a load balancer, an outside host."""
    port: int
    protocol: Literal["Tcp", "Udp"] = "Tcp"
    connections_per_minute: float = 30.0
    request_bytes: int = 400
    response_bytes: int = 2000
    name: str = ""
    """A DNS name that the client resolves before each connection, in place of the server's address."""
    idle_seconds: float = 0.0
    """Pause before the request, on an open connection."""


@dataclass(frozen=True)
class WireFault:
    """What happens to packets from one machine to another, in this direction, on the first link from the source."""

    source: str
    destination: str
    """`*`: anybody."""
    loss: float = 0.0
    """Share of packets, 0 to 1; as are `reordered` and `duplicated`."""
    reordered: float = 0.0
    duplicated: float = 0.0
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    mtu: int | None = None
    """Longer packets (of IP) are lost."""
    mtu_told: bool = False
    """Whether the sender is told, by ICMP."""
    device: str = ""
    """Address of the device on this link, which sends the ICMP errors; the destination's if empty."""
    device_ttl: int = 255
    """Initial TTL of what a device of this link sends."""
    idle_seconds: float | None = None
    """A device on the link forgets a connection, both ways, that was idle for longer."""
    idle_reset: bool = False
    """Whether it resets what it has forgotten, or drops it."""
    resets_on: str = ""
    """A device on the link resets connections in which it sees this text."""
    snat_ports: int | None = None
    """Ports to translate connections to: while all are held, SYNs are dropped."""
    snat_hold_seconds: float = 60.0
    """How long a port is held after its connection closed."""

    def concerns(self, source: str, destinations: Collection[str]) -> bool:
        return self.source == source and (self.destination == ANYWHERE or self.destination in destinations)


@dataclass(frozen=True)
class ServiceFault:
    """How a service behaves; that of a DNS server has port 53."""

    machine: str
    """Or the address of an outside host."""
    port: int
    share: float = 1.0
    """Of the connections that meet it."""
    answers_after_ms: float = 0.0
    reads_bytes: int | None = None
    """It reads so much and then nothing."""
    reads_again_after_seconds: float | None = None
    """None: never."""
    ends: Literal["", "close", "reset"] = ""
    """It ends connections in place of an answer."""
    http_status: int | None = None
    tls: Literal["", "version", "expired", "wrong_name"] = ""
    """Why handshakes fail: the server's version is too old, or its certificate is refused by the client."""
    dns: Literal["", "silent", "servfail", "nxdomain"] = ""


@dataclass(frozen=True)
class OutsideHost:
    """A host that is not Azure's: on the internet or at a site."""

    address: str
    name: str = ""
    ports: tuple[int, ...] = ()
    """That accept connections."""
    others: Literal["refused", "dropped"] = "dropped"
    """What becomes of packets to other ports."""
    ttl: int = 64
    hops: int = 12
    """Routers on the way."""
    delay_ms: float = 8.0
    """One way."""


@dataclass(frozen=True)
class ClockFault:
    """The clock of a capturing machine is wrong."""

    machine: str
    offset_ms: float = 0.0
    drift_ppm: float = 0.0
    """Microseconds that it gains in each second."""


@dataclass(frozen=True)
class Conditions:
    faults: tuple[WireFault, ...] = ()
    services: tuple[ServiceFault, ...] = ()
    outside: tuple[OutsideHost, ...] = ()
    clocks: tuple[ClockFault, ...] = ()

    def on_wire(self, source: str, destinations: Collection[str]) -> WireFault:
        """Return everything that befalls packets from `source` on their way to `destinations`, as one fault."""
        merged = WireFault(source, next(iter(destinations), ANYWHERE))
        for fault in self.faults:
            if fault.concerns(source, destinations):
                stated = {name: value for name, value in vars(fault).items() if value != _UNSTATED.get(name)}
                for name in ("loss", "reordered", "duplicated"):
                    stated[name] = 1 - (1 - getattr(merged, name)) * (1 - getattr(fault, name))
                merged = replace(merged, **{**stated, "destination": merged.destination})
        return merged

    def of_service(self, host: str, port: int | None) -> ServiceFault | None:
        return next((each for each in self.services if each.machine == host and each.port == port), None)

    def outside_host(self, address: str) -> OutsideHost | None:
        """Return the host of an address; the platform's is always there."""
        if address == HOST_ADDRESS:
            return PLATFORM
        return next((host for host in self.outside if address in (host.address, host.name)), None)

    def clock(self, machine: str) -> ClockFault:
        return next((clock for clock in self.clocks if clock.machine == machine), ClockFault(machine))


_UNSTATED = {field.name: field.default for field in fields(WireFault)}
PLATFORM = OutsideHost(HOST_ADDRESS, "platform", (53, 80, 32526), hops=0, delay_ms=0.25)
