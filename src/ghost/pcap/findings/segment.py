"""The local segment: addresses that two devices claim, and those that nobody answers for."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.pcap.findings.addresses import address_findings
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import count, few, first_frames
from ghost.pcap.model import Analysis, IcmpError, UnansweredArp


def segment_findings(analysis: Analysis, seen: Observed) -> Iterator[Finding]:
    if analysis.arp is not None:
        yield from address_findings(analysis.arp)
    yield from _hosts_down(analysis, seen)


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
