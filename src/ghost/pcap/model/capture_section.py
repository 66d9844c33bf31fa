"""The capture as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ghost.pcap.model.shared_values import Occurrences


@dataclass(frozen=True, slots=True)
class Unread:
    """Packets of which the inside was not decoded, for one reason."""

    what: str
    """`ESP (encrypted)`, `link type 105 (802.11)`, `inside gre`, ..."""
    why: Literal["link_type", "protocol", "encrypted", "tunnel", "cut", "damaged", "control"]
    """`control`: what neighbours on a link and routers tell each other, which carries nobody's traffic."""
    packets: int
    first_frame: int = 0
    """0 where it is not known."""


@dataclass(frozen=True, slots=True)
class LoopedPackets:
    """Packets that passed the capture point eight times or more, with fewer hops left each time."""

    src: str
    dst: str
    """Of the first of them."""
    packets: Occurrences


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    file: str
    """The file's name without its directory."""
    sha256: str
    """Of the file as it lies on disk (compressed, if it is)."""
    file_bytes: int
    format: Literal["pcap", "pcapng", "empty"]
    compressed: bool
    link_types: tuple[str, ...]
    """For example `ETHERNET`, `LINUX_SLL2`, `RAW`; `LINKTYPE_n` where it is not decoded."""
    interfaces: int
    total_packets: int
    wire_bytes: int
    captured_bytes: int
    first_ns: int | None
    last_ns: int | None
    """The latest timestamp; captures need not be in order of time."""
    protocols_present: Mapping[str, int]
    """Protocol to number of packets, e.g. `{"ipv4": 90, "tcp": 80, "dns": 4}`; most frequent first."""
    snap_length: int
    """The largest announced by an interface; 0 where unknown or unlimited."""
    cut_packets: int
    """Packets that the snap length cut."""
    dropped_by_capturer: int | None
    """What pcapng interface statistics report; None where the file does not say."""
    truncated_record: bool
    """The file ends inside a record; everything before it was analysed."""
    undecoded_packets: int
    """Packets whose link type or headers could not be decoded."""
    fragments: int
    """IP fragments other than the first; they carry no port and are counted, not reassembled."""
    backward_timestamps: int
    """Packets stamped earlier than the one before them."""
    duplicate_packets: Occurrences = field(default_factory=Occurrences)
    """The same IP packet (addresses, IP id, sequence, TCP timestamp) seen again just after: captured or sent twice."""
    looped: LoopedPackets | None = None
    unread: tuple[Unread, ...] = ()
    """What was not decoded, most packets first."""
    notes: tuple[str, ...] = ()
    """What a reader of the report must know about the file, one sentence each."""

    @property
    def duration_seconds(self) -> float:
        return 0.0 if self.first_ns is None or self.last_ns is None else (self.last_ns - self.first_ns) / 1e9

    @property
    def unread_packets(self) -> int:
        """Packets that may carry anything and were not decoded."""
        return sum(each.packets for each in self.unread if each.why != "control")

    @property
    def packets_per_second(self) -> float:
        return self.total_packets / self.duration_seconds if self.duration_seconds > 0 else 0.0
