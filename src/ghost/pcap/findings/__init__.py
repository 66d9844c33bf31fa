"""From an analysis to findings: deterministic rules, one cause one finding, most important first.

Rules read an `Analysis` and know neither files nor packets. Thresholds are in thresholds.toml; kind,
blame, cause and commands of each case in findings.toml. A capture without a fault gets one finding of kind `none`.

    finding                the type of a finding
    finding_cases          makes findings from the cases in findings.toml
    finding_times          when each was seen, and the names of its hosts
    rule_settings          thresholds and ports, from TOML files
    phrasing               numbers and addresses in a sentence
    observations           what several rules ask of a capture, computed once
    stream_columns         all TCP streams as columns
    correlation            drops findings that another explains better
    common_causes          failures with a host in common, as one finding
    connection_setup       connections that never opened
    refused_connections    resets that answer SYNs
    half_open_connections  SYN-ACKs that were never acknowledged
    accept_queue           full accept queues
    snat_exhaustion        a NAT without free source ports
    dead_backends          balancers with a dead backend
    reset_origin           resets sent by a device closer than the peer
    host_reachability      hosts that answer by other protocols
    post_handshake_resets  resets straight after the handshake
    connection_aborts      resets, idle timeouts and early closes
    keepalive_close        requests that cross the close of a kept connection
    silent_peers           connections on which one end fell silent
    outages                hosts or paths that fell silent
    host_activity          when each address was last heard
    packet_transit         loss, reordering, one-way captures: the rules about packets on the path
    packet_loss            loss by direction
    one_way_captures       captures of one direction only
    interruptions          seconds in which nothing passed
    path_mtu               path MTU discovery that fails
    fragmentation          datagrams of which fragments are missing
    throughput_limits      deep queues, rate limits, small windows, long round trips
    rate_policing          policers that hit several senders
    path_changes           round trips that grew at one moment
    endpoint_delays        zero windows and slow servers
    server_greetings       servers that speak first and do not
    one_way_messages       messages that need no answer
    long_polls             requests held open on purpose
    tls_faults             failed TLS handshakes, expiring certificates
    http_faults            HTTP errors and slow answers
    dns_faults             DNS: missing names, failures, timeouts, slow servers
    dns_contradictions     answers that contradict each other, or where clients go
    repeated_lookups       missing names that a program needs
    dns_abuse              generated names, data in names
    local_segment          ARP conflicts, hosts that are down
    address_claims         which device claims an address
    icmp_errors            what ICMP errors report
    unanswered_datagrams   DHCP, other UDP services and pings without answers
    attack_patterns        floods and scans
    syn_floods             SYN floods, told from crowds of clients
    decoding_coverage      packets that could not be decoded
    capture_quality        what the capture lacks; the verdict without a fault
    unusual_events         what looks unusual although no rule calls it a fault
"""

from __future__ import annotations

from dataclasses import replace

from ghost.pcap.findings.attack_patterns import threats_in
from ghost.pcap.findings.capture_quality import capture_findings, no_fault
from ghost.pcap.findings.connection_aborts import abort_findings
from ghost.pcap.findings.connection_setup import connection_setup_findings
from ghost.pcap.findings.correlation import with_lower_confidence, without_explained
from ghost.pcap.findings.decoding_coverage import is_mostly_undecoded
from ghost.pcap.findings.dns_faults import dns_findings
from ghost.pcap.findings.endpoint_delays import endpoint_delay_findings
from ghost.pcap.findings.finding import SEVERITIES, Finding, Remedy, Who
from ghost.pcap.findings.finding_times import with_times_and_names
from ghost.pcap.findings.fragmentation import fragment_findings
from ghost.pcap.findings.http_faults import http_findings
from ghost.pcap.findings.icmp_errors import icmp_findings
from ghost.pcap.findings.local_segment import local_segment_findings
from ghost.pcap.findings.observations import observe
from ghost.pcap.findings.packet_transit import transit_findings
from ghost.pcap.findings.path_mtu import path_mtu_findings
from ghost.pcap.findings.post_handshake_resets import post_handshake_reset_findings
from ghost.pcap.findings.throughput_limits import throughput_findings
from ghost.pcap.findings.tls_faults import tls_findings
from ghost.pcap.findings.unanswered_datagrams import unanswered_datagram_findings
from ghost.pcap.model import Analysis

MOST = 20
ABOUT_THE_CAPTURE = {"capture_incomplete", "not_decoded", "duplicate_packets"}

__all__ = ["MOST", "Finding", "Remedy", "Who", "find"]


def find(analysis: Analysis) -> tuple[Finding, ...]:
    """What is wrong in the capture, most important first, with ids `F1`, `F2`, ..."""
    seen = observe(analysis)
    threats = threats_in(seen)
    found = [
        *threats.findings,
        *connection_setup_findings(seen, threats),
        *abort_findings(seen),
        *post_handshake_reset_findings(seen),
        *path_mtu_findings(seen),
        *fragment_findings(seen),
        *transit_findings(seen),
        *throughput_findings(seen),
        *endpoint_delay_findings(seen),
        *tls_findings(seen),
        *http_findings(seen),
        *local_segment_findings(seen, threats),
        *icmp_findings(seen, threats),
        *dns_findings(seen),
        *unanswered_datagram_findings(seen),
        *capture_findings(seen),
    ]
    found = with_lower_confidence(without_explained(found))
    if all(finding.kind in ABOUT_THE_CAPTURE for finding in found) and not is_mostly_undecoded(analysis.summary):
        found.append(no_fault(seen, found))
    ranked = sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), -finding.weight))
    told = with_times_and_names(seen, ranked[:MOST])
    return tuple(replace(finding, id=f"F{number}") for number, finding in enumerate(told, 1))
