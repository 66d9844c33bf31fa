"""Policy and other tables of settings: TOML files beside the code that reads them, checked against a schema.

    @dataclass(frozen=True)
    class Limit:
        name: str
        seconds: float = 5.0

    load_policy(__file__, "limits.toml", dict[str, tuple[Limit, ...]])

A schema is str, int, float, bool, an Enum, Any, X | None, Literal, tuple[X, ...], list[X], frozenset[X], dict[str, X],
or a dataclass of such fields. Every error names the file and the key: `limits.toml.limits[0].seconds: expected float`.
`from_dict` and `to_dict` do the same for data that came from elsewhere.
"""

from __future__ import annotations

import dataclasses
import enum
import tomllib
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from ghost.errors import ConfigurationError, GhostError

T = TypeVar("T")


@overload
def load_policy(place: str | Path, name: str) -> dict[str, Any]: ...
@overload
def load_policy(place: str | Path, name: str, schema: type[T]) -> T: ...
def load_policy(place: str | Path, name: str, schema: Any = dict) -> Any:
    """The table in the TOML file `name`, built and checked as `schema`; a plain dict where none is given.

    `place`: a directory, or a module's `__file__` for the directory it lies in.
    Raises `ConfigurationError` for a missing or malformed file or a key that does not fit the schema.
    """
    directory = Path(place).parent if Path(place).suffix == ".py" else Path(place)
    try:
        content = tomllib.loads((directory / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{directory / name}: {error}") from error
    return from_dict(schema, content, name)


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


def from_dict(kind: type[T], value: Any, place: str, error: type[GhostError] = ConfigurationError) -> T:
    """The `kind` that `value` describes. Raises `error`, its message beginning with the `place` that does not fit."""
    try:
        built: T = _build(kind, value, place)
    except _MismatchError as mismatch:
        raise error(str(mismatch)) from None
    return built


class _MismatchError(Exception):
    """The message names the place and what was expected there."""


def _build(kind: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, place)
    if origin in (Union, types.UnionType):
        return None if value is None else _build(arguments[0], value, place)
    if origin in (tuple, list, frozenset):
        given = enumerate(_expect(value, list, place))
        return origin(_build(arguments[0], item, f"{place}[{index}]") for index, item in given)
    if origin is dict:
        items = _expect(value, dict, place).items()
        return {key: _build(arguments[1], item, f"{place}.{key}") for key, item in items}
    if origin is Literal or isinstance(kind, enum.EnumType):
        return _choice(kind, value, place)
    if kind is float and type(value) is int:
        return float(value)
    return _expect(value, kind, place)


def _dataclass(kind: Any, value: Any, place: str) -> Any:
    given = _expect(value, dict, place)
    hints = _hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(given) - set(fields)):
        raise _MismatchError(f"{place}: unknown field {unknown[0]!r}; known are {', '.join(fields)}")
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise _MismatchError(f"{place}: the field {name!r} is missing")
    return kind(**{name: _build(hints[name], item, f"{place}.{name}") for name, item in given.items()})


def _choice(kind: Any, value: Any, place: str) -> Any:
    choices = get_args(kind) or tuple(member.value for member in kind)
    if value not in choices:
        raise _MismatchError(f"{place}: {value!r} is not one of {', '.join(map(repr, choices))}")
    return kind(value) if isinstance(kind, enum.EnumType) else value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _expect(value: Any, kind: type[T], place: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _MismatchError(f"{place}: expected {kind.__name__}, got {value!r}")
    return value
