"""A capture on standard input, kept in a temporary file: the sequence diagram and a comparison read it again."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ghost.errors import UsageError
from ghost.pcap.file.capture_format import HEAD_BYTES, check_head

_PIECE_BYTES = 1 << 20


@contextmanager
def saved_standard_input() -> Iterator[Path]:
    """Yield a file named `stdin` with all of standard input; it is deleted afterwards.

    The first interrupt ends the program that writes (`tcpdump -w - |`) and not this one: what was captured is analysed.
    Raises UsageError at a terminal, CaptureError as soon as the input does not begin like a capture.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("- reads a capture from standard input: tcpdump -w - | pcap-forensics -, or give a file")
    with tempfile.TemporaryDirectory(prefix="pcap-forensics-") as directory:
        path = Path(directory, "stdin")
        before = signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, before))
        try:
            _save(sys.stdin.fileno(), path)
        finally:
            signal.signal(signal.SIGINT, before)
        yield path


def _save(source: int, path: Path) -> None:
    head = b""
    while len(head) < HEAD_BYTES and (piece := os.read(source, _PIECE_BYTES)):
        head += piece
    check_head(Path("stdin"), head)
    with path.open("wb") as file:
        file.write(head)
        while piece := os.read(source, _PIECE_BYTES):
            file.write(piece)
