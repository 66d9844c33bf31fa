"""From a file to rows: pcap and pcapng records, a buffer at a time. Reads only; decodes nothing inside a packet.

Formats: the pcap and pcapng drafts of the IETF opsawg (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). The file is
read with `readinto` into one buffer that is used again, with the unfinished record carried to its start.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ghost.errors import CaptureError
from ghost.pcap.layout import CAPTURED, FRAME, LINK, OFFSET, PACKET, TIME, WIRE
from ghost.pcap.vectors import Array, Ints, Kernel, Vector

LARGEST_RECORD = 16 << 20
"""A record that claims more is damage, not a packet."""
BUFFER_BYTES = 4 << 20
BATCH_PACKETS = 16384

_LATEST_SECOND = 9_000_000_000
"""Seconds beyond this do not fit 64 bits of nanoseconds; a damaged clock is held here."""

# Why a walk stopped.
NEEDS_MORE, BATCH_FULL, OTHER_BLOCK, DAMAGED = 0, 1, 2, 3

_MAGIC = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
_NG_MAGIC = b"\x0a\x0d\x0d\x0a"

LINK_NAMES = {
    0: "NULL", 1: "ETHERNET", 9: "PPP", 12: "RAW", 14: "RAW", 101: "RAW", 108: "LOOP", 113: "LINUX_SLL",
    228: "IPV4", 229: "IPV6", 276: "LINUX_SLL2",
}  # fmt: skip


def walk_pcap(
    buf: Ints, start: int, stop: int, big: int, unit: int, link: int, rows: Ints, frame: int, out: Ints
) -> int:
    """Rows of the whole records in `buf[start:stop]`; `out` gets where it stopped and why. Returns the row count."""
    room = len(rows) // PACKET
    count = 0
    reason = NEEDS_MORE
    while stop - start >= 16:
        if count >= room:
            reason = BATCH_FULL
            break
        if big:
            seconds = (buf[start] << 24) | (buf[start + 1] << 16) | (buf[start + 2] << 8) | buf[start + 3]
            part = (buf[start + 4] << 24) | (buf[start + 5] << 16) | (buf[start + 6] << 8) | buf[start + 7]
            captured = (buf[start + 8] << 24) | (buf[start + 9] << 16) | (buf[start + 10] << 8) | buf[start + 11]
            wire = (buf[start + 12] << 24) | (buf[start + 13] << 16) | (buf[start + 14] << 8) | buf[start + 15]
        else:
            seconds = (buf[start + 3] << 24) | (buf[start + 2] << 16) | (buf[start + 1] << 8) | buf[start]
            part = (buf[start + 7] << 24) | (buf[start + 6] << 16) | (buf[start + 5] << 8) | buf[start + 4]
            captured = (buf[start + 11] << 24) | (buf[start + 10] << 16) | (buf[start + 9] << 8) | buf[start + 8]
            wire = (buf[start + 15] << 24) | (buf[start + 14] << 16) | (buf[start + 13] << 8) | buf[start + 12]
        if captured > LARGEST_RECORD:
            reason = DAMAGED
            break
        if stop - start - 16 < captured:
            break
        p = count * PACKET
        rows[p + OFFSET] = start + 16
        rows[p + CAPTURED] = captured
        rows[p + WIRE] = wire
        rows[p + TIME] = seconds * 1_000_000_000 + part * unit
        rows[p + LINK] = link
        rows[p + FRAME] = frame + count
        count += 1
        start += 16 + captured
    out[0] = start
    out[1] = reason
    return count


def walk_pcapng(
    buf: Ints, start: int, stop: int, big: int, interfaces: Ints, known: int, rows: Ints, frame: int, out: Ints
) -> int:
    """The same for enhanced packet blocks; stops at any other block. `interfaces` holds link, units, offset, snap."""
    room = len(rows) // PACKET
    count = 0
    reason = NEEDS_MORE
    while stop - start >= 12:
        if big:
            kind = (buf[start] << 24) | (buf[start + 1] << 16) | (buf[start + 2] << 8) | buf[start + 3]
            size = (buf[start + 4] << 24) | (buf[start + 5] << 16) | (buf[start + 6] << 8) | buf[start + 7]
        else:
            kind = (buf[start + 3] << 24) | (buf[start + 2] << 16) | (buf[start + 1] << 8) | buf[start]
            size = (buf[start + 7] << 24) | (buf[start + 6] << 16) | (buf[start + 5] << 8) | buf[start + 4]
        if kind != 6:
            reason = OTHER_BLOCK
            break
        if size < 32 or size > LARGEST_RECORD:
            reason = DAMAGED
            break
        if stop - start < size:
            break
        if count >= room:
            reason = BATCH_FULL
            break
        o = start + 8
        if big:
            interface = (buf[o] << 24) | (buf[o + 1] << 16) | (buf[o + 2] << 8) | buf[o + 3]
            high = (buf[o + 4] << 24) | (buf[o + 5] << 16) | (buf[o + 6] << 8) | buf[o + 7]
            low = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
            captured = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
            wire = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
        else:
            interface = (buf[o + 3] << 24) | (buf[o + 2] << 16) | (buf[o + 1] << 8) | buf[o]
            high = (buf[o + 7] << 24) | (buf[o + 6] << 16) | (buf[o + 5] << 8) | buf[o + 4]
            low = (buf[o + 11] << 24) | (buf[o + 10] << 16) | (buf[o + 9] << 8) | buf[o + 8]
            captured = (buf[o + 15] << 24) | (buf[o + 14] << 16) | (buf[o + 13] << 8) | buf[o + 12]
            wire = (buf[o + 19] << 24) | (buf[o + 18] << 16) | (buf[o + 17] << 8) | buf[o + 16]
        if captured > size - 32 or interface >= known:
            reason = DAMAGED
            break
        ticks = ((high & 0x7FFFFFFF) << 32) | low
        units = interfaces[interface * 4 + 1]
        seconds = ticks // units
        rest = ticks - seconds * units
        # The product of a finer clock would not fit 64 bits.
        rest = rest // (units // 1_000_000_000) if units > 9_000_000_000 else rest * 1_000_000_000 // units
        seconds = min(max(min(seconds, _LATEST_SECOND) + interfaces[interface * 4 + 2], 0), _LATEST_SECOND)
        p = count * PACKET
        rows[p + OFFSET] = o + 20
        rows[p + CAPTURED] = captured
        rows[p + WIRE] = wire
        rows[p + TIME] = seconds * 1_000_000_000 + min(rest, 999_999_999)
        rows[p + LINK] = interfaces[interface * 4]
        rows[p + FRAME] = frame + count
        count += 1
        start += (size + 3) & 0x7FFFFFFC
    out[0] = start
    out[1] = reason
    return count


KERNELS = (walk_pcap, walk_pcapng)


@dataclass(slots=True)
class FileFacts:
    """What the file says about itself; complete once every batch was read."""

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
    """Rows of packets whose bytes lie in `buffer`. Both are used again for the next batch."""

    buffer: NDArray[np.uint8]
    rows: Array
    count: int


class _HashingReader:
    """Hands on what it reads, and hashes it on the way."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.hash = hashlib.sha256()
        self.total = 0

    def readinto(self, buffer: memoryview) -> int:
        # Unbuffered: hashing costs about half a nanosecond a byte.
        got: int = self._raw.readinto(buffer) or 0  # type: ignore[attr-defined]
        self.hash.update(memoryview(buffer)[:got])
        self.total += got
        return got


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
        self._rows = np.zeros(batch_packets * PACKET, np.int64)
        self._out = np.zeros(2, np.int64)
        self._start = self._stop = 0
        self._ended = False
        self._frame = 1
        self._section_start = 0  # first interface of the current section
        self._big = False
        self.facts = FileFacts()
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise CaptureError(f"cannot read {path}: {error.strerror}") from error

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def batches(self) -> Iterator[Batch]:
        with self._file as file:
            hashing = _HashingReader(cast(BinaryIO, file))
            self._stream: _HashingReader | _Gunzip = hashing
            try:
                if self._fill(2) and bytes(self._buffer[:2]) == b"\x1f\x8b":
                    yield from self._compressed(hashing)
                else:
                    yield from self._any_format()
                self._exhaust(hashing)
            except OSError as error:
                raise CaptureError(f"cannot read {self._path}: {error.strerror or error}") from error
            self.facts.sha256, self.facts.file_bytes = hashing.hash.hexdigest(), hashing.total

    def batches_around(self, frame: int, facts: FileFacts) -> Iterator[Batch]:
        """The batches from the one that holds `frame` on, of a file that was read before and gave `facts`."""
        entry = next((entry for entry in reversed(facts.entries) if entry[0] <= frame), None)
        if entry is None or facts.compressed:
            yield from self.batches()
            return
        self._frame, offset, self._section_start, self._big = entry
        self.facts.interfaces = list(facts.interfaces)
        with self._file as file:
            file.seek(offset)
            self._stream = _HashingReader(cast(BinaryIO, file))
            if facts.format == "pcapng":
                yield from self._pcapng()
            else:
                link, units, *_ = facts.interfaces[0]
                yield from self._pcap_records(self._big, 1_000_000_000 // units, link)

    def _compressed(self, hashing: _HashingReader) -> Iterator[Batch]:
        head = bytes(self._buffer[: self._stop])
        self._start = self._stop = 0
        self._ended = False
        self.facts.compressed = True
        self._stream = _Gunzip(head, hashing)
        yield from self._any_format()

    def _exhaust(self, hashing: _HashingReader) -> None:
        """The hash is of the whole file, also where reading stopped at damage."""
        rest = memoryview(bytearray(1 << 16))
        while hashing.readinto(rest):
            pass

    def _fill(self, wanted: int) -> bool:
        """Have `wanted` bytes from the current position in the buffer, if the file has them."""
        if self._stop - self._start >= wanted:
            return True
        held = self._stop - self._start
        if wanted > len(self._buffer):
            grown = np.zeros(max(wanted, 2 * len(self._buffer)), np.uint8)
            grown[:held] = self._buffer[self._start : self._stop]
            self._buffer = grown
        elif self._start:
            self._buffer[:held] = self._buffer[self._start : self._stop].copy()
        self._start, self._stop = 0, held
        view = memoryview(self._buffer)  # type: ignore[arg-type]
        while self._stop < wanted and not self._ended:
            try:
                got = self._stream.readinto(view[self._stop :])
            except (EOFError, zlib.error) as error:
                if not self.facts.interfaces:
                    raise CaptureError(f"{self._path.name} is damaged gzip data: {error}") from error
                self.facts.notes.append(f"The compressed file is damaged or cut short ({error}).")
                self.facts.truncated = True
                got = 0
            if not got:
                self._ended = True
                break
            self._stop += got
        return self._stop - self._start >= wanted

    def _fill_up(self) -> bool:
        """Read on after an unfinished record; False at the end of the file."""
        held = self._stop - self._start
        self._fill(max(len(self._buffer), held + 1) if held < len(self._buffer) else 2 * len(self._buffer))
        return self._stop - self._start > held

    def _any_format(self) -> Iterator[Batch]:
        if not self._fill(1):
            return
        self._fill(4)
        magic = bytes(self._buffer[self._start : self._start + 4])
        if magic in _MAGIC:
            yield from self._pcap(*_MAGIC[magic])
        elif magic == _NG_MAGIC:
            yield from self._pcapng()
        else:
            raise CaptureError(
                f"{self._path.name} is not a packet capture (it begins with {magic.hex(' ')}); "
                "give a pcap or pcapng file, plain or gzip-compressed"
            )

    # ------------------------------------------------------------------------------------------------------- pcap

    def _pcap(self, big: bool, unit: int) -> Iterator[Batch]:
        self.facts.format = "pcap"
        if not self._fill(24):
            self._cut_short("The file ends inside its header.")
            return
        order = ">" if big else "<"
        _, _, _, _, snap, network = struct.unpack_from(f"{order}HHiIII", self._buffer, self._start + 4)  # type: ignore[arg-type]
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
        while True:
            known = self.facts.interfaces[self._section_start :]
            table = np.array([(_decoded_link(row[0]), *row[1:]) for row in known] or [(0, 1, 0, 0)], np.int64).ravel()
            count = self._kernels(walk_pcapng)(
                self._vector(self._buffer), self._start, self._stop, int(self._big), self._vector(table), len(known),
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

    def _other_block(self) -> bool | None:
        """Take in a block that is no enhanced packet: True for a packet in row 0, None where the file ends."""
        start = self._start
        if bytes(self._buffer[start : start + 4]) == _NG_MAGIC:
            mark = bytes(self._buffer[start + 8 : start + 12])
            if mark not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                self._damaged()
                return None
            self._big = mark == b"\x1a\x2b\x3c\x4d"
            self._section_start = len(self.facts.interfaces)
        order = ">" if self._big else "<"
        kind, size = struct.unpack_from(f"{order}II", self._buffer, start)  # type: ignore[arg-type]
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
            self.facts.interfaces.append(_interface(body, order))
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
        self._rows[:PACKET] = 0
        seconds, rest = divmod(ticks, units)
        seconds = min(max(min(seconds, _LATEST_SECOND) + shift, 0), _LATEST_SECOND)
        nanoseconds = min(rest // (units // 10**9) if units > 9 * 10**9 else rest * 10**9 // units, 999_999_999)
        for column, value in (
            (OFFSET, offset + head), (CAPTURED, min(captured, len(body) - head)), (WIRE, wire),
            (TIME, seconds * 1_000_000_000 + nanoseconds), (LINK, _decoded_link(link)), (FRAME, self._frame),
        ):  # fmt: skip
            self._rows[column] = value
        return True

    def _statistics(self, body: bytes, order: str) -> None:
        """Interface statistics: what the kernel (ifdrop, 5) and the capturer (osdrop, 7) could not keep."""
        interface = self._section_start + struct.unpack_from(f"{order}I", body)[0]
        dropped = [
            struct.unpack_from(f"{order}Q", value)[0]
            for code, value in _options(body[12:], order)
            if code in (5, 7) and len(value) == 8
        ]
        if dropped:
            self.facts.dropped[interface] = sum(dropped)

    # ----------------------------------------------------------------------------------------------------- shared

    def _advance(self, count: int) -> Iterator[Batch]:
        if count:
            if isinstance(self._stream, _HashingReader):
                offset = self._stream.total - (self._stop - self._start)
                self.facts.entries.append((self._frame, offset, self._section_start, self._big))
            yield Batch(self._buffer, self._rows, count)
            self._rows[: count * PACKET] = 0
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
            f"The file is damaged after frame {self._frame - 1}: no sound record follows; the rest was not analysed."
        )
        self.facts.truncated = True


class _Gunzip:
    """The bytes inside a gzip file of any number of members; hands out all that can be had of a damaged one."""

    def __init__(self, head: bytes, compressed: _HashingReader) -> None:
        self._compressed = compressed
        self._pending = head
        self._inflate = zlib.decompressobj(wbits=31)

    def readinto(self, buffer: memoryview) -> int:
        """Fill a part of the buffer; 0 at the end. Raises EOFError or zlib.error where the file is damaged."""
        while True:
            data = self._inflate.decompress(self._pending, len(buffer))
            self._pending = self._inflate.unconsumed_tail
            if data:
                buffer[: len(data)] = data
                return len(data)
            if self._inflate.eof:
                # Members may follow one another, and zeros may pad the last.
                self._pending = (self._inflate.unused_data or self._more()).lstrip(b"\0")
                if not self._pending:
                    return 0
                self._inflate = zlib.decompressobj(wbits=31)
            elif not self._pending:
                self._pending = self._more()
                if not self._pending:
                    raise EOFError("it ends before its end marker")

    def _more(self) -> bytes:
        piece = bytearray(1 << 16)
        return bytes(piece[: self._compressed.readinto(memoryview(piece))])


def _decoded_link(link: int) -> int:
    """Raw IP has two historic numbers besides its own."""
    return 101 if link in (12, 14) else link


def _interface(body: bytes, order: str) -> tuple[int, int, int, int]:
    link, _, snap = struct.unpack_from(f"{order}HHI", body)
    units, shift = 1_000_000, 0
    for code, value in _options(body[8:], order):
        if code == 9 and len(value) >= 1:
            resolution = value[0]
            units = 1 << min(resolution & 0x7F, 62) if resolution & 0x80 else 10 ** min(resolution, 18)
        elif code == 14 and len(value) == 8:
            (shift,) = struct.unpack(f"{order}q", value)
            shift = max(-_LATEST_SECOND, min(shift, _LATEST_SECOND))
    return link, units, shift, snap if snap < 0x7FFFFFFF else 0


def _options(body: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + size]
        at += 4 + ((size + 3) & ~3)
