"""DHCP and DHCPv6: who was answered, who was refused, and who offers."""

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
from ghost.pcap.protocols.dhcp_tracker import DhcpTracker, read_dhcp, read_dhcp6

from .talks import later
from .wire import MS, Record, ethernet, ip, pcap, udp

DISCOVER, OFFER, REQUEST, DECLINE, ACKED, NAK = 1, 2, 3, 4, 5, 6
SOLICIT, ADVERTISE, REQUEST6, REPLY = 1, 2, 3, 7
MAC = b"\x02\0\0\0\0\x07"
START = 1_700_000_000 * 10**9
CANARY = b"CANARY-0123456789"


def message(kind: int, transaction: int = 9, server: str | None = None, mac: bytes = MAC) -> bytes:
    answer = kind in (OFFER, ACKED, NAK)
    head = struct.pack(">BBBBIHH", 2 if answer else 1, 1, 6, 0, transaction, 0, 0x8000) + bytes(16)
    options = bytes([53, 1, kind]) + bytes([43, len(CANARY)]) + CANARY
    if server is not None:
        options += b"\x36\4" + bytes(map(int, server.split(".")))
    return head + mac + bytes(10 + 64 + 128) + b"\x63\x82\x53\x63" + options + b"\xff"


def option6(number: int, value: bytes) -> bytes:
    return struct.pack(">HH", number, len(value)) + value


def message6(kind: int, transaction: int = 9, *, server: bytes | None = None, status: int | None = None) -> bytes:
    options = option6(1, b"\0\3\0\1" + MAC)
    if server is not None:
        options += option6(2, server)
    if status is not None:
        options += option6(3, bytes(12) + option6(13, struct.pack(">H", status) + CANARY))
    return bytes([kind]) + transaction.to_bytes(3, "big") + options


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


def leased(server: str = "10.0.0.1") -> list[Record]:
    return [
        sent(0, message(DISCOVER)),
        sent(20, message(OFFER, server=server), server, answer=True),
        sent(30, message(REQUEST, server=server)),
        sent(40, message(ACKED, server=server), server, answer=True),
    ]


def test_a_lease_is_four_messages_and_no_fault(tmp_path: Path) -> None:
    found = section(tmp_path, *leased(), later(60_000))
    assert found.messages == {"ack": 1, "discover": 1, "offer": 1, "request": 1}
    assert (found.servers, found.offering_servers) == ({"10.0.0.1": 2}, ("10.0.0.1",))
    assert (found.unanswered, found.naks.count, found.several_offers.count) == ((), 0, 0)
    assert found.answer_ms is not None
    assert (found.answer_ms.min, found.answer_ms.max) == (10, 20)


def test_a_client_that_nobody_answers_is_named_once_with_its_attempts(tmp_path: Path) -> None:
    found = section(tmp_path, *(sent(at, message(DISCOVER)) for at in (0, 4_000, 12_000)), later(60_000))
    (silent,) = found.unanswered
    assert (silent.client, silent.message, silent.count, silent.frames) == (
        "02:00:00:00:00:07",
        "discover",
        3,
        (1, 2, 3),
    )


def test_refusals_and_addresses_in_use_are_counted_with_their_frames(tmp_path: Path) -> None:
    nak = sent(10, message(NAK, server="10.0.0.1"), "10.0.0.1", answer=True)
    found = section(tmp_path, sent(0, message(REQUEST)), nak, sent(20, message(DECLINE, 10)), later(60_000))
    assert (found.naks.frames, found.declines.frames, found.unanswered) == ((2,), (3,), ())


def test_offers_of_two_servers_are_seen_and_repeats_of_one_are_not(tmp_path: Path) -> None:
    rogue = sent(25, message(OFFER, server="10.0.0.66"), "10.0.0.66", answer=True)
    found = section(tmp_path, *leased(), rogue)
    assert (found.offering_servers, found.several_offers.frames) == (("10.0.0.1", "10.0.0.66"), (3,))
    again = sent(25, message(OFFER, server="10.0.0.1"), "10.0.0.1", answer=True)
    assert section(tmp_path, *leased(), again).several_offers.count == 0


def test_version_6_is_read_through_relays_and_says_when_addresses_ran_out(tmp_path: Path) -> None:
    relayed = b"\x0c\0" + bytes(32) + option6(9, message6(REQUEST6, 11))
    found = section(
        tmp_path,
        sent6(0, message6(SOLICIT)),
        sent6(10, message6(ADVERTISE, server=b"server-1", status=2), answer=True),
        sent6(20, relayed),
        later(60_000),
    )
    assert found.messages == {"v6/advertise": 1, "v6/request": 1, "v6/solicit": 1}
    assert (found.no_addresses.frames, [one.message for one in found.unanswered]) == ((2,), ["request"])


def test_a_capture_that_stops_at_once_blames_nobody(tmp_path: Path) -> None:
    assert section(tmp_path, sent(0, message(DISCOVER))).unanswered == ()


@given(st.binary(max_size=400), st.integers(0, 300))
def test_arbitrary_and_cut_messages_are_read_or_not_but_never_break(octets: bytes, keep: int) -> None:
    tracker = DhcpTracker()
    for payload in (octets, message(OFFER, server="10.0.0.1")[:keep] + octets, message6(REPLY, status=2)[:keep]):
        for mark, read in ((L.MARK_DHCP, read_dhcp), (L.MARK_DHCP6, read_dhcp6)):
            found = read(payload)
            assert found is None or (found.type and len(found.client) <= 20)
            tracker.packet(mark, payload, 1, 1, 1)
    tracker.section(str, 10**10)


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


@pytest.mark.parametrize(
    ("duid", "shown"),
    [
        (b"\0\3\0\1" + MAC, "02:00:00:00:00:07"),
        (b"\0\1\0\1\1\2\3\4" + MAC, "02:00:00:00:00:07"),
        (b"\0\2\0\0\1\2" + CANARY, "duid-en-"),
        (b"\0\4" + CANARY[:16], "duid-uuid-"),
        (b"\0\3\0\1" + CANARY, "duid-ll-"),
        (CANARY, "duid-other-"),
    ],
)
def test_of_an_identifier_nothing_but_a_hardware_address_is_shown(tmp_path: Path, duid: bytes, shown: str) -> None:
    solicit = bytes([SOLICIT]) + b"\0\0\1" + option6(1, duid)
    advertise = bytes([ADVERTISE]) + b"\0\0\2" + option6(1, b"\0\3\0\1" + MAC) + option6(2, duid)
    found = section(tmp_path, sent6(0, solicit), sent6(1, advertise, answer=True), later(60_000))
    for name in (found.unanswered[0].client, found.offering_servers[0]):
        assert name.startswith(shown)
        assert CANARY[:4].hex() not in name
        assert len(name) <= 20
    odd = bytearray(message(DISCOVER))
    odd[2], odd[28:44] = 16, CANARY[:16]
    (client,) = section(tmp_path, sent(0, bytes(odd)), later(60_000)).unanswered
    assert client.client.startswith("client-")


def test_requests_that_were_refused_one_after_the_other_are_counted_by_client(tmp_path: Path) -> None:
    records = []
    for n in range(3):
        records.append(sent(9000 * n, message(DISCOVER, n)))
        records.append(sent(9000 * n + 5, message(OFFER, n), "10.0.0.1", answer=True))
        records.append(sent(9000 * n + 10, message(REQUEST, n, "10.0.0.1" if n else None)))
        for again in range(2):  # a relay, or a second server
            records.append(sent(9000 * n + 20 + again, message(NAK, n), "10.0.0.1", answer=True))
    (refused,) = section(tmp_path, *records).refused
    assert (refused.requests, refused.offered, refused.servers) == (3, 2, ("10.0.0.1",))
    assert refused.frames == (4, 9, 14)
    granted = sent(30_000, message(REQUEST, 7)), sent(30_010, message(ACKED, 7), "10.0.0.1", answer=True)
    assert section(tmp_path, *records, *granted).refused == ()
    unseen = sent(30_000, message(REQUEST, 7))
    assert len(section(tmp_path, *records, unseen).refused) == 1  # nobody has had the time to answer
    assert section(tmp_path, *records, unseen, sent(40_000, message(DISCOVER, 8))).refused == ()
