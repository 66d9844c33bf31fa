"""The local segment: two devices with one address, and addresses that nobody answers for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import count, few, first_frames
from ghost.pcap.model import Analysis, ArpSection, DuplicateAddress, IcmpError, UnansweredArp


def segment_findings(analysis: Analysis, seen: Observed) -> Iterator[Finding]:
    if analysis.arp is not None:
        yield from _conflicts(analysis.arp)
    yield from _hosts_down(analysis, seen)


def _conflicts(arp: ArpSection) -> Iterator[Finding]:
    claims = Counter(mac for conflict in arp.duplicate_ips for mac in conflict.macs)
    for conflict in arp.duplicate_ips:
        thief = next((mac for mac in conflict.macs if claims[mac] >= threshold("arp_conflict.spoofed_addresses")), None)
        yield _conflict(conflict, thief, claims)


def _conflict(conflict: DuplicateAddress, thief: str | None, claims: Counter[str]) -> Finding:
    moved = conflict.alternations < threshold("arp_conflict.min_alternations")
    if thief is not None:
        severity, title = "CRITICAL", f"{thief} claims the address {conflict.ip} of another device (ARP spoofing)"
    elif moved:
        severity, title = "LOW", f"The address {conflict.ip} moved to another device"
    else:
        severity, title = "HIGH", f"{len(conflict.macs)} devices claim the address {conflict.ip}"
    changes = f"the claim changed {count(conflict.alternations, 'time')}"
    also = f"; {thief} claims {claims[thief]} addresses that others hold" if thief is not None else ""
    return Finding(
        kind="arp_conflict",
        severity=severity,
        blame="server_host" if thief is None else "network",
        protocol="ARP",
        title=title,
        detail=f"{few(conflict.macs)} announce {conflict.ip}; {changes}{also}.",
        who=Who(conflict.ip, conflict.ip),
        evidence=first_frames([conflict.sample_frames]),
        cause=cause_of("arp_moved" if moved and thief is None else "arp_conflict"),
        remediation=remediation_of("arp_conflict", src=conflict.ip),
        confidence="medium" if moved else "high",
        weight=conflict.alternations,
        measured={"macs": len(conflict.macs), "alternations": conflict.alternations},
    )


def _hosts_down(analysis: Analysis, seen: Observed) -> Iterator[Finding]:
    """ARP silence alone proves little: a switch does not show the replies to others. So the one who asks must be
    heard otherwise, or ICMP must agree."""
    errors = analysis.icmp.of_kind("unreachable") if analysis.icmp else ()
    unreachable: dict[str, list[IcmpError]] = {}
    for error in errors:
        if _says_down(error) and error.unreachable_dst:
            unreachable.setdefault(error.unreachable_dst, []).append(error)
    speakers = seen.speakers | _other_speakers(analysis)
    for silent in analysis.arp.unanswered_requests if analysis.arp else ():
        agreed = unreachable.pop(silent.ip, [])
        heard = [address for address in silent.asked_by if address in speakers]
        asked_enough = silent.count >= threshold("host_down.min_requests") and not silent.ever_answered
        if silent.ip not in speakers and (agreed or (asked_enough and heard)):
            yield _down(silent.ip, silent, agreed, (heard or list(silent.asked_by) or ["?"])[0])
    for address, agreed in unreachable.items():
        if address not in speakers:
            yield _down(address, None, agreed, agreed[0].dst)


def _says_down(error: IcmpError) -> bool:
    """Host or network unreachable: a router has nobody to hand the packet to."""
    if error.version == 4:
        return error.code in (0, 1, 6, 7)
    return error.code in (0, 3)


def _other_speakers(analysis: Analysis) -> set[str]:
    speakers: set[str] = set()
    if analysis.udp is not None:
        for talk in analysis.udp.conversations:
            speakers.add(talk.client.address)
            if talk.server_packets:
                speakers.add(talk.server.address)
    if analysis.icmp is not None:
        for path in analysis.icmp.echo_paths:
            speakers.add(path.src)
            if path.replies:
                speakers.add(path.dst)
    return speakers


def _down(address: str, silent: UnansweredArp | None, agreed: list[IcmpError], source: str) -> Finding:
    reports = sum(error.count for error in agreed)
    routers = sorted({error.src for error in agreed})
    parts = []
    if silent is not None:
        parts.append(f"{count(silent.count, 'ARP request')} for it had no reply")
    if agreed:
        parts.append(
            f"{few(routers)} reported it unreachable {count(reports, 'time')} ({agreed[0].code_meaning.lower()})"
        )
    # Its last router says "host" when nobody answers it there, "network" when it has no route.
    no_route = silent is None and all(error.code != 1 if error.version == 4 else error.code == 0 for error in agreed)
    by_router = silent is None and bool(agreed)
    advice = "net_unreachable" if no_route else "host_down"
    return Finding(
        kind="host_down",
        severity="HIGH" if agreed else "MEDIUM",
        blame="network" if no_route else "server_host",
        protocol="ICMP" if by_router else "ARP",
        title=f"{address} is unreachable: nobody answers for it",
        detail=" and ".join(parts) + ".",
        who=Who(source, address),
        evidence=first_frames([*(e.sample_frames for e in agreed), silent.sample_frames if silent else ()]),
        cause=cause_of(advice),
        remediation=remediation_of(advice, src=source, dst=address, router=routers[0] if routers else None),
        confidence="high" if agreed and silent else "medium",
        weight=reports + (silent.count if silent else 0),
        measured={"arp_requests": silent.count if silent else 0, "unreachable_messages": reports},
    )
