"""Policers that others have to pass as well, and loss that only is there beside one."""

from __future__ import annotations

from collections.abc import Callable

from .faults.usual import other_port
from .network import Packet
from .office import Office, chatter, talk, tls, web
from .scene import Scene, Scenes

SHARED_RATE = Scenes()


def _bucket(office: Office, bits_a_second: float, burst: int) -> Callable[[Packet], bool]:
    """Drops what comes while it is empty, whosever it is."""
    left, filled = float(burst), 0.0

    def full(packet: Packet) -> bool:
        nonlocal left, filled
        now = office.world.now
        left, filled = min(burst, left + (now - filled) * bits_a_second / 8), now
        if left < packet.size:
            return True
        left -= packet.size
        return False

    return full


def _police(office: Office, bits_a_second: float, burst: int, *, all_ways: bool) -> None:
    """What comes to the client: from everywhere, or from the server alone."""
    bucket = _bucket(office, bits_a_second, burst)
    for other in (office.server, *(office.others if all_ways else [])):
        office.world.paths[office.client.address, other.address].back.blocks = bucket


def _transfer(office: Office, size: int, begin: float) -> None:
    both = web(office.dice, office.name("files"), [size], pause=0.05)
    talk(office.client, office.server, 8080, both, begin=begin, server_options=office.opts())


def _pages(office: Office, host: int, begins: list[float]) -> None:
    dice = office.dice
    for begin in begins:
        said = web(dice, office.name("www"), [dice.randrange(4_000, 24_000) for _ in range(4)], pause=0.4)
        talk(office.client, office.others[host], 80, said, begin=begin)


def _ordinary(office: Office) -> None:
    office.background(server_port=other_port(office))


@SHARED_RATE.add("throughput_limited", "network", points=("client",), seconds=30.0)
def policer_of_everything(office: Office) -> None:
    _ordinary(office)
    _police(office, 4e6, 40_000, all_ways=True)
    _transfer(office, 9_000_000, 2.0)
    _pages(office, 0, [4.0 + 1.7 * n for n in range(8)])
    _pages(office, 1, [5.0 + 1.9 * n for n in range(8)])


@SHARED_RATE.add("throughput_limited", "network", points=("client",), seconds=30.0)
def policer_and_small_talk(office: Office) -> None:
    """A few short messages lose a few segments, which timers have to repair."""
    _ordinary(office)
    _police(office, 6e6, 40_000, all_ways=True)
    _transfer(office, 14_000_000, 1.0)
    for n in range(6):
        talk(office.client, office.others[0], 5432, chatter(office.dice, 12, pause=0.15), begin=3.0 + 2.5 * n)
        talk(office.client, office.others[1], 443, tls(office.dice, office.name("api"), [900] * 3), begin=4.0 + 2 * n)


@SHARED_RATE.add("loss", "network", points=("client",), seconds=40.0)
def policer_beside_a_lossy_path(office: Office) -> None:
    """The other path loses its segments without the transfer, too: that is a fault of its own."""
    _ordinary(office)
    _police(office, 4e6, 40_000, all_ways=False)
    office.world.paths[office.client.address, office.others[0].address].back.loss = 0.09
    _transfer(office, 9_000_000, 12.0)
    _pages(office, 0, [0.5 + 1.5 * n for n in range(22)])


@SHARED_RATE.add("loss", "network", points=("client",), seconds=30.0)
def random_loss_of_everything(office: Office) -> None:
    """On every way to the client: the rate of the transfer wanders, and with others beside it no less."""
    _ordinary(office)
    for other in (office.server, *office.others):
        office.world.paths[office.client.address, other.address].back.loss = 0.03
    _transfer(office, 9_000_000, 2.0)
    _pages(office, 0, [4.0 + 1.7 * n for n in range(8)])
    _pages(office, 1, [5.0 + 1.9 * n for n in range(8)])


def _one_transfer(loss: float, size: int) -> Callable[[Office], None]:
    def play(office: Office) -> None:
        _ordinary(office)
        office.world.paths[office.client.address, office.server.address].back.loss = loss
        _transfer(office, size, 2.0)

    return play


RANDOM_LOSS = {
    f"{percent} percent of {megabytes} MB": Scene(
        "random_loss", "loss", "network", _one_transfer(percent / 100, megabytes * 1_000_000), seconds=30.0
    )
    for percent, megabytes in ((1, 9), (2, 6), (3, 9), (5, 14))
}
"""Long transfers whose rate congestion control evens out over a second: not for a policer's sake."""
