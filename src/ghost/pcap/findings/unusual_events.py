"""What looks unusual in a capture although no rule calls it a fault: a person decides whether it matters.

A rule speaks when numbers prove something. Whoever reads "no fault recognised" still wants to know what was slowest,
what was lost and who gave up, since the complaint may be about just that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import distinct, median
from ghost.pcap.findings.finding import Finding
from ghost.pcap.findings.observations import Observed, groups_of
from ghost.pcap.findings.path_changes import changed_at
from ghost.pcap.findings.phrasing import at, clock, count, duration, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER

MOST = 8
"""More are no list that anybody reads."""
_MOST_OF_A_KIND = 3
_MS = 1_000_000


def unusual(seen: Observed, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return sentences, what keeps people waiting first; what a finding says of the same host is left out."""
    told = {(finding.kind, finding.who.dst) for finding in findings}
    kinds = (
        _slow_answers(seen, told),
        _slow_lookups(seen, told),
        _half_closed(seen),
        _round_trips(seen, told),
        _losses(seen, told),
        _silent_neighbours(seen, told),
        _unanswered(seen, told),
        _acknowledgements(seen, told),
        _aborts(seen, told),
        _client_errors(seen, told),
        _alerts(seen, told),
        _late_openings(seen, told),
    )
    sentences = [sentence for kind in kinds for sentence in islice(kind, _MOST_OF_A_KIND)]
    return tuple(sentences[:MOST])


_Told = set[tuple[str, str]]


def _slow_answers(seen: Observed, told: _Told) -> Iterator[str]:
    c = seen.columns
    rows, times = c.samples("response_ms")
    late = rows[times >= threshold("unusual.answer_ms")]
    for (service,), some in groups_of(distinct(late), seen.service):
        host, port = seen.name_of(service)
        if {("slow_application", host), ("http_slow", host)} & told:
            continue
        mine = times[seen.service[rows] == service]
        typical, slowest = median(mine), float(mine.max())
        if (
            len(mine) > 1
            and typical < threshold("unusual.answer_ms")
            and slowest < threshold("unusual.ratio") * typical
        ):
            continue
        worst = some[np.argmax([times[rows == row].max() for row in some.tolist()])]
        beside = f" (median of {len(mine)}: {duration(typical)})" if len(mine) > 1 else ""
        since = clock(int(c.first_ns[worst]))
        yield f"slowest answer of {at(host, port)}: {duration(slowest)}{beside}, on a connection begun {since}"


def _slow_lookups(seen: Observed, told: _Told) -> Iterator[str]:
    dns = seen.analysis.dns
    for query in dns.slow[:1] if dns else ():
        if ("dns_slow", query.server) not in told and (query.latency_ms or 0) >= threshold("unusual.lookup_ms"):
            yield f"slowest DNS answer of {query.server}: {duration(query.latency_ms or 0)} (frame {query.frame})"
    if dns and dns.recovered_total:
        again = count(dns.recovered_total, "lookup")
        yield f"{again} failed or stayed unanswered at first, and a later one succeeded"


def _half_closed(seen: Observed) -> Iterator[str]:
    """One side closed, and the other neither answered nor closed."""
    c = seen.columns
    fin = c.sides("fin") > 0
    alone = fin[:, CLIENT] & ~fin[:, SERVER] & ~(c.sides("rst") > 0).any(axis=1)
    waited = (seen.last_ns - c.last_ns) / _MS
    rows = np.flatnonzero(alone & (waited >= threshold("unusual.half_closed_ms")))
    for (service,), some in groups_of(rows, seen.service):
        number = count(len(some), "connection")
        yield f"{at(*seen.name_of(service))} left {number} half-closed for up to {duration(float(waited[some].max()))}"


def _round_trips(seen: Observed, told: _Told) -> Iterator[str]:
    c = seen.columns
    trips = c.syn_to_syn_ack_ms + c.syn_ack_to_ack_ms
    usual = np.full(len(c.addresses) or 1, np.inf)  # of each server, the fastest
    known = ~np.isnan(trips)
    np.minimum.at(usual, c.hosts[known, SERVER], trips[known])
    varies = (trips >= threshold("unusual.ratio") * usual[c.hosts[:, SERVER]]) & (
        trips >= threshold("unusual.varies_ms")
    )
    slow = np.flatnonzero((trips >= threshold("unusual.round_trip_ms")) | varies)
    for (client, server), some in groups_of(slow, c.hosts[:, CLIENT], c.hosts[:, SERVER]):
        if {("delay", c.host(server)), ("bufferbloat", c.host(server))} & told:
            continue
        every = trips[(c.hosts[:, CLIENT] == client) & (c.hosts[:, SERVER] == server)]
        every = every[~np.isnan(every)]
        slowest = f"{duration(float(every.max()))} ({count(len(some), 'slow handshake')})"
        ends = f"{c.host(client)} and {c.host(server)}"
        yield f"round trips between {ends}: median {duration(median(every))}, slowest {slowest}"
    for path in seen.analysis.icmp.echo_paths if seen.analysis.icmp else ():
        trip = path.rtt_ms
        if trip and ("delay", path.dst) not in told and trip.max >= threshold("unusual.round_trip_ms"):
            spread = f"{duration(trip.min)} to {duration(trip.max)}"
            yield f"pings of {path.dst} take {spread} (median {duration(trip.median)})"


def _losses(seen: Observed, told: _Told) -> Iterator[str]:
    for way in seen.impaired_directions():
        if way.lost >= 2 and not {(kind, way.destination) for kind in ("loss", "rto_loss", "mtu_black_hole")} & told:
            yield f"{way.lost} of {way.sent:,} segments from {way.source} to {way.destination} lost and sent again"


def _silent_neighbours(seen: Observed, told: _Told) -> Iterator[str]:
    """Addresses of the segment that are asked for again and again; their replies may only be invisible here."""
    for silent in seen.unanswered_requests:
        if silent.at_the_end >= threshold("host_down.min_requests") and ("host_down", silent.ip) not in told:
            requests = count(silent.at_the_end, "ARP or neighbour request")
            yield f"{requests} for {silent.ip} without a reply captured here"


def _unanswered(seen: Observed, told: _Told) -> Iterator[str]:
    """Pings and datagrams to one host that are asked again and never answered."""
    icmp, udp = seen.analysis.icmp, seen.analysis.udp
    for path in icmp.echo_paths if icmp else ():
        if path.unmatched and not {(kind, path.dst) for kind in ("loss", "no_answer")} & told:
            yield f"{path.unmatched} of {path.requests} pings of {path.dst} by {path.src} without a reply"
    for talk in udp.unanswered if udp else ():
        if (
            talk.client_packets >= threshold("no_answer.min_requests")
            and ("no_answer", talk.server.address) not in told
        ):
            target = at(talk.server.address, talk.server.port)
            yield f"{count(talk.client_packets, 'datagram')} of {talk.client.address} to {target} without an answer"


def _acknowledgements(seen: Observed, told: _Told) -> Iterator[str]:
    """One moment from which on acknowledgements take many times as long."""
    series = seen.analysis.series
    bins = [(n, trip) for n, trip in enumerate(series.round_trips) if trip is not None] if series else []
    at = changed_at(np.array([trip.p95 for _, trip in bins]))
    if series is not None and at is not None and not any(kind in ("delay", "bufferbloat") for kind, _ in told):
        before, after = (median(np.array([trip.p95 for _, trip in some])) for some in (bins[:at], bins[at:]))
        begun = clock(series.start_ns + bins[at][0] * series.width_ns)
        yield f"from {begun} on ACKs take {duration(after)}, before that {duration(before)} (95th percentile)"


def _aborts(seen: Observed, told: _Told) -> Iterator[str]:
    c = seen.columns
    opened = np.isin(c.handshake, ("completed", "not_seen"))
    rst, after = c.sides("rst") > 0, c.sides("rst_after_fin") > 0
    for side, who in ((CLIENT, "client"), (SERVER, "server")):
        rows = np.flatnonzero(opened & rst[:, side] & ~after[:, side] & ~rst[:, 1 - side])
        for (service,), some in groups_of(rows, seen.service):
            host, port = seen.name_of(service)
            if {(kind, host) for kind in ("mid_session_reset", "third_party_reset", "idle_timeout")} & told:
                continue
            total = int((opened & (seen.service == service)).sum())
            first = clock(int(c.last_ns[some].min()))
            connections = f"{len(some)} of {count(total, 'connection')} to {at(host, port)}"
            yield f"{connections} reset by the {who}, the first at {first}"


def _client_errors(seen: Observed, told: _Told) -> Iterator[str]:
    http = seen.analysis.http
    errors = [error for error in http.errors if 400 <= error.status < 500] if http else []
    for server, port in dict.fromkeys((error.server, error.port) for error in errors):
        if ("http_4xx", server) not in told:
            some = [error for error in errors if (error.server, error.port) == (server, port)]
            answers = int(seen.to_service(server, port)[seen.columns.samples("response_ms")[0]].sum())
            codes = few([f"{error.status} ({error.count})" for error in some])
            number = sum(error.count for error in some)
            yield f"{number} of {max(answers, number)} HTTP answers of {at(server, port)} are client errors: {codes}"


def _alerts(seen: Observed, told: _Told) -> Iterator[str]:
    """TLS alerts in clear; of a capture with cut packets they may be all there is of a failed handshake."""
    tls = seen.analysis.tls
    alerts = {name: times for name, times in tls.alerts.items() if not name.endswith("close_notify")} if tls else {}
    if alerts and not any(kind == "tls_failure" for kind, _ in told):
        yield "TLS alerts: " + few([f"{name.removeprefix('unknown: ')} ({times})" for name, times in alerts.items()])


def _late_openings(seen: Observed, told: _Told) -> Iterator[str]:
    """SYNs that had to be repeated, and were answered in the end."""
    c = seen.columns
    rows = np.flatnonzero((c.syn_retransmissions > 0) & (c.handshake == "completed"))
    for (service,), some in groups_of(rows, seen.service):
        host, port = seen.name_of(service)
        if ("syn_unanswered", host) not in told:
            yield f"{count(len(some), 'connection')} to {at(host, port)} opened only after its SYN was repeated"
