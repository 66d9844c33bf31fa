"""What the Azure CLI makes of a body: `properties` a level up, the group beside each id, nulls for unset fields.

Commands generated from Azure's descriptions show what came back; those written on the SDK show every field of its
models, null where Azure sent none. `unset_fields.json` holds these.
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
"""A field of `properties` whose name is taken a level up."""


def flattened(body: Any) -> Any:
    """As the generated commands show a body."""
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
    """`resourceGroup` beside every id that lies in one."""
    if isinstance(value, list):
        return [with_groups(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    shown = {name: with_groups(item) for name, item in value.items()}
    own_id = value.get("id")
    match = _GROUP.match(own_id) if isinstance(own_id, str) else None
    return {**shown, "resourceGroup": match[1]} if match and "resourceGroup" not in shown else shown


def filled(model: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """`value` with the fields of an SDK model that it lacks."""
    shown: dict[str, Any] = _filled(_models()[model], value)
    return shown


def _filled(fields: Any, value: Any) -> Any:
    if not isinstance(fields, Mapping) or not isinstance(value, Mapping):
        return value
    return {**fields, **{name: _filled(fields.get(name), item) for name, item in value.items()}}


@cache
def _models() -> dict[str, Any]:
    models: dict[str, Any] = json.loads((Path(__file__).parent / "unset_fields.json").read_text(encoding="utf-8"))
    return models
