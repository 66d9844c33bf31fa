"""Rules for ICMP errors: packets that routers, filters and hosts could not deliver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from itertools import chain

import numpy as np

from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.fragmentation import is_about_fragments
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import at, count, few, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT
from ghost.pcap.model import IcmpError

DNS = 53
TRACEROUTE_PORTS = range(33434, 33690)
_PROHIBITED = {(4, 9), (4, 10), (4, 13), (6, 1), (6, 5)}
_PORT = {(4, 3), (6, 4)}
Target = tuple[str, int | None]
"""Address and port."""


def icmp_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings for ICMP errors.

    Errors caused by scans and traceroutes are left out; errors about many ports or hosts are merged.
    """
    icmp = seen.analysis.icmp
    if icmp is None:
        return
    traced = _Traced(seen)
    unreachable = [
        error
        for error in icmp.of_kind("unreachable")
        if not _is_scan_target(error, threats) and not traced.is_traceroute_answer(error)
    ]
    prohibited = [error for error in unreachable if (error.version, error.code) in _PROHIBITED]
    closed = [e for e in unreachable if (e.version, e.code) in _PORT and not _is_late_answer(e)]
    scanned: set[tuple[str, str]] = set()
    for scan in _udp_scans([error for error in (*prohibited, *closed) if error.protocol == "udp"]):
        scanned.add((scan.who.src, scan.who.dst))
        yield scan
    yield from _admin_prohibited([e for e in prohibited if not _is_of(e, scanned)])
    yield from _ports([e for e in closed if not _is_of(e, scanned)])
    yield from _loops([e for e in icmp.of_kind("ttl_exceeded") if not is_about_fragments(e)], traced)
    yield from _redirects(icmp.of_kind("redirect"))


def _is_scan_target(error: IcmpError, threats: Threats) -> bool:
    """Return whether the error is about a scanned target."""
    return (error.dst, error.unreachable_dst, error.destination_port) in threats.tried


def _is_late_answer(error: IcmpError) -> bool:
    """Return whether the error is about a DNS answer to a socket that its client has closed."""
    return error.protocol == "udp" and error.source_port == DNS


def _is_of(error: IcmpError, scanned: set[tuple[str, str]]) -> bool:
    return error.protocol == "udp" and (error.dst, error.unreachable_dst) in scanned


def _about(error: IcmpError) -> Target:
    return error.unreachable_dst or error.src, error.destination_port


def _messages(errors: list[IcmpError]) -> int:
    return sum(error.count for error in errors)


# --------------------------------------------------------------------------------------------------- traceroutes


class _Traced:
    """Hop limits of the packets that errors quote: from the error for pings, from the streams for TCP."""

    def __init__(self, seen: Observed) -> None:
        c = seen.columns
        self._streams: dict[Hashable, int] = {}
        limits = c.sides("ttl_min")[:, CLIENT]
        for row in np.flatnonzero(seen.traced).tolist():
            (client, server), (own, port) = c.hosts[row], c.ports[row]
            self._streams[c.host(client), c.host(server), int(own), int(port)] = int(limits[row])

    def limits(self, error: IcmpError) -> set[int]:
        """Those known."""
        key = (error.dst, error.unreachable_dst, error.source_port, error.destination_port)
        stream = self._streams.get(key)
        return set(error.hop_limits) if stream is None else {stream}

    def is_probe(self, error: IcmpError) -> bool:
        limits = self.limits(error)
        return bool(limits) and max(limits) <= threshold("traceroute.max_hops")

    def is_traceroute_answer(self, error: IcmpError) -> bool:
        """Return whether the error answers a traceroute by UDP or ping."""
        return _is_traceroute(error) or (error.protocol in ("icmp", "icmpv6") and self.is_probe(error))


def _is_traceroute(error: IcmpError) -> bool:
    return error.protocol == "udp" and error.destination_port in TRACEROUTE_PORTS


# --------------------------------------------------------------------------------------------------------- merging


def _merged(
    groups: Mapping[tuple[str, Target], list[IcmpError]],
) -> Iterator[tuple[str, list[Target], list[IcmpError]]]:
    """Yield errors grouped by meaning and target; many ports of a host, or one port of many hosts, are one group."""
    rest = dict(groups)
    for by_host in (True, False):
        families: dict[tuple[str, str | int | None], list[Target]] = defaultdict(list)
        for says, target in rest:
            families[says, target[0] if by_host else target[1]].append(target)
        for (says, _), targets in families.items():
            if len(targets) >= threshold("icmp.many"):
                errors = [rest.pop((says, target)) for target in targets]
                most = max(range(len(targets)), key=lambda n: _messages(errors[n]))
                targets.insert(0, targets.pop(most))
                yield says, targets, list(chain.from_iterable(errors))
    for (says, target), errors_about in rest.items():
        yield says, [target], errors_about


def _where(targets: list[Target]) -> str:
    """One target, many ports of a host, or one port of many hosts."""
    host, port = targets[0]
    hosts = {address for address, _ in targets}
    if len(targets) == 1:
        return at(host, port)
    if len(hosts) == 1:
        return f"{host} ({len(targets)} ports, most often {port})"
    return f"{'' if port is None else f'port {port} of '}{len(hosts)} hosts, such as {host}"


def _sources(errors: list[IcmpError]) -> tuple[str, str]:
    """Return the source with most errors, and the text for all sources."""
    told: dict[str, int] = defaultdict(int)
    for error in errors:
        told[error.dst] += error.count
    first = max(told, key=lambda address: told[address])
    return first, first if len(told) == 1 else f"{len(told)} clients"


# ------------------------------------------------------------------------------------------- filters and closed ports


def _udp_scans(errors: list[IcmpError]) -> Iterator[Finding]:
    """Yield UDP scans: one source sends a packet or two to many ports of a host, not from one socket per port as calls
    do."""
    groups: dict[tuple[str, str], list[IcmpError]] = defaultdict(list)
    for error in errors:
        groups[error.dst, _about(error)[0]].append(error)
    for (scanner, host), group in groups.items():
        ports = {error.destination_port for error in group}
        own = {error.source_port for error in group}
        few_each = _messages(group) <= len(ports) * threshold("port_scan.udp_tries")
        if len(ports) < threshold("port_scan.min_ports") or not few_each or 2 * len(own) > len(ports):
            continue
        yield make_finding(
            "port_scan",
            severity="HIGH",
            protocol="UDP",
            title=f"{scanner} scans {len(ports)} closed UDP ports of {host}",
            detail=f"{count(_messages(group), 'ICMP message')} said so, about {count(len(ports), 'port')}; it sent"
            f" from {count(len(own), 'port')} of its own.",
            who=Who(scanner, host, min(port for port in ports if port is not None) if ports - {None} else None),
            evidence=(error.sample_frames for error in group),
            confidence="medium",
            weight=_messages(group),
            measured={"attempts": _messages(group), "services": len(ports), "hosts": 1},
        )


def _admin_prohibited(errors: list[IcmpError]) -> Iterator[Finding]:
    groups: dict[tuple[str, Target], list[IcmpError]] = defaultdict(list)
    for error in errors:
        groups[error.src, (error.unreachable_dst or "?", error.destination_port)].append(error)
    for filter_address, targets, group in _merged(groups):
        (destination, port), (source, everybody) = targets[0], _sources(group)
        yield make_finding(
            "admin_prohibited",
            severity="HIGH",
            title=f"{filter_address} forbids {everybody} to reach {_where(targets)}",
            detail=f"{count(_messages(group), 'ICMP message')} “{group[0].code_meaning}” about"
            f" {(group[0].protocol or 'IP').upper()} packets.",
            who=Who(source, destination, port),
            evidence=(error.sample_frames for error in group),
            confidence="high",
            weight=_messages(group),
            measured={"messages": _messages(group)} | ({"targets": len(targets)} if len(targets) > 1 else {}),
            other_targets=tuple(targets[1:]),
            filter=filter_address,
        )


def _ports(errors: list[IcmpError]) -> Iterator[Finding]:
    groups: dict[tuple[str, Target], list[IcmpError]] = defaultdict(list)
    for error in errors:
        groups[error.protocol or "IP", _about(error)].append(error)
    for protocol, targets, group in _merged(groups):
        yield _port(protocol, targets, group)


def _port(protocol: str, targets: list[Target], group: list[IcmpError]) -> Finding:
    (destination, port), (source, everybody) = targets[0], _sources(group)
    by_filter = protocol == "tcp"
    case = "port_rejected" if by_filter else "port_unreachable"
    speakers = sorted({error.src for error in group})
    return make_finding(
        case,
        severity="HIGH" if by_filter or port == DNS else "MEDIUM",
        title=f"{_where(targets)} ({protocol.upper()}) is unreachable for {everybody}",
        detail=f"{count(_messages(group), 'ICMP port-unreachable message')} from {few(speakers)}.",
        who=Who(source, destination, port),
        evidence=(error.sample_frames for error in group),
        confidence="high",
        weight=_messages(group),
        measured={"messages": _messages(group)} | ({"targets": len(targets)} if len(targets) > 1 else {}),
        other_targets=tuple(targets[1:]),
        filter=speakers[0],
    )


# ----------------------------------------------------------------------------------------------------------- loops


def _loops(errors: list[IcmpError], traced: _Traced) -> Iterator[Finding]:
    """Yield findings for loops: the same routers report exceeded hop limits again and again."""
    by_target: dict[str, list[IcmpError]] = defaultdict(list)
    for error in errors:
        if error.unreachable_dst and not _is_traceroute(error):
            by_target[error.unreachable_dst].append(error)
    for target, every in by_target.items():
        group = _without_traceroute(every, traced)
        routers: dict[str, int] = defaultdict(int)
        for error in group:
            routers[error.src] += error.count
        ranked = sorted(routers, key=lambda router: -routers[router])
        total, top_two = sum(routers.values()), sum(routers[router] for router in ranked[:2])
        if (
            ranked
            and routers[ranked[0]] >= threshold("routing_loop.min_messages")
            and percent(top_two, total) >= threshold("routing_loop.min_share_of_two_routers_pct")
        ):
            yield _loop(target, group, ranked, total)


def _without_traceroute(errors: list[IcmpError], traced: _Traced) -> list[IcmpError]:
    """Return errors not caused by a traceroute: each router answers it for its own hop only, a router in a loop for
    many."""
    limits: dict[str, set[int]] = defaultdict(set)
    ports = {error.destination_port for error in errors if error.protocol == "udp"}
    for error in errors:
        if traced.is_probe(error):
            limits[error.src] |= traced.limits(error)
    # A trace by UDP takes another port for each packet; programs keep to theirs.
    wanders = 2 * len(ports) > _messages([e for e in errors if e.protocol == "udp"])
    return [
        error
        for error in errors
        if (len(limits[error.src]) >= threshold("routing_loop.min_hop_limits") if traced.is_probe(error) else True)
        and not (error.protocol == "udp" and wanders and len(ports) >= threshold("routing_loop.min_hop_limits"))
    ]


def _loop(target: str, group: list[IcmpError], ranked: list[str], total: int) -> Finding:
    source = group[0].dst
    return make_finding(
        "routing_loop",
        severity="HIGH",
        title=f"Packets from {source} to {target} loop between routers",
        detail=f"{count(total, 'packet')} exceeded their hop limit at {few(ranked, 2)}.",
        who=Who(source, target),
        evidence=(error.sample_frames for error in group),
        confidence="high" if total >= 2 * threshold("routing_loop.min_messages") else "medium",
        weight=total,
        measured={"ttl_exceeded": total, "routers": len(ranked)},
        router=ranked[0],
    )


def _redirects(errors: tuple[IcmpError, ...]) -> Iterator[Finding]:
    groups: dict[tuple[str, str | None], list[IcmpError]] = defaultdict(list)
    for error in errors:
        groups[error.src, error.gateway].append(error)
    for (router, gateway), group in groups.items():
        messages = sum(error.count for error in group)
        source = group[0].dst
        targets = sorted({error.unreachable_dst for error in group if error.unreachable_dst})
        target = targets[0] if targets else "?"
        yield make_finding(
            "icmp_redirect",
            severity="LOW",
            title=f"{router} sends {source} to another gateway, {gateway or 'unnamed'}",
            detail=f"{count(messages, 'redirect')} for {few(targets)}: the first hop in use is not the best one.",
            who=Who(source, target),
            evidence=(error.sample_frames for error in group),
            confidence="medium",
            weight=messages,
            measured={"redirects": messages},
        )
