"""tcpdump shows headers: what a SAFE command prints of packets that carry a text wherever one can stand."""

from __future__ import annotations

import shlex
import struct
import subprocess
from pathlib import Path

import pytest

from ghost.shell.judge.classification import decide
from ghost.shell.judge.grammar import built_in
from ghost.shell.judge.network.packet_protocols import ANYTHING, alternatives_of
from tests.each_row import each

PORTS = {"53": "names", "443": "quiet", "https": "quiet"}


@each(
    "text, kinds",
    [
        ("tcp", [{"tcp"}]),
        ("tcp port 80 or 443", [{"tcp"}, {"tcp", "quiet", "tcp-quiet"}]),
        ("udp dst port 53", [{"udp", "names", "udp-names"}]),
        ("port https and host 10.0.0.5", [{"quiet", "None-quiet"}]),
        ("icmp or arp and host a", [{"icmp"}, {"arp"}]),
        ("tcp and (port 80 or udp)", [{"tcp"}, {"tcp", "udp"}]),
        ("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0", [{"tcp"}]),
        ("((tcp[12] & 0xf0) >> 2) - ip[0] > 5", [{"tcp"}]),
        ("vlan 10 and icmp", [{"icmp"}]),
        ("tcp && ! host a", [{"tcp"}]),
        ("icmp6[icmp6type] = 3", [{"icmp6"}]),
    ],
)
def test_a_filter_tells_what_every_packet_is_that_it_lets_through(text: str, kinds: list[set[str]]) -> None:
    assert [set(holds) for holds in alternatives_of(text, PORTS)] == kinds


@each(
    "text",
    [
        *(
            "",
            "host tcp",
            "not tcp",
            "!tcp",
            "not (tcp)",
            "not tcp[13] = 2",
            "tcp port (not 80)",
            "tcp port (80 or 443)",
        ),
        *(
            "greater 100",
            "ip[9] = 6",
            "ip[0] + tcp[0] != 999",
            "len - tcp[0] > 1",
            "-tcp[0] > 1",
            "ether[12:2] = 6",
            "tcp[13]",
            "(tcp",
            "tcp)",
            "tcp tcp",
            "host a or 443",
        ),
        *("vlan and not udp or tcp", "geneve and tcp", "not vlan and tcp", "tcp and not mpls", "pppoes and tcp"),
        *("not port 443 or 443", "port", "tcp or \u00fc", "tcp and " * 3, " or ".join(["tcp"] * 40), "(" * 40 + "tcp"),
    ],
)
def test_what_is_not_understood_limits_nothing(text: str) -> None:
    assert any(not holds for holds in alternatives_of(text, PORTS))


def test_one_alternative_that_may_be_anything_is_enough() -> None:
    assert alternatives_of("tcp or host 10.0.0.4", PORTS) == (frozenset({"tcp"}), frozenset())
    assert alternatives_of("not udp", PORTS) == ANYTHING


TEXT = b"Hunter2Xyz"
RESP = b"*2\r\n$4\r\nAUTH\r\n$10\r\nHunter2Xyz\r\n"
BODY = b"POST /a HTTP/1.1\r\nHost: a\r\nX-Key: Hunter2Xyz\r\n\r\nHunter2Xyz\r\n"
SNMP = bytes.fromhex("302a02010004") + bytes([len(TEXT)]) + TEXT
SNMP += bytes.fromhex("a019020101020100020100300e300c06082b060102010101000500")


def ip(protocol: int, payload: bytes) -> bytes:
    addresses = b"\x0a\0\0\x04\x0a\0\0\x05"
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + addresses + payload


def tcp(port: int, payload: bytes) -> bytes:
    return ip(6, struct.pack(">HHIIBBHHH", 50_000, port, 1, 1, 0x50, 0x18, 500, 0, 0) + payload)


def udp(port: int, payload: bytes) -> bytes:
    return ip(17, struct.pack(">HHHH", 50_001, port, 8 + len(payload), 0) + payload)


LINES = b"SET Hunter2Xyz Hunter2Xyz\r\nPASS Hunter2Xyz\r\n"
DECODED = (21, 23, 25, 80, 110, 139, 143, 179, 445, 554, 587, 1723, 2049, 3128, 5060, 6379, 6653, 8080, 8554, 10_105)
SYSLOG = b"<13>su: Hunter2Xyz"
PACKETS = [
    *(tcp(port, LINES) for port in DECODED),
    *(tcp(80, BODY), tcp(6379, RESP), udp(161, SNMP), udp(514, SYSLOG), udp(69, b"\0\x01Hunter2Xyz\0octet\0")),
    *(udp(port, LINES) for port in (111, 137, 138, 1701, 1812, 1985, 2055, 4789, 5060, 9999)),
    udp(1985, bytes([0, 0, 16, 3, 10, 100, 1, 0]) + TEXT[:8] + b"\x0a\0\0\x01"),
    *(ip(1, b"\x03\x03" + b"\0" * 6 + inner) for inner in (udp(161, SNMP), udp(514, SYSLOG), tcp(6379, RESP))),
    *(ip(47, b"\0\0\x08\0" + tcp(6379, RESP)), ip(4, tcp(80, BODY)), ip(132, LINES)),
]


def capture(directory: Path, packets: list[bytes]) -> Path:
    path = directory / "a.pcap"
    records = (struct.pack("<IIII", 1_700_000_000, 0, len(packet), len(packet)) + packet for packet in packets)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101) + b"".join(records))
    return path


def shown(directory: Path, options: str, filter_: str) -> str:
    path = directory / "a.pcap"
    decision = decide(f"tcpdump {options} -r {path} {shlex.quote(filter_) if filter_ else ''}", [directory])
    assert (decision.classification, decision.explanation) == ("SAFE", decision.explanation)
    assert decision.arguments is not None
    return subprocess.run(decision.arguments, capture_output=True, text=True, errors="replace", check=True).stdout


@pytest.mark.needs("tcpdump")
@pytest.mark.parametrize(
    ("options", "filter_"),
    [
        *(("-n", filter_) for filter_ in ("", "tcp", "udp", "icmp", "host 10.0.0.4", "port 6379", "not port 22", "ip")),
        *(("-n", filter_) for filter_ in ("tcp port 6379 or 80", "tcp or icmp", "tcp or udp", "udp port 161")),
        *(("-nvvv", filter_) for filter_ in ("tcp", "udp", "icmp", "tcp or udp or icmp", "tcp port 25 or 80")),
        *(("-n", filter_) for filter_ in ("ip[0] + tcp[0] != 999", "len - tcp[0] != 999 or tcp")),
        *(("-nv", filter_) for filter_ in ("((tcp[12] & 0xf0) >> 2) - ip[0] != 999", "tcp[0] + udp[0] != 99")),
        *(("-env", filter_) for filter_ in ("tcp[13] & 8 != 0", "udp[2:2] = 161", "icmp or arp")),
    ],
)
def test_tcpdump_prints_nothing_of_the_payload(tmp_path: Path, options: str, filter_: str) -> None:
    capture(tmp_path, PACKETS)
    printed = shown(tmp_path, options, filter_)

    assert "10.0.0.4" in printed
    assert "Hunter2" not in printed


@pytest.mark.needs("tcpdump")
def test_the_packets_of_these_tests_would_show_their_text(tmp_path: Path) -> None:
    path = capture(tmp_path, PACKETS)
    plain, verbose = (
        subprocess.run(["tcpdump", options, "-r", path], capture_output=True, text=True, errors="replace", check=True)
        for options in ("-n", "-nvvv")
    )

    assert plain.stdout.count("Hunter2") >= 10
    assert verbose.stdout.count("Hunter2") >= 20


@pytest.mark.needs("tcpdump")
def test_tcpdump_prints_nothing_of_the_payload_at_a_quiet_port(tmp_path: Path) -> None:
    payload = built_in()["tcpdump"].payload
    assert payload is not None
    ports = [int(port) for port, kind in payload.ports.items() if kind == "quiet" and port.isdigit()]
    texts = (LINES, RESP, BODY, SNMP, SYSLOG)
    capture(tmp_path, [make(port, text) for port in ports for text in texts for make in (tcp, udp)])

    for port in ports:
        assert "Hunter2" not in shown(tmp_path, "-n", f"port {port}")


@pytest.mark.needs("tcpdump")
def test_tcpdump_still_tells_what_tcp_and_dns_say(tmp_path: Path) -> None:
    question = bytes.fromhex("123401000001000000000000") + b"\x05redis\x08internal\0\0\1\0\1"
    capture(tmp_path, [tcp(6379, RESP), tcp(443, LINES), udp(53, question)])

    assert "Flags [P.], seq 1:32, ack 1, win 500, length 31" in shown(tmp_path, "-n", "tcp port 6379")
    assert "ttl 64" in shown(tmp_path, "-nv", "tcp port 6379")
    assert "Flags [P.]" in shown(tmp_path, "-n", "port 443")
    assert "A? redis.internal." in shown(tmp_path, "-nv", "udp port 53")
    assert "50000 > 10.0.0.5.6379: tcp 31" in shown(tmp_path, "-n", "")
