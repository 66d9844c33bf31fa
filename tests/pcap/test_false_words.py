"""What must not be said: each test is a capture of which a rule once told something false."""

from __future__ import annotations

from pathlib import Path

import pytest

from ghost.pcap.findings import Finding

from .labelled import messages, small_captures
from .labelled.network import Link, Packet
from .labelled.office import Exchange, Office, chatter, talk
from .labelled.scene import Scene, judged
from .talks import START, Connection
from .wire import ACK, MS, RST, SYN, Record, ethernet, ip, pcap, tcp, udp


def found_in(path: Path, records: list[Record]) -> tuple[Finding, ...]:
    (path / "a.pcap").write_bytes(pcap(sorted(records, key=lambda record: record[0])))
    return judged(path / "a.pcap")


def refusals(client: str, refuses: str, serves: str, by: str) -> list[Record]:
    """Six connections of `client` that `refuses` resets, and at once one of `by` that `serves` answers."""
    records: list[Record] = []
    for n in range(6):
        now = START + n * 2_000 * MS
        port = 41_000 + n
        records += [
            (now, ethernet(ip(client, refuses, 6, tcp(port, 443, 1000, 0, SYN), number=n + 1))),
            (now + MS, ethernet(ip(refuses, client, 6, tcp(443, port, 0, 1001, RST | ACK), number=n + 1))),
        ]
        one = Connection(by, serves, 42_000 + n, 443, now + 2 * MS)
        records += one.opened().asks(b"q" * 50).answers(b"a" * 500).closes().records
    return records


@pytest.mark.parametrize(
    ("client", "refuses", "serves", "by", "severity"),
    [
        ("::1", "::1", "127.0.0.1", "127.0.0.1", "LOW"),
        ("10.0.1.4", "10.0.2.4", "10.0.3.3", "10.0.1.77", "HIGH"),
        ("10.0.1.4", "10.0.2.4", "10.0.3.3", "10.0.1.4", "HIGH"),
    ],
)
def test_a_twin_is_another_address_of_the_same_name_for_the_same_client(
    client: str, refuses: str, serves: str, by: str, severity: str, tmp_path: Path
) -> None:
    (first, *_) = found_in(tmp_path, refusals(client, refuses, serves, by))
    assert (first.kind, first.severity) == ("refused", severity)


def test_one_connection_that_stalls_is_no_interruption_of_its_hosts(tmp_path: Path) -> None:
    def play(office: Office) -> None:
        cut = talk(office.client, office.server, 5432, chatter(office.dice, 60, pause=0.2), begin=0.5)
        for n in range(40):
            talk(office.client, office.server, 5432, chatter(office.dice, 2), begin=0.5 + 0.7 * n)
        port = cut.client.port

        def stalled(packet: Packet) -> bool:
            segment = packet.segment
            return segment is not None and segment.source_port == port and 4 < office.world.now < 13

        office.path.there, office.path.link_at = Link(blocks=stalled), 0.9

    scene = Scene("made", "none", "none", play, seconds=40.0)
    titles = [finding.title for finding in judged(scene.save(tmp_path / "a.pcap", 9, "client"))]
    assert not [title for title in titles if "Nothing passed" in title], titles


def test_four_hops_in_one_capture_are_no_loop(tmp_path: Path) -> None:
    records = [
        (
            START + (n * 1000 + hop) * MS,
            ethernet(ip("10.0.0.4", "10.9.0.5", 17, udp(50_000, 443, b"x" * 50), ttl=64 - hop, number=n + 1)),
        )
        for n in range(50)
        for hop in range(4)
    ]
    assert "routing_loop" not in {finding.kind for finding in found_in(tmp_path, records)}


def test_a_fault_that_goes_on_says_so(tmp_path: Path) -> None:
    """A finding shows five frames; its last time is that of the last one."""

    def play(office: Office) -> None:
        error = Exchange(
            messages.get(office.name("shop")), ((0.02, messages.answer(300, "503 Service Unavailable")),), 1.0
        )
        talk(office.client, office.server, 8080, [error] * 40, begin=1.0)

    (first, *_) = judged(Scene("made", "none", "none", play, seconds=60.0).save(tmp_path / "a.pcap", 9, "client"))
    assert first.kind == "http_5xx"
    assert first.first_ns is not None
    assert first.last_ns is not None
    assert (first.last_ns - first.first_ns) / 1e9 > 38


def test_pings_that_nobody_answers_are_unusual(tmp_path: Path) -> None:
    office_scene = small_captures.SCENES["a_single_connection_across_two_oceans"]

    def play(office: Office) -> None:
        office_scene.play(office)
        office.server.silent = False
        lost = office.new_host()
        office.new_path(office.client, lost).there = Link(outages=((0.0, 99.0),))
        for n in range(6):
            office.ping(office.client, lost, 0.5 + n, n)

    (none,) = judged(Scene("made", "none", "none", play).save(tmp_path / "a.pcap", 9, "client"))
    assert any("pings of" in sentence for sentence in none.unusual), none.unusual


def test_a_public_host_gets_no_command_and_a_client_no_knock(tmp_path: Path) -> None:
    records = refusals("10.0.1.4", "52.1.2.3", "52.1.2.4", "10.0.1.4")
    (first, *_) = found_in(tmp_path, records)
    assert first.remediation
    assert {remedy.run_on for remedy in first.remediation} == {"10.0.1.4"}
