"""Packets that were captured twice are no loss, with or without an IP id; and loss among them stays loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.model import Analysis

from .wire import MS, Record, pcap, transfer

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


@pytest.mark.parametrize("share", [5, 12])
def test_segments_without_ip_id_that_a_near_sender_repeats_at_once_are_lost_ones(tmp_path: Path, share: int) -> None:
    """On a switch a repeat comes within a millisecond, with the same time inside TCP."""
    clean, _ = transfer(5, segments=600, near_ms=0.1, far_ms=0.1)
    records = [(when, frame[:18] + b"\0\0" + frame[20:]) for when, frame in clean.records]
    repeats = [(when + 400_000, frame) for when, frame in records[10:] if len(frame) > 500][::share]
    analysis = read(tmp_path / "near.pcap", sorted(records + repeats, key=lambda record: record[0]))
    assert analysis.summary.duplicate_packets.count == 0
    assert analysis.tcp is not None
    assert analysis.tcp.totals.retransmissions >= len(repeats) * 0.9
