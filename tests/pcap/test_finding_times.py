"""When a finding was seen, by whose name, and what is said of a capture in which no fault was recognised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap.kernels import frame_clock
from ghost.pcap.kernels.frame_clock import FrameClock
from ghost.pcap.report.single_capture import report_on

from .labelled import small_captures
from .labelled.faults import FAULTS
from .labelled.healthy import HEALTHY
from .labelled.network import EPOCH_NS
from .labelled.office import Exchange, Office, talk
from .labelled.scene import Scene, judged
from .wire import ethernet, ip, pcap, tcp, udp


@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 20))
def test_frames_have_times_however_they_are_taken(sizes: list[int], most: int) -> None:
    times = np.arange(sum(sizes), dtype=np.int64) * 10 + 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_clock, "MOST", most)
        whole, parts = FrameClock(), FrameClock()
        whole.take(times)
        at = 0
        for size in sizes:
            parts.take(times[at : at + size])
            at += size
    assert whole == parts
    apart = max(2 * len(times) // most, 1)
    for frame in range(1, len(times) + 1):
        assert 0 <= times[frame - 1] - whole.at(frame) < 10 * apart
    with pytest.raises(ValueError, match="the capture has"):
        whole.at(len(times) + 1)


def seconds(ns: int | None, seed: int) -> float:
    assert ns is not None
    return (ns - EPOCH_NS) / 1e9 - seed


def test_an_interruption_is_told_by_its_window_and_not_as_a_rate_of_loss(tmp_path: Path) -> None:
    scene = small_captures.SCENES["nine_seconds_without_a_way"]
    (found, *_) = judged(scene.save(tmp_path / "a.pcap", 111, "between"))
    assert found.kind == "rto_loss"
    assert found.severity == "HIGH"
    assert "Nothing passed" in found.title
    assert "lost" not in found.title
    assert 7.5 <= seconds(found.first_ns, 111) <= 9
    assert 16.5 <= seconds(found.last_ns, 111) <= 22


def test_every_finding_of_packets_has_times(tmp_path: Path) -> None:
    without = []
    for name in (
        "service_stopped",
        "lossy_down",
        "resolver_silent",
        "backend_broken",
        "far_away",
        "certificate_expired",
    ):
        scene = FAULTS[name]
        for finding in judged(scene.save(tmp_path / "a.pcap", 7, "client")):
            if finding.first_ns is None or (finding.last_ns or finding.first_ns) < finding.first_ns:
                without.append((name, finding.kind))
    assert not without


def test_hosts_have_the_names_that_clients_ask_for(tmp_path: Path) -> None:
    (found, *_) = judged(FAULTS["backend_broken"].save(tmp_path / "a.pcap", 7, "client"))
    assert found.names.keys() == {found.who.dst}
    assert next(iter(found.names.values())).startswith("shop.")


def test_a_looping_packet_is_found_by_its_falling_hop_limit(tmp_path: Path) -> None:
    records = []
    for n in range(4):
        body = tcp(50_000 + n, 443, 1000, 0, 2, b"")
        records += [
            (
                n * 1_000_000_000 + hop * 900_000,
                ethernet(ip("10.0.0.4", "10.9.0.5", 6, body, ttl=60 - 2 * hop, number=n + 1)),
            )
            for hop in range(12)
        ]
    path = tmp_path / "loop.pcap"
    path.write_bytes(pcap(records))
    assert [(each.kind, each.severity, each.who.dst) for each in judged(path)][:1] == [
        ("routing_loop", "HIGH", "10.9.0.5")
    ]


def test_a_packet_on_both_sides_of_two_routers_does_not_loop(tmp_path: Path) -> None:
    records = []
    for n in range(20):
        body = udp(50_000, 443, b"x" * 50)
        records += [
            (
                n * 1_000_000_000 + hop * 900_000,
                ethernet(ip("10.0.0.4", "10.9.0.5", 17, body, ttl=60 - hop, number=n + 1)),
            )
            for hop in range(3)
        ]
    path = tmp_path / "routed.pcap"
    path.write_bytes(pcap(records))
    assert "routing_loop" not in {each.kind for each in judged(path)}


def said_of(play: object, directory: Path) -> tuple[str, tuple[str, ...], str]:
    scene = Scene("made", "none", "none", play)  # type: ignore[arg-type]
    (found,) = judged(scene.save(directory / "a.pcap", 9, "client"))
    return found.title, found.unusual, found.confidence


def test_what_is_unusual_is_listed_where_no_fault_is_recognised(tmp_path: Path) -> None:
    def play(office: Office) -> None:
        asked = [Exchange(b"q" * 90, ((0.7 if n == 5 else 0.01, b"a" * 300),), 0.1) for n in range(20)]
        talk(office.client, office.server, 5432, asked, begin=0.5)

    title, unusual, confidence = said_of(play, tmp_path)
    assert title == "No fault recognised in this capture"
    assert len(unusual) == 1
    assert "5432: 7" in unusual[0]
    assert "median of 20" in unusual[0]
    assert confidence == "medium"
    page = report_on(tmp_path / "a.pcap").texts[-1]
    assert "Unusual in it (medium confidence)" in page
    assert "median of 20" in page


def test_a_long_ordinary_capture_has_high_confidence_and_a_single_packet_low(tmp_path: Path) -> None:
    (found,) = judged(HEALTHY["kept_alive"].save(tmp_path / "a.pcap", 9, "client"))
    assert (found.kind, found.unusual, found.confidence) == ("none", (), "high")
    path = tmp_path / "one.pcap"
    path.write_bytes(pcap([(0, ethernet(ip("10.0.0.4", "10.9.0.5", 6, tcp(50_000, 443, 1, 1, 16, b""))))]))
    assert [each.confidence for each in judged(path)] == ["low"]
