"""Connections that never came to be: unanswered, refused, flooded, scanned for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed, Service
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, few, first_frames, percent
from ghost.pcap.model import Stream


def handshake_findings(seen: Observed) -> Iterator[Finding]:
    """Threats first: what belongs to a flood or a scan is not reported again as unanswered or refused."""
    flooded, floods = _syn_floods(seen)
    scanners, scans = _port_scans(seen, flooded)
    yield from floods
    yield from scans
    yield from _unanswered(seen, flooded, scanners)
    yield from _refused(seen, flooded, scanners)


# --------------------------------------------------------------------------------------------------- unanswered


def _unanswered(seen: Observed, flooded: set[Service], scanners: set[str]) -> Iterator[Finding]:
    by_host: dict[str, dict[int, list[Stream]]] = defaultdict(dict)
    for service, streams in seen.unanswered.items():
        given_up = [s for s in streams if _given_up(s, seen.last_ns) and not _explained(seen, s, scanners)]
        if given_up and service not in flooded:
            by_host[service[0]][service[1]] = given_up
    for host, ports in by_host.items():
        others = sorted(seen.answering_ports.get(host, set()) - set(ports))
        if others:
            for port, streams in ports.items():
                yield _unanswered_port(seen, host, port, streams, others)
        else:
            yield from _silent_host(seen, host, ports)


def _explained(seen: Observed, stream: Stream, scanners: set[str]) -> bool:
    """By a scan, or because the answers of this host to this client take another path."""
    client = stream.client.endpoint.address
    return client in scanners or (client, stream.server.endpoint.address) in seen.one_sided


def _given_up(stream: Stream, last_ns: int) -> bool:
    attempts = stream.client.syn.count
    waited_ms = (last_ns - stream.first_ns) / 1e6
    return attempts >= threshold("syn_unanswered.min_attempts") or waited_ms >= threshold(
        "syn_unanswered.answer_window_ms"
    )


def _unanswered_port(seen: Observed, host: str, port: int, streams: list[Stream], others: list[int]) -> Finding:
    clients = _clients(streams)
    source = clients[0][0]
    served = seen.services[host, port]
    if source in served.clients_answered:
        advice, blame, confidence = "syn_unanswered", "network", "low"
        why = f"The same port answered {count(served.completed, 'other connection')}, so it fails only at times."
    elif served.clients_answered:
        advice, blame, confidence = "syn_unanswered_policy", "policy", "high"
        why = f"The same port answers {few(sorted(served.clients_answered))}, so this source is filtered."
    else:
        advice, blame, confidence = "syn_unanswered_policy", "policy", "high"
        why = f"The host answers on {few([f'port {p}' for p in others])}, so only this port is filtered."
    return _unanswered_finding(host, port, streams, advice, blame, why, confidence)


def _silent_host(seen: Observed, host: str, ports: dict[int, list[Stream]]) -> Iterator[Finding]:
    """No other port answers: one finding for the host, unless some of the very ports answer somebody."""
    mixed = [port for port in ports if seen.services[host, port].completed]
    for port in mixed:
        yield _unanswered_port(seen, host, port, ports[port], [])
    silent = {port: streams for port, streams in ports.items() if port not in mixed}
    if not silent:
        return
    busiest = max(silent, key=lambda port: sum(s.client.syn.count for s in silent[port]))
    streams = [stream for each in silent.values() for stream in each]
    if mixed:
        why = f"The host answers others on {few([f'port {p}' for p in mixed])}."
        yield _unanswered_finding(host, busiest, streams, "syn_unanswered_policy", "policy", why, "medium", len(silent))
        return
    why = "No other port of this host answers in the capture."
    yield _unanswered_finding(host, busiest, streams, "syn_unanswered", "network", why, "medium", len(silent))


def _unanswered_finding(
    host: str, port: int, streams: list[Stream], advice: str, blame: str, why: str, confidence: str, ports: int = 1
) -> Finding:
    clients = _clients(streams)
    source = clients[0][0]
    syns = sum(s.client.syn.count for s in streams)
    repeated = sum(s.syn_retransmissions for s in streams)
    where = at(host, port) if ports == 1 else f"{host} ({ports} ports, most often {port})"
    return Finding(
        kind="syn_unanswered",
        severity="HIGH",
        blame=blame,
        protocol="TCP",
        title=f"{_who_asks(clients)} no answer from {where}",
        detail=f"{count(syns, 'SYN')} in {count(len(streams), 'connection attempt')}"
        f" ({repeated} repeated), none answered. {why}",
        who=Who(source, host, port),
        evidence=first_frames(s.client.syn.frames for s in streams),
        cause=cause_of(advice),
        remediation=remediation_of(advice, src=source, dst=host, port=port),
        confidence=confidence,
        weight=syns,
        measured={"syn": syns, "syn_retransmitted": repeated, "answered": 0},
    )


def _clients(streams: Sequence[Stream]) -> list[tuple[str, int]]:
    return Counter(s.client.endpoint.address for s in streams).most_common()


def _who_asks(clients: list[tuple[str, int]]) -> str:
    return f"{clients[0][0]} gets" if len(clients) == 1 else f"{len(clients)} clients get"


# ------------------------------------------------------------------------------------------------------ refused


def _refused(seen: Observed, flooded: set[Service], scanners: set[str]) -> Iterator[Finding]:
    for (host, port), all_streams in seen.refused.items():
        streams = [s for s in all_streams if s.client.endpoint.address not in scanners]
        if not streams or (host, port) in flooded:
            continue
        strangers = [s for s in streams if _stranger(seen, s, host)]
        if strangers:
            yield _refused_by_stranger(seen, host, port, strangers)
        if len(strangers) < len(streams):
            yield _refused_port(seen, host, port, [s for s in streams if s not in strangers])


def _stranger(seen: Observed, stream: Stream, host: str) -> bool:
    """The RST's TTL is far from that of any other packet of this host."""
    if stream.rst_from == "neither":
        return True
    ttl, known = stream.server.rst_ttl, seen.ttls.get(host, set())
    tolerance = threshold("third_party_reset.ttl_tolerance")
    return ttl is not None and bool(known) and all(abs(ttl - other) > tolerance for other in known)


def _refused_port(seen: Observed, host: str, port: int, streams: list[Stream]) -> Finding:
    clients = _clients(streams)
    source = clients[0][0]
    served = seen.services[host, port].completed
    only = "" if not served else f" {count(served, 'other connection')} to it succeeded: the service comes and goes."
    refuses = f"{source} is" if len(clients) == 1 else f"{len(clients)} clients are"
    return Finding(
        kind="refused",
        severity="MEDIUM" if served else "HIGH",
        blame="server_application",
        protocol="TCP",
        title=f"{refuses} refused by {at(host, port)}",
        detail=f"{count(len(streams), 'connection attempt')} answered by a reset at once: nothing listens there.{only}",
        who=Who(source, host, port),
        evidence=first_frames(s.server.rst.frames for s in streams),
        cause=cause_of("refused"),
        remediation=remediation_of("refused", src=source, dst=host, port=port),
        confidence="high",
        weight=len(streams),
        measured={"refused": len(streams), "completed": served},
    )


def _refused_by_stranger(seen: Observed, host: str, port: int, streams: list[Stream]) -> Finding:
    source = _clients(streams)[0][0]
    ttls = sorted({s.server.rst_ttl for s in streams if s.server.rst_ttl is not None})
    known = sorted(seen.ttls.get(host, ()))
    against = f", other packets of the host have {few(known)}" if known else ""
    return Finding(
        kind="third_party_reset",
        severity="HIGH",
        blame="policy",
        protocol="TCP",
        title=f"A device in between resets connections of {source} to {at(host, port)}",
        detail=f"{count(len(streams), 'connection attempt')} reset; the resets have TTL {few(ttls)}{against}.",
        who=Who(source, host, port),
        evidence=first_frames(s.server.rst.frames for s in streams),
        cause=cause_of("third_party_reset"),
        remediation=remediation_of("third_party_reset", src=source, dst=host, port=port),
        confidence="high" if known else "medium",
        weight=len(streams),
        measured={"resets": len(streams)},
    )


# ------------------------------------------------------------------------------------------------------ threats


def _syn_floods(seen: Observed) -> tuple[set[Service], list[Finding]]:
    flooded: set[Service] = set()
    found: list[Finding] = []
    for service in seen.unanswered.keys() | seen.half_open.keys():
        streams = [*seen.unanswered.get(service, ()), *seen.half_open.get(service, ())]
        if _is_flood(seen, service, streams):
            flooded.add(service)
            found.append(_flood(seen, service, streams))
    return flooded, found


def _is_flood(seen: Observed, service: Service, streams: list[Stream]) -> bool:
    if len(streams) < threshold("syn_flood.min_unanswered_syn"):
        return False
    seconds = max((max(s.last_ns for s in streams) - min(s.first_ns for s in streams)) / 1e9, 0.001)
    repeated = sum(1 for s in streams if s.syn_retransmissions)
    return (
        len(streams) / seconds >= threshold("syn_flood.min_per_second")
        and percent(repeated, len(streams)) <= threshold("syn_flood.max_repeated_pct")
        and percent(seen.services[service].completed, seen.services[service].attempted)
        <= threshold("syn_flood.max_completed_pct")
    )


def _flood(seen: Observed, service: Service, streams: list[Stream]) -> Finding:
    host, port = service
    clients = _clients(streams)
    seconds = max((max(s.last_ns for s in streams) - min(s.first_ns for s in streams)) / 1e9, 0.001)
    completed = seen.services[service].completed
    return Finding(
        kind="syn_flood",
        severity="CRITICAL",
        blame="client",
        protocol="TCP",
        title=f"SYN flood against {at(host, port)}",
        detail=f"{len(streams)} connections from {count(len(clients), 'address', 'addresses')} opened and never"
        f" completed in {seconds:.1f} s ({len(streams) / seconds:.0f} a second); {completed} completed.",
        who=Who(clients[0][0], host, port),
        evidence=first_frames(s.client.syn.frames for s in streams[:5]),
        cause=cause_of("syn_flood"),
        remediation=remediation_of("syn_flood", src=clients[0][0], dst=host, port=port),
        confidence="high" if len(clients) > 1 else "medium",
        weight=len(streams),
        measured={"syn": len(streams), "sources": len(clients), "completed": completed},
    )


def _port_scans(seen: Observed, flooded: set[Service]) -> tuple[set[str], list[Finding]]:
    tried: dict[str, list[tuple[Service, Stream]]] = defaultdict(list)
    for services in (seen.unanswered, seen.refused):
        for service, streams in services.items():
            if service not in flooded:
                for stream in streams:
                    tried[stream.client.endpoint.address].append((service, stream))
    scanners: set[str] = set()
    found: list[Finding] = []
    for source, attempts in tried.items():
        finding = _scan(seen, source, attempts)
        if finding is not None:
            scanners.add(source)
            found.append(finding)
    return scanners, found


def _scan(seen: Observed, source: str, attempts: list[tuple[Service, Stream]]) -> Finding | None:
    hosts: dict[str, set[int]] = defaultdict(set)
    ports: dict[int, set[str]] = defaultdict(set)
    for (host, port), _ in attempts:
        hosts[host].add(port)
        ports[port].add(host)
    widest_host = max(hosts, key=lambda host: len(hosts[host]))
    widest_port = max(ports, key=lambda port: len(ports[port]))
    answered = seen.services_used[source]
    targets = len({service for service, _ in attempts})
    if percent(answered, answered + targets) > threshold("port_scan.max_answered_pct"):
        return None
    if len(hosts[widest_host]) >= threshold("port_scan.min_ports"):
        what = f"{len(hosts[widest_host])} closed or silent ports of {widest_host}"
        target, port = widest_host, min(hosts[widest_host])
    elif len(ports[widest_port]) >= threshold("port_scan.min_hosts"):
        what = f"port {widest_port} of {len(ports[widest_port])} hosts"
        target, port = min(ports[widest_port]), widest_port
    else:
        return None
    return Finding(
        kind="port_scan",
        severity="HIGH",
        blame="client",
        protocol="TCP",
        title=f"{source} scans {what}",
        detail=f"{count(len(attempts), 'connection attempt')} to {count(targets, 'service')} on"
        f" {count(len(hosts), 'host')} refused or unanswered, {answered} answered.",
        who=Who(source, target, port),
        evidence=first_frames(stream.client.syn.frames for _, stream in attempts[:5]),
        cause=cause_of("port_scan"),
        remediation=remediation_of("port_scan", src=source, dst=target, port=port),
        confidence="high",
        weight=len(attempts),
        measured={"attempts": len(attempts), "services": targets, "hosts": len(hosts), "answered": answered},
    )
