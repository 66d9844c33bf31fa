"""Rule for keep-alive connections that the server closes just as the next request arrives, which is then reset.

The server's idle timeout is shorter than its client's, so now and then the two cross (RFC 9112, 9.5). A proxy or load
balancer in between answers such a request with 502.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import grouped_findings, parties, representative_rows
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.one_way_messages import expects_no_answer
from ghost.pcap.findings.phrasing import count, duration
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def keepalive_close_findings(seen: Observed) -> Iterator[Finding]:
    yield from grouped_findings(seen, np.flatnonzero(_crossed(seen)), lambda rows: _crossing(seen, rows))


def _crossed(seen: Observed) -> Mask:
    """Return the mask of streams that the server closed with a FIN and then reset for a request.

    A close message of the client (TLS close_notify) that is reset is no request.
    """
    c = seen.columns
    http = seen.analysis.http
    asked = [each.stream_id for each in http.unanswered if each.ended_by == "server"] if http else []
    whole = (c.request_bytes > threshold("early_close.goodbye_bytes")) & _paused(seen)
    short = c.sides("data_segments")[:, CLIENT] <= threshold("slow_application.max_segments_a_request") * (
        1 + np.bincount(c.samples("response_ms")[0], minlength=len(c))
    )
    request = among(np.arange(len(c)), asked) | (whole & short & ~expects_no_answer(seen))
    result: Mask = (
        request
        & ~np.isnan(c.request_ms)
        & (c.closed_first == SERVER)
        & (c.sides("rst")[:, SERVER] > 0)
        & (c.sides("rto_retransmissions")[:, CLIENT] == 0)
        & ((c.sides("payload_bytes")[:, SERVER] > 0) | (c.handshake == "not_seen"))
        & ~seen.foreign_reset[:, SERVER]
    )
    return result


def _paused(seen: Observed) -> Mask:
    """Return whether the stream was idle for at least the shortest keep-alive timeout."""
    silent = seen.columns.sides("longest_silence_ms")[:, CLIENT]
    return np.asarray(silent >= threshold("early_close.kept_ms"), np.bool_)


def _crossing(seen: Observed, rows: StreamRows) -> Finding:
    c = seen.columns
    who = parties(seen, rows)
    idle = float(np.median(c.sides("longest_silence_ms")[rows, CLIENT]))
    often = len(rows) >= threshold("early_close.min_crossings")
    known = f", idle for {duration(idle)} (median)," if idle >= threshold("early_close.kept_ms") else ""
    examples = seen.worst(representative_rows(seen, rows))
    return make_finding(
        "early_close_keepalive",
        severity="MEDIUM" if often else "LOW",
        title=f"{who.where} closes idle connections of {who.whom} just when they are used again",
        detail=f"{count(len(rows), 'request')} on keep-alive connections{known} crossed the"
        f" server's FIN and {'was' if len(rows) == 1 else 'were'} reset without an answer.{who.mostly}",
        who=Who(who.client, who.server, who.port),
        evidence=(frames for s in examples for frames in (s.server.fin.frames[:1], s.server.rst.frames)),
        confidence="high" if often else "medium",
        weight=len(rows),
        measured={"connections": len(rows), "idle_ms": round(idle), **who.measured},
    )
