"""UDP services that owe an answer: what is counted, and which servers answer nobody."""

from __future__ import annotations

from pathlib import Path

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.model import UdpService

from .talks import later
from .wire import CLIENT, MS, SERVER, Record, ethernet, ip, pcap, udp

START = 1_700_000_000 * 10**9
NTP, QUIC = 123, 443


def asked(at_ms: float, port: int, server: str = SERVER, *, source_port: int = 40_000, body: bytes = b"?") -> Record:
    return START + int(at_ms * MS), ethernet(ip(CLIENT, server, 17, udp(source_port, port, body)))


def answered(at_ms: float, port: int, server: str = SERVER, *, to: int = 40_000, body: bytes = b"!") -> Record:
    return START + int(at_ms * MS), ethernet(ip(server, CLIENT, 17, udp(port, to, body)))


def saved(tmp_path: Path, *records: Record) -> Path:
    path = tmp_path / "services.pcap"
    path.write_bytes(pcap(sorted(records)))
    return path


def services(tmp_path: Path, *records: Record) -> tuple[UdpService, ...]:
    return analyse(saved(tmp_path, *records)).services


def test_requests_and_responses_are_counted_by_service(tmp_path: Path) -> None:
    ntp, quic = services(
        tmp_path, asked(0, NTP, source_port=NTP), answered(9, NTP, to=NTP), asked(20, QUIC), asked(30, QUIC),
        answered(40, QUIC), asked(50, QUIC, source_port=40_001), asked(60, 514),
    )  # fmt: skip
    assert (ntp.name, ntp.conversations, ntp.requests, ntp.responses, ntp.unanswered) == ("ntp", 1, 1, 1, 0)
    assert (quic.name, quic.conversations, quic.requests, quic.responses, quic.unanswered) == ("quic", 2, 3, 1, 1)
    assert (ntp.silent_servers, quic.silent_servers) == ((), ())


def test_a_server_that_answers_nobody_is_told_with_all_its_conversations(tmp_path: Path) -> None:
    gone, multicast = "10.0.9.9", "224.0.1.1"
    records = [asked(100 * n, NTP, gone, source_port=40_000 + n) for n in range(7)]
    (ntp,) = services(tmp_path, asked(0, NTP), answered(9, NTP), *records, asked(500, NTP, multicast))
    (silent,) = ntp.silent_servers
    assert (silent.address, silent.port, silent.client, silent.requests) == (gone, NTP, CLIENT, 7)
    assert len(silent.frames) == 5


def test_a_server_of_which_the_capture_ends_too_soon_is_no_finding(tmp_path: Path) -> None:
    records = [asked(100 * n, NTP) for n in range(5)]
    assert [each.kind for each in find(analyse(saved(tmp_path, *records)))] == ["none"]
    assert [each.kind for each in find(analyse(saved(tmp_path, *records, later(60_000))))] == ["no_answer"]
