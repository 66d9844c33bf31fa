"""The shape of resources in what `az` prints or Azure's API answers, and their fields.

`az` lifts what the API has under `properties`, and names differ in case between its versions: both are read alike.
Everything here raises `ValueError` if the JSON does not have that shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.net.address_matching import parse_network

Fields = Mapping[str, Any]
"""Of one resource: lifted from `properties`, its names in lower case."""


def resources_in(answer: Any) -> list[Fields]:
    return [folded(lifted(item)) for item in list_of(answer)]


def list_of(answer: Any) -> list[Any]:
    """Return a list, the list under `value` (the API), or a single resource as a list."""
    if isinstance(answer, Mapping):
        answer = answer["value"] if isinstance(answer.get("value"), list) else [answer]
    if not isinstance(answer, list) or not all(isinstance(item, Mapping) for item in answer):
        raise ValueError("expected a list of resources")
    return answer


def lifted(value: Any) -> Any:
    """Return the value with what stands under `properties` lifted beside it, at every depth, as `az` prints it."""
    if isinstance(value, list):
        return [lifted(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    inner = value.get("properties")
    whole = {**value, **inner} if isinstance(inner, Mapping) else value
    return {name: lifted(item) for name, item in whole.items() if item is not inner}


def folded(value: Any) -> Any:
    if isinstance(value, list):
        return [folded(item) for item in value]
    return {str(n).casefold(): folded(item) for n, item in value.items()} if isinstance(value, Mapping) else value


def text_of(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected text in {name!r}, got {type(value).__name__}")
    return value


def items_of(fields: Fields, name: str) -> list[Any]:
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise ValueError(f"expected a list in {name!r}, got {type(value).__name__}")
    return value or []


def objects_of(fields: Fields, name: str) -> list[Fields]:
    items = items_of(fields, name)
    if not all(isinstance(item, Mapping) for item in items):
        raise ValueError(f"expected objects in {name!r}")
    return items


def object_of(fields: Fields, name: str, default: Fields | None = None) -> Fields:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, Mapping):
        raise ValueError(f"expected an object in {name!r}, got {type(value).__name__}")
    return value


def id_of(fields: Fields, name: str) -> str | None:
    """Return the id of a resource that another one names, or None."""
    return text_of(object_of(fields, name), "id") if fields.get(name) else None


def prefixes_of(fields: Fields, name: str) -> tuple[str, ...]:
    prefixes = tuple(map(str, items_of(fields, name)))
    if wrong := next((prefix for prefix in prefixes if parse_network(prefix) is None), None):
        raise ValueError(f"{wrong!r} in {name!r} is not a prefix")
    return prefixes
