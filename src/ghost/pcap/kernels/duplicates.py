"""Duplicate packets: the same packet was captured just before."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import PacketRows, RecentPackets

_RECENT = 4096
_DUPLICATE_NS = 5_000_000
_DUPLICATE_STAMPED_NS = 200_000_000
"""With the same time inside TCP, or the same IP id on the other side of a router, it is the same packet, however far
apart two capture points are."""
_DUPLICATE_WITHOUT_ID_NS = 100_000
"""IPv6 has no IP id, and some stacks send 0. Data sent again needs a round trip at least; a copy follows at once."""
_UNNUMBERED, _REPEATED, _USUAL_NS = range(2 * _RECENT, 2 * _RECENT + 3)
"""Packets without IP id that would not come again for nothing, those that did, and after what time these usually do,
behind the rows of `recent`."""
_FEWEST_UNNUMBERED = 20
LOOPED = _USUAL_NS + 1
"""Packets that came by again and again, each time with fewer hops left; then sender, receiver and first frames."""
_PASSES = 7
"""Captures of several hops show a packet once or twice at each; the eighth time is a loop."""

RECENT_ROOM = LOOPED + 3 + L.SAMPLE_FRAMES
"""What `recent` takes."""


def mostly_duplicates(recent: RecentPackets) -> bool:
    """Return whether more than a third of the packets without IP id were duplicated at once, more than any loss
    repeats."""
    return recent[_UNNUMBERED] >= _FEWEST_UNNUMBERED and 3 * recent[_REPEATED] > recent[_UNNUMBERED]


def note_loop(rows: PacketRows, p: int, recent: RecentPackets) -> None:
    """Count a looping packet; the ends of the first and some frames are kept."""
    if recent[LOOPED] == 0:
        recent[LOOPED + 1] = rows[p + L.SOURCE]
        recent[LOOPED + 2] = rows[p + L.DESTINATION]
    if recent[LOOPED] < L.SAMPLE_FRAMES:
        recent[LOOPED + 3 + recent[LOOPED]] = rows[p + L.FRAME]
    recent[LOOPED] = recent[LOOPED] + 1


def note_duplicate(rows: PacketRows, p: int, recent: RecentPackets) -> None:
    """Mark a packet whose IP id, addresses, ports, sequence and TCP timestamp were seen just before.

    If it may be a retransmission as well, the mark is the time since then, in ns, and the TCP kernel decides.
    """
    passes = 0
    signature = (rows[p + L.IP_ID] * 0x9E3779B1) & 0x3FFFFFFF
    signature = (signature ^ (rows[p + L.SOURCE] * 0x85EBCA6B)) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + L.DESTINATION]) & 0x3FFFFFFF
    signature = (signature * 31 + ((rows[p + L.SOURCE_PORT] << 16) | rows[p + L.DESTINATION_PORT])) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + L.SEQUENCE]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + L.ACKNOWLEDGED]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + L.TIMESTAMP]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + L.LENGTH] * 256 + rows[p + L.CONTROL] + rows[p + L.PROTOCOL]) & 0x3FFFFFFF
    slot = ((signature ^ (signature >> 12)) & (_RECENT - 1)) * 2
    now = rows[p + L.TIME]
    numbered = rows[p + L.IP_ID] != 0
    speaks = rows[p + L.LENGTH] > 0 or rows[p + L.CONTROL] & 3 > 0
    if speaks and not numbered:
        recent[_UNNUMBERED] = recent[_UNNUMBERED] + 1
    if recent[slot] & 0xFFFFFFFF == signature + 1:
        ago = now - recent[slot + 1]
        routed = (recent[slot] >> 32) & 0xFF != rows[p + L.TTL]
        longest = _DUPLICATE_STAMPED_NS if rows[p + L.TIMESTAMP] or (numbered and routed) else _DUPLICATE_NS
        if 0 <= ago <= longest:
            usual = recent[_USUAL_NS]
            alike = usual == 0 or ago <= 2 * usual + _DUPLICATE_WITHOUT_ID_NS
            # Of ACKs that say the same several times, every second one is a copy.
            second = alike and (recent[slot] >> 40) & 1 == 0 and mostly_duplicates(recent)
            at_once = ago <= _DUPLICATE_WITHOUT_ID_NS if speaks else second
            if speaks and not numbered:
                recent[_REPEATED] = recent[_REPEATED] + 1
                # Their median, in small steps, which the few that were sent again do not move.
                recent[_USUAL_NS] = ago if usual == 0 else usual + usual // 8 + 1 if ago > usual else usual - usual // 8
            # Behind a router it has fewer hops left; what has more again was sent again.
            behind = rows[p + L.TTL] < (recent[slot] >> 32) & 0xFF
            if behind:
                passes = (recent[slot] >> 41) + 1
                if passes == _PASSES:
                    note_loop(rows, p, recent)
            if numbered or behind or at_once:
                rows[p + L.DUPLICATE] = 1
            else:
                rows[p + L.DUPLICATE] = ago if alike else -ago
        elif longest < ago <= _DUPLICATE_STAMPED_NS:
            rows[p + L.DUPLICATE] = ago if numbered else -ago
    duplicate = 1 if rows[p + L.DUPLICATE] == 1 else 0
    recent[slot] = (signature + 1) | (rows[p + L.TTL] << 32) | (duplicate << 40) | (passes << 41)
    recent[slot + 1] = now


KERNELS = (
    mostly_duplicates,
    note_loop,
    note_duplicate,
)
