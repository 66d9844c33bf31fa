"""Wireshark's TCP analysis flags of one packet.

They follow the Wireshark User's Guide, section "TCP Analysis"; their order and the cases it leaves open are those of
TShark 4.0.
"""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import PacketRows, SideTable, StreamTable

_FAST_NS = 20_000_000
ORDER_NS = 3_000_000
"""How late what was overtaken comes, where no handshake told the round trip."""


def after(one: int, other: int) -> bool:
    """Return whether sequence number `one` is after `other`, if that is known."""
    return other >= 0 and one != other and (one - other) & L.SEQ < L.HALF


def flag(p: int, stream: int, sender: int, rows: PacketRows, streams: StreamTable, sides: SideTable) -> int:
    """Return Wireshark's flags of one packet, as bits; changes no state."""
    f = (stream * 2 + sender) * L.SIDE
    r = (stream * 2 + 1 - sender) * L.SIDE
    control = rows[p + L.CONTROL]
    seq = rows[p + L.SEQUENCE]
    ack = rows[p + L.ACKNOWLEDGED]
    window = rows[p + L.WINDOW]
    length = rows[p + L.LENGTH]
    now = rows[p + L.TIME]
    following = sides[f + L.D_NEXT]
    plain = control & (L.SYN | L.FIN | L.RST) == 0
    flags = 0
    if length == 1 and seq == following and sides[r + L.D_WINDOW] == 0:
        flags = 1 << L.E_ZERO_WINDOW_PROBE
    else:
        if window == 0 and plain:
            flags |= 1 << L.E_ZERO_WINDOW
        if following >= 0 and seq != following and (seq - following) & L.SEQ < L.HALF and not control & L.RST:
            flags |= 1 << L.E_LOST_SEGMENT
        if length <= 1 and plain and following >= 0 and seq == (following - 1) & L.SEQ:
            flags |= 1 << L.E_KEEP_ALIVE
        repeats = length == 0 and plain and seq == following and ack == sides[f + L.D_ACK]
        if repeats and window and window != sides[f + L.D_WINDOW]:
            flags |= 1 << L.E_WINDOW_UPDATE
        if length > 0 and plain and sides[r + L.D_SCALE] != -1 and sides[r + L.D_ACK] >= 0:
            scale = 0 if sides[r + L.D_SYN_WINDOW] else max(sides[r + L.D_SCALE], 0)
            edge = sides[r + L.D_ACK] + (sides[r + L.D_WINDOW] << scale)
            if (seq + length) & L.SEQ == edge & L.SEQ:
                flags |= 1 << L.E_WINDOW_FULL
        if repeats and window == sides[f + L.D_WINDOW]:
            if window and sides[r + L.D_LAST_FLAGS] & (1 << L.E_KEEP_ALIVE):
                flags |= 1 << L.E_KEEP_ALIVE_ACK
            elif window == 0 and sides[r + L.D_LAST_FLAGS] & (1 << L.E_ZERO_WINDOW_PROBE):
                flags |= 1 << L.E_ZERO_WINDOW_PROBE_ACK
            elif window:
                flags |= 1 << L.E_DUPLICATE_ACK
    duplicates = sides[r + L.D_DUPLICATES]
    if control & L.ACK:
        seen = sides[r + L.D_SEEN_END]
        if after(ack, seen):
            if duplicates == 0 or seen != sides[r + L.D_NEXT]:
                flags |= 1 << L.E_ACKED_UNSEEN
            if seen == sides[r + L.D_NEXT]:
                duplicates = L.ACKED_AHEAD
    if (length > 0 or control & (L.SYN | L.FIN)) and not flags & (1 << L.E_KEEP_ALIVE):
        end = (seq + length) & L.SEQ
        behind = following >= 0 and (seq - following) & L.SEQ >= L.HALF
        if length > 1 and seq == (following - 1) & L.SEQ:
            # The byte of a probe, sent once more with what follows it.
            behind = False
        full_end = (end + (1 if control & (L.SYN | L.FIN) else 0)) & L.SEQ
        acked = sides[r + L.D_ACK]
        threshold = streams[stream * L.STREAM + L.S_INITIAL_RTT]
        if threshold < 0:
            threshold = ORDER_NS
        if length > 0 and acked >= 0 and (acked - end) & L.SEQ < L.HALF:
            flags |= 1 << L.E_SPURIOUS | 1 << L.E_RETRANSMISSION
        elif (
            behind
            and (duplicates >= 2 or duplicates == L.ACKED_AHEAD)
            and acked == seq
            and now - sides[r + L.D_ACK_TIME] < _FAST_NS
        ):
            flags |= 1 << L.E_FAST | 1 << L.E_RETRANSMISSION
        elif behind and now - sides[f + L.D_NEXT_TIME] < threshold and full_end != following:
            flags |= 1 << L.E_OUT_OF_ORDER
        elif behind:
            flags |= 1 << L.E_RTO | 1 << L.E_RETRANSMISSION
    return flags


KERNELS = (
    after,
    flag,
)
