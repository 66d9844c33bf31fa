"""Scenes seen at an appliance behind an Azure gateway load balancer: each packet comes in one tunnel and leaves in the
other."""

from __future__ import annotations

from collections.abc import Iterator

from ..wire import ethernet, ip, udp
from .office import Office, chatter, talk, web
from .scene import Scenes

SCENES = Scenes()
_BETWEEN = ("between",)
_INNER, _OUTER = (10800, 800), (10801, 801)
"""UDP port and VXLAN identifier."""


def _at_appliance(office: Office, slowest: float, *, routes: bool) -> None:
    """All traffic but DNS passes the appliance, which holds a packet for up to `slowest` seconds and lowers its TTL if
    it routes."""
    balancer, appliance = (office.new_host("10.77.0").address for _ in range(2))
    inside = {bytes(map(int, host.address.split("."))) for host in (office.server, *office.others)}
    resolver = bytes(map(int, office.resolver.address.split(".")))

    def enclosed(frame: bytes, tunnel: tuple[int, int], ends: tuple[str, str]) -> bytes:
        port, network = tunnel
        head = b"\x08\0\0\0" + (network << 8).to_bytes(4, "big")
        return ethernet(ip(*ends, 17, udp(50_000, port, head + frame), number=office.dice.randrange(65536)))

    def both_tunnels(frame: bytes) -> Iterator[tuple[int, bytes]]:
        if frame[12:14] != b"\x08\0" or resolver in (frame[26:30], frame[30:34]):
            yield 0, frame
            return
        tunnels = (_INNER, _OUTER) if frame[26:30] in inside else (_OUTER, _INNER)
        passed = frame[:22] + bytes([frame[22] - routes]) + frame[23:]
        held = int(office.dice.uniform(0.05, 1) * slowest * 1e9)
        yield 0, enclosed(frame, tunnels[0], (balancer, appliance))
        yield held, enclosed(passed, tunnels[1], (appliance, balancer))

    office.world.seen_as = both_tunnels
    office.background()
    for n in range(4):
        talk(office.client, office.server, 443, web(office.dice, office.name("www"), [80_000, 900]), begin=1.0 + n,
             client_options=office.opts(), server_options=office.opts())  # fmt: skip
        talk(office.client, office.server, office.port, chatter(office.dice, 8), begin=1.2 + n)


@SCENES.add("none", "none", points=_BETWEEN, low=(("duplicate_packets", "none"),))
def bridged_by_an_appliance(office: Office) -> None:
    _at_appliance(office, office.dice.choice([0.0003, 0.002]), routes=False)


@SCENES.add("none", "none", points=_BETWEEN, low=(("duplicate_packets", "none"),))
def routed_by_an_appliance(office: Office) -> None:
    _at_appliance(office, 0.002, routes=True)


@SCENES.add("none", "none", points=_BETWEEN, low=(("duplicate_packets", "none"),))
def held_by_an_appliance_that_inspects(office: Office) -> None:
    _at_appliance(office, 0.012, routes=False)


@SCENES.add("loss", "network", points=_BETWEEN)
def loss_behind_an_appliance(office: Office) -> None:
    office.path.back.loss = 0.1
    _at_appliance(office, 0.002, routes=False)
