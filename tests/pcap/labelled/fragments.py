"""First fragments of datagrams, and the message of a receiver that waited for the others in vain."""

from __future__ import annotations

from dataclasses import dataclass

from ..wire import ethernet, ip
from .network import ICMP6_PROTOCOL, ICMP_PROTOCOL, UDP_PROTOCOL, Packet

_MORE = 0x2000
_FRAGMENT_HEADER = 44
_EXCEEDED, _EXCEEDED6, _REASSEMBLY = 11, 3, 1


@dataclass(frozen=True)
class Fragment:
    """The first part of a UDP datagram on its way."""

    source: str
    target: str
    body: bytes
    number: int

    def packet(self) -> bytes:
        """IP bytes. By IPv6 a header of its own (RFC 8200, 4.5) says that more follows."""
        if ":" not in self.source:
            return ip(self.source, self.target, UDP_PROTOCOL, self.body, number=self.number, fragment=_MORE)
        extension = bytes([UDP_PROTOCOL, 0, 0, 1]) + self.number.to_bytes(4, "big")
        return ip(self.source, self.target, _FRAGMENT_HEADER, extension + self.body)

    def frame(self) -> bytes:
        return ethernet(self.packet(), 0x86DD if ":" in self.source else 0x0800)

    def given_up(self) -> Packet:
        """Fragment reassembly time exceeded (RFC 792, RFC 4443)."""
        six = ":" in self.source
        head = bytes([_EXCEEDED6 if six else _EXCEEDED, _REASSEMBLY]) + bytes(6)
        quoted = self.packet()[: 40 + 8 + 64 if six else 28]
        return Packet(self.target, self.source, ICMP6_PROTOCOL if six else ICMP_PROTOCOL, body=head + quoted)
