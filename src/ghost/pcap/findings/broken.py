"""Connections that broke: reset in the middle, forgotten while idle, closed before the answer was there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from ghost.pcap.findings.columns import CLIENT, SERVER, Ints, Mask, distinct
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.manners import brief, said_goodbye, wants_no_answer
from ghost.pcap.findings.observed import MOST_GROUPS, Observed, directions, groups_of
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.unheard import unheard
from ghost.pcap.findings.words import at, count, duration, first_frames
from ghost.pcap.model import Direction, HttpExchange


def broken_findings(seen: Observed) -> Iterator[Finding]:
    yield from _resets(seen)
    yield from _forgotten(seen)
    yield from _closed_early(seen)


# ------------------------------------------------------------------------------------------------------- resets


def _resets(seen: Observed) -> Iterator[Finding]:
    """Resets that ended nothing complete: an answer was owed, data was under way, or a third device sent them."""
    c = seen.columns
    rst, fin = c.sides("rst") > 0, c.sides("fin") > 0
    ended = rst.any(axis=1) & ~fin.all(axis=1) & ~np.isin(c.handshake, ("refused", "unanswered"))
    # Who resets at last because nothing of it was heard any more breaks nothing.
    ended &= ~(unheard(seen) & rst).any(axis=1)
    if not ended.any():
        return
    foreign = seen.foreign_reset.any(axis=1)
    after_fin = c.sides("rst_after_fin")[:, CLIENT] | c.sides("rst_after_fin")[:, SERVER]
    said = c.sides("payload_bytes").sum(axis=1) > 0
    after_rst = c.sides("data_after_rst").any(axis=1)
    owed = (~np.isnan(c.request_ms) & ~said_goodbye(seen)) | after_rst | _cut_off(seen)
    harmed = ended & said & owed & (after_fin == 0)
    silence = c.sides("longest_silence_ms").max(axis=1)
    idle = harmed & (silence >= threshold("idle_timeout.min_gap_ms"))
    yield from _idle(seen, np.flatnonzero(idle))
    # A third device's reset before anybody said a word is one as well; after a complete exchange it did no harm.
    third = (harmed & ~idle & foreign) | (ended & ~said & foreign & (after_fin == 0))
    for (_, service), rows in islice(groups_of(np.flatnonzero(third), c.hosts[:, CLIENT], seen.service), MOST_GROUPS):
        yield _third_party(seen, service, rows)
    cut_answers = {e.stream_id for e in seen.analysis.http.incomplete if e.reset} if seen.analysis.http else set()
    owed |= np.isin(np.arange(len(c)), list(cut_answers))
    forgotten = harmed & ~idle & ~foreign & repeated_in_vain(seen)
    yield from _restarted(seen, np.flatnonzero(forgotten))
    own = np.flatnonzero(ended & said & owed & (after_fin == 0) & ~idle & ~foreign & ~forgotten)
    by_server = np.array([_first_reset_by_server(seen, row) for row in own.tolist()], np.bool_)
    for rows, server in ((own[by_server], True), (own[~by_server], False)):
        for (_, service), some in islice(groups_of(rows, c.hosts[:, CLIENT], seen.service), MOST_GROUPS):
            yield _mid_session(seen, service, some, by_server=server)


def _cut_off(seen: Observed) -> Mask:
    """The side that was reset had sent data that nobody acknowledged, or the one that resets had, besides a goodbye."""
    c = seen.columns
    own_goodbye = (c.sides("rst") > 0) & (c.unacked_bytes <= threshold("early_close.goodbye_bytes"))
    return np.asarray(((c.unacked_bytes > 0) & ~own_goodbye).any(axis=1), np.bool_)


def _first_reset_by_server(seen: Observed, row: int) -> bool:
    rst = seen.columns.sides("rst")[row]
    if rst[SERVER] and rst[CLIENT]:
        return seen.columns.make([row])[0].rst_from != "client"
    return bool(rst[SERVER])


def _third_party(seen: Observed, service: int, rows: Ints) -> Finding:
    client, (server, port) = seen.columns.host(seen.columns.hosts[rows[0], CLIENT]), seen.name_of(service)
    examples = seen.worst(rows)
    worst = examples[0]
    ttls = "; ".join(
        f"resets in the name of {side.endpoint.address} have TTL {side.rst_ttl}, its other packets {_span(side)}"
        for side, _ in directions(worst)
        if side.rst and side.rst_ttl is not None and side.ttl_min is not None
    )
    return Finding(
        kind="third_party_reset",
        severity="HIGH",
        blame="policy",
        protocol="TCP",
        title=f"A device in between resets connections of {client} to {at(server, port)}",
        detail=f"{count(len(rows), 'connection')} reset by neither end: {ttls}.",
        who=Who(client, server, port),
        evidence=first_frames(side.rst.frames for stream in examples for side, _ in directions(stream)),
        cause=cause_of("third_party_reset"),
        remediation=remediation_of("third_party_reset", src=client, dst=server, port=port),
        confidence="high",
        weight=len(rows),
        measured={"resets": len(rows)},
    )


def repeated_in_vain(seen: Observed) -> Mask:
    """Connections whose server was silent while the client's timer repeated its data, and then reset them."""
    c = seen.columns
    rto, fast, rst = (c.sides(name) for name in ("rto_retransmissions", "fast_retransmissions", "rst"))
    silent = np.nan_to_num(c.request_ms) >= threshold("mid_session_reset.server_silence_ms")
    repeated = (rto[:, CLIENT] >= threshold("mid_session_reset.min_repeats")) & (fast[:, CLIENT] == 0)
    # A reset that answers data names no acknowledgement: what was never acknowledged is told by the repeats alone.
    vain = (c.lost()[:, CLIENT] == rto[:, CLIENT]) & (c.sides("duplicate_acks")[:, SERVER] == 0)
    result: Mask = silent & repeated & vain & (rst[:, SERVER] > 0) & (rst[:, CLIENT] == 0)
    return result


def _restarted(seen: Observed, every: Ints) -> Iterator[Finding]:
    """One finding a service, whichever clients it forgot."""
    c = seen.columns
    for (service,), rows in islice(groups_of(every, seen.service), MOST_GROUPS):
        server, port = seen.name_of(service)
        clients = [c.host(number) for number in distinct(c.hosts[rows, CLIENT]).tolist()]
        silence = duration(float(c.request_ms[rows].max()))
        repeats = int(c.sides("rto_retransmissions")[rows, CLIENT].sum())
        of_whom = clients[0] if len(clients) == 1 else f"{len(clients)} clients"
        examples = seen.worst(rows)
        yield Finding(
            kind="mid_session_reset",
            severity="HIGH",
            blame="server_host",
            protocol="TCP",
            title=f"{server} did not answer, and then did not know its connections with {of_whom} any more",
            detail=f"{count(len(rows), 'established connection')} to {at(server, port)}: what the client sent was"
            f" repeated {count(repeats, 'time')} in vain for up to {silence}, and then reset by the host itself.",
            who=Who(server, clients[0], port),
            evidence=first_frames(
                frames for s in examples for frames in (s.client.rto_retransmissions.frames[:1], s.server.rst.frames)
            ),
            cause=cause_of("mid_session_forgotten"),
            remediation=remediation_of("mid_session_forgotten", src=server, dst=clients[0], port=port),
            confidence="medium",
            weight=len(rows),
            measured={"resets": len(rows), "clients": len(clients)},
        )


def _span(side: Direction) -> str:
    return str(side.ttl_min) if side.ttl_min == side.ttl_max else f"{side.ttl_min} to {side.ttl_max}"


def _mid_session(seen: Observed, service: int, rows: Ints, *, by_server: bool) -> Finding:
    c = seen.columns
    client, (server, port) = c.host(c.hosts[rows[0], CLIENT]), seen.name_of(service)
    sender, receiver = (server, client) if by_server else (client, server)
    waits = c.request_ms[rows]
    waits = waits[~np.isnan(waits)]
    gave_up = not by_server and len(waits) > 0 and waits.min() >= threshold("mid_session_reset.client_patience_ms")
    pending = f" {count(len(waits), 'request')} had no answer yet" if len(waits) else ""
    if gave_up:
        pending += f" after {duration(float(waits.max()))}: the client gave up waiting"
    one_abort = len(rows) == 1 and not by_server and not gave_up
    target = at(server, port)
    return Finding(
        kind="mid_session_reset",
        severity="LOW" if one_abort else "HIGH" if len(rows) > 1 and by_server else "MEDIUM",
        blame="server_application" if by_server or gave_up else "client",
        protocol="TCP",
        title=f"{target} resets connections of {receiver} in the middle of an exchange"
        if by_server
        else f"{sender} resets connections to {target} in the middle of an exchange",
        detail=f"{count(len(rows), 'established connection')} aborted by the {'server' if by_server else 'client'}."
        + (f"{pending}." if pending else ""),
        who=Who(sender, receiver, port),
        evidence=first_frames((s.server if by_server else s.client).rst.frames for s in seen.worst(rows)),
        cause=cause_of("mid_session_reset"),
        remediation=remediation_of("mid_session_reset", src=sender, dst=receiver, port=port),
        confidence="medium",
        weight=len(rows),
        measured={"resets": len(rows)},
    )


# ------------------------------------------------------------------------------------------------ idle time-outs


def _forgotten(seen: Observed) -> Iterator[Finding]:
    """Connections that went silent and whose next data, or keep-alives, nobody answered any more."""
    c = seen.columns
    silent = c.sides("longest_silence_ms").max(axis=1) >= threshold("idle_timeout.min_gap_ms")
    repeats = threshold("idle_timeout.min_repeats")
    talked = (c.sides("packets") > 0).all(axis=1) & ~(c.sides("fin") > 0).all(axis=1)
    repeated = (c.sides("rto_retransmissions") >= repeats) & (c.unacked_bytes > 0)
    probed = (c.sides("keep_alives") >= repeats) & (c.sides("keep_alive_acks")[:, ::-1] == 0)
    probed &= c.sides("keep_alives") >= threshold("idle_timeout.min_unanswered_probes")
    alive = ~(c.sides("rst") > 0).any(axis=1) & talked & np.isin(c.handshake, ("completed", "not_seen", "incomplete"))
    disowned = talked & silent & np.isnan(c.request_ms) & (c.unacked_bytes == 0).all(axis=1) & _probe_was_reset(seen)
    yield from _idle(seen, np.flatnonzero((silent & alive & (repeated | probed).any(axis=1)) | disowned))


def _probe_was_reset(seen: Observed) -> Mask:
    """A keep-alive was answered by a reset: whoever answered does not know the connection any more."""
    c = seen.columns
    last_ns = c.sides("last_ns")
    unanswered = c.sides("keep_alives") > c.sides("keep_alive_acks")[:, ::-1]
    reset = (c.sides("rst")[:, ::-1] > 0) & (last_ns[:, ::-1] >= last_ns)
    never_closed = ~(c.sides("fin") > 0).any(axis=1)
    result: Mask = np.asarray((unanswered & reset).any(axis=1) & never_closed, np.bool_)
    return result


def _idle(seen: Observed, every: Ints) -> Iterator[Finding]:
    c = seen.columns
    for (_, service), rows in islice(groups_of(every, c.hosts[:, CLIENT], seen.service), MOST_GROUPS):
        client, (server, port) = c.host(c.hosts[rows[0], CLIENT]), seen.name_of(service)
        silence = float(c.sides("longest_silence_ms")[rows].max())
        ended = "reset" if (c.sides("rst")[rows] > 0).any() else "left without an acknowledgement"
        yield Finding(
            kind="idle_timeout",
            severity="MEDIUM",
            blame="network",
            protocol="TCP",
            title=f"Connections of {client} to {server} die while they are idle",
            detail=f"{count(len(rows), 'connection')} to {at(server, port)}, silent for up to {duration(silence)},"
            f" {ended} when used again.",
            who=Who(client, server, port),
            evidence=first_frames([s.last_frame] for s in seen.worst(rows)),
            cause=cause_of("idle_timeout"),
            remediation=remediation_of("idle_timeout", src=client, dst=server, port=port),
            confidence="medium",
            weight=len(rows),
            measured={"connections": len(rows), "silence_ms": round(silence)},
        )


# --------------------------------------------------------------------------------------------- closed too early


def _closed_early(seen: Observed) -> Iterator[Finding]:
    """The server closed in good order, but the answer was not complete, or did not come at all."""
    cut: dict[tuple[str, int], list[HttpExchange]] = {}
    for exchange in seen.analysis.http.incomplete if seen.analysis.http else ():
        if exchange.ended_by == "server" and not exchange.reset:
            cut.setdefault((exchange.server, exchange.port), []).append(exchange)
    for (server, port), exchanges in cut.items():
        came = min((e.came_bytes or 0, e.promised_bytes or 0) for e in exchanges)
        how = f"the Content-Length was reached, for example after {came[0]:,} of {came[1]:,} bytes"
        if not came[1]:
            how = f"the last chunk came, for example after {came[0]:,} bytes"
        detail = f"{count(len(exchanges), 'HTTP answer')} ended before {how}."
        frames = first_frames(exchange.frames for exchange in exchanges)
        yield _early(exchanges[0].client, server, port, len(exchanges), detail, frames, "high")
    c = seen.columns
    waited = c.request_ms >= threshold("early_close.goodbye_ms")
    fin = c.sides("fin")[:, SERVER] > 0
    rst = (c.sides("rst") > 0).any(axis=1)
    spoke = c.sides("payload_bytes")[:, SERVER] > 0
    short = c.sides("data_segments")[:, CLIENT] <= threshold("early_close.max_request_segments")
    lone = ~spoke & short & ~np.isnan(c.request_ms)
    acked = c.unacked_bytes[:, CLIENT] == 0
    owing = fin & ~rst & acked & ((waited & spoke) | lone) & (c.handshake != "refused")
    owing &= (c.closed_first == SERVER) & ~wants_no_answer(seen)
    rows, doubtful = np.flatnonzero(owing), brief(seen) & spoke
    for (_, service), some in islice(groups_of(rows, c.hosts[:, CLIENT], seen.service), MOST_GROUPS):
        client, (server, port) = c.host(c.hosts[some[0], CLIENT]), seen.name_of(service)
        if (server, port) in cut:
            continue
        longest = float(np.nanmax(c.request_ms[some]))
        detail = (
            f"{count(len(some), 'request')} acknowledged, never answered, and the connection closed by the server"
            f" after up to {duration(longest)}."
        )
        frames = first_frames(seen.frames(some, "fin", SERVER))
        if doubtful[some].all():
            detail += " What was asked is so short that it may have been no question."
        yield _early(client, server, port, len(some), detail, frames, "low" if doubtful[some].all() else "medium")


def _early(
    client: str, server: str, port: int, number: int, detail: str, frames: tuple[int, ...], confidence: str
) -> Finding:
    return Finding(
        kind="early_close",
        severity="LOW" if confidence == "low" else "HIGH" if number > 1 else "MEDIUM",
        blame="server_application",
        protocol="TCP",
        title=f"{at(server, port)} closes connections of {client} before its answer is complete",
        detail=detail,
        who=Who(client, server, port),
        evidence=frames,
        cause=cause_of("early_close"),
        remediation=remediation_of("early_close", src=client, dst=server, port=port),
        confidence=confidence,
        weight=number,
        measured={"connections": number},
    )
