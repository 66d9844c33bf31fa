"""DHCP (RFC 2131) and DHCPv6 (RFC 8415): transactions that no server answered, refusals, and who makes offers.

Only types, transaction ids, hardware addresses and server identifiers are read; no other option is. An identifier that
is no hardware address is never shown, for anything may be in it: a short digest stands for it.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ghost.pcap import layout as L
from ghost.pcap.model import DhcpRefused, DhcpSection, DhcpUnanswered
from ghost.pcap.protocols.bounded_counts import EventCounter, Tally, Times, round_robin

WAIT_NS = 3_000_000_000
"""A message that the capture did not follow for so long is not called unanswered."""
_MOST_OPEN = 20_000
_MOST_LISTED = 2_000
_MOST_SERVERS = 10

_TYPES = {
    1: "discover", 2: "offer", 3: "request", 4: "decline", 5: "ack", 6: "nak", 7: "release", 8: "inform",
    9: "forcerenew", 10: "leasequery",
}  # fmt: skip
_TYPES6 = {
    1: "solicit", 2: "advertise", 3: "request", 4: "confirm", 5: "renew", 6: "rebind", 7: "reply", 8: "release",
    9: "decline", 10: "reconfigure", 11: "information_request",
}  # fmt: skip
_ANSWERS = {"discover": ("offer", "ack"), "request": ("ack", "nak"), "inform": ("ack",)}
_ANSWERS6 = {
    name: ("reply", "advertise") if name == "solicit" else ("reply",)
    for name in ("solicit", "request", "confirm", "renew", "rebind", "release", "decline", "information_request")
}
_RELAYED6 = (12, 13)
_BAD_STATUS6 = (2, 3, 4)
_LONGEST_DUID = 130
_DUID_KINDS = {1: "llt", 2: "en", 3: "ll", 4: "uuid"}

_Transaction = tuple[int, bytes, bytes]
"""Version, transaction id, client (hardware address or DUID)."""


@dataclass(frozen=True, slots=True)
class Message:
    version: int
    type: str
    transaction: bytes
    client: bytes
    server: str | None
    status: int = 0
    """DHCPv6: the worst status code."""


@dataclass(slots=True)
class _Asked:
    first: int
    last: int
    frames: list[int]
    count: int = 1
    answered: bool = False


@dataclass(slots=True)
class _Refused:
    """Consecutive refused requests (DHCPNAK) of a client.

    A request that is not refused was granted, though the grant may not have been captured: refusals are broadcast,
    grants often are not.
    """

    requests: int = 0
    offered: int = 0
    """Of these, such as ask for what an offer had promised."""
    frames: list[int] = field(default_factory=list)
    servers: dict[int, None] = field(default_factory=dict)
    open: bytes | None = None
    """Transaction of the latest request, while nobody has answered it."""
    asked: int = 0
    names_server: bool = False

    def ask(self, message: Message, now: int) -> None:
        if self.open is not None and self.open != message.transaction:
            self.grant()
        self.open, self.asked, self.names_server = message.transaction, now, message.server is not None

    def refuse(self, source: int, frame: int) -> None:
        if self.open is None:
            return
        self.open = None
        self.requests += 1
        self.offered += self.names_server
        if len(self.frames) < L.SAMPLE_FRAMES:
            self.frames.append(frame)
        if len(self.servers) < _MOST_SERVERS:
            self.servers[source] = None

    def grant(self) -> None:
        self.requests = self.offered = 0
        self.open = None
        self.frames.clear()
        self.servers.clear()


@dataclass(slots=True)
class _Exchange:
    asked: dict[str, _Asked] = field(default_factory=dict)
    offers: set[str] = field(default_factory=set)
    offer_frame: int = 0
    """Of the first offer of a second server."""


class DhcpTracker:
    def __init__(self) -> None:
        self._messages = Tally(100)
        self._servers: dict[int, int] = {}
        self._exchanges: dict[_Transaction, _Exchange] = {}
        self._refused: dict[bytes, _Refused] = {}
        """By client."""
        self._offering = Tally(1_000)
        self._naks, self._declines, self._no_addresses = EventCounter(), EventCounter(), EventCounter()
        self._answer_times = Times()

    def packet(self, mark: int, payload: bytes, source: int, frame: int, now: int) -> None:
        message = read_dhcp(payload) if mark == L.MARK_DHCP else read_dhcp6(payload)
        if message is None:
            return
        self._messages.add(message.type if message.version == 4 else f"v6/{message.type}")
        key = (message.version, message.transaction, message.client)
        exchange = self._exchanges.get(key)
        if exchange is None:
            exchange = _Exchange()
            if len(self._exchanges) < _MOST_OPEN:
                self._exchanges[key] = exchange
        if message.version == 4:
            self._follow(message, source, frame, now)
        answers = _ANSWERS if message.version == 4 else _ANSWERS6
        if message.type == "decline":
            self._declines.add(frame)
        if message.type in answers:
            self._ask(exchange, message, frame, now)
        elif message.type not in ("decline", "release", "forcerenew", "leasequery", "reconfigure"):
            self._answer(exchange, message, source, frame, now)

    def _follow(self, message: Message, source: int, frame: int, now: int) -> None:
        """Track consecutive refusals."""
        refused = self._refused.get(message.client)
        if refused is None:
            if message.type != "request" or len(self._refused) >= _MOST_OPEN:
                return
            refused = self._refused[message.client] = _Refused()
        if message.type == "request":
            refused.ask(message, now)
        elif message.type == "nak":
            refused.refuse(source, frame)
        elif message.type == "ack":
            refused.grant()

    def _ask(self, exchange: _Exchange, message: Message, frame: int, now: int) -> None:
        asked = exchange.asked.get(message.type)
        if asked is None:
            exchange.asked[message.type] = _Asked(now, now, [frame])
            return
        asked.count += 1
        if not asked.answered:
            asked.last = now
        if len(asked.frames) < L.SAMPLE_FRAMES:
            asked.frames.append(frame)

    def _answer(self, exchange: _Exchange, message: Message, source: int, frame: int, now: int) -> None:
        if source in self._servers or len(self._servers) < 1_000:
            self._servers[source] = self._servers.get(source, 0) + 1
        if message.type == "nak":
            self._naks.add(frame)
        if message.status in _BAD_STATUS6:
            self._no_addresses.add(frame)
        if message.type in ("offer", "advertise") and message.server is not None:
            self._offering.add(message.server)
            if message.server not in exchange.offers and len(exchange.offers) < _MOST_SERVERS:
                exchange.offers.add(message.server)
                if len(exchange.offers) == 2:
                    exchange.offer_frame = frame
        answers = _ANSWERS if message.version == 4 else _ANSWERS6
        for kind, asked in exchange.asked.items():
            if message.type in answers[kind] and not asked.answered:
                asked.answered = True
                self._answer_times.add(now - asked.last)

    def section(self, address: Callable[[int], str], capture_end_ns: int) -> DhcpSection | None:
        if not self._messages:
            return None
        unanswered = [
            DhcpUnanswered(_shown(version, client), kind, asked.count, tuple(asked.frames))
            for (version, _, client), exchange in self._exchanges.items()
            for kind, asked in exchange.asked.items()
            if not asked.answered and capture_end_ns - asked.first >= WAIT_NS
        ]
        unanswered.sort(key=lambda one: one.frames)
        several = EventCounter()
        for frame in sorted(each.offer_frame for each in self._exchanges.values() if each.offer_frame):
            several.add(frame)
        servers = sorted((-count, address(number)) for number, count in self._servers.items())
        refused = [
            DhcpRefused(
                client=_shown(4, client),
                requests=row.requests,
                offered=row.offered,
                servers=tuple(map(address, row.servers)),
                frames=tuple(row.frames),
            )
            for client, row in self._refused.items()
            if row.requests and (row.open is None or capture_end_ns - row.asked < WAIT_NS)
        ]
        refused.sort(key=lambda one: (-one.requests, one.frames))
        return DhcpSection(
            messages=self._messages.most(),
            servers={name: -count for count, name in servers[:_MOST_SERVERS]},
            unanswered=tuple(round_robin(unanswered, _MOST_LISTED, lambda one: one.client)),
            unanswered_total=len(unanswered),
            refused=tuple(refused[:_MOST_LISTED]),
            naks=self._naks.occurrences(),
            declines=self._declines.occurrences(),
            no_addresses=self._no_addresses.occurrences(),
            offering_servers=tuple(self._offering.most(_MOST_SERVERS)),
            several_offers=several.occurrences(),
            answer_ms=self._answer_times.statistics(),
        )


def read_dhcp(payload: bytes) -> Message | None:
    """Return the message; None if it is no DHCP message (plain BOOTP is none)."""
    if len(payload) < 240 or payload[236:240] != b"\x63\x82\x53\x63" or payload[0] not in (1, 2):
        return None
    kind, server = 0, None
    at = 240
    while at + 1 < len(payload) and payload[at] != 255:
        if payload[at] == 0:
            at += 1
            continue
        option, size = payload[at], payload[at + 1]
        value = payload[at + 2 : at + 2 + size]
        if option == 53 and len(value) == 1:
            kind = value[0]
        elif option == 54 and len(value) == 4:
            server = str(ipaddress.IPv4Address(value))
        at += 2 + size
    if not kind:
        return None
    hardware = payload[28 : 28 + min(payload[2], 16)]
    return Message(4, _TYPES.get(kind, f"type_{kind}"), payload[4:8], hardware, server)


def read_dhcp6(payload: bytes) -> Message | None:
    for _ in range(8):
        if len(payload) < 34 or payload[0] not in _RELAYED6:
            break
        # A relay's message carries the other one in its option 9.
        payload = next((value for option, value in _options6(payload[34:]) if option == 9), b"")
    if len(payload) < 4 or not payload[0] or payload[0] in _RELAYED6:
        return None
    client, server, status = b"", None, 0
    for option, value in _options6(payload[4:]):
        if option == 1:
            client = value[:_LONGEST_DUID]
        elif option == 2:
            server = _shown(6, value[:_LONGEST_DUID])
        elif option == 13:
            status = max(status, int.from_bytes(value[:2], "big"))
        elif option in (3, 25):
            # An identity association: its own status, or that of an address or prefix in it.
            inner = [int.from_bytes(part[:2], "big") for number, part in _options6(value[12:]) if number == 13]
            status = max([status, *inner])
    return Message(6, _TYPES6.get(payload[0], f"type_{payload[0]}"), payload[1:4], client, server, status)


def _options6(octets: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(octets):
        size = int.from_bytes(octets[at + 2 : at + 4], "big")
        yield int.from_bytes(octets[at : at + 2], "big"), octets[at + 4 : at + 4 + size]
        at += 4 + size


def _shown(version: int, identifier: bytes) -> str:
    """Return a client identifier as text: a hardware address, also inside a DUID (RFC 8415, 11); else its kind and a
    digest."""
    if version == 4 and len(identifier) == 6:
        return identifier.hex(":")
    kind = int.from_bytes(identifier[:2], "big")
    # Link-layer with time, and link-layer, of Ethernet.
    if version == 6 and (kind, len(identifier)) in ((1, 14), (3, 10)) and identifier[2:4] == b"\0\1":
        return identifier[-6:].hex(":")
    name = f"duid-{_DUID_KINDS.get(kind, 'other')}" if version == 6 else "client"
    return f"{name}-{hashlib.blake2s(identifier, digest_size=4).hexdigest()}"
