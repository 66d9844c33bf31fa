"""Rules for connections that ended early: resets, idle timeouts, and closes before the answer was complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import (
    Parties,
    all_of_pair,
    grouped_findings,
    of_streams,
    parties,
    representative_rows,
)
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.keepalive_close import keepalive_close_findings
from ghost.pcap.findings.observations import Observed, directions
from ghost.pcap.findings.one_way_messages import expects_no_answer, is_short_message, sent_close_message
from ghost.pcap.findings.phrasing import count, duration, first_frames
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.silent_peers import unacknowledged_sides
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows
from ghost.pcap.model import Direction, HttpExchange


def abort_findings(seen: Observed) -> Iterator[Finding]:
    yield from _resets(seen)
    yield from _forgotten(seen)
    yield from _closed_early(seen)
    yield from keepalive_close_findings(seen)


# ------------------------------------------------------------------------------------------------------- resets


def _resets(seen: Observed) -> Iterator[Finding]:
    """Yield findings for resets in incomplete exchanges: an answer was pending, data in flight, or a third device sent
    them."""
    c = seen.columns
    rst, fin = c.sides("rst") > 0, c.sides("fin") > 0
    ended = rst.any(axis=1) & ~fin.all(axis=1) & ~np.isin(c.handshake, ("refused", "unanswered"))
    # Who resets at last because nothing of it was heard any more breaks nothing.
    foreign = seen.foreign_reset.any(axis=1)
    ended &= foreign | ~(unacknowledged_sides(seen) & rst).any(axis=1)
    if not ended.any():
        return
    after_fin = c.sides("rst_after_fin")[:, CLIENT] | c.sides("rst_after_fin")[:, SERVER]
    said = c.sides("payload_bytes").sum(axis=1) > 0
    after_rst = c.sides("data_after_rst").any(axis=1)
    owed = (~np.isnan(c.request_ms) & ~sent_close_message(seen)) | after_rst | _cut_off(seen)
    harmed = ended & said & owed & (after_fin == 0)
    silence = c.sides("longest_silence_ms").max(axis=1)
    idle = harmed & (silence >= threshold("idle_timeout.min_gap_ms"))
    yield from grouped_findings(seen, np.flatnonzero(idle), lambda rows: _idle(seen, rows), near_client=True)
    # A third device's reset before anybody said a word is one as well; after a complete exchange it did no harm.
    # The end that did not get it may close much later, and be answered by a reset.
    third = ended & (owed | ~said) & ~idle & (seen.foreign_reset & (c.sides("rst_after_fin") == 0)).any(axis=1)
    yield from grouped_findings(seen, np.flatnonzero(third), lambda rows: _third_party(seen, rows), near_client=True)
    cut_answers = {e.stream_id for e in seen.analysis.http.incomplete if e.reset} if seen.analysis.http else set()
    owed |= among(np.arange(len(c)), list(cut_answers))
    forgotten = harmed & ~idle & ~foreign & unanswered_retransmissions(seen)
    yield from grouped_findings(seen, np.flatnonzero(forgotten), lambda rows: _restarted(seen, rows))
    own = np.flatnonzero(ended & said & owed & (after_fin == 0) & ~idle & ~foreign & ~forgotten)
    by_server = np.array([_first_reset_by_server(seen, row) for row in own.tolist()], np.bool_)
    yield from grouped_findings(seen, own[by_server], lambda rows: _reset_by_server(seen, rows))
    given_up = own[~by_server]
    patient = _timed_out_waiting(seen, given_up)
    yield from grouped_findings(seen, given_up[patient], lambda rows: _reset_by_client(seen, rows, gave_up=True))
    impatient = given_up[~patient]
    yield from grouped_findings(
        seen, impatient, lambda rows: _reset_by_client(seen, rows, gave_up=False), near_client=True
    )


def _cut_off(seen: Observed) -> Mask:
    """Return bool[n, 2]: data was unacknowledged when the stream was reset, other than a close message of the resetting
    side."""
    c = seen.columns
    own_goodbye = (c.sides("rst") > 0) & (c.unacked_bytes <= threshold("early_close.goodbye_bytes"))
    # Each segment that was under way to a closed socket is answered by a reset of its own.
    in_flight = (c.sides("rst") >= threshold("mid_session_reset.min_resets")) & ~(c.sides("fin") > 0).any(
        axis=1, keepdims=True
    )
    return np.asarray((((c.unacked_bytes > 0) & ~own_goodbye) | in_flight).any(axis=1), np.bool_)


def _first_reset_by_server(seen: Observed, row: int) -> bool:
    rst = seen.columns.sides("rst")[row]
    if rst[SERVER] and rst[CLIENT]:
        return seen.columns.make([row])[0].rst_from != "client"
    return bool(rst[SERVER])


def _timed_out_waiting(seen: Observed, rows: StreamRows) -> Mask:
    """Return the mask of `rows` that were reset by a client after a long wait, as it did on all streams it reset to
    this service."""
    waits = seen.columns.request_ms[rows]
    waiting, patience = ~np.isnan(waits), threshold("mid_session_reset.client_patience_ms")
    return all_of_pair(seen, rows, ~waiting | (waits >= patience)) & ~all_of_pair(seen, rows, ~waiting)


def _third_party(seen: Observed, rows: StreamRows) -> Finding:
    who = parties(seen, rows)
    examples = seen.worst(representative_rows(seen, rows))
    ttls = "; ".join(
        f"resets in the name of {side.endpoint.address} have TTL {side.rst_ttl}, its other packets {_span(side)}"
        for side, _ in directions(examples[0])
        if side.rst and side.rst_ttl is not None and side.ttl_min is not None
    )
    return make_finding(
        "third_party_reset",
        severity="HIGH",
        title=f"A device on the path resets connections of {who.whom} to {who.where}",
        detail=f"{count(len(rows), 'connection')} reset by neither end: {ttls}.{who.mostly}",
        who=Who(who.client, who.server, who.port),
        evidence=(side.rst.frames for stream in examples for side, _ in directions(stream)),
        confidence="high",
        weight=len(rows),
        measured={"resets": len(rows), **who.measured},
    )


def unanswered_retransmissions(seen: Observed) -> Mask:
    """Return the mask of streams whose server was silent while the client retransmitted, and then reset them: the host
    was restarted."""
    c = seen.columns
    rto, fast, rst = (c.sides(name) for name in ("rto_retransmissions", "fast_retransmissions", "rst"))
    silent = np.nan_to_num(c.request_ms) >= threshold("mid_session_reset.server_silence_ms")
    repeated = (rto[:, CLIENT] >= threshold("mid_session_reset.min_repeats")) & (fast[:, CLIENT] == 0)
    # A reset that answers data names no acknowledgement: what was never acknowledged is told by the repeats alone.
    vain = (c.lost()[:, CLIENT] == rto[:, CLIENT]) & (c.sides("duplicate_acks")[:, SERVER] == 0)
    result: Mask = silent & repeated & vain & (rst[:, SERVER] > 0) & (rst[:, CLIENT] == 0)
    return result


def _restarted(seen: Observed, rows: StreamRows) -> Finding:
    c = seen.columns
    who = parties(seen, rows)
    silence = duration(float(c.request_ms[rows].max()))
    repeats = int(c.sides("rto_retransmissions")[rows, CLIENT].sum())
    examples = seen.worst(representative_rows(seen, rows, c.request_ms[rows]))
    return make_finding(
        "mid_session_forgotten",
        severity="HIGH",
        title=f"{who.server} stopped answering and lost its connections with {who.whom}",
        detail=f"{count(len(rows), 'established connection')} to {who.where}: the client repeated its data"
        f" {count(repeats, 'time')} without an answer for up to {silence}, and then the host itself reset them.",
        who=Who(who.server, who.client, who.port),
        evidence=(
            frames for s in examples for frames in (s.client.rto_retransmissions.frames[:1], s.server.rst.frames)
        ),
        confidence="medium",
        weight=len(rows),
        measured={"resets": len(rows), "clients": who.clients},
    )


def _span(side: Direction) -> str:
    return str(side.ttl_min) if side.ttl_min == side.ttl_max else f"{side.ttl_min} to {side.ttl_max}"


def _reset_by_server(seen: Observed, rows: StreamRows) -> Finding:
    who = parties(seen, rows)
    title = f"{who.where} resets connections of {who.whom} in the middle of an exchange"
    severity = "HIGH" if len(rows) > 1 else "MEDIUM"
    return _mid_session(seen, rows, who, title, severity, "server_application", sender=SERVER)


def _reset_by_client(seen: Observed, rows: StreamRows, *, gave_up: bool) -> Finding:
    """Return the finding for resets by clients.

    Many clients that each reset once are LOW: they have reasons of their own.
    """
    who = parties(seen, rows)
    one_each = who.times == 1 and not gave_up
    resets = "resets" if who.clients == 1 else "reset"
    title = f"{who.whom} {resets} connections to {who.where} in the middle of an exchange"
    blame = "server_application" if gave_up else "client"
    return _mid_session(seen, rows, who, title, "LOW" if one_each else "MEDIUM", blame, sender=CLIENT)


def _mid_session(
    seen: Observed, rows: StreamRows, parties: Parties, title: str, severity: str, blame: str, *, sender: int
) -> Finding:
    waits = seen.columns.request_ms[rows]
    pending = ""
    if not np.isnan(waits).all():
        pending = f" {count(int((~np.isnan(waits)).sum()), 'request')} had no answer yet"
        if sender == CLIENT and blame != "client":
            gives_up = "the client gave up waiting" if parties.clients == 1 else "the clients gave up waiting"
            pending += f" after {duration(float(np.nanmax(waits)))}: {gives_up}"
        pending += "."
    ends = (parties.client, parties.server)
    examples = seen.worst(representative_rows(seen, rows, np.nan_to_num(waits)))
    return make_finding(
        "mid_session_reset",
        severity=severity,
        blame=blame,
        title=title,
        detail=f"{count(len(rows), 'established connection')} aborted by the"
        f" {'client' if sender == CLIENT else 'server'}.{pending}{parties.mostly}",
        who=Who(ends[sender], ends[1 - sender], parties.port),
        evidence=((s.client, s.server)[sender].rst.frames for s in examples),
        confidence="medium",
        weight=len(rows),
        measured={"resets": len(rows), **parties.measured},
    )


# ------------------------------------------------------------------------------------------------ idle time-outs


def _forgotten(seen: Observed) -> Iterator[Finding]:
    """Yield findings for idle connections whose next data or keep-alives went unanswered."""
    c = seen.columns
    silent = c.sides("longest_silence_ms").max(axis=1) >= threshold("idle_timeout.min_gap_ms")
    repeats = threshold("idle_timeout.min_repeats")
    talked = (c.sides("packets") > 0).all(axis=1) & ~(c.sides("fin") > 0).all(axis=1)
    repeated = (c.sides("rto_retransmissions") >= repeats) & (c.unacked_bytes > 0)
    probed = _unanswered_keepalives(seen)
    alive = ~(c.sides("rst") > 0).any(axis=1) & talked & np.isin(c.handshake, ("completed", "not_seen", "incomplete"))
    disowned = talked & silent & np.isnan(c.request_ms) & (c.unacked_bytes == 0).all(axis=1) & _probe_was_reset(seen)
    forgotten = (
        (alive & (repeated | probed).any(axis=1)) | _reset_after_keepalives(seen) | _reset_after_retransmissions(seen)
    )
    # A balancer that resets what was idle too long (Azure: TCP reset) sends it in the name of an end, from elsewhere.
    ended = talked & silent & np.isnan(c.request_ms) & seen.foreign_reset.any(axis=1)
    every = np.flatnonzero((silent & forgotten) | disowned | ended)
    yield from grouped_findings(seen, every, lambda rows: _idle(seen, rows), near_client=True)


def _unanswered_keepalives(seen: Observed) -> Mask:
    """Return bool[n, 2]: no keep-alive of this side was answered, ever or since the other side fell silent."""
    c = seen.columns
    probes, last_ns = c.sides("keep_alives"), c.sides("last_ns")
    unanswered = probes - c.sides("keep_alive_acks")[:, ::-1]
    silence_ms = (last_ns - last_ns[:, ::-1]) / 1e6
    nobody = (unanswered == probes) | (silence_ms >= threshold("idle_timeout.min_gap_ms"))
    result: Mask = nobody & (unanswered >= threshold("idle_timeout.min_unanswered_probes"))
    return result


def _reset_after_keepalives(seen: Observed) -> Mask:
    """Return the mask of streams whose probing side finally reset the connection by itself (RFC 1122, 4.2.3.6), with
    nothing pending and the other side silent since before the idle time."""
    c = seen.columns
    rst, last_ns = c.sides("rst") > 0, c.sides("last_ns")
    silence_ms = (last_ns - last_ns[:, ::-1]) / 1e6
    own = _unanswered_keepalives(seen) & rst & ~rst[:, ::-1] & (silence_ms >= threshold("idle_timeout.min_gap_ms"))
    nothing_owed = np.isnan(c.request_ms) & (c.unacked_bytes == 0).all(axis=1) & ~(c.sides("fin") > 0).any(axis=1)
    both = (c.sides("packets") > 0).all(axis=1) & ~seen.foreign_reset.any(axis=1)
    result: Mask = np.asarray(own.any(axis=1) & nothing_owed & both, np.bool_)
    return result


def _reset_after_retransmissions(seen: Observed) -> Mask:
    """Return the mask of streams that the client reset after retransmitting a request in vain, to a server that had
    long been silent."""
    c = seen.columns
    rst, last_ns = c.sides("rst") > 0, c.sides("last_ns")
    idle_ms = (c.last_ns - last_ns[:, SERVER]) / 1e6 - c.request_ms
    vain = (c.sides("rto_retransmissions")[:, CLIENT] >= threshold("idle_timeout.min_repeats")) & rst[:, CLIENT]
    never_closed = ~(c.sides("fin") > 0).any(axis=1) & ~rst[:, SERVER] & (c.sides("packets")[:, SERVER] > 0)
    result: Mask = vain & never_closed & (c.unacked_bytes[:, CLIENT] > 0) & ~seen.foreign_reset.any(axis=1)
    return np.asarray(result & (np.nan_to_num(idle_ms) >= threshold("idle_timeout.min_gap_ms")), np.bool_)


def _probe_was_reset(seen: Observed) -> Mask:
    """Return the mask of streams whose keep-alive was answered by a reset: the answering device has no state for the
    connection."""
    c = seen.columns
    last_ns = c.sides("last_ns")
    unanswered = c.sides("keep_alives") > c.sides("keep_alive_acks")[:, ::-1]
    reset = (c.sides("rst")[:, ::-1] > 0) & (last_ns[:, ::-1] >= last_ns)
    never_closed = ~(c.sides("fin") > 0).any(axis=1)
    result: Mask = np.asarray((unanswered & reset).any(axis=1) & never_closed, np.bool_)
    return result


def _idle(seen: Observed, rows: StreamRows) -> Finding:
    c = seen.columns
    who = parties(seen, rows)
    silences = c.sides("longest_silence_ms")[rows].max(axis=1)
    reset = (c.sides("rst")[rows] > 0).any(axis=1) & ~(
        _reset_after_keepalives(seen) | _reset_after_retransmissions(seen)
    )[rows]
    ended = "reset when used again" if reset.any() else "left without an acknowledgement when used again"
    if seen.foreign_reset[rows].any(axis=1).all() and np.isnan(c.request_ms[rows]).all():
        ended = "reset meanwhile, by a device in the name of an end"
    return make_finding(
        "idle_timeout",
        severity="MEDIUM",
        title=f"Idle connections of {who.whom} to {who.server if who.services == 1 else who.where} are dropped",
        detail=f"{count(len(rows), 'connection')} to {who.where}, silent for up to {duration(float(silences.max()))},"
        f" {ended}.{who.mostly}",
        who=Who(who.client, who.server, who.port),
        evidence=([s.last_frame] for s in seen.worst(representative_rows(seen, rows, silences))),
        confidence="medium",
        weight=len(rows),
        measured={"connections": len(rows), "silence_ms": round(float(silences.max())), **who.measured},
    )


# --------------------------------------------------------------------------------------------- closed too early


def _closed_early(seen: Observed) -> Iterator[Finding]:
    """Yield findings for servers that closed with a FIN before the answer was complete, or without an answer."""
    cut: dict[tuple[str, int], list[HttpExchange]] = {}
    for exchange in seen.analysis.http.incomplete if seen.analysis.http else ():
        if exchange.ended_by == "server" and not exchange.reset:
            cut.setdefault((exchange.server, exchange.port), []).append(exchange)
    for exchanges in cut.values():
        streams = np.array([exchange.stream_id for exchange in exchanges], np.int64)
        yield of_streams(seen, streams, partial(_cut_short, seen, exchanges))
    c = seen.columns
    waited = c.request_ms >= threshold("early_close.goodbye_ms")
    fin = c.sides("fin")[:, SERVER] > 0
    rst = (c.sides("rst") > 0).any(axis=1)
    spoke = c.sides("payload_bytes")[:, SERVER] > 0
    short = c.sides("data_segments")[:, CLIENT] <= threshold("early_close.max_request_segments")
    lone = (~spoke | c.only_tickets) & short & ~np.isnan(c.request_ms)
    acked = c.unacked_bytes[:, CLIENT] == 0
    owing = fin & ~rst & acked & ((waited & spoke) | lone) & (c.handshake != "refused")
    owing &= (c.closed_first == SERVER) & ~expects_no_answer(seen)
    owing &= ~among(seen.service, [seen.number_of.get(server, -1) << 16 | port for server, port in cut])
    rows = np.flatnonzero(owing)
    doubtful = all_of_pair(seen, rows, (is_short_message(seen) & spoke)[rows])
    yield from grouped_findings(seen, rows[~doubtful], lambda some: _never_answered(seen, some, "medium"))
    yield from grouped_findings(seen, rows[doubtful], lambda some: _never_answered(seen, some, "low"))


def _cut_short(seen: Observed, exchanges: Sequence[HttpExchange], rows: StreamRows) -> Finding:
    some = [exchange for exchange in exchanges if exchange.stream_id in rows]
    came = min((e.came_bytes or 0, e.promised_bytes or 0) for e in some)
    how = f"the Content-Length was reached, for example after {came[0]:,} of {came[1]:,} bytes"
    if not came[1]:
        how = f"the last chunk came, for example after {came[0]:,} bytes"
    detail = f"{count(len(some), 'HTTP answer')} ended before {how}."
    frames = dict(zip((e.stream_id for e in some), (e.frames for e in some), strict=True))
    return _early(
        seen, rows, detail, first_frames(frames[row] for row in representative_rows(seen, rows).tolist()), "high"
    )


def _never_answered(seen: Observed, rows: StreamRows, confidence: str) -> Finding:
    waits = seen.columns.request_ms[rows]
    detail = (
        f"{count(len(rows), 'request')} acknowledged, never answered, and the connection closed by the server"
        f" after up to {duration(float(np.nanmax(waits)))}."
    )
    if confidence == "low":
        detail += " The last message is so short that it may not have been a request."
    frames = first_frames(seen.frames(representative_rows(seen, rows, np.nan_to_num(waits)), "fin", SERVER))
    return _early(seen, rows, detail, frames, confidence)


def _early(seen: Observed, rows: StreamRows, detail: str, frames: tuple[int, ...], confidence: str) -> Finding:
    who = parties(seen, rows)
    its = "its answer is" if who.clients == 1 else "their answers are"
    return make_finding(
        "early_close",
        severity="LOW" if confidence == "low" else "HIGH" if len(rows) > 1 else "MEDIUM",
        title=f"{who.where} closes connections of {who.whom} before {its} complete",
        detail=detail + who.mostly,
        who=Who(who.client, who.server, who.port),
        evidence=[frames],
        confidence=confidence,
        weight=len(rows),
        measured={"connections": len(rows), **who.measured},
    )
