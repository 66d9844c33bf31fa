"""Scenes with a fault that ARP or ICMP tells of."""

from __future__ import annotations

from dataclasses import replace

from ...wire import ACK
from .. import messages
from ..network import TCP_PROTOCOL, Host, Packet, Path, Segment, unreachable
from ..office import Office, attempt
from ..scene import FAULTS
from .usual import other_port


@FAULTS.add("arp_conflict", "server_host", points=("client",))
def address_taken_twice(office: Office) -> None:
    office.background(server_port=other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    contested = f"{net}.{office.dice.randrange(4, 250)}"
    macs = [bytes([2, *office.dice.randbytes(5)]) for _ in range(2)]
    for n in range(8):
        said = messages.arp(2, macs[n % 2], contested, office.client.mac, office.client.address)
        office.world.later(1.0 + n * 1.5, lambda said=said: office.world.write(said))  # type: ignore[misc]


@FAULTS.add("host_down", "server_host", points=("client",))
def nobody_answers_arp(office: Office) -> None:
    office.background(server_port=other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    gone = f"{net}.{office.dice.randrange(4, 250)}"
    for n in range(9):
        asked = messages.arp(1, office.client.mac, office.client.address, bytes(6), gone)
        office.world.later(1.0 + n, lambda asked=asked: office.world.write(asked))  # type: ignore[misc]


@FAULTS.add("host_down", "server_host", points=("client", "between"))
def router_finds_no_host(office: Office) -> None:
    """The last router asks in vain and says host unreachable."""
    office.background(to_server=False)
    gone = office.new_host()
    path = office.new_path(office.client, gone)
    answers_with(office, path, gone, 1, delay=3.0)
    for n in range(3):
        attempt(office.client, gone.address, office.port, 1.0 + 3 * n)


def answers_with(
    office: Office,
    path: Path,
    target: Host,
    code: int,
    *,
    delay: float = 0.0,
    kind: int = 3,
    port: int | None = None,
    source: str | None = None,
) -> None:
    """Somebody on the way answers packets for `target` with an ICMP error."""
    router = source or office.world.router_of(path)
    world = office.world

    def reject(packet: Packet) -> bool:
        to = packet.segment.destination_port if packet.segment else int.from_bytes(packet.body[2:4], "big")
        if packet.destination != target.address or (port is not None and to != port):
            return False
        error = unreachable(router, replace(packet, ttl=packet.ttl - 2), code, kind=kind)
        place = world.place(path) or 0.0
        world.later(delay + path.delay * max(path.link_at - place, 0), lambda: world.capture(error, 2, 0.5))
        return True

    path.link_at = max(path.link_at, 0.7)
    path.there.blocks = reject


@FAULTS.add("routing_loop", "network", points=("client", "between"))
def routes_point_at_each_other(office: Office) -> None:
    office.background(to_server=False)
    lost = office.new_host()
    path = office.new_path(office.client, lost)
    answers_with(office, path, lost, 0, kind=11, delay=0.02)
    for n in range(3):
        attempt(office.client, lost.address, office.port, 1.0 + 2 * n)


@FAULTS.add("admin_prohibited", "policy", points=("client", "between"))
def filter_says_so(office: Office) -> None:
    office.background(server_port=other_port(office))
    answers_with(office, office.path, office.server, office.dice.choice([9, 10, 13]), port=office.port)
    for n in range(3):
        attempt(office.client, office.server.address, office.port, 1.0 + 2 * n)


@FAULTS.add("port_unreachable", "server_application")
def nobody_listens_on_udp(office: Office) -> None:
    office.background(server_port=other_port(office))
    port = office.dice.choice([514, 161, 1812, 4789, 8125])
    source = office.client.free_port()

    def say(packet: Packet) -> None:
        office.server.send(unreachable(office.server.address, packet, 3))

    office.server.datagrams[port] = say
    for n in range(6):
        packet = messages.datagram(office.client.address, source, office.server.address, port, b"<13>hello" * 5)
        office.world.later(1.0 + n, lambda packet=packet: office.client.send(packet))  # type: ignore[misc]


@FAULTS.add("icmp_redirect", "network", points=("client",))
def better_gateway(office: Office) -> None:
    office.background(server_port=other_port(office))
    net = office.gateway.rsplit(".", 1)[0]
    for n in range(4):
        about = Packet(
            office.client.address,
            office.server.address,
            TCP_PROTOCOL,
            Segment(40000 + n, 443, 1, 1, ACK, b"", 500, b""),
        )
        told = unreachable(office.gateway, about, 1, kind=5)
        told = replace(told, body=told.body[:4] + bytes(map(int, f"{net}.2".split("."))) + told.body[8:])
        office.world.later(1.0 + n, lambda told=told: office.world.capture(told, 0))  # type: ignore[misc]
