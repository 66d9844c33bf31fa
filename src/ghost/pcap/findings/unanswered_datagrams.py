"""Rules for datagram services that never answer: DHCP, NTP, ping, QUIC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed
from ghost.pcap.findings.one_way_captures import replies_bypass_capture
from ghost.pcap.findings.phrasing import at, count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import QuicUnanswered

BROADCAST = "255.255.255.255"
_ANSWERS = ("offer", "ack", "nak")


def unanswered_datagram_findings(seen: Observed) -> Iterator[Finding]:
    yield from _no_lease(seen)
    yield from _no_time(seen)
    yield from _no_echo(seen)
    yield from _no_quic(seen)


def _finding(
    case: str, who: Who, *, severity: str, title: str, detail: str,
    frames: tuple[int, ...], requests: int, blame: str | None = None,
) -> Finding:  # fmt: skip
    return make_finding(
        case,
        severity=severity,
        blame=blame,
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
    lost = [one for one in dhcp.unanswered if one.discoveries >= threshold("no_answer.min_dhcp")] if dhcp else []
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


def _no_time(seen: Observed) -> Iterator[Finding]:
    ntp = seen.analysis.ntp
    for server in ntp.servers if ntp else ():
        never = server.stratum is None and server.unanswered > 0
        if not never or server.requests < threshold("no_answer.min_ntp") or server.client is None:
            continue
        if replies_bypass_capture(seen, server.client, server.server):
            continue
        others = bool(ntp and ntp.responses)
        yield _finding(
            "ntp_unanswered", Who(server.client, server.server, 123),
            severity="LOW" if others else "MEDIUM",
            title=f"The time server {server.server} never answers",
            detail=f"{count(server.requests, 'request')} without an answer."
            + (" Other time servers answer." if others else " No time server in this capture answers."),
            frames=server.frames,
            requests=server.requests,
        )  # fmt: skip


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


def _no_quic(seen: Observed) -> Iterator[Finding]:
    """Yield findings for servers that answer no QUIC; if TCP works, users only notice a short delay."""
    quic = seen.analysis.quic
    never = [one for one in quic.unanswered if not one.answered] if quic else []
    silent = [one for one in never if not replies_bypass_capture(seen, one.client, one.server)]
    instead = [one for one in silent if seen.traffic(one.server, one.client) is not None]
    dead = [one for one in silent if one.server not in seen.speakers and one.client in seen.udp_answered_clients]
    if sum(one.attempts for one in instead) >= threshold("no_answer.min_quic"):
        servers = list(dict.fromkeys(at(one.server, one.port) for one in instead))
        yield _quic(
            instead, "LOW", "policy", f"No QUIC answer from {few(servers, 2)}, where TCP is answered",
            "The same hosts answer by TCP: datagrams to this port are dropped on the way, or QUIC is not served there.",
        )  # fmt: skip
    for one in dead:
        if one.attempts >= threshold("no_answer.min_quic"):
            title = f"{at(one.server, one.port)} answers no QUIC of {one.client}"
            yield _quic([one], "MEDIUM", "undecided", title, "Nothing else of the host was captured.")


def _quic(rows: Sequence[QuicUnanswered], severity: str, blame: str, title: str, why: str) -> Finding:
    attempts, first = sum(one.attempts for one in rows), rows[0]
    finding = _finding(
        "quic_unanswered", Who(first.client, first.server, first.port),
        severity=severity, blame=blame, title=title,
        detail=f"{count(attempts, 'connection attempt')} without any answer. {why}",
        frames=tuple(frame for one in rows for frame in one.frames),
        requests=attempts,
    )  # fmt: skip
    return replace(finding, other_pairs=tuple(Who(one.client, one.server, one.port) for one in rows[1:]))
