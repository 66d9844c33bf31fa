"""DHCP and DHCPv6: messages by type, refusals, and clients that nobody answers."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap import layout as L
from ghost.pcap.analysis import analyse
from ghost.pcap.model import DhcpSection
from ghost.pcap.protocols.dhcp_tracker import DhcpTracker, message_type

from .talks import later
from .wire import MS, Record, ethernet, ip, pcap, udp

DISCOVER, OFFER, REQUEST, ACKED, NAK = 1, 2, 3, 5, 6
SOLICIT, REPLY = 1, 7
MAC = b"\x02\0\0\0\0\x07"
START = 1_700_000_000 * 10**9
CANARY = b"CANARY-0123456789"


def message(kind: int, transaction: int = 9, mac: bytes = MAC) -> bytes:
    answer = kind in (OFFER, ACKED, NAK)
    head = struct.pack(">BBBBIHH", 2 if answer else 1, 1, 6, 0, transaction, 0, 0x8000) + bytes(16)
    options = bytes([43, len(CANARY)]) + CANARY + bytes([0, 53, 1, kind])
    return head + mac + bytes(10 + 64 + 128) + b"\x63\x82\x53\x63" + options + b"\xff"


def message6(kind: int) -> bytes:
    return bytes([kind]) + b"\0\0\x09" + struct.pack(">HH", 1, 10) + b"\0\3\0\1" + MAC


def sent(at_ms: float, payload: bytes, source: str = "0.0.0.0", *, answer: bool = False) -> Record:
    ports = (67, 68) if answer else (68, 67)
    return START + int(at_ms * MS), ethernet(ip(source, "255.255.255.255", 17, udp(*ports, payload)))


def sent6(at_ms: float, payload: bytes, *, answer: bool = False) -> Record:
    ends = ("fe80::1", "fe80::7") if answer else ("fe80::7", "ff02::1:2")
    ports = (547, 546) if answer else (546, 547)
    return START + int(at_ms * MS), ethernet(ip(*ends, 17, udp(*ports, payload)))


def section(tmp_path: Path, *records: Record) -> DhcpSection:
    path = tmp_path / "dhcp.pcap"
    path.write_bytes(pcap(sorted(records)))
    found = analyse(path).dhcp
    assert found is not None
    return found


def leased() -> list[Record]:
    return [
        sent(0, message(DISCOVER)),
        sent(20, message(OFFER), "10.0.0.1", answer=True),
        sent(30, message(REQUEST)),
        sent(40, message(ACKED), "10.0.0.1", answer=True),
    ]


def test_a_lease_is_four_messages_and_no_fault(tmp_path: Path) -> None:
    found = section(tmp_path, *leased(), later(60_000))
    assert found.messages == {"ack": 1, "discover": 1, "offer": 1, "request": 1}
    assert (found.unanswered, found.naks.count) == ((), 0)


def test_a_client_that_nobody_answers_is_named_once_with_its_attempts(tmp_path: Path) -> None:
    asked = [sent(at, message(DISCOVER, at)) for at in (0, 4_000, 12_000)]
    (silent,) = section(tmp_path, *asked, later(60_000)).unanswered
    assert (silent.client, silent.discoveries, silent.frames) == ("02:00:00:00:00:07", 3, (1, 2, 3))
    taken_up = sent(12_010, message(REQUEST, 12_000))
    assert section(tmp_path, *asked, taken_up, later(60_000)).unanswered == (), "its offer was not captured"


def test_refusals_are_counted_with_their_frames(tmp_path: Path) -> None:
    refused = sent(10, message(NAK), "10.0.0.1", answer=True)
    found = section(tmp_path, sent(0, message(REQUEST)), refused, later(60_000))
    assert (found.naks.frames, found.unanswered) == ((2,), ())


def test_a_capture_that_stops_at_once_blames_nobody(tmp_path: Path) -> None:
    assert section(tmp_path, sent(0, message(DISCOVER))).unanswered == ()


def test_of_a_client_nothing_but_a_hardware_address_is_shown(tmp_path: Path) -> None:
    odd = bytearray(message(DISCOVER))
    odd[2], odd[28:44] = 16, CANARY[:16]
    found = section(tmp_path, sent(0, bytes(odd)), later(60_000))
    assert (found.messages, found.unanswered) == ({"discover": 1}, ())


@given(st.binary(min_size=1, max_size=400), st.integers(0, 300))
def test_arbitrary_and_cut_messages_are_read_or_not_but_never_break(octets: bytes, keep: int) -> None:
    tracker = DhcpTracker()
    for payload in (octets, message(OFFER)[:keep] + octets, message6(REPLY)[:keep] + octets):
        message_type(payload)
        for mark in (L.MARK_DHCP, L.MARK_DHCP6):
            tracker.packet(mark, payload, 1, 1)
    found = tracker.section(10**10)
    assert found is None or sum(found.messages.values()) <= 6, "at most one message of each packet"


@pytest.mark.needs("tshark")
def test_message_types_agree_with_tshark(tmp_path: Path) -> None:
    path = tmp_path / "both.pcap"
    path.write_bytes(pcap(sorted([*leased(), sent6(50, message6(SOLICIT)), sent6(60, message6(REPLY), answer=True)])))
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "dhcp.option.dhcp", "-e", "dhcpv6.msgtype"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    found = analyse(path).dhcp
    assert found is not None
    assert sorted(lines) == ["1", "1", "2", "3", "5", "7"]
    assert sum(found.messages.values()) == len(lines)
