"""Rule for SNAT exhaustion: a NAT without free source ports for one destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ghost.pcap.array_queries import median
from ghost.pcap.array_types import Array
from ghost.pcap.findings.common_causes import merged_finding
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.finding_cases import make_finding
from ghost.pcap.findings.observations import Observed, groups_of
from ghost.pcap.findings.phrasing import at, count, duration
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, Floats, PerStream, StreamRows

HOLD_SECONDS = (0, 1, 10, 15, 30, 60, 65, 120, 240)
"""How long a NAT may keep a port after its connection closed: at once, and the usual timers."""


@dataclass(frozen=True)
class _Load:
    """Ports in use by one client to one service when other connections were opened."""

    at_success: Array
    at_failure: Array
    begun: Floats
    """When those were begun that succeeded, seconds."""
    failed: Floats

    @property
    def ports(self) -> int:
        """The most ports ever in use."""
        return int(self.at_success.max()) + 1

    @property
    def full(self) -> float:
        """From how many on all ports count as in use; some may be freed between a failure and the next check."""
        return threshold("snat_exhaustion.full_share") * self.ports


@dataclass(frozen=True, eq=False)
class Exhausted:
    """SNAT exhaustion of one client with one service."""

    client: str
    service: int
    failed: StreamRows
    ports: int
    """As many as it ever held."""
    served: int
    hold: int
    """Seconds for which a port counts as held after its connection closed."""


def exhausted(seen: Observed, source: int, served: PerStream, failed: StreamRows) -> Exhausted | None:
    """Return SNAT exhaustion if new connections fail exactly while the source holds as many ports as it ever gets, else
    None. `served` and `failed`: its streams to one service. Loss and an overloaded server fail connections at any
    number."""
    if len(failed) < threshold("snat_exhaustion.min_failed"):
        return None
    c = seen.columns
    if (c.request_ms[served] >= threshold("slow_application.client_patience_ms")).mean() > 0.5:
        return None  # the server takes connections and does not serve them: that is not the way
    late = failed[seen.served[failed]]
    taken = np.concatenate([served, late])
    asked = c.first_ns[failed] / 1e9
    # The SYN that was answered at last took the port; what was under way before the capture held one all the time.
    begun = c.answered_syn_ns[taken] / 1e9
    opened = np.sort(np.where(c.handshake[taken] == "not_seen", seen.first_ns / 1e9, begun))
    closed = np.sort(_closed(seen, taken))
    for hold in HOLD_SECONDS:
        freed = closed + hold
        load = _Load(_held(begun, opened, freed) - 1, _held(asked, opened, freed), begun, asked)
        told = _fails_when_full(load) and (_works_below(load, len(served)) or _at_port_limit(load))
        if told and not _queues(seen, taken, load):
            service = int(seen.service[failed[0]])
            return Exhausted(c.host(source), service, failed, load.ports, len(served), hold)
    return None


def _closed(seen: Observed, rows: StreamRows) -> Floats:
    """Return float[n]: when streams ended, in seconds; infinity if they were not closed."""
    c = seen.columns
    ended = c.sides("fin")[rows] + c.sides("rst")[rows] > 0
    return np.where(ended.any(axis=1), c.last_ns[rows] / 1e9, np.inf)


def _held(moments: Floats, opened: Floats, freed: Floats) -> Array:
    """Return int[n]: ports in use at each moment."""
    result: Array = np.searchsorted(opened, moments, "right") - np.searchsorted(freed, moments, "right")
    return result


def _fails_when_full(load: _Load) -> bool:
    """Return whether no connection fails before all ports are in use for the first time; loss would fail at random
    moments."""
    full = load.at_failure >= load.full
    first = load.failed[full].min() if full.any() else np.inf
    return bool(
        load.ports >= threshold("snat_exhaustion.min_ports")
        and full.mean() >= threshold("snat_exhaustion.min_failures_full_share")
        and (load.failed < first).mean() <= threshold("snat_exhaustion.max_early_share")
    )


def _works_below(load: _Load, served: int) -> bool:
    """Return whether most connections that opened at once found free ports."""
    below = load.at_success[:served] < load.full
    return bool(below.mean() >= threshold("snat_exhaustion.min_successes_below_share"))


def _at_port_limit(load: _Load) -> bool:
    """Return whether each freed port is taken at once: successes and failures happen within a few ports of the limit,
    never at the same number. With loss they would."""
    full = load.at_failure >= load.full
    crowded = load.begun >= load.failed[full].min()
    most = threshold("snat_exhaustion.min_at_the_limit")
    if crowded.sum() < most or full.sum() < most:
        return False
    successes = np.sort(load.at_success[crowded])
    fewer = np.searchsorted(successes, load.at_failure, "left")
    as_many = np.searchsorted(successes, load.at_failure, "right") - fewer
    apart = float((fewer + as_many / 2).mean()) / len(successes)
    return bool(
        full.mean() >= threshold("snat_exhaustion.full_share") and apart >= threshold("snat_exhaustion.min_apart_share")
    )


def _queues(seen: Observed, taken: StreamRows, load: _Load) -> bool:
    """Return whether the server accepts only so many connections and queues the rest: it answers late when full and
    quickly when few are open."""
    rows, times = seen.columns.samples("response_ms")
    waits = np.nan_to_num(seen.columns.request_ms)
    np.maximum.at(waits, rows, times)
    crowded, alone = load.at_success >= load.full, 2 * load.at_success < load.ports
    if not crowded.any():
        return False
    slow = median(waits[taken[crowded]])
    usual = median(waits[taken[alone]]) if alone.any() else 0.0
    return slow >= max(threshold("slow_application.slow_ms"), threshold("snat_exhaustion.queued_factor") * usual)


def snat_findings(seen: Observed, found: Sequence[Exhausted]) -> Iterator[Finding]:
    """Yield one finding for all clients of a service, which share one NAT."""
    services = np.array([each.service for each in found], np.int64)
    for _, places in groups_of(np.arange(len(found)), services):
        yield merged_finding([found[place] for place in places], partial(_finding, seen), partial(_who, seen))


def _who(seen: Observed, each: Exhausted) -> Who:
    return Who(each.client, *seen.name_of(each.service))


def _finding(seen: Observed, found: Sequence[Exhausted]) -> Finding:
    found = sorted(found, key=lambda each: -len(each.failed))
    worst = found[0]
    host, port = seen.name_of(worst.service)
    failed = np.concatenate([each.failed for each in found])
    served = sum(each.served for each in found)
    late = int(seen.served[failed].sum())
    several = len(found) > 1
    clients = f"{len(found)} clients" if several else worst.client
    each_holds = " of each" if several else ""
    kept = f", counting ports for {duration(worst.hold * 1000)} after they close" if worst.hold else ""
    return make_finding(
        "snat_exhaustion",
        severity="HIGH",
        title=f"New connections of {clients} to {at(host, port)} fail while {worst.ports}{each_holds} are held: a NAT"
        " is out of ports",
        detail=f"The first SYN of {count(len(failed), 'connection')} got no answer ({late} opened later, on a repeat),"
        f" nearly always while about {worst.ports} others{each_holds} were held{kept};"
        f" {count(served, 'connection')} opened at lower numbers succeeded."
        + (f" Most of {worst.client}: {len(worst.failed)}." if several else ""),
        who=Who(worst.client, host, port),
        evidence=seen.frames(failed, "syn", CLIENT),
        confidence="medium",
        weight=len(failed),
        measured={"failed": len(failed), "completed": served, "ports_held": worst.ports}
        | ({"clients": len(found)} if several else {}),
    )
