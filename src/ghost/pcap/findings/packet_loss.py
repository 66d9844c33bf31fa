"""Rule for lost segments, by direction between hosts; directions with one cause are one finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from ghost.pcap.array_types import Array
from ghost.pcap.findings.common_causes import group_paths, hosts_of, merged_finding, representative_rows
from ghost.pcap.findings.finding import SEVERITIES, Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.interruptions import interruption, interruption_findings
from ghost.pcap.findings.observations import Observed, Traffic
from ghost.pcap.findings.phrasing import FRAMES, duration, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import StreamRows


def loss_findings(seen: Observed, lossy: Sequence[Traffic]) -> Iterator[Finding]:
    """Yield one finding for directions that share an end and lose segments on the same side of the capture point at a
    similar rate; directions on which nothing passed in one window are an interruption, at whatever rate."""
    interrupted = {traffic: window for traffic in lossy if (window := interruption(seen, traffic)) is not None}
    yield from interruption_findings(seen, interrupted)
    lossy = [traffic for traffic in lossy if traffic not in interrupted]
    ways = [(traffic.source, traffic.destination) for traffic in lossy]
    before = [int(traffic.lost_upstream > traffic.lost_downstream) for traffic in lossy]
    for places in group_paths(seen, ways, before):
        for some in _alike([lossy[place] for place in places]):
            yield merged_finding(some, partial(_lossy_ways, seen), partial(_who, seen))


def _who(seen: Observed, way: Traffic) -> Who:
    rows, sides = seen.of_path((way.source, way.destination))
    busiest = rows[np.argmax(seen.columns.lost()[rows, sides])]
    return Who(way.source, way.destination, int(seen.columns.ports[busiest, 1]))


def _alike(lossy: list[Traffic]) -> Iterator[list[Traffic]]:
    """Yield the directions, split where one loses many times as much as the next."""
    by_rate = sorted(lossy, key=lambda traffic: -traffic.loss_pct)
    start = 0
    for place in range(1, len(by_rate) + 1):
        if place == len(by_rate) or by_rate[place - 1].loss_pct > threshold("loss.alike") * by_rate[place].loss_pct:
            yield by_rate[start:place]
            start = place


def _sum_of(ways: Sequence[Traffic]) -> Traffic:
    """Return the sum of several directions, with the hosts of the first."""
    numbers = [field.name for field in fields(Traffic) if field.name not in ("source", "destination")]
    return replace(ways[0], **{name: sum(getattr(way, name) for way in ways) for name in numbers})


def _lossy_ways(seen: Observed, ways: Sequence[Traffic]) -> Finding:
    """Return the finding for lossy directions; of several, `who` is the one that lost most."""
    ways = sorted(ways, key=lambda way: -way.lost)
    worst, traffic = ways[0], _sum_of(ways)
    by_timer = (
        traffic.rto >= threshold("rto_loss.min_timeouts")
        and percent(traffic.rto, traffic.retransmissions) >= threshold("rto_loss.share_pct")
        and traffic.duplicate_acks_back < traffic.rto
    )
    kind = "rto_loss" if by_timer else "loss"
    many_copies = seen.copies_pct >= threshold("duplicate_packets.doubtful_loss_pct")
    certain = _certain(seen, traffic)
    doubtful = many_copies and (
        certain < threshold("loss.min_segments") or percent(certain, traffic.sent) < threshold("loss.min_pct")
    )
    severity = min((_severity(seen, way, kind) for way in (traffic, *ways)), key=SEVERITIES.index)
    back = [way for one in ways if (way := seen.traffic(one.destination, one.source)) is not None]
    other_way = f"{sum(way.lost for way in back)} of {sum(way.sent for way in back):,}"
    if not any(way.sent for way in back):
        other_way = "nothing sent"
    fast = min(traffic.fast, traffic.retransmissions - traffic.rto)
    repairs = f"{fast} fast, {traffic.rto} after a timeout or within a recovery"
    left_out = ", copies left out" if many_copies else ""
    doubt = f" Packets were captured more than once: {traffic.doubtful} of these may be copies." if doubtful else ""
    source, destination = (hosts_of([getattr(way, end) for way in ways]) for end in ("source", "destination"))
    mostly = ""
    if len(ways) > 1:
        mostly = f" Most from {worst.source} to {worst.destination}: {worst.lost} of {worst.sent:,}."
        if seen.directions_skipped:
            mostly += f" {seen.directions_skipped:,} more directions with loss or delay were not analysed."
    order, sides = worst_streams(seen, ways)
    who = _who(seen, worst)
    first, last = lost_between(seen, ways)
    return make_finding(
        kind,
        severity="LOW" if doubtful else severity,
        title=f"{rate(traffic.loss_pct)} of the segments from {source} to {destination} are lost"
        + (" and repaired only after timeouts" if by_timer else "")
        + (f", all within {duration((last - first) / 1e6)}" if is_burst(traffic.lost, first, last) else ""),
        detail=f"{traffic.lost} of {traffic.sent:,} segments lost {_where(traffic)};"
        f" {traffic.retransmissions} flagged as retransmissions ({repairs}{left_out})."
        f" Other direction: {other_way} lost.{mostly}{doubt}",
        who=who,
        evidence=(
            (*side.lost_downstream.frames, *side.lost_upstream.frames)
            for stream, at in zip(seen.columns.make(order), sides.tolist(), strict=True)
            for side in ((stream.client, stream.server)[at],)
        ),
        confidence="low" if doubtful else "high" if _is_well_measured(certain) else "medium",
        weight=traffic.lost,
        measured={
            "retransmissions": traffic.retransmissions,
            "data_segments": traffic.data_segments,
            "loss_pct": round(traffic.loss_pct, 2),
            "lost_before_capture_point": traffic.lost_upstream,
            "lost_after_capture_point": traffic.lost_downstream,
            "rto": traffic.rto,
        }
        | ({"paths": len(ways)} if len(ways) > 1 else {}),
        times=(first, last),
    )


def worst_streams(seen: Observed, ways: Sequence[Traffic]) -> tuple[StreamRows, Array]:
    """Return the streams that lost most, of several hosts, and the sending side of each."""
    found = [seen.of_path((way.source, way.destination)) for way in ways]
    rows, sides = (np.concatenate(part) for part in zip(*found, strict=True))
    sender = dict(zip(rows.tolist(), sides.tolist(), strict=True))
    order = representative_rows(seen, rows, seen.columns.lost()[rows, sides])[:FRAMES]
    return order, np.array([sender[row] for row in order.tolist()], np.int64)


def lost_between(seen: Observed, ways: Sequence[Traffic]) -> tuple[int, int]:
    """Return the times of the first and the last segment lost on these directions, ns since 1970."""
    c, clock = seen.columns, seen.analysis.clock
    frames: list[int] = []
    for way in ways:
        rows, sides = seen.of_path((way.source, way.destination))
        for name in ("first_lost_frame", "last_lost_frame"):
            frames += c.sides(name)[rows, sides].tolist()
    times = [clock.at(frame) for frame in frames if frame] if clock else []
    return (min(times), max(times)) if times else (seen.first_ns, seen.last_ns)


def is_burst(lost: int, first_ns: int, last_ns: int) -> bool:
    """Return whether so many segments were lost so close together that a queue or a link failed for a moment."""
    return lost >= threshold("loss.burst_segments") and (last_ns - first_ns) / 1e6 <= threshold("loss.burst_ms")


def _certain(seen: Observed, traffic: Traffic) -> int:
    """Return the losses that cannot be copies of packets."""
    many_copies = seen.copies_pct >= threshold("duplicate_packets.doubtful_loss_pct")
    return traffic.lost - min(traffic.doubtful, traffic.lost) if many_copies else traffic.lost


def _is_well_measured(lost: int) -> bool:
    return lost >= 3 * threshold("loss.min_segments")


def _severity(seen: Observed, traffic: Traffic, kind: str) -> str:
    certain = _certain(seen, traffic)
    share = percent(certain, traffic.sent)
    if share >= threshold("loss.high_pct") and (kind == "rto_loss" or _is_well_measured(certain)):
        return "HIGH"  # three of forty may be one of a hundred, and must not hide what the other way lost
    return "MEDIUM" if share >= threshold("loss.medium_pct") else "LOW"


def _where(traffic: Traffic) -> str:
    if traffic.lost_upstream and traffic.lost_downstream:
        return f"({traffic.lost_upstream} before and {traffic.lost_downstream} after the capture point)"
    if traffic.lost_upstream:
        return "between the sender and the capture point"
    return "between the capture point and the receiver"
