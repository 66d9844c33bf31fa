"""The secret that an Azure Key Vault answers with: the `value` beside an `id` that is an address of a secret there.

`{"value": "X", "id": "https://kv1.vault.azure.net/secrets/sqlpw/0123..."}`, whatever the order of the members
and however deep the object lies. All strings and brackets are read once, from left to right: linear in the length of
the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ghost.redaction.secret_values import MARKER, Counts, is_open

_HOST = r"[\w-]{1,127}\.(?:vault|managedhsm)\.(?:azure\.net|azure\.cn|azure\.us|usgovcloudapi\.net|microsoftazure\.de)"
_ADDRESS = re.compile(rf"https:(?:\\{{0,3}}/){{2}}{_HOST}(?::443)?\\{{0,3}}/(?:secrets|keys)\\{{0,3}}/", re.IGNORECASE)
_IDS = ("id", "kid", "sid")
_TOKEN = re.compile(r"\"(?P<string>(?:[^\"\\\n]|\\.)*+)\"?|(?P<bracket>[{}\[\]])")
_TOKEN_IN_STRING = re.compile(r"\\\"(?P<string>(?:[^\"\\\n]|\\(?!\")[^\n])*+)(?:\\\")?|(?P<bracket>[{}\[\]])")
_IS = re.compile(r"\s{0,40}:\s{0,400}$")


@dataclass(slots=True)
class _Object:
    """What is known of an object that has not ended yet."""

    of_vault: bool = False
    values: list[tuple[int, int]] = field(default_factory=list)
    name: str | None = None
    """The name of the member that is being read."""


def redact_vault_answers(text: str, counts: Counts) -> str:
    """`text` without the `value` of each object whose `id` is an address of a vault's secret."""
    lowered = text.lower()
    if '"' not in text or (".vault." not in lowered and ".managedhsm." not in lowered) or "value" not in lowered:
        return text
    for token in (_TOKEN, _TOKEN_IN_STRING):
        text = _without(text, _values(text, token), counts)
    return text


def _without(text: str, spans: list[tuple[int, int]], counts: Counts) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        pieces += [text[done:start], MARKER]
        counts["api_key"] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _values(text: str, token: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where the values stand that vaults answered with."""
    found: list[tuple[int, int]] = []
    around = [_Object()]
    position = 0
    for read in token.finditer(text):
        between = text[position : read.start()] if read.start() - position <= 512 else ""
        position, inner = read.end(), around[-1]
        if read["bracket"] is not None:
            if read["bracket"] in "{[":
                inner.name = None
                around.append(_Object())
            elif len(around) > 1:
                found += _secrets(text, around.pop())
            continue
        if inner.name is None or _IS.fullmatch(between) is None:
            inner.name = read["string"][:16].lower()
            continue
        if inner.name in _IDS and _ADDRESS.match(read["string"]) is not None:
            inner.of_vault = True
        elif inner.name == "value":
            inner.values.append(read.span("string"))
        inner.name = None
    for unfinished in around:
        found += _secrets(text, unfinished)
    return found


def _secrets(text: str, ended: _Object) -> list[tuple[int, int]]:
    if not ended.of_vault:
        return []
    return [(start, end) for start, end in ended.values if start < end and not is_open(text[start:end])]
