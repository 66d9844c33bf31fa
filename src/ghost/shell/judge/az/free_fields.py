"""Fields of Azure's answers in which anything may stand, and what a `--query` of az may take of them.

Redaction knows a secret in such a field by the name beside it, which `--query settings -o tsv` and `--query
settings.script` leave out. Which fields these are, and what of each is plain, is `policy/az_free_fields.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ghost.patterns import lazy
from ghost.shell.judge.az.jmespath_queries import fields_named, projected_paths

_KEEPS_NAMES = "json jsonc"
_FILTER = lazy(
    r"""\[\?(?:(?:contains|starts_with|ends_with)\( ?[\w.]++ ?, ?'[^'\\]*+' ?\)"""
    r"""|[^\[\]()'`"*\\]|'[^'\\]*+'|`[^`\\]*+`)*+\]"""
)
"""A filter that names fields and texts."""
_TWO_NAMES = lazy(r"(?<![\w.'`])[A-Za-z_]\w*+\.[A-Za-z_]\w*+(?![\w.\[(])")
_A_TAG = lazy(r"\b(?:keys|length)\(tags\)|\btags\.[A-Za-z_]\w*+(?!\s*[.\[(])")
_RENAMES_TAGS = lazy(r'tags"?\s*:|\\')


@dataclass(frozen=True)
class FreeField:
    """A field in which anything may stand."""

    name: str
    why: str
    plain: frozenset[str]
    """Fields of it that hold a state, a number or a name."""
    through: frozenset[str]
    """Objects of it that are not taken whole, but fields of theirs."""
    whole_as: frozenset[str]
    """Formats in which it may be taken whole."""


class _OfCommand(NamedTuple):
    by_name: Mapping[str, FreeField]
    stem: re.Pattern[str]
    """Found in every query that names one of them, in small letters. Most queries are not read further."""


@dataclass(frozen=True)
class Folded:
    """Reads of whose answer a long text may be folded over lines, and what of it may hold one."""

    reads: frozenset[str]
    objects: frozenset[str]
    why: str


@dataclass(frozen=True)
class FreeFields:
    """`az_free_fields.toml`: each row with the commands or groups for which it holds, `""` for all."""

    rows: tuple[tuple[str, FreeField], ...]
    filters: frozenset[str]
    """Plain fields, and paths of two names, by which an answer may be filtered."""
    folded: Folded
    _of_commands: dict[str, _OfCommand] = field(default_factory=dict)

    def fault_of_yaml(self, path: str, query: str | None, output: str) -> str | None:
        """Why YAML of this answer may show part of a text on a line without its name."""
        if output not in ("yaml", "yamlc") or path not in self.folded.reads:
            return None
        taken = projected_paths(_FILTER.sub(self._without_plain_names, query)) if query else None
        if taken is None or any(names and names[-1] in self.folded.objects for names in taken):
            return f"is YAML of an answer that {self.folded.why}"
        return None

    def fault_of_query(self, path: str, query: str, output: str) -> str | None:
        """Why the query, printed as `output`, may show the content of such a field without its name."""
        known = self._of_command(path)
        if "\\" not in query and not known.stem.search(query.lower()):
            return None
        if not _RENAMES_TAGS.search(query):
            query = _A_TAG.sub("name", query)
        named = next((name for name in fields_named(query) if name.lower() in known.by_name), None)
        if named is None:
            return None
        taken = projected_paths(_FILTER.sub(self._without_plain_names, query))
        if taken is None:
            return f"uses {named[:80]} for more than selecting it, a field that {known.by_name[named.lower()].why}"
        return next(filter(None, (_fault_of_path(path, output, known.by_name) for path in taken)), None)

    def _without_plain_names(self, found: re.Match[str]) -> str:
        plain = _TWO_NAMES.sub(lambda path: "id" if path[0] in self.filters else path[0], found[0])
        return "[]" if self.filters.issuperset(fields_named(plain)) else found[0]

    def _of_command(self, path: str) -> _OfCommand:
        known = self._of_commands.get(path)
        if known is None:
            by_name = {
                one.name.lower(): one for scope, one in self.rows if not scope or f"{path} ".startswith(f"{scope} ")
            }
            known = self._of_commands[path] = _OfCommand(by_name, lazy("|".join(map(re.escape, by_name))))
        return known


def _fault_of_path(taken: list[str], output: str, free: Mapping[str, FreeField]) -> str | None:
    inside: FreeField | None = None
    for position, name in enumerate(taken):
        last = position == len(taken) - 1
        if inside and (name in inside.plain or (name in inside.through and not last)):
            continue
        if name.lower() not in free:
            if inside:
                return f"takes {name[:80]} out of {inside.name}, which {inside.why}"
            continue
        inside = free[name.lower()]
        if last and output not in inside.whole_as:
            forms = f" in another form than {' '.join(sorted(inside.whole_as))}" if inside.whole_as else ""
            return f"takes {name[:80]}{forms}, which {inside.why}"
    return None


def parse_free_fields(table: Mapping[str, Any]) -> FreeFields:
    return FreeFields(
        rows=tuple(
            (scope, FreeField(name, row["why"], *_lists(row)))
            for row in table["free"]
            for scope in row.get("path", "").split(", ")
            for name in row["fields"].split()
        ),
        filters=frozenset(table["filters"].split()),
        folded=Folded(
            reads=frozenset(re.split(r",\s+", table["folded"]["reads"])),
            objects=frozenset(table["folded"]["objects"].split()),
            why=table["folded"]["why"],
        ),
    )


def _lists(row: Mapping[str, str]) -> Iterator[frozenset[str]]:
    for key, default in (("plain", ""), ("through", ""), ("whole_as", _KEEPS_NAMES)):
        yield frozenset(row.get(key, default).split())
