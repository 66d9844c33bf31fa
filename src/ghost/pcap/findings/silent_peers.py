"""Streams on which one end keeps retransmitting and the other is silent."""

from __future__ import annotations

import numpy as np

from ghost.pcap.findings.observations import Observed
from ghost.pcap.findings.rule_settings import threshold
from ghost.pcap.findings.stream_columns import CLIENT, SERVER, Mask


def unacknowledged_sides(seen: Observed) -> Mask:
    """Return bool[streams, 2]: the side retransmits by timeout and is never acknowledged while the other side is
    silent, or still repeats its SYN-ACK."""
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
    result[:, CLIENT] |= _closed_after_outage(seen)
    return result


def _closed_after_outage(seen: Observed) -> Mask:
    """Return the mask of streams whose server was silent while the client retransmitted, then closed with a FIN without
    acknowledging, and had no state afterwards: the host was up, its program ended meanwhile."""
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
