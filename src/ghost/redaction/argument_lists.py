"""Secrets in argument lists, as manifests, `docker inspect` and strace print them: `["mysql", "-uroot", "-pX"]`.

A list is joined to the command line it stands for and redacted by the same shapes; the result is written back to the
list. Each list is read once.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from ghost.patterns import lazy
from ghost.redaction.bigram_filter import present
from ghost.redaction.secret_values import POLICY, Counts, Rule
from ghost.redaction.shapes import redact_shapes

_STRING = r"(?:\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+')"
_ROW = rf"\[\s{{0,80}}+(?P<row>{_STRING}(?:\s{{0,8}}+,\s{{0,80}}+{_STRING})++)"
_ITEM = r"(?:\"(?:[^\"\\\n]|\\.)*+\"|'[^'\n]*+'|[^\n\"'][^\n]*+)[ \t]*+"
_LINES = rf"(?m:^)(?P<lines>(?P<dent>[ \t]{{0,80}}+)-[ ]{_ITEM}(?:\n(?P=dent)-[ ]{_ITEM})++)"
_ROWS = lazy(_ROW)
_LISTS = lazy(_LINES)
_ROW_ITEM = lazy(_STRING)
_LINE_ITEM = lazy(rf"(?m:^)[ \t]{{0,80}}+-[ ](?P<item>{_ITEM})")
_OF_A_ROW = ('"-', "'-")
_OF_LINES = ("- -", '- "-', "- '-")
_PROGRAMS = tuple(POLICY["arguments"]["programs"])
_LONGEST = 16_384
# What stands inside an argument, and would part or quote it on a line: letters that no text has.
_INSIDE = str.maketrans({" ": "\ue000", "\t": "\ue001", '"': "\ue002", "'": "\ue003"})
_BACK = str.maketrans({"\ue000": " ", "\ue001": "\t", "\ue002": '"', "\ue003": "'"})


def redact_arguments(text: str, counts: Counts) -> str:
    """Return `text` without the secrets in argument lists."""
    of_programs = present(text, _PROGRAMS)
    if of_programs or present(text, _OF_A_ROW):
        text = _ROWS.sub(lambda match: _redacted(match, "row", _ROW_ITEM, 0, counts), text)
    if of_programs or present(text, _OF_LINES):
        text = _LISTS.sub(lambda match: _redacted(match, "lines", _LINE_ITEM, "item", counts), text)
    return text


def _redacted(match: re.Match[str], group: str, items: re.Pattern[str], part: str | int, counts: Counts) -> str:
    listed = match[group]
    if len(listed) > _LONGEST or not present(listed, (*_OF_A_ROW, *_OF_LINES, *_PROGRAMS)):
        return match[0]
    spans = [item.span(part) for item in items.finditer(listed)]
    arguments = [listed[start:end].strip().strip("\"'") for start, end in spans]
    shown, found = _read_as_line(tuple(arguments))
    if not found:
        return match[0]
    counts.update(dict(found))
    pieces: list[str] = []
    done = 0
    for (start, end), before, after in zip(spans, arguments, shown, strict=True):
        if before != after:
            pieces += [listed[done:start], listed[start:end].replace(before, after)]
            done = end
    shift = match.start(group) - match.start()
    return match[0][:shift] + "".join([*pieces, listed[done:]]) + match[0][shift + len(listed) :]


@lru_cache(maxsize=256)
def _read_as_line(arguments: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[tuple[Rule, int], ...]]:
    """Return the redacted arguments and the counts by rule; both empty if the line cannot be split into them again."""
    found: Counts = Counter()
    line = redact_shapes(" ".join(argument.translate(_INSIDE) for argument in arguments), found)
    words = tuple(word.translate(_BACK) for word in line.split(" "))
    return (words, tuple(found.items())) if found and len(words) == len(arguments) else ((), ())
