"""Addresses in DNS answers (RFC 1035, 4.1.3): which ones each server gave each client for a name."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from ghost.pcap.model import DnsAnswer

_MOST_NAMES = 8_192
"""Of all clients and servers together."""
_MOST_ADDRESSES = 64
_KIND_AND_LENGTH = struct.Struct(">H6xH").unpack_from
_PRIVATE_LINK = b"\x0bprivatelink"
"""A label of the alias that a service with private endpoints has in public DNS."""


def read_addresses(message: bytes) -> tuple[list[bytes], bool]:
    """Return the addresses in the answers of a message with one question, and whether these are all."""
    at = message.find(0, 12) + 5  # the question's name is written out: nothing is before it
    found: list[bytes] = []
    try:
        for _ in range(message[6] << 8 | message[7]):
            while 0 < message[at] < 64:
                at += 1 + message[at]
            at += 12 if message[at] else 11
            kind, length = _KIND_AND_LENGTH(message, at - 10)
            at += length
            if at > len(message):
                return found, False
            if (kind == 1 and length == 4) or (kind == 28 and length == 16):
                found.append(message[at - length : at])
    except (IndexError, struct.error):
        return found, False
    return found, message[5] == 1 and not message[2] & 2


@dataclass(slots=True)
class _Given:
    first_ns: int
    frame: int
    addresses: dict[bytes, None] = field(default_factory=dict)
    private_link: bool = False
    complete: bool = True


class Answers:
    def __init__(self) -> None:
        self._given: dict[tuple[int, int, str], _Given] = {}
        self.unlisted = 0
        """Answers for whose names there is no room."""

    def add(self, client: int, server: int, name: str, message: bytes, frame: int, now: int) -> None:
        addresses, whole = read_addresses(message)
        given = self._given.get((client, server, name))
        if given is None:
            if not addresses and whole:
                return
            if len(self._given) >= _MOST_NAMES:
                self.unlisted += 1
                return
            private = ".privatelink." in name or _PRIVATE_LINK in message
            given = self._given[client, server, name] = _Given(now, frame, private_link=private)
        known = given.addresses
        for address in addresses:
            if address not in known:
                given.private_link = given.private_link or _PRIVATE_LINK in message
                if len(known) < _MOST_ADDRESSES:
                    known[address] = None
                else:
                    whole = False
        if not whole:
            given.complete = False

    def section(self, address: Callable[[int], str]) -> tuple[DnsAnswer, ...]:
        return tuple(
            DnsAnswer(
                name=name,
                client=address(client),
                server=address(server),
                addresses=tuple(str(ipaddress.ip_address(each)) for each in given.addresses),
                private_link=given.private_link,
                complete=given.complete,
                first_ns=given.first_ns,
                frame=given.frame,
            )
            for (client, server, name), given in self._given.items()
        )
