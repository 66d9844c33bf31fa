"""What could not be read is never called healthy; what a known tunnel carries is judged like anything else."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.report.capture_facts import headline
from ghost.pcap.report.markdown_report import executive_summary, forensic_report
from ghost.pcap.report.semantic import dump, semantic

from .labelled.faults import FAULTS
from .labelled.faults.sealed import esp
from .labelled.healthy import HEALTHY
from .labelled.office import Office
from .labelled.scene import Scene
from .wire import Record, ethernet, ip, pcap, udp

Wrap = Callable[[bytes], bytes]


def records_of(scene: Scene, seed: int = 20) -> list[Record]:
    """The frames of a scene at the client's end, in order."""
    office = Office(seed, "client", seconds=scene.seconds)
    scene.play(office)
    office.world.run()
    return sorted(office.world.records, key=lambda record: record[0])


def vxlan_of_linux(frame: bytes) -> bytes:
    return ethernet(ip("192.0.2.7", "192.0.2.8", 17, udp(51234, 8472, b"\x08\0\0\0\0\0\x2a\0" + frame), number=5))


def gtp(frame: bytes) -> bytes:
    packet = frame[14:]
    head = struct.pack(">BBHI", 0x34, 255, len(packet) + 8, 99) + b"\0\0\0\x85\1\0\1\0"
    return ethernet(ip("192.0.2.7", "192.0.2.8", 17, udp(2152, 2152, head + packet)))


def pseudowire(frame: bytes) -> bytes:
    return ethernet(struct.pack(">III", 100 << 12 | 64, 200 << 12 | 0x140, 7) + frame, 0x8847)


@pytest.mark.parametrize("wrap", [vxlan_of_linux, gtp, pseudowire])
def test_a_fault_inside_a_tunnel_is_the_first_finding_and_health_inside_raises_no_alarm(
    tmp_path: Path, wrap: Wrap
) -> None:
    for scene, kind in ((FAULTS["service_stopped"], "refused"), (HEALTHY["ordinary_day"], "none")):
        path = tmp_path / "tunnel.pcap"
        path.write_bytes(pcap([(when, wrap(frame)) for when, frame in records_of(scene) if frame[12:14] == b"\x08\0"]))
        found = find(analyse(path, compile_kernels=False))
        assert found[0].kind == kind, [(each.kind, each.title) for each in found]
        if kind == "none":
            assert found[0].confidence == "medium"


def with_esp(scene: Scene, packets: int) -> list[Record]:
    office = Office(20, "client", seconds=scene.seconds)
    scene.play(office)
    esp(office, packets)
    office.world.run()
    return sorted(office.world.records, key=lambda record: record[0])


def save(path: Path, records: list[Record], link: int = 1) -> Path:
    path.write_bytes(pcap(records, link=link))
    return path


@pytest.mark.parametrize("link", [105, 127, 195, 239])
def test_a_link_type_that_is_not_decoded_is_no_health(tmp_path: Path, link: int) -> None:
    analysis = analyse(save(tmp_path / "radio.pcap", records_of(HEALTHY["ordinary_day"]), link))
    (finding,) = find(analysis)
    assert (finding.kind, finding.blame, finding.severity) == ("not_decoded", "none", "LOW")
    assert f"link type {link}" in finding.title
    assert finding.title.startswith("100% of the packets could not be read")
    assert finding.evidence == (1,)
    assert finding.remediation
    assert headline([finding])[0].startswith("NOT READ: 100%")
    assert executive_summary(analysis, [finding]).startswith("# NOT READ: 100%")
    assert f"link type {link}" in forensic_report(analysis, [finding])
    summary = json.loads(dump(semantic(analysis, [finding])))["capture_summary"]
    assert summary["not_decoded"][0]["why"] == "link_type"
    assert summary["not_decoded"][0]["packets"] == analysis.summary.total_packets


def test_the_share_that_was_not_read_decides_how_much_an_all_clear_is_worth(tmp_path: Path) -> None:
    ordinary = HEALTHY["ordinary_day"]
    total = len(records_of(ordinary))
    seen = {}
    for share in (0.02, 0.3, 0.9):
        path = save(tmp_path / f"{share}.pcap", with_esp(ordinary, int(total * share / (1 - share))))
        found = find(analyse(path, compile_kernels=False))
        seen[share] = [(each.kind, each.confidence) for each in found]
    assert seen == {
        0.02: [("none", "medium")],
        0.3: [("not_decoded", "high"), ("none", "low")],
        0.9: [("not_decoded", "high")],
    }


def test_a_fault_beside_what_was_not_read_is_the_first_finding(tmp_path: Path) -> None:
    for packets in (1000, 20_000):
        found = find(analyse(save(tmp_path / "both.pcap", with_esp(FAULTS["service_stopped"], packets))))
        assert [each.kind for each in found][:2] == ["refused", "not_decoded"]


def test_what_neighbours_and_routers_say_is_named_and_no_gap(tmp_path: Path) -> None:
    ordinary = records_of(HEALTHY["ordinary_day"])
    chatter = [
        ethernet(b"\x42\x42\3" + b"\0" * 40, 43), ethernet(b"x" * 60, 0x88CC),
        ethernet(ip("192.0.2.1", "224.0.0.18", 112, b"x" * 20)), ethernet(ip("192.0.2.1", "224.0.0.5", 89, b"x" * 44)),
    ]  # fmt: skip
    more = [(ordinary[n % len(ordinary)][0], chatter[n % 4]) for n in range(len(ordinary))]
    (finding,) = find(
        analyse(
            save(tmp_path / "quiet.pcap", sorted(ordinary + more, key=lambda record: record[0])), compile_kernels=False
        )
    )
    assert (finding.kind, finding.confidence) == ("none", "medium")
    assert "Not decoded: " in finding.detail
    assert "(50% of the packets)" in finding.detail
    (alone,) = find(analyse(save(tmp_path / "alone.pcap", more)))
    assert (alone.kind, alone.confidence) == ("none", "low")


def test_datagrams_of_unknown_programs_are_no_proof_of_health(tmp_path: Path) -> None:
    frame = ethernet(ip("10.0.0.1", "10.0.0.2", 17, udp(40000, 7777, b"x" * 90)))
    (finding,) = find(analyse(save(tmp_path / "game.pcap", [(n * 1_000_000, frame) for n in range(500)])))
    assert (finding.kind, finding.confidence) == ("none", "low")
    assert "500 datagrams counted" in finding.detail
