"""DHCP (RFC 2131) and DHCPv6 (RFC 8415): messages by type, refusals, and clients whose discoveries nobody answers.

No option but the message type is read, and no client identifier but a hardware address.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import DhcpClient, DhcpSection
from ghost.pcap.protocols.bounded_counts import EventCounter, Tally

WAIT_NS = 3_000_000_000
"""A discovery that the capture did not follow for so long is not called unanswered."""
_MOST_CLIENTS = 20_000
_MOST_LISTED = 50

_TYPES = {
    1: "discover", 2: "offer", 3: "request", 4: "decline", 5: "ack", 6: "nak", 7: "release", 8: "inform",
    9: "forcerenew", 10: "leasequery",
}  # fmt: skip
_TYPES6 = {
    1: "solicit", 2: "advertise", 3: "request", 4: "confirm", 5: "renew", 6: "rebind", 7: "reply", 8: "release",
    9: "decline", 10: "reconfigure", 11: "information_request", 12: "relay_forward", 13: "relay_reply",
}  # fmt: skip


@dataclass(slots=True)
class _Discoveries:
    first: int
    count: int = 0
    frames: list[int] = field(default_factory=list)


class DhcpTracker:
    def __init__(self) -> None:
        self._messages = Tally(100)
        self._naks = EventCounter()
        self._waiting: dict[bytes, _Discoveries] = {}
        """By the client's hardware address; gone with any other message from or to it: a request takes an offer up."""

    def packet(self, mark: int, payload: bytes, frame: int, now: int) -> None:
        if mark == L.MARK_DHCP6:
            self._messages.add(f"v6/{_TYPES6.get(payload[0], 'other')}")
            return
        kind = message_type(payload)
        if kind is None:
            return
        self._messages.add(kind)
        if kind == "nak":
            self._naks.add(frame)
        if payload[1:3] != b"\1\6":
            return  # no Ethernet address
        client = payload[28:34]
        if kind != "discover":
            self._waiting.pop(client, None)
        elif client in self._waiting or len(self._waiting) < _MOST_CLIENTS:
            asked = self._waiting.setdefault(client, _Discoveries(now))
            asked.count += 1
            if len(asked.frames) < L.SAMPLE_FRAMES:
                asked.frames.append(frame)

    def section(self, capture_end_ns: int) -> DhcpSection | None:
        if not self._messages:
            return None
        unanswered = [
            DhcpClient(client.hex(":"), asked.count, tuple(asked.frames))
            for client, asked in self._waiting.items()
            if capture_end_ns - asked.first >= WAIT_NS
        ]
        unanswered.sort(key=lambda one: (-one.discoveries, one.frames))
        return DhcpSection(
            messages=self._messages.most(),
            unanswered=tuple(unanswered[:_MOST_LISTED]),
            unanswered_total=len(unanswered),
            naks=self._naks.occurrences(),
        )


def message_type(payload: bytes) -> str | None:
    """Return the type of a DHCP message; None if it is none (plain BOOTP has no type)."""
    if len(payload) < 240 or payload[236:240] != b"\x63\x82\x53\x63":
        return None
    at = 240
    while at + 2 < len(payload) and payload[at] != 255:
        if payload[at] == 53:
            return _TYPES.get(payload[at + 2], "other")
        at += 1 if payload[at] == 0 else 2 + payload[at + 1]
    return None
