"""Secrets that Terraform keeps of a resource under a name that says nothing: the `result` of a `random_password`.

In its state, in plans and in what `terraform show` prints. Which attributes of which types is `[resources]` of
`redaction.toml`. A type holds for what follows it, until the next one. Each text is read once.
"""

from __future__ import annotations

import re

from ghost.redaction.bigram_filter import held
from ghost.redaction.secret_values import MARKER, POLICY, Counts, any_of, is_open

_ATTRIBUTES: dict[str, frozenset[str]] = {kind: frozenset(names) for kind, names in POLICY["resources"].items()}
_NAMES = any_of({name for names in _ATTRIBUTES.values() for name in names})
_TOKEN = re.compile(
    rf"\\{{0,3}}\"type\\{{0,3}}\"\s{{0,8}}:\s{{0,8}}\\{{0,3}}\"(?!get_attr|index)(?P<json>\w{{1,60}})"
    rf"|\bresource[ ]\"(?P<block>\w{{1,60}})\""
    rf"|(?<![\w.-])(?:\\{{0,3}}\")?(?P<name>{_NAMES})(?:\\{{0,3}}\")?[ \t]{{0,40}}[:=][ \t]{{0,8}}"
    r"(?:\\\"(?P<escaped>[^\"\\\n]{1,4000})|\"(?P<value>(?:[^\"\\\n]|\\.){1,4000}+))"
)


def redact_resources(text: str, counts: Counts) -> str:
    """Replaces the attributes that are secrets of the resources a text describes."""
    if not held(text, _ATTRIBUTES):
        return text
    pieces: list[str] = []
    done = 0
    attributes: frozenset[str] = frozenset()
    for token in _TOKEN.finditer(text):
        kind = token["json"] or token["block"]
        if kind is not None:
            attributes = _ATTRIBUTES.get(kind, frozenset())
            continue
        group = "value" if token["value"] is not None else "escaped"
        if token["name"] not in attributes or is_open(token[group]):
            continue
        start, end = token.span(group)
        pieces += [text[done:start], MARKER]
        counts["password"] += 1
        done = end
    return "".join([*pieces, text[done:]])
