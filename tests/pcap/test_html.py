"""The HTML report: one file that loads and runs nothing, whatever a capture holds, and is read without seeing it."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.page import element
from ghost.pcap.analysis import analyse
from ghost.pcap.compare.comparison_page import html_comparison
from ghost.pcap.compare.rate_comparison import Capture, differences
from ghost.pcap.findings import Remedy, find
from ghost.pcap.report.capture_page import html_report
from ghost.pcap.report.packet_sequence import sequence
from ghost.pcap.report.single_capture import report_on
from ghost.pcap.report.time_charts import Line, TimeAxis, time_chart
from ghost.text import visible
from tests.exhaustive import examples
from tests.pcap.wire import MS, SYN, Record, Talk, ethernet, ip, pcap, tcp, transfer, udp

CLOCK = 1_700_000_000 * 1_000_000_000
HOSTILE = "<script>alert(1)</script>\"'`]]>--><svg onload=x>\u202egnp.\x1b[2J{{7*7}}${x}"
VOID = {"meta", "br", "hr", "img", "col"}
SVG_EMPTY = {"line", "path", "rect", "circle"}


class Page(HTMLParser):
    """A document taken apart; says where tags do not match."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}
        self.feed(document)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_EMPTY
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def report(path: Path) -> str:
    analysis = analyse(path)
    findings = find(analysis)
    return html_report(analysis, findings, sequence(path, analysis, findings))


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    talk, _ = transfer(3, segments=400, upstream=0.02, downstream=0.03)
    return talk.save(tmp_path_factory.mktemp("html") / "lossy.pcap")


def crowd() -> list[Record]:
    """Hundreds of hosts, each with its own trouble: the largest report there is."""
    records: list[Record] = []
    for n in range(400):
        source, target = f"10.{n % 7}.{n // 250}.{n % 250 + 1}", f"172.16.{n % 40}.{n % 250 + 1}"
        for again in range(4):
            syn = tcp(40_000 + n, 443, 1_000_000 * n, 0, SYN)
            records.append(
                (CLOCK + (n * 10 + again * 1000) * MS, ethernet(ip(source, target, 6, syn, number=4 * n + again)))
            )
    return sorted(records, key=lambda record: record[0])


# --------------------------------------------------------------------------------------------------------- escaping


@settings(max_examples=examples(10), deadline=None)
@given(st.text(max_size=200))
def test_text_comes_out_of_markup_as_it_went_in_but_for_what_cannot_be_shown(words: str) -> None:
    made = element("p", words, title=words)
    page = Page(f"<div>{made}</div>")
    shown = "\n".join(visible(line) for line in words.split("\n"))
    assert "".join(page.words.get("p", [])) == shown
    assert page.all("p") == [{"title": shown}]


@pytest.mark.parametrize("words", [HOSTILE, "]]>", "</p><p>", "&lt;", "' onmouseover='x", '"><img src=x>'])
def test_no_text_becomes_a_tag_or_an_attribute(words: str) -> None:
    page = Page(element("p", words, title=words, class_=words))
    assert [name for name, _ in page.tags] == ["p"]
    assert set(page.all("p")[0]) == {"title", "class"}


def test_a_hostile_file_name_address_and_server_name_are_shown_and_do_nothing(lossy: Path) -> None:
    analysis = analyse(lossy)
    assert analysis.tcp is not None
    assert analysis.series is not None
    series = replace(
        analysis.series,
        hosts=(HOSTILE, *analysis.series.hosts[1:]),
        traffic=tuple(replace(pair, source=HOSTILE) for pair in analysis.series.traffic),
        busiest=tuple(replace(pair, a=HOSTILE) for pair in analysis.series.busiest),
    )
    summary = replace(analysis.summary, file=HOSTILE, notes=(HOSTILE,), protocols_present={HOSTILE: 3})
    analysis = replace(analysis, summary=summary, series=series)
    findings = [
        replace(f, title=HOSTILE, detail=HOSTILE, cause=HOSTILE, remediation=(Remedy(HOSTILE, HOSTILE),))
        for f in find(analysis)
    ]
    ladder = sequence(lossy, analysis, findings)
    assert ladder is not None
    ladder = replace(ladder, left=HOSTILE, about=HOSTILE)
    capture = Capture(analysis, findings)
    for document in (
        html_report(analysis, findings, ladder),
        html_comparison(capture, capture, differences(analysis, analysis), None),
    ):
        page = Page(document)
        assert {name for name, _ in page.tags}.isdisjoint({"script", "img", "iframe", "object", "link", "base", "form"})
        assert len(page.all("style")) == 1
        assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in document
        for character in ("\x1b", "\u202e"):
            assert character not in document


# ------------------------------------------------------------------------------------------------------ self-contained


def test_the_page_forbids_everything_but_its_own_style_and_refers_to_nothing(lossy: Path) -> None:
    document = report(lossy)
    page = Page(document)
    (policy,) = [meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    for _, attributes in page.tags:
        assert attributes.keys().isdisjoint({"src", "srcset", "data", "xlink:href", "action", "poster", "background"})
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in document
    assert "@import" not in document
    assert "http://" not in re.sub(r"frame\.number[^<]*", "", document)


def test_it_can_be_read_without_seeing_it(lossy: Path) -> None:
    page = Page(report(lossy))
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    headings = [int(name[1]) for name, _ in page.tags if re.fullmatch(r"h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(headings)), "no level is skipped"
    assert len(page.all("caption")) == len(page.all("table")) >= 2
    pictures = [attributes for name, attributes in page.tags if name == "svg"]
    assert len(pictures) >= 3
    assert all(attributes["role"] == "img" and len(attributes["aria-label"] or "") > 30 for attributes in pictures)
    for header in page.all("th"):
        assert header["scope"] in ("col", "row")


def test_it_shows_what_was_found_where_and_what_to_type(lossy: Path) -> None:
    analysis = analyse(lossy)
    findings = find(analysis)
    document = html.unescape(report(lossy))
    for finding in findings:
        assert finding.title in document
        assert f"frame.number in {{{', '.join(map(str, finding.evidence))}}}" in document
        assert finding.remediation[0].command in document
    for heading in ("Findings", "Over time", "Sequence", "Who talks to whom", "Measurements", "The capture"):
        assert f"<h2>{heading}</h2>" in document
    assert analysis.summary.sha256 in document


def test_the_report_of_a_healthy_capture_says_so_and_asks_for_nothing(tmp_path: Path) -> None:
    talk, _ = transfer(1, segments=40)
    document = report(talk.save(tmp_path / "healthy.pcap"))
    assert ">INFO<" in document
    assert "<h2>Findings</h2>" not in document
    assert "First step" not in document


def test_a_capture_without_packets_has_a_page_too(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    assert ">NO PACKETS<" in report(path)


def test_the_largest_report_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "crowd.pcap"
    path.write_bytes(pcap(crowd()))
    assert len(report(path).encode()) < 400_000


def test_no_byte_of_a_payload_is_in_any_file(tmp_path: Path) -> None:
    canary = b"CANARY-5d1e"
    talk, _ = transfer(3, segments=200, downstream=0.05)
    records = [(when, frame.replace(b"x" * len(canary), canary, 1)) for when, frame in talk.records]
    records.append((talk.now, ethernet(ip("10.0.0.1", "10.0.0.2", 17, udp(4000, 4001, canary)))))
    (tmp_path / "canary.pcap").write_bytes(pcap(records))
    for text in report_on(tmp_path / "canary.pcap").texts:
        assert canary.decode() not in text


# ----------------------------------------------------------------------------------------------------------- charts


def test_a_plot_says_in_words_what_it_shows() -> None:
    axis = TimeAxis(CLOCK, 1_000_000_000, 4)
    drawn = time_chart("Throughput", "bit/s", axis, [Line("all", [0.0, 5e6, 1e6, 2e6], 1)])
    assert drawn is not None
    (picture,) = Page(drawn).all("svg")
    assert picture["aria-label"] == "Throughput. all: mean 2 Mbit/s, peak 5 Mbit/s 1.0 s after start. Over 4.0 s."


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e12)), min_size=1, max_size=240),
    st.sampled_from(["", "ms", "bit/s"]),
)
def test_any_values_make_a_plot_inside_its_area_or_none(values: list[float | None], unit: str) -> None:
    drawn = time_chart("Plot", unit, TimeAxis(CLOCK, MS, len(values)), [Line("one", values, 1)])
    if not any(values):
        assert drawn is None
        return
    assert drawn is not None
    (path,) = [attributes["d"] for attributes in Page(drawn).all("path")]
    assert path is not None
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ (-?[\d.e+-]+)", path)]
    assert heights
    assert all(0 <= y <= 160 for y in heights)


def test_many_bins_are_summed_to_points_and_none_is_lost() -> None:
    axis = TimeAxis(0, MS, 239)
    points = axis.summed(tuple(range(239)))
    assert len(points) <= 120
    assert sum(points) == sum(range(239))


def test_multicast_broadcast_and_link_local_traffic_has_no_chart_of_its_own(tmp_path: Path) -> None:
    noise = ("224.0.0.251", "10.0.1.255", "255.255.255.255", "169.254.3.9")
    records = [
        (CLOCK + n * MS, ethernet(ip(source, far, 17, udp(5353, 5353, bytes(900)))))
        for n, far in enumerate(noise * 20)
        for source in ("0.0.0.0" if far == "255.255.255.255" else "10.0.1.4",)
    ]
    (tmp_path / "noise.pcap").write_bytes(pcap(records))
    assert "Throughput of all traffic" in report(tmp_path / "noise.pcap")
    assert "Throughput between" not in report(tmp_path / "noise.pcap")
    talk, _ = transfer(3, segments=100)
    (tmp_path / "both.pcap").write_bytes(pcap(sorted([*talk.records, *records])))
    assert report(tmp_path / "both.pcap").count("<b>Throughput between") == 1


def test_what_repeats_nothing_is_not_plotted(tmp_path: Path) -> None:
    path = Talk().opened().save(tmp_path / "opened.pcap")
    assert "Retransmissions and gaps" not in report(path)
