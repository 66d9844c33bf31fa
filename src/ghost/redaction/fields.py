"""Secrets whose name is the value of another field, cell or element: `{"name": "password", "value": "..."}`.

Also values nested below their name: `"password": {"value": "..."}`, blocks of YAML or HCL. `[fields]` of
`redaction.toml` lists the fields for names and for values. Every search is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ghost.patterns import lazy
from ghost.redaction.secret_names import Name, secret_kind
from ghost.redaction.secret_values import MARKER, POLICY, is_mixed, is_open
from ghost.redaction.statements import is_ordinary
from ghost.redaction.value_places import Found, assigned_value, end_of, extend_reach, strings_of, value_group

_REACH = 240  # between a field with a name and the field with its value
_FIELDS_BETWEEN = 4
FIELD_NAMES = frozenset(POLICY["fields"]["names"])
FIELD_VALUES = frozenset(POLICY["fields"]["values"])
FIELD_ASIDES = frozenset(POLICY["fields"]["asides"])
_FIELD = lazy(
    r"(?<![\w.#-])(?:(?<=[\"'])(?:[\w-]{1,40}\.){1,3})?(?P<name>[\w#-]{1,24}+)(?=\\{0,3}[\"']?[ \t]{0,8}(?::?=>?|:))"
)
_PATH_REACH = 400  # ids of Azure resources are as long
_PATH_TO_NAME = lazy(rf"\s{{0,20}}\\{{0,3}}[\"']?(?:(?:[\w./$@ -]|:(?!\s)){{0,60}}|/[\w./-]{{0,{_PATH_REACH}}})")
_OUTSIDE = lazy(r"[{}<>;]|\n[ \t]{0,80}-[ ]|\n[ \t]{0,8}\n")  # what ends the record that fields belong to
_FIELD_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-#"
_OPENS = lazy(r"[\"']?[ \t]{0,8}[:=]{0,2}>?[ \t\n]{0,40}(?:\[[ \t\n]{0,40})?\{|[\"']?:[ \t]{0,8}(?=\n[ \t])")

Telling = Callable[[str], bool]
"""Whether a value shows that it is a secret, beside a name that does not say so for certain."""


def secret_in_field(name: Name, done: int, shows_secret: Telling) -> Found | None:
    """Return span and replacement of the secret whose `name` has a field or cell of its own; not before `done`."""
    found = None
    own = _own_field(name)
    if own is not None:
        found = _in_next_field(name, shows_secret, own) or _in_field_before(name, own, done, shows_secret)
    if name.is_element:
        found = found or _in_next_field(name, shows_secret)
    return found or _below(name, shows_secret) or _in_next_cell(name, shows_secret)


def _own_field(name: Name) -> int | None:
    """Return the start of the field whose value is the name (`name: db/password`), or None."""
    first = max(0, name.start - _PATH_REACH)
    mark = _last_mark(name.text, first, name.start)
    while mark is not None and _PATH_TO_NAME.fullmatch(name.text, mark + 1, name.start) is not None:
        start, word = _word_before(name.text, mark)
        if word in FIELD_NAMES:
            return start
        if name.text[mark] != ":":
            return None
        mark = _last_mark(name.text, first, mark)  # it parts the words of a name: `Smtp:Password`
    return None


def _last_mark(text: str, first: int, end: int) -> int | None:
    mark = max(text.rfind(":", first, end), text.rfind("=", first, end))
    return mark if mark >= 0 else None


def _word_before(text: str, mark: int) -> tuple[int, str]:
    before = text[max(0, mark - 32) : mark].rstrip(" \t\"'\\:=>")
    word = before[len(before.rstrip(_FIELD_CHARACTERS)) :]
    return max(0, mark - 32) + len(before) - len(word), word.lower()


def _in_next_field(name: Name, shows_secret: Telling, own: int | None = None) -> Found | None:
    text, limit = name.text, min(len(name.text), name.end + _REACH)
    outside = _OUTSIDE.search(text, name.end, limit)
    for field in _FIELD.finditer(text, name.end, limit if outside is None else outside.start()):
        if (word := field["name"].lower()) in FIELD_NAMES:
            if own is not None and word in FIELD_ASIDES and not name.text.startswith(field["name"], own):
                continue
            return None
        if word in FIELD_VALUES and (found := _assigned(text, field.end(), shows_secret)) is not None:
            return found
    return None


def _in_field_before(name: Name, own: int, done: int, shows_secret: Telling) -> Found | None:
    text = name.text
    first = max(done, own - _REACH)
    first = max((end.end() for end in _OUTSIDE.finditer(text, first, own)), default=first)
    found: Found | None = None
    position = own
    for _ in range(_FIELDS_BETWEEN):
        mark = _last_mark(text, first, position)
        if mark is None:
            return found
        position, word = _word_before(text, mark)
        if word in FIELD_NAMES:
            return None  # the values before belong to that name
        if word in FIELD_VALUES:
            found = _assigned(text, position + len(word), shows_secret, own) or found
    return found


def _below(name: Name, shows_secret: Telling) -> Found | None:
    text = name.text
    opening = _OPENS.match(text, name.end)
    if opening is None:
        return None
    earliest = max(0, name.start - 200)
    line = text.rfind("\n", earliest, name.start) + 1 or earliest
    words = text[line : name.end]
    depth = len(words) - len(words.lstrip(" \t-"))
    limit = min(len(text), opening.end() + _REACH)
    outside = _OUTSIDE.search(text, opening.end(), limit)
    for field in _FIELD.finditer(text, opening.end(), limit if outside is None else outside.start()):
        between = text[opening.end() : field.start()].split("\n")[1:]
        if not opening[0].endswith("{") and any(len(row) - len(row.lstrip()) <= depth for row in between):
            return None
        if field["name"].lower() in FIELD_VALUES and (found := _assigned(text, field.end(), shows_secret)) is not None:
            return found
    return None


def _assigned(text: str, position: int, shows_secret: Telling, limit: int | None = None) -> Found | None:
    def find(reach: int) -> Found | None:
        match = assigned_value(text, position, reach)
        if match is None or match["list"] is not None or match["items"] is not None:
            return None
        group = value_group(match)
        value = match[group]
        if not value.strip() or is_open(value) or not any(map(shows_secret, strings_of(match))):
            return None
        start, end = match.start(group), end_of(match, group)
        return start, end, f'"{MARKER}"' if group == "bare" and text.startswith('"', position) else MARKER

    return extend_reach(position, len(text) if limit is None else limit, find)


# Cells: rows of two, elements side by side, literals of two strings.

_ROW = lazy(
    r"[\"'`*]{0,2}(?P<mark>(?P<bar>[ \t]{0,40}[|│┃║¦][ \t]{0,40})|[,;\t])"
    r"(?P<value>\"[^\"\n]{1,400}\"|(?(bar)[^\s|│┃║¦][^|│┃║¦\n]{0,400}?|[^\s,;|│┃║¦\"'][^,;|│┃║¦\n]{0,400}?))"
    r"(?:[ \t]{0,40}[|│┃║¦]{0,2}[ \t]{0,8}(?=\n|$)|(?P<further>(?=[,;\t]|[ \t]{1,40}[|│┃║¦][ \t])))"
)
_ROW_START = lazy(r"[ \t]{0,40}[|│┃║¦]{0,2}[ \t]{0,8}[\"'`*]{0,2}[\w ./:-]{0,60}$")
_ROW_ABOVE = lazy(r"(?:^|\n)[^,;\t|\n]{1,200}[,;\t|][^,;\t|\n]{1,200}\n$")
_ELEMENTS = lazy(
    r":?\s{0,8}</(?P<closed>\w{1,20})>\s{0,80}(?:</\w{1,20}>\s{0,80})?<(?P<opened>\w{1,20})(?:\s[^<>]{0,200})?>(?:<\w{1,10}>)?"
    r"\s{0,40}(?P<value>[^<>\s][^<>\n]{0,400})<"
)
_LITERAL = lazy(
    r"(?P<quote>[\"']),\s{0,40}[NubB]?(?P=quote)(?P<value>(?:(?!(?P=quote))[^\n\\]|\\.){1,400}+)(?P=quote)"
    r"\s{0,40}[\])}]"
)
_LITERAL_START = lazy(r"[\[({]\s{0,40}[NubB]?[\"'][\w./:-]{0,60}$")
_FORM = lazy(r"\"(?:; ?[^\n]{0,100})?\n(?:[A-Z][\w-]{1,30}: [^\n]{0,100}\n){0,3}\n(?P<value>[^\n]{1,400})")


def _in_next_cell(name: Name, shows_secret: Telling) -> Found | None:
    text, line = name.text, name.text.rfind("\n", max(0, name.start - 200), name.start) + 1
    match: re.Match[str] | None = None
    before = text[max(line, name.start - 100) : name.start]
    if (row := _ROW.match(text, name.end)) is not None and _ROW_START.fullmatch(before) is not None:
        listed = row["mark"] in (",", ";")
        in_table = _ROW_ABOVE.search(text[max(0, line - 400) : line]) is not None
        if (not listed and (row["further"] is None or is_mixed(row["value"]))) or (
            listed and " " not in row["value"].strip('"') and (in_table or is_mixed(row["value"]))
        ):
            match = row
    elif text.startswith(("<", ":<", " <", ": <"), name.end) and (side := _ELEMENTS.match(text, name.end)) is not None:
        match = side if side["closed"] != "th" or side["opened"] != "th" else None
    elif (pair := _LITERAL.match(text, name.end)) is not None and _LITERAL_START.search(before) is not None:
        match = pair
    elif before.endswith('name="') and (form := _FORM.match(text, name.end)) is not None:
        match = form
    if match is None or not _may_be_secret(match["value"].strip("\"'`* "), shows_secret):
        return None
    start, end = match.span("value")
    return start, end, f'"{MARKER}"' if match["value"].startswith('"') else MARKER


def _may_be_secret(value: str, shows_secret: Telling) -> bool:
    if len(value) < 3 or is_open(value) or is_ordinary(value) or not shows_secret(value):
        return False
    return is_mixed(value) or secret_kind(value) is None
