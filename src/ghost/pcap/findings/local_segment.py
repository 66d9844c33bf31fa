"""Rules for the local segment: conflicting addresses, and addresses without a reply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ghost.pcap.findings.address_claims import address_findings
from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.host_activity import LastHeard
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import IcmpError, UnansweredArp


def local_segment_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    if seen.analysis.arp is not None:
        yield from address_findings(seen.analysis.arp)
    yield from _hosts_down(seen, threats)


@dataclass(frozen=True)
class _Down:
    """An unreachable address, and the evidence: unanswered ARP requests, ICMP errors, or both."""

    address: str
    source: str
    silent: UnansweredArp | None
    reports: tuple[IcmpError, ...]

    @property
    def no_route(self) -> bool:
        """Return whether the router has no route (network unreachable) rather than no ARP reply (host unreachable)."""
        hosts = any(error.code == 1 if error.version == 4 else error.code != 0 for error in self.reports)
        return self.silent is None and not hosts

    @property
    def said_by(self) -> str:
        """The router that reports it most often; without a report, the requester."""
        return max(self.reports, key=lambda error: error.count).src if self.reports else self.source

    @property
    def is_needed(self) -> bool:
        """Return whether the address is in use: reported by routers, requested by several, or for longer than a single
        attempt."""
        silent = self.silent
        again = silent is not None and silent.count > threshold("host_down.requests_an_attempt")
        return bool(self.reports) or again or (silent is not None and len(silent.asked_by) > 1)

    @property
    def weight(self) -> int:
        return sum(error.count for error in self.reports) + (self.silent.count if self.silent else 0)


def _hosts_down(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings for unreachable hosts.

    Many addresses requested by one host, or reported by one router, are one finding; those without a route always are.
    """
    groups: dict[tuple[str, bool, bool], list[_Down]] = {}
    for down in _down(seen, threats):
        groups.setdefault((down.said_by, down.no_route, down.is_needed), []).append(down)
    for (_, no_route, needed), group in groups.items():
        if not needed and len(group) >= threshold("port_scan.min_hosts"):
            yield _sweep(group[0].source, group)
        elif no_route or len(group) >= threshold("icmp.many"):
            yield _finding(sorted(group, key=lambda down: -down.weight))
        else:
            for down in group:
                yield _finding([down])


def _down(seen: Observed, threats: Threats) -> Iterator[_Down]:
    """Yield unreachable addresses.

    Missing ARP replies are weak evidence (a switch does not show them), so the requester must be heard otherwise, or
    ICMP must agree.
    """
    analysis = seen.analysis
    unreachable: dict[str, list[IcmpError]] = {}
    for error in analysis.icmp.of_kind("unreachable") if analysis.icmp else ():
        scanned = (error.dst, error.unreachable_dst, error.destination_port) in threats.tried
        if _reports_down(error) and error.unreachable_dst and not scanned:
            unreachable.setdefault(error.unreachable_dst, []).append(error)
    heard = LastHeard(seen)
    for silent in seen.unanswered_requests:
        reports = unreachable.pop(silent.ip, [])
        agreed = reports if heard.reported(silent.ip, reports) else []
        askers = heard.unanswered_requesters(silent)
        if agreed or askers:
            yield _Down(silent.ip, (askers or list(silent.asked_by) or ["?"])[0], silent, tuple(agreed))
    for address, agreed in unreachable.items():
        if heard.reported(address, agreed):
            yield _Down(address, agreed[0].dst, None, tuple(agreed))


def _sweep(source: str, group: list[_Down]) -> Finding:
    first = group[0].address
    requests = sum(down.weight for down in group)
    return make_finding(
        "port_scan",
        severity="MEDIUM",
        protocol="NDP" if ":" in first else "ARP",
        title=f"{source} asks for {len(group)} addresses that no host has, such as {first}",
        detail=f"{count(requests, 'request')} had no reply, a few for each address: a scan, by this host"
        " or by one whose packets it forwards.",
        who=Who(source, first),
        evidence=(down.silent.sample_frames for down in group if down.silent is not None),
        confidence="medium",
        weight=1,
        measured={"arp_requests": requests, "hosts": len(group)},
        other_targets=tuple((down.address, None) for down in group[1:]),
    )


def _reports_down(error: IcmpError) -> bool:
    """Return whether the error is host or network unreachable."""
    if error.version == 4:
        return error.code in (0, 1, 6, 7)
    return error.code in (0, 3)


def _title(group: list[_Down]) -> str:
    first = group[0]
    if len(group) == 1:
        return f"{first.address} is unreachable: no host answers for it"
    if first.no_route:
        return f"{first.said_by} has no route to {len(group)} hosts, such as {first.address}"
    return f"{len(group)} hosts, such as {first.address}, are unreachable: no host answers for them"


def _finding(group: list[_Down]) -> Finding:
    """Return the finding for one address, or for many with one requester or reporter."""
    first = group[0]
    silent = [down.silent for down in group if down.silent is not None]
    agreed = [error for down in group for error in down.reports]
    requests, reports = sum(one.count for one in silent), sum(error.count for error in agreed)
    routers = sorted({error.src for error in agreed})
    it = "it" if len(group) == 1 else "them"
    six = ":" in first.address
    parts = []
    if silent:
        parts.append(f"{count(requests, 'neighbour solicitation' if six else 'ARP request')} for {it} had no reply")
    if agreed:
        meaning = agreed[0].code_meaning.lower()
        parts.append(f"{few(routers)} reported {it} unreachable {count(reports, 'time')} ({meaning})")
    once = not silent and reports == 1  # one message may be about a moment
    case = "net_unreachable" if first.no_route else "host_down_6" if six else "host_down"
    router = routers[0] if routers else None
    return make_finding(
        case,
        severity="HIGH" if agreed and not once else "MEDIUM",
        protocol="ICMP" if agreed and not silent else "NDP" if six else "ARP",
        title=f"{routers[0]} reported {first.address} unreachable, once" if once else _title(group),
        detail=" and ".join(parts) + ".",
        who=Who(first.source, first.address),
        evidence=[*(e.sample_frames for e in agreed), *(one.sample_frames for one in silent)],
        confidence="low" if once else "high" if agreed and silent else "medium",
        weight=reports + requests,
        measured={"solicitations" if six else "arp_requests": requests, "unreachable_messages": reports}
        | ({"hosts": len(group)} if len(group) > 1 else {}),
        other_targets=tuple((down.address, None) for down in group[1:]),
        router=router,
    )
