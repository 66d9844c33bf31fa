"""What Azure Monitor measured where configuration tells no fault: translations that failed, members out of rotation.

https://learn.microsoft.com/azure/nat-gateway/nat-metrics
https://learn.microsoft.com/azure/load-balancer/load-balancer-standard-diagnostics
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ghost import net
from ghost.brain.offline.azure_reads import Read, Reading, az
from ghost.brain.offline.case import Case, Cause, read
from ghost.brain.offline.complaint import Candidate, Complaint
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.steps import Steps
from ghost.net import Hop, LoadBalancer, key, name_of

OFTEN: Final = 0.01
"""The share of failed translations from which they are felt."""
FULL: Final = 0.95
"""The share of a machine's ports in use from which the next connection may find none."""
CONNECTIONS: Final = "SNATConnectionCount"
PORTS: Final = ("UsedSnatPorts", "AllocatedSnatPorts")
PROBES: Final = "DipAvailability"


def check_metrics(case: Case, complaint: Complaint, candidate: Candidate) -> Steps[None]:
    """Blame used up SNAT ports, and state which members of a pool are out by their probes, in the last hour."""
    walked = net.walk(case.network, candidate.flow)
    if complaint.kind == "dns" or walked.blocker is not None:
        return
    out = next((hop for hop in walked.hops if hop.kind == "nat" and hop.verdict == "rewrite"), None)
    pool = next((hop for hop in walked.hops if hop.kind == "load_balancer" and not hop.stops), None)
    asked = [(out, words) for words in _of_translation(out)] if out is not None else []
    asked += [(pool, _metrics(pool, (PROBES,), "BackendIPAddress", "Average"))] if pool is not None else []
    if not asked:
        return
    reads = [Read(words, f"Metrics of {name_of(hop.resource)} in the last hour.") for hop, words in asked]
    readings = yield from read(case, "Configuration allows this traffic: I read the metrics.", *reads)
    told = [(hop, reading) for (hop, _), reading in zip(asked, readings, strict=True) if reading.ok]
    if out is not None:
        _judge_translation(case, candidate, out, [reading for hop, reading in told if hop is out])
    if pool is not None:
        _state_members(case, pool, [reading for hop, reading in told if hop is pool])


def _of_translation(out: Hop) -> Iterator[tuple[str, ...]]:
    if "/natgateways/" in key(out.resource):
        yield _metrics(out, (CONNECTIONS,), "ConnectionState", "Total")
    elif "/loadbalancers/" in key(out.resource):
        yield _metrics(out, (CONNECTIONS,), "ConnectionState", "Total")
        yield _metrics(out, PORTS, "BackendIPAddress", "Average")


def _metrics(hop: Hop, names: tuple[str, ...], dimension: str, aggregation: str) -> tuple[str, ...]:
    where = ("monitor", "metrics", "list", "--resource", hop.resource, "--metrics", *names)
    return az(*where, "--offset", "1h", "--interval", "PT5M", "--aggregation", aggregation, "--dimension", dimension)


def _judge_translation(case: Case, candidate: Candidate, out: Hop, readings: list[Reading]) -> None:
    """Failed translations are the fault where they are many; surely where the source's own ports are in use as well."""
    audit_ids = tuple(audit_id for reading in readings for audit_id in reading.audit_ids)
    states = _summed(readings, CONNECTIONS, "total")
    tried, failed = sum(states.values()), states.get("failed", 0.0)
    where = name_of(out.resource)
    if not states:
        return
    if not tried or failed / tried < OFTEN:
        case.state(f"{where} translated {tried:.0f} connections in the last hour; {failed:.0f} failed.", *audit_ids)
        return
    used, ports = (_summed(readings, name, "average").get(candidate.flow.source_address) for name in PORTS)
    is_full = used is not None and bool(ports) and used >= FULL * (ports or 0)
    text = f"{where} could not translate {failed:.0f} of {tried:.0f} connections in the last hour"
    text += f", and {candidate.source.label} used {used:.0f} of its {ports:.0f} SNAT ports" if is_full else ""
    case.blame(
        Cause(
            "load_balancer", LOST, f"No SNAT ports were left: {text}.", (*audit_ids, *out.references),
            (f"Give {where} more ports: {net.known_kinds()['snat_ports_exhausted'].mend}.",),
            kind="snat_ports_exhausted", resource=out.resource, flow=candidate.flow,
            conclusive=is_full, likely=not is_full,
        )
    )  # fmt: skip


def _state_members(case: Case, pool: Hop, readings: list[Reading]) -> None:
    audit_ids = tuple(audit_id for reading in readings for audit_id in reading.audit_ids)
    health = _means(readings, PROBES)
    failing = {member: share for member, share in health.items() if share < 100}
    if not health or case.network.get(LoadBalancer, pool.resource) is None:
        return
    named = ", ".join(f"{member} ({share:.0f}% of its probes pass)" for member, share in sorted(failing.items()))
    text = f"Health probes of {len(health)} members of {name_of(pool.resource)} in the last hour"
    case.state(f"{text}: {f'failed for {named}' if named else 'none failed'}.", *audit_ids)
    if failing and not any(health.values()):
        note = f"no member of {name_of(pool.resource)} passes its probe, though the probe's packets are let through"
        case.not_verified("load_balancer", note, audit_ids)


def _series(readings: list[Reading], metric: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each series of a metric: the folded value of its dimension, and its points."""
    for reading in readings:
        for each in reading.row().get("value") or ():
            if str((each.get("name") or {}).get("value")).casefold() != metric.casefold():
                continue
            for series in each.get("timeseries") or ():
                place = "/".join(str(item.get("value")).casefold() for item in series.get("metadatavalues") or ())
                yield place, [point for point in series.get("data") or () if isinstance(point, dict)]


def _summed(readings: list[Reading], metric: str, aggregation: str) -> dict[str, float]:
    """Return the sum of a total, or the highest of the averages, by dimension."""
    found: dict[str, float] = {}
    for place, points in _series(readings, metric):
        values = [float(point.get(aggregation) or 0) for point in points]
        value = sum(values) if aggregation == "total" else max(values, default=0.0)
        found[place] = found.get(place, 0.0) + value
    return found


def _means(readings: list[Reading], metric: str) -> dict[str, float]:
    told = {
        place: [float(point["average"]) for point in points if point.get("average") is not None]
        for place, points in _series(readings, metric)
    }
    return {place: sum(values) / len(values) for place, values in told.items() if values}
