"""Ids of the mind's records: `thought:<ms>`, then `thought:<ms>_2`, `_3`, ... in the same millisecond.

A store issues them (`MemoryStore.new_ids`), so no two callers of any process get the same one.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable
from pathlib import Path

from ghost.errors import StoreError

_KIND = re.compile(r"[a-z]{1,16}")
_LINE = 64
"""Bytes of one line of the register: `kind:ms number`, padded."""
_LINES = 256
"""Number of remembered moments, most recently used last."""


def id_at(kind: str, at: float, number: int = 1) -> str:
    """Return the `number`-th id of its millisecond. `at`: epoch seconds."""
    if _KIND.fullmatch(kind) is None:
        raise StoreError(f"{kind!r} cannot begin an id: use up to 16 small letters")
    base = f"{kind}:{int(at * 1000)}"
    return base if number == 1 else f"{base}_{number}"


class IdRegister:
    """The last issued ids, in a file locked by every process of this machine while it takes one.

    The kernel releases the lock with the process and keeps what a killed process wrote. A crash of the machine may lose
    the last lines; the clock has moved on by then, and `taken` is checked for each id too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, kind: str, at: float, count: int, taken: Callable[[str], bool]) -> list[str]:
        """Return `count` ids of the millisecond of `at`. Raises `StoreError` if the file cannot be written."""
        first = id_at(kind, at)
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                return self._take(descriptor, first, kind, at, count, taken)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(f"cannot write {self._path} ({error.strerror}): check disk and permissions") from error

    def _take(
        self, descriptor: int, first: str, kind: str, at: float, count: int, taken: Callable[[str], bool]
    ) -> list[str]:
        lines = [
            line.split() for line in os.pread(descriptor, _LINES * _LINE, 0).decode("ascii", "replace").splitlines()
        ]
        last = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
        number = last.pop(first, 0)
        ids: list[str] = []
        while len(ids) < count:
            number += 1
            candidate = id_at(kind, at, number)
            if not taken(candidate):
                ids.append(candidate)
        last[first] = number
        recent = list(last.items())[-_LINES:]
        text = "".join(f"{moment} {n}".ljust(_LINE - 1) + "\n" for moment, n in recent)
        os.pwrite(descriptor, text.encode("ascii"), 0)
        return ids
