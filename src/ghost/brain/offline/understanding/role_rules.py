"""The rules of `roles.toml`, with the words of their classes put in."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from ghost.policy import load_policy

FIRST_MASK: Final = 0xE000
MASK: Final = "[\ue000-\uf8ff]"
"""What stands for a mention, one character each: of Unicode's private use, so that no sentence has it."""
_GAP: Final = "[^\ue000-\uf8ff]{0,80}?"


@cache
def rules(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_compiled(text), re.IGNORECASE) for text in _table()[kind])


@cache
def words(names: str) -> re.Pattern[str]:
    """Return a pattern of the words of these classes, `NEG|DOWN`."""
    return re.compile(rf"\b(?:{_expanded(names)})\b", re.IGNORECASE)


@cache
def pattern(name: str) -> re.Pattern[str]:
    return re.compile(_table()["patterns"][name].replace("<m>", MASK), re.IGNORECASE)


@cache
def _table() -> dict[str, Any]:
    return {name: _whole(value) for name, value in load_policy(__file__, "roles.toml").items()}


def _whole(table: Any) -> Any:
    """Return a table with each text that is written in parts put together."""
    if isinstance(table, dict):
        return {name: "".join(parts) for name, parts in table.items()}
    return ["".join(parts) for parts in table]


def _compiled(text: str) -> str:
    text, lead = _expanded(text).replace(" ... ", _GAP), _table()["patterns"]["lead"]
    return text.replace("<s>", f"{lead}(?P<s>{MASK})").replace("<d>", f"{lead}(?P<d>{MASK})")


def _expanded(text: str) -> str:
    for _ in range(2):
        for name, alternatives in _table()["words"].items():
            text = re.sub(rf"\b{name}\b", rf"\b(?:{alternatives})\b".replace("\\", r"\\"), text)
    return text
