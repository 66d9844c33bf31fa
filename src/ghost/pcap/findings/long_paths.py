"""Rule for long round trips: by handshakes; where there are few, by the fastest ACKs of a session or by pings."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import median
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, Path, groups_of
from ghost.pcap.findings.path_changes import path_change_findings
from ghost.pcap.findings.phrasing import count, duration
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Floats, Mask, StreamRows
from ghost.pcap.model import EchoPath, Statistics, Stream


@dataclass(frozen=True)
class _RoundTrips:
    """Round trips between two hosts, ms."""

    client: str
    server: str
    count: int
    what: str
    fastest: float
    middle: float
    slowest: float
    frames: tuple[int, ...]
    times: tuple[int, int] | None = None
    """When the first and the last of them were seen, ns since 1970; None where the frames tell it."""
    near: str = ""
    """Which end the capture point is far from, if that is known."""


def delay_findings(seen: Observed) -> Iterator[Finding]:
    c = seen.columns
    trips = c.syn_to_syn_ack_ms + c.syn_ack_to_ack_ms
    clean = ~np.isnan(trips) & (c.syn_retransmissions == 0)
    known: set[Path] = set()
    for found in (*_by_handshake(seen, trips, clean), *_by_ping(seen)):
        path = (found.client, found.server)
        if path not in known and found.middle >= threshold("delay.handshake_ms"):
            known.add(path)
            yield _long_path(found)
    for pings in _jittering_pings(seen):
        if pings.rtt_ms is not None and (pings.src, pings.dst) not in known:
            known.add((pings.src, pings.dst))
            yield _jitter(pings, pings.rtt_ms)
    yield from path_change_findings(seen, trips, clean, known)


def _by_handshake(seen: Observed, trips: Floats, clean: Mask) -> Iterator[_RoundTrips]:
    c = seen.columns
    slow = clean & (trips >= threshold("delay.handshake_ms"))
    pairs = groups_of(np.flatnonzero(slow), c.hosts[:, CLIENT], c.hosts[:, SERVER])
    for (client, server), rows in islice(pairs, MOST_GROUPS):
        every = np.flatnonzero(clean & (c.hosts[:, CLIENT] == client) & (c.hosts[:, SERVER] == server))
        middle, there = median(trips[every]), median(c.syn_to_syn_ack_ms[every])
        near = "the server" if there >= middle / 2 else "the client"
        examples = seen.worst(rows, (trips[rows] * 1000).astype(np.int64))
        frames = tuple(stream.first_frame for stream in examples)
        ends = c.host(client), c.host(server)
        if len(every) >= threshold("delay.min_handshakes"):
            times = float(trips[every].min()), middle, float(trips[every].max())
            when = int(c.first_ns[every].min()), int(c.first_ns[every].max())
            yield _RoundTrips(*ends, len(every), count(len(every), "TCP handshake"), *times, frames, when, near)
        else:
            yield from _by_acknowledgement(ends, examples, every, trips, near)


def _by_acknowledgement(
    ends: Path, streams: Collection[Stream], rows: StreamRows, trips: Floats, near: str
) -> Iterator[_RoundTrips]:
    """Yield what the fastest ACKs say, each way: a delayed ACK is no long path, one that is never faster is."""
    for stream in streams:
        times = [side.ack_rtt_ms for side in (stream.client, stream.server) if side.ack_rtt_ms is not None]
        number = max((each.count for each in times), default=0)
        if number >= threshold("delay.min_acknowledgements"):
            fastest = sum(each.min for each in times)
            if fastest >= threshold("delay.alone_ms"):
                what = f"{count(len(rows), 'TCP handshake')} and {number} acknowledgements"
                slowest = max(float(trips[rows].max()), *(each.max for each in times))
                yield _RoundTrips(
                    *ends, number, what, fastest, float(trips[rows].min()), slowest, (stream.first_frame,), near=near
                )
                return


def _by_ping(seen: Observed) -> Iterator[_RoundTrips]:
    for path in seen.analysis.icmp.echo_paths if seen.analysis.icmp else ():
        trip = path.rtt_ms
        if trip is not None and trip.count >= threshold("delay.min_handshakes"):
            what = count(trip.count, "ping")
            times = trip.min, trip.median, trip.max
            ends = path.src, path.dst
            when = path.first_request_ns, path.last_request_ns
            yield _RoundTrips(*ends, trip.count, what, *times, (path.first_frame,), times=when)


def _jittering_pings(seen: Observed) -> Iterator[EchoPath]:
    """Yield pings of which one in twenty takes many times as long as the fastest: a queue, or a path that changes."""
    for path in seen.analysis.icmp.echo_paths if seen.analysis.icmp else ():
        trip = path.rtt_ms
        if (
            trip is not None
            and trip.count >= threshold("delay.min_jittering_pings")
            and trip.p95 >= threshold("delay.longer_ratio") * trip.min
            and trip.p95 - trip.min >= threshold("delay.longer_ms")
        ):
            yield path


def _jitter(path: EchoPath, trip: Statistics) -> Finding:
    return make_finding(
        "delay",
        severity="MEDIUM",
        title=f"Round trips between {path.src} and {path.dst} vary from {duration(trip.min)} to {duration(trip.max)}",
        detail=f"{count(trip.count, 'ping')}: median {duration(trip.median)}, one in twenty takes over"
        f" {duration(trip.p95)}: packets queue on the way, or take ways of different length.",
        who=Who(path.src, path.dst),
        evidence=[(path.first_frame,)],
        confidence="medium",
        weight=trip.count,
        measured={"samples": trip.count, "median_rtt_ms": round(trip.median, 1), "p95_rtt_ms": round(trip.p95, 1)},
        times=(path.first_request_ns, path.last_request_ns),
    )


def _long_path(found: _RoundTrips) -> Finding:
    where = f" Most of it lies between the capture point and {found.near}." if found.near else ""
    return make_finding(
        "delay",
        severity="MEDIUM",
        title=f"A round trip between {found.client} and {found.server} takes {duration(found.middle)}",
        detail=f"Median of {found.what}; fastest {duration(found.fastest)}, slowest {duration(found.slowest)}.{where}",
        who=Who(found.client, found.server),
        evidence=[found.frames],
        times=found.times,
        confidence="medium",
        weight=found.count,
        measured={
            "samples": found.count,
            "median_rtt_ms": round(found.middle, 1),
            "slowest_ms": round(found.slowest, 1),
        },
    )
