"""The bytes of a capture file, hashed while read: plain, read ahead by a thread, or inflated."""

from __future__ import annotations

import hashlib
import queue
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4 << 20
"""Large: after each the thread asks for the interpreter, and may have to wait for it."""
_BLOCKS = 4
_CARRIED = 256 << 10
"""Before each block there is room for the record that the block before it ends inside."""
_WORTH_A_THREAD = 16 << 20
_SWOLLEN, _SWELLING = 128 << 20, 250
"""Bytes, and times the compressed size, beyond which a compressed file is made to exhaust its reader."""


class Source(Protocol):
    def readinto(self, buffer: memoryview) -> int:
        """Fill a part of the buffer; 0 at the end."""
        ...


class Plain:
    """Reads the file directly."""

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw
        self.total = 0
        """Bytes handed on."""

    def readinto(self, buffer: memoryview) -> int:
        got = self._raw.readinto(buffer) or 0
        self.total += got
        return got


class Hashed(Plain):
    """Reads and hashes. `sha256` covers what was read so far; hashing costs about half a nanosecond per byte."""

    def __init__(self, raw: FileIO) -> None:
        super().__init__(raw)
        self._hash = hashlib.sha256()

    def readinto(self, buffer: memoryview) -> int:
        got = super().readinto(buffer)
        self._hash.update(memoryview(buffer)[:got])
        return got

    def sha256(self) -> str:
        return self._hash.hexdigest()


Octets = NDArray[np.uint8]


class ReadAhead:
    """Reads and hashes in a thread while the engine works on earlier blocks.

    `readinto` copies; `following` returns a whole block without copying.
    """

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw
        self._hash = hashlib.sha256()
        self.total = 0
        self._free: queue.SimpleQueue[Octets | None] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[tuple[Octets, int] | OSError] = queue.SimpleQueue()
        for _ in range(_BLOCKS):
            self._free.put(np.empty(_CARRIED + _BLOCK, np.uint8))
        self._block: Octets | None = None
        self._at = self._stop = 0
        """What is left of the block."""
        self._ended = False
        self._thread = threading.Thread(target=self._read, name="read-ahead", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while (block := self._free.get()) is not None:
            octets = block.data[_CARRIED:]
            try:
                got = self._raw.readinto(octets) or 0
            except OSError as error:
                self._full.put(error)
                return
            self._hash.update(octets[:got])
            self._full.put((block, got))
            if not got:
                return

    def readinto(self, buffer: memoryview) -> int:
        if self._at == self._stop:
            self._next()
        size = min(len(buffer), self._stop - self._at)
        if size:
            assert self._block is not None
            buffer[:size] = self._block.data[self._at : self._at + size]
        self._at += size
        self.total += size
        return size

    def following(self, carried: Octets) -> tuple[Octets, int, int] | None:
        """Return the next block, with carried-over bytes before it, and where both begin and end; it is valid until the
        next call. None if the previous block is not used up, nothing follows, or too much is carried."""
        if self._at != self._stop or len(carried) > _CARRIED:
            return None
        start = _CARRIED - len(carried)
        self._next(carried)
        if self._at == self._stop:
            return None
        assert self._block is not None
        self.total += self._stop - self._at
        self._at = self._stop
        return self._block, start, self._stop

    def _next(self, carried: Octets | None = None) -> None:
        """Advance to the next block; carried bytes may lie in the previous block, which is then reused."""
        if self._ended:
            return
        found = self._full.get()
        self._ended = isinstance(found, OSError) or not found[1]
        if isinstance(found, OSError):
            raise found
        block, got = found
        if carried is not None:
            block[_CARRIED - len(carried) : _CARRIED] = carried
        if self._block is not None:
            self._free.put(self._block)
        self._block, self._at, self._stop = block, _CARRIED, _CARRIED + got

    def stop(self) -> None:
        """Stop the thread at any place in the file."""
        while not self._free.empty():
            self._free.get()
        self._free.put(None)
        self._thread.join()

    def sha256(self) -> str:
        """SHA-256 of the whole file, once it was read."""
        return self._hash.hexdigest()


@contextmanager
def hashed(raw: FileIO, size: int) -> Iterator[Hashed | ReadAhead]:
    """Yield the source for a file; a thread reads ahead if the file is large enough."""
    if size < _WORTH_A_THREAD:
        yield Hashed(raw)
        return
    ahead = ReadAhead(raw)
    try:
        yield ahead
    finally:
        ahead.stop()


class Gunzip:
    """Inflates a gzip file of any number of members; of a damaged one, all bytes before the damage."""

    def __init__(self, head: bytes, compressed: Hashed | ReadAhead) -> None:
        self._compressed = compressed
        self._pending = head
        self._inflate = zlib.decompressobj(wbits=31)
        self._damage: zlib.error | None = None
        self._total = 0

    def readinto(self, buffer: memoryview) -> int:
        """Raises EOFError or zlib.error where the file is damaged, or expands as no capture does."""
        while True:
            if self._damage is not None:
                raise self._damage
            if self._inflate.eof:
                if not self._next_member():
                    return 0
            elif not self._pending:
                self._pending = self._more()
                if not self._pending:
                    raise EOFError("it ends before its end marker")
            data = self._inflated(len(buffer))
            if data:
                self._total += len(data)
                if self._total > max(_SWOLLEN, self._compressed.total * _SWELLING):
                    raise EOFError(f"it expands to more than {_SWELLING} times its size")
                buffer[: len(data)] = data
                return len(data)

    def _next_member(self) -> bool:
        """Members may follow one another, and zeros may pad them."""
        self._pending = self._inflate.unused_data.lstrip(b"\0")
        while not self._pending:
            more = self._more()
            if not more:
                return False
            self._pending = more.lstrip(b"\0")
        self._inflate = zlib.decompressobj(wbits=31)
        return True

    def _inflated(self, most: int) -> bytes:
        before = self._inflate.copy()
        try:
            data = self._inflate.decompress(self._pending, most)
        except zlib.error as damage:
            self._damage = damage
            return self._sound_part(before)
        self._pending = self._inflate.unconsumed_tail
        return data

    def _sound_part(self, inflate: zlib._Decompress) -> bytes:
        """Return the bytes before the damage, which zlib discards with the error."""
        data, at = bytearray(), 0
        for step in (1 << 12, 1 << 6, 1):
            while True:
                before = inflate.copy()
                try:
                    data += inflate.decompress(self._pending[at : at + step])
                except zlib.error:
                    inflate = before
                    break
                at += step
        return bytes(data)

    def _more(self) -> bytes:
        piece = bytearray(1 << 16)
        return bytes(piece[: self._compressed.readinto(memoryview(piece))])
