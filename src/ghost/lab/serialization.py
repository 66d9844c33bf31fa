"""Trees of frozen dataclasses from and to plain dicts, checked against their type hints.

It serves the scenario files and `world.json`. What does not fit is a `LabError` that names the place.
Supported fields: str, int, float, bool, X | None, tuple[X, ...], dict[str, str], Literal and further dataclasses.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ghost.errors import LabError

T = TypeVar("T")


def to_dict(value: Any) -> Any:
    """Like `dataclasses.asdict`, with lists for tuples and without fields that are None, as TOML and JSON want it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_dict(content)
            for field in dataclasses.fields(value)
            if (content := getattr(value, field.name)) is not None
        }
    if isinstance(value, tuple):
        return [to_dict(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def from_dict(kind: type[T], value: Any, place: str) -> T:
    """The `kind` that `value` describes. Raises `LabError`, beginning with `place`, where it describes none."""
    built: T = _build(kind, value, place)
    return built


def _build(kind: Any, value: Any, place: str) -> Any:
    origin = get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, place)
    if origin in (Union, types.UnionType):
        return None if value is None else _build(get_args(kind)[0], value, place)
    if origin is tuple:
        items = _expect(value, list, place)
        return tuple(_build(get_args(kind)[0], item, f"{place}[{index}]") for index, item in enumerate(items))
    if origin is dict:
        return {key: _expect(item, str, f"{place}.{key}") for key, item in _expect(value, dict, place).items()}
    if origin is Literal:
        if value not in get_args(kind):
            raise LabError(f"{place}: {value!r} is not one of {', '.join(map(repr, get_args(kind)))}")
        return value
    if kind is float and type(value) is int:
        return float(value)
    return _expect(value, kind, place)


def _dataclass(kind: Any, value: Any, place: str) -> Any:
    given = _expect(value, dict, place)
    hints = _hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(given) - set(fields)):
        raise LabError(f"{place}: unknown field {unknown[0]!r}; known are {', '.join(fields)}")
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise LabError(f"{place}: the field {name!r} is missing")
    return kind(**{name: _build(hints[name], item, f"{place}.{name}") for name, item in given.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _expect(value: Any, kind: type[T], place: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise LabError(f"{place}: expected {kind.__name__}, got {value!r}")
    return value
