"""Scenes in which a reset answers a SYN, and its TTL says who sent it although nothing else of the host is heard."""

from __future__ import annotations

from ...wire import ACK, RST
from ..network import TCP_PROTOCOL, Packet, Segment
from ..office import Office, attempt
from ..scene import FAULTS
from ..vanished_hosts import beside, chat


@FAULTS.add("third_party_reset", "policy", points=("client",))
def gateway_refuses(office: Office) -> None:
    """The first router rejects with a reset. The host says nothing itself; its neighbours are some hops away."""
    office.background(to_server=False)
    target = office.new_host()
    for _ in range(2):
        neighbour = office.new_host(target.address.rsplit(".", 1)[0])
        office.new_path(office.client, neighbour)
        chat(office, office.client, neighbour, office.dice.uniform(0.5, 3.0))
    path = office.new_path(office.client, target)
    ttl = office.dice.choice([64, 255])

    def refuse(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None:
            return False
        numbers = (segment.destination_port, segment.source_port, 0, (segment.seq + 1) & 0xFFFFFFFF)
        forged = Packet(
            target.address, office.client.address, TCP_PROTOCOL, Segment(*numbers, RST | ACK, b"", 0, b""), ttl=ttl
        )
        office.world.later(0.0004, lambda: office.world.capture(forged, 0))
        office.world.later(0.0004, lambda: office.client.receive(forged))
        return True

    path.link_at, path.there.blocks = 0.0001, refuse
    for n in range(3):
        attempt(office.client, target.address, office.port, 1.0 + n)


@FAULTS.add("refused", "server_application", points=("client",))
def neighbour_refuses(office: Office) -> None:
    """A host of the same segment refuses, and no router lies between."""
    office.background(to_server=False)
    target, other = beside(office), beside(office)
    chat(office, office.client, other, 0.7)
    for n in range(3):
        attempt(office.client, target.address, office.port, 1.0 + n)
