"""A second look at a capture: the packets behind a finding, as a ladder of header facts."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import Finding, Who, find
from ghost.pcap.report.ladder import ladder_diagram
from ghost.pcap.report.packet_arrows import MOST_ARROWS, Ladder
from ghost.pcap.report.packet_sequence import sequence
from tests.pcap.wire import ACK, MS, PSH, RST, SYN, Talk, ethernet, ip, pcap, pcapng, transfer, udp

CLOCK = 1_700_000_000 * 1_000_000_000


def ladder(path: Path, batch_packets: int = 16384) -> Ladder:
    """Of what the engine finds by itself."""
    analysis = analyse(path, batch_packets=batch_packets)
    found = sequence(path, analysis, find(analysis))
    assert found is not None
    return found


def around(path: Path, *frames: int) -> Ladder | None:
    """Of a finding that points to these frames."""
    who = Who("10.0.1.4", "10.0.2.4")
    made = Finding(
        kind="loss", severity="HIGH", blame="network", protocol="TCP", title="Made", detail="", who=who,
        evidence=frames, cause="", remediation=(), confidence="high", id="F1",
    )  # fmt: skip
    return sequence(path, analyse(path), [made])


def notes(found: Ladder | None) -> dict[int, str]:
    assert found is not None
    return {arrow.frame: arrow.note for arrow in found.arrows}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loss before and after the capture point, among packets of other connections."""
    talk, _ = transfer(3, segments=600, upstream=0.02, downstream=0.02)
    other, _ = transfer(4, segments=300, talk=Talk(client_port=41_000, server_port=443))
    return Talk(records=sorted(talk.records + other.records)).save(tmp_path_factory.mktemp("ladder") / "lossy.pcap")


def test_it_begins_with_the_handshake_and_shows_the_evidence_among_its_neighbours(lossy: Path) -> None:
    analysis = analyse(lossy)
    (worst, *_) = find(analysis)
    found = sequence(lossy, analysis, [worst])
    assert found is not None
    assert [arrow.label for arrow in found.arrows[:3]] == ["SYN seq=0", "SYN ACK seq=0 ack=1", "ACK seq=1 ack=1"]
    assert [arrow.from_left for arrow in found.arrows[:3]] == [True, False, True]
    evidence = [n for n, arrow in enumerate(found.arrows) if arrow.evidence]
    assert {found.arrows[n].frame for n in evidence} <= set(worst.evidence)
    assert evidence
    for n in evidence:
        assert found.arrows[n].tone == "bad"
        assert n > 0
    assert len(found.arrows) <= MOST_ARROWS
    assert found.left == "10.0.1.4:40000"
    assert found.about == f"{worst.id}: {worst.title}"


def test_only_one_conversation_is_shown_and_in_the_order_of_time(lossy: Path) -> None:
    arrows = ladder(lossy).arrows
    times = [arrow.ms for arrow in arrows]
    assert times == sorted(times)
    frames = [arrow.frame for arrow in arrows if arrow.frame]
    assert frames == sorted(set(frames))
    for before, arrow in pairwise(arrows):
        assert arrow.delta_ms == pytest.approx(arrow.ms - before.ms)


def test_what_was_lost_behind_the_capture_does_not_arrive_and_says_where_it_was_sent_again(tmp_path: Path) -> None:
    talk = Talk().opened()
    for seq in (1, 1001, 2001, 3001):
        talk.c(seq, 1, ACK | PSH, 1000)
    for _ in range(3):
        talk.s(1, 1)
    talk.c(1, 1, ACK | PSH, 1000).s(1, 4001, after_ms=40)
    found = around(talk.save(tmp_path / "again.pcap"), 11)
    assert found is not None
    assert [arrow.frame for arrow in found.arrows if not arrow.arrives] == [4]
    assert notes(found)[4] == "not acknowledged, retransmitted in frame 11"
    assert notes(found)[11] == "retransmission of frame 4"
    assert [notes(found)[frame] for frame in (8, 9, 10)] == [f"duplicate ACK #{n}" for n in (1, 2, 3)]


def test_what_was_lost_before_the_capture_is_a_row_without_a_frame(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK | PSH, 1000).c(2001, 1, ACK | PSH, 1000, after_ms=0.1)
    for _ in range(3):
        talk.s(1, 1001)
    talk.c(1001, 1, ACK | PSH, 1000, after_ms=60).s(1, 3001)
    found = around(talk.save(tmp_path / "gap.pcap"), 9)
    assert found is not None
    (missing,) = [arrow for arrow in found.arrows if arrow.frame == 0]
    assert missing.label == "1,000 bytes missing here"
    assert not missing.arrives
    assert notes(found)[9] == "late or retransmitted: fills a gap"


def test_an_unanswered_syn_and_its_repeats_are_lost_arrows(tmp_path: Path) -> None:
    talk = Talk().c(0, 0, SYN).c(0, 0, SYN, after_ms=1000).c(0, 0, SYN, after_ms=2000)
    arrows = ladder(talk.save(tmp_path / "silent.pcap")).arrows
    assert [arrow.arrives for arrow in arrows] == [False, False, False]
    assert arrows[2].note == "retransmission of frame 2, no answer"
    assert 'aria-label="from 10.0.1.4:40000, no answer"' in str(ladder_diagram(ladder(tmp_path / "silent.pcap")))
    assert arrows[1].note == "retransmission of frame 1, and again in frame 3"
    assert all(arrow.evidence for arrow in arrows)


def test_a_reset_and_a_closed_window_are_named(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK | PSH, 500).s(1, 501, window=0).s(1, 501, RST, after_ms=5000)
    noted = notes(around(talk.save(tmp_path / "reset.pcap"), 6))
    assert noted[5] == "zero window"
    assert noted[6] == "reset"


@pytest.mark.parametrize("batch_packets", [50, 400])
def test_entering_a_file_in_the_middle_shows_what_reading_all_of_it_shows(
    lossy: Path, tmp_path: Path, batch_packets: int
) -> None:
    compressed = tmp_path / "lossy.pcap.gz"
    compressed.write_bytes(gzip.compress(lossy.read_bytes()))
    assert len(analyse(lossy, batch_packets=batch_packets).file.entries) > 2  # type: ignore[union-attr]
    assert ladder(lossy, batch_packets) == ladder(compressed, batch_packets) == ladder(lossy)


def test_a_capture_of_several_sections_is_entered_with_the_right_clock(tmp_path: Path) -> None:
    talk, _ = transfer(5, segments=200, downstream=0.03)
    half = len(talk.records) // 2
    first, second = (
        [(0, when // 1000, frame) for when, frame in part] for part in (talk.records[:half], talk.records[half:])
    )
    path = tmp_path / "sections.pcapng"
    path.write_bytes(pcapng(first, [(1, b"")]) + pcapng(second, [(1, b"")], order=">"))
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(pcap(talk.records))
    shown, expected = ladder(path, 40), ladder(whole)
    assert [(arrow.frame, arrow.label) for arrow in shown.arrows] == [(a.frame, a.label) for a in expected.arrows]
    assert shown.arrows[-1].ms == pytest.approx(expected.arrows[-1].ms)


def test_packets_of_other_protocols_are_shown_between_their_hosts(tmp_path: Path) -> None:
    query = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\3www\7example\0\0\1\0\1"
    asked = [
        (CLOCK + n * 1000 * MS, ethernet(ip("10.0.0.1", "10.0.0.2", 17, udp(5000 + n, 53, query)))) for n in range(3)
    ]
    path = tmp_path / "dns.pcap"
    path.write_bytes(pcap(asked))
    found = ladder(path)
    assert found.protocol == "UDP"
    assert len(found.arrows) == 3
    assert {arrow.label for arrow in found.arrows} == {f"UDP len={len(query)}"}


def test_a_healthy_capture_has_no_diagram(tmp_path: Path) -> None:
    talk, _ = transfer(1, segments=40)
    path = talk.save(tmp_path / "healthy.pcap")
    analysis = analyse(path)
    findings = find(analysis)
    assert [finding.kind for finding in findings] == ["none"]
    assert sequence(path, analysis, findings) is None


@pytest.mark.parametrize("port", range(9, 17))
def test_all_that_two_hosts_said_is_drawn_between_the_two(tmp_path: Path, port: int) -> None:
    """Where the conversation itself is too short, whatever other ports the first packet had."""
    ends = "10.0.1.4", "10.0.2.4"
    lone = (CLOCK, ethernet(ip(*ends, 17, udp(port, port))))
    path = tmp_path / "lone.pcap"
    path.write_bytes(
        pcap([lone, *((CLOCK + n * MS, frame) for n, (_, frame) in enumerate(Talk().opened().records, 1))])
    )
    found = around(path, 1)
    assert found is not None
    assert (found.left, found.right) == ends


def test_evidence_that_is_no_frame_of_the_file_leads_to_no_diagram(lossy: Path) -> None:
    for frames in ((10**9,), (0,), ()):
        assert around(lossy, *frames) is None


def test_the_drawing_says_in_words_what_the_arrows_show(lossy: Path) -> None:
    drawn = ladder_diagram(ladder(lossy))
    assert 'role="img" aria-label="from 10.0.1.4:40000"' in drawn
    assert ", lost" in drawn
    assert "of this conversation not shown" in drawn
    assert drawn.count("<caption>") == 1


def test_no_byte_of_a_payload_is_in_it(tmp_path: Path) -> None:
    canary = b"CANARY-8f31"
    talk, _ = transfer(3, segments=200, downstream=0.05)
    records = [(when, frame.replace(b"x" * len(canary), canary, 1)) for when, frame in talk.records]
    path = tmp_path / "canary.pcap"
    path.write_bytes(pcap(records))
    assert canary.decode() not in ladder_diagram(ladder(path))
