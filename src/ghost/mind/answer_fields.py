"""Values of the required fields in a person's answer.

Three forms: a JSON object; `field: value` on separate lines, or on one line with `;` or `,` before each further field,
where lines without a field belong to the field before; and the whole text, if one field is required. Names match
regardless of case, `_`, `-` and blanks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_LINE = re.compile(r"[-*]?\s{0,8}(?P<name>[^\W_][\w \-]{0,60}?)\s*[:=]\s*(?P<value>.*)")


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
