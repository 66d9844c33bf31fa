"""Facts: what the output of a recorded command tells, taken from it by code, by the shapes in `fact_shapes.toml`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import Any, Final

from ghost.agent.audit_evidence import tag_of
from ghost.net import folded, lifted
from ghost.policy import load_policy

MAX_FACTS: Final = 20_000
"""Of one record."""
NONE: Final = "none"
_POWER: Final = re.compile(r"(?:PowerState/|VM )?([a-z]+)", re.IGNORECASE)
_NAMING: Final = (
    "--vnet-name", "--nsg-name", "-z", "--zone-name", "--lb-name", "--route-table-name", "--endpoint-name", "-n",
    "--name",
)  # fmt: skip
"""Options that name what a command reads, the outermost first."""


@dataclass(frozen=True)
class Fact:
    subject: tuple[str, ...]
    """Names, the outermost first: a group and its rule, a network and its peering, the two addresses of a finding."""
    property: str
    value: str
    record: str
    tier: int
    time: str

    def __str__(self) -> str:
        return f"{'/'.join(self.subject)} {self.property.replace('_', ' ')} {self.value}"


@dataclass(frozen=True)
class Shape:
    has: str
    facts: dict[str, str]


@dataclass(frozen=True)
class TextShape:
    program: str
    pattern: str


@dataclass(frozen=True)
class Demand:
    property: str
    value: str = ""
    other_than: str = ""
    or_none: str = ""
    absent: bool = False
    certain: bool = False
    """Whether the fact alone is a fault: a setting that is usual elsewhere shows less than a walk."""


@dataclass(frozen=True)
class Words:
    words: str
    property: str
    values: tuple[str, ...]
    named: bool = False


@dataclass(frozen=True)
class FactShapes:
    shapes: tuple[Shape, ...]
    texts: tuple[TextShape, ...]
    empty: dict[str, str]
    demanded: dict[str, Demand]
    words: tuple[Words, ...]


@cache
def fact_shapes() -> FactShapes:
    return load_policy(__file__, "fact_shapes.toml", FactShapes)


def argv_in(record: Mapping[str, Any]) -> list[str]:
    """Return the words of a record's command; none if it is none."""
    with suppress(ValueError):
        return shlex.split(str(record.get("modified_command") or record.get("command") or ""))
    return []


def names_in(resource: str) -> tuple[str, ...]:
    """Return the names in an id, the outermost first; `group/rule` is two, an address with its prefix one."""
    parts = resource.strip("/").split("/")
    of_providers = re.split("/providers/", resource, flags=re.IGNORECASE)[1:]
    if of_providers:
        return tuple(name for each in of_providers for name in each.strip("/").split("/")[2::2])
    return (resource,) if len(parts) == 2 and parts[1].isdecimal() else tuple(filter(None, parts))


def facts_in(record: Mapping[str, Any], text: str) -> tuple[Fact, ...]:
    """Return what the output of a record tells, of which `text` is the whole; of a filter's output nothing is taken."""
    if len(record.get("stages") or ()) > 1:
        return ()
    argv, tier = argv_in(record), tag_of(record).tier
    made = (
        Fact(subject, name, value, str(record.get("audit_id")), tier, str(record.get("timestamp")))
        for subject, name, value in _told(argv, text)
    )
    return tuple(islice(made, MAX_FACTS))


_Told = Iterator[tuple[tuple[str, ...], str, str]]


def _told(argv: list[str], text: str) -> _Told:
    named = _named(argv)
    answer: Any = None
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
        if answer == [] and (command := fact_shapes().empty.get(_command(argv))) is not None:
            yield named, command, NONE
        yield from _in_json(folded(lifted(_opened(answer))), named)
    if answer is None or isinstance(answer, str):
        for shape in fact_shapes().texts:
            if argv[:1] == [shape.program]:
                for found in re.finditer(shape.pattern, text):
                    yield from ((named, name, value) for name, value in found.groupdict().items())


def _command(argv: list[str]) -> str:
    end = next((at for at, word in enumerate(argv) if word.startswith("-")), len(argv))
    return " ".join(argv[1:end])


def _named(argv: list[str]) -> tuple[str, ...]:
    """Return what a command is about: what `az` names, the target of a probe."""
    if argv[:1] == ["az"]:
        given = dict(pairwise(argv))
        return tuple(given[option] for option in _NAMING if option in given)
    words = [word for word in argv[1:] if word[0:1] not in ("-", "+", "@") and word not in ("A", "AAAA", "CNAME")]
    return tuple(words[-1:])


def _opened(value: Any) -> Any:
    """Return the value with rows that `--query` made JSON text of as objects again."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            return json.loads(value)
    if isinstance(value, list):
        return [_opened(item) for item in value]
    return {name: _opened(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def _in_json(value: Any, context: tuple[str, ...]) -> _Told:
    if isinstance(value, list):
        for item in value:
            yield from _in_json(item, context)
    if not isinstance(value, Mapping):
        return
    context = _subject(value, context)
    for shape in fact_shapes().shapes:
        if all(_has(value, part) for part in shape.has.split()):
            for name, paths in shape.facts.items():
                for text in (text for path in paths.split() for text in _texts(value, path)):
                    if (stated := _normal(name, text)) is not None:
                        yield from ((subject, name, stated) for subject in _subjects(value, context))
    for item in value.values():
        yield from _in_json(item, context)


def _has(value: Mapping[str, Any], part: str) -> bool:
    if part.startswith("/"):
        return part in str(value.get("id")).casefold()
    outer, _, inner = part.partition(".")
    held = value.get(outer)
    return outer in value and (not inner or (isinstance(held, Mapping) and _has(held, inner)))


def _subject(value: Mapping[str, Any], context: tuple[str, ...]) -> tuple[str, ...]:
    group = value.get("networksecuritygroup")
    if "effectivesecurityrules" in value and isinstance(group, Mapping):
        return names_in(str(group.get("id") or ""))
    if isinstance(value.get("who"), Mapping):
        value = value["who"]
    if "src" in value and "dst" in value:
        port = (str(value["port"]),) if "packets" in value and value.get("port") else ()
        return str(value["src"]), str(value["dst"]), *port
    if isinstance(value.get("id"), str) and (names := names_in(value["id"])):
        return names
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return context
    name = name.rpartition("/")[2]
    return context if context[-1:] == (name,) else (*context, name)


def _subjects(value: Mapping[str, Any], subject: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a subject; of a route with its prefix, of which Azure groups several."""
    if "nexthoptype" not in value:
        yield subject
        return
    prefixes = list(_texts(value, "addressprefix"))
    yield from ((*subject, prefix) for prefix in prefixes)
    if not prefixes:
        yield subject


def _texts(value: Any, path: str) -> Iterator[str]:
    outer, _, inner = path.partition(".")
    held = value.get(outer) if isinstance(value, Mapping) else None
    if held in (None, [], {}):
        if inner or held == []:
            yield NONE
    elif inner:
        for item in held if isinstance(held, list) else [held]:
            yield from _texts(item, inner)
    else:
        for item in held if isinstance(held, list) else [held]:
            if isinstance(item, bool):
                yield str(item).casefold()
            elif isinstance(item, str | int | float):
                yield str(item)


def _normal(name: str, text: str) -> str | None:
    """Return a value as it is compared and told; None if it is none of this property."""
    if name == "power":
        found = _POWER.fullmatch(text)
        return found[1].casefold() if found and text != NONE else None
    return "/".join(names_in(text)) if text.startswith("/") else text
