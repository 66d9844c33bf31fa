"""Rules for endpoints that fall silent while the other one keeps sending: one by one, or many at the same moment.

Many that share only the path to them fall silent together if the path fails. A host that falls silent alone, while its
neighbours are heard, has failed itself; a client may simply leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from math import factorial

import numpy as np

from ghost.pcap.array_queries import among, distinct, without
from ghost.pcap.array_types import Array
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
from ghost.pcap.findings.host_activity import LastHeard
from ghost.pcap.findings.observations import MOST_GROUPS, Observed
from ghost.pcap.findings.phrasing import at, clock, count, duration
from ghost.pcap.findings.reset_origin import network_of
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask, StreamRows

_MS = 1_000_000


def outage_findings(seen: Observed, rows: StreamRows, sides: Array) -> Iterator[Finding]:
    """Yield findings for streams on which side `sides` retransmits without any acknowledgement."""
    left = np.ones(len(rows), np.bool_)
    for some in islice(_outages(seen, rows, sides), MOST_GROUPS):
        left[some] = False
        yield of_streams(seen, rows[some], partial(_outage, seen))
    hosts = seen.columns.hosts[:, SERVER]
    for side in (CLIENT, SERVER):
        mine = rows[left & (sides == side)]
        never = all_of_pair(seen, mine, seen.columns.sides("largest_acked_segment")[mine, side] == 0)
        for some, ever in ((mine[never], False), (mine[~never], True)):
            make = partial(_unacknowledged_data, seen, side=side, ever=ever)
            yield from grouped_findings(seen, some, make, served=hosts, near_client=True)


# ------------------------------------------------------------------------------------------------ at the same moment


def _outages(seen: Observed, rows: StreamRows, sides: Array) -> Iterator[StreamRows]:
    """Yield indices into `rows` of streams whose peers may all have fallen silent at one moment: after each was last
    heard and before the first packet it did not answer. The latter is known for requests; for a server's data only
    while a transfer is under way."""
    c = seen.columns
    heard = c.sides("last_ns")[rows, 1 - sides]
    closed = (c.sides("fin") > 0).any(axis=1) | (c.sides("rst") > 0).any(axis=1)
    asked = np.where(closed, c.last_ns, seen.last_ns)[rows] - np.nan_to_num(c.request_ms[rows]) * _MS
    known = (sides == CLIENT) & ~np.isnan(c.request_ms[rows])
    until = np.where(known, np.maximum(heard, asked), heard).astype(np.int64) + _together_ns()
    left = np.flatnonzero(c.sides("fin")[rows, 1 - sides] == 0)  # who is heard again has not fallen silent for good
    worked = c.sides("largest_acked_segment")[rows, sides] > 0
    for _ in range(MOST_GROUPS):
        before = left[worked[left]]
        if len(before) < 2:
            return
        begins, ends = np.sort(heard[before]), np.sort(until[before])
        under_way = np.arange(1, len(before) + 1) - np.searchsorted(ends, begins, side="left")
        moment = int(begins[np.argmax(under_way)])
        some = left[(heard[left] <= moment) & (until[left] >= moment)]
        left = without(left, some)
        some = some[~_heard_later(seen, rows[some], sides[some], moment)]
        if _is_no_chance(seen, rows, sides, some[worked[some]], moment):
            yield some


def _together_ns() -> int:
    return int(threshold("rto_loss.together_ms") * _MS)


def _heard_later(seen: Observed, rows: StreamRows, sides: Array, moment: int) -> Mask:
    """Return bool[n]: the silent host is still heard on another stream of the pair."""
    c = seen.columns
    hosts = max(len(c.addresses), 1)
    later = c.sides("last_ns")[:, ::-1] > moment + _together_ns()  # by the side that listens
    pairs = c.hosts * hosts + c.hosts[:, ::-1]
    mine = c.hosts[rows, sides] * hosts + c.hosts[rows, 1 - sides]
    return among(mine, pairs[later & (c.sides("packets")[:, ::-1] > 0)])


def _is_no_chance(seen: Observed, rows: StreamRows, sides: Array, some: StreamRows, moment: int) -> bool:
    """Return whether more hosts fell silent than continued, or several so close together that chance does not explain
    it."""
    c = seen.columns
    silent = distinct(c.hosts[rows[some], 1 - sides[some]])
    if len(silent) < 2:
        return False
    side = int(np.bincount(sides[some]).argmax())
    mine = among(c.hosts[:, side], distinct(c.hosts[rows[some], sides[some]]))
    heard = mine & (c.sides("last_ns")[:, 1 - side] > moment + _together_ns()) & (c.sides("packets")[:, 1 - side] > 0)
    known = c.hosts[mine & (c.first_ns < moment), 1 - side]
    went_on = c.hosts[heard, 1 - side]
    if len(without(went_on[among(went_on, known)], silent)) < len(silent):
        return True
    elsewhere = len(without(c.hosts[rows, 1 - sides], silent))
    apart = moment - int(c.sides("last_ns")[rows[some], 1 - sides[some]].min())
    often = (elsewhere + 1) * max(apart, _MS) / max(seen.last_ns - seen.first_ns, 1)
    return len(silent) >= threshold("rto_loss.least_hosts") and (
        _by_chance(len(silent), elsewhere, often) < threshold("rto_loss.by_chance")
    )


def _by_chance(number: int, elsewhere: int, often: float) -> float:
    """Return the expected number of such coincidences if hosts left independently at the observed rate."""
    return (number + elsewhere) * often ** (number - 1) / factorial(number - 1) if number < 100 else 0.0


def _outage(seen: Observed, rows: StreamRows) -> Finding:
    c = seen.columns
    repeats = c.sides("rto_retransmissions")[rows]
    side = int(np.argmax(repeats.sum(axis=0)))
    who = parties(seen, rows)
    ends = (who.client, who.server)
    heard = c.sides("last_ns")[rows, 1 - side]
    silent = distinct(c.hosts[rows, 1 - side])
    moment, first = int(heard.max()), int(heard.min())
    longest = float((c.last_ns[rows] - heard).max()) / _MS
    what, falls = "client" if side == SERVER else "host", "falls" if len(silent) == 1 else "fall"
    of_whom = f"of {ends[side]} " if len(distinct(c.hosts[rows, side])) == 1 else ""
    begun = (moment - seen.first_ns) / _MS
    total = int(repeats[:, side].sum())
    examples = seen.worst(representative_rows(seen, rows, repeats[:, side]))
    return make_finding(
        "rto_loss_outage",
        severity="HIGH",
        title=f"{count(len(silent), what)} {of_whom}{falls} silent at one moment, {duration(begun)} into the capture",
        detail=f"{count(len(rows), 'connection')}: {count(len(silent), 'host')} last heard at {clock(moment)}, within"
        f" {duration((moment - first) / _MS)} of each other; nothing that was sent to them since"
        f" was acknowledged; data was repeated {count(total, 'time')} by timeouts, for up to {duration(longest)}.",
        who=Who(ends[side], ends[1 - side], who.port),
        evidence=((s.client, s.server)[side].rto_retransmissions.frames for s in examples),
        confidence="high",
        weight=total,
        measured={
            "connections": len(rows),
            "hosts": len(silent),
            "rto": total,
            "silence_ms": round(longest),
            "at_ms": round(begun),
        },
    )


# -------------------------------------------------------------------------------------------------------- one by one


def _unacknowledged_data(seen: Observed, rows: StreamRows, *, side: int, ever: bool) -> Finding:
    """Return the finding for unacknowledged data from `who.src` to `who.dst`.

    `ever`: some of it was acknowledged before.
    """
    c = seen.columns
    who = parties(seen, rows)
    ends = (who.client, who.server)
    repeats = c.sides("rto_retransmissions")[rows, side]
    heard_ns = c.sides("last_ns")[rows, 1 - side]
    back = c.sides("fin")[rows, 1 - side] > 0  # heard again, but of nothing that was sent meanwhile
    within_ms = np.where(back, c.sides("longest_silence_ms")[rows, 1 - side], 0)
    longest = float(np.maximum((c.last_ns[rows] - heard_ns) / _MS, within_ms).max())
    whom = _silent_hosts_text(who, side)
    nothing = (
        f"no packet came from {whom} for up to {duration(longest)}"
        if longest >= threshold("rto_loss.silence_ms")
        else f"{whom} repeats its SYN-ACK although it was answered"
    )
    went_on = _continuing(seen, rows, int(heard_ns.max()), side)
    still = f" {count(went_on, 'other connection')} between the two continued." if went_on else ""
    gone = side == CLIENT and ever and not went_on and _is_host_gone(seen, rows, int(heard_ns.max()))
    case = "rto_loss_host_gone" if gone else "rto_loss_unacknowledged"
    alone = f" Its neighbours are heard after that, {who.server} is not." if gone else ""
    one = who.clients == 1 if side == SERVER else who.services == 1
    target = at(who.server, who.port) if side == CLIENT and one else whom
    senders = who.clients if side == CLIENT else who.services
    sends = f"{ends[side]} sends" if senders == 1 else f"{senders:,} {'clients' if side == CLIENT else 'services'} send"
    acknowledges = f"{'does' if one else 'do'} not acknowledge"
    if ever:
        acknowledges = f"no longer acknowledge{'s' if one else ''}"
    examples = seen.worst(representative_rows(seen, rows, repeats))
    return make_finding(
        case,
        severity=_severity(seen, rows, side, ever=ever),
        title=f"{target} {acknowledges} what {sends}",
        detail=f"{count(len(rows), 'connection')}: data was repeated {count(int(repeats.sum()), 'time')} by timeouts"
        f" and never acknowledged; {nothing}.{alone}{still}{who.mostly}",
        who=Who(ends[side], ends[1 - side], who.port),
        evidence=((s.client, s.server)[side].rto_retransmissions.frames for s in examples),
        confidence="high" if len(rows) > 1 and not gone else "medium",
        weight=int(repeats.sum()),
        measured={"connections": len(rows), "rto": int(repeats.sum()), "silence_ms": round(longest), **who.measured},
    )


def _silent_hosts_text(who: Parties, side: int) -> str:
    if side == SERVER:
        return who.whom
    return who.server if who.services == 1 else f"{who.services:,} services, such as {at(who.server, who.port)},"


def _severity(seen: Observed, rows: StreamRows, side: int, *, ever: bool) -> str:
    """Return the severity.

    A client that leaves silently (asleep, out of range) is no fault of a service that worked for it, and none at all if
    many others are heard after it.
    """
    if not ever:
        return "HIGH"
    if side == CLIENT:
        return "HIGH" if len(rows) > 1 else "MEDIUM"
    c = seen.columns
    hosts, connections = np.unique(c.hosts[rows, CLIENT], return_counts=True)
    mine = among(c.hosts[:, SERVER], distinct(c.hosts[rows, SERVER]))
    for client in hosts[connections > 1].tolist():
        heard = c.sides("last_ns")[rows[c.hosts[rows, CLIENT] == client], CLIENT].max()
        later = mine & (c.sides("last_ns")[:, CLIENT] > heard) & (c.hosts[:, CLIENT] != client)
        if len(distinct(c.hosts[later, CLIENT])) < threshold("rto_loss.many_hosts"):
            return "MEDIUM"
    return "LOW"


def _continuing(seen: Observed, rows: StreamRows, heard_ns: int, side: int) -> int:
    """Return how many other streams of the pair show the silent host well after that moment."""
    c = seen.columns
    hosts = max(len(c.addresses), 1)
    pairs = c.hosts[:, CLIENT] * hosts + c.hosts[:, SERVER]
    same = among(pairs, pairs[rows])
    same[rows] = False
    later = (c.sides("last_ns")[:, 1 - side] - heard_ns) / _MS >= threshold("rto_loss.silence_ms")
    return int((same & later).sum())


def _is_host_gone(seen: Observed, rows: StreamRows, heard_ns: int) -> bool:
    """Return whether one host fell silent on several streams while its neighbours are heard."""
    c = seen.columns
    server = distinct(c.hosts[rows, SERVER])
    if len(server) > 1 or len(rows) < 2:
        return False
    address, heard = c.host(int(server[0])), LastHeard(seen)
    senders = {c.host(number) for number in distinct(c.hosts[rows, CLIENT]).tolist()}
    later = heard_ns + _together_ns()
    return not heard.since(address, later) and any(
        heard.since(other, later)
        for other in heard
        if other != address and other not in senders and network_of(other) == network_of(address)
    )
