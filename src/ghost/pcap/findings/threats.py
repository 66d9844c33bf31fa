"""Floods and scans. They come first: what belongs to one is no unanswered or refused connection of a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ghost.pcap.findings.columns import CLIENT, SERVER, Ints, Mask, distinct
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed, groups_of
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, first_frames, percent


@dataclass(frozen=True)
class Threats:
    findings: tuple[Finding, ...]
    streams: Mask
    """Those that belong to a threat."""


def threats_in(seen: Observed) -> Threats:
    c = seen.columns
    mine = np.zeros(len(c), np.bool_)
    found: list[Finding] = []
    half_open = (
        (c.sides("syn_ack")[:, SERVER] > 0)
        & (c.sides("syn")[:, CLIENT] > 0)
        & (c.handshake == "incomplete")
        & (c.sides("data_segments")[:, CLIENT] == 0)
    )
    for (service,), rows in groups_of(np.flatnonzero(seen.only_syn | half_open), seen.service):
        if len(rows) < threshold("syn_flood.min_unanswered_syn"):
            break  # the largest group comes first
        if _is_flood(seen, service, rows):
            mine[rows] = True
            found.append(_flood(seen, service, rows))
    failed = (seen.only_syn | (c.handshake == "refused")) & ~mine
    for finding, rows in _scans(seen, np.flatnonzero(failed)):
        mine[rows] = True
        found.append(finding)
    return Threats(tuple(found), mine)


def _seconds(seen: Observed, rows: Ints) -> float:
    c = seen.columns
    return max(float(c.last_ns[rows].max() - c.first_ns[rows].min()) / 1e9, 0.001)


def _is_flood(seen: Observed, service: int, rows: Ints) -> bool:
    c = seen.columns
    repeated = int((c.syn_retransmissions[rows] > 0).sum())
    attempted = int(((c.sides("syn")[:, CLIENT] > 0) & (seen.service == service)).sum())
    completed = int((seen.served & (seen.service == service)).sum())
    return (
        len(rows) / _seconds(seen, rows) >= threshold("syn_flood.min_per_second")
        and percent(repeated, len(rows)) <= threshold("syn_flood.max_repeated_pct")
        and percent(completed, attempted) <= threshold("syn_flood.max_completed_pct")
    )


def _flood(seen: Observed, service: int, rows: Ints) -> Finding:
    host, port = seen.name_of(service)
    c = seen.columns
    clients, tries = np.unique(c.hosts[rows, CLIENT], return_counts=True)
    source = c.host(int(clients[np.argmax(tries)]))
    seconds = _seconds(seen, rows)
    completed = int((seen.served & (seen.service == service)).sum())
    return Finding(
        kind="syn_flood",
        severity="CRITICAL",
        blame="client",
        protocol="TCP",
        title=f"SYN flood against {at(host, port)}",
        detail=f"{len(rows):,} connections from {count(len(clients), 'address', 'addresses')} opened and never"
        f" completed in {seconds:.1f} s ({len(rows) / seconds:.0f} a second); {completed} completed.",
        who=Who(source, host, port),
        evidence=first_frames(seen.frames(rows, "syn", CLIENT)),
        cause=cause_of("syn_flood"),
        remediation=remediation_of("syn_flood", src=source, dst=host, port=port),
        confidence="high" if len(clients) > 1 else "medium",
        weight=len(rows),
        measured={"syn": len(rows), "sources": len(clients), "completed": completed},
    )


def _scans(seen: Observed, failed: Ints) -> Iterator[tuple[Finding, Ints]]:
    """One source at many ports of a host, or at one port of many hosts, and hardly any of them open."""
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
        if ports_each.max() >= threshold("port_scan.min_ports"):
            host = int(hosts[np.argmax(ports_each)])
            what = f"{ports_each.max()} closed or silent ports of {c.host(host)}"
            target = host << 16 | int((services[services >> 16 == host] & 0xFFFF).min())
        elif hosts_each.max() >= threshold("port_scan.min_hosts"):
            port = int(ports[np.argmax(hosts_each)])
            what = f"port {port} of {hosts_each.max()} hosts"
            target = int(services[services & 0xFFFF == port].min())
        else:
            continue
        yield _scan(seen, source, rows, what, target, len(services), len(hosts), answered), rows


def _scan(
    seen: Observed, source: int, rows: Ints, what: str, target: int, services: int, hosts: int, answered: int
) -> Finding:
    scanner = seen.columns.host(source)
    host, port = seen.name_of(target)
    return Finding(
        kind="port_scan",
        severity="HIGH",
        blame="client",
        protocol="TCP",
        title=f"{scanner} scans {what}",
        detail=f"{count(len(rows), 'connection attempt')} to {count(services, 'service')} on {count(hosts, 'host')}"
        f" refused or unanswered in {_seconds(seen, rows):.1f} s, {answered} answered.",
        who=Who(scanner, host, port),
        evidence=first_frames(seen.frames(rows, "syn", CLIENT)),
        cause=cause_of("port_scan"),
        remediation=remediation_of("port_scan", src=scanner, dst=host, port=port),
        confidence="high",
        weight=len(rows),
        measured={"attempts": len(rows), "services": services, "hosts": hosts, "answered": answered},
    )
