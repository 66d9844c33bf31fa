"""Rules for endpoints that delay: a receiver that does not read, a server that does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from ghost.pcap.array_queries import among, distinct, median
from ghost.pcap.findings.common_causes import of_streams, parties, representative_rows
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.finding_times import stream_times
from ghost.pcap.findings.long_polls import (
    HELD,
    answers_nothing,
    every_slow,
    http_polls,
    is_long_poll,
    may_be_long_poll,
    polls_of,
)
from ghost.pcap.findings.observations import MOST_GROUPS, Observed, groups_of
from ghost.pcap.findings.one_way_messages import expects_no_answer, is_short_message, of_protocol
from ghost.pcap.findings.phrasing import at, count, duration, percent, rate
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.server_greetings import greeting_findings
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Floats, Mask, PerStream, StreamRows


def endpoint_delay_findings(seen: Observed) -> Iterator[Finding]:
    yield from _zero_window(seen)
    yield from _slow_answers(seen)
    yield from greeting_findings(seen)


# -------------------------------------------------------------------------------------------------- zero window


def _zero_window(seen: Observed) -> Iterator[Finding]:
    """Yield findings for closed receive windows.

    `who.src` is the receiver, `who.dst` the waiting sender. The window must stay closed until the sender's timer, or
    close repeatedly; a short close is flow control. Some stacks probe a closed window with what looks like a
    keep-alive.
    """
    c = seen.columns
    closed = c.sides("zero_window")
    if not closed.any():
        return
    probes = (c.sides("zero_window_probes") + c.sides("keep_alives"))[:, ::-1]
    hinders = np.where(
        probes > 0,
        closed >= threshold("zero_window.min_probed_events"),
        closed >= threshold("zero_window.min_events"),
    )
    for side in (CLIENT, SERVER):
        rows = np.flatnonzero(hinders[:, side])
        for _, some in islice(groups_of(rows, c.hosts[:, side]), MOST_GROUPS):
            yield of_streams(seen, some, partial(_not_read, seen, side=side, probes=probes[:, side]))


def _not_read(seen: Observed, rows: StreamRows, *, side: int, probes: StreamRows) -> Finding:
    c = seen.columns
    who = parties(seen, rows)
    closed = c.sides("zero_window")[rows, side]
    events, probed = int(closed.sum()), int(probes[rows].sum())
    silence = c.sides("longest_silence_ms")[rows, 1 - side]
    stall_ms = float(silence.max()) if probed else 0.0
    worst = rows[np.argmax(closed)]
    source, destination = c.host(c.hosts[worst, side]), c.host(c.hosts[worst, 1 - side])
    port = int(c.ports[worst, SERVER])
    waited = f" The sender had to probe {count(probed, 'time')}; longest pause {duration(stall_ms)}." if probed else ""
    is_server = side == SERVER
    others = who.clients if is_server else who.services
    senders = destination if others == 1 else f"{others:,} {'clients' if is_server else 'services'}"
    examples = seen.worst(representative_rows(seen, rows, closed))
    return make_finding(
        "zero_window",
        severity="HIGH" if stall_ms >= threshold("zero_window.high_stall_ms") else "MEDIUM",
        blame="server_application" if is_server else "client",
        title=f"{source} does not read what {senders} send{'s' if others == 1 else ''}",
        detail=f"Its receive window was zero in {count(events, 'packet')} of {count(len(rows), 'connection')}"
        f" ({'server' if is_server else 'client'} side, port {port}).{waited}{who.mostly}",
        who=Who(source, destination, port),
        evidence=((s.client, s.server)[side].zero_window.frames for s in examples),
        confidence="high",
        weight=events,
        measured={"zero_window": events, "probes": probed, **who.measured},
    )


# ------------------------------------------------------------------------------------------------- slow answers


def _slow_answers(seen: Observed) -> Iterator[Finding]:
    """Yield findings for requests that the kernel acknowledged at once and the program answered late or never."""
    slow_rows, slow_ms = _late(seen)
    hung = unanswered(seen)
    asked_for_news = polls_of(seen)
    if asked_for_news:
        answers = ~_notifications(seen, slow_rows, slow_ms, asked_for_news)
        slow_rows, slow_ms = slow_rows[answers], slow_ms[answers]
    every = np.concatenate([slow_rows, np.flatnonzero(hung)])
    services = distinct(seen.service[every])
    counts = {int(service): int((seen.service[every] == service).sum()) for service in services}
    for service in sorted(counts, key=lambda service: -counts[service])[:MOST_GROUPS]:
        mine = seen.service[slow_rows] == service
        waiting = np.flatnonzero(hung & (seen.service == service))
        polls = is_long_poll(slow_ms[mine])
        perhaps = may_be_long_poll(slow_ms[mine]) or answers_nothing(seen, slow_rows[mine], slow_ms[mine])
        if polls or perhaps or service in asked_for_news:  # another one may be under way
            longest = max([*slow_ms[mine].tolist(), *asked_for_news.get(service, ())])
            held = (1 + threshold("slow_application.long_poll_jitter")) * longest
            waiting = waiting[seen.columns.request_ms[waiting] > held]
        if polls:
            mine = np.zeros(len(slow_rows), np.bool_)
        finding = _slow(seen, service, slow_rows[mine], slow_ms[mine], waiting, held=perhaps and not len(waiting))
        if finding is not None:
            yield finding


def _notifications(seen: Observed, rows: StreamRows, times: Floats, held: dict[int, tuple[float, float]]) -> Mask:
    """Return bool[n]: which late answers are long-poll notifications, by their connection or by their duration."""
    http = seen.analysis.http
    polled = [each.stream_id for each in http_polls(every_slow(http))] if http else []
    result = among(rows, polled)
    for service, (least, most) in held.items():
        jitter = threshold("slow_application.long_poll_jitter")
        result |= (seen.service[rows] == service) & (times >= (1 - jitter) * least) & (times <= (1 + jitter) * most)
    return result


def _late(seen: Observed) -> tuple[StreamRows, Floats]:
    """Return stream (int[n]) and time (float[n], ms) of late answers to requests that were acknowledged early."""
    rows, times = seen.columns.samples("response_ms")
    late = times >= threshold("slow_application.slow_ms")
    rows, times = rows[late], times[late]
    if not len(rows):
        return rows, times
    acked_rows, acked = seen.columns.samples("request_acked_ms")
    slowest = np.zeros(len(seen.columns))
    np.maximum.at(slowest, acked_rows, acked)
    in_time = slowest[rows] <= threshold("slow_application.acked_share") * times
    in_time &= ~_pushes_events(seen)[rows]
    return rows[in_time], times[in_time]


def _pushes_events(seen: Observed) -> Mask:
    """Return the mask of streams on which the server pushes many small messages, or (websockets) both ends send at any
    time: they owe no answers."""
    c = seen.columns
    answers = np.bincount(c.samples("response_ms")[0], minlength=len(c))
    segments, size = c.sides("data_segments")[:, SERVER], c.sides("payload_bytes")[:, SERVER]
    result: Mask = (segments >= 2 * answers + 3) & (size < threshold("slow_application.event_bytes") * segments)
    # Inside TLS a message that comes first after the client's last word looks like an answer to it.
    result |= (c.notices >= threshold("slow_application.min_notices")) & (c.notices >= _late_by_stream(seen))
    if seen.analysis.http is not None:
        result |= among(np.arange(len(c)), seen.analysis.http.switched_streams)
    return result


def _late_by_stream(seen: Observed) -> PerStream:
    rows, times = seen.columns.samples("response_ms")
    late = rows[times >= threshold("slow_application.slow_ms")]
    return np.bincount(late, minlength=len(seen.columns)).astype(np.int64)


def unanswered(seen: Observed) -> Mask:
    """Return the mask of streams with an acknowledged request that the program has not answered, if the server had
    answered before or the client asked just once: reports, logs and notices are sent repeatedly and not answered."""
    c = seen.columns
    waited = np.nan_to_num(c.request_ms)
    closed = (c.sides("fin") > 0).any(axis=1) | (c.sides("rst") > 0).any(axis=1)
    patience = np.where(closed, threshold("slow_application.client_patience_ms"), threshold("slow_application.hung_ms"))
    data = c.sides("data_segments")
    answered = np.bincount(c.samples("response_ms")[0], minlength=len(c))
    asks = data[:, CLIENT] <= threshold("slow_application.max_segments_a_request") * (answered + 1)
    dialogue = (data[:, SERVER] > 0) & (answered > 0)
    first = (data[:, SERVER] == 0) & (c.handshake == "completed")
    result: Mask = (
        (waited >= patience)
        & (c.unacked_bytes[:, CLIENT] == 0)
        & (c.sides("packets")[:, SERVER] > 0)
        & (c.sides("rst")[:, SERVER] == 0)
        & (c.sides("lost_segments")[:, SERVER] == 0)
        & (c.sides("rto_retransmissions")[:, SERVER] == 0)
        & asks
        & (dialogue | first)
        & ~_pushes_events(seen)
        & ~expects_no_answer(seen)
        & ~(is_short_message(seen) & dialogue & (c.closed_first == SERVER))
    )
    return result


def _slow(
    seen: Observed, service: int, rows: StreamRows, times: Floats, waiting: StreamRows, *, held: bool
) -> Finding | None:
    """Return the finding for slow or missing answers. `held`: they may be delayed on purpose (long poll)."""
    c = seen.columns
    mine = seen.service == service
    all_rows, _ = c.samples("response_ms")
    answers = int(mine[all_rows].sum())
    late, hung = len(times), len(waiting)
    # What the server said to clients that wait inside TLS, and have had nothing but a handshake, answered no request.
    shaken = int(among(all_rows, waiting[c.only_tickets[waiting]]).sum())
    share = percent(late + hung, answers - shaken + hung)
    tail = share < threshold("slow_application.min_pct")
    if late + hung == 0 or (
        tail and (late < threshold("slow_application.min_tail") or share < threshold("slow_application.tail_pct"))
    ):
        return None
    longest = max(float(times.max()) if late else 0.0, float(c.request_ms[waiting].max()) if hung else 0.0)
    few = late + hung < threshold("slow_application.min_answers")
    host, port = seen.name_of(service)
    streams = distinct(np.concatenate([rows, waiting]))
    client = c.host(int(c.hosts[streams[0], CLIENT]))
    acked_rows, acked = c.samples("request_acked_ms")
    acked = acked[among(acked_rows, streams)]
    at_once = f"; acknowledged after {duration(median(acked))}" if len(acked) else ""
    parts = []
    if late:
        parts.append(
            f"{late} of {count(answers, 'answer')} took over {duration(threshold('slow_application.slow_ms'))} (median"
            f" {duration(median(times))}, slowest {duration(float(times.max()))})"
        )
    if hung:
        waits = c.request_ms[waiting]
        parts.append(f"{count(hung, 'request')} had no answer after up to {duration(float(waits.max()))}")
    only_hung = late == 0
    perhaps_more = only_hung and _more_may_be_missing(seen, waiting)
    return make_finding(
        "slow_application",
        severity=_slow_severity(seen, waiting, alone=few, minor=held or tail, silent=only_hung and share >= 50),
        title=f"{at(host, port)} accepts requests and does not answer"
        if only_hung
        else f"{at(host, port)} answers late: {rate(percent(late, answers))} of its answers take over"
        f" {duration(threshold('slow_application.slow_ms'))}",
        detail=" and ".join(parts)
        + f"{at_once}, so the requests arrived."
        + (HELD if held else "")
        + (_PERHAPS_MORE if perhaps_more else ""),
        who=Who(client, host, port),
        evidence=([s.first_frame] for s in seen.worst(streams)),
        confidence="low" if held else "medium" if few or perhaps_more or (only_hung and not answers) else "high",
        weight=late + hung,
        measured={"slow": late, "unanswered": hung, "answers": answers, "slowest_ms": round(longest)},
        times=stream_times(seen, "slow_application", streams),
    )


_PERHAPS_MORE = " No full-size segment of a client arrives here: if requests are longer, their rest is lost on the way."


def _more_may_be_missing(seen: Observed, waiting: StreamRows) -> bool:
    """Return whether, captured at the server, each request may be the beginning of a longer one: what does not arrive
    leaves no gap there."""
    c = seen.columns
    at_server = c.syn_to_syn_ack_ms[waiting] < np.nan_to_num(c.syn_ack_to_ack_ms[waiting])
    small = c.sides("largest_segment")[waiting, CLIENT] < c.sides("mss")[waiting].min(axis=1) / 2
    return bool((at_server & small).all()) and bool(np.isnan(c.syn_to_syn_ack_ms[waiting]).sum() == 0)


def _slow_severity(seen: Observed, waiting: StreamRows, *, alone: bool, minor: bool, silent: bool) -> str:
    """Return the severity. `alone`: it is about one request; `silent`: the service answers nothing.

    A single request is no heavy one among others if it is all that this service was asked, and it is known to be a
    question: in HTTP, or of a protocol that answers each message.
    """
    if minor or (alone and not silent):
        return "LOW"
    if not alone:
        return "HIGH" if silent else "MEDIUM"
    http = seen.analysis.http
    question = among(waiting, [exchange.stream_id for exchange in http.unanswered] if http else [])
    question |= of_protocol(seen, "always_answers")[waiting]
    long = seen.columns.request_ms[waiting] >= threshold("slow_application.alone_ms")
    return "HIGH" if (question & long).any() else "MEDIUM" if long.any() else "LOW"
