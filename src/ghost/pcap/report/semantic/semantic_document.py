"""The summary of one capture: all its sections, cut to size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ghost.pcap.findings import Finding
from ghost.pcap.model import Analysis
from ghost.pcap.report.semantic import application_sections, transport_sections
from ghost.pcap.report.semantic.token_budget import cut, dump, estimated_tokens
from ghost.pcap.report.semantic.value_format import DETAILS, finding_entry

AIM_TOKENS = 5_000
MOST_TOKENS = 8_000
_LEAST = 3
"""Entries that a list keeps to reach the aim; to keep the limit it may come down to one."""

_LEAST_FINDINGS = 8
"""The same for findings; the least important give way."""

_SECTIONS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "arp": transport_sections.arp_section,
    "icmp": transport_sections.icmp_section,
    "tcp": transport_sections.tcp_section,
    "udp": transport_sections.udp_section,
    "dns": application_sections.dns_section,
    "tls": application_sections.tls_section,
    "http": application_sections.http_section,
    "dhcp": application_sections.dhcp_section,
}


def semantic(analysis: Analysis, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the summary with as much detail as the target size allows, and at least what the limit allows."""
    document: dict[str, Any] = {"capture_summary": transport_sections.capture_summary(analysis)}
    for name, section in _SECTIONS.items():
        part = getattr(analysis, name)
        if part is not None:
            document[name] = section(part)
    for service in analysis.services:
        document[service.name] = application_sections.service_section(service)
    told = [finding_entry(finding, DETAILS[0]) for finding in findings]
    cut(document, AIM_TOKENS - _tokens({"findings": told}), _LEAST)
    for detail in DETAILS:
        told = [finding_entry(finding, detail) for finding in findings]
        if _tokens({**document, "findings": told}) <= AIM_TOKENS:
            return {**document, "findings": told}
    cut(document, max(AIM_TOKENS - _tokens({"findings": told}), 0), 1)
    while told and _tokens({**document, "findings": told}) > (
        AIM_TOKENS if len(told) > _LEAST_FINDINGS else MOST_TOKENS
    ):
        told.pop()
        document["findings_omitted"] = len(findings) - len(told)
    return {**document, "findings": told}


def _tokens(document: dict[str, Any]) -> int:
    return estimated_tokens(dump(document))
