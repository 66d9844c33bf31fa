"""Rules for failed connection attempts: unanswered, refused, or rejected for lack of NAT ports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import among, distinct, without
from ghost.pcap.findings.accept_queue import half_accepted, queue_full, queued_requests
from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.common_causes import clients_of, of_streams
from ghost.pcap.findings.dead_backends import dead_backend, fails_by_tuple
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.finding_times import stream_times
from ghost.pcap.findings.half_open_connections import half_open_findings
from ghost.pcap.findings.host_reachability import other_protocol_answers
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.one_way_captures import was_captured_one_way
from ghost.pcap.findings.phrasing import at, count, duration, few, percent
from ghost.pcap.findings.refused_connections import refused_findings
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.snat_exhaustion import Exhausted, exhausted, snat_findings
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def connection_setup_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings on connection setup; streams of a flood or a scan are left out."""
    yield from _unanswered(seen, threats)
    yield from half_open_findings(seen, threats)
    yield from refused_findings(seen, threats)
    yield from _intermittent_drops(seen, threats)


# --------------------------------------------------------------------------------------------------- unanswered


def _unanswered(seen: Observed, threats: Threats) -> Iterator[Finding]:
    if was_captured_one_way(seen):
        return
    c = seen.columns
    rows = np.flatnonzero(_never_answered(seen) & ~threats.streams & ~_intermittent(seen, threats))
    # Where answers of this host to this client take another path, silence is no news.
    if seen.one_way_streams:
        rows = np.array([row for row in rows.tolist() if not _answered_on_other_path(seen, row)], np.int64)
    for port, streams in _silent_everywhere(seen, rows):
        rows = without(rows, streams)
        yield _many_silent_hosts(seen, port, streams)
    for (host,), streams in islice(groups_of(rows, c.hosts[:, SERVER]), MOST_GROUPS):
        yield from _silent_host(seen, host, streams)


def _never_answered(seen: Observed) -> Mask:
    """Return the mask of streams with only SYNs, repeated or old enough that an answer should have come."""
    c = seen.columns
    waited_ms = (seen.last_ns - c.first_ns) / 1e6
    given_up = (c.sides("syn")[:, CLIENT] >= threshold("syn_unanswered.min_attempts")) | (
        waited_ms >= threshold("syn_unanswered.answer_window_ms")
    )
    # Where nobody is answered, many that wait for longer than any path takes say so together before one is repeated.
    waiting = seen.only_syn & (waited_ms >= threshold("delay.handshake_ms"))
    services, tries = np.unique(seen.service[waiting], return_counts=True)
    silent = services[tries >= threshold("syn_unanswered.many_attempts")]
    silent = silent[~among(silent, seen.service[c.sides("packets")[:, SERVER] > 0])]
    result: Mask = seen.only_syn & (given_up | (waiting & among(seen.service, silent)))
    return result


def _answered_on_other_path(seen: Observed, row: int) -> bool:
    client, server = seen.columns.hosts[row]
    return (seen.columns.host(client), seen.columns.host(server)) in seen.one_way_streams


def _silent_everywhere(seen: Observed, rows: StreamRows) -> Iterator[tuple[int, StreamRows]]:
    """Yield (port, streams) where many hosts are silent to few clients. Hosts with other reports are left out."""
    c = seen.columns
    known = np.array([seen.number_of.get(address, -1) for address in _reported_hosts(seen)], np.int64)
    rows = rows[~among(c.hosts[rows, SERVER], known)]
    for (port,), streams in islice(groups_of(rows, c.ports[:, SERVER]), MOST_GROUPS):
        hosts, clients = len(distinct(c.hosts[streams, SERVER])), len(distinct(c.hosts[streams, CLIENT]))
        if hosts >= threshold("syn_unanswered.many_hosts") and hosts >= 2 * clients:
            yield port, streams


def _reported_hosts(seen: Observed) -> set[str]:
    """Return hosts reported by ICMP errors or without an ARP reply."""
    analysis = seen.analysis
    errors = analysis.icmp.errors if analysis.icmp else ()
    return {error.unreachable_dst for error in errors if error.unreachable_dst} | {
        one.ip for one in seen.unanswered_requests
    }


def _many_silent_hosts(seen: Observed, port: int, rows: StreamRows) -> Finding:
    """Return the finding for one port of many hosts: filtered if any of them answers otherwise, else a part of the
    network is down."""
    c = seen.columns
    hosts = distinct(c.hosts[rows, SERVER])
    alive = hosts[among(hosts, c.hosts[c.sides("packets")[:, SERVER] > 0, SERVER])].tolist()
    if not alive:
        why = "None of these hosts answers anything in the capture."
        return _finding(seen, int(hosts[0]), port, rows, "syn_unanswered", "network", why, "medium")
    who = few([c.host(host) for host in alive], 2)
    why = f"{who} of them answer{'s' if len(alive) == 1 else ''} other ports or clients, so this port is filtered."
    confidence = "high" if 2 * len(alive) >= len(hosts) else "medium"
    return _finding(seen, alive[0], port, rows, "syn_unanswered_policy", "policy", why, confidence)


def _silent_host(seen: Observed, host: int, rows: StreamRows) -> Iterator[Finding]:
    """Yield findings for one host: silent ports are filtered if other ports answer; a host that never answers is one
    finding."""
    c = seen.columns
    ports = {port: streams for (port,), streams in groups_of(rows, c.ports[:, SERVER])}
    answering = set(seen.answering_ports(host))
    silent = {port: streams for port, streams in ports.items() if port not in answering}
    others = sorted(answering - set(silent))
    for port, streams in ports.items():
        if port in answering:
            yield _partly_answered(seen, host, port, streams)
        elif others:
            why = f"The host answers on {few([f'port {p}' for p in others])}, so only this port is filtered."
            yield _finding(seen, host, port, streams, "syn_unanswered_policy", "policy", why, "high")
    if silent and not others:
        busiest = max(silent, key=lambda port: int(c.sides("syn")[silent[port], CLIENT].sum()))
        every = np.concatenate(list(silent.values()))
        spoke = other_protocol_answers(seen, c.host(host), int(c.first_ns[every].min()), int(c.first_ns[every].max()))
        if spoke is not None:
            why = f"The host answers {spoke} meanwhile, so it is up and TCP to it is filtered."
            yield _finding(seen, host, busiest, every, "syn_unanswered_policy", "policy", why, "medium", len(silent))
            return
        why = "No port of this host answers in the capture."
        yield _finding(seen, host, busiest, every, "syn_unanswered", "network", why, "medium", len(silent))


def _partly_answered(seen: Observed, host: int, port: int, rows: StreamRows) -> Finding:
    """Return the finding for a port that answers other sources, or the same source at other times."""
    c = seen.columns
    served = np.flatnonzero(seen.served & (c.hosts[:, SERVER] == host) & (c.ports[:, SERVER] == port))
    source = next(client for (client,), _ in groups_of(rows, c.hosts[:, CLIENT]))
    own = served[c.hosts[served, CLIENT] == source]
    if not len(own):
        known = [c.host(number) for number in distinct(c.hosts[served, CLIENT]).tolist()]
        if not known:
            why = "The port answers other sources with a reset, and this source not at all."
            return _finding(seen, host, port, rows, "syn_unanswered_policy", "policy", why, "medium")
        begun = int(c.first_ns[rows].min())
        if not (c.sides("last_ns")[c.hosts[:, SERVER] == host, SERVER] > begun).any():
            why = f"The same port answered {few(known)} before that; the host has been silent since."
            return _finding(seen, host, port, rows, "syn_unanswered", "network", why, "medium")
        why = f"The same port answers {few(known)}, so this source is filtered."
        return _finding(seen, host, port, rows, "syn_unanswered_policy", "policy", why, "high")
    why = f"The same port answered {count(len(own), 'other connection')} of this source, so it fails only at times."
    return _finding(seen, host, port, rows, "syn_unanswered", "network", why, "low")


def _hop_limit_reports(seen: Observed, address: str, port: int) -> list[str]:
    """Return the routers at which the hop limit of packets to this service ran out."""
    icmp = seen.analysis.icmp
    expired = icmp.of_kind("ttl_exceeded") if icmp else ()
    return sorted({e.src for e in expired if (e.unreachable_dst, e.destination_port) == (address, port)})


def _finding(
    seen: Observed,
    host: int,
    port: int,
    rows: StreamRows,
    case: str,
    blame: str,
    why: str,
    confidence: str,
    ports: int = 1,
) -> Finding:
    c = seen.columns
    (source, clients), address = clients_of(seen, rows), c.host(host)
    syns, repeated = int(c.sides("syn")[rows, CLIENT].sum()), int(c.syn_retransmissions[rows].sum())
    hosts = [c.host(number) for number in distinct(c.hosts[rows, SERVER]).tolist()]
    where = at(address, port) if ports == 1 else f"{address} ({ports} ports, most often {port})"
    if len(hosts) > 1:
        where = f"port {port} of {len(hosts)} hosts, such as {address}"
    asks = f"{source} gets" if clients == 1 else f"{clients} clients get"
    late = int(seen.served[rows].sum())
    answered = "none answered" if not late else "all answered late" if late == len(rows) else f"{late} answered late"
    longest = float((c.last_ns[rows] - c.first_ns[rows]).max()) / 1e6
    tried = f", tried for up to {duration(longest)}" if longest else ""
    expired = _hop_limit_reports(seen, address, port) if case == "syn_unanswered" and not late else []
    if expired:
        case, why = "syn_unanswered_expired", f"{few(expired)} reported that the hop limit of a SYN ran out. {why}"
    return make_finding(
        case,
        severity="MEDIUM" if late == len(rows) else "HIGH",
        blame=blame,
        title=f"{asks} no answer{' at times' if late else ''} from {where}",
        detail=f"{count(syns, 'SYN')} in {count(len(rows), 'connection attempt')}"
        f" ({repeated} repeated{tried}), {answered}. {why}",
        who=Who(source, address, port),
        evidence=seen.frames(rows, "syn", CLIENT),
        confidence=confidence,
        weight=syns,
        measured={"syn": syns, "syn_retransmitted": repeated, "answered": late}
        | ({"hosts": len(hosts)} if len(hosts) > 1 else {}),
        other_targets=tuple((other, port) for other in hosts if other != address),
        times=stream_times(seen, case, rows),
    )


# ------------------------------------------------------------------------------------------ unanswered at times


def _late(seen: Observed) -> Mask:
    """Return the mask of streams that opened only after a repeated SYN, unless the first answer waited in a queue (the
    repeat was needless then)."""
    c = seen.columns
    delayed = (c.sides("needless")[:, CLIENT] >= c.syn_retransmissions) & (c.lost() == 0).all(axis=1)
    result: Mask = (c.syn_retransmissions > 0) & ~delayed & seen.served & (c.sides("syn_ack")[:, SERVER] > 0)
    return result


def _intermittent(seen: Observed, threats: Threats) -> Mask:
    """Return unanswered streams whose service answers the same client at other times."""
    c = seen.columns
    key = c.hosts[:, CLIENT] << 48 | seen.service
    served = distinct(key[seen.served & (c.syn_retransmissions == 0)])
    result: Mask = seen.only_syn & ~threats.streams & among(key, served)
    return result


def _intermittent_drops(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings for services that drop SYNs at times while data passes."""
    c = seen.columns
    never_answered = _never_answered(seen)
    dropped = half_accepted(seen)
    failed = np.flatnonzero((_intermittent(seen, threats) & never_answered) | _late(seen) | dropped)
    if not len(failed):
        return
    waiting = queued_requests(seen)
    good = seen.served & (c.syn_retransmissions == 0) & ~dropped
    without_ports: list[Exhausted] = []
    kept_out: dict[int, list[StreamRows]] = {}
    met_dead: dict[int, list[StreamRows]] = {}
    by_tuple = {
        service
        for (service,), rows in islice(groups_of(failed, seen.service), MOST_GROUPS)
        if fails_by_tuple(seen, rows, good)
    }
    for (client, service), rows in islice(groups_of(failed, c.hosts[:, CLIENT], seen.service), MOST_GROUPS):
        queued = np.flatnonzero(waiting & (seen.service == service))
        full = len(queued) >= threshold("slow_application.min_answers")
        rows = rows if full else rows[~dropped[rows]]
        if len(rows) < threshold("syn_unanswered.min_at_times") and not seen.only_syn[rows].any():
            continue
        served = np.flatnonzero(good & (c.hosts[:, CLIENT] == client) & (seen.service == service))
        out_of_ports = exhausted(seen, client, served, rows) if len(served) else None
        if out_of_ports is not None:
            without_ports.append(out_of_ports)
            continue
        if service in by_tuple and not full:
            met_dead.setdefault(service, []).append(rows)
            continue
        share = percent(len(rows), len(rows) + len(served))
        lost = seen.traffic(c.host(client), c.host(service >> 16))
        syns = int(c.sides("syn")[rows, CLIENT].sum())
        packets_are_lost = lost is not None and lost.lost > syns
        often = len(rows) >= threshold("syn_unanswered.min_at_times") and (dropped[rows].any() or not packets_are_lost)
        if (often or never_answered[rows].any()) and share >= threshold("syn_unanswered.at_times_pct"):
            if full:
                kept_out.setdefault(service, []).append(rows)
                continue
            why = (
                f"The same port answered {count(len(served), 'other connection')} of this client at once, so it fails"
                " only at times: an accept queue that is full, a limit on new connections, or loss."
            )
            yield _finding(seen, service >> 16, service & 0xFFFF, rows, "syn_unanswered", "network", why, "low")
    yield from snat_findings(seen, without_ports)
    for parts in kept_out.values():
        yield of_streams(seen, np.concatenate(parts), partial(queue_full, seen, waiting=waiting, taken=good))
    for parts in met_dead.values():
        yield of_streams(seen, np.concatenate(parts), partial(dead_backend, seen, at_once=good))
