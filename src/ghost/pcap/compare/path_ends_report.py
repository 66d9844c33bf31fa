"""Two ends of one path as text: what happened between them, in which direction and in which frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ghost.page import Content, Markup, element, facts, section, table
from ghost.pcap import safe_text
from ghost.pcap.compare.path_ends import OneWay, TwoEnds
from ghost.pcap.compare.path_faults import direction, faults_between, size_limit
from ghost.pcap.findings.phrasing import count, duration, rate
from ghost.pcap.model import Occurrences, Statistics
from ghost.pcap.report.capture_facts import headline
from ghost.pcap.safe_text import markdown

_SHOWN = ("kind", "severity", "blame", "confidence", "title", "who", "evidence", "remediation")


def ends_headline(ends: TwoEnds) -> list[str]:
    """Return lines for a terminal: the worst fault with owner and first step, the directions, and the clocks."""
    found = faults_between(ends)
    if not ends.matched:
        silence = "NO COMMON PACKETS: neither capture holds traffic for the other's host while both ran"
        return headline(found) if found else [silence]
    lines = headline(found) if found else ["INFO: No fault between the two ends"]
    ways = sorted(ends.ways, key=lambda way: -way.loss_pct)
    return [*lines, *(f"  {_way(way)}: {_verdict(way)}" for way in ways), f"  {_clock(ends)}"]


def ends_markdown(ends: TwoEnds) -> list[str]:
    """A section of the comparison."""
    lines = ["## The two ends of one path", "", f"{markdown(_clock(ends))}", ""]
    for way in sorted(ends.ways, key=lambda way: -way.loss_pct):
        lines += [f"### {markdown(_way(way))}: {markdown(_verdict(way))}", ""]
        lines += ["| | | Frames |", "| --- | --- | --- |"]
        lines += [f"| {name} | {markdown(value)} | {markdown(frames)} |" for name, value, frames in _rows(way)]
        lines.append("")
    if ends.not_judged:
        lines += [_left_out(ends), ""]
    return lines


def ends_html(ends: TwoEnds) -> Markup | None:
    head = ("", "What", "Frames")
    parts: list[Content] = [element("p", _clock(ends)), facts(_figures(ends))]
    for way in sorted(ends.ways, key=lambda way: -way.loss_pct):
        parts.append(element("h3", f"{_way(way)}: {_verdict(way)}"))
        parts.append(table(f"Packets {_way(way)[0].lower()}{_way(way)[1:]}", head, [[*row] for row in _rows(way)]))
    if ends.not_judged:
        parts.append(element("p", _left_out(ends)))
    return section("The two ends of one path", parts)


def ends_document(ends: TwoEnds) -> dict[str, Any]:
    """The result as a JSON document."""
    clock = ends.clock
    return {
        "matched_packets": ends.matched,
        "clock_offset_ms": None if clock is None else round(clock.offset_ns / 1e6, 6),
        "clock_offset_uncertainty_ms": None
        if clock is None or clock.uncertainty_ns is None
        else round(clock.uncertainty_ns / 1e6, 6),
        "clock_changed_by_at_least_ms": None
        if clock is None or not clock.changed_ns
        else round(clock.changed_ns / 1e6, 6),
        "clock_drift_ppm": None if clock is None else round(clock.drift * 1e6, 3),
        "shortest_round_trip_ms": ends.round_trip_ms,
        "not_judged": ends.not_judged,
        "faults": [
            {key: value for key, value in fault.as_dict().items() if key in _SHOWN} for fault in faults_between(ends)
        ],
        "directions": [_way_document(way) for way in ends.ways],
    }


def _way_document(way: OneWay) -> dict[str, Any]:
    near, far = way.sender, way.receiver
    return {
        "from": near,
        "to": far,
        "senders": list(way.hosts),
        "arrived": way.arrived,
        "lost_between": _found(way.lost),
        "loss_between_pct": round(way.loss_pct, 4),
        **(
            {"largest_arrived_bytes": way.size_limit[0], "smallest_lost_bytes": way.size_limit[1]}
            if way.size_limit
            else {}
        ),
        f"lost_before_{near}": _found(way.lost_before),
        f"lost_after_{far}": _found(way.lost_after),
        "copied": _found(way.copied),
        "reordered": _found(way.reordered),
        "resets_injected": _found(way.resets_injected),
        "appeared": _found(way.appeared),
        "in_other_pieces": way.other_pieces,
        "delay_ms": None if way.delay_ms is None else _statistics(way.delay_ms),
        "hops": way.hops,
        "rewritten": [
            {"what": r.what, "before": r.before, "after": r.after, "count": r.count, "frame": r.frame}
            for r in way.rewritten
        ],
    }


def _found(what: Occurrences) -> dict[str, Any]:
    return {"count": what.count, **({"frames": list(what.frames)} if what else {})}


def _statistics(values: Statistics) -> dict[str, float]:
    return {"min": values.min, "median": values.median, "p95": values.p95, "max": values.max}


# ----------------------------------------------------------------------------------------------------------- words


def _way(way: OneWay) -> str:
    return f"F{direction(way)[1:]}"


def _verdict(way: OneWay) -> str:
    """Return the faults in this direction, worst first."""
    said = [size_limit(way)] if way.size_limit else []
    if way.lost:
        said.append(
            f"{way.lost.count:,} of {count(way.sent, 'packet')} ({rate(way.loss_pct)}) lost between {way.sender} and"
            f" {way.receiver}"
        )
    if way.lost_before:
        said.append(f"{count(way.lost_before.count, 'segment')} lost before {way.sender}")
    if way.lost_after:
        said.append(f"{count(way.lost_after.count, 'segment')} lost after {way.receiver}")
    if way.resets_injected:
        said.append(f"{count(way.resets_injected.count, 'reset')} injected on the path")
    if way.copied:
        said.append(f"{count(way.copied.count, 'packet')} duplicated on the path")
    if way.reordered:
        said.append(f"{count(way.reordered.count, 'packet')} overtaken by others")
    if not said:
        said.append(f"all {count(way.sent, 'packet')} arrived in order")
    if way.delay_ms is not None and way.delay_ms.p95 > 2 * way.delay_ms.min + 5:
        said.append(f"delayed by {duration(way.delay_ms.p95 - way.delay_ms.min)} more than the fastest (p95)")
    return ", ".join(said)


def _clock(ends: TwoEnds) -> str:
    clock = ends.clock
    if clock is None:
        return (
            f"A is {safe_text.name(ends.a)}, B is {safe_text.name(ends.b)};"
            " they have no packet in common, so their clocks cannot be compared."
        )
    drift = f", drifting by {clock.drift * 1e6:+.1f} ppm" if clock.drift else ""
    if clock.changed_ns:
        return (
            f"{count(ends.matched, 'packet')} in both captures; the clocks of A and B do not agree with each other all"
            f" the time: B's changed against A's by {duration(clock.changed_ns / 1e6)} at least, or packets would have"
            " arrived before they left. A clock was set or runs wrong (chronyc tracking), so no delay is reported;"
            " loss does not depend on it."
        )
    if clock.uncertainty_ns is None:
        return (
            f"{count(ends.matched, 'packet')} in both captures, all one way: B's clock and the delay cannot be told"
            f" apart; together they are {clock.offset_ns / 1e6:,.3f} ms{drift}."
        )
    exactly = f"({clock.offset_ns / 1e6:+,.3f} ms, accurate to ±{clock.uncertainty_ns / 1e6:.3g} ms)"
    if abs(clock.offset_ns) <= clock.uncertainty_ns:
        said = f"B's clock agrees with A's {exactly}"
    else:
        by = f"{duration(abs(clock.offset_ns) / 1e6)} {'ahead of' if clock.offset_ns > 0 else 'behind'}"
        said = f"B's clock is {by} A's {exactly}"
    return f"{count(ends.matched, 'packet')} in both captures; {said}{drift}."


def _left_out(ends: TwoEnds) -> str:
    return f"{count(ends.not_judged, 'packet')} not judged: the other capture was not running then."


def _figures(ends: TwoEnds) -> Iterator[tuple[str, str]]:
    yield "Packets in both", f"{ends.matched:,}"
    if ends.clock is not None:
        steady = f"{ends.clock.offset_ns / 1e6:+,.3f} ms"
        changed = f"changed by {duration(ends.clock.changed_ns / 1e6)} at least"
        yield "Clock of B", changed if ends.clock.changed_ns else steady
    if ends.round_trip_ms is not None:
        yield "Shortest round trip", duration(ends.round_trip_ms)
    for way in ends.ways:
        yield f"Lost, {way.sender} to {way.receiver}", rate(way.loss_pct) if way.lost else "none"


def _rows(way: OneWay) -> Iterator[tuple[str, str, str]]:
    """Name, value, frames."""
    near, far = way.sender, way.receiver
    yield "Arrived", f"{way.arrived:,} of {way.sent:,}", ""
    for name, what, end in (
        (f"Lost between {near} and {far}", way.lost, near),
        (f"Lost before {near}", way.lost_before, near),
        (f"Lost after {far}", way.lost_after, far),
        ("Duplicated on the path", way.copied, far),
        ("Overtaken on the path", way.reordered, far),
        ("Resets injected on the path", way.resets_injected, far),
        (f"Seen only at {far}", way.appeared, far),
    ):
        if what or name.startswith("Lost"):
            yield name, f"{what.count:,}", f"{end}: {', '.join(map(str, what.frames))}" if what else ""
    if way.other_pieces:
        yield "Resegmented on the path", f"{way.other_pieces:,} (segmentation offload)", ""
    if way.delay_ms is not None:
        d = way.delay_ms
        yield (
            "One-way delay",
            (
                f"shortest {duration(d.min)}, median {duration(d.median)}, p95 {duration(d.p95)},"
                f" longest {duration(d.max)}"
            ),
            "",
        )
    if way.hops is not None:
        yield "Routers on the path", f"{way.hops}" if way.hops >= 0 else f"{-way.hops} more TTL at {far}", ""
    for r in way.rewritten:
        yield f"{r.what} rewritten", f"{r.before} to {r.after}, {count(r.count, 'packet')}", f"{far}: {r.frame}"
