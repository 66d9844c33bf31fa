"""How the mind's prompts are laid out, so that a model and the stub read them alike: see `docs/providers.md`.

Sections of items, one item a line. The text of an item has its white space folded, so that nothing that came from
outside can begin a section or an item of its own.
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
    """`## Name` and its items `- [id] text` below, for every section; a section without items says that it has none."""
    return "\n\n".join(_section(name, items) for name, items in sections.items()) + "\n"


def read_prompt(prompt: str) -> dict[str, list[Item]]:
    """The sections of a prompt by name. What stands outside a section is passed over; a line that is no item is an
    item without id."""
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
