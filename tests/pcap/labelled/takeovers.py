"""Scenes in which addresses of the segment change hands: by design, by mistake, and by theft."""

from __future__ import annotations

from dataclasses import dataclass

from . import messages
from .faults.usual import other_port
from .office import Office
from .scene import Scenes

SCENES = Scenes()
_NOBODY = bytes(6)
_EVERYBODY = b"\xff" * 6


@dataclass
class Segment:
    """Devices of the client's segment, and what they say by ARP."""

    office: Office

    def address(self, number: int) -> str:
        return f"{self.office.gateway.rsplit('.', 1)[0]}.{number}"

    def mac(self) -> bytes:
        return bytes([2, *self.office.dice.randbytes(5)])

    def announces(self, mac: bytes, address: str, at: float, times: int = 5) -> None:
        """Gratuitous ARP, as keepalived and its like send it: requests or replies."""
        operation = self.office.dice.choice([1, 2])
        for n in range(times):
            self._say(at + 0.3 * n, messages.arp(operation, mac, address, _EVERYBODY, address))

    def asks(self, mac: bytes, address: str, target: str, at: float) -> None:
        self._say(at, messages.arp(1, mac, address, _NOBODY, target))

    def replies(self, mac: bytes, address: str, to: str, at: float) -> None:
        self._say(at, messages.arp(2, mac, address, self.office.client.mac, to))

    def asked_and_answered(self, mac: bytes, address: str, at: float) -> None:
        client = self.office.client
        self.asks(client.mac, client.address, address, at)
        self.replies(mac, address, client.address, at + 0.0005)

    def _say(self, at: float, frame: bytes) -> None:
        self.office.world.later(at, lambda: self.office.world.write(frame))


def _segment(office: Office) -> Segment:
    office.background(server_port=other_port(office))
    return Segment(office)


@SCENES.add("none", "none", points=("client",))
def virtual_addresses_fail_over(office: Office) -> None:
    """The master of several virtual addresses dies; the backup announces them all."""
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    for number in range(2, 2 + office.dice.randrange(1, 5)):
        on.asked_and_answered(one, on.address(number), 1.0 + 0.1 * number)
        on.announces(other, on.address(number), 6.0)
        on.announces(other, on.address(number), 11.0)
        on.asked_and_answered(other, on.address(number), 14.0)


@SCENES.add("none", "none", points=("client",), seconds=60.0)
def virtual_addresses_fail_over_and_back(office: Office) -> None:
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    back = 10.0 + office.dice.uniform(3.5, 30.0)
    for number in range(2, 2 + office.dice.randrange(1, 5)):
        on.asked_and_answered(one, on.address(number), 1.0)
        on.announces(other, on.address(number), 10.0)
        on.asked_and_answered(other, on.address(number), 12.0)
        on.announces(one, on.address(number), back)


@SCENES.add("none", "none", points=("client",))
def services_of_two_dead_nodes_move_to_the_third(office: Office) -> None:
    on = _segment(office)
    first, second, third = on.mac(), on.mac(), on.mac()
    for number, holder in ((2, first), (3, second), (4, third)):
        on.asked_and_answered(holder, on.address(number), 1.0 + 0.1 * number)
    for number in (2, 3):
        on.announces(third, on.address(number), 8.0 + 0.05 * number)


@SCENES.add("none", "none", points=("client",), seconds=400.0)
def a_master_that_repeats_its_announcement_each_minute(office: Office) -> None:
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    on.asked_and_answered(one, on.address(2), 1.0)
    for minute in range(6):
        on.announces(other, on.address(2), 8.0 + 60.0 * minute, times=5 if minute == 0 else 1)


@SCENES.add("none", "none", points=("client",), seconds=300.0)
def leases_that_go_round(office: Office) -> None:
    """Guests come and go: each gets the addresses that others had, and does not announce them."""
    on = _segment(office)
    guests = [on.mac() for _ in range(4)]
    for n in range(12):
        begin, address = 5.0 + 20 * n, on.address(100 + n // 2)
        for again in range(4):
            on.asks(guests[(n + n // 2) % 4], address, office.gateway, begin + 4 * again)
        on.asked_and_answered(guests[(n + n // 2) % 4], address, begin + 13)


@SCENES.add("arp_conflict", "server_host", points=("client",), seconds=60.0)
def two_masters_of_one_address(office: Office) -> None:
    """Split brain: each answers, and each repeats its announcement."""
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    for number in (2, 3):
        for n in range(5):
            on.announces(one, on.address(number), 1.0 + 10 * n, times=1)
            on.announces(other, on.address(number), 2.0 + 10 * n, times=1)
        on.asked_and_answered(one, on.address(number), 25.5)
        on.replies(other, on.address(number), office.client.address, 25.6)


@SCENES.add("arp_conflict", "server_host", points=("client",), seconds=60.0)
def an_address_taken_by_a_host_that_boots(office: Office) -> None:
    """It announces itself; the one that holds the address knows nothing of conflicts, and goes on asking for others."""
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    on.asks(one, on.address(9), office.gateway, 1.0)
    on.announces(other, on.address(9), 6.0, times=2)
    on.asks(one, on.address(9), office.gateway, 21.0)
    on.asks(other, on.address(9), office.gateway, 33.0)


@SCENES.add("arp_conflict", "server_host", points=("client",), seconds=60.0)
def a_takeover_that_goes_back_and_forth(office: Office) -> None:
    """Two routers that do not hear each other's advertisements in time."""
    on = _segment(office)
    pair = (on.mac(), on.mac())
    on.asked_and_answered(pair[0], on.address(2), 0.5)
    for n in range(1, 8):
        on.announces(pair[n % 2], on.address(2), 1.0 + 6.0 * n, times=2)


@SCENES.add("arp_conflict", "network", points=("client",), seconds=60.0, severity="CRITICAL")
def a_thief_between_client_and_gateway(office: Office) -> None:
    on = _segment(office)
    gateway, victim, thief = on.mac(), on.mac(), on.mac()
    on.asked_and_answered(gateway, on.address(1), 0.5)
    on.asks(victim, on.address(77), office.gateway, 0.6)
    for n in range(12):
        on.replies(thief, on.address(1), on.address(77), 4.0 + 2 * n)
        on.replies(thief, on.address(77), on.address(1), 4.1 + 2 * n)


@SCENES.add("arp_conflict", "network", points=("client",), seconds=60.0, severity="CRITICAL")
def a_thief_that_tells_one_victim(office: Office) -> None:
    """One way alone: the victim is told where the gateway is, and the gateway answers everybody itself."""
    on = _segment(office)
    gateway, thief, victim = on.mac(), on.mac(), office.dice.choice([office.client.address, on.address(77)])
    for n in range(4):
        asker = on.address(80 + n)
        on.asks(on.mac(), asker, on.address(2), 1.0 + 11 * n)
        on.replies(gateway, on.address(2), asker, 1.001 + 11 * n)
    on.asks(on.mac(), victim, on.address(2), 5.9)
    for n in range(25):
        on.replies(thief, on.address(2), victim, 6.0 + 1.7 * n)


@SCENES.add("arp_conflict", "server_host", points=("client",), seconds=60.0)
def two_hosts_of_one_address_heard_in_one_direction(office: Office) -> None:
    """What is asked does not pass here, and two that answer are heard."""
    on = _segment(office)
    pair = (on.mac(), on.mac())
    for n in range(24):
        on.replies(pair[n % 2], on.address(9), on.address(77), 2.0 + 2 * n + 0.002 * (n % 2))


@SCENES.add("none", "none", points=("client",), seconds=60.0)
def a_card_that_is_replaced(office: Office) -> None:
    """Nobody but the new one answers from then on, and one reply comes late enough to look unasked."""
    on, (one, other) = _segment(office), (Segment(office).mac(), Segment(office).mac())
    on.asked_and_answered(one, on.address(2), 1.0)
    for n in range(12):
        on.asked_and_answered(other, on.address(2), 20.0 + 3 * n)
    on.replies(other, on.address(2), on.address(77), 41.0)


@SCENES.add("arp_conflict", "network", points=("client",), seconds=60.0, severity="CRITICAL")
def a_thief_of_two_addresses_of_one_router(office: Office) -> None:
    """Both belong to one device, as after a takeover; but the replies come to whom nobody asked for them."""
    on = _segment(office)
    router, thief = on.mac(), on.mac()
    for number in (1, 2):
        on.asked_and_answered(router, on.address(number), 0.5)
        for n in range(12):
            on.replies(thief, on.address(number), office.client.address, 10.0 + 2 * n)
        on.asks(router, on.address(number), office.client.address, 21.1)
