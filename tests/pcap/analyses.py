"""Analyses made by hand: a healthy stream with the few fields a test is about replaced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ghost.pcap.model import (
    Analysis,
    CaptureSummary,
    ConnectionStats,
    Direction,
    Endpoint,
    IcmpError,
    IcmpSection,
    Occurrences,
    Stream,
    TcpSection,
    TcpTotals,
)

SECOND = 1_000_000_000
NO = Occurrences()
_OCCURRENCES = [name for name, kind in Direction.__annotations__.items() if kind == "Occurrences"]


def times(count: int, *frames: int) -> Occurrences:
    return Occurrences(count, frames or tuple(range(1, min(count, 5) + 1)))


def direction(address: str, port: int, **changes: Any) -> Direction:
    """A side that opened, sent ten segments and closed."""
    values: dict[str, Any] = dict.fromkeys(Direction.__annotations__, 0)
    values |= dict.fromkeys(_OCCURRENCES, NO)
    values |= {
        "endpoint": Endpoint(address, port), "packets": 20, "payload_bytes": 10_000, "data_segments": 10,
        "first_ns": 0, "last_ns": SECOND, "first_frame": 1, "rst_after_fin": False, "ttl": 64, "ttl_min": 64,
        "ttl_max": 64, "rst_ttl": None, "mss": 1460, "window_scale": 7, "sack_permitted": True,
        "smallest_window": 64_000, "largest_in_flight": 14_600, "ack_rtt_ms": None, "delta_ms": None,
        "largest_segment": 1460, "largest_acked_segment": 1460, "longest_silence_ms": 100.0, "fin": times(1, 38),
    }  # fmt: skip
    unknown = changes.keys() - Direction.__annotations__.keys()
    assert not unknown, unknown
    return Direction(**(values | changes))


def stream(
    client: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    *,
    src: str = "10.0.1.4",
    dst: str = "10.0.2.4",
    port: int = 443,
    source_port: int = 50_000,
    **changes: Any,
) -> Stream:
    """A healthy connection, changed where a test says so."""
    values: dict[str, Any] = {
        "stream_id": 0, "client_known_by": "syn", "first_ns": 0, "last_ns": SECOND, "first_frame": 1,
        "last_frame": 40, "wire_bytes": 25_000, "handshake": "completed", "syn_retransmissions": 0,
        "syn_ack_retransmissions": 0, "syn_to_syn_ack_ms": 2.0, "syn_ack_to_ack_ms": 0.1, "response_ms": None,
        "request_acked_ms": None, "unanswered_request_ms": None, "teardown": "fin", "rst_from": None,
    }  # fmt: skip
    return Stream(
        client=direction(src, source_port, **{"syn": times(1, 1), **(client or {})}),
        server=direction(dst, port, **{"syn_ack": times(1, 2), **(server or {})}),
        **(values | changes),
    )


def silent(syn: int = 3, **changes: Any) -> Stream:
    """A connection attempt that nobody answered."""
    nothing = {"packets": 0, "data_segments": 0, "payload_bytes": 0, "ttl": None, "fin": NO, "syn_ack": NO}
    asked = {"packets": syn, "data_segments": 0, "payload_bytes": 0, "fin": NO, "syn": times(syn)}
    values = {"handshake": "unanswered", "teardown": "open", "syn_retransmissions": syn - 1}
    values |= {"syn_to_syn_ack_ms": None, "syn_ack_to_ack_ms": None}
    return stream(asked, nothing, **(values | changes))


def refused(rst_ttl: int = 64, **changes: Any) -> Stream:
    answered = {"packets": 1, "data_segments": 0, "payload_bytes": 0, "fin": NO, "syn_ack": NO}
    answered |= {"rst": times(1, 2), "rst_ttl": rst_ttl, "ttl": rst_ttl, "ttl_min": None, "ttl_max": None}
    asked = {"packets": 1, "data_segments": 0, "payload_bytes": 0, "fin": NO}
    values = {"handshake": "refused", "teardown": "rst", "rst_from": "server"}
    values |= {"syn_to_syn_ack_ms": None, "syn_ack_to_ack_ms": None}
    return stream(asked, answered, **(values | changes))


def summary(**changes: Any) -> CaptureSummary:
    values: dict[str, Any] = {
        "file": "made.pcap", "sha256": "0" * 64, "file_bytes": 1000, "format": "pcap", "compressed": False,
        "link_types": ("ETHERNET",), "interfaces": 1, "total_packets": 1000, "wire_bytes": 100_000,
        "captured_bytes": 100_000, "first_ns": 0, "last_ns": 60 * SECOND, "protocols_present": {"ipv4": 1000},
        "snap_length": 262_144, "cut_packets": 0, "dropped_by_capturer": None, "truncated_record": False,
        "undecoded_packets": 0, "fragments": 0, "backward_timestamps": 0,
    }  # fmt: skip
    return CaptureSummary(**(values | changes))


def tcp(streams: Iterable[Stream], **totals: int) -> TcpSection:
    all_streams = [replace(each, stream_id=number) for number, each in enumerate(streams)]
    values = dict.fromkeys(TcpTotals.__annotations__, 0) | {"packets": sum(s.packets for s in all_streams)}
    attempted = sum(1 for s in all_streams if s.client.syn)
    return TcpSection(
        totals=TcpTotals(**(values | totals)),
        connections=ConnectionStats(
            syn_sent=sum(s.client.syn.count for s in all_streams),
            syn_ack_received=sum(s.server.syn_ack.count for s in all_streams),
            connections_attempted=attempted,
            handshakes_completed=sum(s.handshake == "completed" for s in all_streams),
            syn_retransmitted=sum(s.syn_retransmissions for s in all_streams),
            refused=sum(s.handshake == "refused" for s in all_streams),
            unanswered_syn=sum(s.handshake == "unanswered" for s in all_streams),
            rst_teardowns=sum(s.teardown == "rst" for s in all_streams),
            fin_teardowns=sum(s.teardown == "fin" for s in all_streams),
            half_closed=0,
        ),
        handshake_rtt_ms=None,
        ack_rtt_ms=None,
        streams=all_streams,
        streams_with_issues=[s for s in all_streams if s.handshake != "completed" or s.client.lost or s.server.lost],
        conversations=sorted(all_streams, key=lambda s: -s.wire_bytes)[:10],
    )


def of_streams(*streams: Stream, **changes: Any) -> Analysis:
    return Analysis(**({"summary": summary(), "tcp": tcp(streams)} | changes))


def icmp_error(kind: str, code: int, **changes: Any) -> IcmpError:
    values: dict[str, Any] = {
        "version": 4, "src": "10.0.0.1", "dst": "10.0.1.4", "type": 3, "code_meaning": "said so",
        "unreachable_dst": "10.0.2.4", "protocol": "tcp", "source_port": 50_000, "destination_port": 443,
        "next_hop_mtu": None, "gateway": None, "count": 1, "sample_frames": (9,),
    }  # fmt: skip
    return IcmpError(kind=kind, code=code, **(values | changes))  # type: ignore[arg-type]


def icmp(*errors: IcmpError) -> IcmpSection:
    return IcmpSection(
        packets=sum(error.count for error in errors), echo_pairs_matched=0, echo_unmatched=0, replies_unmatched=0,
        duplicate_replies=0, rtt_ms=None, type_distribution={}, echo_paths=(), errors=errors,
    )  # fmt: skip
