"""Arrows of a sequence diagram: one per packet, with notes on what is notable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ghost.pcap import layout as L
from ghost.pcap.findings import Finding
from ghost.pcap.findings.phrasing import at

MOST_ARROWS = 60
_OPENING = 8
"""Packets shown of a conversation's beginning."""
_BEFORE, _AFTER = 8, 8
"""Packets shown around each frame of evidence."""
_TCP, _UDP = 6, 17
_NAMES = {1: "ICMP", _TCP: "TCP", _UDP: "UDP", 58: "ICMPv6"}
_FLAG_NAMES = ((L.SYN, "SYN"), (L.FIN, "FIN"), (L.RST, "RST"), (L.PSH, "PSH"), (L.ACK, "ACK"))

Tone = Literal["plain", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Arrow:
    """One packet, or a gap where packets are missing (`frame` 0)."""

    frame: int
    ms: float
    """Since the first arrow."""
    delta_ms: float
    """Since the arrow before."""
    from_left: bool
    label: str
    """`SYN seq=0`, `PSH ACK seq=1 ack=1 len=512`."""
    note: str = ""
    """What makes it worth looking at."""
    tone: Tone = "plain"
    arrives: bool = True
    """False where it was lost behind the capture point, never reached it, or got no answer."""
    evidence: bool = False
    again: int = 0
    """The frame in which it was sent again."""
    skipped: int = 0
    """Packets of the conversation before this one that are not shown."""
    after_unread: bool = False
    """Before it lies a part of the capture that was not looked at, with packets of the conversation or without."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """A conversation between two ends, in the order of the capture."""

    left: str
    right: str
    protocol: str
    about: str
    """Id and title of the finding it illustrates."""
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True, slots=True)
class Packet:
    frame: int
    time: int
    protocol: int
    source: tuple[str, int]
    destination: tuple[str, int]
    control: int
    seq: int
    ack: int
    length: int
    window: int

    @property
    def ends(self) -> frozenset[tuple[str, int]]:
        return frozenset((self.source, self.destination))

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset((self.source[0], self.destination[0]))

    @property
    def span(self) -> int:
        """Sequence numbers that the packet occupies."""
        return self.length + (1 if self.control & (L.SYN | L.FIN) else 0)


def drawn(packets: Sequence[Packet], unread: frozenset[int], anchor: Packet, finding: Finding) -> Ladder | None:
    if not packets:
        return None
    left = _left_end(packets)
    others = packets[0].ends - {left}
    right = min(others, key=lambda end: end[0] == left[0], default=left)  # the other host, on whatever port
    ported = anchor.protocol in (_TCP, _UDP) and all(packet.ends == packets[0].ends for packet in packets)
    return Ladder(
        left=at(*left) if ported else left[0],
        right=at(*right) if ported else right[0],
        protocol=_NAMES.get(anchor.protocol, f"IP protocol {anchor.protocol}"),
        about=f"{finding.id}: {finding.title}",
        arrows=_worth_showing(_Arrows(packets, left[0], frozenset(finding.evidence), unread).all()),
    )


def _worth_showing(arrows: Sequence[Arrow]) -> tuple[Arrow, ...]:
    """Return which packets to draw: the beginning, the evidence and its context, and the first transmissions of what
    was repeated."""
    places = [n for n, arrow in enumerate(arrows) if arrow.evidence]
    chosen = set(range(min(_OPENING, len(arrows))))
    for place in places:
        near = set(range(max(place - _BEFORE, 0), min(place + _AFTER + 1, len(arrows))))
        frame = arrows[place].frame
        near |= {n for n, arrow in enumerate(arrows[:place]) if arrow.again == frame}
        if len(chosen | near) > MOST_ARROWS:
            break
        chosen |= near
    shown: list[Arrow] = []
    before = -1
    for place in sorted(chosen):
        arrow, skipped = arrows[place], place - before - 1
        delta = arrow.ms - shown[-1].ms if shown else 0.0
        shown.append(replace(arrow, skipped=skipped, delta_ms=delta))
        before = place
    return tuple(shown)


def _left_end(packets: Sequence[Packet]) -> tuple[str, int]:
    """Return the client: the sender of a SYN, else the higher port, else the first sender."""
    for packet in packets:
        if packet.control & (L.SYN | L.ACK) == L.SYN:
            return packet.source
        if packet.control & L.SYN:
            return packet.destination
    first = packets[0]
    return first.source if first.source[1] >= first.destination[1] else first.destination


class _Arrows:
    """Turns packets into arrows with notes."""

    def __init__(self, packets: Sequence[Packet], left: str, evidence: frozenset[int], unread: frozenset[int]) -> None:
        self._packets, self._left, self._evidence, self._unread = packets, left, evidence, unread
        self._bases: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._seen: dict[tuple[tuple[str, int], int], int] = {}
        """Sender and first sequence number of what was sent to its place among the arrows."""
        self._acks: dict[tuple[str, int], tuple[int, int]] = {}
        self._arrows: list[Arrow] = []

    def all(self) -> list[Arrow]:
        for packet in self._packets:
            arrow = Arrow(
                frame=packet.frame,
                ms=(packet.time - self._packets[0].time) / 1e6,
                delta_ms=0.0,
                from_left=packet.source[0] == self._left,
                label=_NAMES.get(packet.protocol, f"IP {packet.protocol}") + f" len={packet.length}",
                evidence=packet.frame in self._evidence,
                after_unread=packet.frame in self._unread,
            )
            if arrow.after_unread:
                self._ends.clear()
                self._acks.clear()
            if packet.protocol == _TCP:
                self._tcp(packet, arrow)
            else:
                self._arrows.append(arrow)
        self._mark_unanswered()
        return self._arrows

    def _mark_unanswered(self) -> None:
        """Mark the last SYN to an end that sent nothing. Without a repeat or a finding it may be too young to tell."""
        heard = {packet.source for packet in self._packets}
        for packet in self._packets:
            place = self._seen.get((packet.source, packet.seq))
            if packet.control & L.SYN and packet.destination not in heard and place is not None:
                arrow = self._arrows[place]
                if arrow.note or arrow.evidence:
                    note = f"{arrow.note}, no answer".removeprefix(", ")
                    self._arrows[place] = replace(arrow, note=note, tone="bad", arrives=False)
                del self._seen[packet.source, packet.seq]

    def _tcp(self, packet: Packet, arrow: Arrow) -> None:
        note, tone = self._judged(packet, arrow)
        seq = (
            packet.seq - self._bases.setdefault(packet.source, packet.seq - (not packet.control & L.SYN))
        ) & 0xFFFFFFFF
        words = [name for bit, name in _FLAG_NAMES if packet.control & bit]
        words.append(f"seq={seq}")
        if packet.control & L.ACK:
            base = self._bases.setdefault(packet.destination, packet.ack - 1)
            words.append(f"ack={(packet.ack - base) & 0xFFFFFFFF}")
        if packet.length:
            words.append(f"len={packet.length}")
        self._arrows.append(replace(arrow, label=" ".join(words), note=note, tone=tone))

    def _judged(self, packet: Packet, arrow: Arrow) -> tuple[str, Tone]:
        """Return notes on a TCP packet; may mark an earlier arrow as lost and add one for missing packets."""
        expected = self._ends.get(packet.source)
        if packet.span:
            return self._sent(packet, arrow, expected)
        if packet.control & L.RST:
            return "reset", "bad"
        if packet.control & L.ACK:
            before, times = self._acks.get(packet.source, (-1, 0))
            again = times + 1 if before == packet.ack and expected is not None else 0
            self._acks[packet.source] = packet.ack, again
            if packet.window == 0:
                return "zero window", "bad"
            if again and packet.seq == expected and self._awaiting(packet):
                return f"duplicate ACK #{again}", "warning"
        return "", "plain"

    def _awaiting(self, packet: Packet) -> bool:
        """Return whether the peer has sent more than this packet acknowledges."""
        sent = self._ends.get(packet.destination)
        return sent is not None and sent != packet.ack

    def _sent(self, packet: Packet, arrow: Arrow, expected: int | None) -> tuple[str, Tone]:
        key = packet.source, packet.seq
        note: str = ""
        tone: Tone = "plain"
        beyond = 0 if expected is None else (packet.seq - expected) & 0xFFFFFFFF
        if key in self._seen:
            earlier = self._seen[key]
            original = self._arrows[earlier]
            acked = self._acks.get(packet.destination, (packet.seq, 0))[0]
            if (acked - packet.seq - 1) & 0xFFFFFFFF < 0x80000000:
                note = f"needless retransmission (frame {original.frame} was acknowledged)"
                tone = "warning"
            else:
                note, tone = f"retransmission of frame {original.frame}", "bad"
                known = f"{original.note}, and again" if original.note else "not acknowledged, retransmitted"
                self._arrows[earlier] = replace(
                    original, note=f"{known} in frame {packet.frame}", tone="bad", arrives=False, again=packet.frame
                )
        elif 0 < beyond < 0x80000000 and not packet.control & L.SYN:
            missing = f"{beyond:,} bytes missing here"
            self._arrows.append(
                replace(arrow, frame=0, label=missing, note="not captured", tone="bad", arrives=False, evidence=False)
            )
        elif beyond >= 0x80000000:
            note, tone = "late or retransmitted: fills a gap", "bad"
        self._seen[key] = len(self._arrows)
        end = (packet.seq + packet.span) & 0xFFFFFFFF
        if expected is None or beyond < 0x80000000:
            self._ends[packet.source] = end
        if packet.control & L.ACK:
            self._acks[packet.source] = packet.ack, 0
        return note, tone
