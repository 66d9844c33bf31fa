"""The vector matrix in a file beside the database: memory-mapped for reading, written with `pwrite`, shared by all
processes.

It is rebuilt if it belongs to another database or embedding space, if it is damaged, and after a reboot: it is never
synced to disk, so a crash of the machine may leave it incomplete.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ghost.mind.vector_search import Table, grown_to, row_type

_HEADER = 4096
_MARK = 40
"""Header bytes: file type (8) and digest of its owner (32); then `applied` and the rows in use."""
_PROGRESS = struct.Struct("<qq")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class VectorFile:
    """Rows in a file. `uid`: of the database; `space`, `dim`: of the embeddings. Raises `OSError`."""

    def __init__(self, path: Path, uid: bytes, space: str, dim: int) -> None:
        self._path = path
        self._type = row_type(dim)
        owner = hashlib.blake2b(uid + _boot_id() + f"{space}\0{dim}".encode(), digest_size=32).digest()
        self._mark = b"GHOSTV02" + owner
        self._thread_lock = threading.Lock()
        self._descriptor = self._open()
        self._view: tuple[mmap.mmap, Table] = self._map()

    def _open(self) -> int:
        """Return the descriptor of our file, created if missing or of another owner."""
        while True:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not self._is_at_path(descriptor):
                    os.close(descriptor)
                    continue
                if not self._is_ours(descriptor):
                    self._put_new_in_place()
                    os.close(descriptor)
                    continue
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            except BaseException:
                os.close(descriptor)
                raise
            return descriptor

    def _is_at_path(self, descriptor: int) -> bool:
        """Return whether the file was not replaced while we waited for it."""
        here = os.fstat(descriptor)
        try:
            there = self._path.lstat()
        except FileNotFoundError:
            return False
        return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)

    def _is_ours(self, descriptor: int) -> bool:
        head = os.pread(descriptor, _MARK + _PROGRESS.size, 0)
        if len(head) < _MARK + _PROGRESS.size or head[:_MARK] != self._mark:
            return False
        _, used = _PROGRESS.unpack_from(head, _MARK)
        capacity = (os.fstat(descriptor).st_size - _HEADER) // self._type.itemsize
        return bool(0 <= used <= capacity)

    def _put_new_in_place(self) -> None:
        """Replace the file; processes that mapped the old one keep it valid."""
        descriptor, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            os.ftruncate(descriptor, _HEADER + grown_to(0, 0) * self._type.itemsize)
            os.pwrite(descriptor, self._mark + _PROGRESS.pack(-1, 0), 0)
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)

    def _map(self) -> tuple[mmap.mmap, Table]:
        """Map all rows that the file has space for."""
        size = os.fstat(self._descriptor).st_size
        mapped = mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ)
        room = (size - _HEADER) // self._type.itemsize
        return mapped, np.frombuffer(mapped, dtype=self._type, count=room, offset=_HEADER)

    def _progress(self) -> tuple[int, int]:
        """Return `applied` and the number of rows in use."""
        applied, used = _PROGRESS.unpack_from(self._view[0], _MARK)
        return applied, used

    @property
    def applied(self) -> int:
        return self._progress()[0]

    def table(self) -> Table:
        used = self._progress()[1]
        if used > len(self._view[1]):
            with self._thread_lock:
                if used > len(self._view[1]) and self._descriptor >= 0:
                    self._view = self._map()
        return self._view[1][:used]

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the file. Raises `OSError` if it was closed meanwhile."""
        with self._thread_lock:
            if self._descriptor < 0:
                raise OSError(errno.EBADF, "it was closed", str(self._path))
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def write(self, numbers: npt.NDArray[np.int64], rows: Table) -> None:
        needed = int(numbers.max()) + 1
        applied, used = self._progress()
        room = (os.fstat(self._descriptor).st_size - _HEADER) // self._type.itemsize
        if needed > room:
            os.ftruncate(self._descriptor, _HEADER + grown_to(needed, room) * self._type.itemsize)
        order = np.argsort(numbers, kind="stable")
        numbers, rows = numbers[order], rows[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        for first, last in zip(starts, [*starts[1:], len(numbers)], strict=True):
            self._write_all(rows[first:last].tobytes(), _HEADER + int(numbers[first]) * self._type.itemsize)
        if needed > used:
            os.pwrite(self._descriptor, _PROGRESS.pack(applied, needed), _MARK)
        if needed > len(self._view[1]):
            self._view = self._map()

    def _write_all(self, content: bytes, at: int) -> None:
        unwritten = memoryview(content)
        while unwritten:
            written = os.pwrite(self._descriptor, unwritten, at)
            unwritten, at = unwritten[written:], at + written

    def restart(self) -> None:
        """Leave the file to those who have it open and create an empty one of its name."""
        with self._thread_lock:
            self._take_empty()

    def rebuild(self) -> None:
        """Rebuild a file that was truncated or overwritten: reading a mapping beyond the file's end would kill the
        process. Concurrent readers are not protected.
        """
        if self._descriptor < 0 or self._is_whole():
            return
        with self._thread_lock:
            if self._descriptor >= 0 and not self._is_whole():
                self._take_empty()

    def _is_whole(self) -> bool:
        return os.fstat(self._descriptor).st_size >= len(self._view[0]) and self._is_ours(self._descriptor)

    def _take_empty(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        if self._is_at_path(self._descriptor):
            self._put_new_in_place()
        os.close(self._descriptor)
        self._descriptor = -1
        self._descriptor = self._open()
        self._view = self._map()

    def finish(self, applied: int) -> None:
        os.pwrite(self._descriptor, _PROGRESS.pack(applied, self._progress()[1]), _MARK)

    def close(self) -> None:
        """Close the file; mappings in use stay until released."""
        with self._thread_lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def _boot_id() -> bytes:
    """Return an id that changes with each boot; if the system has none, with each process."""
    try:
        return _BOOT.read_bytes().strip()
    except OSError:
        return os.urandom(16)
