"""What routers, filters and hosts say by ICMP about packets they could not deliver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, few, first_frames, percent
from ghost.pcap.model import Analysis, IcmpError

DNS = 53
TRACEROUTE_PORTS = range(33434, 33690)
_PROHIBITED = {(4, 9), (4, 10), (4, 13), (6, 1), (6, 5)}
_PORT = {(4, 3), (6, 4)}


def control_findings(analysis: Analysis) -> Iterator[Finding]:
    if analysis.icmp is None:
        return
    unreachable = analysis.icmp.of_kind("unreachable")
    yield from _prohibited([e for e in unreachable if (e.version, e.code) in _PROHIBITED])
    yield from _ports([e for e in unreachable if (e.version, e.code) in _PORT])
    yield from _loops(analysis.icmp.of_kind("ttl_exceeded"))
    yield from _redirects(analysis.icmp.of_kind("redirect"))


def _prohibited(errors: list[IcmpError]) -> Iterator[Finding]:
    groups: dict[tuple[str, str, int | None], list[IcmpError]] = defaultdict(list)
    for error in errors:
        groups[error.src, error.unreachable_dst or "?", error.destination_port].append(error)
    for (filter_address, destination, port), group in groups.items():
        messages = sum(error.count for error in group)
        source = group[0].dst
        yield Finding(
            kind="admin_prohibited",
            severity="HIGH",
            blame="policy",
            protocol="ICMP",
            title=f"{filter_address} forbids {source} to reach {at(destination, port)}",
            detail=f"{count(messages, 'ICMP message')} “{group[0].code_meaning}” about"
            f" {(group[0].protocol or 'IP').upper()} packets.",
            who=Who(source, destination, port),
            evidence=first_frames(error.sample_frames for error in group),
            cause=cause_of("admin_prohibited"),
            remediation=remediation_of("admin_prohibited", src=source, dst=destination, filter=filter_address),
            confidence="high",
            weight=messages,
            measured={"messages": messages},
        )


def _ports(errors: list[IcmpError]) -> Iterator[Finding]:
    groups: dict[tuple[str, int | None, str | None], list[IcmpError]] = defaultdict(list)
    for error in errors:
        if not _is_harmless(error):
            groups[error.unreachable_dst or error.src, error.destination_port, error.protocol].append(error)
    for (destination, port, protocol), group in groups.items():
        yield _port(destination, port, protocol, group)


def _is_harmless(error: IcmpError) -> bool:
    """A late DNS answer to a closed socket, or the end of a traceroute."""
    if error.protocol != "udp":
        return False
    return error.source_port == DNS or (
        error.destination_port is not None and error.destination_port in TRACEROUTE_PORTS
    )


def _port(destination: str, port: int | None, protocol: str | None, group: list[IcmpError]) -> Finding:
    messages = sum(error.count for error in group)
    source = group[0].dst
    by_filter = protocol == "tcp"
    speakers = sorted({error.src for error in group})
    return Finding(
        kind="port_unreachable",
        severity="HIGH" if by_filter or port == DNS else "MEDIUM",
        blame="policy" if by_filter else "server_application",
        protocol="ICMP",
        title=f"{at(destination, port)} ({(protocol or 'IP').upper()}) is unreachable for {source}",
        detail=f"{count(messages, 'ICMP port-unreachable message')} from {few(speakers)}.",
        who=Who(source, destination, port),
        evidence=first_frames(error.sample_frames for error in group),
        cause=cause_of("port_rejected" if by_filter else "port_unreachable"),
        remediation=remediation_of(
            "port_rejected" if by_filter else "port_unreachable",
            src=source,
            dst=destination,
            port=port,
            filter=speakers[0],
        ),
        confidence="high",
        weight=messages,
        measured={"messages": messages},
    )


def _loops(errors: tuple[IcmpError, ...]) -> Iterator[Finding]:
    """Traceroute makes many routers say it, up to three times each; a loop makes the routers inside it say it often."""
    by_target: dict[str, list[IcmpError]] = defaultdict(list)
    for error in errors:
        if error.unreachable_dst and not _is_traceroute(error):
            by_target[error.unreachable_dst].append(error)
    for target, group in by_target.items():
        routers: dict[str, int] = defaultdict(int)
        for error in group:
            routers[error.src] += error.count
        ranked = sorted(routers, key=lambda router: -routers[router])
        total, top_two = sum(routers.values()), sum(routers[router] for router in ranked[:2])
        if routers[ranked[0]] >= threshold("routing_loop.min_messages") and percent(top_two, total) >= threshold(
            "routing_loop.min_share_of_two_routers_pct"
        ):
            yield _loop(target, group, ranked, total)


def _is_traceroute(error: IcmpError) -> bool:
    return error.protocol == "udp" and error.destination_port in TRACEROUTE_PORTS


def _loop(target: str, group: list[IcmpError], ranked: list[str], total: int) -> Finding:
    source = group[0].dst
    return Finding(
        kind="routing_loop",
        severity="HIGH",
        blame="network",
        protocol="ICMP",
        title=f"Packets from {source} to {target} go round in circles",
        detail=f"{count(total, 'packet')} ran out of hops at {few(ranked, 2)}.",
        who=Who(source, target),
        evidence=first_frames(error.sample_frames for error in group),
        cause=cause_of("routing_loop"),
        remediation=remediation_of("routing_loop", src=source, dst=target, router=ranked[0]),
        confidence="high" if total >= 2 * threshold("routing_loop.min_messages") else "medium",
        weight=total,
        measured={"ttl_exceeded": total, "routers": len(ranked)},
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
        yield Finding(
            kind="icmp_redirect",
            severity="LOW",
            blame="network",
            protocol="ICMP",
            title=f"{router} sends {source} to another gateway, {gateway or 'unnamed'}",
            detail=f"{count(messages, 'redirect')} for {few(targets)}: the first hop in use is not the best one.",
            who=Who(source, target),
            evidence=first_frames(error.sample_frames for error in group),
            cause=cause_of("icmp_redirect"),
            remediation=remediation_of("icmp_redirect", src=source, dst=target),
            confidence="medium",
            weight=messages,
            measured={"redirects": messages},
        )
