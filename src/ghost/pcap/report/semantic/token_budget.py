"""Keeps a document within a number of tokens: the largest lists are cut first, the same way every time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BYTES_PER_TOKEN = 2.5
"""What JSON full of addresses and numbers has at the least; prose has more."""
_MAPS = frozenset(
    (
        "alerts", "hosts", "messages", "methods", "protocols_present", "query_type_distribution",
        "rcode_distribution", "server_names", "status_distribution", "top_queried_domains",
        "ttl_exceeded_sources", "type_distribution", "versions_chosen", "versions_offered",
    )
)  # fmt: skip
"""Maps that are lists of names with counts, most frequent first."""


def estimated_tokens(document: str) -> int:
    """An upper estimate of what a language model counts in JSON like this."""
    return int(len(document.encode()) / BYTES_PER_TOKEN) + 1


def dump(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """JSON with a line for each section and each finding: short for a model, readable for people."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            entries = ",\n".join(f"  {_compact(entry, ascii_only)}" for entry in value)
            lines.append(f"{_compact(key)}: [\n{entries}\n]")
        else:
            lines.append(f"{_compact(key)}: {_compact(value, ascii_only)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


@dataclass(slots=True)
class _List:
    """A list, or a map used as one, that may be cut."""

    path: str
    value: list[Any] | dict[str, Any]
    sizes: list[int]
    """Bytes of each entry."""

    @property
    def bytes(self) -> int:
        return sum(self.sizes)

    def cut(self, least: int) -> int:
        """Drop the last quarter, but keep `least`; returns the bytes saved."""
        keep = max(min(len(self.sizes) - 1, len(self.sizes) * 3 // 4), least)
        saved = sum(self.sizes[keep:])
        if isinstance(self.value, list):
            del self.value[keep:]
        else:
            for key in list(self.value)[keep:]:
                del self.value[key]
        del self.sizes[keep:]
        return saved


def cut(document: dict[str, Any], limit: int, least: int) -> None:
    """Cut the document's lists, the largest first, until it fits in `limit` tokens or all have `least` entries."""
    excess = len(dump(document).encode()) - int((limit - 1) * BYTES_PER_TOKEN)
    lists: list[_List] = []
    _collect(document, "", lists)
    while excess > 0:
        largest = max(
            (each for each in lists if len(each.sizes) > least), key=lambda each: (each.bytes, each.path), default=None
        )
        if largest is None:
            return
        excess -= largest.cut(least)


def _collect(value: Any, path: str, lists: list[_List]) -> None:
    """Only outermost lists: an entry is kept whole or dropped."""
    if isinstance(value, list):
        lists.append(_List(path, value, [_size(entry) for entry in value]))
    elif isinstance(value, dict):
        if path.rpartition("/")[2] in _MAPS:
            lists.append(_List(path, value, [_size(key) + _size(each) for key, each in value.items()]))
        else:
            for key, each in value.items():
                _collect(each, f"{path}/{key}", lists)


def _size(value: Any) -> int:
    return len(_compact(value).encode()) + 1


def _compact(value: Any, ascii_only: bool = False) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"), allow_nan=False)
