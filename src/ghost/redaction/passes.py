"""Redaction passes: `redact(text)` repeats them until nothing more is found.

A secret is known by the name next to it, by its shape, or by looking random next to a name that is only sometimes a
secret's; also inside base64, hexadecimal or URL encoding. Addresses, GUIDs, hashes and etags stay. Linear in the length
of the text: no pattern backtracks over more than a bounded number of characters.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
import urllib.parse
import zlib
from collections import Counter
from typing import Any

from ghost.patterns import lazy
from ghost.redaction.argument_lists import redact_arguments
from ghost.redaction.bigram_filter import present
from ghost.redaction.containers import redact_containers
from ghost.redaction.cut_text import redact_end
from ghost.redaction.field_pairs import redact_pairs
from ghost.redaction.memory_dumps import redact_dumps
from ghost.redaction.named_values import redact_named_values
from ghost.redaction.secret_names import name_cores
from ghost.redaction.secret_values import MARKER, Counts, Rule
from ghost.redaction.shapes import has_anchor, redact_shapes
from ghost.redaction.tables import redact_columns
from ghost.redaction.time_limit import check_time

_PASSES_BY_WORD = 4  # more only ever find what was made to be found; then whole lines go
_MAX_PASSES = 8  # and then everything
_MAX_WRAPPINGS = 2


def redact(text: str) -> tuple[str, dict[str, Any]]:
    """Return `text` without secrets, colour codes and invisible characters, and metadata as `described` has it.

    Idempotent: redacting the result again changes nothing.
    """
    counts: Counts = Counter()
    text = plain(text)
    for number in range(_MAX_PASSES):
        found: Counts = Counter()
        text_with_end = redact_end(text, found, lambda end, counted: _one_pass(end, counted, _MAX_WRAPPINGS))
        following = _one_pass(text_with_end, found)
        if not found:
            break
        counts += found
        text = following if number < _PASSES_BY_WORD else _without_lines(text, following)
    else:
        text = MARKER
    return text, described(counts)


def may_hold_secret(text: str) -> bool:
    """Whether a short text contains letters of a known name or shape: a cheap test before `redact`."""
    return has_anchor(text) or next(name_cores(text), None) is not None


def described(counts: Counts) -> dict[str, Any]:
    """Return the metadata of a response: number of secrets, their categories, and the number by rule id."""
    by_id: Counter[str] = Counter()
    for rule, number in counts.items():
        by_id[rule.id] += number
    return {
        "redactions_applied": bool(counts),
        "redaction_count": counts.total(),
        "redaction_categories": sorted({rule.category for rule in counts}),
        "redaction_rules": dict(sorted(by_id.items())),
    }


def _without_lines(text: str, following: str) -> str:
    """Return the text without the lines that still change from pass to pass."""
    before, after = text.split("\n"), following.split("\n")
    if len(before) != len(after):
        return MARKER
    return "\n".join(line if line == changed else MARKER for line, changed in zip(before, after, strict=True))


def plain(text: str) -> str:
    """Return `text` without terminal control sequences and invisible characters, which may split a secret."""
    if text.isascii() and not _CONTROL.search(text):
        return text
    if "\0" in text:
        text = _NUL.sub(_without_nul, text.rstrip("\0"))
    text = _ANSI.sub("", text)
    text = _OVERSTRUCK.sub("", text)
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _one_pass(text: str, counts: Counts, depth: int = 0) -> str:
    check_time()
    if depth < _MAX_WRAPPINGS:
        if '"' in text and "\\" in text:
            seen: dict[str, tuple[str, Counts]] = {}
            text = _STRING.sub(lambda match: _look_into_string(match, counts, depth, seen), text)
        text = redact_dumps(text, counts, lambda inner, found: _one_pass(inner, found, _MAX_WRAPPINGS))
    text = redact_columns(text, counts)  # while they stand where their header says
    text = redact_arguments(text, counts)
    text = redact_shapes(text, counts)
    text = redact_containers(text, counts)
    text = redact_pairs(text, counts)
    check_time()
    text = redact_named_values(text, counts)
    if depth < _MAX_WRAPPINGS:
        text = _wrapped(text, counts, depth)
    return text


# Wrapped text: base64, hexadecimal, URL encoding and JSON strings of several lines.

_STRING = lazy(r"\"(?P<content>(?:[^\"\\\n]|\\.)*+)\"?")  # one that has no end is passed over too

_BASE64_RUN = lazy(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+={0,2}")
_HEX_RUN = lazy(r"=(?:[2-7][0-9A-Fa-f]|0[09aAdD]){10,}+(?!\w)")  # as the kernel's audit writes a command
_OF_AUDIT = ("audit(", "proctitle=", "cmd=")
_URL_ENCODED = lazy(r"(?<![^\s\"'<>])(?=[^\s\"'<>%]{0,4096}%)[^\s\"'<>]++")


def _wrapped(text: str, counts: Counts, depth: int) -> str:
    text = _BASE64_RUN.sub(lambda match: _look_into_base64(match, counts, depth), text)
    if present(text, _OF_AUDIT):
        text = _HEX_RUN.sub(lambda match: _look_into_hex(match, counts, depth), text)
    if "%" in text:
        text = _URL_ENCODED.sub(lambda match: _look_into_url(match[0], counts, depth), text)
    return text


def _look_into_string(match: re.Match[str], counts: Counts, depth: int, seen: dict[str, tuple[str, Counts]]) -> str:
    content = match["content"]
    if "\\" not in content:
        return match[0]
    if content not in seen:
        seen[content] = _string_redacted(content, depth)
    redacted, found = seen[content]
    if not found:
        return match[0]
    counts += found
    start, end = match.start("content") - match.start(), match.end("content") - match.start()
    return match[0][:start] + redacted + match[0][end:]


def _string_redacted(content: str, depth: int) -> tuple[str, Counts]:
    """Return the redacted content of a JSON string and the counts by rule."""
    found: Counts = Counter()
    try:
        inner = plain(json.loads(f'"{content}"', strict=False))
    except ValueError:
        return content, found
    is_of_lines = any(mark in inner for mark in ("\n", "\t", "\\n"))
    if not is_of_lines and not may_hold_secret(inner):
        return content, found
    redacted = _one_pass(inner, found, depth + 1)
    return json.dumps(redacted, ensure_ascii=False)[1:-1], found


def _look_into_base64(match: re.Match[str], counts: Counts, depth: int) -> str:
    run = match[0]
    inner = _decoded(run)
    if inner is None:
        return run
    preceding = match.string[max(0, match.start() - 8) : match.start()].lower()
    found: Counts = Counter()
    if preceding.rstrip().endswith("basic") and ":" in inner:
        found[Rule("password", "basic-login")] += 1
    else:
        _one_pass(inner, found, depth + 1)
    if not found:
        return run
    counts.update(dict.fromkeys(found, 1))
    return MARKER


def _look_into_hex(match: re.Match[str], counts: Counts, depth: int) -> str:
    found: Counts = Counter()
    _one_pass(plain(bytes.fromhex(match[0][1:]).replace(b"\0", b" ").decode("ascii", "replace")), found, depth + 1)
    counts.update(dict.fromkeys(found, 1))
    return f"={MARKER}" if found else match[0]


def _decoded(run: str) -> str | None:
    """Return the text that base64 encodes, also gzipped; None if it encodes no text."""
    content = run.rstrip("=").replace("-", "+").replace("_", "/")[: 65_536 * 4]
    content = content[: len(content) - (len(content) % 4 == 1)]
    try:
        start = base64.b64decode(content[:24] if len(content) >= 24 else content + "=" * (-len(content) % 4))
        if not start.startswith(_GZIP) and _text_of(start) is None:
            return None
        return _text_of(_inflated(base64.b64decode(content + "=" * (-len(content) % 4))))
    except (binascii.Error, zlib.error, ValueError):
        return None


_GZIP = b"\x1f\x8b"
_MAX_INFLATED = 16  # times its length: more than any script or answer


def _inflated(raw: bytes) -> bytes:
    """Return gzip content (RFC 1952), as custom scripts have it; other bytes unchanged."""
    if not raw.startswith(_GZIP):
        return raw
    return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(raw, _MAX_INFLATED * len(raw))


def _text_of(raw: bytes) -> str | None:
    """Return bytes decoded as UTF-8 or UTF-16, also if cut inside a character; None if they are no text."""
    if raw[1::2].count(0) > len(raw) // 3:
        raw = raw[0::2]  # as PowerShell encodes commands
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw).replace("\0", "")
    except UnicodeDecodeError:
        return None
    return text if text and text.translate(_BLANKS).isprintable() else None


_BLANKS = str.maketrans("\r\n\t", "   ")


def _look_into_url(run: str, counts: Counts, depth: int) -> str:
    inner = urllib.parse.unquote(run)
    if inner == run:
        return run
    found: Counts = Counter()
    redacted = _one_pass(inner, found, depth + 1)
    if not found:
        return run
    counts += found
    return redacted


# Controls

# What is not whole loses its introducer alone: in JSON a string's end may follow.
_ANSI = lazy(
    r"(?:\x1b\[|\x9b)[0-?]*+(?:[ -/]*+[@-~])?|(?:\x1b\]|\x9d)(?:[^\x07\x1b\x9c\x9d\n]*+(?:\x07|\x1b\\|\x9c))?"
    r"|\x1b[PX^_](?:[^\x1b\x9c\n]*+(?:\x1b\\|\x9c))?|\x1b(?:[ -/]*+[0-~])?"
)
_OVERSTRUCK = lazy(r".\x08")
# A NUL ends a string: before the next variable (`/proc/PID/environ`, `env -0`) it is the end of a line, between the
# words of a command line (`/proc/PID/cmdline`) a blank. Behind each of several letters it is the other half of UTF-16.
_NUL = lazy(r"(?P<wide>(?:[^\0]\0){4,}+)|\0++(?P<variable>(?=[A-Za-z_][\w.%]{0,200}+=))?")


def _without_nul(match: re.Match[str]) -> str:
    if match["wide"] is not None:
        return match[0].replace("\0", "")
    return "\n" if match["variable"] is not None else " "


# What nobody sees, as a class of characters has it.
_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_CONTROL = lazy(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]")
