"""Rule for servers of protocols with a greeting that do not send it: clients wait for it before any request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.one_way_messages import of_protocol
from ghost.pcap.findings.phrasing import at, count, duration, percent
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, StreamRows


def greeting_findings(seen: Observed) -> Iterator[Finding]:
    c = seen.columns
    greets = of_protocol(seen, "greets") & (c.handshake == "completed")
    mute = greets & (c.sides("payload_bytes").sum(axis=1) == 0)
    ended = (c.closed_first >= 0) | (c.sides("rst") > 0).any(axis=1)
    # Where nobody closed it, the connection waits as long as the capture lasts.
    waited = (np.where(ended, c.last_ns, seen.last_ns) - c.first_ns) / 1e6
    limit = threshold("slow_application.greeting_ms")
    late = greets & (np.nan_to_num(c.greeting_ms) >= limit)
    waits = np.where(late, np.nan_to_num(c.greeting_ms), waited)
    rows = np.flatnonzero(late | (mute & (waited >= limit)))
    for (service,), mine in islice(groups_of(rows, seen.service), MOST_GROUPS):
        yield _without_greeting(seen, service, mine, late[mine].sum(), float(waits[mine].max()))


def _without_greeting(seen: Observed, service: int, rows: StreamRows, late: int, longest_ms: float) -> Finding:
    c = seen.columns
    host, port = seen.name_of(service)
    client = c.host(int(c.hosts[rows[0], CLIENT]))
    greeted = int((~np.isnan(c.greeting_ms) & (seen.service == service)).sum())
    late, hung = int(late), len(rows) - int(late)
    share = percent(len(rows), greeted + hung)
    few = len(rows) < threshold("slow_application.min_answers")
    never = f"; {hung} never received it" if hung else ""
    return make_finding(
        "slow_greeting",
        severity="LOW" if few else "HIGH" if not late and share >= 50 else "MEDIUM",
        title=f"{at(host, port)} accepts connections and {'greets late' if late else 'does not greet'}",
        detail=f"{len(rows)} of {count(greeted + hung, 'connection')} waited for the greeting that the"
        f" server sends first on this port, for up to {duration(longest_ms)}{never}. Its kernel accepted the"
        " connections at once: the path is not the cause.",
        who=Who(client, host, port),
        evidence=([s.first_frame] for s in seen.worst(rows)),
        confidence="medium" if few else "high",
        weight=len(rows),
        measured={"slow": late, "unanswered": hung, "answers": greeted, "slowest_ms": round(longest_ms)},
    )
