"""The summary for machines: complete, small whatever the capture holds, and JSON that can be read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dns.message
import dns.rrset
import pytest

from ghost.pcap.analysis import analyse
from ghost.pcap.findings import find
from ghost.pcap.model import (
    Analysis,
    Certificate,
    DnsSection,
    HttpErrors,
    HttpSection,
    Statistics,
    TlsFailure,
    TlsSection,
    UdpConversation,
    UdpSection,
)
from ghost.pcap.report.semantic import (
    AIM_TOKENS,
    FINDINGS_TOKENS,
    MOST_TOKENS,
    dump,
    estimated_tokens,
    findings_document,
    semantic,
)
from ghost.pcap.tcp.stream_view import StreamView

from . import test_dhcp, test_dns, test_udp_services
from .analyses import icmp, icmp_error, of_streams, refused, silent, stream, summary, times
from .labelled.faults import FAULTS
from .talks import Connection, TlsPair, client_context, later, server_context, tls
from .test_findings import arp, query, server
from .test_tls import hello
from .wire import Record, pcap


def document(analysis: Analysis) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(dump(semantic(analysis, find(analysis))))
    return loaded


def test_sections_without_traffic_are_left_out_and_findings_come_last() -> None:
    assert list(document(of_streams(stream()))) == ["capture_summary", "tcp", "findings"]
    assert list(document(Analysis(summary()))) == ["capture_summary", "findings"]


def test_the_capture_is_identified_and_timed() -> None:
    told = document(of_streams(stream()))["capture_summary"]
    assert told["file"] == "made.pcap"
    assert told["sha256"] == "0" * 64
    assert told["duration_seconds"] == 60
    assert told["first_timestamp"] == "1970-01-01T00:00:00.000Z"
    assert told["drops_reported_by_capturer"] is None


def test_a_stream_with_issues_says_which_and_in_which_direction() -> None:
    lossy = {"data_segments": 100, "lost_downstream": times(7, 11, 12), "retransmissions": times(7, 11, 12)}
    told = document(of_streams(stream(server=lossy)))["tcp"]["streams_with_issues"]
    assert len(told) == 1
    assert (told[0]["lost_server_to_client"], told[0]["retransmissions"]) == (7, 7)
    assert "lost_client_to_server" not in told[0]
    assert told[0]["sample_frames"][:2] == [11, 12]


FIELDS = {
    "capture_summary": "file sha256 link_type total_packets duration_seconds first_timestamp last_timestamp bytes "
    "avg_packets_per_second protocols_present snap_length_truncated_packets drops_reported_by_capturer",
    "arp": "total_requests total_replies unanswered_requests gratuitous_arp_count duplicate_ip_alerts",
    "icmp": "echo_pairs_matched echo_unmatched rtt_ms anomalies type_distribution unreachable_details redirect_details "
    "ttl_exceeded_sources",
    "tcp": "streams_total retransmissions_total fast_retransmissions spurious_retransmissions rto_retransmissions "
    "duplicate_ack_total out_of_order_total zero_window_total window_full_total lost_segments_total keepalives "
    "rst_count connection_stats handshake_rtt_ms streams_with_issues conversations",
    "connection_stats": "syn_sent syn_ack_received handshakes_completed handshake_success_rate_pct syn_retransmitted "
    "refused unanswered_syn rst_teardowns fin_teardowns half_closed",
    "streams_with_issues": "stream_id src dst sni_or_host packets bytes retransmissions duplicate_acks out_of_order "
    "zero_window_events rst rst_from ack_rtt_ms response_ms delta_ms throughput_bps mss window_scale sample_frames",
    "unreachable_details": "src dst code code_meaning unreachable_dst next_hop_mtu count sample_frame",
    "dns": "queries_total responses_total unanswered_queries query_type_distribution rcode_distribution latency_ms "
    "slow_queries nxdomain_domains servfail_domains top_queried_domains dns_servers_queried truncated_responses",
    "tls": "client_hellos versions_offered versions_chosen server_names failures",
    "http": "requests status_distribution slow_responses hosts",
    "findings": "id kind severity blame protocol title detail who evidence cause remediation confidence",
}


def test_each_section_has_the_fields_that_its_readers_expect(tmp_path: Path) -> None:
    some, once = Statistics(1, 2.0, 2.0, 2.0, 2.0), times(1)
    events = ("retransmissions", "duplicate_acks", "out_of_order", "zero_window", "rst", "lost_downstream")
    bad = stream({**dict.fromkeys(events, once), "ack_rtt_ms": some, "delta_ms": some}, rst_from="neither")
    bad = replace(bad, response_ms=some, server_name="a.example")
    errors = [icmp_error(kind, 4, next_hop_mtu=1400) for kind in ("unreachable", "redirect", "ttl_exceeded")]
    pings = replace(icmp(*errors), rtt_ms=some, duplicate_replies=1)
    (tmp_path / "laden.pcap").write_bytes(pcap(laden()))
    taken = analyse(tmp_path / "laden.pcap")
    assert taken.http is not None
    crowded = replace(everything(), icmp=pings, arp=arp(), tls=taken.tls, http=taken.http, tcp=of_streams(bad).tcp)
    told = document(crowded)
    tcp, (finding, *_) = told["tcp"], told["findings"]
    inner = {"connection_stats": tcp["connection_stats"], "streams_with_issues": tcp["streams_with_issues"][0]}
    inner |= {"unreachable_details": told["icmp"]["unreachable_details"][0], "findings": finding}
    missing = {name: set(fields.split()) - (inner.get(name) or told[name]).keys() for name, fields in FIELDS.items()}
    assert {name: lacking for name, lacking in missing.items() if lacking} == {}
    assert list(tcp["streams_with_issues"][0]["response_ms"]) == ["count", "min", "median", "p95", "max"]


def test_unreachable_details_say_who_what_and_how_often() -> None:
    told = document(of_streams(stream(), icmp=icmp(icmp_error("unreachable", 13, count=4))))
    detail = told["icmp"]["unreachable_details"][0]
    assert (detail["src"], detail["unreachable_dst"], detail["port"], detail["count"]) == (
        "10.0.0.1", "10.0.2.4", 443, 4,
    )  # fmt: skip


def everything() -> Analysis:
    """More of everything than any list may hold."""
    long_name = ".".join(["a" * 60] * 4)
    names = tuple(query(f"{n}.{long_name}.", latency_ms=900.0) for n in range(50))
    section = DnsSection(
        queries_total=5000, responses_total=4000, unanswered_total=1000, repeated_queries=9, responses_unmatched=0,
        query_types={f"TYPE{n}": n for n in range(200)}, rcodes={"NOERROR": 4000}, latency_ms=None,
        servers=server() * 50,
        top_domains=tuple((q.name, 9) for q in names[:20]), unanswered=names, slow=names, nxdomain=names,
        servfail=names, nxdomain_total=900, servfail_total=900, distinct_names=4000, truncated_responses=0,
        malformed=0, mdns_packets=0, llmnr_packets=0,
    )  # fmt: skip
    lossy = {"data_segments": 100, "lost_downstream": times(7), "retransmissions": times(7), "packets": 120}
    streams = [
        *(stream(lossy, src=f"2001:db8:1111:2222:3333:4444:5555:{n:x}", source_port=n + 1) for n in range(400)),
        *(refused(dst=f"2001:db8:1111:2222:3333:4444:6666:{n:x}", src=f"fd00::{n:x}") for n in range(200)),
        *(silent(dst=f"2001:db8:1111:2222:3333:4444:7777:{n:x}", src=f"fd01::{n:x}") for n in range(200)),
    ]
    errors = [icmp_error("unreachable", 13, src=f"2001:db8::{n:x}", destination_port=n) for n in range(200)]
    talk = UdpConversation(streams[0].client.endpoint, streams[0].server.endpoint, 9, 9, 900, 900, 0, 1, 1)
    return of_streams(*streams, dns=section, icmp=icmp(*errors), udp=UdpSection(900, 90_000, 99, 0, (talk,) * 10, ()))


def test_the_summary_never_exceeds_its_limit_however_much_there_is() -> None:
    analysis = everything()
    found = find(analysis)
    written = dump(semantic(analysis, found))
    assert estimated_tokens(written) <= MOST_TOKENS
    assert json.loads(written)["tcp"]["streams_total"] == 800
    assert json.loads(written)["findings"][0]["id"] == "F1"


def test_the_findings_alone_never_exceed_their_limit_and_say_what_was_left_out() -> None:
    analysis = everything()
    found = find(analysis)
    written = dump(findings_document(analysis, found), ascii_only=True)
    assert estimated_tokens(written) <= FINDINGS_TOKENS
    told = json.loads(written)
    assert len(told["findings"]) + told["omitted"] == len(found)
    assert told["findings"][0]["id"] == "F1"
    assert written.isascii()


def test_the_findings_say_who_talks_to_whom_and_whether_nobody_is_left_out() -> None:
    analysis = of_streams(stream(), stream(source_port=50_001), silent(port=6379), icmp=icmp())
    told = json.loads(dump(findings_document(analysis, find(analysis))))
    assert told["conversations_complete"] == ["TCP", "UDP", "ICMP"]
    rows = {(row["dst"], row["protocol"], row.get("port")): row for row in told["conversations"]}
    first, unanswered = stream(), silent(port=6379)
    answered = rows[first.server.endpoint.address, "TCP", first.server.endpoint.port]
    assert answered["packets"] == 2 * first.packets
    assert "unanswered" not in answered
    assert answered["answered"] == 2
    assert "answered" not in rows[unanswered.server.endpoint.address, "TCP", 6379]
    assert rows[unanswered.server.endpoint.address, "TCP", 6379]["unanswered"] == 1


def test_who_talks_to_whom_is_asked_of_no_stream_singly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan has very many streams, and each is costly to make."""
    analysis = analyse(FAULTS["ports_tried_one_after_another"].save(tmp_path / "scan.pcap", 5, "client"))
    assert analysis.tcp is not None
    singly = replace(analysis, tcp=replace(analysis.tcp, streams=list(analysis.tcp.streams)))
    expected = findings_document(singly, ())

    def fail(*_: object) -> None:
        raise AssertionError("a stream was made")

    monkeypatch.setattr(StreamView, "__getitem__", fail)
    assert findings_document(analysis, ()) == expected


def test_conversations_are_cut_before_findings_and_never_said_to_be_all_then() -> None:
    analysis = of_streams(*(stream(src=f"10.0.{n // 200}.{n % 200}") for n in range(400)))
    written = dump(findings_document(analysis, find(analysis)))
    assert estimated_tokens(written) <= FINDINGS_TOKENS
    told = json.loads(written)
    assert "TCP" not in told["conversations_complete"]
    assert told["conversations"]
    crowded = everything()
    told = json.loads(dump(findings_document(crowded, find(crowded))))
    assert not {"TCP", "UDP"} & set(told.get("conversations_complete", ()))


def test_an_ordinary_capture_stays_under_the_aim_with_its_lists_whole() -> None:
    lossy = {"data_segments": 100, "lost_downstream": times(7), "retransmissions": times(7)}
    analysis = of_streams(*(stream(lossy, src=f"10.0.1.{n}") for n in range(6)), silent(), refused(port=80))
    written = dump(semantic(analysis, find(analysis)))
    assert estimated_tokens(written) <= AIM_TOKENS
    assert len(json.loads(written)["tcp"]["streams_with_issues"]) == 8


def test_a_clock_far_outside_the_calendar_is_still_written() -> None:
    analysis = Analysis(summary(first_ns=9_000_000_000 * 10**12, last_ns=9_000_000_000 * 10**12))
    told = semantic(analysis, [])["capture_summary"]
    assert "since 1970" in told["first_timestamp"]


CANARY = b"CANARY0123456789"


def laden() -> list[Record]:
    """Every protocol, with canaries wherever a payload lies."""
    secret = CANARY.decode()
    web = Connection(server_port=80).opened()
    web.asks(
        f"POST /{secret}?q={secret} HTTP/1.1\r\nHost: shop.example\r\nCookie: {secret}\r\nReferer: {secret}\r\n"
        f"Authorization: {secret}\r\nContent-Length: 16\r\n\r\n{secret}".encode()
    ).waits(2_000)
    web.answers(f"HTTP/1.1 500 {secret}\r\nServer: {secret}\r\nSet-Cookie: {secret}\r\n\r\n{secret}".encode()).closes()
    odd = Connection(server_port=80, client_port=40_009).opened()
    odd.asks(b"GET / HTTP/1.1\r\nHost: <" + CANARY + b">\r\n\r\n").closes()
    pair = TlsPair(client_context(), server_context())
    secured = tls(pair, Connection(client_port=40_001))
    for from_client, octets in pair.exchange(CANARY, CANARY * 50):
        secured.send(from_client, octets)
    plain = Connection(client_port=40_002).opened().asks(hello()).answers(b"\x16\3\3\0\x10" + CANARY).closes()
    failed = Connection(client_port=40_003).opened().asks(hello()).answers(b"\x15\3\3\0\2\2\x28" + CANARY).closes()
    question = dns.message.make_query("text.example", "TXT", id=5)
    response = dns.message.make_response(question)
    response.answer.append(dns.rrset.from_text("text.example.", 60, "IN", "TXT", f'"{secret}"'))
    mail = dns.rrset.from_text("text.example.", 60, "IN", "NULL", "\\# 16 " + CANARY.hex())
    response.additional.append(mail)
    lookups = [test_dns.asked(0, question.to_wire()), test_dns.answered(700, response.to_wire())]
    services = [
        test_dhcp.sent(0, test_dhcp.message(1).replace(test_dhcp.CANARY, CANARY + b"0")),
        test_dhcp.sent(9, test_dhcp.message(6), "10.0.0.1", answer=True),
        test_udp_services.asked(0, 123, body=b"\x24" + CANARY * 3),
        test_udp_services.asked(0, 443, body=b"\xc3\0\0\0\1" + CANARY),
        test_udp_services.answered(9, 443, body=b"\xc3\0\0\0\1" + CANARY),
    ]
    talks = [record for talk in (web, odd, secured, plain, failed) for record in talk.records]
    return sorted([*talks, *lookups, *services, later(600_000)])


def test_no_byte_of_a_payload_is_told_by_any_reader(tmp_path: Path) -> None:
    path = tmp_path / "laden.pcap"
    path.write_bytes(pcap(laden()))
    analysis = analyse(path)
    sections = {"tcp", "udp", "dns", "tls", "http", "dhcp", "services"}
    assert sections == {name for name in sections if getattr(analysis, name)}
    written = dump(semantic(analysis, find(analysis)))
    assert sections - {"services"} | {"ntp", "quic"} <= set(json.loads(written))
    said = f"{written} {analysis.dns} {analysis.tls} {analysis.http} {analysis.dhcp} {analysis.services}"
    for canary in (CANARY.decode(), CANARY.hex(), CANARY[:4].decode(), CANARY.decode()[-8:]):
        assert canary.lower() not in said.lower()


def test_names_of_the_wire_lose_their_power_and_their_length(tmp_path: Path) -> None:
    hostile = "a" * 60 + "." + "\u202e\x1b[31m<b>|`" + "b" * 40 + ".example"
    crowded = everything()
    assert crowded.dns is not None
    queries = tuple(replace(one, name=hostile) for one in crowded.dns.unanswered)
    section = replace(crowded.dns, top_domains=((hostile, 9),), unanswered=queries, slow=queries)
    written = dump(semantic(Analysis(summary(), dns=section), []))
    assert not {"\u202e", "\x1b", hostile} & set(written)
    assert hostile not in written
    assert "\\u202e" in written


def test_the_largest_list_is_cut_first_and_small_ones_stay_whole() -> None:
    errors = tuple(HttpErrors("10.0.2.4", 80, "api.example", 500 + n, 9 - n, (n,)) for n in range(6))
    crowded = replace(everything(), http=HttpSection(requests=99, responses=99, errors=errors))
    told = semantic(crowded, [])
    assert estimated_tokens(dump(told)) <= AIM_TOKENS
    assert len(told["http"]["errors"]) == 6
    assert 3 <= len(told["tcp"]["streams_with_issues"]) < 20
    assert told["tcp"]["streams_with_issues_total"] == 800
    assert semantic(crowded, []) == told


def test_a_failed_handshake_and_a_certificate_that_ends_are_told() -> None:
    failure = TlsFailure(
        3, "10.0.1.4", "10.0.2.4", 443, "shop.example", "alert", alert="unknown_ca", alert_from="client", frames=(4, 9)
    )
    day = 86_400 * 10**9
    ends, lasts = (
        Certificate("10.0.2.4", 443, f"CN={days}", "CN=ca", (), 0, (100 + days) * day, False, 7, seen_ns=100 * day)
        for days in (5, 300)
    )
    section = TlsSection(client_hellos=1, failures=(failure,), failures_total=1, certificates=(ends, lasts))
    told = document(Analysis(summary(), tls=section))["tls"]
    assert told["failures"][0] == {
        "stream_id": 3, "src": "10.0.1.4", "dst": "10.0.2.4:443", "stage": "alert", "server_name": "shop.example",
        "alert": "unknown_ca", "alert_from": "client", "frames": [4, 9],
    }  # fmt: skip
    assert [one["subject"] for one in told["certificates_to_look_at"]] == ["CN=5"]
    assert told["certificates_seen"] == 2
