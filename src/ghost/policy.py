"""Policy and other tables of settings: TOML files beside the code that reads them, checked against a schema.

    @dataclass(frozen=True)
    class Limit:
        name: str
        seconds: float = 5.0

    load_policy(__file__, "limits.toml", dict[str, tuple[Limit, ...]])

A schema is str, int, float, bool, an Enum, Any, X | Y, X | None, Literal, tuple[X, ...], list[X], frozenset[X],
dict[str, X], or a dataclass of such fields; a field's metadata may have `choices`, a function that returns its
values. Every error names the file and the key: `limits.toml.limits[0].seconds: expected float`. `from_dict` and
`to_dict` do the same for data that came from elsewhere.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import tomllib
import types
from collections.abc import Iterable, Mapping
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
    return {name: to_dict(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def from_dict(kind: type[T], value: Any, place: str, error: type[GhostError] = ConfigurationError) -> T:
    """The `kind` that `value` describes; what was built before may stand in it.

    Raises `error`, its message beginning with the `place` that does not fit. A place that ends with a colon and a space
    is a file's: `mine.toml: world.seed`.
    """
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
        return _one_of([each for each in arguments if each is not type(None)], value, place, type(None) in arguments)
    if origin in (tuple, list, frozenset):
        given = enumerate(_expect(value, list, place))
        return origin(_build(arguments[0], item, f"{place}[{index}]") for index, item in given)
    if origin is dict:
        items = _expect(value, dict, place).items()
        return {key: _build(arguments[1], item, _inside(place, key)) for key, item in items}
    if origin is Literal or isinstance(kind, enum.EnumType):
        return _choice(kind, value, place)
    if kind is float and type(value) is int:
        return float(value)
    return _expect(value, kind, place)


def _one_of(kinds: list[Any], value: Any, place: str, or_none: bool) -> Any:
    if value is None and or_none:
        return None
    for kind in kinds[:-1]:
        with contextlib.suppress(_MismatchError):
            return _build(kind, value, place)
    return _build(kinds[-1], value, place)


def _dataclass(kind: Any, value: Any, place: str) -> Any:
    if isinstance(value, kind):
        return value
    given = _expect(value, dict, place)
    hints = _hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(given) - set(fields)):
        said = f"unknown field {unknown[0]!r}; known are {', '.join(fields)}{_near(unknown[0], fields)}"
        raise _mismatch(place, said)
    for name, field in fields.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in given:
            raise _mismatch(place, f"the field {name!r} is missing")
    built = {name: _build(hints[name], item, _inside(place, name)) for name, item in given.items()}
    for name, item in built.items():
        if "choices" in fields[name].metadata:
            _check_choice(item, fields[name].metadata["choices"](), _inside(place, name))
    return kind(**built)


def _choice(kind: Any, value: Any, place: str) -> Any:
    _check_choice(value, get_args(kind) or tuple(member.value for member in kind), place)
    return kind(value) if isinstance(kind, enum.EnumType) else value


def _check_choice(value: Any, choices: Iterable[Any], place: str) -> None:
    known = tuple(choices)
    if value not in known:
        raise _mismatch(place, f"{value!r} is not one of {', '.join(map(repr, known))}{_near(value, known)}")


def _near(value: Any, known: Iterable[Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(str(value), map(str, known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _inside(place: str, name: str) -> str:
    return f"{place}{name}" if place.endswith(": ") else f"{place}.{name}"


def _mismatch(place: str, said: str) -> _MismatchError:
    return _MismatchError(f"{place.removesuffix(': ')}: {said}")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _expect(value: Any, kind: type[T], place: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _mismatch(place, f"expected {kind.__name__}, got {value!r}")
    return value
