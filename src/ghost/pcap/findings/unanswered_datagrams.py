"""Rules for requests by datagram that nobody answers: DHCP, other UDP services, ping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed
from ghost.pcap.findings.one_way_captures import replies_bypass_capture
from ghost.pcap.findings.phrasing import at, count, few, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import SilentServer

BROADCAST = "255.255.255.255"
_ANSWERS = ("offer", "ack", "nak")


def unanswered_datagram_findings(seen: Observed) -> Iterator[Finding]:
    yield from _no_lease(seen)
    yield from _no_response(seen)
    yield from _no_echo(seen)
    yield from _lost_echoes(seen)


def _finding(
    case: str, who: Who, *, severity: str, title: str, detail: str,
    frames: tuple[int, ...], requests: int, blame: str | None = None, protocol: str | None = None,
) -> Finding:  # fmt: skip
    return make_finding(
        case,
        severity=severity,
        blame=blame,
        protocol=protocol,
        title=title,
        detail=detail,
        who=who,
        evidence=[frames],
        confidence="medium",
        weight=requests,
        measured={"requests": requests, "answers": 0},
    )


def _no_lease(seen: Observed) -> Iterator[Finding]:
    """Yield the finding for DHCP clients that keep asking; they would stop at the first answer."""
    dhcp = seen.analysis.dhcp
    lost = [one for one in dhcp.unanswered if one.discoveries >= threshold("no_answer.min_requests")] if dhcp else []
    if dhcp is None or not lost:
        return
    total, others = sum(one.discoveries for one in lost), sum(dhcp.messages.get(kind, 0) for kind in _ANSWERS)
    yield _finding(
        "dhcp_unanswered", Who(lost[0].client, BROADCAST, 67),
        severity="HIGH" if len(lost) > 1 and not others else "MEDIUM",
        title=f"No DHCP server answers {few([one.client for one in lost])}",
        detail=f"{count(total, 'discovery', 'discoveries')} of {count(len(lost), 'client')} without an answer."
        + (f" {count(others, 'answer')} to others were captured." if others else ""),
        frames=tuple(frame for one in lost for frame in one.frames),
        requests=total,
    )  # fmt: skip


def _no_response(seen: Observed) -> Iterator[Finding]:
    """Yield findings for servers that answer no datagram.

    If the host answers by TCP, or another server answers instead, users notice a short delay at most.
    """
    for service in seen.analysis.services:
        silent = [
            one
            for one in service.silent_servers
            if one.requests >= threshold("no_answer.min_requests")
            and seen.last_ns - one.first_ns >= threshold("no_answer.min_wait_ms") * 1e6
            and not replies_bypass_capture(seen, one.client, one.address)
        ]
        name, by_tcp = service.name.upper(), [one for one in silent if one.address in seen.speakers]
        if by_tcp:
            servers = few([at(one.address, one.port) for one in by_tcp], 2)
            title = f"No {name} answer from {servers}, where TCP is answered"
            yield _silent(by_tcp, name, "LOW", "policy", title, "The same hosts answer by TCP.")
        for one in silent:
            if one.address not in seen.speakers:
                title = f"{at(one.address, one.port)} answers no {name} of {one.client}"
                others = f"Other {name} servers answer." if service.responses else f"No {name} server answers."
                yield _silent([one], name, "LOW" if service.responses else "MEDIUM", "undecided", title, others)


def _silent(servers: Sequence[SilentServer], protocol: str, severity: str, blame: str, title: str, why: str) -> Finding:
    requests, first = sum(one.requests for one in servers), servers[0]
    finding = _finding(
        "udp_unanswered", Who(first.client, first.address, first.port),
        severity=severity, blame=blame, protocol=protocol, title=title,
        detail=f"{count(requests, 'datagram')} without any answer. {why}",
        frames=tuple(frame for one in servers for frame in one.frames),
        requests=requests,
    )  # fmt: skip
    return replace(finding, other_pairs=tuple(Who(one.client, one.address, one.port) for one in servers[1:]))


def _no_echo(seen: Observed) -> Iterator[Finding]:
    """Yield findings for hosts that answer no ping, unless ICMP errors explain it."""
    icmp, dns = seen.analysis.icmp, seen.analysis.dns
    if icmp is None:
        return
    told = {error.unreachable_dst for error in icmp.errors}
    speaking = seen.speakers | {path.src for path in icmp.echo_paths}
    speaking |= {path.dst for path in icmp.echo_paths if path.replies}
    speaking |= {server.address for server in dns.servers if server.responses} if dns else set()
    silent = (
        path
        for path in icmp.echo_paths
        if not path.replies and path.requests >= threshold("no_answer.min_pings") and path.dst not in told
    )
    for path in islice(silent, MOST_GROUPS):
        if replies_bypass_capture(seen, path.src, path.dst):
            continue
        alive = path.dst in speaking
        yield _finding(
            "ping_unanswered", Who(path.src, path.dst),
            severity="LOW" if alive else "MEDIUM",
            blame="policy" if alive else "undecided",
            title=f"{path.dst} answers no ping of {path.src}",
            detail=f"{count(path.requests, 'request')} without a reply."
            + (" The host sends other packets: pings are filtered." if alive else " Nothing of the host was captured."),
            frames=path.sample_frames,
            requests=path.requests,
        )  # fmt: skip


def _lost_echoes(seen: Observed) -> Iterator[Finding]:
    """Yield findings for pings of which some, at any time, have no reply: request or reply was lost."""
    icmp = seen.analysis.icmp
    if seen.copies_pct >= threshold("duplicate_packets.min_pct"):
        return  # a request that is there twice is answered once
    traced = {error.unreachable_dst for error in icmp.of_kind("ttl_exceeded")} if icmp else set()
    for path in (path for path in icmp.echo_paths if path.dst not in traced) if icmp else ():
        share = percent(path.unmatched, path.requests)
        if (
            path.unmatched < threshold("loss.min_segments")
            or path.replies < path.unmatched
            or share < threshold("loss.medium_pct")
        ):
            continue
        yield make_finding(
            "pings_lost",
            severity="MEDIUM",
            title=f"{rate(share)} of the pings of {path.dst} by {path.src} have no reply",
            detail=f"{path.unmatched} of {count(path.requests, 'request')}; the others are answered: packets are lost"
            " on the way, or the host limits its replies. Which direction loses them is not known.",
            who=Who(path.src, path.dst),
            evidence=[path.sample_frames],
            confidence="medium",
            weight=path.unmatched,
            measured={"lost": path.unmatched, "requests": path.requests, "loss_pct": round(share, 2)},
            times=(path.first_request_ns, path.last_request_ns),
        )
