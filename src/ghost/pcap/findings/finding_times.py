"""When a finding was seen first and last, and the names of its hosts: what a person compares with changes and logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from ghost.pcap import safe_text
from ghost.pcap.findings.finding import Finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.stream_columns import SERVER, StreamRows
from ghost.pcap.tcp.stream_view import StreamView

_AT_THE_END = {"mid_session_reset", "third_party_reset", "early_close", "idle_timeout"}
"""Kinds of which the last packet of a stream is the event."""


def stream_times(seen: Observed, kind: str, rows: StreamRows) -> tuple[int, int]:
    """Return first and last time of what happened on these streams, ns since 1970."""
    c = seen.columns
    begin = c.last_ns if kind in _AT_THE_END else c.first_ns
    return int(begin[rows].min()), int(c.last_ns[rows].max())


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
    return replace(finding, first_ns=min(first, last), last_ns=max(first, last))


def _names_of(seen: Observed, hosts: Collection[str]) -> dict[str, str]:
    """Return the names by which clients of this capture know these hosts: asked for in TLS, HTTP or DNS."""
    streams, c = seen.columns.streams, seen.columns
    known: dict[str, dict[str, None]] = defaultdict(dict)
    if isinstance(streams, StreamView):
        for row, name in streams.server_names.items():
            host = c.host(int(c.hosts[row, SERVER]))
            if host in hosts:
                known[host].setdefault(name.lower().rpartition(":")[0] or name.lower())
    return {
        host: safe_text.name(next(iter(names)), 80) + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        for host, names in known.items()
    }
