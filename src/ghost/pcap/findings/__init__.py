"""From an analysis to findings: deterministic rules, one cause one finding, most important first.

Rules read an `Analysis` and know neither files nor packets. Their numbers are in thresholds.toml, their words about
cause and cure in advice.toml. A capture with nothing broken in it gets one finding of kind `none`.
"""

from __future__ import annotations

from dataclasses import replace

from ghost.pcap.findings.broken import broken_findings
from ghost.pcap.findings.capture import capture_findings, healthy
from ghost.pcap.findings.control import control_findings
from ghost.pcap.findings.correlate import doubted, one_cause_each
from ghost.pcap.findings.finding import SEVERITIES, Finding, Remedy, Who
from ghost.pcap.findings.fragments import fragment_findings
from ghost.pcap.findings.handshake import handshake_findings
from ghost.pcap.findings.leases import lease_findings
from ghost.pcap.findings.limits import limit_findings
from ghost.pcap.findings.names import dns_findings
from ghost.pcap.findings.observed import observe
from ghost.pcap.findings.secure import tls_findings
from ghost.pcap.findings.segment import segment_findings
from ghost.pcap.findings.silent import silence_findings
from ghost.pcap.findings.size import size_findings
from ghost.pcap.findings.stalls import stall_findings
from ghost.pcap.findings.threats import threats_in
from ghost.pcap.findings.transfer import transfer_findings
from ghost.pcap.findings.turned_away import turned_away_findings
from ghost.pcap.findings.undecoded import is_blind
from ghost.pcap.findings.web import http_findings
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
        *handshake_findings(seen, threats),
        *broken_findings(seen),
        *turned_away_findings(seen),
        *size_findings(seen),
        *fragment_findings(seen),
        *transfer_findings(seen),
        *limit_findings(seen),
        *stall_findings(seen),
        *tls_findings(seen),
        *http_findings(seen),
        *segment_findings(seen, threats),
        *control_findings(seen, threats),
        *dns_findings(seen),
        *silence_findings(seen),
        *lease_findings(seen),
        *capture_findings(seen),
    ]
    found = doubted(one_cause_each(found))
    if all(finding.kind in ABOUT_THE_CAPTURE for finding in found) and not is_blind(analysis.summary):
        found.append(healthy(analysis))
    ranked = sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), -finding.weight))
    return tuple(replace(finding, id=f"F{number}") for number, finding in enumerate(ranked[:MOST], 1))
