"""What a `--query` of az takes from an answer: fields named like secrets, or nothing but listed fields."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any, cast

import jmespath
from jmespath.exceptions import JMESPathError

_TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?|"(?P<quoted>(?:[^"\\]|\\.)*)"?|(?P<plain>[A-Za-z_]\w*)""", re.DOTALL
)
"""A text that nothing ends goes to the end, so that no letter is looked at twice."""
_RENAMES_OR_CALLS = re.compile(r"\s{0,8}[:(]")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
_SECRET = re.compile(
    r".*(?:(?:key|secret|password|passwd|pwd|passphrase|token|credential|connectionstring|sas)s?(?:value|data)?"
    r"|sas(?:uri|url)|signature)"
)
_PUBLIC = re.compile(r".*(?:publickey|nexttoken|skiptoken|monkey|turkey)s?")
_PROJECTION = re.compile(r"[A-Za-z0-9_.,:|*{}\[\] ]{1,400}")
_MOST_BRACKETS = 20


def secret_field(query: str) -> str | None:
    """The first field that the query names whose name ends like a secret's; texts to compare with are no fields."""
    for match in _TOKEN.finditer(query):
        name = match["plain"] or _ESCAPE.sub(lambda code: chr(int(code[1], 16)), match["quoted"] or "")
        if _RENAMES_OR_CALLS.match(query, match.end()):
            continue
        squeezed = re.sub(r"[^a-z0-9]", "", name.lower())
        if _SECRET.fullmatch(squeezed) and not _PUBLIC.fullmatch(squeezed):
            return name
    return None


def takes_only(fields: Set[str], query: str) -> bool:
    """Whether nothing but these fields can come out of the query, whatever the answer holds."""
    if not _PROJECTION.fullmatch(query) or sum(map(query.count, "[{")) > _MOST_BRACKETS:
        return False
    try:
        tree = cast(dict[str, Any], jmespath.compile(query).parsed)
    except (JMESPathError, ValueError):
        return False
    return _names_only(fields, tree) and _is_confined(tree)


def _names_only(fields: Set[str], node: dict[str, Any]) -> bool:
    if node["type"] == "field" and node["value"] not in fields:
        return False
    return all(_names_only(fields, child) for child in node["children"])


def _is_confined(node: dict[str, Any]) -> bool:
    """Whether every path through the tree goes through a field: an index or `[]` alone passes the whole answer on."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return True
    if kind in ("multi_select_list", "multi_select_dict"):
        return all(map(_is_confined, children))
    if kind in ("subexpression", "pipe", "projection", "index_expression", "flatten", "key_val_pair"):
        return any(map(_is_confined, children))
    return False
