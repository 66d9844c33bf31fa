"""Packets kept by a capture with filters and size limits.

Filters as in Azure: one value, several separated by `;`, or a range `10.0.0.1-10.0.0.9`, `80-85`. A packet is kept if
one filter matches: https://learn.microsoft.com/rest/api/network-watcher/packet-captures/create#packetcapturefilter
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from ghost.lab.world import World

_HEADER = struct.Struct("<IIII")
_FILE_HEADER_BYTES = 24
_ETHERNET_BYTES = 14
_PROTOCOLS = {"TCP": 6, "UDP": 17}

Filter = tuple[str, str, str, str, str]
"""Protocol (TCP, UDP or Any), local addresses and ports, remote addresses and ports; an empty text fits all."""


@dataclass(frozen=True)
class Limits:
    session_bytes: int
    packet_bytes: int
    """Of each packet; 0 keeps all."""
    filters: tuple[Filter, ...] = ()


def recorded(world: World, machine: str, start: datetime, seconds: float, limits: Limits) -> bytes:
    """Return the pcap of that many seconds."""
    whole, records = _recording(world, machine, start, seconds, limits)
    return b"".join([whole[:_FILE_HEADER_BYTES], *(record for _, record in records)])


def moment_full(world: World, machine: str, start: datetime, seconds: float, limits: Limits) -> float | None:
    """Return the seconds until the next packet would exceed the size limit; None if none would."""
    size = _FILE_HEADER_BYTES
    for microseconds, record in _recording(world, machine, start, seconds, limits)[1]:
        size += len(record)
        if size > limits.session_bytes:
            return max(0.0, microseconds / 1e6 - start.timestamp())
    return None


def _recording(
    world: World, machine: str, start: datetime, seconds: float, limits: Limits
) -> tuple[bytes, Iterator[tuple[int, bytes]]]:
    from ghost.lab.wire.packet_generator import synthesize

    whole = synthesize(world, machine, start, seconds, world.seed)
    return whole, _matching_records(whole, world.address_of(machine), limits)


def _matching_records(pcap: bytes, local: str, limits: Limits) -> Iterator[tuple[int, bytes]]:
    """Yield time in microseconds and record of each matching packet, cut to the bytes per packet."""
    position = _FILE_HEADER_BYTES
    while position < len(pcap):
        second, microsecond, captured, length = _HEADER.unpack_from(pcap, position)
        frame = pcap[position + _HEADER.size : position + _HEADER.size + captured]
        position += _HEADER.size + captured
        if not limits.filters or any(_matches(frame, local, wanted) for wanted in limits.filters):
            frame = frame[: limits.packet_bytes or None]
            yield second * 1_000_000 + microsecond, _HEADER.pack(second, microsecond, len(frame), length) + frame


def _matches(frame: bytes, local: str, wanted: Filter) -> bool:
    """Return whether a frame matches; frames of the lab are IPv4 without options, others match no filter."""
    if frame[12:14] != b"\x08\x00":
        return False
    ip = frame[_ETHERNET_BYTES:]
    source, destination = str(ip_address(ip[12:16])), str(ip_address(ip[16:20]))
    ports = struct.unpack_from(">HH", ip, 20) if ip[9] in _PROTOCOLS.values() and len(ip) >= 24 else (0, 0)
    ends = [(source, ports[0]), (destination, ports[1])]
    here, there = ends if source == local else reversed(ends)
    protocol, *places = wanted
    if protocol in _PROTOCOLS and ip[9] != _PROTOCOLS[protocol]:
        return False
    values = (_number(here[0]), here[1], _number(there[0]), there[1])
    return all(_among(value, text) for value, text in zip(values, places, strict=True))


def _among(value: int, text: str) -> bool:
    if not text:
        return True
    for item in filter(None, text.split(";")):
        low, _, high = item.partition("-")
        if _number(low) <= value <= _number(high or low):
            return True
    return False


def _number(text: str) -> int:
    """Return a port or an IPv4 address as a number. Raises `ValueError` for other text."""
    return int(text) if text.isdecimal() else int(ip_address(text.strip()))


def check(wanted: Filter) -> None:
    """Raise `ValueError` if a filter's values are invalid."""
    for text in wanted[1:]:
        _among(-1, text)
