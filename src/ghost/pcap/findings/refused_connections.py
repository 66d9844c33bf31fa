"""Rules for refused connections: a reset answers the SYN, from the host itself or from a device on the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import among, distinct, without
from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.common_causes import clients_of, grouped_findings, parties
from ghost.pcap.findings.dead_backends import refuses_by_turns
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.finding_times import stream_times
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.phrasing import at, count, few
from ghost.pcap.findings.reset_origin import from_this_segment
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, StreamRows


def refused_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings on refused connections; streams of a flood or a scan are left out.

    A host of which many ports are closed is one finding, and so is a port that many hosts have closed."""
    c = seen.columns
    refused = (c.handshake == "refused") & ~threats.streams
    # Who goes on after its SYN was answered: by what did not pass here, while a stateful device resets the rest.
    packets, syn, rst = (c.sides(name)[:, CLIENT] for name in ("packets", "syn", "rst"))
    half = refused & (packets > syn + rst) & (c.sides("payload_bytes")[:, CLIENT] > 0)
    yield from grouped_findings(seen, np.flatnonzero(half), lambda streams: _answered_elsewhere(seen, streams))
    rows = np.flatnonzero(refused & ~half)
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
    source, clients = clients_of(seen, rows)
    served = int((seen.served & (seen.service == busiest)).sum())
    only = (
        ""
        if not served
        else f" {count(served, 'other connection')} to it succeeded: the service is available at times."
    )
    refuses = f"{source} is" if clients == 1 else f"{clients} clients are"
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
    twin = _served_by_a_twin(seen, rows)
    only += " Each time the same port of another address serves the client at once." if twin else ""
    by_turns = len(services) == 1 and refuses_by_turns(seen, rows)
    if by_turns:
        where = f"about one of {round(1 + served / len(rows))} backends of {where}"
    return make_finding(
        "backend_refuses" if by_turns else "refused",
        severity="LOW" if _is_restart(seen, rows) or twin else "MEDIUM" if served else "HIGH",
        title=f"{refuses} refused by {where}",
        detail=f"{count(len(rows), 'connection attempt')} answered by a reset at once: nothing listens there.{only}",
        who=Who(source, host, port),
        evidence=seen.frames(rows, "rst", SERVER),
        confidence="medium" if by_turns else "high",
        weight=len(rows),
        measured={"refused": len(rows), "completed": served}
        | ({"services": len(services)} if len(services) > 1 else {}),
        other_targets=tuple(seen.name_of(service) for service in services if service != busiest),
        times=stream_times(seen, "refused", rows),
    )


def _served_by_a_twin(seen: Observed, rows: StreamRows) -> bool:
    """Return whether each refusal is followed at once by a served connection of the same client to the same port of
    another address of the name: of the other family (RFC 8305), or of one DNS answer. Loopback is one host."""
    c, dns = seen.columns, seen.analysis.dns
    together = [set(answer.addresses) for answer in dns.answers] if dns else []
    served = np.flatnonzero(seen.served)
    within = threshold("refused.twin_ms") * 1_000_000
    left = set(served.tolist())
    for row in rows.tolist():
        client, server = (c.host(int(number)) for number in c.hosts[row])
        soon = (c.first_ns[served] >= c.first_ns[row]) & (c.first_ns[served] <= c.last_ns[row] + within)
        soon &= c.ports[served, SERVER] == c.ports[row, SERVER]
        twin = None
        for other in served[soon].tolist():
            theirs, address = (c.host(int(number)) for number in c.hosts[other])
            one_client = theirs == client or (_is_loopback(theirs) and _is_loopback(client))
            one_name = any({server, address} <= addresses for addresses in together)
            if other in left and one_client and address != server and ((":" in address) != (":" in server) or one_name):
                twin = other
        if twin is None:
            return False
        left.discard(twin)
    return True


def _is_loopback(address: str) -> bool:
    return address == "::1" or address.startswith("127.")


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
    source, _ = clients_of(seen, rows)
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


def _answered_elsewhere(seen: Observed, rows: StreamRows) -> Finding:
    """Return the finding for connections whose answers take another path, so that a stateful device resets them."""
    who = parties(seen, rows)
    return make_finding(
        "asymmetric",
        severity="HIGH",
        protocol="TCP",
        title=f"Answers of {who.where} to {who.whom} take another path; a device on this one resets connections",
        detail=f"{count(len(rows), 'connection')}: the client sends data, so its SYN was answered, but of the answers"
        f" only resets pass here.{who.mostly}",
        who=Who(who.client, who.server, who.port),
        evidence=seen.frames(rows, "rst", SERVER),
        confidence="medium",
        weight=len(rows),
        measured={"streams": len(rows), **who.measured},
    )
