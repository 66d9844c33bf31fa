"""Rules for a balancer with a dead backend: some five-tuples always fail while others are answered at once.

A balancer sends all packets of a five-tuple to one backend, so a repeated SYN meets the same one. Loss, a full queue
and a NAT without ports fail SYNs at random: a repeat is answered as often as a first attempt. A capture on the server
itself lies behind any balancer.
"""

from __future__ import annotations

import math

import numpy as np

from ghost.pcap.array_queries import among
from ghost.pcap.findings.common_causes import parties
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.phrasing import at, count
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, Mask, StreamRows


def fails_by_tuple(seen: Observed, failed: StreamRows, at_once: Mask) -> bool:
    """Return whether some five-tuples of a service always fail. `failed`: streams whose SYN was not answered, or only
    when repeated; `at_once`: the mask of streams that opened at once."""
    c = seen.columns
    answered = _of_same_clients(seen, failed, at_once)
    silent = seen.only_syn[failed]
    late, dead = failed[~silent], failed[silent]
    dead = dead[~_used_before(seen, dead)]
    opened, begun, given_up = (np.sort(times) for times in (c.first_ns[answered], c.first_ns[dead], c.last_ns[dead]))
    beside = np.searchsorted(opened, c.last_ns[dead]) > np.searchsorted(opened, c.first_ns[dead])
    meanwhile = int((np.searchsorted(begun, opened) > np.searchsorted(given_up, opened)).sum())
    if beside.sum() < threshold("backend_dead.min_tuples") or meanwhile < threshold("backend_dead.min_answered"):
        return False
    if _is_server_end(seen, answered):
        return False
    in_vain = int(c.syn_retransmissions[dead[beside]].sum() + (c.syn_retransmissions[late] - 1).sum())
    share = (len(dead) + len(late)) / (len(dead) + len(late) + meanwhile)
    # The probability that so many of the repeats fail, if each fails as often as a first SYN, is at most this.
    chance = _log_choices(in_vain + len(late), in_vain) + in_vain * math.log(share)
    return chance <= math.log(threshold("backend_dead.max_chance"))


def _of_same_clients(seen: Observed, rows: StreamRows, some: Mask) -> StreamRows:
    """Return the streams of `some` with the service and the clients of `rows`."""
    same_service = some & (seen.service == seen.service[rows[0]])
    return np.flatnonzero(same_service & among(seen.columns.hosts[:, CLIENT], seen.columns.hosts[rows, CLIENT]))


def _is_server_end(seen: Observed, answered: StreamRows) -> bool:
    return seen.columns.make(answered[:1])[0].capture_point == "server"


def _used_before(seen: Observed, rows: StreamRows) -> Mask:
    """Return whether another stream has the same five-tuple: a device on the path may still hold that connection."""
    c = seen.columns
    mine = np.flatnonzero(among(seen.service, seen.service[rows]))
    tuples, times = np.unique(c.hosts[mine, CLIENT] << 16 | c.ports[mine, CLIENT], return_counts=True)
    return among(c.hosts[rows, CLIENT] << 16 | c.ports[rows, CLIENT], tuples[times > 1])


def _log_choices(number: int, chosen: int) -> float:
    return math.lgamma(number + 1) - math.lgamma(chosen + 1) - math.lgamma(number - chosen + 1)


def dead_backend(seen: Observed, rows: StreamRows, *, at_once: Mask) -> Finding:
    """Return the finding for a service of which one backend is silent. `rows`: its streams that failed or opened late;
    `at_once`: the mask of streams that opened at once."""
    c = seen.columns
    who = parties(seen, rows)
    dead = rows[seen.only_syn[rows]]
    answered = _of_same_clients(seen, rows, at_once & (c.first_ns >= c.first_ns[dead].min()))
    repeats = int(c.syn_retransmissions[dead].sum())
    late, served = len(rows) - len(dead), len(answered)
    return make_finding(
        "backend_dead",
        severity="HIGH",
        title=f"About one of {round(1 + served / len(dead))} backends of {at(who.server, who.port)} is dead:"
        f" {len(dead)} of {len(rows) + served:,} connections of {who.whom} get no answer",
        detail=f"{count(len(dead), 'five-tuple')} never answered, although their SYNs were repeated"
        f" {count(repeats, 'time')}; since the first of them {count(served, 'connection')} opened at once"
        f" and {late} after a repeat. With loss, repeats would be answered as often as first SYNs.{who.mostly}",
        who=Who(who.client, who.server, who.port),
        evidence=seen.frames(dead, "syn", CLIENT),
        confidence="medium",
        weight=len(dead) + repeats,
        measured={"failed": len(dead), "syn_retransmitted": repeats, "completed": served, "answered": late}
        | who.measured,
    )


def refuses_by_turns(seen: Observed, refused: StreamRows) -> bool:
    """Return whether refused and served connections of one service alternate at least as often as by chance (the runs
    test of Wald and Wolfowitz): a restart or an overload refuses many in a row."""
    c = seen.columns
    served = _of_same_clients(seen, refused, seen.served)
    bad, good = len(refused), len(served)
    if min(bad, good) < threshold("backend_dead.min_refused") or _is_server_end(seen, served):
        return False
    fails = np.argsort(c.first_ns[np.concatenate([refused, served])], kind="stable") < bad
    runs = 1 + int((fails[1:] != fails[:-1]).sum())
    usual = 2 * bad * good / (bad + good)
    deviation = math.sqrt(usual * (usual - 1) / (bad + good - 1))
    return runs >= 1 + usual - threshold("backend_dead.most_deviations") * deviation
