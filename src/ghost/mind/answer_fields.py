"""Values of the required fields in a person's answer.

Three forms: a JSON object; `field: value` on separate lines, or on one line with `;` or `,` before each further field,
where lines without a field belong to the field before; and the whole text, if one field is required. Names match
regardless of case, `_`, `-` and blanks. A field has a type by its name (`answer_types.toml`), and its value has to fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from ipaddress import ip_interface

from ghost.policy import load_policy

_LINE = re.compile(r"[-*]?\s{0,8}(?P<name>[^\W_][\w \-]{0,60}?)\s*[:=]\s*(?P<value>.*)")
_MAX_VALUE = 500
"""Maximum characters of a value other than text."""


@dataclass(frozen=True)
class FieldType:
    wanted: str
    """What a value has to be, in words."""
    pattern: tuple[str, ...]
    stated: tuple[str, ...]
    """Finds that a text gives such a value; empty where no pattern can tell."""

    @cached_property
    def fitting(self) -> re.Pattern[str]:
        return re.compile("|".join(self.pattern), re.IGNORECASE | re.DOTALL)

    @cached_property
    def giving(self) -> re.Pattern[str] | None:
        return re.compile("|".join(self.stated), re.IGNORECASE) if self.stated else None


@dataclass(frozen=True)
class _Wondered:
    pattern: str
    field: str


@dataclass(frozen=True)
class _Table:
    types: dict[str, FieldType]
    fields: dict[str, str]
    asks: dict[str, str]
    wondered: tuple[_Wondered, ...]


def type_name(field: str) -> str:
    """Return the name of a field's type: `text` for unknown ones."""
    words = _same(field).split("_")
    if words[0] in _table().asks["words"].split() and len(words) > 1:
        return "yes_no"
    return _table().fields.get(_same(field)) or _table().fields.get(words[-1], "text")


def type_of(field: str) -> FieldType:
    return _table().types[type_name(field)]


def wondered(question: str) -> str:
    """Return the field that a question without required fields asks for; `text` if it is not clear."""
    return next((each.field for each in _table().wondered if re.search(each.pattern, question, re.IGNORECASE)), "text")


def fitted(values: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the values that fit their fields' types, in plain form, and the names of the others."""
    fitting = {name: _fitted(name, value) for name, value in values.items()}
    return {name: value for name, value in fitting.items() if value}, [name for name, v in fitting.items() if not v]


def _fitted(name: str, value: str) -> str:
    """Return the value in plain form; empty if it does not fit."""
    kind = type_name(name)
    if kind != "text" and len(value) > _MAX_VALUE:
        return ""
    found = type_of(name).fitting.fullmatch(value.strip())
    if found is None:
        return ""
    plain = found["value"].strip()
    if kind == "port":
        return plain if 1 <= int(plain) <= 65535 else ""
    if kind == "address":
        try:
            ip_interface(plain)
        except ValueError:
            return ""
    return plain


@cache
def _table() -> _Table:
    return load_policy(__file__, "answer_types.toml", _Table)


def fields_of(text: str, required: Sequence[str]) -> dict[str, str]:
    """Return the non-blank values of the required fields found in the text."""
    names = {_same(name): name for name in required}
    values = _from_json(text, names) or _from_lines(text, names)
    if not values and len(required) == 1 and text.strip() and not _is_object(text):
        values = {required[0]: text.strip()}
    return {name: value for name, value in values.items() if value.strip()}


def _from_json(text: str, names: dict[str, str]) -> dict[str, str]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {
        names[_same(name)]: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
        if _same(name) in names and value is not None
    }


def _from_lines(text: str, names: dict[str, str]) -> dict[str, str]:
    values: dict[str, str] = {}
    current: str | None = None
    for line in _on_separate_lines(text, names).splitlines():
        found = _LINE.fullmatch(line.strip())
        if found and _same(found["name"]) in names:
            current = names[_same(found["name"])]
            values[current] = found["value"].strip()
        elif current is not None:
            values[current] = f"{values[current]}\n{line.strip()}".strip()
    return values


def _on_separate_lines(text: str, names: dict[str, str]) -> str:
    """Insert a line break before each required field that follows `;` or `,`; other commas belong to a value."""
    if not names:
        return text
    spelled = "|".join(re.escape(name).replace("_", r"[\s_-]{1,3}") for name in names)
    return re.sub(rf"[;,]\s*(?=(?:{spelled})\s*[:=])", "\n", text, flags=re.IGNORECASE)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _same(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())
