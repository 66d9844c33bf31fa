"""Which listening sockets of a Linux guest answer at an address and port.

Reads `ss -tlnpH` and `ss -ulnpH`; raises `ValueError` with the line for text that is not of that form. Sockets that
serve both families have the address `*`; `[::]` takes IPv6 alone. ss(8), ip(7), ipv6(7)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from ghost.net.address_matching import Address

SOCKET = re.compile(
    r"(?:LISTEN|UNCONN)\s+\d+\s+\d+\s+"
    r"(?P<address>\*|[0-9.]+|\[?[0-9a-fA-F:.]+\]?)(?:%(?P<device>[^\s:]+))?:(?P<port>\d+|\*)\s+\S+(?:\s+(?P<process>.*))?"
)


@dataclass(frozen=True)
class Listener:
    address: Address | None
    """None: every address of both families. An unspecified address: every one of its family."""
    port: int
    device: str = ""
    """Empty: packets from every interface."""
    process: str = ""

    def answers(self, destination: Address, port: int, in_interface: str | None = None) -> bool:
        """Whether a packet to a local address reaches it; `in_interface` None: from any."""
        if port != self.port or (self.device and in_interface not in (None, self.device)):
            return False
        if self.address is None:
            return True
        if self.address.is_unspecified:
            return destination.version == self.address.version
        return destination == self.address


def read_listeners(text: str) -> tuple[Listener, ...]:
    return tuple(_listener(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def listeners_at(
    listeners: Iterable[Listener], destination: Address, port: int, in_interface: str | None = None
) -> tuple[Listener, ...]:
    """Return the sockets that a packet to a local address may reach; among several the most specific gets it."""
    return tuple(listener for listener in listeners if listener.answers(destination, port, in_interface))


def _listener(number: int, line: str) -> Listener:
    found = SOCKET.fullmatch(line.strip())
    if not found or found["port"] == "*" or int(found["port"]) > 65535:
        raise ValueError(f"line {number} is not of ss -tlnpH: {line[:200]!r}")
    stated = found["address"].strip("[]")
    address = None if stated in ("*", "::") and not found["address"].startswith("[") else ip_address(stated)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return Listener(address, int(found["port"]), found["device"] or "", (found["process"] or "").strip())
