"""NTP: who is not answered, and whose clock is off."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import NtpSection
from ghost.pcap.protocols.ntp_tracker import NtpTracker

from .talks import later
from .wire import CLIENT, MS, Record, ethernet, ip, pcap, udp

START = 1_700_000_000 * 10**9
CLOCK = "10.0.0.123"
_EPOCH = 2_208_988_800


def stamp(nanoseconds: int) -> bytes:
    seconds, part = divmod(nanoseconds, 10**9)
    return struct.pack(">II", (seconds + _EPOCH) & 0xFFFFFFFF, (part << 32) // 10**9)


def message(mode: int, transmit: bytes, *, originate: bytes = bytes(8), receive: bytes = bytes(8), stratum: int = 2,
            leap: int = 0, reference: bytes = b"\x0a\0\0\1") -> bytes:  # fmt: skip
    head = bytes([leap << 6 | 4 << 3 | mode, stratum, 6, 0xEC]) + bytes(8) + reference
    return head + bytes(8) + originate + receive + transmit


def asked(at_ms: float, transmit: bytes, server: str = CLOCK) -> Record:
    return START + int(at_ms * MS), ethernet(ip(CLIENT, server, 17, udp(40_123, 123, message(3, transmit))))


def answered(at_ms: float, payload: bytes, server: str = CLOCK) -> Record:
    return START + int(at_ms * MS), ethernet(ip(server, CLIENT, 17, udp(123, 40_123, payload)))


def section(tmp_path: Path, *records: Record) -> NtpSection:
    path = tmp_path / "ntp.pcap"
    path.write_bytes(pcap(sorted(records)))
    found = analyse(path).ntp
    assert found is not None
    return found


def exchange(offset_ms: int = 0, client_ms: int = 0, **more: int | bytes) -> list[Record]:
    """The server's clock is `offset_ms` ahead of the capture's, the client's `client_ms`."""
    sent = stamp(START + client_ms * MS)
    server = START + (offset_ms + 10) * MS
    reply = message(4, stamp(server + MS), originate=sent, receive=stamp(server), **more)  # type: ignore[arg-type]
    return [asked(0, sent), answered(21, reply)]


def test_the_offset_is_between_client_and_server_whatever_the_captures_clock(tmp_path: Path) -> None:
    assert section(tmp_path, *exchange()).largest_offset_ms == 0
    assert section(tmp_path, *exchange(offset_ms=5_000)).largest_offset_ms == 5_000
    assert section(tmp_path, *exchange(offset_ms=5_000, client_ms=5_000)).largest_offset_ms == 0
    found = section(tmp_path, *exchange(client_ms=7_000))
    assert (found.largest_offset_ms, found.largest_offset_frame) == (-7_000, 2)
    assert found.servers[0].offset_ms == -7_000


def test_a_random_number_for_the_time_gives_no_offset(tmp_path: Path) -> None:
    sent = b"\x12\x34\x56\x78\x9a\xbc\xde\xf0"
    reply = message(4, stamp(START), originate=sent, receive=stamp(START))
    found = section(tmp_path, asked(0, sent), answered(20, reply))
    assert (found.requests, found.responses, found.unanswered_total, found.largest_offset_ms) == (1, 1, 0, None)


def test_a_server_that_does_not_answer_is_told_by_name(tmp_path: Path) -> None:
    silent = [asked(at, stamp(START + at * MS), "10.0.0.9") for at in (0, 2_000, 4_000)]
    found = section(tmp_path, *exchange(), *silent, later(60_000))
    assert (found.requests, found.unanswered_total) == (4, 3)
    assert [(one.server, one.unanswered) for one in found.servers] == [("10.0.0.9", 3), (CLOCK, 0)]


def test_kisses_and_clocks_without_time_are_told(tmp_path: Path) -> None:
    found = section(tmp_path, *exchange(stratum=0, reference=b"RATE"))
    assert (found.kiss_codes, found.kiss_frames, found.unsynchronised.count) == ({"RATE": 1}, (2,), 0)
    for lost in (exchange(stratum=16), exchange(leap=3), exchange(stratum=0, leap=3, reference=b"INIT")):
        found = section(tmp_path, *lost)
        assert (found.unsynchronised.frames, found.servers[0].unsynchronised) == ((2,), True)
        assert (found.unanswered_total, found.largest_offset_ms) == (0, None)


def test_times_after_2036_belong_to_the_next_era(tmp_path: Path) -> None:
    year_2040 = 2_208_988_800 * 10**9
    sent = stamp(year_2040)
    reply = message(4, stamp(year_2040 + 11 * MS), originate=sent, receive=stamp(year_2040 + 10 * MS))
    found = section(tmp_path, (year_2040, asked(0, sent)[1]), (year_2040 + 21 * MS, answered(0, reply)[1]))
    assert found.largest_offset_ms == 0


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=80)), max_size=10))
def test_arbitrary_packets_never_break_the_tracker(packets: list[tuple[bool, bytes]]) -> None:
    tracker = NtpTracker()
    for frame, (asks, payload) in enumerate(packets, 1):
        tracker.packet(payload, (1, 9, 2, 123) if asks else (2, 123, 1, 9), frame, frame)
    found = tracker.section(str, 10**12)
    assert (found is None) == (not packets)
