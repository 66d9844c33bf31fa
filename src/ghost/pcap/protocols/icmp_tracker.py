"""ICMP (RFC 792, 4884) and ICMPv6 (RFC 4443): echo pairs by addresses, id and sequence; errors with the packet they
quote."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, cast

from ghost.pcap import layout as L
from ghost.pcap.model import EchoPath, IcmpError, IcmpSection
from ghost.pcap.protocols.bounded_counts import EventCounter, Times, merged_times, round_robin
from ghost.pcap.protocols.neighbour_resolution import Requests

Kind = Literal["unreachable", "ttl_exceeded", "packet_too_big", "redirect", "parameter_problem", "source_quench"]

_TYPES_4 = {
    0: "echo_reply", 3: "unreachable", 4: "source_quench", 5: "redirect", 8: "echo_request", 9: "router_advertisement",
    10: "router_solicitation", 11: "ttl_exceeded", 12: "parameter_problem", 13: "timestamp_request",
    14: "timestamp_reply",
}  # fmt: skip
_TYPES_6 = {
    1: "unreachable", 2: "packet_too_big", 3: "ttl_exceeded", 4: "parameter_problem", 128: "echo_request",
    129: "echo_reply", 130: "mld_query", 131: "mld_report", 132: "mld_done", 133: "router_solicitation",
    134: "router_advertisement", 135: "neighbor_solicitation", 136: "neighbor_advertisement", 137: "redirect",
    143: "mld2_report",
}  # fmt: skip
_UNREACHABLE_4 = (
    "network unreachable", "host unreachable", "protocol unreachable", "port unreachable", "fragmentation needed",
    "source route failed", "network unknown", "host unknown", "source host isolated", "network prohibited",
    "host prohibited", "network unreachable for type of service", "host unreachable for type of service",
    "administratively prohibited", "host precedence violation", "precedence cutoff",
)  # fmt: skip
_UNREACHABLE_6 = (
    "no route to destination", "administratively prohibited", "beyond scope of source address", "address unreachable",
    "port unreachable", "source address failed policy", "route rejected", "source routing header error",
)  # fmt: skip
_REDIRECT = (
    "for the network",
    "for the host",
    "for the type of service and network",
    "for the type of service and host",
)
_EXCEEDED = ("hop limit exceeded in transit", "fragment reassembly time exceeded")
_SHORT = {
    "fragmentation needed": "fragmentation_needed", "port unreachable": "port", "host unreachable": "host",
    "network unreachable": "network",
}  # fmt: skip
_PROTOCOLS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}
_ERRORS: frozenset[str] = frozenset(
    ("unreachable", "ttl_exceeded", "packet_too_big", "redirect", "parameter_problem", "source_quench")
)
_SOLICITATION, _ADVERTISEMENT = 135, 136
_NEIGHBOUR = (_SOLICITATION, _ADVERTISEMENT)
_SOURCE_CARD = b"\1"
"""Option of a solicitation: source link-layer address (RFC 4861, 4.6.1)."""
_FRAGMENT = 44
"""IPv6 fragment header (RFC 8200, 4.5), whose second octet is zero."""
_MOST_ERRORS = 1000
_MOST_ERROR_KINDS = 20_000
_MOST_PATHS = 50
_MOST_PROBES = 4096
_ECHO = {4: 8, 6: 128}
"""The type of an echo request by version."""


@dataclass(slots=True)
class _Path:
    """Pings from one address id to another. `open` maps (id, sequence) to time and frame."""

    requests: int = 0
    replies: int = 0
    matched: int = 0
    expired: int = 0
    open: dict[int, tuple[int, int]] = field(default_factory=dict)
    answered: dict[int, None] = field(default_factory=dict)
    frames: list[int] = field(default_factory=list)
    first_request: int = 0
    first_frame: int = 0
    round_trips: Times = field(default_factory=Times)
    last_request: int = 0
    last_reply: int = 0


class _Error(EventCounter):
    """One kind of error, with the hop limits of the pings it quotes."""

    __slots__ = ("hop_limits", "last")

    def __init__(self) -> None:
        super().__init__()
        self.hop_limits: set[int] | None = None
        self.last = 0


_ErrorKey = tuple[
    int, int, int, int, int, str | None, str | None, int | None, int | None, int | None, str | None
]  # fmt: skip


class IcmpTracker:
    """Reads ICMP messages; addresses are ids until the section is made."""

    def __init__(self) -> None:
        self._packets = 0
        self._types: Counter[tuple[int, int, int]] = Counter()
        self._paths: dict[tuple[int, int], _Path] = {}
        self._errors: dict[_ErrorKey, _Error] = {}
        self._probes: dict[tuple[int, int], int] = {}
        """Hop limits of the latest pings, by the id of their source and their own id and sequence."""
        self._probes_before: dict[tuple[int, int], int] = {}
        self._replies_unmatched = self._duplicate_replies = 0
        self._asked: Requests[int] = Requests()

    def packet(
        self,
        version: Literal[4, 6],
        message: bytes,
        source: int,
        destination: int,
        frame: int,
        now: int,
        hop_limit: int = 0,
    ) -> bool:
        if len(message) < 4:
            return False
        kind, code = message[0], message[1]
        self._packets += 1
        self._types[version, kind, code] += 1
        name = (_TYPES_4 if version == 4 else _TYPES_6).get(kind)
        if name == "echo_request" and len(message) >= 8:
            self._request(message, source, destination, frame, now)
            self._probe(source, int.from_bytes(message[4:8], "big"), hop_limit)
        elif name == "echo_reply" and len(message) >= 8:
            self._reply(message, source, destination, now)
        elif name in _ERRORS:
            self._error(version, message, source, destination, frame, now)
        elif kind in _NEIGHBOUR and version == 6 and len(message) >= 24:
            self._neighbour(message, source, destination, frame, now)
        return True

    def _neighbour(self, message: bytes, source: int, destination: int, frame: int, now: int) -> None:
        """Read a neighbour message.

        A solicitation without the sender's link address is duplicate address detection (RFC 4862) and expects no
        answer.
        """
        target = message[8:24]
        if message[0] == _ADVERTISEMENT:
            self._asked.heard(target)
            self._asked.answer(target, destination, now)
        elif message[24:25] == _SOURCE_CARD:
            self._asked.ask(source, target, frame, now)

    def _probe(self, source: int, key: int, hop_limit: int) -> None:
        self._probes[source, key] = hop_limit
        if len(self._probes) > _MOST_PROBES:
            self._probes_before, self._probes = self._probes, {}

    def _path(self, source: int, destination: int) -> _Path:
        path = self._paths.get((source, destination))
        if path is None:
            path = self._paths[source, destination] = _Path()
        return path

    def _request(self, message: bytes, source: int, destination: int, frame: int, now: int) -> None:
        path = self._path(source, destination)
        path.requests += 1
        path.first_request = path.first_request or now
        path.first_frame = path.first_frame or frame
        path.last_request = now
        key = int.from_bytes(message[4:8], "big")
        if key in path.open:
            self._expire(path, key)
        path.open[key] = (now, frame)
        path.answered.pop(key, None)
        if len(path.open) > 4096:
            self._expire(path, next(iter(path.open)))

    def _expire(self, path: _Path, key: int) -> None:
        _, frame = path.open.pop(key)
        path.expired += 1
        if len(path.frames) < L.SAMPLE_FRAMES:
            path.frames.append(frame)

    def _reply(self, message: bytes, source: int, destination: int, now: int) -> None:
        path = self._paths.get((destination, source))
        key = int.from_bytes(message[4:8], "big")
        if path is None:
            self._replies_unmatched += 1
            return
        path.replies += 1
        path.last_reply = now
        if key in path.open:
            then, _ = path.open.pop(key)
            path.matched += 1
            path.answered[key] = None
            if len(path.answered) > 256:
                del path.answered[next(iter(path.answered))]
            path.round_trips.add(now - then)
        elif key in path.answered:
            self._duplicate_replies += 1
        else:
            self._replies_unmatched += 1

    def _error(
        self, version: Literal[4, 6], message: bytes, source: int, destination: int, frame: int, now: int
    ) -> None:
        kind, code = message[0], message[1]
        mtu = gateway = None
        if version == 4:
            if kind == 3 and code == 4 and len(message) >= 8:
                mtu = int.from_bytes(message[6:8], "big") or None
            elif kind == 5 and len(message) >= 8:
                gateway = str(ipaddress.IPv4Address(message[4:8]))
            about = _embedded_4(message[8:])
        else:
            if kind == 2 and len(message) >= 8:
                mtu = int.from_bytes(message[4:8], "big")
            elif kind == 137 and len(message) >= 40:
                gateway = str(ipaddress.IPv6Address(message[8:24]))
            about = (
                (str(ipaddress.IPv6Address(message[24:40])), None, None, None)
                if kind == 137 and gateway
                else (_embedded_6(message[8:]))
            )
        key: _ErrorKey = (version, kind, code, source, destination, *about, mtu, gateway)
        error = self._errors.get(key)
        if error is None:
            if len(self._errors) >= _MOST_ERROR_KINDS:
                # A scan of a whole network: the rest is counted without its ports.
                key = (version, kind, code, source, destination, None, None, None, None, mtu, gateway)
            error = self._errors.setdefault(key, _Error())
        error.add(frame)
        error.last = now
        pinged = _pinged(version, message[8:])
        probe = (destination, -1 if pinged is None else pinged)
        hop_limit = self._probes.get(probe) or self._probes_before.get(probe)
        if hop_limit:
            error.hop_limits = {hop_limit, *(error.hop_limits or ())}

    def section(self, address: Callable[[int], str]) -> IcmpSection | None:
        if not self._packets:
            return None
        for path in self._paths.values():
            for key in list(path.open):
                self._expire(path, key)
        paths = sorted(self._paths.items(), key=lambda item: (-item[1].expired, -item[1].requests))
        return IcmpSection(
            packets=self._packets,
            echo_pairs_matched=sum(path.matched for path in self._paths.values()),
            echo_unmatched=sum(path.expired for path in self._paths.values()),
            replies_unmatched=self._replies_unmatched,
            duplicate_replies=self._duplicate_replies,
            rtt_ms=merged_times(path.round_trips for path in self._paths.values()).statistics(),
            type_distribution={
                _type_name(*what): count for what, count in sorted(self._types.items(), key=lambda item: -item[1])
            },
            echo_paths=tuple(self._echo_path(*both, path, address) for both, path in paths[:_MOST_PATHS]),
            errors=tuple(_as_error(key, error, address) for key, error in self._most_relevant()),
            unanswered_solicitations=tuple(
                self._asked.unanswered(lambda target: str(ipaddress.IPv6Address(target)), address)
            ),
        )

    def _most_relevant(self) -> list[tuple[_ErrorKey, _Error]]:
        """Return the errors, most frequent first.

        If there are too many, each recipient keeps the most frequent of each kind, so that errors sent to a scanner
        hide no filter.
        """
        ranked = sorted(self._errors.items(), key=lambda item: -item[1].count)
        return round_robin(ranked, _MOST_ERRORS, lambda item: (*item[0][:3], item[0][4]))

    def _echo_path(self, source: int, destination: int, path: _Path, address: Callable[[int], str]) -> EchoPath:
        return EchoPath(
            src=address(source),
            dst=address(destination),
            requests=path.requests,
            replies=path.replies,
            unmatched=path.expired,
            rtt_ms=path.round_trips.statistics(),
            sample_frames=tuple(sorted(path.frames)),
            last_reply_ns=path.last_reply,
            first_frame=path.first_frame,
            first_request_ns=path.first_request,
            last_request_ns=path.last_request,
        )


def _type_name(version: int, kind: int, code: int) -> str:
    name = (_TYPES_4 if version == 4 else _TYPES_6).get(kind, f"type_{kind}")
    if name in _ERRORS and name != "packet_too_big":
        name += f"/{_SHORT.get(_meaning(version, kind, code), _meaning(version, kind, code).replace(' ', '_'))}"
    return f"v6/{name}" if version == 6 else name


def _meaning(version: int, kind: int, code: int) -> str:
    name = (_TYPES_4 if version == 4 else _TYPES_6).get(kind, "")
    texts: tuple[str, ...] = ()
    if name == "unreachable":
        texts = _UNREACHABLE_4 if version == 4 else _UNREACHABLE_6
    elif name == "ttl_exceeded":
        texts = _EXCEEDED
    elif name == "redirect" and version == 4:
        texts = _REDIRECT
    elif name == "packet_too_big":
        return "packet too big"
    return texts[code] if code < len(texts) else f"code {code}"


def _embedded_4(packet: bytes) -> tuple[str | None, str | None, int | None, int | None]:
    """Return destination, protocol and ports of the packet that an error quotes."""
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None, None, None, None
    header = (packet[0] & 15) * 4
    later_fragment = int.from_bytes(packet[6:8], "big") & 0x1FFF
    ports = _ports(packet[9], b"" if later_fragment else packet[header:])
    return str(ipaddress.IPv4Address(packet[16:20])), _PROTOCOLS.get(packet[9], f"ip_{packet[9]}"), *ports


def _embedded_6(packet: bytes) -> tuple[str | None, str | None, int | None, int | None]:
    if len(packet) < 40 or packet[0] >> 4 != 6:
        return None, None, None, None
    protocol, rest = packet[6], packet[40:]
    while protocol in (0, 43, _FRAGMENT, 60) and len(rest) >= 8:
        if protocol == _FRAGMENT and int.from_bytes(rest[2:4], "big") >> 3:
            return str(ipaddress.IPv6Address(packet[24:40])), _PROTOCOLS.get(rest[0], f"ip_{rest[0]}"), None, None
        protocol, rest = rest[0], rest[(rest[1] + 1) * 8 :]
    ports = _ports(protocol, rest)
    return str(ipaddress.IPv6Address(packet[24:40])), _PROTOCOLS.get(protocol, f"ip_{protocol}"), *ports


def _pinged(version: int, packet: bytes) -> int | None:
    """Return id and sequence of the echo request that an error quotes; None for other packets."""
    if len(packet) < 20 or packet[0] >> 4 != version:
        return None
    protocol, quoted = (packet[9], packet[(packet[0] & 15) * 4 :]) if version == 4 else (packet[6], packet[40:])
    if protocol not in (1, 58) or len(quoted) < 8 or quoted[0] != _ECHO[version]:
        return None
    return int.from_bytes(quoted[4:8], "big")


def _ports(protocol: int, transport: bytes) -> tuple[int | None, int | None]:
    if protocol not in (6, 17, 132) or len(transport) < 4:
        return None, None
    return int.from_bytes(transport[:2], "big"), int.from_bytes(transport[2:4], "big")


def _as_error(key: _ErrorKey, error: _Error, address: Callable[[int], str]) -> IcmpError:
    version, kind, code, source, destination, target, protocol, source_port, destination_port, mtu, gateway = key
    return IcmpError(
        version=4 if version == 4 else 6,
        kind=cast(Kind, (_TYPES_4 if version == 4 else _TYPES_6)[kind]),
        src=address(source),
        dst=address(destination),
        type=kind,
        code=code,
        code_meaning=_meaning(version, kind, code),
        unreachable_dst=target,
        protocol=protocol,
        source_port=source_port,
        destination_port=destination_port,
        next_hop_mtu=mtu,
        gateway=gateway,
        count=error.count,
        sample_frames=tuple(error.frames),
        hop_limits=tuple(sorted(error.hop_limits or ())),
        last_ns=error.last,
    )
