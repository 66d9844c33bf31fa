"""Rules for floods and scans. They run first: their streams are not reported again as unanswered or refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ghost.pcap.array_queries import distinct, first_and_last
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, groups_of
from ghost.pcap.findings.phrasing import count, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, Mask, StreamRows
from ghost.pcap.findings.syn_floods import floods, seconds_of


@dataclass(frozen=True)
class Threats:
    findings: tuple[Finding, ...]
    streams: Mask
    """Those that belong to a threat, or to a traceroute: no connections of anybody's."""
    tried: frozenset[tuple[str, str, int]] = frozenset()
    """What scanners tried: scanner, host and port. Known where there is ICMP about it."""


def threats_in(seen: Observed) -> Threats:
    c = seen.columns
    mine = np.zeros(len(c), np.bool_)
    found: list[Finding] = []
    for finding, rows in floods(seen):
        mine[rows] = True
        found.append(finding)
    failed = (seen.only_syn | (c.handshake == "refused")) & ~mine & ~seen.traced
    tried: set[tuple[str, str, int]] = set()
    for finding, rows in _scans(seen, np.flatnonzero(failed)):
        mine[rows] = True
        found.append(finding)
        if seen.analysis.icmp is not None:
            tried |= {(finding.who.src, *seen.name_of(each)) for each in distinct(seen.service[rows]).tolist()}
    return Threats(tuple(found), mine | seen.traced, frozenset(tried))


def _scans(seen: Observed, failed: StreamRows) -> Iterator[tuple[Finding, StreamRows]]:
    """Yield scans: one source tries many ports of a host, or one port of many hosts, and hardly any is open."""
    c = seen.columns
    least = min(threshold("port_scan.min_ports"), threshold("port_scan.min_hosts"))
    for (source,), rows in groups_of(failed, c.hosts[:, CLIENT]):
        if len(rows) < least:
            return
        services = distinct(seen.service[rows])
        hosts, ports_each = np.unique(services >> 16, return_counts=True)
        ports, hosts_each = np.unique(services & 0xFFFF, return_counts=True)
        answered = len(distinct(seen.service[seen.served & (c.hosts[:, CLIENT] == source)]))
        if percent(answered, answered + len(services)) > threshold("port_scan.max_answered_pct"):
            continue
        of_one_host, of_one_port = int(ports_each.max()), int(hosts_each.max())
        if of_one_host >= threshold("port_scan.min_ports"):
            host = int(hosts[np.argmax(ports_each)])
            what = f"{of_one_host} closed or silent ports of {c.host(host)}"
            target = host << 16 | int((services[services >> 16 == host] & 0xFFFF).min())
        elif of_one_port >= threshold("port_scan.min_hosts"):
            port = int(ports[np.argmax(hosts_each)])
            what = f"port {port} of {of_one_port} hosts"
            target = int(services[services & 0xFFFF == port].min())
        else:
            continue
        if of_one_host < threshold("port_scan.surely_ports") and _retries_later(seen, rows):
            continue
        yield _scan(seen, source, rows, what, target, len(services), len(hosts), answered), rows


def _retries_later(seen: Observed, rows: StreamRows) -> bool:
    """Return whether the source retries failed targets later, in rounds, as clients and monitors do during an outage. A
    scanner does not return to answered ports, and retries silent ones within seconds or before it goes on."""
    c = seen.columns
    _, which = np.unique(seen.service[rows], return_inverse=True)
    which = which.ravel()
    number = int(which.max()) + 1
    began = c.first_ns[rows]
    first, last = first_and_last(began, which, number)
    silent = np.zeros(number, np.bool_)
    np.logical_or.at(silent, which, seen.only_syn[rows])
    waits = np.where(silent, threshold("port_scan.silent_again_ms"), threshold("port_scan.refused_again_ms"))
    spans_ms = (last - first) / 1e6
    again = spans_ms >= waits
    whole_ms = float(began.max() - began.min()) / 1e6
    in_turn = float(spans_ms[again].sum()) >= 2 * whole_ms
    return in_turn and percent(int(again.sum()), number) >= threshold("port_scan.again_pct")


def _scan(
    seen: Observed, source: int, rows: StreamRows, what: str, target: int, services: int, hosts: int, answered: int
) -> Finding:
    c = seen.columns
    scanner = c.host(source)
    host, port = seen.name_of(target)
    # Only who waits for an answer lets its stack ask three times.
    patient = percent(int((c.syn_retransmissions[rows] > 1).sum()), len(rows)) > 50
    doubt = (
        " The source waited for each, as a client does: if these are its targets, they are down or filtered."
        if patient
        else ""
    )
    return make_finding(
        "port_scan",
        severity="HIGH",
        protocol="TCP",
        title=f"{scanner} scans {what}",
        detail=f"{count(len(rows), 'connection attempt')} to {count(services, 'service')} on {count(hosts, 'host')}"
        f" refused or unanswered in {seconds_of(seen, rows):.1f} s, {answered} answered.{doubt}",
        who=Who(scanner, host, port),
        evidence=seen.frames(rows, "syn", CLIENT),
        confidence="medium" if patient else "high",
        weight=len(rows),
        measured={"attempts": len(rows), "services": services, "hosts": hosts, "answered": answered},
    )
