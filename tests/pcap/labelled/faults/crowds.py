"""Scenes with too much of something: connections, scans, or packets for the capturer."""

from __future__ import annotations

from ...wire import ACK, RST, SYN
from ..balancers import one_of_four_backends
from ..network import TCP_PROTOCOL, Host, Packet, Segment
from ..office import Office, attempt, chatter, talk
from ..scene import FAULTS
from .usual import bulk, other_port


@FAULTS.add("backend_dead", "server_host", points=("client",), seconds=40.0)
def balancer_with_a_dead_backend(office: Office) -> None:
    one_of_four_backends(office)


@FAULTS.add("snat_exhaustion", "network", points=("client",), seconds=40.0)
def nat_out_of_ports(office: Office) -> None:
    """A NAT has so many ports for one destination; while all are taken, new connections fail."""
    office.background(server_port=other_port(office))
    ports = office.dice.choice([32, 64, 128])
    taken: set[int] = set()

    def full(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or segment.destination_port != office.port:
            return False
        if segment.flags & SYN and segment.source_port not in taken:
            if len(taken) >= ports:
                return True
            taken.add(segment.source_port)
        if segment.flags & RST or (segment.flags & 1):
            port = segment.source_port
            office.world.later(0.5, lambda: taken.discard(port))
        return False

    office.path.there.blocks = full
    for n in range(ports * 2):
        hold = office.dice.uniform(17, 24)
        talk(
            office.client,
            office.server,
            office.port,
            [*chatter(office.dice, 1, pause=0.01), *chatter(office.dice, 1, pause=hold)],
            begin=1.0 + n * 14 / ports,
        )


@FAULTS.add("syn_flood", "client", points=("server", "between"))
def flood(office: Office) -> None:
    office.background(server_port=other_port(office))
    target, world, dice = office.server, office.world, office.dice
    answered = dice.random() < 0.5
    for n in range(500):
        source = f"{dice.randrange(11, 200)}.{dice.randrange(256)}.{dice.randrange(256)}.{dice.randrange(1, 255)}"
        port = dice.randrange(1024, 65000)
        syn = Segment(port, office.port, dice.randrange(1 << 32), 0, SYN, b"", 64240, b"\2\4\5\xb4")
        begin = 2.0 + n * 0.008
        world.later(
            begin,
            lambda syn=syn, source=source: world.capture(
                Packet(source, target.address, TCP_PROTOCOL, syn, ttl=dice.randrange(50, 120)), 4, 0.5
            ),
        )  # type: ignore[misc]
        if answered:
            back = Segment(
                office.port,
                port,
                dice.randrange(1 << 32),
                syn.seq + 1 & 0xFFFFFFFF,
                SYN | ACK,
                b"",
                64240,
                b"\2\4\5\xb4",
            )
            world.later(
                begin + 0.0002,
                lambda back=back, source=source: world.capture(Packet(target.address, source, TCP_PROTOCOL, back), 0),
            )  # type: ignore[misc]


@FAULTS.add("port_scan", "client")
def ports_tried_one_after_another(office: Office) -> None:
    office.background(server_port=other_port(office))
    scanner = office.client
    for n, port in enumerate(office.dice.sample(range(1, 1024), 120)):
        attempt(scanner, office.server.address, port, 1.0 + n * 0.02)


@FAULTS.add("port_scan", "client", points=("client",))
def hosts_tried_one_after_another(office: Office) -> None:
    office.background(server_port=other_port(office))
    net = office._net()
    for n in range(60):
        target = Host(office.world, f"{net}.{n + 4}")
        target.silent = n % 3 > 0
        office.new_path(office.client, target)
        attempt(office.client, target.address, 445, 1.0 + n * 0.05)


@FAULTS.add("capture_incomplete", "none")
def capturer_too_slow(office: Office) -> None:
    office.background(server_port=other_port(office))
    office.world.capture_misses = 0.08
    for n in range(3):
        bulk(office, 400_000, begin=1.0 + n)
