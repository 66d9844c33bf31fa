"""Rules on analyses made by hand: each test says what must, or must not, be concluded from which numbers."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost.pcap import findings as findings_package
from ghost.pcap.findings import MOST, Finding, find
from ghost.pcap.findings.finding import BLAMES, CONFIDENCES, SEVERITIES
from ghost.pcap.findings.finding_cases import load_cases, remediation_of
from ghost.pcap.model import (
    AddressClaims,
    Analysis,
    ArpSection,
    DnsQuery,
    DnsSection,
    DnsServer,
    DuplicateAddress,
    Occurrences,
    Statistics,
    Stream,
    UnansweredArp,
)

from .analyses import (
    NO,
    SECOND,
    icmp,
    icmp_error,
    of_streams,
    refused,
    silent,
    stream,
    summary,
    times,
)

RULES = Path(findings_package.__file__).parent


def kinds(analysis: Analysis) -> list[str]:
    return [finding.kind for finding in find(analysis)]


def only(analysis: Analysis) -> Finding:
    found = find(analysis)
    assert len(found) == 1, [(f.kind, f.title) for f in found]
    return found[0]


# ------------------------------------------------------------------------------------------------------- policy


def test_every_threshold_is_a_number_with_a_unit_free_name_and_a_reason() -> None:
    for section, entries in tomllib.loads((RULES / "thresholds.toml").read_text()).items():
        for name, entry in entries.items():
            assert entry.keys() == {"value", "reason"}, (section, name)
            assert isinstance(entry["value"], int | float)
            assert len(entry["reason"].split()) >= 6, (section, name)


def test_the_rules_use_every_threshold_there_is_and_no_other() -> None:
    used = {
        key for source in RULES.glob("*.py") for key in re.findall(r'threshold\(\s*"([a-z0-9_.]+)"', source.read_text())
    }
    table = tomllib.loads((RULES / "thresholds.toml").read_text())
    assert used == {f"{section}.{name}" for section, entries in table.items() for name in entries}


def test_every_list_of_ports_has_a_reason_and_is_used() -> None:
    table = tomllib.loads((RULES / "protocols.toml").read_text())
    used = {
        kind for source in RULES.glob("*.py") for kind in re.findall(r'of_protocol\(seen, "(\w+)"', source.read_text())
    }
    assert used == table.keys()
    for kind, entry in table.items():
        assert len(entry["reason"].split()) >= 6, kind
        assert entry["ports"] == sorted(set(entry["ports"])), kind


def test_every_case_has_a_cause_and_commands_that_are_filled_in_completely() -> None:
    table = load_cases()
    values = {
        "src": "10.0.0.1", "dst": "fd00::2", "port": 53, "name": "a.example", "router": "10.0.0.254",
        "filter": "10.9.9.9",
    }  # fmt: skip
    for case, entry in table.items():
        assert entry.cause.endswith("."), case
        for remedy in remediation_of(case, **values):
            assert "{" not in remedy.run_on
            assert not re.search(r"\{(src|dst|port|name|router|filter)\}", remedy.command), remedy


@pytest.mark.parametrize("name", ["$(reboot)", "a b", "-f/etc/passwd", "x;y", "a\nb", "`id`", "@evil", ""])
def test_a_name_from_the_wire_never_becomes_part_of_a_command(name: str) -> None:
    commands = " ".join(remedy.command for remedy in remediation_of("dns_timeout", dst="10.0.0.1", name=name))
    assert "NAME" in commands
    assert not name or name not in commands


def test_commands_name_ipv6_hosts_as_their_programs_want_them() -> None:
    six, four = (
        {"src": f"{net}1", "dst": f"{net}2", "port": 443, "name": "a.example"} for net in ("2001:db8::", "10.0.0.")
    )
    written = {case: [r.command for r in remediation_of(case, **six)] for case in ("zero_window", "loss", "http_5xx")}
    assert "ss -tnm 'dst [2001:db8::2]'" in written["zero_window"]
    assert "ss -tin dst '[2001:db8::2]'" in written["loss"]
    assert "mtr -n -r -c 100 2001:db8::2" in written["loss"]
    assert "http://'[2001:db8::2]':443/" in written["http_5xx"][-1]
    assert remediation_of("tls_hung", **six)[0].command == (
        "openssl s_client -connect '[2001:db8::2]':443 -servername a.example"
    )
    assert remediation_of("zero_window", **four)[0].command == "ss -tnm 'dst 10.0.0.2'"
    assert remediation_of("loss", **four)[-1].command == "ss -tin dst 10.0.0.2"


def test_what_a_command_says_in_braces_itself_stays() -> None:
    command = remediation_of("http_slow", src="10.0.0.1", dst="10.0.0.2", port=80)[0].command
    assert "-w '%{time_connect} %{time_starttransfer} %{time_total}' http://10.0.0.2:80/" in command


@pytest.mark.parametrize("case", ["duplicate_packets", "packets_doubled", "capture_incomplete", "empty", "none"])
def test_a_case_about_no_host_names_none(case: str) -> None:
    assert not {"SRC", "DST"} & {remedy.run_on for remedy in remediation_of(case)}


# --------------------------------------------------------------------------------------------------- handshakes


def test_an_unanswered_syn_is_blamed_on_policy_where_another_port_of_the_host_answers() -> None:
    finding = only(of_streams(silent(port=6379), stream(port=22)))
    assert (finding.kind, finding.blame, finding.severity) == ("syn_unanswered", "policy", "HIGH")
    assert finding.who.as_dict() == {"src": "10.0.1.4", "dst": "10.0.2.4", "port": 6379}
    assert finding.measured == {"syn": 3, "syn_retransmitted": 2, "answered": 0}
    assert "port 22" in finding.detail


def test_an_unanswered_syn_is_blamed_on_the_network_where_the_host_never_answers() -> None:
    finding = only(of_streams(silent(port=6379), stream(dst="10.0.2.5", port=22)))
    assert (finding.kind, finding.blame) == ("syn_unanswered", "network")


def test_a_refused_port_shows_that_the_host_answers() -> None:
    found = find(of_streams(silent(port=6379), refused(port=80)))
    assert {(f.kind, f.blame) for f in found} == {("syn_unanswered", "policy"), ("refused", "server_application")}


def test_ten_clients_at_one_dead_port_are_one_finding() -> None:
    clients = [silent(src=f"10.0.1.{n}", port=6379) for n in range(10)]
    finding = only(of_streams(*clients, stream(port=22)))
    assert finding.title.startswith("10 clients get no answer")
    assert finding.measured["syn"] == 30


def test_several_dead_ports_of_a_host_that_never_answers_are_one_finding() -> None:
    finding = only(of_streams(*(silent(port=port) for port in (80, 443, 6379))))
    assert finding.measured["syn"] == 9
    assert "3 ports" in finding.title


def test_a_source_that_is_filtered_while_others_are_served_is_policy() -> None:
    finding = only(of_streams(silent(src="10.0.9.9", port=443), *(stream(src=f"10.0.1.{n}") for n in range(3))))
    assert (finding.blame, finding.who.src) == ("policy", "10.0.9.9")


def test_a_last_lone_syn_at_the_end_of_the_capture_is_no_finding() -> None:
    late = silent(syn=1, first_ns=60 * SECOND - SECOND // 2, last_ns=60 * SECOND - SECOND // 2)
    assert kinds(of_streams(late, stream())) == ["none"]


def test_a_lone_syn_long_before_the_end_was_not_answered() -> None:
    assert kinds(of_streams(silent(syn=1), stream())) == ["syn_unanswered"]


def test_a_syn_that_carries_data_is_a_syn() -> None:
    """TCP Fast Open: the first SYN brings the request along, its repeats do not."""
    opened_fast = [silent(source_port=50_000 + n) for n in range(3)]
    opened_fast = [
        replace(each, client=replace(each.client, data_segments=1, payload_bytes=300, unacked_bytes=301))
        for each in opened_fast
    ]
    finding = only(of_streams(*opened_fast))
    assert (finding.kind, finding.blame, finding.severity) == ("syn_unanswered", "network", "HIGH")
    one_way_streams = replace(opened_fast[0], client=replace(opened_fast[0].client, packets=30))
    assert kinds(of_streams(one_way_streams)) == ["asymmetric"], "it sent more than SYNs, so somebody answered"


def hung(source_port: int) -> Stream:
    nothing = {"data_segments": 0, "payload_bytes": 0, "fin": NO}
    asked = {"data_segments": 1, "payload_bytes": 200}
    return stream(asked, nothing, source_port=source_port, teardown="half_closed", unanswered_request_ms=9_000.0)


def test_a_full_accept_queue_is_the_programs_and_one_finding_with_the_requests_that_wait_in_it() -> None:
    served = [stream(source_port=50_000 + n) for n in range(5)]
    refused_room = [silent(source_port=52_000 + n) for n in range(4)]
    finding = only(of_streams(*served, *refused_room, *(hung(51_000 + n) for n in range(3))))
    assert (finding.kind, finding.blame, finding.severity) == ("syn_unanswered", "server_application", "HIGH")
    assert "ListenOverflows" in finding.remediation[1].command
    lost = only(of_streams(*served, *refused_room))
    assert (lost.kind, lost.blame) == ("syn_unanswered", "network")


def test_a_refusal_names_the_service_that_does_not_listen() -> None:
    finding = only(of_streams(refused(port=8080), refused(port=8080, source_port=50_001)))
    assert (finding.kind, finding.blame, finding.severity) == ("refused", "server_application", "HIGH")
    assert finding.who.as_dict() == {"src": "10.0.1.4", "dst": "10.0.2.4", "port": 8080}
    assert finding.measured["refused"] == 2


def test_a_service_that_comes_and_goes_is_degraded_not_down() -> None:
    assert only(of_streams(refused(port=443), stream(port=443))).severity == "MEDIUM"


def test_a_refusal_with_a_ttl_the_host_never_has_is_a_third_party_reset() -> None:
    known = stream(server={"ttl": 57, "ttl_min": 57, "ttl_max": 57}, port=443)
    finding = only(of_streams(refused(rst_ttl=250, port=25), known))
    assert (finding.kind, finding.blame) == ("third_party_reset", "policy")
    assert "250" in finding.detail
    assert "57" in finding.detail


def test_a_refusal_whose_ttl_wobbles_by_one_is_the_hosts_own() -> None:
    known = stream(server={"ttl": 57, "ttl_min": 57, "ttl_max": 57}, port=443)
    assert kinds(of_streams(refused(rst_ttl=58, port=25), known)) == ["refused"]


def test_a_flood_of_half_open_connections_is_critical_and_not_reported_twice() -> None:
    flood = [
        silent(
            syn=1, src=f"198.51.100.{n % 250}", source_port=1024 + n, first_ns=n * 10_000_000, last_ns=n * 10_000_000
        )
        for n in range(300)
    ]
    finding = only(of_streams(*flood))
    assert (finding.kind, finding.severity, finding.who.port) == ("syn_flood", "CRITICAL", 443)


def test_a_fleet_that_retries_a_filtered_port_is_no_flood() -> None:
    fleet = [silent(syn=3, src=f"10.0.1.{n % 50}", source_port=1024 + n, first_ns=n * 10_000_000) for n in range(300)]
    assert kinds(of_streams(*fleet)) == ["syn_unanswered"]


def test_one_source_at_many_closed_ports_is_a_scan() -> None:
    finding = only(of_streams(*(refused(port=port) for port in range(1, 40))))
    assert (finding.kind, finding.who.src) == ("port_scan", "10.0.1.4")
    assert finding.measured["services"] == 39


def test_one_source_at_one_port_of_many_hosts_is_a_scan() -> None:
    finding = only(of_streams(*(silent(dst=f"10.0.3.{n}", port=445) for n in range(40))))
    assert (finding.kind, finding.who.port) == ("port_scan", 445)


def test_a_monitor_that_finds_most_of_its_ports_open_is_no_scanner() -> None:
    streams = [stream(port=port) for port in range(1, 60)] + [refused(port=port) for port in range(60, 80)]
    assert "port_scan" not in kinds(of_streams(*streams))


# ----------------------------------------------------------------------------------------------------- transfers


def lossy(lost: int, segments: int, **sender: Any) -> dict[str, Any]:
    values = {"data_segments": segments, "packets": segments + 5, "lost_downstream": times(lost)}
    values |= {"retransmissions": times(lost), "fast_retransmissions": times(lost)}
    return values | sender


def test_loss_names_the_direction_in_which_segments_were_lost() -> None:
    finding = only(of_streams(stream(server=lossy(30, 1000), client={"duplicate_acks": times(90)})))
    assert (finding.kind, finding.blame, finding.severity) == ("loss", "network", "MEDIUM")
    assert (finding.who.src, finding.who.dst) == ("10.0.2.4", "10.0.1.4")
    assert finding.measured["retransmissions"] == 30
    assert finding.measured["data_segments"] == 1000
    assert finding.measured["loss_pct"] == pytest.approx(3.0, abs=0.01)


def test_loss_in_both_directions_is_two_findings() -> None:
    both = of_streams(stream(lossy(30, 1000, duplicate_acks=times(90)), lossy(80, 1000, duplicate_acks=times(90))))
    assert [(f.kind, f.who.src, f.severity) for f in find(both)] == [
        ("loss", "10.0.2.4", "HIGH"),
        ("loss", "10.0.1.4", "MEDIUM"),
    ]


def test_few_segments_lost_the_quiet_way_do_not_rank_before_many_lost_the_busy_way() -> None:
    quiet, busy = lossy(4, 50, duplicate_acks=times(12)), lossy(40, 1000, duplicate_acks=times(120))
    assert [(finding.kind, finding.who.src, finding.severity) for finding in find(of_streams(stream(quiet, busy)))] == [
        ("loss", "10.0.2.4", "MEDIUM"),
        ("loss", "10.0.1.4", "MEDIUM"),
    ]


def test_loss_of_many_streams_between_two_hosts_is_one_finding() -> None:
    each = lossy(2, 100)
    finding = only(of_streams(*(stream(client=each, source_port=50_000 + n) for n in range(10))))
    assert finding.measured["retransmissions"] == 20


def test_loss_before_and_after_the_capture_point_is_told_apart() -> None:
    before = stream(client=lossy(30, 1000, lost_downstream=NO, lost_upstream=times(30)))
    assert "between the sender and the capture point" in only(of_streams(before)).detail


def test_a_handful_of_retransmissions_in_a_long_transfer_is_healthy() -> None:
    assert kinds(of_streams(stream(client=lossy(4, 5000)))) == ["none"]


def test_needless_repeats_are_not_loss() -> None:
    repeats = {"data_segments": 1000, "retransmissions": times(40), "spurious_retransmissions": times(40)}
    assert kinds(of_streams(stream(client={**repeats, "needless": times(40)}))) == ["none"]


def test_loss_that_only_timers_repair_is_told_from_loss_that_duplicate_acks_repair() -> None:
    timers = lossy(10, 100, fast_retransmissions=NO, rto_retransmissions=times(10))
    finding = only(of_streams(stream(client=timers)))
    assert finding.kind == "rto_loss"
    assert finding.measured["loss_pct"] == pytest.approx(9.9, abs=0.1)
    recovered = of_streams(stream(client=timers, server={"duplicate_acks": times(30)}))
    assert kinds(recovered) == ["loss"]


def test_one_segment_repeated_into_silence_is_a_dead_connection_however_few_segments_there_were() -> None:
    repeats = {"rto_retransmissions": times(6), "retransmissions": times(6), "lost_downstream": times(6)}
    sent = {**repeats, "data_segments": 7, "packets": 9, "unacked_bytes": 90, "largest_acked_segment": 0, "fin": NO}
    silent_server = {"data_segments": 0, "payload_bytes": 0, "packets": 1, "fin": NO}
    dead = stream({**sent, "last_ns": 13 * SECOND}, silent_server, last_ns=13 * SECOND, teardown="open")
    finding = only(of_streams(dead))
    assert (finding.kind, finding.blame, finding.severity) == ("rto_loss", "network", "HIGH")
    assert finding.title == "10.0.2.4:443 does not acknowledge what 10.0.1.4 sends"
    heard = stream({**sent, "last_ns": 2 * SECOND}, silent_server, last_ns=2 * SECOND, teardown="open")
    assert kinds(of_streams(heard)) == ["none"], "the server spoke a second ago"
    fins = {**sent, "unacked_bytes": 1, "fin": times(1), "last_ns": 13 * SECOND}
    assert kinds(of_streams(stream(fins, silent_server, last_ns=13 * SECOND))) == ["none"], "only its FIN is unheard"


def test_ends_that_open_at_once_lose_nothing() -> None:
    opening = {"syn": times(1), "syn_ack": times(1), "rto_retransmissions": times(1), "retransmissions": times(1)}
    opening |= {"lost_downstream": times(1), "data_segments": 3}
    both = [stream(opening, opening, source_port=50_000 + n) for n in range(4)]
    assert kinds(of_streams(*both)) == ["none"]
    really = [stream({**opening, "lost_downstream": times(3)}, source_port=50_000 + n) for n in range(4)]
    assert kinds(of_streams(*really)) == ["rto_loss"], "of the data, too, something was lost"


def test_segments_that_overtake_each_other_are_reordering_not_loss() -> None:
    finding = only(of_streams(stream(server={"data_segments": 200, "reordered": times(20)})))
    assert (finding.kind, finding.who.src) == ("reordering", "10.0.2.4")


def test_a_closed_window_is_the_receivers_application() -> None:
    slow_server = stream(server={"zero_window": times(8)}, client={"zero_window_probes": times(5)})
    finding = only(of_streams(slow_server))
    assert (finding.kind, finding.blame, finding.who.src) == ("zero_window", "server_application", "10.0.2.4")
    slow_client = of_streams(stream(client={"zero_window": times(8)}))
    assert (only(slow_client).blame, only(slow_client).who.src) == ("client", "10.0.1.4")


def test_windows_that_close_for_a_moment_in_a_burst_are_flow_control() -> None:
    bursts = (stream(client={"zero_window": times(2)}, source_port=50_000 + n) for n in range(6))
    assert kinds(of_streams(*bursts)) == ["none"]


def test_a_window_that_stays_closed_until_the_sender_probes_is_a_fault_however_it_probes() -> None:
    for probe in ("zero_window_probes", "keep_alives"):
        assert kinds(of_streams(stream({"zero_window": times(2)}, {probe: times(2)}))) == ["zero_window"]


def test_a_path_with_a_long_round_trip_is_a_delay() -> None:
    far = [stream(syn_to_syn_ack_ms=400.0 + n, source_port=50_000 + n) for n in range(4)]
    assert (only(of_streams(*far)).kind, only(of_streams(*far)).blame) == ("delay", "network")
    assert kinds(of_streams(*far[:2])) == ["none"], "two handshakes are too few"


def test_half_a_conversation_is_asymmetric_routing_and_nothing_else() -> None:
    nothing = {"packets": 0, "data_segments": 0, "payload_bytes": 0, "ttl": None, "fin": NO, "syn_ack": NO}
    half = stream(lossy(5, 50), nothing, handshake="incomplete", teardown="half_closed", syn_to_syn_ack_ms=None)
    lone = silent(source_port=50_001)
    finding = only(of_streams(half, lone))
    assert (finding.kind, finding.blame, finding.who.src) == ("asymmetric", "network", "10.0.1.4")


def test_several_half_conversations_share_one_cause() -> None:
    nothing = {"packets": 0, "data_segments": 0, "payload_bytes": 0, "ttl": None, "fin": NO, "syn_ack": NO}
    halves = [stream(None, nothing, dst=f"10.0.2.{n}", handshake="incomplete", teardown="open") for n in range(5)]
    assert only(of_streams(*halves)).measured["pairs"] == 5


def test_repeats_that_may_be_copies_in_a_capture_full_of_copies_are_doubtful() -> None:
    full = summary(duplicate_packets=times(300))
    doubtful = of_streams(stream(server={**lossy(90, 1000), "doubtful_repeats": times(90)}), summary=full)
    loss = next(f for f in find(doubtful) if f.kind == "loss")
    assert (loss.severity, loss.confidence) == ("LOW", "low")
    some = of_streams(stream(server={**lossy(90, 1000), "doubtful_repeats": times(60)}), summary=full)
    loss = find(some)[0]
    assert (loss.kind, loss.severity, loss.confidence) == ("loss", "MEDIUM", "high")


def test_loss_in_a_capture_full_of_copies_comes_before_them() -> None:
    """Copies have the flags of repeats, and count in no rate."""
    copies = {"copies": times(500), "copied_retransmissions": times(480), "copied_rto": times(480)}
    lost = {**lossy(30, 1000), "retransmissions": times(510), "rto_retransmissions": times(490), **copies}
    found = find(of_streams(stream(server=lost), summary=summary(duplicate_packets=times(480))))
    assert [(f.kind, f.severity, f.blame) for f in found] == [
        ("loss", "HIGH", "network"), ("duplicate_packets", "LOW", "none"),
    ]  # fmt: skip
    assert found[0].measured["loss_pct"] > 5.5
    assert found[0].measured["retransmissions"] == 30


# -------------------------------------------------------------------------------------------------------- broken


def reset(by: str, **changes: Any) -> dict[str, Any]:
    return {"teardown": "rst", "rst_from": by, **changes}


def test_a_reset_while_a_request_waits_is_a_fault_of_the_server() -> None:
    broken = stream(server={"rst": times(1, 30), "fin": NO}, **reset("server", unanswered_request_ms=300.0))
    finding = only(of_streams(broken))
    assert (finding.kind, finding.blame) == ("mid_session_reset", "server_application")
    assert (finding.who.src, finding.who.dst, finding.who.port) == ("10.0.2.4", "10.0.1.4", 443)


def test_a_client_that_gave_up_waiting_points_at_the_server() -> None:
    broken = stream(client={"rst": times(1, 30), "fin": NO}, **reset("client", unanswered_request_ms=30_000.0))
    assert only(of_streams(broken)).blame == "server_application"
    hasty = stream(client={"rst": times(1, 30), "fin": NO}, **reset("client", unanswered_request_ms=50.0))
    assert only(of_streams(hasty)).blame == "client"


@pytest.mark.parametrize("by", ["client", "server"])
def test_a_reset_after_a_complete_exchange_is_healthy(by: str) -> None:
    assert kinds(of_streams(stream(**{by: {"rst": times(1, 40)}}, **reset(by)))) == ["none"]


def test_a_reset_after_both_said_fin_is_healthy() -> None:
    closing = stream(client={"rst": times(1, 40), "rst_after_fin": True}, server={"data_after_rst": times(2)})
    assert kinds(of_streams(stream(client=None, **reset("client")), closing)) == ["none"]


def test_a_reset_by_neither_end_is_a_filters() -> None:
    foreign = {"rst": times(1, 30), "rst_ttl": 249, "ttl_min": 57, "ttl_max": 57, "fin": NO}
    forged = stream(server=foreign, **reset("neither", unanswered_request_ms=5.0))
    finding = only(of_streams(forged))
    assert (finding.kind, finding.blame) == ("third_party_reset", "policy")
    assert "249" in finding.detail
    assert "57" in finding.detail


def test_a_reset_after_a_long_silence_is_an_idle_timeout() -> None:
    reset_then = {"rst": times(1, 30), "fin": NO}
    idle = stream({"longest_silence_ms": 300_000.0}, reset_then, **reset("server", unanswered_request_ms=10.0))
    finding = only(of_streams(idle))
    assert (finding.kind, finding.blame) == ("idle_timeout", "network")


def test_data_after_a_long_silence_that_nobody_acknowledges_is_an_idle_timeout() -> None:
    dead = {"longest_silence_ms": 300_000.0, "rto_retransmissions": times(5), "retransmissions": times(5)}
    finding = only(of_streams(stream({**dead, "unacked_bytes": 200}, {"fin": NO}, teardown="open")))
    assert finding.kind == "idle_timeout"


def test_large_segments_lost_while_small_ones_pass_is_an_mtu_black_hole() -> None:
    stuck = {"unacked_bytes": 2800, "largest_acked_segment": 300, "smallest_lost_segment": 1400}
    stuck |= {"rto_retransmissions": times(4), "retransmissions": times(4), "lost_downstream": times(4)}
    finding = only(of_streams(stream(server={**stuck, "data_segments": 12}, teardown="open")))
    assert (finding.kind, finding.blame, finding.who.src) == ("mtu_black_hole", "network", "10.0.2.4")
    assert "1400" in finding.detail


def test_a_gap_that_an_overtaken_segment_filled_does_not_stay_open() -> None:
    """A FIN comes just behind the ACK that was sent after it."""
    gap = {"lost_segments": times(1), "largest_segment": 300, "longest_silence_ms": 9_000.0}
    assert kinds(of_streams(stream(server=gap))) == ["mtu_black_hole"]
    assert kinds(of_streams(stream(server={**gap, "reordered": times(1)}))) == ["none"]


@pytest.mark.parametrize(("kind", "code", "version"), [("unreachable", 4, 4), ("packet_too_big", 0, 6)])
def test_path_mtu_discovery_that_works_is_healthy(kind: str, code: int, version: int) -> None:
    """A whole flight was too big: each segment was reported, sent again smaller, and acknowledged."""
    told = icmp_error(kind, code, version=version, dst="10.0.1.4", next_hop_mtu=1400, count=4)
    resent = {"data_segments": 30, "lost_downstream": times(5), "retransmissions": times(5)}
    assert kinds(of_streams(stream(client=resent), icmp=icmp(told))) == ["none"]


def test_a_sender_of_datagrams_that_does_not_listen_to_packet_too_big_is_an_mtu_black_hole() -> None:
    told = icmp_error("unreachable", 4, dst="10.0.1.4", protocol="udp", next_hop_mtu=1400, count=8)
    finding = only(of_streams(stream(), icmp=icmp(told)))
    assert (finding.kind, finding.measured["next_hop_mtu"]) == ("mtu_black_hole", 1400)


def test_a_connection_that_was_told_and_still_hangs_is_an_mtu_black_hole() -> None:
    told = icmp_error("unreachable", 4, dst="10.0.1.4", next_hop_mtu=1400, count=2, sample_frames=(5, 6))
    stuck = {"unacked_bytes": 2800, "largest_acked_segment": 300, "smallest_lost_segment": 1460}
    stuck |= {"rto_retransmissions": times(4), "retransmissions": times(4), "lost_downstream": times(4)}
    finding = only(of_streams(stream(client={**stuck, "data_segments": 12}, teardown="open"), icmp=icmp(told)))
    assert (finding.kind, finding.severity, finding.confidence) == ("mtu_black_hole", "HIGH", "high")


# ----------------------------------------------------------------------------------------------- ICMP and ARP


def arp(*, silent: tuple[UnansweredArp, ...] = (), duplicates: tuple[DuplicateAddress, ...] = ()) -> ArpSection:
    return ArpSection(10, 5, Occurrences(), 0, silent, duplicates)


def test_a_filter_that_says_so_explains_the_unanswered_syn() -> None:
    said = icmp_error("unreachable", 13, src="10.0.0.1", destination_port=6379)
    finding = only(of_streams(silent(port=6379), icmp=icmp(said)))
    assert (finding.kind, finding.blame) == ("admin_prohibited", "policy")
    assert "10.0.0.1" in finding.title


def test_an_icmp_port_unreachable_for_udp_is_a_stopped_service() -> None:
    said = icmp_error("unreachable", 3, src="10.0.2.4", protocol="udp", destination_port=514)
    finding = only(Analysis(summary(), icmp=icmp(said)))
    assert (finding.kind, finding.blame, finding.who.port) == ("port_unreachable", "server_application", 514)


def test_an_icmp_port_unreachable_for_tcp_is_a_filter_that_rejects() -> None:
    said = icmp_error("unreachable", 3, src="10.0.2.4", protocol="tcp", destination_port=6379)
    finding = only(of_streams(silent(port=6379), icmp=icmp(said)))
    assert (finding.kind, finding.blame) == ("port_unreachable", "policy")


def test_late_dns_answers_and_the_end_of_a_traceroute_are_no_faults() -> None:
    late = icmp_error("unreachable", 3, protocol="udp", source_port=53, destination_port=40_000)
    trace = icmp_error("unreachable", 3, protocol="udp", destination_port=33_440)
    assert kinds(Analysis(summary(), icmp=icmp(late, trace))) == ["none"]


def test_a_router_that_keeps_running_out_of_hops_is_a_loop() -> None:
    loop = [icmp_error("ttl_exceeded", 0, src=f"10.0.0.{n}", count=6) for n in (1, 2)]
    finding = only(of_streams(silent(), icmp=icmp(*loop)))
    assert (finding.kind, finding.who.dst) == ("routing_loop", "10.0.2.4")


def test_a_traceroute_is_no_loop() -> None:
    hops = [icmp_error("ttl_exceeded", 0, src=f"10.0.{n}.1", protocol="icmp", count=3) for n in range(8)]
    assert kinds(Analysis(summary(), icmp=icmp(*hops))) == ["none"]


def test_a_redirect_is_worth_knowing() -> None:
    said = icmp_error("redirect", 1, gateway="10.0.1.254")
    assert (
        only(Analysis(summary(), icmp=icmp(said))).kind,
        find(Analysis(summary(), icmp=icmp(said)))[0].severity,
    ) == (
        "icmp_redirect",
        "LOW",
    )


def test_arp_and_icmp_that_agree_say_that_the_host_is_down() -> None:
    nobody = UnansweredArp("10.0.2.4", 5, ("10.0.2.1",), (3, 4, 5), ever_answered=False)
    said = icmp_error("unreachable", 1, src="10.0.2.1")
    finding = only(of_streams(silent(), arp=arp(silent=(nobody,)), icmp=icmp(said)))
    assert (finding.kind, finding.blame, finding.confidence) == ("host_down", "server_host", "high")


def test_arp_requests_of_strangers_without_a_reply_prove_nothing() -> None:
    nobody = UnansweredArp("10.0.2.9", 30, ("10.0.2.1",), (3, 4, 5), ever_answered=False)
    assert kinds(Analysis(summary(), arp=arp(silent=(nobody,)))) == ["none"]


def test_two_devices_that_fight_for_an_address_are_a_conflict() -> None:
    fight = DuplicateAddress("10.0.2.4", ("02:00:00:00:00:01", "02:00:00:00:00:02"), (3, 9), alternations=7)
    finding = only(Analysis(summary(), arp=arp(duplicates=(fight,))))
    assert (finding.kind, finding.severity, finding.evidence) == ("arp_conflict", "HIGH", (3, 9))


def test_a_device_that_claims_two_addresses_of_others_is_spoofing() -> None:
    thief, claims = "02:00:00:00:00:66", (AddressClaims(7, 0, 0), AddressClaims(20, 18, 18))
    stolen = tuple(DuplicateAddress(f"10.0.2.{n}", (f"02:00:00:00:00:0{n}", thief), (3, 9), 7, claims) for n in (1, 4))
    finding = only(Analysis(summary(), arp=arp(duplicates=stolen)))
    assert (finding.severity, finding.blame, finding.other_targets) == ("CRITICAL", "network", (("10.0.2.4", None),))


# ----------------------------------------------------------------------------------------------------------- DNS


def query(name: str, **changes: Any) -> DnsQuery:
    values: dict[str, Any] = {"type": "A", "client": "10.0.1.4", "server": "10.0.0.53", "frame": 7, "attempts": 1}
    return DnsQuery(name=name, **(values | {"latency_ms": None, "rcode": None} | changes))


def dns(**changes: Any) -> Analysis:
    server = DnsServer("10.0.0.53", 100, 100, 0, None, {"NOERROR": 100})
    values: dict[str, Any] = {
        "queries_total": 100, "responses_total": 100, "unanswered_total": 0, "repeated_queries": 0,
        "responses_unmatched": 0, "query_types": {"A": 100}, "rcodes": {"NOERROR": 100}, "latency_ms": None,
        "servers": (server,), "top_domains": (("www.example.", 50),), "unanswered": (), "slow": (), "nxdomain": (),
        "servfail": (), "nxdomain_total": 0, "servfail_total": 0, "distinct_names": 10, "truncated_responses": 0,
        "malformed": 0, "mdns_packets": 0, "llmnr_packets": 0,
    }  # fmt: skip
    return Analysis(summary(), dns=DnsSection(**(values | changes)))


def server(**changes: Any) -> tuple[DnsServer, ...]:
    values: dict[str, Any] = {"queries": 10, "responses": 10, "unanswered": 0, "latency_ms": None, "rcodes": {}}
    return (DnsServer(address="10.0.0.53", **(values | changes)),)


def test_a_name_that_does_not_exist_is_named() -> None:
    finding = only(dns(nxdomain=(query("rediss.prod.example.", rcode="NXDOMAIN"),)))
    assert (finding.kind, finding.blame) == ("dns_nxdomain", "dns")
    assert finding.who.as_dict() == {"src": "10.0.1.4", "dst": "10.0.0.53", "port": 53}
    assert "rediss.prod.example" in finding.title
    assert any("rediss.prod.example" in remedy.command for remedy in finding.remediation)


@pytest.mark.parametrize("found", ["db.prod.", "db.prod.example.", "db.corp.example."])
def test_a_search_list_that_finds_the_name_in_the_end_is_healthy(found: str) -> None:
    failed = query("db.prod.corp.example.", rcode="NXDOMAIN")
    asked = ((failed.name, 1), (found, 1))
    assert kinds(dns(nxdomain=(failed,), top_domains=asked)) == ["none"]


def test_several_hosts_missing_below_one_domain_and_found_below_another_are_a_search_list() -> None:
    failed = tuple(query(f"{host}.svc.cluster.local.", rcode="NXDOMAIN") for host in ("db", "cache", "queue"))
    asked = tuple((f"{host}.corp.example.", 1) for host in ("db", "cache", "queue"))
    assert kinds(dns(nxdomain=failed, top_domains=asked)) == ["none"]


def test_a_name_in_the_wrong_environment_is_not_excused_by_the_right_one() -> None:
    failed = query("db.staging.example.", rcode="NXDOMAIN")
    assert kinds(dns(nxdomain=(failed,), top_domains=(("db.prod.example.", 9),))) == ["dns_nxdomain"]


def test_reverse_lookups_without_a_name_are_healthy() -> None:
    assert kinds(dns(nxdomain=(query("4.2.0.10.in-addr.arpa.", rcode="NXDOMAIN"),))) == ["none"]


@pytest.mark.parametrize("name", ["wpad.corp.example.", "WPAD.", "isatap.corp.example."])
def test_names_that_windows_asks_for_in_every_network_are_healthy(name: str) -> None:
    assert kinds(dns(nxdomain=(query(name, rcode="NXDOMAIN"),))) == ["none"]
    assert kinds(dns(nxdomain=(query(f"the{name}", rcode="NXDOMAIN"),))) == ["dns_nxdomain"]


def test_a_server_that_answers_nothing_is_down() -> None:
    asked = tuple(query(f"{n}.example.", attempts=3) for n in range(4))
    finding = only(dns(unanswered=asked, servers=server(queries=4, responses=0, unanswered=4)))
    assert (finding.kind, finding.severity, finding.blame) == ("dns_timeout", "HIGH", "dns")
    assert finding.measured == {"unanswered": 4, "queries": 4}


def test_one_unanswered_query_among_hundreds_is_of_low_severity() -> None:
    found = only(dns(unanswered=(query("a.example."),), servers=server(queries=300, responses=299, unanswered=1)))
    assert (found.kind, found.severity) == ("dns_timeout", "LOW")


def test_answers_of_which_fragments_are_lost_explain_the_silence() -> None:
    said = icmp_error("ttl_exceeded", 1, src="10.0.1.4", dst="10.0.0.53", unreachable_dst="10.0.1.4", count=6)
    asked = tuple(query(f"{n}.example.", attempts=3) for n in range(4))
    silent_server = dns(unanswered=asked, servers=server(queries=4, responses=0, unanswered=4))
    finding = only(Analysis(summary(), dns=silent_server.dns, icmp=icmp(said)))
    assert (finding.kind, finding.blame, finding.who.dst) == ("mtu_black_hole", "network", "10.0.1.4")


def test_a_dns_port_that_icmp_says_is_closed_explains_the_silence() -> None:
    said = icmp_error(
        "unreachable", 3, src="10.0.0.53", unreachable_dst="10.0.0.53", protocol="udp", destination_port=53
    )
    silent_server = dns(unanswered=(query("a.example."),), servers=server(queries=1, responses=0, unanswered=1))
    finding = only(Analysis(summary(), dns=silent_server.dns, icmp=icmp(said)))
    assert (finding.kind, finding.severity) == ("port_unreachable", "HIGH")


def test_a_server_that_fails_all_queries_is_down_and_one_that_fails_some_degraded() -> None:
    failed = tuple(query(f"{n}.example.", rcode="SERVFAIL") for n in range(3))
    all_of_them = dns(servfail=failed, servers=server(queries=3, responses=3, rcodes={"SERVFAIL": 3}))
    assert (only(all_of_them).kind, only(all_of_them).severity) == ("dns_servfail", "HIGH")
    some = dns(servfail=failed, servers=server(queries=30, responses=30, rcodes={"SERVFAIL": 3}))
    assert only(some).severity == "MEDIUM"


def test_a_slow_server_is_told_from_a_cold_cache() -> None:
    late = tuple(query(f"{n}.example.", latency_ms=900.0 + n) for n in range(5))
    assert kinds(dns(slow=late, servers=server())) == ["dns_slow"]
    assert kinds(dns(slow=late[:1], servers=server())) == ["none"]
    assert kinds(dns(slow=late, servers=server(queries=1000, responses=1000))) == ["none"]


# ------------------------------------------------------------------------------------------------- the capture


def test_a_healthy_capture_says_so_with_numbers() -> None:
    answered = Statistics(1, 5.0, 5.0, 5.0, 5.0)
    finding = only(of_streams(*(stream(source_port=50_000 + n, response_ms=answered) for n in range(12))))
    assert (finding.kind, finding.severity, finding.blame, finding.confidence) == ("none", "INFO", "none", "high")
    assert "1,000 packets" in finding.detail
    assert "12 of 12 handshakes" in finding.detail


def test_an_empty_capture_says_that_it_is_empty() -> None:
    finding = only(Analysis(summary(total_packets=0, first_ns=None, last_ns=None, format="empty")))
    assert (finding.kind, finding.confidence) == ("none", "low")
    assert "no packets" in finding.title


def test_an_incomplete_capture_is_said_beside_the_verdict() -> None:
    found = find(of_streams(stream(), summary=summary(dropped_by_capturer=500, truncated_record=True)))
    assert [f.kind for f in found] == ["capture_incomplete", "none"]
    assert "500" in found[0].detail


def test_a_capture_of_which_everything_is_there_twice_was_taken_twice() -> None:
    found = find(of_streams(stream(), summary=summary(duplicate_packets=times(480))))
    assert [(f.kind, f.blame) for f in found] == [("duplicate_packets", "none"), ("none", "none")]


def test_a_part_of_the_packets_twice_is_the_networks_doing() -> None:
    found = find(of_streams(stream(), summary=summary(duplicate_packets=times(80))))
    assert [(f.kind, f.blame) for f in found] == [("duplicate_packets", "network"), ("none", "none")]


def test_what_is_concluded_from_absence_is_doubtful_where_the_capture_lacks_packets() -> None:
    lossy_stream = stream(server=lossy(30, 1000))
    found = find(of_streams(lossy_stream, summary=summary(dropped_by_capturer=50)))
    assert [(f.kind, f.severity, f.confidence) for f in found] == [
        ("capture_incomplete", "LOW", "high"),
        ("loss", "LOW", "low"),
    ]


def test_connections_that_fail_just_while_all_ports_are_held_point_at_a_nat() -> None:
    held = [
        stream(source_port=40_000 + n, first_ns=n * SECOND // 10, last_ns=50 * SECOND, teardown="open")
        for n in range(32)
    ]
    failing = [
        silent(source_port=41_000 + n, port=443, first_ns=(10 + n) * SECOND, last_ns=(13 + n) * SECOND)
        for n in range(8)
    ]
    finding = only(of_streams(*held, *failing))
    assert (finding.kind, finding.blame, finding.measured["ports_held"]) == ("snat_exhaustion", "network", 32)


def test_connections_that_fail_at_any_number_do_not_point_at_a_nat() -> None:
    held = [
        stream(source_port=40_000 + n, first_ns=n * SECOND, last_ns=59 * SECOND, teardown="open") for n in range(32)
    ]
    failing = [
        silent(source_port=41_000 + n, port=443, first_ns=4 * n * SECOND, last_ns=(4 * n + 3) * SECOND)
        for n in range(8)
    ]
    assert "snat_exhaustion" not in kinds(of_streams(*held, *failing))


def test_an_answer_long_after_its_request_was_acknowledged_is_the_applications() -> None:
    slow = Statistics(3, 1500.0, 2000.0, 2500.0, 2500.0)
    late = stream(response_ms=slow, request_acked_ms=Statistics(3, 1.0, 1.0, 2.0, 2.0))
    finding = only(of_streams(late))
    assert (finding.kind, finding.blame) == ("slow_application", "server_application")
    by_the_path = stream(response_ms=slow, request_acked_ms=Statistics(3, 1400.0, 1900.0, 2400.0, 2400.0))
    assert kinds(of_streams(by_the_path)) == ["none"]


def test_findings_are_numbered_most_important_first_and_never_more_than_the_limit() -> None:
    many = [refused(dst=f"10.0.3.{n}", src=f"10.0.1.{n}", port=80) for n in range(40)]
    threat = [
        silent(
            syn=1, dst="10.0.9.9", src=f"198.51.100.{n}", source_port=n, first_ns=n * 1_000_000, last_ns=n * 1_000_000
        )
        for n in range(200)
    ]
    found = find(of_streams(stream(lossy(20, 1500)), *many, *threat))
    assert len(found) == MOST
    assert [f.id for f in found] == [f"F{n}" for n in range(1, MOST + 1)]
    assert found[0].kind == "syn_flood"
    ranks = [SEVERITIES.index(f.severity) for f in found]
    assert ranks == sorted(ranks)


def test_every_finding_keeps_to_the_vocabulary() -> None:
    everything = of_streams(
        silent(port=6379), refused(port=80), stream(lossy(30, 300), port=22), icmp=icmp(icmp_error("redirect", 1))
    )
    for finding in find(everything):
        assert finding.severity in SEVERITIES
        assert finding.blame in BLAMES
        assert finding.confidence in CONFIDENCES
        assert len(finding.evidence) <= 5
        assert all(frame > 0 for frame in finding.evidence)
        assert finding.remediation
