"""TCP: the flags agree with tshark, and losses are laid at the right part of the path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.model import Direction, Stream

from .agreement import flags_by_engine, flags_by_tshark
from .wire import ACK, FIN, PSH, RST, SYN, Talk, transfer

TOTALS = {
    "tcp_packets": "packets", "syn": "syn", "synack": "syn_ack", "rst": "rst", "fin": "fin",
    "retransmission": "retransmissions", "fast_retransmission": "fast_retransmissions",
    "spurious_retransmission": "spurious_retransmissions", "duplicate_ack": "duplicate_acks",
    "out_of_order": "out_of_order", "zero_window": "zero_window", "lost_segment": "lost_segments",
    "ack_lost_segment": "acked_unseen", "keep_alive": "keep_alives", "keep_alive_ack": "keep_alive_acks",
    "window_update": "window_updates", "window_full": "window_full", "reused_ports": "reused_ports",
    "ack_rtt_samples": "ack_rtt_samples",
}  # fmt: skip


def only_stream(talk: Talk, tmp_path: Path) -> Stream:
    section = analyse(talk.save(tmp_path / "talk.pcap")).tcp
    assert section is not None
    assert len(section.streams) == 1
    return section.streams[0]


# ------------------------------------------------------------------------------------------------------ against tshark


def test_totals_agree_with_tshark_on_real_captures(shared_captures: Path) -> None:
    differences = {}
    for expected_file in sorted(shared_captures.glob("*.tshark.json")):
        name = expected_file.name.removesuffix(".tshark.json")
        expected = json.loads(expected_file.read_text(encoding="utf-8"))
        (capture,) = shared_captures.glob(f"{name}.pcap*")
        analysis = analyse(capture)
        assert analysis.summary.total_packets == expected["packets"]
        # tshark's fields also match the TCP headers quoted in ICMP errors.
        quoted = sum(error.count for error in analysis.icmp.errors if error.protocol == "tcp") if analysis.icmp else 0
        found = dict.fromkeys(TOTALS, 0)
        if analysis.tcp is not None:
            assert len(analysis.tcp.streams) == expected["tcp_streams"]
            found = {field: getattr(analysis.tcp.totals, own) for field, own in TOTALS.items()}
        found["tcp_packets"] += quoted
        wrong = {field: (count, expected[field]) for field, count in found.items() if count != expected[field]}
        if wrong:
            differences[name] = wrong
    assert differences == {}


@pytest.mark.needs("tshark")
@pytest.mark.parametrize(
    "path",
    [
        {"upstream": 0.04}, {"downstream": 0.04}, {"upstream": 0.03, "downstream": 0.03, "ack_loss": 0.05},
        {"downstream": 0.15, "from_client": False}, {"near_ms": 5.0, "far_ms": 0.05, "upstream": 0.04},
    ],
)  # fmt: skip
def test_flags_agree_with_tshark_packet_by_packet_on_lossy_transfers(path: dict[str, float], tmp_path: Path) -> None:
    talk, _ = transfer(7, segments=300, **path)  # type: ignore[arg-type]
    capture = talk.save(tmp_path / "lossy.pcap")
    assert flags_by_engine(capture) == flags_by_tshark(capture)


@pytest.mark.needs("tshark")
def test_flags_agree_with_tshark_on_zero_windows_keep_alives_and_reused_ports(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, PSH | ACK, 500)
    talk.s(1, 501, window=0).s(1, 501, window=0)
    talk.c(501, 1, ACK, 1, after_ms=200).s(1, 501, window=0)
    talk.c(500, 1, after_ms=400).s(1, 501, window=0).s(1, 501, window=600).s(1, 501, window=600)
    talk.c(500, 1, ACK, 1, after_ms=9000).s(1, 501, window=600)
    talk.c(501, 1, ACK, 600, after_ms=5).s(1, 1101, RST | ACK)
    talk.c(90_000, 0, SYN, after_ms=5000).s(7_000, 90_001, SYN | ACK).c(90_001, 7_001)
    capture = talk.save(tmp_path / "window.pcap")
    ours = flags_by_engine(capture)
    assert ours == flags_by_tshark(capture)
    assert {"zero_window", "zero_window_probe", "keep_alive", "window_full", "reused_ports"} <= set().union(
        *ours.values()
    )


@pytest.mark.needs("tshark")
def test_flags_agree_with_tshark_on_acknowledged_gaps_unscaled_windows_and_bare_resets(tmp_path: Path) -> None:
    scaled = b"\2\4\5\xb4\3\3\7"
    talk = Talk().c(0, 0, SYN, options=scaled).s(0, 1, SYN | ACK, window=1000, options=scaled).c(1, 1)  # type: ignore[arg-type]
    # The window of a SYN-ACK is not scaled, so this fills it.
    talk.c(1, 1, ACK, 1000).c(1001, 1, ACK, 1000)
    # The client acknowledges what was never seen, then more of it, then after a gap, then after a duplicate ACK.
    talk.c(2001, 501).c(2001, 601).c(1, 601, ACK, 1000, after_ms=3).s(3001, 1, ACK, 1000).c(2001, 4001).c(2001, 5001)
    talk.s(4001, 2001).s(4001, 2001).c(2001, 7001).c(1001, 7001, ACK, 1000)
    # A reset without ACK: what its sender acknowledged before is forgotten.
    talk.s(4001, 2001).s(4001, 0, RST).s(4001, 2001).c(1001, 7001, ACK, 1000, after_ms=50)
    # No window scale in the SYN: there is none in the other direction either.
    other = Talk(client_port=40_001, now=talk.now).c(0, 0, SYN).s(1, 1, window=1000).c(1, 1, ACK, 1000)
    talk.records += other.records
    capture = talk.save(tmp_path / "gaps.pcap")
    ours = flags_by_engine(capture)
    assert ours == flags_by_tshark(capture)
    seen = [name for flags in ours.values() for name in flags]
    assert (seen.count("ack_lost_segment"), seen.count("window_full"), seen.count("fast_retransmission")) == (3, 3, 1)


# ---------------------------------------------------------------------------------------------- where segments are lost


def test_a_gap_that_a_repeat_fills_was_lost_before_the_capture_point(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK, 1000).c(2001, 1, ACK, 1000, number=50).c(3001, 1, ACK, 1000, number=51)
    talk.s(1, 1001).s(1, 1001).s(1, 1001).c(1001, 1, ACK, 1000, after_ms=45, number=52).s(1, 4001)
    stream = only_stream(talk, tmp_path)
    assert stream.client.lost_upstream.count == 1
    assert stream.client.lost_upstream.frames == (10,)
    assert stream.client.lost_downstream.count == stream.client.needless.count == stream.client.reordered.count == 0
    assert stream.server.lost == 0
    assert stream.server.duplicate_acks.count == 2


def test_a_captured_segment_that_the_peer_needed_again_was_lost_behind_the_capture_point(tmp_path: Path) -> None:
    talk = Talk().opened().s(1, 1, ACK, 1000).s(1001, 1, ACK, 1400).s(2401, 1, ACK, 900)
    talk.c(1, 1001).c(1, 1001).s(1001, 1, ACK, 1400, after_ms=45).c(1, 3301, after_ms=40)
    stream = only_stream(talk, tmp_path)
    assert stream.server.lost_downstream.count == 1
    assert stream.server.lost_downstream.frames == (9,)
    assert stream.server.largest_lost_segment == stream.server.smallest_lost_segment == 1400
    assert stream.server.lost_upstream.count == stream.client.lost == 0


@pytest.mark.parametrize(("number", "pause_ms"), [(7, 2.0), (0, 0.02)])
def test_copies_of_a_segment_are_not_lost_segments(tmp_path: Path, number: int, pause_ms: float) -> None:
    """Also of a stack that numbers no packet: what comes again at once, nobody can have asked for."""
    talk = Talk().opened().c(1, 1, ACK, 1000, number=number)
    for _ in range(3):
        talk.c(1, 1, ACK, 1000, number=number, after_ms=pause_ms)
    client = only_stream(talk.s(1, 1001, after_ms=40), tmp_path).client
    assert (client.retransmissions.count, client.lost) == (3, 0)


def test_a_segment_without_number_that_is_sent_again_after_a_round_trip_was_lost(tmp_path: Path) -> None:
    talk = (
        Talk().opened().c(1, 1, ACK, 1000, number=0).c(1, 1, ACK, 1000, number=0, after_ms=60).s(1, 1001, after_ms=40)
    )
    assert only_stream(talk, tmp_path).client.lost_downstream.count == 1


def test_each_further_repeat_is_a_further_loss(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK, 1000)
    talk.c(1, 1, ACK, 1000, after_ms=300).c(1, 1, ACK, 1000, after_ms=600).s(1, 1001, after_ms=40)
    client = only_stream(talk, tmp_path).client
    assert (client.lost_downstream.count, client.rto_retransmissions.count) == (2, 2)


def test_a_repeat_of_what_was_acknowledged_is_needless(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK, 1000).s(1, 1001, after_ms=40).c(1, 1, ACK, 1000, after_ms=300).s(1, 1001)
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.spurious_retransmissions.count, client.lost) == (1, 1, 0)


def test_a_repeat_that_is_answered_sooner_than_it_could_arrive_is_needless(tmp_path: Path) -> None:
    talk = Talk().opened(there_ms=100).c(1, 1, ACK, 1000).s(1, 1001, after_ms=100)
    talk.c(1001, 1, ACK, 1000).c(1001, 1, ACK, 1000, after_ms=250).s(1, 2001, after_ms=3)
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.lost) == (1, 0)


def test_a_repeat_that_the_receiver_reports_as_a_duplicate_is_needless(tmp_path: Path) -> None:
    dsack = b"\5\x0a" + (1).to_bytes(4, "big") + (1001).to_bytes(4, "big")
    talk = Talk().opened().c(1, 1, ACK, 1000).c(1, 1, ACK, 1000, after_ms=300)
    talk.s(1, 1001, after_ms=40, options=dsack)  # type: ignore[arg-type]
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.lost) == (1, 0)


def _duplicate(begin: int, end: int) -> bytes:
    return b"\5\x0a" + begin.to_bytes(4, "big") + end.to_bytes(4, "big")


def _stamped(value: int, echo: int) -> bytes:
    return b"\1\1\x08\x0a" + value.to_bytes(4, "big") + echo.to_bytes(4, "big")


def test_a_duplicate_that_is_reported_behind_the_ack_of_a_delayed_original_is_needless(tmp_path: Path) -> None:
    """Of two repeats one was reported: the other may have been needed."""
    talk = Talk().opened().c(1, 1, ACK, 1000).c(1, 1, ACK, 1000, after_ms=300).c(1, 1, ACK, 1000, after_ms=600)
    talk.s(1, 1001, after_ms=40).s(1, 1001, after_ms=300, options=_duplicate(1, 1001))  # type: ignore[arg-type]
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.needless.frames) == (1, (6,))
    assert (client.lost, client.lost_downstream.frames) == (1, (5,))


def test_an_ack_that_echoes_the_original_shows_that_it_arrived(tmp_path: Path) -> None:
    for echo, needless, lost in ((100, 1, 0), (400, 0, 1)):
        talk = Talk().opened().c(1, 1, ACK, 1000, options=_stamped(100, 9))  # type: ignore[arg-type]
        talk.c(1, 1, ACK, 1000, after_ms=300, options=_stamped(400, 9))  # type: ignore[arg-type]
        talk.s(1, 1001, after_ms=40, options=_stamped(50, echo))  # type: ignore[arg-type]
        client = only_stream(talk, tmp_path).client
        assert (client.needless.count, client.lost) == (needless, lost)


def test_an_echo_that_may_be_of_another_segment_shows_nothing(tmp_path: Path) -> None:
    """The ACK of the first waited for the repeat of the second, which left at the same moment and was lost."""
    talk = Talk().opened().c(1, 1, ACK, 1000, options=_stamped(100, 9))  # type: ignore[arg-type]
    talk.c(1001, 1, ACK, 1000, options=_stamped(100, 9))  # type: ignore[arg-type]
    talk.c(1001, 1, ACK, 1000, after_ms=60, options=_stamped(160, 9))  # type: ignore[arg-type]
    client = only_stream(talk.s(1, 2001, after_ms=40, options=_stamped(50, 100)), tmp_path).client  # type: ignore[arg-type]
    assert (client.needless.count, client.lost) == (0, 1)


@pytest.mark.parametrize("answered", [True, False])
def test_a_syn_whose_answer_only_waited_was_not_lost(tmp_path: Path, answered: bool) -> None:
    talk = Talk().c(0, 0, SYN, options=_stamped(100, 0))  # type: ignore[arg-type]
    talk.c(0, 0, SYN, after_ms=1000, options=_stamped(1100, 0))  # type: ignore[arg-type]
    echo = _stamped(50, 100 if answered else 1100)
    talk.s(0, 1, SYN | ACK, after_ms=100, options=echo).c(1, 1)  # type: ignore[arg-type]
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.lost) == ((1, 0) if answered else (0, 1))


def test_a_fin_that_was_acknowledged_is_repeated_needlessly(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, FIN | ACK).s(1, 2, after_ms=40).c(1, 1, FIN | ACK, after_ms=300)
    client = only_stream(talk, tmp_path).client
    assert (client.needless.count, client.lost) == (1, 0)


@pytest.mark.parametrize("number", [41, 0])
def test_a_late_segment_that_was_sent_first_is_reordered_and_not_lost(tmp_path: Path, number: int) -> None:
    """By its IP id where there is one, else because no round trip had passed."""
    talk = Talk().opened().c(1, 1, ACK, 1000, number=40 if number else 0)
    talk.c(2001, 1, ACK, 1000, number=42 if number else 0).c(1001, 1, ACK, 1000, number=number).s(1, 3001)
    client = only_stream(talk, tmp_path).client
    assert (client.reordered.count, client.out_of_order.count, client.lost) == (1, 1, 0)


def test_a_gap_that_the_peer_acknowledges_is_missing_from_the_capture_only(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, ACK, 1000).c(2001, 1, ACK, 1000).s(1, 3001, after_ms=40)
    client = only_stream(talk, tmp_path).client
    assert (client.capture_gaps.count, client.lost) == (1, 0)


@pytest.mark.parametrize("from_client", [True, False])
@pytest.mark.parametrize(
    ("where", "ends"),
    [
        ("upstream", (10.0, 15.0)),
        ("downstream", (10.0, 15.0)),
        ("upstream", (25.0, 0.05)),
        ("downstream", (0.05, 25.0)),
    ],
)
def test_most_losses_of_a_lossy_path_are_found_and_all_laid_at_the_right_part(
    tmp_path: Path, from_client: bool, where: str, ends: tuple[float, float]
) -> None:
    dropped = found = 0
    for seed in range(4):
        talk, drops = transfer(
            seed, from_client=from_client, near_ms=ends[0], far_ms=ends[1],
            upstream=0.03 * (where == "upstream"), downstream=0.03 * (where == "downstream"),
        )  # fmt: skip
        stream = only_stream(talk, tmp_path)
        sender, receiver = (stream.client, stream.server) if from_client else (stream.server, stream.client)
        dropped += drops.upstream + drops.downstream
        found += getattr(sender, f"lost_{where}").count
        other: Direction = receiver
        assert other.lost == 0
        assert sender.lost == getattr(sender, f"lost_{where}").count
        assert sender.reordered.count == 0
    # A repeat lost before the capture point leaves no trace, so a few upstream losses cannot be seen.
    assert 0.9 * dropped <= found <= dropped


def test_lost_acks_are_not_lost_data(tmp_path: Path) -> None:
    talk, drops = transfer(5, ack_loss=0.05)
    assert drops.acks_downstream > 5
    assert only_stream(talk, tmp_path).client.lost == 0


# --------------------------------------------------------------------------------------------------------- connections


def test_a_completed_handshake_tells_the_round_trip_on_both_sides_of_the_capture_point(tmp_path: Path) -> None:
    stream = only_stream(Talk().opened(there_ms=30, back_ms=5), tmp_path)
    assert stream.handshake == "completed"
    assert (stream.syn_to_syn_ack_ms, stream.syn_ack_to_ack_ms, stream.handshake_rtt_ms) == (30.0, 5.0, 35.0)
    assert stream.client_known_by == "syn"
    assert stream.client.endpoint.port == 40_000


def test_a_syn_nobody_answers_is_unanswered_with_its_repeats(tmp_path: Path) -> None:
    talk = Talk().c(0, 0, SYN).c(0, 0, SYN, after_ms=1000).c(0, 0, SYN, after_ms=2000)
    analysis = analyse(talk.save(tmp_path / "syn.pcap"))
    assert analysis.tcp is not None
    stream = analysis.tcp.streams[0]
    assert (stream.handshake, stream.syn_retransmissions, stream.one_sided) == ("unanswered", 2, True)
    assert stream.client.syn.frames == (1, 2, 3)
    connections = analysis.tcp.connections
    assert (connections.syn_sent, connections.unanswered_syn, connections.connections_attempted) == (3, 1, 1)
    assert connections.handshake_success_rate_pct == 0.0
    assert stream.client.lost == 0


def test_a_syn_answered_by_a_reset_is_refused_by_the_server(tmp_path: Path) -> None:
    stream = only_stream(Talk().c(0, 0, SYN).s(0, 1, RST | ACK), tmp_path)
    assert (stream.handshake, stream.rst_from, stream.teardown) == ("refused", "server", "rst")


def test_a_reset_with_another_ttl_than_its_sender_comes_from_neither(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, PSH | ACK, 100).s(1, 101, RST | ACK, ttl=250)
    stream = only_stream(talk, tmp_path)
    assert stream.rst_from == "neither"
    assert (stream.server.ttl, stream.server.rst_ttl) == (64, 250)
    assert not stream.server.rst_after_fin


def test_a_reset_after_a_fin_is_a_close_and_half_closed_is_one_fin(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, FIN | ACK)
    assert only_stream(talk, tmp_path).teardown == "half_closed"
    talk.s(1, 2, FIN | ACK).c(2, 2, RST)
    stream = only_stream(talk, tmp_path)
    assert (stream.teardown, stream.client.rst_after_fin) == ("fin", True)


def test_a_slow_answer_after_a_fast_ack_shows_in_both_times(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, PSH | ACK, 100).s(1, 101, after_ms=20).s(1, 101, PSH | ACK, 500, after_ms=980)
    stream = only_stream(talk, tmp_path)
    assert stream.request_acked_ms is not None
    assert stream.response_ms is not None
    assert (stream.request_acked_ms.median, stream.response_ms.median) == (20.0, 1000.0)
    assert stream.unanswered_request_ms is None


def test_a_request_without_answer_waits_until_the_capture_ends(tmp_path: Path) -> None:
    talk = Talk().opened().c(1, 1, PSH | ACK, 100).s(1, 101, after_ms=20)
    assert only_stream(talk, tmp_path).unanswered_request_ms == 20.0


def test_streams_with_issues_holds_the_failed_one_first_and_healthy_ones_not(tmp_path: Path) -> None:
    healthy = Talk(client_port=1).opened().c(1, 1, PSH | ACK, 10).s(1, 11, PSH | ACK, 10).c(11, 11)
    healthy.c(11, 11, FIN | ACK).s(11, 12, FIN | ACK).c(12, 12)
    failed = Talk(client_port=2, now=healthy.now).c(0, 0, SYN)
    lossy = Talk(client_port=3, now=failed.now).opened().c(1, 1, ACK, 100).c(1, 1, ACK, 100, after_ms=300).s(1, 101)
    talk = Talk(records=healthy.records + failed.records + lossy.records)
    section = analyse(talk.save(tmp_path / "three.pcap")).tcp
    assert section is not None
    assert [stream.client.endpoint.port for stream in section.streams_with_issues] == [2, 3]
