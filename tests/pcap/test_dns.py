"""DNS: queries and responses matched by id, five-tuple and name."""

from __future__ import annotations

import itertools
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.model import Analysis, DnsSection
from ghost.pcap.protocols.dns_answers import read_addresses
from ghost.pcap.protocols.dns_question import read_asked
from tests.exhaustive import examples

from .wire import ACK, CLIENT, MS, PSH, SERVER, Record, ethernet, ip, pcap, tcp, udp

RESOLVER = "10.0.0.53"


def query(name: str, number: int, kind: str = "A") -> bytes:
    return dns.message.make_query(name, kind, id=number).to_wire()


def answer(asked: bytes, rcode: dns.rcode.Rcode = dns.rcode.NOERROR, *, truncated: bool = False) -> bytes:
    response = dns.message.make_response(dns.message.from_wire(asked))
    response.set_rcode(rcode)
    response.flags |= dns.flags.TC if truncated else 0
    return response.to_wire()


def asked(at_ms: float, message: bytes, port: int = 5000) -> Record:
    return int(at_ms * MS), ethernet(ip(CLIENT, RESOLVER, 17, udp(port, 53, message)))


def answered(at_ms: float, message: bytes, port: int = 5000) -> Record:
    return int(at_ms * MS), ethernet(ip(RESOLVER, CLIENT, 17, udp(53, port, message)))


def analysed(tmp_path: Path, *records: Record) -> Analysis:
    path = tmp_path / "dns.pcap"
    path.write_bytes(pcap(records))
    return analyse(path)


def section(tmp_path: Path, *records: Record) -> DnsSection:
    found = analysed(tmp_path, *records).dns
    assert found is not None
    return found


def test_the_addresses_behind_aliases_are_those_that_were_sent(tmp_path: Path) -> None:
    asking = query("a.example", 7)
    response = dns.message.make_response(dns.message.from_wire(asking))
    alias = "a.privatelink.example."
    response.answer += [
        dns.rrset.from_text("a.example.", 60, "IN", "CNAME", alias),
        dns.rrset.from_text(alias, 60, "IN", "A", "20.1.2.3", "20.1.2.4"),
    ]
    message = response.to_wire()
    found = section(tmp_path, asked(0, asking), answered(5, message)).answers
    assert [(one.name, one.client, one.server, one.frame) for one in found] == [("a.example", CLIENT, RESOLVER, 2)]
    assert (set(found[0].addresses), found[0].private_link, found[0].complete) == ({"20.1.2.3", "20.1.2.4"}, True, True)
    cut = section(tmp_path, asked(0, asking), answered(5, message[:-8])).answers
    assert [(len(one.addresses), one.complete) for one in cut] == [(1, False)]


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(min_size=12, max_size=200))
def test_any_bytes_are_read_for_addresses_without_an_error(message: bytes) -> None:
    addresses, _ = read_addresses(message)
    assert all(len(address) in (4, 16) for address in addresses)


def test_a_reused_id_does_not_hide_an_unanswered_query(tmp_path: Path) -> None:
    lost, other = query("lost.example", 7), query("other.example", 7)
    found = section(tmp_path, asked(0, lost), asked(10, other), answered(15, answer(other)))
    assert (found.queries_total, found.responses_total, found.unanswered_total) == (2, 1, 1)
    assert [(one.name, one.type, one.server, one.frame) for one in found.unanswered] == [
        ("lost.example", "A", RESOLVER, 1)
    ]
    assert found.latency_ms is not None
    assert found.latency_ms.max == 5.0


def test_a_repeated_query_is_one_question_and_its_latency_counts_from_the_last_attempt(tmp_path: Path) -> None:
    message = query("slow.example", 1)
    found = section(tmp_path, asked(0, message), asked(1000, message), answered(1200, answer(message)))
    assert (found.queries_total, found.repeated_queries, found.unanswered_total) == (2, 1, 0)
    assert [(one.name, one.attempts, one.latency_ms) for one in found.slow] == [("slow.example", 2, 200.0)]


def test_failures_are_named_with_their_code(tmp_path: Path) -> None:
    absent, broken, refused = query("absent.example", 1), query("broken.example", 2, "AAAA"), query("r.example", 3)
    found = section(
        tmp_path, asked(0, absent), answered(1, answer(absent, dns.rcode.NXDOMAIN)), asked(2, broken),
        answered(3, answer(broken, dns.rcode.SERVFAIL)), asked(4, refused),
        answered(5, answer(refused, dns.rcode.REFUSED, truncated=True)),
    )  # fmt: skip
    assert [one.name for one in found.nxdomain] == ["absent.example"]
    assert [(one.name, one.rcode) for one in found.servfail] == [
        ("broken.example", "SERVFAIL"),
        ("r.example", "REFUSED"),
    ]
    assert found.rcodes == {"NXDOMAIN": 1, "SERVFAIL": 1, "REFUSED": 1}
    assert found.query_types == {"A": 2, "AAAA": 1}
    assert found.truncated_responses == 1
    assert found.servers[0].responses == 3


def test_dns_over_tcp_is_read_behind_its_length(tmp_path: Path) -> None:
    message = query("big.example", 9)
    framed, reply = (struct.pack(">H", len(part)) + part for part in (message, answer(message)))
    records = [
        (1 * MS, ethernet(ip(CLIENT, RESOLVER, 6, tcp(6000, 53, 1, 1, ACK | PSH, framed)))),
        (3 * MS, ethernet(ip(RESOLVER, CLIENT, 6, tcp(53, 6000, 1, 1 + len(framed), ACK | PSH, reply)))),
    ]
    found = section(tmp_path, *records)
    assert (found.queries_total, found.responses_total, found.unanswered_total) == (1, 1, 0)


@pytest.mark.parametrize("cuts", [(2,), (60,), (600,), (2, 600), (1200, 1500), ()])
def test_a_message_over_tcp_in_several_segments_counts_once(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    message = query("big.example", 9)
    response = dns.message.make_response(dns.message.from_wire(message))
    texts = [f'"{"x" * 200} {number}"' for number in range(9)]
    response.answer.append(dns.rrset.from_text("big.example.", 60, "IN", "TXT", *texts))
    wire = response.to_wire()
    other = query("other.example", 10)
    replies = struct.pack(">H", len(wire)) + wire + struct.pack(">H", len(other)) + answer(other)
    asked_both = b"".join(struct.pack(">H", len(part)) + part for part in (message, other))
    records = [(MS, ethernet(ip(CLIENT, RESOLVER, 6, tcp(6000, 53, 1, 1, ACK | PSH, asked_both))))]
    for number, (start, stop) in enumerate(itertools.pairwise((0, *cuts, len(replies)))):
        segment = tcp(53, 6000, 1 + start, 1 + len(asked_both), ACK | PSH, replies[start:stop])
        records.append(((number + 2) * MS, ethernet(ip(RESOLVER, CLIENT, 6, segment))))
    found = section(tmp_path, *records)
    assert (found.queries_total, found.responses_total, found.unanswered_total) == (2, 2, 0)
    assert found.responses_unmatched == 0


def found_at(name: str, number: int, at_ms: float, rcode: dns.rcode.Rcode = dns.rcode.NOERROR) -> list[Record]:
    """A question and its answer, with an address where the name exists."""
    message = query(name, number)
    response = dns.message.make_response(dns.message.from_wire(message))
    response.set_rcode(rcode)
    if rcode == dns.rcode.NOERROR:
        response.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "A", "192.0.2.1"))
    return [asked(at_ms, message, 5000 + number), answered(at_ms + 2, response.to_wire(), 5000 + number)]


@pytest.mark.parametrize(
    ("trials", "found_name"),
    [
        (["www.example.org.corp.example", "www.example.org.example"], "www.example.org"),
        (["db.apps.svc.cluster.local"], "db.svc.cluster.local"),
        (["printer.corp.example"], "printer"),
    ],
)
def test_trials_with_search_suffixes_are_recovered_by_the_name_that_exists(
    tmp_path: Path, trials: list[str], found_name: str
) -> None:
    records = [
        record
        for number, name in enumerate(trials)
        for record in found_at(name, number, number * 10, dns.rcode.NXDOMAIN)
    ]
    found = section(tmp_path, *records, *found_at(found_name, 99, len(trials) * 10))
    assert [one.recovered for one in found.nxdomain] == [True] * len(trials)
    assert (found.nxdomain_total, found.recovered_total) == (len(trials), len(trials))


@pytest.mark.parametrize(
    ("missing", "other", "at_ms"),
    [
        ("www.typo.example", "www.example.org", 10),
        ("www.example.org.corp.example", "www.example.org", 60_000),
        ("mail.example.org", "example.org", 10),
        ("www.example.org", "www.example.org.corp.example", 10),
    ],
    ids=["another name", "too late", "the domain alone", "the wrong way round"],
)
def test_a_missing_name_stays_a_fault_when_something_else_is_found(
    tmp_path: Path, missing: str, other: str, at_ms: float
) -> None:
    found = section(tmp_path, *found_at(missing, 1, 0, dns.rcode.NXDOMAIN), *found_at(other, 2, at_ms))
    assert ([one.recovered for one in found.nxdomain], found.recovered_total) == ([False], 0)


def test_a_lost_query_asked_again_with_another_id_is_recovered(tmp_path: Path) -> None:
    found = section(tmp_path, asked(0, query("a.example", 1)), *found_at("a.example", 2, 5_000))
    assert [(one.name, one.recovered) for one in found.unanswered] == [("a.example", True)]
    assert (found.unanswered_total, found.recovered_total) == (1, 1)


@given(
    st.binary(min_size=12, max_size=12),
    st.lists(
        st.sampled_from([b"\0", b"\1a", b"\3a\0b", b"\xc0\x0c", b"\xc0\0", b"\xc0\4", b"\x3fz", b"\1\xc0", b"\0\1"]),
        max_size=8,
    ),
)
def test_a_question_cut_at_its_first_zero_is_the_one_that_the_whole_message_asks(
    header: bytes, parts: list[bytes]
) -> None:
    message = b"\0\0\0\0\0\1" + header[6:] + b"".join(parts)
    found = read_asked(message)
    try:
        whole, used = dns.name.from_wire(message, 12)
    except (dns.exception.DNSException, IndexError):
        assert found is None
        return
    if len(message) < 12 + used + 4:
        assert found is None
    else:
        assert found is not None
        assert found[0] == (whole.to_text(omit_final_dot=True).lower() or ".")


def test_all_failures_of_a_name_are_counted_once_made_up_for_or_not(tmp_path: Path) -> None:
    lost = [record for n in range(5) for record in found_at("gone.example", n, n * 1000, dns.rcode.NXDOMAIN)]
    tried = [
        record
        for n in range(3)
        for name, code in (("db.corp.example", dns.rcode.NXDOMAIN), ("db", dns.rcode.NOERROR))
        for record in found_at(name, 10 + n, 10_000 + n * 1000 + 10 * (name == "db"), code)
    ]
    late_trial = found_at("db.corp.example", 90, 20_000, dns.rcode.NXDOMAIN)  # its success lies behind the end
    found = section(tmp_path, *lost, *tried, *late_trial)
    assert {(one.name, one.recovered, one.count) for one in found.nxdomain} == {
        ("gone.example", False, 5),
        ("db.corp.example", True, 4),
    }
    assert found.nxdomain_total == 9


def test_random_names_below_one_domain_leave_room_for_others(tmp_path: Path) -> None:
    records = [record for n in range(400) for record in found_at(f"r{n}.victim.example", n, n * 10, dns.rcode.NXDOMAIN)]
    found = section(tmp_path, *records, *found_at("gone.example.org", 500, 5_000, dns.rcode.NXDOMAIN))
    assert len(found.nxdomain) < 400
    assert found.nxdomain[-1].name == "gone.example.org"
    assert found.nxdomain_total == 401


def test_how_long_a_query_was_not_answered_counts_from_its_first_attempt(tmp_path: Path) -> None:
    message = query("lost.example", 1)
    found = section(tmp_path, asked(0, message), asked(900, message), *found_at("other.example", 2, 2_000))
    assert [one.waited_ms for one in found.unanswered] == [2_002.0]


def test_answers_without_their_questions_are_counted_for_their_server(tmp_path: Path) -> None:
    records = [answered(n, answer(query(f"{n}.example", n))) for n in range(3)]
    (server,) = section(tmp_path, *records).servers
    assert (server.queries, server.unasked.count, server.unasked.frames, server.unasked_client) == (
        0, 3, (1, 2, 3), CLIENT,
    )  # fmt: skip


def steps(records: list[Record], path: Path) -> int:
    """Return how many lines the readers of DNS run for these records."""
    path.write_bytes(pcap(records))
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if "dns_" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        analyse(path, compile_kernels=False)
    finally:
        sys.settrace(before)
    return count


def same_id(number: int) -> list[Record]:
    """A client that asks everything with one id, an error that names no question, and answers the last first."""
    messages = [query(f"n{n}.example", 7) for n in range(number)]
    error = messages[0][:2] + b"\x81\x81" + bytes(8)
    replies = [answered(number + 1 + n, answer(each)) for n, each in enumerate(reversed(messages))]
    return [asked(n * 0.1, each) for n, each in enumerate(messages)] + [answered(number, error), *replies]


def same_name(number: int) -> list[Record]:
    """One name is asked for again and again while nothing is answered, and then again with answers."""
    asked_for = [query("api.example", n) for n in range(number)]
    lost = [asked(n * 0.1, each, 2000 + n % 50) for n, each in enumerate(asked_for)]
    then = number * 0.1
    again = [
        record
        for n, each in enumerate(asked_for)
        for record in (asked(then + n, each, 60_000), answered(then + n + 0.5, answer(each), 60_000))
    ]
    return lost + again


@pytest.mark.parametrize("odd", [same_id, same_name])
def test_the_work_for_odd_clients_grows_with_packets_not_with_their_square(
    tmp_path: Path, odd: Callable[[int], list[Record]]
) -> None:
    small, large = (steps(odd(number), tmp_path / f"{number}.pcap") for number in (200, 800))
    assert 200 < small < large < 5 * small


def test_multicast_names_are_counted_apart_and_owed_no_answer(tmp_path: Path) -> None:
    packet = ethernet(ip(CLIENT, "224.0.0.251", 17, udp(5353, 5353, query("printer.local", 0))))
    found = section(tmp_path, (1, packet))
    assert (found.mdns_packets, found.queries_total, found.unanswered_total) == (1, 0, 0)


def test_udp_conversations_tell_who_was_never_answered(tmp_path: Path) -> None:
    message = query("a.example", 1)
    silent = (9 * MS, ethernet(ip(CLIENT, SERVER, 17, udp(7000, 514, b"log"))))
    found = analysed(tmp_path, asked(0, message), answered(1, answer(message)), silent).udp
    assert found is not None
    assert (found.datagrams, found.conversations_total, found.unanswered_conversations) == (3, 2, 1)
    assert (found.unanswered[0].server.address, found.unanswered[0].server.port) == (SERVER, 514)


def test_queries_and_responses_agree_with_tshark_on_real_captures(shared_captures: Path) -> None:
    compared = 0
    for expected_file in sorted(shared_captures.glob("*.tshark.json")):
        by_protocol = json.loads(expected_file.read_text(encoding="utf-8"))["dns_by_protocol_query_response"]
        expected = [sum(counts) for counts in zip(*(by_protocol.get(key, (0, 0)) for key in UNICAST), strict=True)]
        (capture,) = shared_captures.glob(f"{expected_file.name.removesuffix('.tshark.json')}.pcap*")
        found = analyse(capture).dns
        assert [found.queries_total, found.responses_total] == expected if found else expected == [0, 0], capture.name
        compared += any(expected)
    assert compared >= 3


UNICAST = ("dns", "dns_over_tcp")


@settings(max_examples=examples(40), deadline=None)
@given(
    st.one_of(st.binary(max_size=80), st.builds(lambda tail: query("x.example", 1)[:14] + tail, st.binary(max_size=40)))
)
def test_arbitrary_messages_are_read_or_refused(message: bytes) -> None:
    assert read_asked(message) is None or len(message) >= 12
