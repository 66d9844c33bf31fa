"""The layout of the mind's prompts, readable by models and the stub: see `docs/providers.md`.

Sections of items, one item per line. White space in an item is folded, so that external text cannot begin a section or
an item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_ITEM = re.compile(r"- \[(?P<id>[^\]\n]*)\] ?(?P<text>.*)", re.DOTALL)


class Item(NamedTuple):
    id: str
    text: str


def write_prompt(sections: Mapping[str, Iterable[Item]]) -> str:
    """Return `## Name` followed by items `- [id] text` for every section; an empty section says so."""
    return "\n\n".join(_section(name, items) for name, items in sections.items()) + "\n"


def read_prompt(prompt: str) -> dict[str, list[Item]]:
    """Return the sections of a prompt by name. Text outside sections is skipped; a line that is not an item is an
    item without id.
    """
    sections: dict[str, list[Item]] = {}
    items: list[Item] | None = None
    for line in prompt.split("\n"):
        if line.startswith("## "):
            items = sections.setdefault(line[3:].strip(), [])
        elif items is not None and line.strip() and line != _NOTHING:
            found = _ITEM.fullmatch(line)
            items.append(Item(found["id"], found["text"].strip()) if found else Item("", line.strip()))
    return sections


_NOTHING = "(none)"


def _section(name: str, items: Iterable[Item]) -> str:
    lines = [f"- [{_folded(item.id).replace(']', ')')}] {_folded(item.text)}" for item in items]
    return "\n".join([f"## {_folded(name)}", *(lines or [_NOTHING])])


def _folded(text: str) -> str:
    return " ".join(text.split())
