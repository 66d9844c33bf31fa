"""Names and directories of result files; a capture is never overwritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ghost.errors import UsageError
from ghost.pcap.file.capture_format import GZIP_MAGIC, is_capture
from ghost.records import private_dir, write_text
from ghost.text import visible

_SUFFIXES = (".gz", ".pcap", ".pcapng", ".cap", ".ntar", ".dmp")
_LONGEST_STEM = 180


class Places(NamedTuple):
    semantic: Path
    reports: Path


def stem_of(path: Path) -> str:
    """The file's name without the endings of captures: `web.pcap.gz` gives `web`. Characters that would disturb a
    terminal or a listing become `_`."""
    stem = path.name
    for suffix in _SUFFIXES:
        if stem.lower().endswith(suffix) and len(stem) > len(suffix):
            stem = stem[: -len(suffix)]
    return clean(stem) or "capture"


def clean(name: str) -> str:
    """Return `name` as a safe part of a file name."""
    plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in name)
    return plain.encode("utf-8", "replace")[:_LONGEST_STEM].decode("utf-8", "ignore")


def prepare(captures: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Make the directories of results, before the work and not after it. Raises UsageError where a result would take
    the place of a capture, also of another than these: a capture is evidence."""
    taken = {capture.resolve() for capture in captures}
    outputs = list(outputs)
    for output in outputs:
        if output.resolve() in taken:
            raise UsageError(
                f"{visible(str(output))} is the capture itself and would be written over: "
                "give another --semantic-dir or --report-dir"
            )
        if begins_like_a_capture(output):
            raise UsageError(
                f"{visible(str(output))} is a capture and would be written over: "
                "give another --semantic-dir or --report-dir"
            )
    for directory in {output.parent for output in outputs}:
        private_dir(directory)


def begins_like_a_capture(path: Path) -> bool:
    """Pcap, pcapng or gzip, none of which a result is. False where nothing can be read there."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return False
    return is_capture(head) or head.startswith(GZIP_MAGIC)


def write_all(contents: Mapping[Path, str]) -> None:
    for path, content in contents.items():
        write_text(path, content)
