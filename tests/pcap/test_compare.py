"""Before and after: what changed, and what only chance changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.compare.comparison_page import html_comparison
from ghost.pcap.compare.comparison_text import (
    comparison_document,
    comparison_headline,
    comparison_report,
    comparison_summary,
    verdict,
)
from ghost.pcap.compare.rate_comparison import Capture, Difference, differences, measured, metrics
from ghost.pcap.findings import find
from ghost.pcap.model import Analysis
from tests.exhaustive import examples
from tests.pcap.analyses import of_streams, stream, tcp, times
from tests.pcap.wire import SYN, Talk, pcap, transfer


def capture(path: Path) -> Capture:
    analysis = analyse(path)
    return Capture(analysis, find(analysis))


def assessed(a: Analysis, b: Analysis) -> dict[str, str]:
    return {difference.metric.key: difference.assessment for difference in differences(a, b)}


def many(tmp_path: Path, name: str, seed: int, **path: float) -> Capture:
    """Twenty connections over one path."""
    talks = [
        transfer(seed * 1000 + n, segments=60, talk=Talk(client_port=40_000 + n), **path)[0]  # type: ignore[arg-type]
        for n in range(20)
    ]
    records = sorted(record for talk in talks for record in talk.records)
    return capture(Talk(records=records).save(tmp_path / name))


def test_a_path_that_began_to_lose_is_a_regression_and_back_again_it_is_resolved(tmp_path: Path) -> None:
    healthy, lossy = many(tmp_path, "before.pcap", 1), many(tmp_path, "after.pcap", 2, downstream=0.03)
    worse, better = assessed(healthy.analysis, lossy.analysis), assessed(lossy.analysis, healthy.analysis)
    assert worse["loss_pct"] == worse["retransmission_pct"] == "NEW ISSUE"
    assert better["loss_pct"] == better["retransmission_pct"] == "RESOLVED"
    assert worse["handshake_success_pct"] == worse["handshake_rtt_median_ms"] == "STABLE"
    point, _ = verdict(healthy, lossy, differences(healthy.analysis, lossy.analysis))
    assert point.startswith("Worse: now ")


def test_a_longer_path_is_a_regression_of_its_times_alone(tmp_path: Path) -> None:
    near, far = many(tmp_path, "near.pcap", 1), many(tmp_path, "far.pcap", 1, far_ms=60)
    changed = {key for key, word in assessed(near.analysis, far.analysis).items() if word == "REGRESSION"}
    assert {"handshake_rtt_median_ms", "handshake_rtt_p95_ms", "ack_rtt_p95_ms"} <= changed
    assert all(key.endswith("_ms") for key in changed)


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_the_same_path_on_another_day_is_stable(loss: float, tmp_path: Path) -> None:
    """Other packets are lost, about as many."""
    first = many(tmp_path, "first.pcap", 3, downstream=loss)
    second = many(tmp_path, "second.pcap", 4, downstream=loss)
    assert set(assessed(first.analysis, second.analysis).values()) == {"STABLE"}


def test_a_capture_compared_with_itself_is_stable_in_every_form(tmp_path: Path) -> None:
    same = many(tmp_path, "same.pcap", 5, downstream=0.05)
    table = differences(same.analysis, same.analysis)
    assert {difference.assessment for difference in table} == {"STABLE"}
    assert verdict(same, same, table)[0] == "Stable"
    assert comparison_summary(same, same, table).startswith("# Stable")
    page = html_comparison(same, same, table, None)
    for word in ("REGRESSION", "NEW ISSUE", "IMPROVEMENT", "RESOLVED"):
        assert f">{word}<" not in page


@settings(max_examples=examples(6), deadline=None)
@given(st.integers(2, 12), st.integers(0, 2))
def test_one_or_two_of_a_few_are_no_regression(packets: int, lost: int) -> None:
    healthy = of_streams(tcp=tcp([stream({"packets": packets}, {"packets": packets})]))
    lossy = of_streams(
        tcp=tcp(
            [stream({"packets": packets, "lost_downstream": times(lost)}, {"packets": packets})],
            retransmissions=lost,
            lost_downstream=lost,
        )
    )
    assert assessed(healthy, lossy)["loss_pct"] == "STABLE"


@settings(max_examples=examples(6), deadline=None)
@given(st.integers(2000, 100_000), st.floats(0.05, 0.5))
def test_many_of_many_always_are(packets: int, share: float) -> None:
    lost = int(packets * share)
    healthy = of_streams(tcp=tcp([stream({"packets": packets})]))
    lossy = of_streams(tcp=tcp([stream({"packets": packets})], retransmissions=lost, lost_downstream=lost))
    assert assessed(healthy, lossy)["loss_pct"] == "NEW ISSUE"
    assert assessed(lossy, healthy)["loss_pct"] == "RESOLVED"


def test_chance_does_not_hide_a_change_that_it_cannot_explain() -> None:
    (metric,) = [metric for metric in metrics() if metric.key == "loss_pct"]
    assert Difference(metric, 1.0, 3.0, noise=2.5).assessment == "STABLE"
    assert Difference(metric, 1.0, 3.0, noise=1.5).assessment == "REGRESSION"


def test_every_metric_of_the_table_can_be_measured_by_some_section() -> None:
    """A row that nothing fills would silently never be compared."""
    source = (Path(differences.__code__.co_filename)).read_text()
    for metric in metrics():
        stem = metric.key.removesuffix("_median_ms").removesuffix("_p95_ms")
        assert f'"{stem}"' in source, metric.key


def test_measurements_of_an_empty_capture_are_none() -> None:
    assert set(measured(of_streams())) <= {metric.key for metric in metrics()}


def test_findings_that_are_new_or_gone_are_assessed_like_metrics(tmp_path: Path) -> None:
    healthy, lossy = many(tmp_path, "before.pcap", 1), many(tmp_path, "after.pcap", 2, downstream=0.05)
    table = differences(healthy.analysis, lossy.analysis)
    assert "- NEW ISSUE, " in comparison_report(healthy, lossy, table)
    page = html_comparison(healthy, lossy, table, None)
    assert ">NEW ISSUE<" in page
    headline = comparison_headline(healthy, lossy, table)
    assert re.match(r"(MEDIUM|HIGH): (Changed|Worse): now ", headline[0])
    assert headline[1].startswith("  owner: the network path")
    assert headline[2].startswith("  time: ")
    assert headline[3].startswith("  first step, on 10.")
    document = comparison_document(healthy, lossy, table)
    assert [finding["kind"] for finding in document["new_findings"]] == ["loss"]
    assert document["resolved_findings"] == []
    back = differences(lossy.analysis, healthy.analysis)
    assert "- RESOLVED, " in comparison_report(lossy, healthy, back)


def unanswered(tmp_path: Path, name: str) -> Capture:
    silent = Talk()
    for wait in (0, 1000, 2000, 4000):
        silent.c(0, 0, SYN, after_ms=wait)
    return capture(silent.save(tmp_path / name))


def in_every_form(a: Capture, b: Capture) -> tuple[str, ...]:
    table = differences(a.analysis, b.analysis)
    return (
        verdict(a, b, table)[0],
        comparison_report(a, b, table),
        comparison_summary(a, b, table),
        html_comparison(a, b, table, None),
        str(comparison_document(a, b, table)),
    )


def test_an_empty_capture_is_neither_better_nor_worse(tmp_path: Path) -> None:
    full, empty = unanswered(tmp_path, "full.pcap"), capture(Talk().save(tmp_path / "empty.pcap"))
    assert [finding.kind for finding in full.findings] == ["syn_unanswered"]
    for a, b, side in ((full, empty, "B"), (empty, full, "A")):
        for form in in_every_form(a, b):
            assert f"Not comparable: {side} holds no packets" in form
            assert not re.search(r"no longer|Better:|RESOLVED, |NEW ISSUE, |>RESOLVED<|>NEW ISSUE<", form)
    assert comparison_document(full, empty, [])["resolved_findings"] == []
    assert [f["kind"] for f in comparison_document(full, empty, [])["findings_without_traffic_in_b"]] == [
        "syn_unanswered"
    ]


def test_a_capture_without_traffic_of_the_service_does_not_show_that_it_recovered(tmp_path: Path) -> None:
    broken = unanswered(tmp_path, "broken.pcap")
    elsewhere = Talk(server_port=22)
    elsewhere.opened().c(1, 1, size=50).s(1, 51, size=90).c(51, 91)
    other = capture(elsewhere.save(tmp_path / "other.pcap"))
    point, tally = verdict(broken, other, [])
    assert point.startswith("Not comparable: B holds no traffic of 10.0.2.4:5432")
    assert "--ends" in tally
    works = Talk(client_port=41_000).opened().c(1, 1, size=50).s(1, 51, size=90).c(51, 91)
    repaired = capture(works.save(tmp_path / "repaired.pcap"))
    assert verdict(broken, repaired, [])[0].startswith("Better: no longer")
    again = capture(Talk(records=works.records + elsewhere.records).save(tmp_path / "both.pcap"))
    assert verdict(broken, again, [])[0].startswith("Better: no longer")


def test_a_capture_that_could_not_be_read_is_not_compared(tmp_path: Path) -> None:
    broken = unanswered(tmp_path, "broken.pcap")
    path = tmp_path / "radio.pcap"
    path.write_bytes(pcap(Talk().opened().records, link=105))
    unread = capture(path)
    assert verdict(broken, unread, [])[0] == "Not comparable: B could not be read"
