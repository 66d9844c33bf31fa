"""A NAT that has run out of source ports for one destination (SNAT exhaustion)."""

from __future__ import annotations

import numpy as np

from ghost.pcap.findings.columns import CLIENT, Floats, Ints
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, duration, first_frames

HOLD_SECONDS = (0, 1, 10, 30, 60, 120, 240)
"""How long a NAT may keep a port after its connection closed: at once, and the usual timers."""


def exhausted(seen: Observed, source: int, served: Ints, failed: Ints) -> Finding | None:
    """New connections of a source fail exactly while it holds as many ports as it ever gets.

    `served` and `failed` are its streams to one service. Loss and an overloaded server fail connections at any number.
    """
    if len(failed) < threshold("snat_exhaustion.min_failed"):
        return None
    c = seen.columns
    late = failed[seen.served[failed]]
    # A SYN is repeated after 1, 2, 4 s (RFC 6298): the one that was answered at last took the port.
    since = c.first_ns[late] / 1e9 + 2.0 ** c.syn_retransmissions[late] - 1
    opened = np.sort(np.concatenate([c.first_ns[served] / 1e9, since]))
    closed = np.sort(np.concatenate([c.last_ns[served], c.last_ns[late]]) / 1e9)
    if (c.request_ms[served] >= threshold("slow_application.client_patience_ms")).mean() > 0.5:
        return None  # the server takes connections and does not serve them: that is not the way
    for hold in HOLD_SECONDS:
        at_success = _held(c.first_ns[served] / 1e9, opened, closed + hold) - 1
        at_failure = _held(c.first_ns[failed] / 1e9, opened, closed + hold)
        ports = int(at_success.max()) + 1
        full = at_failure >= threshold("snat_exhaustion.full_share") * ports
        # None fails until all ports are held for the first time: loss would have chosen its moments at random.
        first_full = float((c.first_ns[failed][full] / 1e9).min()) if full.any() else np.inf
        early = (c.first_ns[failed] / 1e9 < first_full).mean()
        below = at_success < threshold("snat_exhaustion.full_share") * ports
        if (
            ports >= threshold("snat_exhaustion.min_ports")
            and full.mean() >= threshold("snat_exhaustion.min_failures_full_share")
            and early <= threshold("snat_exhaustion.max_early_share")
            and below.mean() >= threshold("snat_exhaustion.min_successes_below_share")
        ):
            return _finding(seen, source, failed, ports, len(served), hold)
    return None


def _held(moments: Floats, opened: Floats, freed: Floats) -> Ints:
    """How many ports were held at each moment."""
    result: Ints = np.searchsorted(opened, moments, "right") - np.searchsorted(freed, moments, "right")
    return result


def _finding(seen: Observed, source: int, failed: Ints, ports: int, served: int, hold: int) -> Finding:
    client = seen.columns.host(source)
    host, port = seen.name_of(int(seen.service[failed[0]]))
    kept = f", counting ports for {duration(hold * 1000)} after they close" if hold else ""
    return Finding(
        kind="snat_exhaustion",
        severity="HIGH",
        blame="network",
        protocol="TCP",
        title=f"New connections of {client} to {at(host, port)} fail while {ports} are held: a NAT is out of ports",
        detail=f"{count(len(failed), 'connection')} got no answer, nearly all while about {ports} others were held"
        f"{kept}; {count(served, 'connection')} begun at lower numbers succeeded.",
        who=Who(client, host, port),
        evidence=first_frames(seen.frames(failed, "syn", CLIENT)),
        cause=cause_of("snat_exhaustion"),
        remediation=remediation_of("snat_exhaustion", src=client, dst=host, port=port),
        confidence="medium",
        weight=len(failed),
        measured={"failed": len(failed), "completed": served, "ports_held": ports},
    )
