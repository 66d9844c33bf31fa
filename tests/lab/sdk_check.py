"""A program for a Python that has Azure's SDK: holds JSON bodies to its models, and prints what does not fit.

Reads `[[module, model, body], ...]` on standard input; prints `{"model: place": "what is wrong"}` as JSON. A field that
the model does not have, a value of another type, and a word that is not among those the model lists, do not fit.
"""

from __future__ import annotations

import datetime
import enum
import importlib
import json
import sys
import typing
from collections.abc import Iterator


def fields_of(model: type, models: object) -> dict[str, object]:
    """Names in JSON and types."""
    model({})  # fills the table of fields, which the class makes when it is first used
    names = {attribute: field._rest_name for attribute, field in model._attr_to_rest_field.items()}
    hints = {}
    for kind in reversed(model.__mro__):
        module = sys.modules[kind.__module__]
        for attribute, hint in vars(kind).get("__annotations__", {}).items():
            if attribute in names:
                hints[names[attribute]] = (
                    hint,
                    {**vars(module), **vars(typing), "_models": models, "datetime": datetime},
                )
    return {name: eval(hint, scope) if isinstance(hint, str) else hint for name, (hint, scope) in hints.items()}


def misfits(models: object, kind: object, value: object, place: str) -> Iterator[tuple[str, str]]:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, str):
        scope = {**vars(models), "_models": models, "datetime": datetime}
        yield from misfits(models, eval(kind, scope), value, place)
    elif isinstance(kind, typing.ForwardRef):
        yield from misfits(models, kind.__forward_arg__, value, place)
    elif kind is typing.Any or kind is object:
        return
    elif origin is typing.Union:
        choices = [item for item in inner if item is not type(None)]
        if value is None and len(choices) < len(inner):
            return
        words = [
            item
            for item in (resolved(models, choice) for choice in choices)
            if isinstance(item, type) and issubclass(item, enum.Enum)
        ]
        if words and isinstance(value, str):
            if value.casefold() not in {str(word.value).casefold() for item in words for word in item}:
                yield place, f"{value!r} is not among {[word.value for item in words for word in item]}"
            return
        wrong = [list(misfits(models, item, value, place)) for item in choices]
        if all(wrong):
            yield from wrong[0]
    elif origin in (list, tuple):
        if not isinstance(value, list):
            yield place, f"{value!r} is no list"
            return
        for index, item in enumerate(value):
            yield from misfits(models, inner[0], item, f"{place}[{index}]")
    elif origin is dict:
        for key, item in typing.cast(dict, value).items():
            yield from misfits(models, inner[1], item, f"{place}.{key}")
    elif isinstance(kind, type) and any(base.__name__ == "Model" for base in kind.__mro__):
        if not isinstance(value, dict):
            yield place, f"{value!r} is no object"
            return
        known = fields_of(kind, models)
        for key, item in value.items():
            if key not in known:
                yield f"{place}.{key}", f"{kind.__name__} has no such field"
            else:
                yield from misfits(models, known[key], item, f"{place}.{key}")
    elif kind is datetime.datetime:
        try:
            datetime.datetime.fromisoformat(value)
        except (TypeError, ValueError):
            yield place, f"{value!r} is no time"
    elif isinstance(kind, type) and not of_type(kind, value):
        yield place, f"{value!r} is no {kind.__name__}"


def of_type(kind: type, value: object) -> bool:
    """A truth value is no number, a whole number is a number."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, kind) or (kind is float and isinstance(value, int))


def resolved(models: object, kind: object) -> object:
    name = kind.__forward_arg__ if isinstance(kind, typing.ForwardRef) else kind
    return eval(name, {**vars(models), "_models": models}) if isinstance(name, str) else name


def main() -> None:
    found = {}
    for module, model, body in json.load(sys.stdin):
        models = importlib.import_module(module)
        for place, wrong in misfits(models, getattr(models, model), body, model):
            found[place] = wrong
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
