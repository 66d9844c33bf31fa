"""Rules about the capture itself: missing packets, copies, and what is said where no fault was recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ghost.pcap.findings.decoding_coverage import counted_only, decoding_findings, judged_packets, unread_pct
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import count, duration, few, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.unusual_events import unusual
from ghost.pcap.model import Analysis, CaptureSummary

NOBODY = Who("-", "-")


def capture_findings(seen: Observed) -> Iterator[Finding]:
    yield from _incomplete(seen.analysis)
    yield from decoding_findings(seen.analysis)
    yield from _duplicates(seen)


def _incomplete(analysis: Analysis) -> Iterator[Finding]:
    summary, tcp = analysis.summary, analysis.tcp
    missing_pct = 0.0 if summary.total_packets else 100.0
    reasons: list[str] = []
    dropped = summary.dropped_by_capturer or 0
    if percent(dropped, summary.total_packets + dropped) >= threshold("capture_incomplete.dropped_pct") and dropped:
        reasons.append(f"the capturer dropped {count(dropped, 'packet')}")
        missing_pct = max(missing_pct, percent(dropped, summary.total_packets + dropped))
    if summary.truncated_record:
        reasons.append("the file ends inside a packet record")
    unseen = tcp.totals.acked_unseen if tcp else 0
    if (
        tcp is not None
        and unseen >= threshold("capture_incomplete.min_acked_unseen")
        and percent(unseen, tcp.totals.packets) >= threshold("capture_incomplete.acked_unseen_pct")
    ):
        reasons.append(f"{count(unseen, 'acknowledgement')} concern data that is not in the file")
        missing_pct = max(missing_pct, percent(unseen, tcp.totals.packets))
    if not reasons:
        return
    yield make_finding(
        "capture_incomplete",
        severity="LOW",
        title="The capture is incomplete",
        detail="; ".join(reasons)[:1].upper() + "; ".join(reasons)[1:] + ".",
        who=NOBODY,
        evidence=[],
        confidence="high",
        weight=dropped + unseen,
        measured={"dropped": dropped, "acked_unseen": unseen, "missing_pct": round(missing_pct, 2)},
    )


def _duplicates(seen: Observed) -> Iterator[Finding]:
    """Yield a finding for copies of packets: captured twice (nearly all packets, several interfaces) or delivered twice
    by the network (some packets)."""
    analysis = seen.analysis
    copies = analysis.summary.duplicate_packets
    share = percent(copies.count, analysis.summary.total_packets)
    everything = share >= threshold("duplicate_packets.everything_pct")
    if copies.count >= threshold("duplicate_packets.min_packets") and share >= threshold("duplicate_packets.min_pct"):
        yield make_finding(
            "duplicate_packets" if everything else "packets_doubled",
            severity="LOW",
            title=f"{rate(share)} of the packets were captured twice"
            if everything
            else f"The network delivers {rate(share)} of the packets twice",
            detail=f"{copies.count:,} of {analysis.summary.total_packets:,} packets are copies of one seen just"
            " before; they are not counted as loss."
            + (
                " Nearly all packets were captured twice: several interfaces or both sides of a port were captured."
                if everything
                else " The network delivered some packets twice."
            ),
            who=NOBODY,
            evidence=[copies.frames],
            confidence="medium",
            weight=0.0 if everything else copies.count,
            measured={"duplicates": copies.count, "packets": analysis.summary.total_packets},
        )


def no_fault(seen: Observed, findings: Sequence[Finding]) -> Finding:
    """Return the finding `none`: what was judged, and what looks unusual in it."""
    analysis, summary = seen.analysis, seen.analysis.summary
    odd = unusual(seen, findings)
    empty = analysis.is_empty
    some_unread = unread_pct(summary) >= threshold("not_decoded.min_pct") or is_cut_short(summary)
    size = f"{count(summary.total_packets, 'packet')} in {duration(summary.duration_seconds * 1000)}."
    return make_finding(
        "empty" if empty else "none",
        severity="INFO",
        title="The capture holds no packets"
        if empty
        else "No fault recognised in what could be read of this capture"
        if some_unread
        else "No fault recognised in this capture",
        detail="There is nothing to judge: check the interface, the filter and the time of the capture."
        if empty
        else " ".join([size, *_numbers(analysis), *_not_judged(analysis)]),
        who=NOBODY,
        evidence=[],
        confidence=_confidence(seen, odd=len(odd)),
        unusual=odd,
        times=None if empty else (seen.first_ns, seen.last_ns),
    )


def _confidence(seen: Observed, *, odd: int) -> str:
    """Return the confidence of the finding `none`, by how much of the packets, the exchanges and the time there is."""
    summary = seen.analysis.summary
    judged = judged_packets(summary)
    if judged == 0 or unread_pct(summary) >= threshold("not_decoded.min_pct") or is_cut_short(summary):
        return "low"
    guessed = percent(counted_only(summary), summary.total_packets) >= threshold("not_decoded.counted_only_pct")
    whole = _whole_exchanges(seen)
    if not whole or judged < threshold("none.min_packets"):
        return "low" if odd or not whole else "medium"
    long = summary.duration_seconds * 1000 >= threshold("none.min_ms")
    return "high" if long and not odd and not guessed and whole >= threshold("none.min_exchanges") else "medium"


def _whole_exchanges(seen: Observed) -> int:
    """Return how many exchanges the capture holds from beginning to end: connections, lookups and pings."""
    c, analysis = seen.columns, seen.analysis
    answered = np.bincount(c.samples("response_ms")[0], minlength=len(c)) > 0
    connections = int(((c.handshake == "completed") & answered).sum())
    lookups = analysis.dns.responses_total if analysis.dns else 0
    return connections + lookups + (analysis.icmp.echo_pairs_matched if analysis.icmp else 0)


def is_cut_short(summary: CaptureSummary) -> bool:
    """Return whether the snap length cut so many packets that what programs say is mostly not in the file."""
    return percent(summary.cut_packets, summary.total_packets) >= threshold("capture_incomplete.cut_pct")


def _not_judged(analysis: Analysis) -> Iterator[str]:
    """Yield sentences on traffic that was not judged."""
    summary = analysis.summary
    if is_cut_short(summary):
        cut = count(summary.cut_packets, "packet")
        yield f"{cut} cut by the snap length of {summary.snap_length}: most of what programs say is not in the file."
    if percent(counted_only(summary), summary.total_packets) >= threshold("not_decoded.counted_only_pct"):
        datagrams = count(counted_only(summary), "datagram")
        yield f"UDP: {datagrams} counted; whether they were answered as intended is unknown."
    if summary.unread:
        named = few([f"{each.what} {each.packets:,}" for each in summary.unread])
        share = percent(summary.total_packets - judged_packets(summary), summary.total_packets)
        yield f"Not decoded: {named} ({rate(share)} of the packets)."


def _numbers(analysis: Analysis) -> Iterator[str]:
    if analysis.tcp is not None:
        tcp = analysis.tcp
        opened, done = tcp.connections.connections_attempted, tcp.connections.handshakes_completed
        lost = tcp.totals.lost_upstream + tcp.totals.lost_downstream
        rtt = f", median round trip {duration(tcp.handshake_rtt_ms.median)}" if tcp.handshake_rtt_ms else ""
        repaired = " and repaired" if lost else ""
        opened_here = f"{done} of {count(opened, 'handshake')} completed" if opened else "no handshake captured"
        yield f"TCP: {count(len(tcp.streams), 'stream')}, {opened_here}, {count(lost, 'segment')} lost{repaired}{rtt}."
    if analysis.dns is not None:
        dns = analysis.dns
        late = f", median {duration(dns.latency_ms.median)}" if dns.latency_ms else ""
        yield f"DNS: {count(dns.queries_total, 'query', 'queries')}, {dns.unanswered_total} unanswered{late}."
    if analysis.icmp is not None:
        silent = sum(address.count for address in analysis.icmp.unanswered_solicitations)
        asked = f", {count(silent, 'neighbour solicitation')} without an answer that was captured" if silent else ""
        yield f"ICMP: {count(analysis.icmp.packets, 'packet')}, {analysis.icmp.echo_unmatched} pings unanswered{asked}."
    if analysis.arp is not None:
        silent = sum(address.count for address in analysis.arp.unanswered_requests)
        requests = count(analysis.arp.total_requests, "request")
        yield f"ARP: {requests}, {silent} without a reply that was captured, no address conflict."
