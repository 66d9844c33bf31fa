"""What the end of a long output stands in: the lines, far before it, without which its secrets are not told.

A secret may be known by the head of its column, by the statement whose row it is in, or by the line that its block
belongs to. Where the middle of an output is not read, those lines are looked for in it and read before its end. Where
it is not certain that the end still belongs to them, it is taken to: rather too much goes than too little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from ghost.redaction.secrets_in_inserts import insertion_before
from ghost.redaction.secrets_in_rows import row_reader

_STRETCH = 1 << 16  # of so many characters at once the lines are looked through, from the last backwards
_LONGEST_LINE = 2_000
_LEVELS = 24
_HEADERS_TRIED = 400
_ROWS_TRIED = 4
_FIRST_LINES = 8  # of what a blank line parts from the rest
_HEADER = re.compile(
    r"(?im)^(?=[^\n]{0,2000}(?:pass|pwd|secret|token|key|psk|credential|community|kennwort))[\w .()|,;\"\t-]{3,2000}$"
)
_KIND = re.compile(r"(?m)^[ \t]{0,40}kind:[ \t]+Secret[ \t]*$|\"kind\"\s{0,8}:\s{0,8}\"Secret\"")
_DATA = re.compile(r"\s*(?:- )?\"?(?:data|stringData)\"?:")


def opening_of(text: str, position: int) -> list[str]:
    """The lines before `position`, the beginning of a line, that what begins there may belong to, the nearest last."""
    line = text[position : position + _LONGEST_LINE].lstrip("\n").partition("\n")[0]
    if line.startswith((" ", "\t", "- ")):
        return _parents(text, position, line)
    if line.startswith("(") and (insertion := insertion_before(text, position)) is not None:
        return [insertion]
    header = _header(text, position)
    return [header] if header is not None else []


def _parents(text: str, position: int, line: str) -> list[str]:
    """The lines that are indented less, each less than the next."""
    parents: list[str] = []
    depth = len(line) - len(line.lstrip())
    is_item = line.lstrip().startswith("- ")
    while (depth > 0 or is_item) and len(parents) < _LEVELS:
        mark = r"(?!- )" if is_item else ""
        shallow = re.compile(
            rf"(?m)^(?P<indent>[ \t]{{0,{max(0, depth - (not is_item))}}}){mark}[^\s][^\n]{{0,{_LONGEST_LINE}}}"
        )
        found = _last_match(shallow, text, position)
        if found is None:
            break
        parents.append(found[0])
        depth, position = len(found["indent"]), found.start()
        is_item = found[0].lstrip().startswith("- ")
    if any(_DATA.match(parent) for parent in parents) and _KIND.search(text) is not None:
        parents.append("kind: Secret")
    return parents[::-1]


def _header(text: str, position: int) -> str | None:
    """The head of a table with columns of secrets, of which the last lines before `position` may be rows."""
    blank = text.rfind("\n\n", 0, position) + 2
    start = blank if blank > 1 else 0
    before = [row for row in text[max(start, position - _LONGEST_LINE) : position].split("\n")[1:] if row.strip()]
    first = [line for line in text[start : start + _LONGEST_LINE].split("\n")[:_FIRST_LINES] if _HEADER.fullmatch(line)]
    nearest = islice(_matches_backwards(_HEADER, text, start, position), _HEADERS_TRIED)
    for header in chain((found[0] for found in nearest), first):
        is_row = row_reader(header)
        if is_row is not None and all(map(is_row, before[-_ROWS_TRIED:])):
            return header
    return None


def _last_match(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    return next(_matches_backwards(pattern, text, 0, end), None)


def _matches_backwards(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """The matches of a pattern of whole lines, the last first."""
    while end > start:
        first = text.rfind("\n", start, max(start, end - _STRETCH)) + 1
        first = max(first, start)
        yield from reversed(list(pattern.finditer(text, first, end)))
        end = first
