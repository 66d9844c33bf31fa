"""Segments of TCP, those in flight, and the parameters of an operating system's stack."""

from __future__ import annotations

from dataclasses import dataclass

from ghost.lab.wire.frames import FIN, SYN, TcpOptions


@dataclass(frozen=True)
class Stack:
    """TCP parameters of an operating system."""

    ttl: int
    mss: int
    syn_window: int
    window_scale: int
    timestamps: bool
    minimum_rto_seconds: float
    syn_retries: int


LINUX = Stack(64, 1460, 64240, 7, True, 0.2, 6)
WINDOWS = Stack(128, 1460, 64240, 8, False, 0.3, 4)


@dataclass(frozen=True)
class Segment:
    """A segment passed to the network layer."""

    sequence: int
    acknowledgement: int
    flags: int
    window: int
    options: TcpOptions
    payload: bytes = b""

    @property
    def length(self) -> int:
        """Return the sequence space used; SYN and FIN count one each."""
        return len(self.payload) + bool(self.flags & SYN) + bool(self.flags & FIN)

    @property
    def end(self) -> int:
        return self.sequence + self.length


@dataclass
class InFlight:
    """A segment sent and not yet acknowledged."""

    sequence: int
    flags: int
    payload: bytes
    sent_at: float
    transmissions: int = 1
    sacked: bool = False
    lost: bool = False

    @property
    def end(self) -> int:
        return self.sequence + len(self.payload) + bool(self.flags & (SYN | FIN))


def merged(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge adjacent blocks, the one with the latest arrival first (RFC 2018)."""
    ordered: list[tuple[int, int]] = []
    for left, right in sorted(blocks):
        if ordered and left <= ordered[-1][1]:
            ordered[-1] = (ordered[-1][0], max(right, ordered[-1][1]))
        else:
            ordered.append((left, right))
    rank = {block: index for index, block in enumerate(blocks)}
    return sorted(
        ordered, key=lambda merged: min(index for block, index in rank.items() if merged[0] <= block[0] < merged[1])
    )
