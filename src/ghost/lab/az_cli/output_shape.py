"""The Azure CLI's changes to a body: `properties` flattened, the group beside each id, nulls for unset fields.

Generated commands show the response; those based on the SDK show every field of its models, null if unset, from
`unset_fields.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_GROUP = re.compile(r"/subscriptions/[^/]*/resourceGroups/([^/]*)/.+", re.IGNORECASE)
_OWN_NAMES = {"type": "typePropertiesType"}
"""A field of `properties` whose name exists one level up."""


def flattened(body: Any) -> Any:
    """Return a body as generated commands show it."""
    return with_groups(hoisted(body))


def hoisted(value: Any) -> Any:
    if isinstance(value, list):
        return [hoisted(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    inner = value.get("properties")
    if not isinstance(inner, Mapping):
        return {name: hoisted(item) for name, item in value.items()}
    outer = {name: item for name, item in value.items() if name != "properties"}
    raised = {_OWN_NAMES.get(name, name) if name in outer else name: item for name, item in inner.items()}
    return {name: hoisted(item) for name, item in {**outer, **raised}.items()}


def with_groups(value: Any) -> Any:
    """Add `resourceGroup` beside every id that has one."""
    if isinstance(value, list):
        return [with_groups(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    shown = {name: with_groups(item) for name, item in value.items()}
    own_id = value.get("id")
    match = _GROUP.match(own_id) if isinstance(own_id, str) else None
    return {**shown, "resourceGroup": match[1]} if match and "resourceGroup" not in shown else shown


def filled(model: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return `value` with the missing fields of an SDK model."""
    shown: dict[str, Any] = _filled(_models()[model], value)
    return shown


def _filled(fields: Any, value: Any) -> Any:
    if isinstance(fields, list) and isinstance(value, list):
        return [_filled(fields[0], item) for item in value]
    if not isinstance(fields, Mapping) or not isinstance(value, Mapping):
        return value
    unset = {name: None if isinstance(item, list) and item else item for name, item in fields.items()}
    return {**unset, **{name: _filled(fields.get(name), item) for name, item in value.items()}}


@cache
def _models() -> dict[str, Any]:
    models: dict[str, Any] = json.loads((Path(__file__).parent / "unset_fields.json").read_text(encoding="utf-8"))
    return models
