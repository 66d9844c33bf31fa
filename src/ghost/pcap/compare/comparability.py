"""Decides whether a capture could have shown a fault: without traffic of a service it shows nothing about it."""

from __future__ import annotations

from ipaddress import ip_address

import numpy as np

from ghost.pcap.findings import Finding
from ghost.pcap.findings.decoding_coverage import is_mostly_undecoded
from ghost.pcap.findings.stream_columns import columns_of
from ghost.pcap.model import Analysis

_TRAFFIC_IS_THE_FAULT = {"port_scan", "syn_flood", "dns_suspicious"}
"""What is cured when it comes no more."""
_OVER_TCP = {"TCP", "TLS", "HTTP"}


def incomparable_reason(analysis: Analysis) -> str | None:
    """Return why a capture cannot be compared: `holds no packets`, `could not be read`."""
    if analysis.is_empty:
        return "holds no packets"
    return "could not be read" if is_mostly_undecoded(analysis.summary) else None


class CaptureScope:
    """Hosts and services with traffic in a capture."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._hosts: set[str] = set()
        self._services: set[tuple[str, int]] = set()
        if analysis.tcp is not None:
            columns = columns_of(analysis.tcp.streams)
            ends = np.unique(np.stack([columns.hosts.ravel(), columns.ports.ravel()], axis=1), axis=0)
            self._services = {(columns.host(host), port) for host, port in ends.tolist()}
            self._hosts = {host for host, _ in self._services}

    def could_observe(self, fault: Finding) -> bool:
        """Return whether the capture could have shown the finding."""
        if incomparable_reason(self._analysis) is not None:
            return False
        if fault.kind in _TRAFFIC_IS_THE_FAULT or not _is_address(fault.who.dst):
            return True
        if fault.protocol == "DNS":
            return self._analysis.dns is not None
        if fault.protocol not in _OVER_TCP:
            return True
        ends = (fault.who.dst, fault.who.src)
        if fault.who.port is None:
            return any(end in self._hosts for end in ends)
        return any((end, fault.who.port) in self._services for end in ends)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
