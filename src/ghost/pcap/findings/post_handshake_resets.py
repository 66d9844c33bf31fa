"""Rule for servers that reset a connection right after the handshake, before either side sent data.

The kernel accepts and the program closes: an access list (hosts.deny), a connection limit, a proxy without a backend;
or a full accept queue with `tcp_abort_on_overflow`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import grouped_findings, parties, representative_rows
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import count, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def post_handshake_reset_findings(seen: Observed) -> Iterator[Finding]:
    dropped = _dropped_at_once(seen)
    yield from grouped_findings(seen, np.flatnonzero(dropped), lambda rows: _reset_after_accept(seen, rows))


def _dropped_at_once(seen: Observed) -> Mask:
    """Return the mask of streams that only the server ended, with its own reset and without data or a FIN from the
    client. An idle stream is no such case."""
    c = seen.columns
    rst, fin, said = c.sides("rst") > 0, c.sides("fin") > 0, c.sides("payload_bytes") > 0
    lasted_ms = (c.last_ns - c.answered_syn_ns) / 1e6 - np.nan_to_num(c.syn_to_syn_ack_ms)
    silent = ~said.any(axis=1) & ~fin.any(axis=1) & (c.sides("acked_unseen") == 0).all(axis=1)
    by_server = rst[:, SERVER] & ~rst[:, CLIENT] & ~seen.foreign_reset.any(axis=1)
    at_once = lasted_ms <= threshold("mid_session_reset.at_once_ms")
    return np.asarray((c.handshake == "completed") & silent & by_server & at_once, np.bool_)


def _reset_after_accept(seen: Observed, rows: StreamRows) -> Finding:
    who = parties(seen, rows)
    shut_out, attempts = _affected_share(seen, rows)
    several = len(rows) >= threshold("mid_session_reset.min_dropped")
    share = percent(len(rows), attempts)
    severity = "LOW"
    if shut_out >= threshold("mid_session_reset.min_dropped"):
        severity = "HIGH"
    elif several and share >= threshold("mid_session_reset.dropped_pct"):
        severity = "MEDIUM"
    others = attempts - len(rows)
    rest = f" {count(others, 'other connection')} of {who.whom} to it went on." if others else ""
    examples = seen.worst(representative_rows(seen, rows))
    return make_finding(
        "mid_session_turned_away",
        severity=severity,
        title=f"{who.where} accepts connections of {who.whom} and resets them at once",
        detail=f"{count(len(rows), 'connection')} reset by the server right after the handshake, before either side"
        f" sent a byte.{rest}{who.mostly}",
        who=Who(who.server, who.client, who.port),
        evidence=(stream.server.rst.frames for stream in examples),
        confidence="high" if severity == "HIGH" else "medium",
        weight=len(rows),
        measured={"resets": len(rows), "completed": others, **who.measured},
    )


def _affected_share(seen: Observed, rows: StreamRows) -> tuple[int, int]:
    """Return how many of `rows` belong to clients with at least every second connection reset this way, and how many
    streams these clients opened to the service."""
    c = seen.columns
    clients = c.hosts[:, CLIENT]
    opened = (c.handshake == "completed") & (seen.service == seen.service[rows[0]]) & among(clients, clients[rows])
    every = np.bincount(clients[opened], minlength=len(c.addresses))
    dropped = np.bincount(clients[rows], minlength=len(c.addresses))
    shut_out = 2 * dropped >= every
    return int((dropped * shut_out).sum()), int(opened.sum())
