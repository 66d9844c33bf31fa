"""The JSON schema (Draft 2020-12) of scenario files, derived from the dataclasses that they are read into."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import textwrap
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ghost.lab.scenario import Scenario, WorldSource

_TAPE = {
    "type": "string",
    "description": "In place of a world: the recordings, a file beside it (an export, or lines of JSON)",
}
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of_scenarios() -> dict[str, Any]:
    """Return the schema of files of the second format."""
    definitions: dict[str, Any] = {}
    source, scenario = (_object(kind, definitions) for kind in (WorldSource, Scenario))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of Ghost's lab",
        **scenario,
        "properties": {**scenario["properties"], **source["properties"], "tape": _TAPE},
        "required": sorted({*scenario["required"], "format"} - {"name", "world"}),
        "oneOf": [{"required": ["base"]}, {"required": ["world"]}, {"required": ["tape"]}],
        "$defs": definitions,
    }


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type that `ghost.policy` reads; dataclasses are added to `definitions`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        name = getattr(kind, "__name__", "")
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin in (Union, types.UnionType):
        options = [schema_of(each, definitions) for each in arguments if each is not type(None)]
        return options[0] if len(options) == 1 else {"anyOf": options}
    if origin in (tuple, list, frozenset):
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, enum.EnumType):
        return {"enum": [member.value for member in tuple[enum.Enum, ...](kind)]}
    return {"type": _SIMPLE[kind]} if kind in _SIMPLE else {}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    hints, said = get_type_hints(kind), _docstrings(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        choices = field.metadata.get("choices")
        properties[field.name] = {
            **({"enum": list(choices())} if choices else schema_of(hints[field.name], definitions)),
            **({"description": said[field.name]} if field.name in said else {}),
        }
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(field.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _docstrings(kind: type[Any]) -> dict[str, str]:
    """Return the texts below the fields of a class and of those that it extends."""
    said: dict[str, str] = {}
    for each in (base for base in reversed(kind.__mro__) if dataclasses.is_dataclass(base)):
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        for field, text in zip(getattr(node, "body", []), getattr(node, "body", [])[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                said[ast.unparse(field.target)] = " ".join(str(text.value.value).split())
    return said
