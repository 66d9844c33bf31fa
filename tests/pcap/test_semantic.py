"""The summary for machines: complete, small whatever the capture holds, and JSON that can be read back."""

from __future__ import annotations

import json
from typing import Any

from ghost.pcap.findings import find
from ghost.pcap.model import Analysis, DnsSection, UdpConversation, UdpSection
from ghost.pcap.semantic import (
    AIM_TOKENS,
    FINDINGS_TOKENS,
    MOST_TOKENS,
    dump,
    estimated_tokens,
    findings_document,
    semantic,
)

from .analyses import icmp, icmp_error, of_streams, refused, silent, stream, summary, times
from .test_findings import query, server


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
    dns = DnsSection(
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
    return of_streams(*streams, dns=dns, icmp=icmp(*errors), udp=UdpSection(900, 90_000, 99, 0, (talk,) * 10, ()))


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
    assert rows[unanswered.server.endpoint.address, "TCP", 6379]["unanswered"] == 1


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
