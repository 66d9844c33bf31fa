"""Wireshark's flags of one packet, by what came before it.

They follow the definitions in the Wireshark User's Guide, section "TCP Analysis"; the order in which they are tried
and the cases it leaves open are those of TShark 4.0.
"""

from __future__ import annotations

from ghost.pcap.array_types import Ints
from ghost.pcap.layout import (
    ACK,
    ACKED_AHEAD,
    ACKNOWLEDGED,
    CONTROL,
    D_ACK,
    D_ACK_TIME,
    D_DUPLICATES,
    D_LAST_FLAGS,
    D_NEXT,
    D_NEXT_TIME,
    D_SCALE,
    D_SEEN_END,
    D_SYN_WINDOW,
    D_WINDOW,
    E_ACKED_UNSEEN,
    E_DUPLICATE_ACK,
    E_FAST,
    E_KEEP_ALIVE,
    E_KEEP_ALIVE_ACK,
    E_LOST_SEGMENT,
    E_OUT_OF_ORDER,
    E_RETRANSMISSION,
    E_RTO,
    E_SPURIOUS,
    E_WINDOW_FULL,
    E_WINDOW_UPDATE,
    E_ZERO_WINDOW,
    E_ZERO_WINDOW_PROBE,
    E_ZERO_WINDOW_PROBE_ACK,
    FIN,
    HALF,
    LENGTH,
    RST,
    S_INITIAL_RTT,
    SEQ,
    SEQUENCE,
    SIDE,
    STREAM,
    SYN,
    TIME,
    WINDOW,
)

_FAST_NS = 20_000_000
ORDER_NS = 3_000_000
"""How late what was overtaken comes, where no handshake told the round trip."""


def after(one: int, other: int) -> bool:
    """Whether sequence number `one` lies behind `other`, if that is known at all."""
    return other >= 0 and one != other and (one - other) & SEQ < HALF


def flag(p: int, stream: int, sender: int, rows: Ints, streams: Ints, sides: Ints) -> int:
    """Wireshark's flags of one packet, as bits; changes nothing."""
    f = (stream * 2 + sender) * SIDE
    r = (stream * 2 + 1 - sender) * SIDE
    control = rows[p + CONTROL]
    seq = rows[p + SEQUENCE]
    ack = rows[p + ACKNOWLEDGED]
    window = rows[p + WINDOW]
    length = rows[p + LENGTH]
    now = rows[p + TIME]
    following = sides[f + D_NEXT]
    plain = control & (SYN | FIN | RST) == 0
    flags = 0
    if length == 1 and seq == following and sides[r + D_WINDOW] == 0:
        flags = 1 << E_ZERO_WINDOW_PROBE
    else:
        if window == 0 and plain:
            flags |= 1 << E_ZERO_WINDOW
        if following >= 0 and seq != following and (seq - following) & SEQ < HALF and not control & RST:
            flags |= 1 << E_LOST_SEGMENT
        if length <= 1 and plain and following >= 0 and seq == (following - 1) & SEQ:
            flags |= 1 << E_KEEP_ALIVE
        repeats = length == 0 and plain and seq == following and ack == sides[f + D_ACK]
        if repeats and window and window != sides[f + D_WINDOW]:
            flags |= 1 << E_WINDOW_UPDATE
        if length > 0 and plain and sides[r + D_SCALE] != -1 and sides[r + D_ACK] >= 0:
            scale = 0 if sides[r + D_SYN_WINDOW] else max(sides[r + D_SCALE], 0)
            edge = sides[r + D_ACK] + (sides[r + D_WINDOW] << scale)
            if (seq + length) & SEQ == edge & SEQ:
                flags |= 1 << E_WINDOW_FULL
        if repeats and window == sides[f + D_WINDOW]:
            if window and sides[r + D_LAST_FLAGS] & (1 << E_KEEP_ALIVE):
                flags |= 1 << E_KEEP_ALIVE_ACK
            elif window == 0 and sides[r + D_LAST_FLAGS] & (1 << E_ZERO_WINDOW_PROBE):
                flags |= 1 << E_ZERO_WINDOW_PROBE_ACK
            elif window:
                flags |= 1 << E_DUPLICATE_ACK
    duplicates = sides[r + D_DUPLICATES]
    if control & ACK:
        seen = sides[r + D_SEEN_END]
        if after(ack, seen):
            if duplicates == 0 or seen != sides[r + D_NEXT]:
                flags |= 1 << E_ACKED_UNSEEN
            if seen == sides[r + D_NEXT]:
                duplicates = ACKED_AHEAD
    if (length > 0 or control & (SYN | FIN)) and not flags & (1 << E_KEEP_ALIVE):
        end = (seq + length) & SEQ
        behind = following >= 0 and (seq - following) & SEQ >= HALF
        if length > 1 and seq == (following - 1) & SEQ:
            # The byte of a probe, sent once more with what follows it.
            behind = False
        full_end = (end + (1 if control & (SYN | FIN) else 0)) & SEQ
        acked = sides[r + D_ACK]
        threshold = streams[stream * STREAM + S_INITIAL_RTT]
        if threshold < 0:
            threshold = ORDER_NS
        if length > 0 and acked >= 0 and (acked - end) & SEQ < HALF:
            flags |= 1 << E_SPURIOUS | 1 << E_RETRANSMISSION
        elif (
            behind
            and (duplicates >= 2 or duplicates == ACKED_AHEAD)
            and acked == seq
            and now - sides[r + D_ACK_TIME] < _FAST_NS
        ):
            flags |= 1 << E_FAST | 1 << E_RETRANSMISSION
        elif behind and now - sides[f + D_NEXT_TIME] < threshold and full_end != following:
            flags |= 1 << E_OUT_OF_ORDER
        elif behind:
            flags |= 1 << E_RTO | 1 << E_RETRANSMISSION
    return flags


KERNELS = (
    after,
    flag,
)
