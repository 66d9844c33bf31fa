"""A conversation drawn as a ladder: one row a packet, an arrow between the two ends. A table, so that it can be read
aloud, printed and searched."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.page import Markup, element, scrolling
from ghost.pcap.findings.phrasing import count, duration
from ghost.pcap.report.packet_arrows import Arrow, Ladder


def ladder_diagram(ladder: Ladder) -> Markup:
    caption = f"{ladder.protocol} between {ladder.left} and {ladder.right}, for {ladder.about}"
    ends = element(
        "th",
        element("span", ladder.left, class_="end"), element("span", ladder.right, class_="end"),
        scope="col", class_="ends",
    )  # fmt: skip
    head = element(
        "tr",
        element("th", "Frame", scope="col", class_="f"),
        element("th", "After", scope="col", class_="t"),
        ends,
        element("th", "What it shows", scope="col"),
    )
    return scrolling(
        "Sequence diagram",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", list(_rows(ladder))),
            class_="ladder",
        ),
    )


def _rows(ladder: Ladder) -> Iterator[Markup]:
    for arrow in ladder.arrows:
        if arrow.after_unread:
            yield _break("a part of the capture that was not read")
        elif arrow.skipped:
            yield _break(f"{count(arrow.skipped, 'packet')} of this conversation not shown")
        yield _row(arrow, ladder)


def _row(arrow: Arrow, ladder: Ladder) -> Markup:
    sender = ladder.left if arrow.from_left else ladder.right
    way = "r" if arrow.from_left else "l"
    line, point = element("i"), element("b", ("▶" if arrow.from_left else "◀") if arrow.arrives else "✕")
    shaft = [line, point] if arrow.from_left else [point, line]
    spoken = f"from {sender}" + ("" if arrow.arrives else ", no answer" if "no answer" in arrow.note else ", lost")
    wire = element(
        "td",
        element("span", arrow.label),
        element("div", shaft, class_="arrow" if arrow.arrives else "arrow lost", role="img", aria_label=spoken),
        class_=f"wire {way}",
    )
    return element(
        "tr",
        element("td", arrow.frame or "–", class_="f"),
        element(
            "td", f"+{duration(arrow.delta_ms)}" if arrow.delta_ms >= 0 else f"−{duration(-arrow.delta_ms)}", class_="t"
        ),
        wire,
        element("td", ("evidence: " if arrow.evidence else "") + arrow.note or None, class_="note"),
        class_=f"{arrow.tone} hit" if arrow.evidence else arrow.tone,
    )


def _break(words: str) -> Markup:
    return element("tr", element("td", f"⋮ {words} ⋮", colspan=4), class_="gap")
