"""ARP (RFC 826): which requests went unanswered, who announced itself, which address two cards claim (RFC 5227)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from ghost.pcap.bounded import Noted
from ghost.pcap.layout import SAMPLE_FRAMES
from ghost.pcap.model import ArpSection, DuplicateAddress, UnansweredArp

_ANSWER_NS = 5_000_000_000
"""A reply later than this answers no open request."""
_NOBODY = b"\0\0\0\0"


@dataclass(slots=True)
class _Asked:
    """Requests for one address. `open` are the times of those no reply followed yet."""

    open: dict[bytes, list[int]] = field(default_factory=dict)
    unanswered: int = 0
    askers: dict[bytes, None] = field(default_factory=dict)
    frames: list[int] = field(default_factory=list)
    answered: bool = False


@dataclass(slots=True)
class _Claims:
    """Hardware addresses that claimed one address, with the first frame of each."""

    macs: dict[bytes, int] = field(default_factory=dict)
    last: bytes = b""
    alternations: int = 0


class ArpTracker:
    def __init__(self) -> None:
        self._requests = self._replies = self._probes = 0
        self._gratuitous = Noted()
        self._asked: dict[bytes, _Asked] = {}
        self._claims: dict[bytes, _Claims] = {}

    def packet(self, message: bytes, frame: int, now: int) -> bool:
        """Take in one ARP message; False if it is none that can be read."""
        # Ethernet (or any 6-byte) hardware, IPv4 protocol.
        if len(message) < 28 or message[2:6] != b"\x08\x00\x06\x04":
            return False
        operation = int.from_bytes(message[6:8], "big")
        sender_mac, sender, target = message[8:14], message[14:18], message[24:28]
        if operation not in (1, 2):
            return True
        if sender != _NOBODY:
            self._claim(sender, sender_mac, frame)
        if operation == 2:
            self._replies += 1
            if sender == target or target == _NOBODY:
                self._gratuitous.add(frame)
            asked = self._asked.get(sender)
            if asked is not None:
                self._answer(asked, target, now)
            return True
        self._requests += 1
        if sender == target:
            self._gratuitous.add(frame)
        elif sender == _NOBODY:
            self._probes += 1
        else:
            asked = self._asked.setdefault(target, _Asked())
            asked.open.setdefault(sender, []).append(now)
            if len(asked.frames) < SAMPLE_FRAMES:
                asked.frames.append(frame)
            if len(asked.askers) < SAMPLE_FRAMES:
                asked.askers[sender] = None
        return True

    def _answer(self, asked: _Asked, asker: bytes, now: int) -> None:
        """A reply to `asker` answers its latest request, and with it the ones repeated for the same question."""
        times = asked.open.get(asker)
        if times and now - times[-1] <= _ANSWER_NS:
            # Requests before the answered one in the same burst were repeats of it.
            late = [then for then in times if now - then > _ANSWER_NS]
            asked.unanswered += len(late)
            del asked.open[asker]
            asked.answered = True

    def _claim(self, address: bytes, mac: bytes, frame: int) -> None:
        claims = self._claims.setdefault(address, _Claims())
        if len(claims.macs) < 16:
            claims.macs.setdefault(mac, frame)
        if claims.last and claims.last != mac:
            claims.alternations += 1
        claims.last = mac

    def section(self) -> ArpSection | None:
        if not self._requests and not self._replies:
            return None
        unanswered = []
        for address, asked in self._asked.items():
            count = asked.unanswered + sum(len(times) for times in asked.open.values())
            if count:
                unanswered.append(
                    UnansweredArp(
                        ip=_text(address),
                        count=count,
                        asked_by=tuple(map(_text, asked.askers)),
                        sample_frames=tuple(asked.frames),
                        ever_answered=asked.answered,
                    )
                )
        return ArpSection(
            total_requests=self._requests,
            total_replies=self._replies,
            gratuitous=self._gratuitous.occurrences(),
            probes=self._probes,
            unanswered_requests=tuple(sorted(unanswered, key=lambda one: (-one.count, one.ip))),
            duplicate_ips=tuple(
                DuplicateAddress(
                    ip=_text(address),
                    macs=tuple(mac.hex(":") for mac in claims.macs),
                    sample_frames=tuple(claims.macs.values()),
                    alternations=claims.alternations,
                )
                for address, claims in self._claims.items()
                if len(claims.macs) > 1
            ),
        )


def _text(address: bytes) -> str:
    return str(ipaddress.IPv4Address(address))
