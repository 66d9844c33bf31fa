"""Secrets in text that was cut.

A text that ends inside a line is redacted as if it went on: `[[ending]]` of `redaction.toml` holds the endings and what
may follow them. If the middle of a long output is left out, the lines that name what comes after it (a table's header,
the parents of a YAML block) are searched in the part left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from ghost.patterns import lazy
from ghost.redaction.secret_values import MARKER, POLICY, Counts, Rule
from ghost.redaction.tables import row_reader

Redact = Callable[[str, Counts], str]

_REACH = 2_048


@dataclass(frozen=True)
class Ending:
    """An ending and what may follow it; `add` is empty if a group of `when` is the secret."""

    id: str
    when: re.Pattern[str]
    add: tuple[str, ...]
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def redact_end(text: str, counts: Counts, redact: Redact) -> str:
    """Return `text` without a secret at its end; unchanged if it ends with a whole line."""
    if not text or text.endswith("\n"):
        return text
    start = _start_of_end(text)
    end = text[start:]
    for ending in ENDINGS:
        if (found := ending.when.search(end)) is None:
            continue
        if found.lastgroup is not None and not found[found.lastgroup].startswith("[REDACTED"):
            end = end[: found.start(found.lastgroup)] + MARKER
            counts[Rule("password", f"end-{ending.id}")] += 1
        for added in ending.add:
            end = _as_if_followed(end, added, counts, redact)
    return text[:start] + end


def _start_of_end(text: str) -> int:
    """Return the start of the last lines that are searched; within a long line, the start of a word."""
    earliest = max(0, len(text) - _REACH)
    if earliest == 0:
        return 0
    edge = text.find("\n", earliest) + 1 or text.find(" ", earliest) + 1
    return edge or earliest


def _as_if_followed(end: str, added: str, counts: Counts, redact: Redact) -> str:
    """Return `end` without what becomes a secret only if `added` follows."""
    found: Counts = Counter()
    followed = redact(end + added, found)
    if not found or followed == redact(end, Counter()) + added:
        return end
    counts += found
    return followed.removesuffix(added)


def _load_endings(policy: dict[str, Any]) -> Iterator[Ending]:
    for row in policy["ending"]:
        yield Ending(
            row["id"], lazy(row["when"]), tuple(row.get("add", ())), tuple(row["must"]), tuple(row["must_not"])
        )


ENDINGS = tuple(_load_endings(POLICY))


# Lines before a cut that name what follows it.

_STRETCH = 1 << 16  # of so many characters at once the lines are looked through, from the last backwards
_LONGEST_LINE = 2_000
_LEVELS = 24
_HEADERS_TRIED = 400
_ROWS_TRIED = 4
_FIRST_LINES = 8  # of what a blank line parts from the rest
_HEADER = lazy(
    r"(?im)^(?=[^\n]{0,2000}(?:pass|pwd|secret|token|key|psk|credential|community|kennwort))[\w .()|,;\"\t-]{3,2000}$"
)
_KIND = lazy(r"(?m)^[ \t]{0,40}kind:[ \t]+Secret[ \t]*$|\"kind\"\s{0,8}:\s{0,8}\"Secret\"")
_DATA = lazy(r"\s*(?:- )?\"?(?:data|stringData)\"?:")


def opening_of(text: str, position: int) -> list[str]:
    """Return the lines before `position`, a line start, that name what follows: table header, YAML parents."""
    line = text[position : position + _LONGEST_LINE].lstrip("\n").partition("\n")[0]
    if line.startswith((" ", "\t", "- ")):
        return _parents(text, position, line)
    header = _header(text, position)
    return [header] if header is not None else []


def _parents(text: str, position: int, line: str) -> list[str]:
    """Return the parent lines, each less indented than the next."""
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
    """Return the header of a table with secret columns if the last lines before `position` fit as its rows."""
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
    """Yield the matches of a pattern of whole lines, last first."""
    while end > start:
        first = text.rfind("\n", start, max(start, end - _STRETCH)) + 1
        first = max(first, start)
        yield from reversed(list(pattern.finditer(text, first, end)))
        end = first
