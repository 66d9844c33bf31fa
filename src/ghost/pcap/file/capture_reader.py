"""From a file to rows: pcap and pcapng records, a buffer at a time. Reads only; decodes nothing inside a packet.

Formats: the pcap and pcapng drafts of the IETF opsawg (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). The file is
read into buffers that are used again, with the unfinished record carried to the start of the next.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ghost.errors import CaptureError
from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Kernel, PacketArray, Vector
from ghost.pcap.file.byte_source import Gunzip, Hashed, Plain, ReadAhead, Source, hashed
from ghost.pcap.file.capture_format import (
    GZIP_MAGIC,
    HEAD_BYTES,
    NG_MAGIC,
    PCAP_MAGICS,
    no_capture,
    open_capture,
)
from ghost.pcap.file.pcapng_blocks import dropped, interface
from ghost.pcap.kernels.capture_records import (
    BATCH_FULL,
    DAMAGED,
    LARGEST_RECORD,
    LATEST_SECOND,
    OTHER_BLOCK,
    walk_pcap,
    walk_pcapng,
)

BUFFER_BYTES = 4 << 20
BATCH_PACKETS = 16384
_ENTRY_FRAMES = 4096
"""Places to begin again lie at least so far apart: a hostile file makes batches of one packet."""

LINK_NAMES = {
    0: "NULL", 1: "ETHERNET", 9: "PPP", 12: "RAW", 14: "RAW", 101: "RAW", 108: "LOOP", 113: "LINUX_SLL",
    228: "IPV4", 229: "IPV6", 276: "LINUX_SLL2",
}  # fmt: skip


@dataclass(slots=True)
class FileFacts:
    """Facts the file states about itself; complete after the last batch."""

    format: Literal["pcap", "pcapng", "empty"] = "empty"
    compressed: bool = False
    interfaces: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Link type, timestamp units per second, offset in seconds, snap length. Of every section."""
    truncated: bool = False
    dropped: dict[int, int] = field(default_factory=dict)
    """Interface (counted over sections) to packets its statistics report as dropped."""
    notes: list[str] = field(default_factory=list)
    sha256: str = ""
    file_bytes: int = 0
    entries: list[tuple[int, int, int, bool]] = field(default_factory=list)
    """Where reading can begin again: frame, offset in the file, first interface and byte order of the section. None of
    a compressed file."""

    @property
    def snap_length(self) -> int:
        return max((snap for _, _, _, snap in self.interfaces), default=0)


@dataclass(slots=True)
class Batch:
    """Rows of packets whose bytes are in `buffer`; both are reused for the next batch."""

    buffer: NDArray[np.uint8]
    rows: PacketArray
    count: int

    def packets(self) -> Array:
        """A row a packet."""
        return self.rows[: self.count * L.PACKET].reshape(-1, L.PACKET)


class CaptureReader:
    """Reads one capture once. `batches()` yields rows; `facts` is complete when it ends."""

    def __init__(
        self,
        path: Path,
        vector: Vector,
        kernels: Kernel,
        *,
        buffer_bytes: int = BUFFER_BYTES,
        batch_packets: int = BATCH_PACKETS,
    ) -> None:
        self._path, self._vector, self._kernels = path, vector, kernels
        self._buffer = np.zeros(max(buffer_bytes, 64), np.uint8)
        self._rows = np.zeros(batch_packets * L.PACKET, np.int64)
        self._between_entries = min(_ENTRY_FRAMES, batch_packets)
        self._out = np.zeros(2, np.int64)
        self._start = self._stop = 0
        self._lent = False
        """The buffer belongs to the thread that reads ahead, as soon as it is asked for more."""
        self._ended = False
        self._frame = 1
        self._section_start = 0  # first interface of the current section
        self._big = False
        self.facts = FileFacts()
        self._links = np.zeros(4, np.int64)
        """Of the current section, a row an interface, as the kernel wants them."""
        self._known = 0
        self._file = open_capture(path)

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def batches(self) -> Iterator[Batch]:
        with self._opened() as file, hashed(file, os.fstat(file.fileno()).st_size) as source:
            self._stream: Source = source
            if self._fill(2) and bytes(self._buffer[:2]) == GZIP_MAGIC:
                yield from self._compressed(source)
            else:
                yield from self._any_format()
            self._exhaust(source)
            self.facts.sha256, self.facts.file_bytes = source.sha256(), source.total

    @contextmanager
    def _opened(self) -> Iterator[FileIO]:
        """Open the file; errors become CaptureError."""
        with self._file as file:
            try:
                yield file
            except OSError as error:
                raise CaptureError(
                    f"cannot read {self._path} ({error.strerror or error}): check the disk, or copy it"
                ) from error

    def batches_around(self, frame: int, facts: FileFacts) -> Iterator[Batch]:
        """Yield the batches from the one that holds `frame` on, of a file that was read before and gave `facts`."""
        entry = next((entry for entry in reversed(facts.entries) if entry[0] <= frame), None)
        if entry is None or facts.compressed:
            yield from self.batches()
            return
        self._frame, offset, self._section_start, self._big = entry
        self.facts.interfaces = list(facts.interfaces)
        with self._opened() as file:
            file.seek(offset)
            self._stream = Plain(file)
            if facts.format == "pcapng":
                yield from self._pcapng()
            else:
                link, units, *_ = facts.interfaces[0]
                yield from self._pcap_records(self._big, 1_000_000_000 // units, link)

    def _compressed(self, source: Hashed | ReadAhead) -> Iterator[Batch]:
        head = bytes(self._buffer[: self._stop])
        self._start = self._stop = 0
        self._ended = False
        self.facts.compressed = True
        self._stream = Gunzip(head, source)
        yield from self._any_format()

    def _exhaust(self, source: Hashed | ReadAhead) -> None:
        """Read the rest, so that the hash covers the whole file, also after damage."""
        rest = memoryview(bytearray(1 << 16))
        while source.readinto(rest):
            pass

    def _fill(self, wanted: int) -> bool:
        """Fill the buffer with `wanted` bytes from the current position, if the file has them."""
        if self._stop - self._start >= wanted:
            return True
        held = self._stop - self._start
        if self._lent or wanted > len(self._buffer):
            grown = np.zeros(max(wanted, len(self._buffer) if self._lent else 2 * len(self._buffer)), np.uint8)
            self._lent = False
            grown[:held] = self._buffer[self._start : self._stop]
            self._buffer = grown
        elif self._start:
            self._buffer[:held] = self._buffer[self._start : self._stop].copy()
        self._start, self._stop = 0, held
        view = self._buffer.data
        while self._stop < wanted and not self._ended:
            try:
                got = self._stream.readinto(view[self._stop :])
            except (EOFError, zlib.error) as error:
                if not self.facts.interfaces:
                    raise CaptureError(f"{self._path.name} is damaged gzip data ({error}): copy it again") from error
                self.facts.notes.append(f"The compressed file is damaged or cut short ({error}).")
                self.facts.truncated = True
                got = 0
            if not got:
                self._ended = True
                break
            self._stop += got
        return self._stop - self._start >= wanted

    def _fill_up(self) -> bool:
        """Read on after an unfinished record; return False at the end of the file."""
        held = self._stop - self._start
        if isinstance(self._stream, ReadAhead):
            following = self._stream.following(self._buffer[self._start : self._stop])
            if following is not None:
                self._buffer, self._start, self._stop = following
                self._lent = True
                return True
        self._fill(max(len(self._buffer), held + 1) if held < len(self._buffer) else 2 * len(self._buffer))
        return self._stop - self._start > held

    def _any_format(self) -> Iterator[Batch]:
        self._fill(4)
        magic = bytes(self._buffer[self._start : min(self._start + 4, self._stop)])
        if magic in PCAP_MAGICS:
            yield from self._pcap(*PCAP_MAGICS[magic])
        elif magic == NG_MAGIC:
            yield from self._pcapng()
        elif magic:
            self._fill(HEAD_BYTES)
            raise no_capture(self._path, bytes(self._buffer[self._start : self._stop][:HEAD_BYTES]))

    # ------------------------------------------------------------------------------------------------------- pcap

    def _pcap(self, big: bool, unit: int) -> Iterator[Batch]:
        self.facts.format = "pcap"
        if not self._fill(24):
            self._cut_short("The file ends inside its header.")
            return
        order = ">" if big else "<"
        _, _, _, _, snap, network = struct.unpack_from(f"{order}HHiIII", self._buffer.data, self._start + 4)
        # The upper bits of the network field tell the length of the frame check sequence.
        link = network & 0xFFFF
        self.facts.interfaces.append((link, 1_000_000_000 // unit, 0, snap if snap < 0x7FFFFFFF else 0))
        self._start += 24
        self._big = big
        yield from self._pcap_records(big, unit, link)

    def _pcap_records(self, big: bool, unit: int, link: int) -> Iterator[Batch]:
        while True:
            count = self._kernels(walk_pcap)(
                self._vector(self._buffer), self._start, self._stop, int(big), unit, _decoded_link(link),
                self._vector(self._rows), self._frame, self._vector(self._out),
            )  # fmt: skip
            yield from self._advance(count)
            if not self._continues():
                return

    # ----------------------------------------------------------------------------------------------------- pcapng

    def _pcapng(self) -> Iterator[Batch]:
        self.facts.format = "pcapng"
        self._known = 0
        while True:
            self._learn_interfaces()
            count = self._kernels(walk_pcapng)(
                self._vector(self._buffer), self._start, self._stop, int(self._big), self._vector(self._links),
                self._known,
                self._vector(self._rows), self._frame, self._vector(self._out),
            )  # fmt: skip
            yield from self._advance(count)
            if int(self._out[1]) == OTHER_BLOCK:
                simple = self._other_block()
                if simple is None:
                    return
                if simple:
                    yield from self._advance(1)
            elif not self._continues():
                return

    def _learn_interfaces(self) -> None:
        """Add new interfaces only; a file may have as many as packets."""
        interfaces = self.facts.interfaces
        while self._known < len(interfaces) - self._section_start:
            if (self._known + 1) * 4 > len(self._links):
                self._links = np.concatenate([self._links, np.zeros_like(self._links)])
            link, *clock = interfaces[self._section_start + self._known]
            self._links[self._known * 4 : self._known * 4 + 4] = (_decoded_link(link), *clock)
            self._known += 1

    def _other_block(self) -> bool | None:
        """Read a block other than an enhanced packet: return True for a packet in row 0, None at the end of the
        file."""
        start = self._start
        if bytes(self._buffer[start : start + 4]) == NG_MAGIC:
            mark = bytes(self._buffer[start + 8 : start + 12])
            if mark not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                self._damaged()
                return None
            self._big = mark == b"\x1a\x2b\x3c\x4d"
            self._section_start, self._known = len(self.facts.interfaces), 0
        order = ">" if self._big else "<"
        kind, size = struct.unpack_from(f"{order}II", self._buffer.data, start)
        if size < 12 or size > LARGEST_RECORD:
            self._damaged()
            return None
        if not self._fill(size):
            self._cut_short()
            return None
        start = self._start
        body = bytes(self._buffer[start + 8 : start + size - 4])
        packet = False
        if kind == 1 and len(body) >= 8:
            self.facts.interfaces.append(interface(body, order))
        elif kind == 5 and len(body) >= 12:
            self._statistics(body, order)
        elif kind in (2, 3):
            packet = self._old_packet(kind, body, start + 8, order)
        self._out[0] = start + ((size + 3) & ~3)
        if not packet:
            self._start = min(int(self._out[0]), self._stop)
        return packet

    def _old_packet(self, kind: int, body: bytes, offset: int, order: str) -> bool:
        """A simple packet block (3), or the obsolete packet block (2), to row 0."""
        head, interface, ticks = (4, 0, 0) if kind == 3 else (20, 0, 0)
        if len(body) < head:
            return False
        if kind == 3:
            (wire,) = struct.unpack_from(f"{order}I", body)
        else:
            interface, _, high, low, captured, wire = struct.unpack_from(f"{order}HHIIII", body)
            ticks = (high & 0x7FFFFFFF) << 32 | low
        if self._section_start + interface >= len(self.facts.interfaces):
            return False
        link, units, shift, snap = self.facts.interfaces[self._section_start + interface]
        if kind == 3:
            captured = min(wire, snap or wire)
        self._rows[: L.PACKET] = 0
        seconds, rest = divmod(ticks, units)
        seconds = min(max(min(seconds, LATEST_SECOND) + shift, 0), LATEST_SECOND)
        nanoseconds = min(rest // (units // 10**9) if units > 9 * 10**9 else rest * 10**9 // units, 999_999_999)
        for column, value in (
            (L.OFFSET, offset + head), (L.CAPTURED, min(captured, len(body) - head)), (L.WIRE, wire),
            (L.TIME, seconds * 1_000_000_000 + nanoseconds), (L.LINK, _decoded_link(link)), (L.FRAME, self._frame),
        ):  # fmt: skip
            self._rows[column] = value
        return True

    def _statistics(self, body: bytes, order: str) -> None:
        count = dropped(body, order)
        if count is not None:
            self.facts.dropped[self._section_start + struct.unpack_from(f"{order}I", body)[0]] = count

    # ----------------------------------------------------------------------------------------------------- shared

    def _advance(self, count: int) -> Iterator[Batch]:
        if count:
            if isinstance(self._stream, Plain | ReadAhead):
                entries, offset = self.facts.entries, self._stream.total - (self._stop - self._start)
                if not entries or self._frame - entries[-1][0] >= self._between_entries:
                    entries.append((self._frame, offset, self._section_start, self._big))
            yield Batch(self._buffer, self._rows, count)
            self._rows[: count * L.PACKET] = 0
            self._frame += count
        self._start = min(int(self._out[0]), self._stop)

    def _continues(self) -> bool:
        reason = int(self._out[1])
        if reason == DAMAGED:
            self._damaged()
            return False
        if reason == BATCH_FULL or self._fill_up():
            return True
        if self._stop > self._start:
            self._cut_short()
        return False

    def _cut_short(self, note: str = "The file ends inside a record; what came before it was analysed.") -> None:
        if not self.facts.truncated:
            self.facts.notes.append(note)
        self.facts.truncated = True

    def _damaged(self) -> None:
        self.facts.notes.append(
            f"The file is damaged after frame {self._frame - 1}: no valid record follows; the rest was not analysed."
        )
        self.facts.truncated = True


def _decoded_link(link: int) -> int:
    """Return the link type; raw IP has two historic numbers."""
    return 101 if link in (12, 14) else link
