"""Each condition of the wire, drawn and then judged by what is not the lab's: tshark, and the capture engine."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ghost.lab.wire.conditions import ClockFault, Conditions, OutsideHost, ServiceFault, Traffic, WireFault
from ghost.lab.wire.packet_generator import drawn
from ghost.lab.wire.scene import Scene
from ghost.net import Interface, Network, known_kinds, name_of
from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from tests.lab.test_passages import HUB, NVA, PAIR, POOL, SERVICES, filtered
from tests.net.description import described

APART = 3600
"""Seconds between the captures, so that one run of tshark tells them apart."""
REMARKED = "tcp.analysis.flags && !tcp.analysis.window_update"
WRONG = "(_ws.malformed && !_ws.malformed.reassembly) || ip.checksum.status==0 || (tcp.checksum.status==0 && !icmp)"
START = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
PARTNER = OutsideHost("20.9.9.9", "partner.example", (443,))
PUBLIC = [*PAIR, "public p 20.1.1.1 vm=va"]
BULK = {"request_bytes": 60_000, "response_bytes": 60_000, "connections_per_minute": 12.0}
NAMED = {"name": "partner.example", "server": "20.9.9.9"}
DNS = "168.63.129.16"


@dataclass(frozen=True)
class Case:
    kind: str
    """Of the fault that the capture engine names; empty: none."""
    tshark: str
    """A display filter of which the capture has packets."""
    faults: Sequence[WireFault] = ()
    service: Mapping[str, Any] = field(default_factory=dict)
    traffic: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = tuple(PAIR)
    filters: Mapping[str, str] = field(default_factory=dict)
    captured: str = "va"
    seconds: float = 40.0

    def __str__(self) -> str:
        said = [str(each) for each in self.faults] or [str(dict(self.service))]
        return f"{self.kind or 'healthy'} {self.captured} {self.tshark} {said[0][:60]}"


def wire(source: str, destination: str, **what: Any) -> list[WireFault]:
    return [WireFault(source, destination, **what)]


CASES = [
    Case("", "tcp"),
    Case("", "tcp.port == 8080", lines=POOL, traffic={"server": "10.1.1.100"}, captured="vc"),
    Case("", "ip.src == 10.0.1.4 && tcp", captured="vb", traffic={"server": "vb"},
         lines=[*HUB, "fwrule fw 200/100 application Allow any Https:443 * *"]),
    Case("", "ip.src == 20.9.9.9 && ip.ttl == 52", captured="va", traffic={"client": "20.9.9.9", "server": "20.1.1.1"},
         lines=[*PUBLIC, "rule na web 100 Inbound Allow Tcp Internet *:443"]),
    Case("", "tcp", traffic=BULK),
    Case("", "ip.ttl == 63", lines=NVA, captured="vb"),
    Case("", "tcp.port == 443", lines=[*HUB, "fwrule fw 200/100 network Allow web TCP * * 443"]),
    Case("security_rule", "tcp.analysis.retransmission", lines=[*PAIR, "rule nb no 100 Inbound Deny * * *:443"]),
    Case("machine_stopped", "tcp.analysis.retransmission", lines=[*PAIR, "stopped vb"]),
    Case("not_listening", "tcp.flags.reset == 1 && ip.ttl == 64", lines=[*PAIR, "listens vb 0.0.0.0:80"]),
    Case("not_listening", "icmp.type == 3 && icmp.code == 3", lines=[*PAIR, "listens vb 0.0.0.0:80"],
         traffic={"protocol": "Udp", "port": 9999}),
    Case("guest_firewall", "icmp.type == 3 && icmp.code == 13 && ip.ttl == 64",
         filters={"vb": "-A INPUT -p tcp -m tcp --dport 443 -j REJECT --reject-with icmp-admin-prohibited"}),
    Case("guest_firewall", "icmp.type == 3 && icmp.code == 13 && ip.src == 10.1.2.4", lines=NVA,
         filters={"nva": "-A FORWARD -p tcp -m tcp --dport 443 -j REJECT --reject-with icmp-admin-prohibited"}),
    Case("packet_loss", "tcp.analysis.fast_retransmission", wire("va", "vb", loss=0.04), traffic=BULK),
    Case("packet_loss", "tcp.analysis.duplicate_ack", wire("vb", "va", loss=0.04), traffic=BULK),
    Case("packet_reordering", "tcp.analysis.out_of_order || tcp.analysis.retransmission",
         wire("va", "vb", reordered=0.1), traffic=BULK, captured="vb"),
    Case("packet_reordering", "tcp.analysis.retransmission", wire("va", "vb", duplicated=0.1), traffic=BULK,
         captured="vb"),
    Case("long_delay", "tcp.analysis.ack_rtt > 0.3", wire("va", "vb", delay_ms=350)),
    Case("mtu_black_hole", "tcp.analysis.retransmission && tcp.len > 1300", wire("va", "vb", mtu=1300), traffic=BULK),
    Case("mtu_black_hole", "tcp.analysis.lost_segment", wire("va", "vb", mtu=1300), traffic={"request_bytes": 6000},
         captured="vb"),
    Case("", "icmp.type == 3 && icmp.code == 4 && icmp.mtu == 1300", wire("va", "vb", mtu=1300, mtu_told=True),
         traffic=BULK),
    Case("reset_on_path", "tcp.flags.reset == 1 && ip.ttl > 200", wire("va", "vb", resets_on="GET /"),
         traffic={"port": 80}),
    Case("reset_on_path", "tcp.flags.reset == 1 && ip.ttl > 200", wire("va", "vb", resets_on="GET /"),
         traffic={"port": 80}, captured="vb"),
    Case("idle_timeout", "tcp.analysis.retransmission", wire("va", "vb", idle_seconds=60),
         traffic={"idle_seconds": 90.0, "connections_per_minute": 6.0}, seconds=180),
    Case("idle_timeout", "tcp.flags.reset == 1", wire("va", "vb", idle_seconds=60, idle_reset=True),
         traffic={"idle_seconds": 90.0, "connections_per_minute": 6.0}, seconds=180),
    Case("snat_ports_exhausted", "tcp.analysis.retransmission", wire("va", "*", snat_ports=20, snat_hold_seconds=0),
         traffic={"server": "20.9.9.9", "connections_per_minute": 90.0, "idle_seconds": 15.0}, lines=PUBLIC,
         seconds=60),
    Case("receiver_full", "tcp.analysis.zero_window", service={"reads_bytes": 4000},
         traffic={**BULK, "request_bytes": 80_000}),
    Case("receiver_full", "tcp.analysis.zero_window", service={"reads_bytes": 4000, "reads_again_after_seconds": 3.0},
         traffic={**BULK, "request_bytes": 80_000}),
    Case("slow_service", "tcp", service={"answers_after_ms": 2500}, traffic={"port": 5432}),
    Case("slow_service", "http.time > 2", service={"answers_after_ms": 2500}, traffic={"port": 80}),
    Case("failing_service", "http.response.code == 503", service={"http_status": 503}, traffic={"port": 80}),
    Case("failing_service", "tcp.flags.fin == 1", service={"ends": "close"}, traffic={"port": 80}),
    Case("failing_service", "tcp.flags.reset == 1", service={"ends": "reset"}, traffic={"port": 5432}),
    Case("", "tls.app_data && ip.src == 20.60.0.0/16", lines=SERVICES,
         traffic={"server": "store.blob.core.windows.net"}),
    Case("tls_failure", "tcp.flags.fin == 1 && tcp.srcport == 6380", lines=SERVICES,
         traffic={"server": "cache.redis.cache.windows.net", "port": 6380}),
    Case("tls_failure", "tls.alert_message.desc == 70", service={"tls": "version"}),
    Case("tls_failure", "tls.alert_message.desc == 45 && ip.src == 10.1.0.4", service={"tls": "expired"}),
    Case("tls_failure", "tls.alert_message.desc == 46", service={"tls": "wrong_name"}, captured="vb"),
    Case("", "dns.qry.name == \"partner.example\"", traffic=NAMED, lines=PUBLIC),
    Case("dns_server_unreachable", "dns.flags.response == 0",
         service={"machine": DNS, "port": 53, "dns": "silent"}, traffic=NAMED, lines=PUBLIC),
    Case("failing_service", "dns.flags.rcode == 2", service={"machine": DNS, "port": 53, "dns": "servfail"},
         traffic=NAMED, lines=PUBLIC),
    Case("dns_record_missing", "dns.flags.rcode == 3", service={"machine": DNS, "port": 53, "dns": "nxdomain"},
         traffic=NAMED, lines=PUBLIC),
    Case("slow_service", "dns.time > 0.5", service={"machine": DNS, "port": 53, "answers_after_ms": 900},
         traffic=NAMED, lines=PUBLIC),
]  # fmt: skip


def scene_of(case: Case, **conditions: Any) -> Scene:
    network: Network = filtered(described(case.lines), case.filters)
    service = ServiceFault(**{"machine": "vb", "port": case.traffic.get("port", 443), **case.service})
    return Scene(
        network,
        {name_of(nic.machine or ""): nic.id for nic in network.all(Interface).values()},
        traffic=(Traffic(**{"client": "va", "server": "vb", "port": 443, **case.traffic}),),
        conditions=Conditions(tuple(case.faults), (service,) if case.service else (), (PARTNER,), **conditions),
        names=(("store.blob.core.windows.net", "20.60.1.1"), ("partner.example", "20.9.9.9")),
    )


def drawn_at(case: Case, machine: str, **conditions: Any) -> list[tuple[int, bytes]]:
    """Return the frames of TCP that are not the store's, each with its time in microseconds."""
    capture, at, found = drawn(scene_of(case, **conditions), machine, START, case.seconds, 1), 24, []
    while at < len(capture):
        second, micro, length, _ = struct.unpack_from("<IIII", capture, at)
        frame, at = capture[at + 16 : at + 16 + length], at + 16 + length
        if (
            frame[23] == 6
            and b"\x14\x3c" not in (frame[26:28], frame[30:32])
            and {b"\x01\xbb", b"\x1f\x90"} & {frame[34:36], frame[36:38]}
        ):
            found.append((second * 1_000_000 + micro, frame))
    return found


def segments(frames: list[tuple[int, bytes]], toward: bytes) -> Counter[bytes]:
    """Return sequence and acknowledgement numbers and flags with what they carry, of frames to a port."""
    return Counter(f[38:48] + f[54:] for _, f in frames if f[36:38] == toward)


@pytest.mark.parametrize(
    "case", [*CASES[:2], *(c for c in CASES if c.kind in ("packet_loss", "packet_reordering"))], ids=str
)
def test_both_ends_show_the_same_packets_but_for_what_is_lost_or_comes_twice(case: Case) -> None:
    pool = case.lines is POOL
    there = drawn_at(case, "vb") + (drawn_at(case, "vc") if pool else [])
    port = struct.pack(">H", 8080 if pool else 443)
    sent, arrived = segments(drawn_at(case, "va"), b"\x01\xbb"), segments(there, port)
    assert sum(sent.values()) > 50
    assert not set(arrived) - set(sent)
    lost = sum((sent - arrived).values()) / sum(sent.values())
    assert lost < 0.1


def test_the_clock_of_a_capturing_machine_may_be_wrong() -> None:
    right = drawn_at(CASES[0], "va")
    wrong = drawn_at(CASES[0], "va", clocks=(ClockFault("va", offset_ms=-250.0, drift_ppm=100.0),))
    late = [there[0] - here[0] for here, there in zip(right, wrong, strict=True)]
    assert (late[0] // 1000, late[-1] // 1000) == (-250, -247)


@cache
def captured(number: int) -> bytes:
    case = CASES[number]
    return drawn(scene_of(case), case.captured, START + timedelta(seconds=APART * number), case.seconds, number)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: str(CASES[number]))
def test_the_capture_engine_names_the_condition(number: int, tmp_path: Path) -> None:
    case, path = CASES[number], tmp_path / "capture.pcap"
    path.write_bytes(captured(number))
    found = {each.kind for each in find(analyse(path))}
    expected = set(known_kinds()[case.kind].seen_as.split()) if case.kind else {"none"}
    assert found & expected, found
    assert case.kind or found == {"none"}


@pytest.mark.needs("tshark")
def test_tshark_sees_what_was_asked_for_and_nothing_malformed(tmp_path: Path) -> None:
    """One run for all captures, which are hours apart: a table of counts by time and filter."""
    path = tmp_path / "captures.pcap"
    captures = [captured(number) for number in range(len(CASES))]
    path.write_bytes(captures[0][:24] + b"".join(capture[24:] for capture in captures))
    filters = [*(case.tshark for case in CASES), REMARKED, WRONG]
    checks = [word for kind in ("ip", "tcp", "udp") for word in ("-o", f"{kind}.check_checksum:TRUE")]
    table = ["-q", "-z", ",".join(["io,stat", str(APART), *filters])]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(path), *checks, *table], capture_output=True, text=True, check=True
    )
    rows = [line.split("|")[2:-1:2] for line in done.stdout.splitlines() if "<>" in line]
    assert [row[-1].strip() for row in rows] == ["0"] * len(CASES)
    sound = [row for row, case in zip(rows, CASES, strict=True) if not case.kind and not case.faults]
    assert [row[-2].strip() for row in sound] == ["0"] * len(sound)
    assert [str(case) for number, case in enumerate(CASES) if rows[number][number].strip() == "0"] == []
