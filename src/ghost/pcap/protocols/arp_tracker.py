"""ARP (RFC 826): unanswered requests, announcements, and addresses claimed by two devices (RFC 5227)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from ghost.pcap.model import AddressClaims, ArpSection, DuplicateAddress
from ghost.pcap.protocols.bounded_counts import EventCounter
from ghost.pcap.protocols.neighbour_resolution import ANSWER_NS, Requests

_NOBODY = b"\0\0\0\0"
_MOST_CLAIMANTS = 16
_MOST_TOLD = 1_000


@dataclass(slots=True)
class _Claimant:
    """How one device claimed an address."""

    frame: int
    claims: int = 0
    unasked: int = 0
    told: dict[bytes, int] = field(default_factory=dict)
    """Unasked replies by whom they were sent to."""


@dataclass(slots=True)
class _Claims:
    """Who claimed one address."""

    by: dict[bytes, _Claimant] = field(default_factory=dict)
    last: bytes = b""
    alternations: int = 0

    def as_duplicate(self, address: bytes) -> DuplicateAddress:
        return DuplicateAddress(
            ip=_text(address),
            macs=tuple(mac.hex(":") for mac in self.by),
            sample_frames=tuple(claimant.frame for claimant in self.by.values()),
            alternations=self.alternations,
            claims=tuple(
                AddressClaims(one.claims, one.unasked, max(one.told.values(), default=0)) for one in self.by.values()
            ),
        )


class ArpTracker:
    def __init__(self) -> None:
        self._requests = self._replies = self._probes = 0
        self._gratuitous = EventCounter()
        self._asked: Requests[bytes] = Requests()
        self._claims: dict[bytes, _Claims] = {}

    def packet(self, message: bytes, frame: int, now: int) -> bool:
        """Read one ARP message; return False if it cannot be read."""
        # Ethernet (or any 6-byte) hardware, IPv4 protocol.
        if len(message) < 28 or message[2:6] != b"\x08\x00\x06\x04":
            return False
        operation = int.from_bytes(message[6:8], "big")
        sender_mac, sender, target = message[8:14], message[14:18], message[24:28]
        if operation not in (1, 2):
            return True
        if sender != _NOBODY:
            self._asked.heard(sender)
            self._claim(sender, sender_mac, operation, target, frame, now)
        if operation == 2:
            self._replies += 1
            if sender == target or target == _NOBODY:
                self._gratuitous.add(frame)
            self._asked.answer(sender, target, now)
            return True
        self._requests += 1
        if sender == target:
            self._gratuitous.add(frame)
        elif sender == _NOBODY:
            self._probes += 1
        else:
            self._asked.ask(sender, target, frame, now)
        return True

    def _claim(self, address: bytes, mac: bytes, operation: int, target: bytes, frame: int, now: int) -> None:
        claims = self._claims.setdefault(address, _Claims())
        claims.alternations += claims.last not in (b"", mac)
        claims.last = mac
        by = claims.by.get(mac)
        if by is None:
            if len(claims.by) >= _MOST_CLAIMANTS:
                return
            by = claims.by[mac] = _Claimant(frame)
        by.claims += 1
        if operation == 2 and target not in (address, _NOBODY):
            asked_at = self._asked.asked_at(address, target)
            if asked_at is None or now - asked_at > ANSWER_NS:
                by.unasked += 1
                if target in by.told or len(by.told) < _MOST_TOLD:
                    by.told[target] = by.told.get(target, 0) + 1

    def section(self) -> ArpSection | None:
        if not self._requests and not self._replies:
            return None
        return ArpSection(
            total_requests=self._requests,
            total_replies=self._replies,
            gratuitous=self._gratuitous.occurrences(),
            probes=self._probes,
            unanswered_requests=tuple(self._asked.unanswered(_text, _text)),
            duplicate_ips=tuple(
                claims.as_duplicate(address) for address, claims in self._claims.items() if len(claims.by) > 1
            ),
        )


def _text(address: bytes) -> str:
    return str(ipaddress.IPv4Address(address))
