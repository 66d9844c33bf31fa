"""Reports as their reader sees them: the point first, nothing a stranger wrote that acts, never too long."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap import safe_text
from ghost.pcap.compare.comparison_text import comparison_report, comparison_summary
from ghost.pcap.compare.rate_comparison import Capture, Difference, differences, metrics
from ghost.pcap.findings import find
from ghost.pcap.model import Analysis
from ghost.pcap.report.markdown_report import LONGEST_SUMMARY, executive_summary, forensic_report

from .analyses import of_streams, refused, silent, stream, summary, tcp, times

HOSTILE = "<img src=x onerror=alert(1)>|`$(reboot)`\n# Owned\x1b[2J\u202e](javascript:x)"


def both(analysis: Analysis) -> tuple[str, str]:
    found = find(analysis)
    return executive_summary(analysis, found), forensic_report(analysis, found)


def section(report: str, title: str) -> str:
    return report.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_first_three_lines_say_what_whose_and_what_to_type() -> None:
    brief, _ = both(of_streams(silent(port=6379), stream(port=22), refused(port=8080)))
    first, second, third, fourth = brief.splitlines()[:4]
    assert first == "# HIGH: 10.0.1.4 gets no answer from 10.0.2.4:6379"
    assert "3 SYNs in 1 connection attempt" in second
    assert "a filter on the path (policy), high confidence" in third
    assert fourth.startswith("**First step**, on ")


def test_the_report_has_its_sections_in_order() -> None:
    _, report = both(of_streams(silent(), stream(dst="10.0.2.5")))
    titles = re.findall(r"^## (.+)$", report, re.MULTILINE)
    assert titles == [
        "Executive Summary", "Anomaly Table", "Root Cause Analysis", "Remediation", "Measurements", "Method",
    ]  # fmt: skip
    assert "| Severity | Protocol | Issue | Detail | Frames |" in section(report, "Anomaly Table")


def test_root_causes_are_told_for_the_serious_findings_alone() -> None:
    lossy = {"data_segments": 2000, "lost_downstream": times(30), "retransmissions": times(30)}
    _, report = both(of_streams(silent(port=6379), stream(lossy, port=22)))
    causes = section(report, "Root Cause Analysis")
    assert "no answer" in causes
    assert "are lost" not in causes
    assert "are lost" in section(report, "Anomaly Table")


def test_each_remediation_names_the_host_to_run_it_on_and_is_asked_for_once() -> None:
    _, report = both(of_streams(refused(port=80), refused(port=81)))
    steps = [line for line in section(report, "Remediation").splitlines() if line.startswith("1. ")]
    assert len(steps) == len(set(steps))
    assert all(re.match(r"1\. On .+: `.+`$", step) for step in steps)


def test_a_healthy_capture_reads_as_healthy() -> None:
    brief, report = both(of_streams(stream(), stream(source_port=50_001)))
    assert brief.splitlines()[0] == "# Info: No fault recognised in this capture"
    assert "2 of 2 handshakes completed" in brief.splitlines()[1]
    assert "No anomalies." in section(report, "Anomaly Table")


def test_an_empty_capture_reads_as_empty() -> None:
    brief, _ = both(Analysis(summary(total_packets=0, first_ns=None, last_ns=None, protocols_present={})))
    assert brief.splitlines()[0] == "# No packets: The capture holds no packets"


def test_a_summary_never_exceeds_its_fifty_lines() -> None:
    analysis = of_streams(*(refused(dst=f"10.0.3.{n}", src=f"10.0.1.{n}") for n in range(60)))
    assert len(both(analysis)[0].splitlines()) <= LONGEST_SUMMARY


def unescaped(character: str, markdown: str) -> bool:
    return re.search(rf"(?<!\\)(?:\\\\)*{re.escape(character)}", markdown) is not None


@given(st.text(max_size=60) | st.just(HOSTILE))
def test_escaped_text_cannot_act_in_markdown_or_on_a_terminal(name: str) -> None:
    shown = safe_text.markdown(name)
    assert "<" not in shown
    assert ">" not in shown
    assert not any(unescaped(character, shown) for character in "`|[]*_#!~")
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.isprintable()


@pytest.mark.parametrize("name", ["http://evil.example/x", "CN=HTTPS://e.example", "(www.evil.example", "x_ftp://e.ex"])
def test_no_name_becomes_a_link_by_itself(name: str) -> None:
    """GitHub links `http://`, `https://`, `ftp://` and `www.`, wherever they stand."""
    shown = safe_text.markdown(name)
    assert not re.search(r"://|www\.", shown, re.IGNORECASE)
    assert re.sub(r"\\(.)", r"\1", shown) == name
    assert safe_text.markdown("10.0.0.1:80 is refused by [::1]:443") == "10.0.0.1:80 is refused by \\[::1\\]:443"


@given(st.text(max_size=60))
def test_a_code_span_holds_exactly_one_span(name: str) -> None:
    assert safe_text.code(name).count("`") == 2
    assert safe_text.code(name).isprintable()


@given(st.text(max_size=300))
def test_a_name_is_printable_and_short(name: str) -> None:
    assert safe_text.name(name).isprintable()
    assert len(safe_text.name(name)) <= safe_text.LONGEST_NAME


def test_a_hostile_file_name_and_address_do_not_act_in_the_report() -> None:
    analysis = of_streams(refused(dst=HOSTILE), summary=summary(file=HOSTILE, protocols_present={HOSTILE: 1}))
    for document in both(analysis):
        assert "<img" not in re.sub(r"(?<!\\)`[^`]*`", "", document), "HTML acts everywhere but in a code span"
        assert "\x1b" not in document
        assert "\n# Owned" not in document
        commands = re.findall(r"^(?:1\. On|\*\*First step\*\*, on) .*: `([^`]*)`$", document, re.MULTILINE)
        assert commands
        assert not any("reboot" in command for command in commands)


# ---------------------------------------------------------------------------------------------------- comparison


def metric(key: str) -> Any:
    return next(metric for metric in metrics() if metric.key == key)


@pytest.mark.parametrize(
    ("key", "a", "b", "assessment"),
    [
        ("loss_pct", 1.0, 1.05, "STABLE"),
        ("loss_pct", 1.0, 2.0, "REGRESSION"),
        ("loss_pct", 2.0, 1.0, "IMPROVEMENT"),
        ("loss_pct", 0.0, 1.0, "NEW ISSUE"),
        ("loss_pct", 1.0, 0.0, "RESOLVED"),
        ("loss_pct", 0.0, 0.01, "STABLE"),
        ("handshake_success_pct", 99.0, 50.0, "REGRESSION"),
        ("handshake_success_pct", 50.0, 99.0, "IMPROVEMENT"),
        ("handshake_success_pct", 0.0, 99.0, "IMPROVEMENT"),
        ("handshake_rtt_median_ms", 0.2, 0.4, "STABLE"),
        ("handshake_rtt_median_ms", 20.0, 40.0, "REGRESSION"),
        ("handshake_rtt_median_ms", 0.0, 40.0, "REGRESSION"),
    ],
)
def test_a_change_is_assessed_by_size_and_direction(key: str, a: float, b: float, assessment: str) -> None:
    assert Difference(metric(key), a, b).assessment == assessment


def test_captures_of_different_length_with_the_same_rates_are_stable() -> None:
    lossy = {"data_segments": 100, "lost_downstream": times(5), "retransmissions": times(5)}
    short = of_streams(tcp=tcp([stream(lossy)], retransmissions=5, lost_downstream=5))
    long = of_streams(
        tcp=tcp([stream(lossy, source_port=n) for n in range(10)], retransmissions=50, lost_downstream=50)
    )
    assert {d.assessment for d in differences(short, long)} == {"STABLE"}


def test_a_comparison_leads_with_what_is_new() -> None:
    healthy = of_streams(stream(), stream(port=22))
    broken = of_streams(silent(), stream(port=22))
    before, after = Capture(healthy, find(healthy)), Capture(broken, find(broken))
    brief = comparison_summary(before, after, differences(before.analysis, after.analysis))
    assert brief.splitlines()[0] == "# Worse: now 10.0.1.4 gets no answer from 10.0.2.4:443"
    assert "NEW ISSUE" in comparison_report(before, after, differences(before.analysis, after.analysis))
    back = comparison_summary(after, before, differences(after.analysis, before.analysis))
    assert back.splitlines()[0] == "# Better: no longer 10.0.1.4 gets no answer from 10.0.2.4:443"
    assert "RESOLVED" in comparison_report(after, before, differences(after.analysis, before.analysis))


def test_a_capture_compared_with_itself_is_stable() -> None:
    analysis = of_streams(silent(), stream(port=22), refused(port=80))
    same = Capture(analysis, find(analysis))
    assert comparison_summary(same, same, differences(same.analysis, same.analysis)).splitlines()[0] == "# Stable"
    renamed = Capture(replace(analysis, summary=summary(file=HOSTILE)), same.findings)
    for document in (
        comparison_report(same, renamed, differences(same.analysis, renamed.analysis)),
        comparison_summary(same, renamed, differences(same.analysis, renamed.analysis)),
    ):
        assert "\n# Owned" not in document
        assert "\x1b" not in document
