"""Secrets in hexadecimal dumps of tcpdump, tshark, xxd and hexdump.

The bytes are redacted as text; rows that contain a part of a secret lose their bytes. Each row is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ghost.patterns import lazy
from ghost.redaction.secret_values import MARKER, Counts, Rule

_DUMP_ROW = lazy(
    r"(?P<offset>[ \t]{0,8}(?:0x)?[0-9a-f]{4,8}:?[ \t]{1,3})"
    r"(?P<bytes>(?:[0-9a-f]{2}){1,2}(?: (?:[0-9a-f]{2}){1,2}){0,15}(?:  [0-9a-f]{2}(?: [0-9a-f]{2}){0,7})?)"
    r"(?=$|[ \t]{2,}|[ \t]?\|)[^\n]{0,80}$"
)
_DUMP_START = lazy(r"(?m)^[ \t]{0,8}(?:0x)?[0-9a-f]{4,8}:?[ \t]{1,3}[0-9a-f]{2}")
_ROW_BYTES = 16
_COMMUNITY = lazy(rb"\x02\x01[\x00\x01\x03]\x04[\x01-\x40](?P<secret>[!-~]{1,64})(?=[\xa0-\xa8])")  # BER of SNMP


def redact_dumps(text: str, counts: Counts, redact_text: Callable[[str, Counts], str]) -> str:
    """Return `text` without the bytes of dump rows that contain a part of a secret."""
    pieces: list[str] = []
    done = 0
    for first in _DUMP_START.finditer(text):
        if first.start() < done:
            continue
        rows, end = _dump_rows(text, first.start())
        if rows:
            pieces += [text[done : first.start()], _redacted_dump(rows, counts, redact_text)]
            done = end
    return "".join([*pieces, text[done:]])


def _dump_rows(text: str, start: int) -> tuple[list[re.Match[str]], int]:
    rows: list[re.Match[str]] = []
    end = start
    while start < len(text):
        stop = text.find("\n", start, start + 200)
        stop = stop if stop >= 0 else min(len(text), start + 200)
        row = _DUMP_ROW.match(text, start, stop)
        if row is None:
            break
        rows.append(row)
        end = stop
        start = stop + 1
    return rows, end


def _redacted_dump(rows: list[re.Match[str]], counts: Counts, redact_text: Callable[[str, Counts], str]) -> str:
    parts = [bytes.fromhex(row["bytes"].replace(" ", ""))[:_ROW_BYTES] for row in rows]
    raw = b"".join(parts)
    found: Counts = type(counts)()
    masked = raw
    for community in _COMMUNITY.finditer(raw):
        start, end = community.span("secret")
        masked = masked[:start] + b"\0" * (end - start) + masked[end:]
        found[Rule("password", "dump-community")] += 1
    plain = raw.translate(_PRINTABLE).decode("ascii")
    clean = redact_text(plain, found)
    shown = "\n".join(row[0] for row in rows)
    if not found:
        return shown
    counts += found
    hidden = [i for i, (a, b) in enumerate(zip(raw, masked, strict=True)) if a != b] + _changed(plain, clean)
    if not hidden:
        return shown
    first, last = min(hidden), max(hidden)
    lines: list[str] = []
    position = 0
    for row, part in zip(rows, parts, strict=True):
        touched = position <= last and position + len(part) > first
        lines.append(f"{row['offset']}{MARKER}" if touched else row[0])
        position += len(part)
    return "\n".join(lines)


def _changed(before: str, after: str) -> list[int]:
    """Return the positions of the first and last character in which `before` differs from `after`."""
    if before == after:
        return []
    shorter = min(len(before), len(after))
    first = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    kept = next((i for i in range(shorter - first) if before[-1 - i] != after[-1 - i]), shorter - first)
    return [min(first, len(before) - 1), max(first, len(before) - 1 - kept)]


_PRINTABLE = bytes(byte if 32 <= byte < 127 else ord("\n") for byte in range(256))
