"""Output of a stopped program, which may end anywhere: drops an end that could be part of a secret.

What tells a secret may stand behind it: on the same line (`user:X@host`), or further down in the same object of JSON
(`"value": "X"`, and then the id of a shared key). So of such output neither an unfinished line is shown nor, in JSON
that ends too early, a value that what follows would have named. Numbers, and a prompt that waits, stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.redaction import FIELD_ASIDES, FIELD_NAMES, FIELD_VALUES, MARKER, Counts, Rule, is_open, secret_kind
from ghost.shell.record.bounded_json import read_json
from ghost.shell.record.credential_answers import is_open_value

REACH = 512
"""Of a longer line as many characters go, and the word that they begin in: no more is looked at to tell a secret."""
UNFINISHED = " characters of an unfinished line omitted]"

_COMMANDS = tuple(
    lazy(pattern) for pattern in load_policy(Path(__file__).parents[1] / "policy", "cut_output.toml")["commands"]
)
_NUMBER = r"[\d.,:%*/()\[\]+-]{1,45}"
_NUMBERS = lazy(
    rf"[ \t]*(?:(?:{_NUMBER}|[a-z]{{1,2}}|(?P<name>[A-Za-z]\w{{0,23}})[=:](?P<number>[\d.]{{1,12}}),?)[ \t]+)"
)
_LAST_NUMBER = lazy(rf"[ \t]*(?:{_NUMBER}|[a-z]{{1,2}}|(?P<name>[A-Za-z]\w{{0,23}})[=:](?P<number>[\d.]{{1,12}}))")
_STATUS_DIGITS = 3  # `code=000`
_PROMPT = lazy(r"[^\n]{0,200}[:?] ")
_WHOLE_PAGE = lazy(r"</html>[ \t]*", re.IGNORECASE)
_TOKEN = lazy(r"\"(?P<string>(?:[^\"\\]|\\.)*+)(?:\"(?P<colon>\s{0,40}+:)?|\\?\Z)|[{}\[\],]", re.DOTALL)
_LAST_ELEMENT = lazy(r"<(?P<name>\w{1,40})>(?P<value>[^<>\n]{1,400})</(?P=name)>\s{0,80}(?:<[^<>]{0,80})?\Z")
_ITEM = lazy(r"(?m)^[ \t]*-[ ](?=[A-Za-z]\w{0,40}:)")
_FIELD = lazy(r"(?m)(?:^[ \t]*|(?<=- ))(?P<name>[A-Za-z]\w{0,40}):[ \t]+[\"']?(?P<value>[^\s\"'][^\n\"']{0,400})")
_NAMES = FIELD_NAMES - FIELD_ASIDES | {"id"}
_VALUES = FIELD_VALUES


def prints_a_part(words: Sequence[str]) -> bool:
    """Whether a command asks for a part of something: `head -c 100`, `curl -r 0-99`."""
    line = " ".join(words)
    return any(pattern.search(line) for pattern in _COMMANDS)


def without_unfinished_line(text: str) -> str:
    """`text` without an unfinished last line, and a note of how much was dropped."""
    start = text.rfind("\n") + 1
    line = text[start:]
    if not line.strip() or _PROMPT.fullmatch(line) or _WHOLE_PAGE.search(line[-20:]) or is_json(text):
        return text
    kept = _end_of_numbers(line) if len(line) <= REACH else _word_before(line, len(line) - REACH)
    if kept == len(line):
        return text
    shown = line[:kept].rstrip()
    note = f"[truncated: {len(line) - len(shown)}{UNFINISHED}"
    return f"{text[:start]}{shown}{' ' if shown else ''}{note}"


def _end_of_numbers(line: str) -> int:
    """Length of the part of a line that holds only numbers and harmless names, such as output of `curl -w`."""
    end = 0
    while (words := _NUMBERS.match(line, end)) is not None and _counts(words):
        end = words.end()
    last = _LAST_NUMBER.fullmatch(line, end)
    return len(line) if end == len(line) or (last is not None and _counts(last)) else end


def _counts(words: re.Match[str]) -> bool:
    if words["name"] is None or (kind := secret_kind(words["name"])) is None:
        return True
    return not kind[1] and len(words["number"]) <= _STATUS_DIGITS


def _word_before(line: str, end: int) -> int:
    edge = max(line.rfind(mark, 0, end) for mark in " \t,<>")
    return edge + 1 if edge >= 0 else 0


def is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        read_json(text)
    except ValueError:
        return False
    return True


@dataclass
class _Object:
    is_list: bool
    name: str = ""
    is_named: bool = False
    values: list[tuple[int, int]] = field(default_factory=list)


def without_unnamed_values(text: str, counts: Counts) -> str:
    """`text` without the values of unfinished records that have no name yet."""
    spans = _in_last_item(text[: text.rfind("\n") + 1])  # what stands on an unfinished line goes with it
    if '":' in text and not is_json(text):
        spans += [span for each in _open_objects(text) for span in each.values]
    pieces: list[str] = []
    done = 0
    for start, end in sorted(set(spans)):
        if start < done:
            continue
        pieces += [text[done:start], MARKER]
        counts[Rule("api_key", "unnamed-value")] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _open_objects(text: str) -> list[_Object]:
    """The objects and lists that have not ended where the text does."""
    stack = [_Object(is_list=True)]
    for token in _TOKEN.finditer(text):
        inner, mark = stack[-1], token[0]
        if mark in ("{", "["):
            stack.append(_Object(is_list=mark == "["))
        elif mark in ("}", "]"):
            del stack[max(1, len(stack) - 1) :]
        elif mark == ",":
            inner.name = ""
        elif token["colon"] is not None:
            inner.name = token["string"].lower()
            inner.is_named = inner.is_named or inner.name in _NAMES
        elif inner.name in _VALUES and not inner.is_named and not _is_harmless(token["string"]):
            inner.values.append(token.span("string"))
    stack[0].values = [span for span in stack[0].values if span[0] >= len(text) - REACH]  # of a part of an object
    return stack


def _in_last_item(text: str) -> list[tuple[int, int]]:
    """Values of the last item of YAML or element of XML that stand before a name could."""
    element = _LAST_ELEMENT.search(text, max(0, len(text) - REACH))
    if element is not None and element["name"].lower() in _VALUES and not _is_harmless(element["value"]):
        return [element.span("value")]
    items = list(_ITEM.finditer(text, max(0, len(text) - 4 * REACH)))
    fields = list(_FIELD.finditer(text, items[-1].start())) if items else []
    if any(each["name"].lower() in _NAMES for each in fields):
        return []
    values = [each for each in fields if each["name"].lower() in _VALUES and not _is_harmless(each["value"])]
    return [each.span("value") for each in values]


def _is_harmless(value: str) -> bool:
    return len(value) < 3 or is_open(value) or is_open_value(value)
