"""ARP and ICMP: who did not answer, who claims whose address, what errors are about."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import Analysis, DuplicateAddress
from ghost.pcap.protocols.arp_tracker import ArpTracker
from ghost.pcap.protocols.icmp_tracker import IcmpTracker
from tests.exhaustive import examples

from .wire import ACK, CLIENT, MS, SERVER, Record, ethernet, ip, pcap, tcp, udp

ROUTER, OTHER_ROUTER = "10.0.1.1", "10.0.2.1"
MAC, OTHER_MAC, THIRD_MAC = (b"\x02\0\0\0\0" + bytes([n]) for n in (1, 2, 3))


def arp(operation: int, mac: bytes, sender: str, target: str) -> bytes:
    ends = ipaddress.ip_address(sender).packed, ipaddress.ip_address(target).packed
    return ethernet(b"\0\1\x08\0\6\4" + operation.to_bytes(2, "big") + mac + ends[0] + b"\0" * 6 + ends[1], 0x0806)


def echo(source: str, destination: str, kind: int, number: int, sequence: int) -> bytes:
    return ethernet(ip(source, destination, 1, struct.pack(">BBHHH", kind, 0, 0, number, sequence) + b"x" * 32))


def error(source: str, kind: int, code: int, rest: bytes = b"\0" * 4) -> bytes:
    quoted = ip(CLIENT, SERVER, 6, tcp(40_000, 443, 1, 1, ACK))[:28]
    return ethernet(ip(source, CLIENT, 1, struct.pack(">BBH", kind, code, 0) + rest + quoted))


def analysed(tmp_path: Path, *frames: bytes) -> Analysis:
    path = tmp_path / "some.pcap"
    records: list[Record] = [(n * 10 * MS, frame) for n, frame in enumerate(frames)]
    path.write_bytes(pcap(records))
    return analyse(path)


def test_a_reply_answers_requests_for_its_own_address_only(tmp_path: Path) -> None:
    found = analysed(
        tmp_path, arp(1, MAC, CLIENT, ROUTER), arp(2, OTHER_MAC, ROUTER, CLIENT), arp(1, MAC, CLIENT, SERVER),
        arp(1, MAC, CLIENT, SERVER),
    ).arp  # fmt: skip
    assert found is not None
    assert (found.total_requests, found.total_replies) == (3, 1)
    assert [(one.ip, one.count, one.asked_by, one.ever_answered) for one in found.unanswered_requests] == [
        (SERVER, 2, (CLIENT,), False)
    ]
    assert found.unanswered_requests[0].sample_frames == (3, 4)


def test_two_cards_that_claim_one_address_are_a_duplicate(tmp_path: Path) -> None:
    claims = [arp(2, mac, ROUTER, CLIENT) for mac in (MAC, OTHER_MAC, MAC)]
    found = analysed(tmp_path, *claims).arp
    assert found is not None
    (duplicate,) = found.duplicate_ips
    assert duplicate.ip == ROUTER
    assert duplicate.macs == ("02:00:00:00:00:01", "02:00:00:00:00:02")
    assert (duplicate.sample_frames, duplicate.alternations) == ((1, 2), 2)


def test_replies_are_counted_by_whether_somebody_had_asked(tmp_path: Path) -> None:
    asked, answered = arp(1, MAC, CLIENT, ROUTER), [arp(2, mac, ROUTER, CLIENT) for mac in (OTHER_MAC, THIRD_MAC)]
    (found,) = _duplicates(tmp_path, asked, *answered, arp(2, THIRD_MAC, ROUTER, SERVER))
    assert [(one.total, one.unasked) for one in found.claims] == [(1, 0), (2, 1)]


def _duplicates(tmp_path: Path, *frames: bytes) -> tuple[DuplicateAddress, ...]:
    found = analysed(tmp_path, *frames).arp
    assert found is not None
    return found.duplicate_ips


def test_announcements_and_probes_are_owed_no_reply(tmp_path: Path) -> None:
    found = analysed(tmp_path, arp(1, MAC, CLIENT, CLIENT), arp(1, MAC, "0.0.0.0", CLIENT)).arp
    assert found is not None
    assert (found.gratuitous.count, found.probes, found.unanswered_requests) == (1, 1, ())


def test_echoes_are_matched_by_addresses_id_and_sequence(tmp_path: Path) -> None:
    found = analysed(
        tmp_path, echo(CLIENT, SERVER, 8, 1, 1), echo(CLIENT, ROUTER, 8, 1, 1), echo(SERVER, CLIENT, 0, 1, 1),
        echo(SERVER, CLIENT, 0, 2, 1), echo(SERVER, CLIENT, 0, 1, 1),
    ).icmp  # fmt: skip
    assert found is not None
    assert (found.echo_pairs_matched, found.echo_unmatched, found.replies_unmatched) == (1, 1, 1)
    assert found.duplicate_replies == 1
    assert found.rtt_ms is not None
    assert found.rtt_ms.max == 20.0
    lost = found.echo_paths[0]
    assert (lost.dst, lost.unmatched, lost.sample_frames) == (ROUTER, 1, (2,))


def test_an_error_says_what_it_is_about(tmp_path: Path) -> None:
    found = analysed(tmp_path, *[error(ROUTER, 3, 4, b"\0\0" + (1400).to_bytes(2, "big"))] * 2).icmp
    assert found is not None
    (about,) = found.errors
    assert (about.kind, about.code_meaning, about.next_hop_mtu) == ("unreachable", "fragmentation needed", 1400)
    assert (about.src, about.unreachable_dst, about.protocol, about.destination_port) == (ROUTER, SERVER, "tcp", 443)
    assert (about.count, about.sample_frames) == (2, (1, 2))


def test_an_error_about_a_ping_knows_its_hop_limit(tmp_path: Path) -> None:
    frames = []
    for number, hops in ((1, 3), (2, 4), (3, 64)):
        ping = ip(CLIENT, SERVER, 1, struct.pack(">BBHHH", 8, 0, 0, 9, number) + b"x" * 8, ttl=hops)
        told = struct.pack(">BBHI", 11, 0, 0, 0) + ip(CLIENT, SERVER, 1, ping[20:28], ttl=1)
        frames += [ethernet(ping), ethernet(ip(ROUTER if hops < 64 else OTHER_ROUTER, CLIENT, 1, told))]
    found = analysed(tmp_path, *frames, error(ROUTER, 11, 0)).icmp
    assert found is not None
    by_speaker = {(each.src, each.protocol): each.hop_limits for each in found.of_kind("ttl_exceeded")}
    assert by_speaker == {(ROUTER, "icmp"): (3, 4), (OTHER_ROUTER, "icmp"): (64,), (ROUTER, "tcp"): ()}


def test_what_a_scanner_is_told_a_thousand_times_hides_no_error_of_others() -> None:
    tracker = IcmpTracker()
    for port in range(1500):
        quoted = ip(CLIENT, SERVER, 17, udp(40_000, 1024 + port, b""))[:28]
        for _ in range(2):
            tracker.packet(4, struct.pack(">BBHI", 3, 3, 0, 0) + quoted, 2, 1, port, port)
    quoted = ip(OTHER_ROUTER, SERVER, 6, tcp(40_000, 5432, 1, 0, ACK))[:28]
    tracker.packet(4, struct.pack(">BBHI", 3, 13, 0, 0) + quoted, 7, 3, 1501, 1501)
    found = tracker.section(str)
    assert found is not None
    assert len(found.errors) == 1000
    assert [each.destination_port for each in found.errors if each.dst == "3"] == [5432]
    assert [each.count for each in found.errors] == [2] * 999 + [1]


def test_sources_of_exceeded_hop_limits_are_counted(tmp_path: Path) -> None:
    found = analysed(tmp_path, error(ROUTER, 11, 0), error(ROUTER, 11, 0), error("10.0.9.1", 11, 0)).icmp
    assert found is not None
    assert found.ttl_exceeded_sources == {ROUTER: 2, "10.0.9.1": 1}


def test_a_redirect_names_the_better_gateway(tmp_path: Path) -> None:
    found = analysed(tmp_path, error(ROUTER, 5, 1, ipaddress.ip_address("10.0.1.2").packed)).icmp
    assert found is not None
    assert (found.errors[0].kind, found.errors[0].gateway) == ("redirect", "10.0.1.2")


def test_icmpv6_messages_are_named(tmp_path: Path) -> None:
    six, other = "2001:db8::1", "2001:db8::2"
    quoted = ip(six, other, 17, b"\0\x35\0\x36" + b"\0" * 4)
    too_big = ethernet(ip(other, six, 58, struct.pack(">BBHI", 2, 0, 0, 1280) + quoted))
    found = analysed(tmp_path, too_big, ethernet(ip(six, other, 58, b"\x87" + b"\0" * 23))).icmp
    assert found is not None
    assert found.type_distribution == {"v6/packet_too_big": 1, "v6/neighbor_solicitation": 1}
    assert (found.errors[0].next_hop_mtu, found.errors[0].unreachable_dst, found.errors[0].source_port) == (
        1280,
        other,
        53,
    )


@settings(max_examples=examples(40), deadline=None)
@given(st.binary(max_size=90), st.sampled_from([4, 6]))
def test_arbitrary_messages_never_crash(message: bytes, version: int) -> None:
    icmp, neighbours = IcmpTracker(), ArpTracker()
    read = icmp.packet(4 if version == 4 else 6, message, 0, 1, 1, 1)
    assert (icmp.section(str) is None) == (not read)
    neighbours.packet(message, 1, 1)
    neighbours.section()


def test_an_error_about_an_ipv6_fragment_names_the_ports_of_the_first_one_alone(tmp_path: Path) -> None:
    ends = "2001:db8::1", "2001:db8::2"
    errors = []
    for offset in (0, 185):
        part = b"\x11\0" + (offset << 3 | 1).to_bytes(2, "big") + bytes(4) + udp(5080, 5060, b"x" * 40)
        quoted = ip(*ends, 44, part)
        errors.append(ethernet(ip(ends[1], ends[0], 58, b"\3\1" + bytes(6) + quoted)))
    found = analysed(tmp_path, *errors).icmp
    assert found is not None
    assert [(each.protocol, each.source_port, each.destination_port) for each in found.errors] == [
        ("udp", 5080, 5060),
        ("udp", None, None),
    ]


def neighbour(kind: int, source: str, destination: str, target: str, option: bytes = b"\1\1\2\0\0\0\0\1") -> bytes:
    body = bytes([kind]) + bytes(7) + ipaddress.IPv6Address(target).packed + option
    return ethernet(ip(source, destination, 58, body, ttl=255))


def test_solicitations_that_nobody_advertises_an_answer_to_are_listed_by_who_asked(tmp_path: Path) -> None:
    one, other, gone, there = (f"fd00::{n}" for n in (1, 2, 77, 90))
    found = analysed(
        tmp_path,
        neighbour(135, one, "ff02::1:ff00:90", there),
        neighbour(136, there, one, there, b"\2\1\2\0\0\0\0\2"),
        neighbour(135, other, "ff02::1:ff00:77", gone),
        neighbour(135, one, "ff02::1:ff00:77", gone),
        neighbour(135, "::", "ff02::1:ff00:78", "fd00::78", b""),
    ).icmp
    assert found is not None
    (silent,) = found.unanswered_solicitations
    assert (silent.ip, silent.count, silent.asked_by, silent.at_the_end) == (gone, 2, (other, one), 2)
    assert (silent.ever_answered, silent.answered, silent.sample_frames) == (False, (), (3, 4))


def test_who_was_answered_and_who_asks_at_the_end_are_told_apart(tmp_path: Path) -> None:
    hosts = [f"10.0.1.{n}" for n in (11, 12, 13)]
    answered = [frame for host in hosts[:2] for frame in (arp(1, MAC, host, ROUTER), arp(2, OTHER_MAC, ROUTER, host))]
    found = analysed(tmp_path, *answered, *(arp(1, MAC, host, ROUTER) for host in hosts[1:])).arp
    assert found is not None
    (silent,) = found.unanswered_requests
    assert (silent.answered, silent.asking, silent.at_the_end) == (tuple(hosts[:2]), tuple(hosts[1:]), 2)


def test_unasked_replies_are_counted_by_who_was_told(tmp_path: Path) -> None:
    told = [arp(2, OTHER_MAC, ROUTER, f"10.0.1.{n}") for n in (5, 6, 5, 5)]
    found = analysed(tmp_path, arp(1, MAC, CLIENT, ROUTER), arp(2, MAC, ROUTER, CLIENT), *told).arp
    assert found is not None
    holder, thief = found.duplicate_ips[0].claims
    assert (holder.unasked, thief.unasked, thief.unasked_of_one) == (0, 4, 3)
