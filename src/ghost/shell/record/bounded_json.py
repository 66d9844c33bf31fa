"""JSON with bounded memory: one megabyte of text may become a gigabyte of objects or indentation.

A value of a few characters takes up to fifty times as many bytes once it is read, and one that lies deep up to its
depth in blanks for each line once it is written. So a text is judged before it is read, and writing stops at a length.
"""

from __future__ import annotations

import io
import json
import math
from typing import Any

MOST_BYTES = 40_000_000
"""What a text may come to when it is read."""
DEEPEST = 48
"""Levels of a value that is written as it is."""
_BYTES_OF = {"[": 80, "{": 200, ",": 30, '"': 30, ":": 60}
"""What each of these stands for in CPython: a list, a dictionary, a place and a number, half a string, an entry."""
_LONGEST_ITEM = 1 << 18


def read_json(text: str) -> Any:
    """Parse `text`. Raises `ValueError` for invalid JSON or more than `MOST_BYTES` of objects."""
    if is_too_large(text):
        raise ValueError("larger than is read")
    return _read(_DECODER.decode, text)


def is_too_large(text: str) -> bool:
    """Whether reading a text may take more than `MOST_BYTES`."""
    return 2 * len(text) + sum(text.count(mark) * size for mark, size in _BYTES_OF.items()) > MOST_BYTES


def read_first(text: str, head: int) -> tuple[list[Any], int]:
    """The first items of an array and its length, without keeping the others.

    `ValueError` where it is no array of JSON, or has an item that is longer than 262,144 characters.
    """
    first: list[Any] = []
    count, position, start = 0, _behind_blanks(text, _behind_blanks(text, 0) + 1), -1
    stretch = ""
    while True:
        if not start <= position < start + len(stretch) - _LONGEST_ITEM:
            start, stretch = position, text[position : position + 2 * _LONGEST_ITEM]
        item, end = _read(_DECODER.raw_decode, stretch, position - start)
        if end - (position - start) > _LONGEST_ITEM:
            raise ValueError("an item is longer than is read")
        count += 1
        if count <= head:
            first.append(item)
        position = _behind_blanks(text, start + end)
        if text.startswith("]", position) and _behind_blanks(text, position + 1) == len(text):
            return first, count
        if not text.startswith(",", position):
            raise ValueError("no array")
        position = _behind_blanks(text, position + 1)


def is_deep(value: Any, levels: int = DEEPEST) -> bool:
    """Whether containers are nested deeper than the limit."""
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def written(value: Any, indent: int | None, longest: float) -> str | None:
    """`value` as JSON; None where that is longer than `longest` characters, or the value is deep."""
    if is_deep(value):
        return None
    whole = io.StringIO()
    for piece in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        if whole.tell() + len(piece) > longest:
            return None
        whole.write(piece)
    return whole.getvalue().encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair is no text


def _read(decode: Any, *arguments: Any) -> Any:
    try:
        return decode(*arguments)
    except RecursionError as error:
        raise ValueError("deeper than is read") from error


def _behind_blanks(text: str, position: int) -> int:
    while text[position : position + 1] in _BLANKS:
        position += 1
    return position


_BLANKS = frozenset(" \t\n\r")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _float(literal: str) -> float | str:
    number = float(literal)
    return number if math.isfinite(number) else literal


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_float)
