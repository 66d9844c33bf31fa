"""SYN floods, distinguished from many real clients of a failed service.

Both leave hundreds of unanswered SYNs. A real client repeats its SYN after a second; before that nothing is known.
Programs with shorter timeouts come back: the same few sources at the pace of a program, from ordinary sockets. Flood
SYNs are never repeated, and often lack options that every stack sends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap.array_queries import among, distinct, first_and_last
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, groups_of
from ghost.pcap.findings.phrasing import at, count, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def floods(seen: Observed) -> Iterator[tuple[Finding, StreamRows]]:
    """Yield floods with their streams."""
    for (service,), rows in groups_of(np.flatnonzero(seen.only_syn | _half_open(seen)), seen.service):
        if len(rows) < threshold("syn_flood.min_unanswered_syn"):
            return  # the largest group comes first
        if _is_flood(seen, service, rows):
            yield _flood(seen, service, rows), rows


def _half_open(seen: Observed) -> Mask:
    """Return bool[n]: the server answered and the client sent nothing more."""
    c = seen.columns
    result: Mask = (
        (c.sides("syn_ack")[:, SERVER] > 0)
        & (c.sides("syn")[:, CLIENT] > 0)
        & (c.handshake == "incomplete")
        & (c.sides("data_segments")[:, CLIENT] == 0)
    )
    return result


def seconds_of(seen: Observed, rows: StreamRows) -> float:
    """Return seconds from the first packet to the last of some streams."""
    c = seen.columns
    return max(float(c.last_ns[rows].max() - c.first_ns[rows].min()) / 1e9, 0.001)


def _pace(seen: Observed, rows: StreamRows) -> float:
    """Return new connections per second."""
    began = seen.columns.first_ns[rows]
    return len(rows) / max(float(began.max() - began.min()) / 1e9, 0.001) if len(rows) else 0.0


def _is_flood(seen: Observed, service: int, rows: StreamRows) -> bool:
    c = seen.columns
    attempted = int(((c.sides("syn")[:, CLIENT] > 0) & (seen.service == service)).sum())
    completed = int((seen.served & (seen.service == service)).sum())
    if percent(completed, attempted) > threshold("syn_flood.max_completed_pct"):
        return False
    crafted = _is_crafted(seen, rows)
    could_repeat = (seen.last_ns - c.first_ns[rows]) / 1e6 >= threshold("syn_flood.repeated_after_ms")
    judged = rows[crafted | could_repeat]
    repeated = int((c.syn_retransmissions[judged] > 0).sum())
    if percent(repeated, len(judged)) > threshold("syn_flood.max_repeated_pct"):
        return False
    beyond_doubt = threshold("syn_flood.beyond_doubt_per_second")
    if len(rows) >= beyond_doubt and _pace(seen, rows) >= beyond_doubt:
        return True
    judged = judged[~_from_programs(seen, judged)]
    enough = len(judged) >= threshold("syn_flood.min_unanswered_syn")
    return enough and _pace(seen, judged) >= threshold("syn_flood.min_per_second")


def _is_crafted(seen: Observed, rows: StreamRows) -> Mask:
    """Return whether the SYNs lack the MSS option, which every stack in use sends (RFC 9293, 3.7.1)."""
    result: Mask = seen.columns.sides("mss")[rows, CLIENT] <= 0
    return result


def _from_programs(seen: Observed, rows: StreamRows) -> Mask:
    """Return unanswered attempts of sources that retry at the pace of a program, or from ordinary sockets.

    An unacknowledged answer shows a broken return path only for hosts that talk with others.
    """
    c = seen.columns
    if not len(rows):
        return np.zeros(0, np.bool_)
    sources, which, tries = np.unique(c.hosts[rows, CLIENT], return_inverse=True, return_counts=True)
    which = which.ravel()
    first, last = first_and_last(c.first_ns[rows], which, len(sources))
    lowest_port = np.full(len(sources), 1 << 16)
    np.minimum.at(lowest_port, which, c.ports[rows, CLIENT])
    again = tries >= threshold("syn_flood.comes_back")
    pace = tries / np.maximum((last - first) / 1e9, 1.0)
    known = among(sources, distinct(c.hosts[seen.served].ravel()))
    ordinary = known | (lowest_port >= threshold("syn_flood.lowest_port"))
    program = again & (pace < threshold("syn_flood.min_per_second"))
    unanswered = seen.only_syn[rows]
    result: Mask = ~_is_crafted(seen, rows) & np.where(
        unanswered, (program | (again & ordinary))[which], (program & known)[which]
    )
    return result


def _flood(seen: Observed, service: int, rows: StreamRows) -> Finding:
    host, port = seen.name_of(service)
    c = seen.columns
    clients, tries = np.unique(c.hosts[rows, CLIENT], return_counts=True)
    source = c.host(int(clients[np.argmax(tries)]))
    seconds = seconds_of(seen, rows)
    completed = int((seen.served & (seen.service == service)).sum())
    return make_finding(
        "syn_flood",
        severity="CRITICAL",
        title=f"SYN flood against {at(host, port)}",
        detail=f"{len(rows):,} connections from {count(len(clients), 'address', 'addresses')} opened and never"
        f" completed in {seconds:.1f} s ({len(rows) / seconds:.0f} a second); {completed} completed.",
        who=Who(source, host, port),
        evidence=seen.frames(rows, "syn", CLIENT),
        confidence="high" if len(clients) > 1 else "medium",
        weight=len(rows),
        measured={"syn": len(rows), "sources": len(clients), "completed": completed},
    )
