"""Captures that hold one direction of a conversation; packets that are not in them prove no silence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import count
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.model import DnsSection

DNS = 53


def was_captured_one_way(seen: Observed) -> bool:
    """Return whether several host pairs were captured and none in both directions: an effect of the capture.

    A single pair may be routed asymmetrically.
    """
    analysis = seen.analysis
    hosts = max(len(seen.columns.addresses), 1)
    heard = seen.path_keys[0][seen.sent_on > 0]
    here, there = np.divmod(heard, hosts)
    if (among(there * hosts + here, heard) & (here != there)).any():
        return False
    if any(
        talk.client_packets and talk.server_packets for talk in (analysis.udp.conversations if analysis.udp else ())
    ):
        return False
    if any(path.requests and path.replies for path in (analysis.icmp.echo_paths if analysis.icmp else ())):
        return False
    servers = analysis.dns.servers if analysis.dns else ()
    if any(server.queries and server.responses for server in servers):
        return False
    alone = {(server.address, server.unasked_client) for server in servers if server.unasked_client is not None}
    return len({frozenset(path) for path in (*seen.one_way_streams, *alone)}) > 1


def replies_bypass_capture(seen: Observed, client: str, server: str) -> bool:
    """Return whether TCP shows that the client receives packets although none to it was captured."""
    if (client, server) in seen.uncaptured_replies and seen.traffic(server, client) is None:
        return True
    return client in seen.send_only_hosts


def responses_without_queries(seen: Observed, dns: DnsSection) -> Iterator[Finding]:
    """Yield findings for DNS servers whose responses were captured without any query, unless TCP shows the same for
    these hosts."""
    said = {host for path in seen.one_way_streams for host in path}
    captured_so = was_captured_one_way(seen)
    case = "asymmetric_capture" if captured_so else "asymmetric"
    for server in dns.servers:
        client, unasked = server.unasked_client, server.unasked
        if client is None or server.queries or unasked.count < threshold("asymmetric.min_packets"):
            continue
        if said.isdisjoint({server.address, client}):
            yield make_finding(
                case,
                severity="LOW" if captured_so else "MEDIUM",
                protocol="DNS",
                title=f"Only one direction was captured: {server.address} to {client}",
                detail=f"{count(unasked.count, 'DNS response')} and none of the queries: repeated or unanswered queries"
                " cannot be seen here.",
                who=Who(server.address, client, DNS),
                evidence=[unasked.frames],
                confidence="medium",
                weight=unasked.count,
                measured={"packets": unasked.count, "queries": 0},
            )
