"""Landlock's rights, and the files a program is made of: its loader, its interpreter, the tree it is installed in."""

from __future__ import annotations

import os
import stat
import struct
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_PT_INTERP = 3
_SHEBANG_LIMIT = 256


class Rights:
    """LANDLOCK_ACCESS_FS_* of linux/landlock.h, and what they come to together."""

    EXECUTE = 1 << 0
    WRITE_ONE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIRECTORY = 1 << 3
    REMOVE_DIRECTORY = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_DIRECTORY = 1 << 7
    MAKE_FILE = 1 << 8
    MAKE_LINK = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEVICE = 1 << 15

    READ = READ_FILE | READ_DIRECTORY
    WRITE_FILE = READ_FILE | WRITE_ONE | TRUNCATE
    WRITE = READ | WRITE_FILE | REMOVE_DIRECTORY | REMOVE_FILE | MAKE_DIRECTORY | MAKE_FILE | MAKE_LINK | REFER
    OF_FILES = EXECUTE | WRITE_ONE | READ_FILE | TRUNCATE | IOCTL_DEVICE


_HANDLED_SINCE = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many of the rights each version of the interface knows."""
_SCOPES_SINCE = 6
_SCOPES = 0b11  # abstract sockets and signals


def landlock_ruleset(version: int) -> tuple[bytes, int, int]:
    """`struct landlock_ruleset_attr` that denies all a version can, the rights it handles, and those for files."""
    handled = (1 << _HANDLED_SINCE[min(version, 5)]) - 1
    if version >= _SCOPES_SINCE:
        return struct.pack("=QQQ", handled, 0, _SCOPES), handled, handled & Rights.OF_FILES
    return struct.pack("=Q", handled), handled, handled & Rights.OF_FILES


def executables(program: str) -> tuple[str, ...]:
    """The files that the kernel executes to start a program: itself, and its loader or interpreter."""
    return (program, *_loaders(program, _stamp(program)))


def is_script(program: str) -> bool:
    return _start_of(program, _stamp(program)).startswith(b"#!")


def tree_of(program: str) -> tuple[str, ...]:
    """PREFIX for PREFIX/bin/PROGRAM, as it is spelled and behind links; but never a home directory."""
    trees = []
    for path in dict.fromkeys((program, os.path.realpath(program))):
        directory = Path(path).parent
        prefix = directory.parent if directory.name in ("bin", "sbin") else directory
        if prefix in home_directories():
            prefix = directory
        if prefix not in home_directories():
            trees.append(str(prefix))
    return tuple(dict.fromkeys(trees))


def home_directories() -> frozenset[Path]:
    """The user's home and all above it: what no tree of a program may be."""
    with suppress(RuntimeError):
        home = Path.home().absolute()
        return frozenset({home, *home.parents, Path("/")})
    return frozenset({Path("/")})


def gains_privileges(program: str) -> bool:
    """Whether executing the file gives privileges: a set-user-id bit, or file capabilities."""
    try:
        if os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID):  # noqa: PTH116
            return True
        return hasattr(os, "getxattr") and bool(os.getxattr(program, "security.capability"))
    except OSError:
        return False


def _stamp(program: str) -> int:
    try:
        return os.stat(program).st_mtime_ns  # noqa: PTH116 - a string stays a string: this is on every command's way
    except OSError:
        return 0


@lru_cache(maxsize=256)
def _start_of(program: str, _: int) -> bytes:
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - as above
            return file.read(4096)
    except OSError:
        return b""


@lru_cache(maxsize=256)
def _loaders(program: str, stamp: int) -> tuple[str, ...]:
    start = _start_of(program, stamp)
    if start.startswith(b"#!"):
        words = start[2:_SHEBANG_LIMIT].split(b"\n")[0].split()
        interpreter = os.fsdecode(words[0]) if words else ""
        return (interpreter, *_loaders(interpreter, _stamp(interpreter))) if interpreter not in ("", program) else ()
    loader = _loader_of_elf(start)
    return (loader,) if loader else ()


def _loader_of_elf(start: bytes) -> str | None:
    """PT_INTERP of a 64-bit little-endian ELF file (elf(5))."""
    if start[:6] != b"\x7fELF\x02\x01":
        return None
    try:
        (table,) = struct.unpack_from("<Q", start, 32)
        size, count = struct.unpack_from("<HH", start, 54)
        for index in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", start, table + index * size)
            if kind == _PT_INTERP:
                return os.fsdecode(start[offset : offset + length].rstrip(b"\0"))
    except struct.error:
        return None
    return None
