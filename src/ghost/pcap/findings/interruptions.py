"""Rule for interruptions: for seconds nothing passes between hosts, then they go on. A rate of loss would mislead.

An end that falls silent for good is in `outages`. Here it is heard again: what was sent to it meanwhile was repeated by
timers, and nearly all that was lost lies in that one silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import hosts_of, merged_finding
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, Traffic, sent_by
from ghost.pcap.findings.phrasing import FRAMES, count, duration, span
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import StreamRows

Window: TypeAlias = tuple[int, int]
"""When the receiver was last heard, and first again, ns since 1970."""
_MS = 1_000_000


def interruption(seen: Observed, way: Traffic) -> Window | None:
    """Return the silence in which nearly all was lost that this direction lost; None if there is no such silence."""
    c, clock = seen.columns, seen.analysis.clock
    rows, sides = seen.of_path((way.source, way.destination))
    lost = c.lost()[rows, sides]
    rows, sides, lost = rows[lost > 0], sides[lost > 0], lost[lost > 0]
    if clock is None or not len(rows):
        return None
    begin = c.sides("silent_from_ns")[rows, 1 - sides]
    end = begin + c.sides("longest_silence_ms")[rows, 1 - sides] * _MS
    last = np.array([clock.at(int(frame)) if frame else 0 for frame in c.sides("last_lost_frame")[rows, sides]])
    first = np.array([clock.at(int(frame)) if frame else 0 for frame in c.sides("first_lost_frame")[rows, sides]])
    margin = threshold("rto_loss.together_ms") * _MS
    within = (begin > 0) & (end - begin >= threshold("interruption.min_silence_ms") * _MS)
    within &= (first >= begin - margin) & (last <= end + margin)
    within &= c.sides("rto_retransmissions")[rows, sides] >= threshold("rto_loss.min_repeats_in_vain")
    if not within.any() or lost[within].sum() < threshold("interruption.min_share") * lost.sum():
        return None
    since, until = int(begin[within].max()), int(end[within].min())
    if _others_went_on(seen, way, rows[within], since, until):
        return None
    return (since, until) if until - since >= threshold("interruption.min_silence_ms") * _MS else None


def _others_went_on(seen: Observed, way: Traffic, rows: StreamRows, since: int, until: int) -> bool:
    """Return whether the silent host was heard meanwhile on another connection of the two: one path of several, or a
    device that keeps state, failed a single one."""
    c, (every, sides) = seen.columns, seen.of_path((way.source, way.destination))
    margin = threshold("rto_loss.together_ms") * _MS
    heard = c.sides("packets")[every, 1 - sides] > 0
    last = c.sides("last_ns")[every, 1 - sides]
    meanwhile = (c.first_ns[every] > since + margin) & (c.first_ns[every] < until - margin)
    meanwhile |= (last > since + margin) & (last < until - margin)
    return bool((heard & meanwhile & ~among(every, rows)).any())


def interruption_findings(seen: Observed, windows: Mapping[Traffic, Window]) -> Iterator[Finding]:
    """Yield one finding for the directions, either way, that share a host and a moment."""
    make = partial(_interrupted, seen, windows)
    for some in _at_one_moment(windows):
        while some:
            shared = Counter(host for way in some for host in (way.source, way.destination)).most_common(1)[0][0]
            mine = [way for way in some if shared in (way.source, way.destination)]
            some = [way for way in some if way not in mine]
            yield merged_finding(mine, partial(make, shared), lambda way: Who(way.source, way.destination))


def _at_one_moment(windows: Mapping[Traffic, Window]) -> Iterator[list[Traffic]]:
    """Yield the directions whose silences overlap."""
    some: list[Traffic] = []
    until = 0
    for way, (begin, end) in sorted(windows.items(), key=lambda item: item[1]):
        if some and begin > until:
            yield some
            some = []
        until = min(until, end) if some else end
        some.append(way)
    if some:
        yield some


def _interrupted(seen: Observed, windows: Mapping[Traffic, Window], shared: str, ways: Sequence[Traffic]) -> Finding:
    ways = sorted(ways, key=lambda way: -way.lost)
    worst = ways[0]
    first, last = max(windows[way][0] for way in ways), min(windows[way][1] for way in ways)
    lasted = (last - first) / _MS
    others = {way.source if way.destination == shared else way.destination for way in ways}
    serious = lasted >= threshold("interruption.high_ms") or len(others) >= threshold("interruption.high_hosts")
    rows, sides = seen.of_path((worst.source, worst.destination))
    examples = seen.worst(rows, seen.columns.lost()[rows, sides], FRAMES)
    return make_finding(
        "rto_loss_interruption",
        severity="HIGH" if serious else "MEDIUM",
        title=f"Nothing passed between {shared} and {hosts_of(sorted(others))} for {duration(lasted)},"
        f" {span(first, last)}",
        detail=f"Last heard before, and heard again after that time; {count(sum(way.lost for way in ways), 'segment')}"
        f" sent meanwhile were lost, most by timers in vain. Before and after it the path works.",
        who=Who(worst.source, worst.destination, examples[0].server.endpoint.port if examples else None),
        evidence=(side.rto_retransmissions.frames for side in sent_by(worst.source, examples)),
        confidence="high" if len(others) > 1 or len(rows) > 1 else "medium",
        weight=sum(way.lost for way in ways),
        measured={"lost": sum(way.lost for way in ways), "interrupted_ms": round(lasted)}
        | ({"paths": len(ways)} if len(ways) > 1 else {}),
        times=(first, last),
    )
