"""When a finding was seen first and last, and the names of its hosts: what a person compares with changes and logs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

import numpy as np

from ghost.pcap import safe_text
from ghost.pcap.findings.finding import Finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import FRAMES, few
from ghost.pcap.findings.stream_columns import SERVER, StreamRows

_ADDRESS = re.compile(r"[0-9.]+|[0-9a-f:.\[\]]*:[0-9a-f:.\[\]]*")
_AT_THE_END = {"mid_session_reset", "third_party_reset", "early_close", "idle_timeout"}
"""Kinds of which the last packet of a stream is the event."""


def stream_times(seen: Observed, kind: str, rows: StreamRows) -> tuple[int, int]:
    """Return first and last time of what happened on these streams, ns since 1970."""
    c, clock = seen.columns, seen.analysis.clock
    if kind in _AT_THE_END and clock is not None:
        ends = np.concatenate([c.first_frames("rst")[rows], c.first_frames("fin")[rows]], axis=1)
        frames = np.where(ends > 0, ends, np.iinfo(np.int64).max).min(axis=1)
        times = [clock.at(int(frame)) for frame in frames[ends.any(axis=1)]]
        if times:
            return min(times), max(times)
    return int(c.first_ns[rows].min()), int(c.last_ns[rows].max())


def with_times_and_names(seen: Observed, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with the times of their frames, where no rule gave any, and the names of their hosts."""
    names = _names_of(seen, {host for finding in findings for host in (finding.who.src, finding.who.dst)})
    return [
        replace(
            _dated(seen, finding),
            names={host: names[host] for host in (finding.who.src, finding.who.dst) if host in names},
        )
        for finding in findings
    ]


def _dated(seen: Observed, finding: Finding) -> Finding:
    clock = seen.analysis.clock
    if finding.first_ns is not None or finding.frames is None or clock is None:
        return finding
    first, last = (clock.at(frame) for frame in finding.frames)
    if finding.frames[1] == finding.evidence[-1] and len(finding.evidence) == FRAMES:
        return replace(finding, first_ns=first)  # evidence is cut: when it was seen last is not known
    return replace(finding, first_ns=min(first, last), last_ns=max(first, last))


def _names_of(seen: Observed, hosts: AbstractSet[str]) -> dict[str, str]:
    """Return the names by which clients of this capture know these hosts: asked for in TLS, HTTP or DNS."""
    c, http, dns = seen.columns, seen.analysis.http, seen.analysis.dns
    known: dict[str, dict[str, None]] = defaultdict(dict)
    numbers = {seen.number_of[host]: host for host in hosts if host in seen.number_of}
    proxied = http is not None and "CONNECT" in http.methods  # the name is that of another host
    for row, name in () if proxied else c.server_names.items():
        host = numbers.get(int(c.hosts[row, SERVER]))
        plain = name.lower().rpartition(":")[0] or name.lower()
        if host is not None and not _ADDRESS.fullmatch(plain):
            known[host].setdefault(plain)
    for answer in dns.answers if dns else ():
        for host in hosts & set(answer.addresses):
            known[host].setdefault(answer.name.lower().rstrip("."))
    return {host: few([safe_text.name(name, 80) for name in names]) for host, names in known.items()}
