"""Rule for DHCP servers that refuse (NAK) every request of a client."""

from __future__ import annotations

from collections.abc import Iterator

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import count, few
from ghost.pcap.findings.rule_settings import threshold

_SERVER_PORT = 67


def dhcp_refusal_findings(seen: Observed) -> Iterator[Finding]:
    """Yield the finding for clients that are refused even what they were offered.

    A single refusal is normal for a client that came from another network.
    """
    dhcp = seen.analysis.dhcp
    lost = [
        one
        for one in (dhcp.refused if dhcp else ())
        if one.requests >= threshold("dhcp_failure.min_refused") and one.offered
    ]
    if dhcp is None or not lost:
        return
    clients, servers = [one.client for one in lost], list(dict.fromkeys(name for one in lost for name in one.servers))
    total, granted = sum(one.requests for one in lost), dhcp.messages.get("ack", 0)
    yield make_finding(
        "dhcp_refused",
        severity="HIGH" if len(lost) > 1 and not granted else "MEDIUM",
        title=f"The DHCP server {few(servers)} refuses every request of {few(clients)}",
        detail=f"{count(total, 'request')} of {count(len(lost), 'client')} in a row refused (DHCPNAK),"
        f" {sum(one.offered for one in lost)} of them for an address just offered; "
        + (f"{count(granted, 'request')} of other clients granted." if granted else "no address was granted."),
        who=Who(clients[0], servers[0], _SERVER_PORT),
        evidence=(one.frames for one in lost),
        confidence="high" if len(lost) > 1 else "medium",
        weight=total,
        measured={"refused": total, "clients": len(lost), "granted": granted},
    )
