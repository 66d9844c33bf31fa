"""Connections on which one end sends and sends, and the other has fallen silent: nothing gets through any more."""

from __future__ import annotations

import numpy as np

from ghost.pcap.findings.columns import CLIENT, SERVER, Ints, Mask
from ghost.pcap.findings.finding import Finding, Who
from ghost.pcap.findings.observed import Observed, Path, sent_by
from ghost.pcap.findings.policy import cause_of, remediation_of, threshold
from ghost.pcap.findings.words import at, count, duration, first_frames


def unheard(seen: Observed) -> Mask:
    """Which side of each connection repeats by its timer what is never acknowledged, into silence.

    The other side says nothing meanwhile, or still repeats its SYN-ACK as if it had never been answered.
    """
    c = seen.columns
    packets, fins, last_ns = (c.sides(name) for name in ("packets", "fin", "last_ns"))
    openings = np.stack([c.syn_retransmissions, c.syn_ack_retransmissions], axis=1)
    repeats = c.sides("rto_retransmissions") - openings
    silence_ms = (last_ns - last_ns[:, ::-1]) / 1e6
    opening_still = np.zeros_like(packets, np.bool_)
    opening_still[:, CLIENT] = (packets[:, SERVER] == c.sides("syn_ack")[:, SERVER]) & (c.syn_ack_retransmissions > 0)
    result: Mask = (
        (repeats >= threshold("rto_loss.min_repeats_in_vain"))
        & (c.unacked_bytes > (fins > 0))
        & ((silence_ms >= threshold("rto_loss.silence_ms")) | opening_still)
        & (packets > 0).all(axis=1, keepdims=True)
        & (c.sides("rst")[:, ::-1] == 0)
    )
    result[:, CLIENT] |= _closed_behind_an_outage(seen)
    return result


def _closed_behind_an_outage(seen: Observed) -> Mask:
    """A server was silent while the client repeated, and is heard again: it closes, in good order but without an
    acknowledgement of what was repeated, and knows nothing of the connection afterwards. What it says in good order
    shows that its host went on all the time; its program ended meanwhile."""
    c = seen.columns
    rto, fin, rst = (c.sides(name) for name in ("rto_retransmissions", "fin", "rst"))
    vain = (c.lost()[:, CLIENT] == rto[:, CLIENT]) & (c.sides("duplicate_acks")[:, SERVER] == 0)
    silent = np.minimum(np.nan_to_num(c.request_ms), c.sides("longest_silence_ms")[:, SERVER])
    result: Mask = (
        vain
        & (rto[:, CLIENT] - c.syn_retransmissions >= threshold("rto_loss.min_repeats_in_vain"))
        & (silent >= threshold("rto_loss.silence_ms"))
        & (fin[:, SERVER] > 0)
        & (rst[:, SERVER] > 0)
        & (rst[:, CLIENT] == 0)
    )
    return result


def not_heard(seen: Observed, path: Path, rows: Ints) -> Finding:
    """`who.src` repeats in vain what it sends to `who.dst`."""
    c = seen.columns
    source, destination = path
    sides = (c.hosts[rows, SERVER] == seen.number_of[source]).astype(np.int64)
    repeats = c.sides("rto_retransmissions")[rows, sides]
    heard_ns = c.sides("last_ns")[rows, 1 - sides]
    back = c.sides("fin")[rows, 1 - sides] > 0  # heard again, but of nothing that was sent meanwhile
    within_ms = np.where(back, c.sides("longest_silence_ms")[rows, 1 - sides], 0)
    silence_ms = np.maximum((c.last_ns[rows] - heard_ns) / 1e6, within_ms)
    never = bool((c.sides("largest_acked_segment")[rows, sides] == 0).all())
    by_server = bool((sides == SERVER).all())
    examples = seen.worst(rows, repeats)
    port = examples[0].server.endpoint.port
    # A client that goes away without a word (asleep, out of range) is no fault of a service that worked for it.
    severity = (
        "HIGH" if never or not (by_server or len(rows) == 1) else "LOW" if by_server and len(rows) == 1 else "MEDIUM"
    )
    others, their_sides = seen.of_path(path)
    since_ms = (c.sides("last_ns")[others, 1 - their_sides] - heard_ns.max()) / 1e6
    alive = int(((since_ms >= threshold("rto_loss.silence_ms")) & ~np.isin(others, rows)).sum())
    still = f" {count(alive, 'other connection')} between the two went on." if alive else ""
    longest = float(silence_ms.max())
    nothing = (
        f"nothing came from {destination} for up to {duration(longest)}"
        if longest >= threshold("rto_loss.silence_ms")
        else f"{destination} repeats its SYN-ACK as if nobody had answered it"
    )
    where = at(destination, port) if not by_server else destination
    return Finding(
        kind="rto_loss",
        severity=severity,
        blame="network",
        protocol="TCP",
        title=f"{where} acknowledges nothing {'' if never else 'any more '}of what {source} sends",
        detail=f"{count(len(rows), 'connection')}: data was repeated {count(int(repeats.sum()), 'time')} by timeouts"
        f" and never acknowledged; {nothing}.{still}",
        who=Who(source, destination, port),
        evidence=first_frames(side.rto_retransmissions.frames for side in sent_by(source, examples)),
        cause=cause_of("rto_loss_unheard"),
        remediation=remediation_of("rto_loss_unheard", src=source, dst=destination, port=port),
        confidence="high" if len(rows) > 1 else "medium",
        weight=int(repeats.sum()),
        measured={"connections": len(rows), "rto": int(repeats.sum()), "silence_ms": round(longest)},
    )
