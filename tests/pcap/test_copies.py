"""Packets that were captured twice are no loss, with or without an IP id; and loss among them stays loss."""

from __future__ import annotations

import ipaddress
import random
import struct
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.model import Analysis
from tests.exhaustive import sample

from .wire import CLIENT, MS, SERVER, Record, ethernet, ip, pcap, transfer

FAR = 12 * MS


def copied(records: list[Record], after: int, *, hops: int = 0, numbered: bool = False) -> list[Record]:
    """Every packet twice; without IP id unless `numbered`, with a lower TTL the second time."""
    first, second = [], []
    for when, frame in records:
        plain = frame if numbered else frame[:18] + b"\0\0" + frame[20:]
        first.append((when, plain))
        second.append((when + after, plain[:22] + bytes([plain[22] - hops]) + plain[23:]))
    return sorted(first + second, key=lambda record: record[0])


def read(path: Path, records: list[Record]) -> Analysis:
    path.write_bytes(pcap(records, nanoseconds=True))
    return analyse(path, compile_kernels=False)


def lost(analysis: Analysis) -> int:
    assert analysis.tcp is not None
    return analysis.tcp.totals.lost_upstream + analysis.tcp.totals.lost_downstream


@pytest.mark.parametrize(
    ("after", "hops", "numbered"),
    [(300_000, 0, False), (300_000, 1, False), (4_000_000, 1, False), (FAR, 5, True), (2_000_000, 0, True)],
)
def test_copies_are_no_loss_and_lost_segments_among_them_are(
    tmp_path: Path, after: int, hops: int, *, numbered: bool
) -> None:
    clean, _ = transfer(3, segments=600)
    analysis = read(tmp_path / "clean.pcap", copied(clean.records, after, hops=hops, numbered=numbered))
    assert lost(analysis) <= 20  # of 600: before it shows that everything is there twice
    found = find(analysis)
    assert [(each.kind, each.blame) for each in found if each.kind not in ("loss", "rto_loss")] == [
        ("duplicate_packets", "none"), ("none", "none"),
    ][: 1 if found[-1].kind != "none" else 2]  # fmt: skip
    assert all(each.severity in ("LOW", "INFO") for each in found)
    lossy, drops = transfer(4, segments=600, downstream=0.05)
    again = read(tmp_path / "lossy.pcap", copied(lossy.records, after, hops=hops, numbered=numbered))
    assert drops.downstream > 20
    assert drops.downstream * 0.7 <= lost(again) <= drops.downstream + 20
    assert {each.kind for each in find(again)} & {"loss", "rto_loss"}


def rewritten(records: list[Record], *, version: int, stamped: bool) -> list[Record]:
    """Without IP id, by IPv4 or IPv6, with a TCP timestamp of the millisecond if `stamped`."""
    found = []
    for when, frame in records:
        segment, from_client = frame[34:], frame[26:30] == ipaddress.ip_address(CLIENT).packed
        if stamped:
            stamp = b"\1\1\x08\x0a" + struct.pack(">II", when // MS & 0xFFFFFFFF, 1)
            segment = segment[:12] + bytes([segment[12] + (3 << 4)]) + segment[13:20] + stamp + segment[20:]
        ends = (CLIENT, SERVER) if version == 4 else ("2001:db8:1::4", "2001:db8:2::4")
        found.append((when, ethernet(ip(*(ends if from_client else ends[::-1]), 6, segment))))
    return found


def some_twice(records: list[Record], share: float, after: int) -> list[Record]:
    dice = random.Random(7)
    copies = [(when + after, frame) for when, frame in records if dice.random() < share]
    return sorted(records + copies, key=lambda record: record[0])


WITHOUT_ID = [(4, False), (4, True), (6, False), (6, True)]
"""IP version, and whether segments carry a timestamp."""
UNNUMBERED = pytest.mark.parametrize(("version", "stamped"), sample(WITHOUT_ID, 2))
COPIES = [(0.1, 1_500_000), (0.35, 150_000), (0.35, 4_000_000), (1.0, 1_500_000)]
COPIES_AMONG_LOSS = [
    (*copies, way) for copies in [*COPIES[:2], (1.0, 20_000), COPIES[3]] for way in ("upstream", "downstream")
]
"""Share of the packets, and nanoseconds until the copy."""


@UNNUMBERED
@pytest.mark.parametrize(("share", "after"), sample(COPIES, 2))
def test_a_part_of_the_packets_that_is_there_twice_without_ip_id_is_no_loss(
    tmp_path: Path, version: int, share: float, after: int, *, stamped: bool
) -> None:
    """Copies come before a round trip has passed; Wireshark flags them all the same."""
    clean, _ = transfer(3, segments=600)
    records = some_twice(rewritten(clean.records, version=version, stamped=stamped), share, after)
    analysis = read(tmp_path / "some.pcap", records)
    assert lost(analysis) == 0
    assert analysis.tcp is not None
    assert analysis.tcp.totals.retransmissions + analysis.tcp.totals.out_of_order >= 600 * share * 0.9
    copies = analysis.summary.duplicate_packets
    assert copies.count >= 600 * share * 0.8
    assert len(copies.frames) == 5
    assert {each.kind for each in find(analysis)} == {"duplicate_packets", "none"}


@UNNUMBERED
@pytest.mark.parametrize(("share", "after", "way"), sample(COPIES_AMONG_LOSS, 3))
def test_loss_among_copies_comes_first_and_is_as_severe_as_without_them(
    tmp_path: Path, version: int, share: float, after: int, way: str, *, stamped: bool
) -> None:
    lossy, drops = transfer(4, segments=600, **{way: 0.03})
    alone = rewritten(lossy.records, version=version, stamped=stamped)
    expected = find(read(tmp_path / "alone.pcap", alone))[0]
    assert expected.kind in ("loss", "throughput_limited")
    analysis = read(tmp_path / "copies.pcap", some_twice(alone, share, after))
    every = drops.upstream + drops.downstream
    assert every * 0.8 <= lost(analysis) <= every * 1.1
    found = find(analysis)
    assert [(each.kind, each.blame) for each in found] == [
        ("loss", "network"), ("duplicate_packets", "none" if share == 1 else "network"),
    ]  # fmt: skip
    assert (found[0].severity, found[1].severity) == (expected.severity, "LOW")


@UNNUMBERED
def test_segments_without_ip_id_that_a_near_sender_repeats_at_once_are_lost_ones(
    tmp_path: Path, version: int, *, stamped: bool
) -> None:
    """On a switch a repeat comes within a millisecond, perhaps with the same time inside TCP, and after duplicate
    ACKs."""
    lossy, drops = transfer(5, segments=600, near_ms=0.1, far_ms=0.1, downstream=0.05)
    analysis = read(tmp_path / "near.pcap", rewritten(lossy.records, version=version, stamped=stamped))
    assert analysis.summary.duplicate_packets.count == 0
    assert drops.downstream * 0.9 <= lost(analysis) <= drops.downstream + 1
    assert find(analysis)[0].severity in ("MEDIUM", "HIGH")


def test_what_a_near_sender_repeats_is_no_copy_of_what_passed_the_router(tmp_path: Path) -> None:
    """Both sides of a router are captured: repeats come at once, but with as many hops left as the first time."""
    lossy, drops = transfer(5, segments=600, near_ms=0.1, far_ms=0.1, downstream=0.05)
    analysis = read(tmp_path / "router.pcap", copied(lossy.records, 5_000, hops=1))
    assert drops.downstream * 0.8 <= lost(analysis) <= drops.downstream + 1


def test_copies_on_a_switch_are_no_loss_where_nobody_asked_for_a_repeat(tmp_path: Path) -> None:
    """Half a millisecond is longer than the round trip; but no duplicate ACK came before, and no timer is so short."""
    clean, _ = transfer(5, segments=600, near_ms=0.1, far_ms=0.1)
    records = rewritten(clean.records, version=6, stamped=False)
    data = [(when + 500_000, frame) for when, frame in records[3:] if len(frame) > 500][::8]
    analysis = read(tmp_path / "switch.pcap", sorted(records + data, key=lambda record: record[0]))
    assert lost(analysis) == 0
    assert analysis.summary.duplicate_packets.count >= len(data) * 0.9
