"""Rules for failed connection attempts: unanswered, refused, or rejected for lack of NAT ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import among, distinct, without
from ghost.pcap.findings.accept_queue import half_accepted, queue_full, queued_requests
from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.common_causes import of_streams
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.half_open_connections import half_open_findings
from ghost.pcap.findings.host_reachability import other_protocol_answers
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.one_way_captures import was_captured_one_way
from ghost.pcap.findings.phrasing import at, count, duration, few, percent
from ghost.pcap.findings.reset_origin import from_this_segment
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.snat_exhaustion import Exhausted, exhausted, snat_findings
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def connection_setup_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings on connection setup; streams of a flood or a scan are left out."""
    yield from _unanswered(seen, threats)
    yield from half_open_findings(seen, threats)
    yield from _refused(seen, threats)
    yield from _intermittent_drops(seen, threats)


# --------------------------------------------------------------------------------------------------- unanswered


def _unanswered(seen: Observed, threats: Threats) -> Iterator[Finding]:
    if was_captured_one_way(seen):
        return
    c = seen.columns
    rows = np.flatnonzero(_never_answered(seen) & ~threats.streams & ~_intermittent(seen, threats))
    # Where answers of this host to this client take another path, silence is no news.
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
    if not seen.one_way_streams:
        return False
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
    clients = _clients(seen, rows)
    source, address = clients[0][0], c.host(host)
    syns, repeated = int(c.sides("syn")[rows, CLIENT].sum()), int(c.syn_retransmissions[rows].sum())
    hosts = [c.host(number) for number in distinct(c.hosts[rows, SERVER]).tolist()]
    where = at(address, port) if ports == 1 else f"{address} ({ports} ports, most often {port})"
    if len(hosts) > 1:
        where = f"port {port} of {len(hosts)} hosts, such as {address}"
    asks = f"{source} gets" if len(clients) == 1 else f"{len(clients)} clients get"
    late = int(seen.served[rows].sum())
    answered = "none answered" if not late else "all answered late" if late == len(rows) else f"{late} answered late"
    longest = float((c.last_ns[rows] - c.first_ns[rows]).max()) / 1e6
    tried = f", tried for up to {duration(longest)}" if longest else ""
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


def _clients(seen: Observed, rows: StreamRows) -> Sequence[tuple[str, int]]:
    numbers = Counter(seen.columns.hosts[rows, CLIENT].tolist())
    return [(seen.columns.host(number), tries) for number, tries in numbers.most_common()]


# ------------------------------------------------------------------------------------------------------ refused


def _refused(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """A host of which many ports are closed is one finding, and so is a port that many hosts have closed."""
    c = seen.columns
    rows = np.flatnonzero((c.handshake == "refused") & ~threats.streams)
    for (service,), streams in islice(groups_of(_foreign_resets(seen, rows), seen.service), MOST_GROUPS):
        ttls_seen = f"other packets of the host have {few(seen.ttls(service >> 16))}"
        yield _refused_by_third_party(seen, service, streams, ttls_seen)
        rows = without(rows, streams)
    for streams, known in from_this_segment(seen, rows):
        ttls_seen = f"so they were sent on this segment, and the host's neighbours are heard with {few(known)}"
        yield _refused_by_third_party(seen, int(seen.service[streams[0]]), streams, ttls_seen, "medium")
        rows = without(rows, streams)
    beside = rows[seen.reset_beside[rows, SERVER]]
    for (service,), streams in islice(groups_of(beside, seen.service), MOST_GROUPS):
        ttls_seen = (
            f"so they were sent on this segment, and other packets of the host have {few(seen.ttls(service >> 16))}"
        )
        yield _refused_by_third_party(seen, service, streams, ttls_seen)
        rows = without(rows, streams)
    down = rows[~among(seen.service[rows], seen.service[seen.served])]
    for host_first in (True, False):
        for streams in _closed_together(seen, down, host_first=host_first):
            yield _refused_port(seen, streams)
            rows, down = without(rows, streams), without(down, streams)
    for _, streams in islice(groups_of(rows, seen.service), MOST_GROUPS):
        yield _refused_port(seen, streams)


def _closed_together(seen: Observed, rows: StreamRows, *, host_first: bool) -> Iterator[StreamRows]:
    """Yield groups of refusals: many ports of one host, or one port of many hosts, for few clients."""
    c = seen.columns
    hosts, ports = c.hosts[:, SERVER], c.ports[:, SERVER]
    for _, streams in islice(groups_of(rows, hosts if host_first else ports), MOST_GROUPS):
        number = len(distinct((ports if host_first else hosts)[streams]))
        clients = len(distinct(c.hosts[streams, CLIENT]))
        if number >= threshold("refused.many") and (host_first or number >= 2 * clients):
            yield streams


def _foreign_resets(seen: Observed, rows: StreamRows) -> StreamRows:
    """Return the rows of streams whose reset has a TTL that no other packet of the host has."""
    c = seen.columns
    ttl, hosts = c.sides("ttl_min"), c.hosts
    lowest = np.full(len(c.addresses), 1 << 16)
    highest = np.full(len(c.addresses), -1)
    np.minimum.at(lowest, hosts[ttl >= 0], ttl[ttl >= 0])
    np.maximum.at(highest, hosts[ttl >= 0], ttl[ttl >= 0])
    of_reset, host, tolerance = (
        c.sides("rst_ttl")[rows, SERVER],
        hosts[rows, SERVER],
        threshold("third_party_reset.ttl_tolerance"),
    )
    # Most are like the lowest or the highest; only the others need a look at all that there are.
    odd = (np.abs(of_reset - lowest[host]) > tolerance) & (np.abs(of_reset - highest[host]) > tolerance)
    rows = rows[odd & (highest[host] >= 0)]
    strange = [np.zeros(0, np.int64)]
    for (service,), streams in islice(groups_of(rows, seen.service), MOST_GROUPS):
        known = seen.ttls(service >> 16)
        open_to_others = bool((seen.served & (seen.service == service)).any())
        of_service = c.sides("rst_ttl")[streams, SERVER].tolist()
        strange.append(
            streams[
                [
                    all(abs(ttl - other) > tolerance for other in known)
                    and (open_to_others or not _same_distance(ttl, known))
                    for ttl in of_service
                ]
            ]
        )
    return np.concatenate(strange)


def _same_distance(ttl: int, known: Sequence[int]) -> bool:
    """Return whether the reset came from the same distance with another usual initial TTL: a Windows machine behind the
    same virtual address as a Linux one, or the reverse. A device on the path is closer and usually starts at 255."""
    return any(
        {_initial_ttl(ttl), _initial_ttl(other)} == {64, 128} and _initial_ttl(ttl) - ttl == _initial_ttl(other) - other
        for other in known
    )


def _initial_ttl(ttl: int) -> int:
    """Return the initial TTL that systems use for a received TTL."""
    return 64 if ttl <= 64 else 128 if ttl <= 128 else 255


def _refused_port(seen: Observed, rows: StreamRows) -> Finding:
    """Return the finding for refusals of one service, of many ports of a host, or of one port of many hosts."""
    c = seen.columns
    services = {service: len(streams) for (service,), streams in groups_of(rows, seen.service)}
    busiest = next(iter(services))
    host, port = seen.name_of(busiest)
    clients = _clients(seen, rows)
    source = clients[0][0]
    served = int((seen.served & (seen.service == busiest)).sum())
    only = (
        ""
        if not served
        else f" {count(served, 'other connection')} to it succeeded: the service is available at times."
    )
    refuses = f"{source} is" if len(clients) == 1 else f"{len(clients)} clients are"
    hosts = distinct(c.hosts[rows, SERVER])
    where = at(host, port)
    if len(hosts) > 1:
        where = f"port {port} of {len(hosts)} hosts, such as {host}"
    elif len(services) > 1:
        where = f"{host} ({len(services)} ports, most often {port})"
    known = {_initial_ttl(ttl) for ttl in seen.ttls(busiest >> 16)}
    ttls = {_initial_ttl(ttl) for ttl in c.sides("rst_ttl")[rows[seen.service[rows] == busiest], SERVER].tolist()}
    if known and known.isdisjoint(ttls):
        only += " By its initial TTL, the machine that refuses is not the one that otherwise answers at this address."
    return make_finding(
        "refused",
        severity="LOW" if _is_restart(seen, rows) else "MEDIUM" if served else "HIGH",
        title=f"{refuses} refused by {where}",
        detail=f"{count(len(rows), 'connection attempt')} answered by a reset at once: nothing listens there.{only}",
        who=Who(source, host, port),
        evidence=seen.frames(rows, "rst", SERVER),
        confidence="high",
        weight=len(rows),
        measured={"refused": len(rows), "completed": served}
        | ({"services": len(services)} if len(services) > 1 else {}),
        other_targets=tuple(seen.name_of(service) for service in services if service != busiest),
    )


def _is_restart(seen: Observed, rows: StreamRows) -> bool:
    """Return whether one service refused once or twice and served many before and after, as in a restart.

    A refusal at the end of the capture does not count: the service may stay down.
    """
    c = seen.columns
    if len(rows) > threshold("refused.restart_refusals") or len(distinct(seen.service[rows])) > 1:
        return False
    served = c.first_ns[seen.served & (seen.service == seen.service[rows[0]])]
    before, after = served < c.first_ns[rows].min(), served > c.last_ns[rows].max()
    return min(int(before.sum()), int(after.sum())) >= threshold("refused.restart_served")


def _refused_by_third_party(
    seen: Observed, service: int, rows: StreamRows, others: str, confidence: str = "high"
) -> Finding:
    host, port = seen.name_of(service)
    source = _clients(seen, rows)[0][0]
    ttls = distinct(seen.columns.sides("rst_ttl")[rows, SERVER]).tolist()
    return make_finding(
        "third_party_reset",
        severity="HIGH",
        title=f"A device on the path resets connections of {source} to {at(host, port)}",
        detail=f"{count(len(rows), 'connection attempt')} reset; the resets have TTL {few(ttls)}, {others}.",
        who=Who(source, host, port),
        evidence=seen.frames(rows, "rst", SERVER),
        confidence=confidence,
        weight=len(rows),
        measured={"resets": len(rows)},
    )
