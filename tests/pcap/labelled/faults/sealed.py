"""Scenes of which most could not be read."""

from __future__ import annotations

from ...wire import ethernet, ip
from ..office import Office
from ..scene import FAULTS
from .usual import other_port

_ESP = 50


def esp(office: Office, packets: int) -> None:
    """An IPsec tunnel between two gateways, which passes the capture point."""
    near, far = f"198.51.100.{office.dice.randrange(1, 255)}", f"203.0.113.{office.dice.randrange(1, 255)}"
    for n in range(packets):
        ends = (near, far) if office.dice.random() < 0.5 else (far, near)
        sealed = ip(*ends, _ESP, office.dice.randbytes(office.dice.randrange(60, 1400)), number=n % 65_535 + 1)
        office.world.later(n * 18.0 / packets, lambda sealed=sealed: office.world.write(ethernet(sealed)))  # type: ignore[misc]


@FAULTS.add("not_decoded", "none")
def all_in_a_tunnel(office: Office) -> None:
    office.background(server_port=other_port(office))
    esp(office, 3000)
