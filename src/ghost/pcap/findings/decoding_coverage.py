"""Rules for packets that were not decoded; no report may call them healthy."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.phrasing import count, few, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import Analysis, CaptureSummary

_CASES = {
    "link_type": "not_decoded_link", "encrypted": "not_decoded_encrypted", "tunnel": "not_decoded_tunnel",
    "cut": "not_decoded_cut", "damaged": "not_decoded_damaged", "protocol": "not_decoded_protocol",
}  # fmt: skip
_JUDGED_UDP = ("dns", "mdns", "llmnr", "dhcp", "dhcpv6", "ntp")


def decoding_findings(analysis: Analysis) -> Iterator[Finding]:
    summary = analysis.summary
    share, packets = unread_pct(summary), summary.unread_packets
    few_are = packets < threshold("not_decoded.min_packets") or share < threshold("not_decoded.min_pct")
    if few_are and not is_mostly_undecoded(summary):
        return
    parts = [each for each in summary.unread if each.why != "control"]
    named = few([f"{each.what} {each.packets:,}" for each in parts])
    case = _CASES[parts[0].why]
    yield make_finding(
        case,
        severity="LOW",
        title=f"{rate(share)} of the packets could not be read: {few([each.what for each in parts], 2)}",
        detail=f"{packets:,} of {count(summary.total_packets, 'packet')} were not decoded: {named}."
        + (
            " Whether the traffic in them works is unknown."
            if is_mostly_undecoded(summary)
            else " All findings concern the other packets."
        ),
        who=Who("-", "-"),
        evidence=([each.first_frame] for each in parts),
        confidence="high",
        weight=summary.total_packets if is_mostly_undecoded(summary) else 1.0,
        measured={
            "not_decoded": packets,
            "packets": summary.total_packets,
            "not_decoded_pct": round(share, 2),
        },
    )


def unread_pct(summary: CaptureSummary) -> float:
    return min(percent(summary.unread_packets, summary.total_packets), 100.0)


def is_mostly_undecoded(summary: CaptureSummary) -> bool:
    """Return whether the decoded packets are too few to judge the capture."""
    return summary.unread_packets > 0 and unread_pct(summary) >= threshold("not_decoded.blind_pct")


def judged_packets(summary: CaptureSummary) -> int:
    """Return how many packets at least one rule judges."""
    return max(summary.total_packets - sum(each.packets for each in summary.unread), 0)


def counted_only(summary: CaptureSummary) -> int:
    """Return the UDP datagrams that are counted but whose protocol is not read."""
    here = summary.protocols_present
    sealed = sum(each.packets for each in summary.unread if each.why in ("encrypted", "tunnel"))
    return max(here.get("udp", 0) - sum(here.get(name, 0) for name in _JUDGED_UDP) - sealed, 0)
