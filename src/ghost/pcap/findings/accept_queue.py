"""Rule for full accept queues: the program no longer accepts, and its kernel drops further connections.

Queued connections are acknowledged and not answered. When the queue is full, SYNs are dropped, and on Linux also the
final ACK of a handshake whose SYN was still answered: that client believes it is connected and repeats its data.
"""

from __future__ import annotations

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import parties
from ghost.pcap.findings.endpoint_delays import unanswered
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import at, count, duration
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def queued_requests(seen: Observed) -> Mask:
    """Return the mask of streams whose request was acknowledged by the kernel and never answered by the program, also
    if they were closed in the end."""
    c = seen.columns
    acknowledged = (c.unacked_bytes[:, CLIENT] == 0) & (c.sides("rto_retransmissions")[:, CLIENT] == 0)
    silent = (c.sides("data_segments")[:, SERVER] == 0) & (c.handshake == "completed") & acknowledged
    killed = (c.sides("rst")[:, SERVER] > 0) & (c.sides("fin")[:, SERVER] == 0)
    waited = np.nan_to_num(c.request_ms) >= threshold("slow_application.hung_ms")
    return np.asarray(unanswered(seen) | (silent & killed & waited), np.bool_)


def half_accepted(seen: Observed) -> Mask:
    """Return the mask of streams on which the server sent only a SYN-ACK while the client repeats its first data."""
    c = seen.columns
    packets, syn_ack, rst = (c.sides(name)[:, SERVER] for name in ("packets", "syn_ack", "rst"))
    repeats = c.sides("rto_retransmissions")[:, CLIENT] - c.syn_retransmissions
    in_vain = (repeats >= threshold("mid_session_reset.min_repeats")) & (c.sides("payload_bytes")[:, CLIENT] > 0)
    return np.asarray((syn_ack > 0) & (packets <= syn_ack + rst) & in_vain, np.bool_)


def queue_full(seen: Observed, rows: StreamRows, *, waiting: Mask, taken: Mask) -> Finding:
    """Return the finding for a full accept queue.

    `rows`: streams of one service that failed or opened late; `waiting`: requests in the queue; `taken`: streams that
    opened at once.
    """
    c = seen.columns
    service = int(seen.service[rows[0]])
    server, port = seen.name_of(service)
    who = parties(seen, rows)
    queued = np.flatnonzero(waiting & (seen.service == service))
    came_in = int((taken & (seen.service == service) & among(c.hosts[:, CLIENT], c.hosts[rows, CLIENT])).sum())
    half = half_accepted(seen)[rows]
    late = int((seen.served[rows] & ~half).sum())
    silent = rows[seen.only_syn[rows]]
    syns, repeated = int(c.sides("syn")[rows, CLIENT].sum()), int(c.syn_retransmissions[rows].sum())
    parts = []
    if len(silent):
        tried = float((c.last_ns[silent] - c.first_ns[silent]).max()) / 1e6
        parts.append(
            f"{count(int(c.sides('syn')[silent, CLIENT].sum()), 'SYN')} in {count(len(silent), 'connection attempt')}"
            f" without any answer, tried for up to {duration(tried)}"
        )
    if half.any():
        again = int((c.sides("rto_retransmissions") - c.syn_retransmissions[:, None])[rows[half], CLIENT].sum())
        parts.append(
            f"{count(int(half.sum()), 'connection')} answered with a SYN-ACK and nothing more, although the client"
            f" repeated its data {count(again, 'time')}"
        )
    if late:
        parts.append(f"{count(late, 'connection')} opened late")
    longest = duration(float(np.nanmax(c.request_ms[queued])))
    return make_finding(
        "syn_unanswered_queue",
        severity="MEDIUM" if late == len(rows) else "HIGH",
        title=f"{at(server, port)} accepts no more connections from {who.whom}: its accept queue is full",
        detail="; ".join(parts) + f". The same port accepted {count(came_in, 'other connection')} at once, of which"
        f" {count(len(queued), 'request')} had no answer for up to {longest}.{who.mostly}",
        who=Who(who.client, server, port),
        evidence=[*seen.frames(rows, "syn", CLIENT), *seen.frames(rows[half], "rto_retransmissions", CLIENT)],
        confidence="medium",
        weight=syns,
        measured={
            "syn": syns,
            "syn_retransmitted": repeated,
            "answered": late,
            "half_taken": int(half.sum()),
            **who.measured,
        },
    )
