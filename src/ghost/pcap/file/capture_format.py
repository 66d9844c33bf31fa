"""Capture files by their first bytes: formats that are read, and others with the command that converts them."""

from __future__ import annotations

import shlex
from io import FileIO
from pathlib import Path

from ghost.errors import CaptureError

PCAP_MAGICS = {
    b"\xd4\xc3\xb2\xa1": (False, 1000),
    b"\xa1\xb2\xc3\xd4": (True, 1000),
    b"\x4d\x3c\xb2\xa1": (False, 1),
    b"\xa1\xb2\x3c\x4d": (True, 1),
}
"""To byte order (True: big) and nanoseconds per timestamp unit."""
NG_MAGIC = b"\x0a\x0d\x0d\x0a"
GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 76
"""As many as tell every format below."""

_CONVERTED_BY_EDITCAP = {
    b"snoop\0": "a snoop capture",  # RFC 1761
    b"GMBU": "a Network Monitor capture",
    b"RTSS": "a Network Monitor capture",  # version 1
}
_TRACE_HEADERS = (b"\x02\x00\x01\xc0", b"\x02\x00\x02\xc0")
"""Of the first event of a Windows trace (SYSTEM_TRACE_HEADER of 32 and 64 bits), behind the header of its buffer."""


def is_capture(head: bytes) -> bool:
    return head[:4] in PCAP_MAGICS or head[:4] == NG_MAGIC


def needs_conversion(path: Path, head: bytes) -> str | None:
    """Return what a file of another capture format is, and the command that converts it; None of any other file."""
    name = f"./{path}" if str(path).startswith("-") else str(path)
    trace = path.suffix.lower() == ".etl"
    source, target = shlex.quote(name), shlex.quote((name[: -len(".etl")] if trace else name) + ".pcapng")
    for magic, format_name in _CONVERTED_BY_EDITCAP.items():
        if head.startswith(magic):
            return f"{format_name}; convert it first: editcap -F pcapng {source} {target}"
    if trace or head[72:76] in _TRACE_HEADERS:
        tools = f"pktmon etl2pcap {source} -o {target} (Windows), or etl2pcapng {source} {target}"
        return f"a Windows trace; convert it first: {tools}"
    return None


def no_capture(path: Path, head: bytes) -> CaptureError:
    other = needs_conversion(path, head)
    if other is not None:
        return CaptureError(f"{path.name} is {other}")
    return CaptureError(
        f"{path.name} is not a packet capture (it begins with {head[:4].hex(' ')}); "
        "give a pcap or pcapng file, plain or gzip-compressed"
    )


def open_capture(path: Path) -> FileIO:
    """Open a file, unbuffered. Raises CaptureError where it cannot be opened or read twice."""
    try:
        if not path.is_dir() and path.exists() and not path.is_file():
            raise CaptureError(
                f"cannot read {path}: it is a pipe or a device and can be read only once; "
                f"give it as standard input: pcap-forensics - < {shlex.quote(str(path))}"
            )
        return path.open("rb", buffering=0)
    except OSError as error:
        raise CaptureError(f"cannot read {path} ({error.strerror}): check its name and mode") from error


def check_capture(path: Path) -> None:
    """Raise CaptureError if `path` cannot be read or does not begin like a capture; nothing more is read."""
    with open_capture(path) as file:
        try:
            head = file.read(HEAD_BYTES)
        except OSError as error:
            raise CaptureError(f"cannot read {path} ({error.strerror}): check its name and mode") from error
    check_head(path, head)


def check_head(path: Path, head: bytes) -> None:
    if head and not is_capture(head) and not head.startswith(GZIP_MAGIC):
        raise no_capture(path, head)
