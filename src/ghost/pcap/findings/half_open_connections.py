"""Rule for SYN-ACKs that are never acknowledged: the return path is broken."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import distinct
from ghost.pcap.findings.attack_patterns import Threats
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.phrasing import at, count, few
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows


def half_open_findings(seen: Observed, threats: Threats) -> Iterator[Finding]:
    """Yield findings for half-open connections.

    A client that repeats an answered SYN did not receive the answer: it is no scanner or flood. One that sends nothing
    after a single SYN may be gone or spoofed; several of one client are not.
    """
    waiting = _never_acknowledged(seen) & ~threats.streams
    asked_again = seen.columns.sides("syn")[:, CLIENT] >= threshold("syn_unanswered.min_attempts")
    for rows, certain in (
        (np.flatnonzero(waiting & asked_again), True),
        (np.flatnonzero(waiting & ~asked_again), False),
    ):
        for (service,), mine in islice(groups_of(rows, seen.service), MOST_GROUPS):
            yield _half_open(seen, service, mine, certain=certain)


def _never_acknowledged(seen: Observed) -> Mask:
    """Return the mask of streams with SYN-ACKs that were repeated, or old enough to be, and only SYNs by the client."""
    c = seen.columns
    packets, syn, syn_ack, rst = (c.sides(name) for name in ("packets", "syn", "syn_ack", "rst"))
    opening = (syn[:, CLIENT] > 0) & (packets[:, CLIENT] == syn[:, CLIENT])
    answers = syn_ack[:, SERVER]
    attempts = threshold("syn_unanswered.min_attempts")
    since_ms = (seen.last_ns - c.last_ns) / 1e6
    given_up = (answers > attempts) | (since_ms >= threshold("syn_unanswered.answer_window_ms"))
    result: Mask = (
        opening
        & (answers >= attempts)
        & (packets[:, SERVER] <= answers + rst[:, SERVER])
        & given_up
        & (rst.sum(axis=1) == 0)
    )
    return result


def _half_open(seen: Observed, service: int, rows: StreamRows, *, certain: bool) -> Finding:
    c = seen.columns
    server, port = seen.name_of(service)
    numbers, tries = np.unique(c.hosts[rows, CLIENT], return_counts=True)
    busiest = int(numbers[np.argmax(tries)])
    client = c.host(busiest)
    served = np.flatnonzero(seen.served & (seen.service == service))
    own = int((c.hosts[served, CLIENT] == busiest).sum())
    others = [c.host(number) for number in distinct(c.hosts[served, CLIENT]).tolist() if number not in numbers]
    several = tries.max() >= threshold("syn_unanswered.min_at_times")
    severity = ("MEDIUM" if own else "HIGH") if certain else "MEDIUM" if several else "LOW"
    syns, answers = (int(c.sides(name)[rows, side].sum()) for name, side in (("syn", CLIENT), ("syn_ack", SERVER)))
    who = client if len(numbers) == 1 else f"{len(numbers)} clients"
    why = "The server answers, so the return path fails"
    if not certain:
        why = "Either the client is gone or never existed, or its packets after the SYN are dropped"
    if own and certain:
        why += f", for some connections: {count(own, 'other')} of {client} to the same port completed"
    elif others and certain:
        why += f", and only towards {'this client' if len(numbers) == 1 else 'these'}: {few(others)} is served"
    again = "the SYN was repeated although it was answered" if certain else "the client sent nothing more"
    return make_finding(
        "syn_ack_unanswered",
        severity=severity,
        title=f"Answers of {at(server, port)} do not reach {who}: its SYN-ACKs are never acknowledged"
        if certain
        else f"SYN-ACKs of {at(server, port)} to {who} are never acknowledged",
        detail=f"{count(answers, 'SYN-ACK')} to {count(syns, 'SYN')} in {count(len(rows), 'connection attempt')}, and"
        f" no ACK: {again}. {why}.",
        who=Who(client, server, port),
        evidence=seen.frames(rows, "syn_ack", SERVER),
        confidence="high" if certain else "low",
        weight=syns,
        measured={
            "syn": syns,
            "syn_retransmitted": int(c.syn_retransmissions[rows].sum()),
            "answered": 0,
            "syn_ack": answers,
        },
    )
