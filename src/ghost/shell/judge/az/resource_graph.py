"""Azure Resource Graph queries: which resources exist, and listed properties.

A condition may hold one tag, by name, against whole texts: no more than a list of resources shows of it.

Its form is `table | where ..., extend ..., mv-expand ... | project, distinct, count or summarize | take or order`. A
name given to a property (`extend a = properties.x`) stands for it in the steps behind, so nothing is told under another
name that would not be told under its own. Which columns and properties: `[graph]` of `policy/kql.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.az.jmespath_queries import secret_field
from ghost.shell.judge.az.kql import tokens_of
from ghost.shell.judge.az.log_tables import Token
from ghost.shell.policy_tables import policy_table

_COMPARISONS = frozenset(("=~", "==", "!=", "!~", "<", ">", "<=", ">="))
_EQUALITIES = frozenset(("=~", "==", "!=", "!~"))
"""What asks about a whole value. `contains`, `<` and the like ask about its letters, by which a tag could be told."""
_EMPTINESS = frozenset(("isempty", "isnotempty", "isnull", "isnotnull"))
_BEFORE_A_TAG = ("(", "and", "or")
"""Behind anything else what is compared may be something else: `'p' < tags.env == ...`."""
_TAG = lazy(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_NEVER_GIVEN = frozenset(("properties", "tags", "identity", "plan"))
"""Columns that hold anything: a name given to something else must not be taken for one of them, whatever its case."""
_COUNT = "count_"
_REFUSAL = (
    "is not a graph query that projects id, name, type, location or resourceGroup, or properties of the table "
    "(properties.provisioningState, properties.addressSpace, ...)"
)


class _Graph(NamedTuple):
    tables: frozenset[str]
    columns: frozenset[str]
    conditions: frozenset[str]
    functions: frozenset[str]
    properties: frozenset[str]


@cache
def _graph() -> _Graph:
    table = policy_table("kql.toml")["graph"]
    words = {key: frozenset(text.lower().split()) for key, text in table.items()}
    words["properties"] = frozenset(f"properties.{path}" for path in words["properties"])
    return _Graph(**words)


def fault_of_graph(text: str) -> str | None:
    """Why a query shows more than resources and listed properties; None where it does not."""
    tokens = tokens_of(text)
    if isinstance(tokens, str) or "\\" in text or "@" in text:
        return _REFUSAL
    return None if _Query(_steps(tokens)).is_harmless() else _REFUSAL


def _steps(tokens: Sequence[Token]) -> list[list[Token]]:
    steps: list[list[Token]] = [[]]
    for token in tokens:
        if token == ("sign", "|"):
            steps.append([])
        else:
            steps[-1].append(token)
    return steps


@dataclass
class _Query:
    steps: list[list[Token]]
    _stand_for: dict[str, str] = field(default_factory=dict)
    """Names that the query gives, with the column or property that each is."""

    def is_harmless(self) -> bool:
        table, *rest = self.steps
        if [word.lower() for _, word in table] not in [[name] for name in _graph().tables]:
            return False
        position = 0
        while position < len(rest) and self._narrows_or_names(rest[position]):
            position += 1
        return (
            position < len(rest)
            and self._projects(rest[position])
            and all(self._limits_or_orders(step) for step in rest[position + 1 :])
        )

    def _narrows_or_names(self, step: Sequence[Token]) -> bool:
        match _first_word(step):
            case "where":
                return len(step) > 1 and self._is_condition(step[1:])
            case "extend":
                return self._are_listed_columns(step[1:], whole=True)
            case "mv-expand" | "mvexpand":
                return self._are_listed_columns(step[1:], whole=False)
        return False

    def _is_condition(self, tokens: Sequence[Token]) -> bool:
        position = 0
        while position < len(tokens):
            kind, word = tokens[position]
            known = _graph().conditions | _graph().functions if kind == "name" else _COMPARISONS | {"(", ")", ","}
            if kind in ("text", "number") or word.lower() in known:
                position += 1
            elif word.lower() == "tags":
                end = _end_of_tag(tokens, position)
                if end is None:
                    return False
                position = end
            else:
                path, position = _path_at(tokens, position)
                if path is None or not self._is_shown(path):
                    return False
        return True

    def _projects(self, step: Sequence[Token]) -> bool:
        words = [word.lower() for _, word in step]
        match words[:1]:
            case ["count"]:
                return len(words) == 1
            case ["project"] | ["distinct"]:
                return self._are_listed_columns(step[1:], whole=True)
            case ["summarize"]:
                return self._counts(step[1:])
        return False

    def _counts(self, tokens: Sequence[Token]) -> bool:
        if len(tokens) > 1 and tokens[0][0] == "name" and tokens[1] == ("sign", "="):
            self._stand_for[tokens[0][1]] = _COUNT
            tokens = tokens[2:]
        words = [word.lower() for _, word in tokens]
        return words[:3] == ["count", "(", ")"] and (
            len(words) == 3 or (words[3] == "by" and self._are_listed_columns(tokens[4:], whole=True))
        )

    def _limits_or_orders(self, step: Sequence[Token]) -> bool:
        words = [word.lower() for _, word in step]
        if len(words) == 2 and words[0] in ("limit", "take"):
            return words[1].isdigit() and len(words[1]) <= 4
        if words[:2] not in (["order", "by"], ["sort", "by"]) or len(words) < 3:
            return False
        wanted = step[2:-1] if words[-1] in ("asc", "desc") else step[2:]
        path, end = _path_at(wanted, 0)
        return path is not None and end == len(wanted) and (path == _COUNT or self._is_shown(path))

    def _are_listed_columns(self, tokens: Sequence[Token], *, whole: bool) -> bool:
        """Columns side by side, each perhaps with a name. `whole`: they are told as they are, not opened first."""
        given_here: dict[str, str] = {}
        for one in _listed(tokens):
            given = one[0][1] if len(one) > 2 and one[0][0] == "name" and one[1] == ("sign", "=") else None
            path = _value_of(one if given is None else one[2:])
            if path is None or (whole and not self._is_shown(path)):
                return False
            if not whole and given is None and path not in self._stand_for:  # which goes on to mean what it did
                return False
            if not whole and not any(name.startswith(self._resolved(path)) for name in _graph().properties):
                return False
            if given is not None and given.lower() in _NEVER_GIVEN:
                return False
            if given is not None:
                given_here[given] = self._resolved(path)
        self._stand_for |= given_here  # in the step itself a name still means what it meant before
        return bool(tokens)

    def _is_shown(self, path: str) -> bool:
        meant = self._resolved(path)
        return meant == _COUNT or meant in _graph().columns or meant in _graph().properties

    def _resolved(self, path: str) -> str:
        first, dot, rest = path.partition(".")
        return f"{self._stand_for.get(first, first.lower())}{dot}{rest.lower()}"


def _end_of_tag(tokens: Sequence[Token], position: int) -> int | None:
    """Behind `tags.env`, `tags['env']` or `tolower(tags.env)` where it is compared with a whole text or is only asked
    for; None where it is not, or where the tag is named like a secret."""
    opening, name, closing = (*tokens[position + 1 : position + 4], *(("", ""),) * 3)[:3]
    if opening == ("sign", ".") and name[0] == "name":
        tag, end = name[1], position + 3
    elif opening == ("sign", "[") and name[0] == "text" and closing == ("sign", "]"):
        tag, end = name[1][1:-1], position + 4
    else:
        return None
    if not _TAG.fullmatch(tag) or secret_field(tag) is not None:
        return None
    start = position
    if (
        position >= 2
        and tokens[position - 1] == ("sign", "(")
        and tokens[position - 2][1].lower() in _graph().functions
    ):
        start -= 2
        if end == len(tokens) or tokens[end] != ("sign", ")"):
            return None
        end += 1
    if start > 0 and tokens[start - 1][1].lower() not in _BEFORE_A_TAG:
        return None
    if tokens[start][1].lower() in _EMPTINESS:
        return end
    sign, against = (*(word for _, word in tokens[end : end + 2]), "", "")[:2]
    if sign in _EQUALITIES:
        return end if tokens[end + 1 : end + 2] and tokens[end + 1][0] == "text" else None
    return end if sign.lower() in ("in", "in~") and against == "(" else None


def _first_word(step: Sequence[Token]) -> str:
    return step[0][1] if step and step[0][0] == "name" else ""


def _listed(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The parts between commas; an extra comma leaves an empty part, which is not a column."""
    start = 0
    for at, token in enumerate((*tokens, ("sign", ","))):
        if token == ("sign", ","):
            yield tokens[start:at] or [("sign", ",")]
            start = at + 1


def _value_of(tokens: Sequence[Token]) -> str | None:
    """The column or property alone, or as the one argument of a listed function."""
    if len(tokens) > 3 and tokens[0][0] == "name" and tokens[0][1].lower() in _graph().functions:
        if tokens[1] != ("sign", "(") or tokens[-1] != ("sign", ")"):
            return None
        tokens = tokens[2:-1]
    path, end = _path_at(tokens, 0)
    return path if end == len(tokens) else None


def _path_at(tokens: Sequence[Token], position: int) -> tuple[str | None, int]:
    """`properties.ipConfigurations[0].name` as `properties.ipConfigurations.name`, and where it ends."""
    names: list[str] = []
    while position < len(tokens) and tokens[position][0] == "name":
        names.append(tokens[position][1])
        position += 1
        while _is_index(tokens, position):
            position += 3
        if position >= len(tokens) or tokens[position] != ("sign", "."):
            return ".".join(names), position
        position += 1
    return None, position


def _is_index(tokens: Sequence[Token], position: int) -> bool:
    first, inside, last = (*tokens[position : position + 3], *(("", ""),) * 3)[:3]
    return first == ("sign", "[") and inside[0] == "number" and inside[1].isdigit() and last == ("sign", "]")
