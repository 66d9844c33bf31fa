"""Which az commands only read: a table of command paths and options, `policy/az_reads.toml`.

An az command is SAFE when its leading words are a path of the table, every option is known for that path and spelled
in full, no word is left over and no value names a file with `@`. The verb of a command can only explain why it is
RISKY; it makes nothing SAFE.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ghost.errors import ConfigurationError
from ghost.shell.grammar import Refusal
from ghost.shell.parse import parse
from ghost.shell.values import Check, Roots, parse_type

POLICY = Path(__file__).parent / "policy"
_NO_ROOTS = Roots(())
_OPTION = re.compile(r"(?P<names>-[A-Za-z0-9/-]*[A-Za-z0-9])(?P<arity>[?*]?)(?P<required>!?)")


@dataclass(frozen=True)
class Option:
    name: str
    arity: Literal["none", "one", "several"]
    check: Check | None
    is_required: bool


@dataclass(frozen=True)
class Reads:
    """The table: command path to the options it may have, each under every spelling."""

    options_of: Mapping[str, Mapping[str, Option]]
    everywhere: Mapping[str, Option]

    def refusal(self, words: Sequence[str]) -> Refusal | None:
        """Why `az ...` is not SAFE; None when it is."""
        position = 1
        while position < len(words) and words[position].startswith("-"):
            taken = _take(self.everywhere, "", words, position)
            if isinstance(taken, Refusal):
                return taken
            position += taken
        start = position
        while position < len(words) and not words[position].startswith("-"):
            position += 1
        path = " ".join(words[start:position])
        options = self.options_of.get(path)
        if options is None or path.count(" ") != position - start - 1:  # 'vm list' in quotes is no path
            return self._not_a_read(path)
        while position < len(words):
            taken = _take(options, path, words, position)
            if isinstance(taken, Refusal):
                return taken
            position += taken
        return None

    def _not_a_read(self, path: str) -> Refusal:
        if not path:
            return Refusal("az: no command", "az without a command tells nothing. Name one, such as az account show.")
        risks = _risks()
        known = risks.of_path(path)
        if known:
            return Refusal(f"az: {path[:80]}", f"az {path[:80]} {known}.")
        return Refusal(
            "az: not a known read",
            f"az {path[:80]} is not in the table of az commands known to only read.{self._suggestion(path)}",
        )

    def _suggestion(self, path: str) -> str:
        if len(path) > 80:
            return ""
        ending = next((known for known in self.options_of if known.endswith(f" {path}")), None)
        near = [ending] if ending else difflib.get_close_matches(path, self.options_of, n=1, cutoff=0.8)
        return f" Did you mean az {near[0]}?" if near else ""


def _take(options: Mapping[str, Option], path: str, words: Sequence[str], position: int) -> int | Refusal:
    """Judge the option at `position` with its values; how many words it takes."""
    word = words[position]
    name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
    option = options.get(name)
    if option is None:
        return _unknown_option(name, options, path)
    if option.arity == "none":
        return _refuse(name, "takes no value.") if equals else 1
    if equals:
        values, width = [value], 1
    else:
        end = position + 1
        limit = len(words) if option.arity == "several" else position + 2
        while end < min(limit, len(words)) and not words[end].startswith("-"):
            end += 1
        values, width = list(words[position + 1 : end]), end - position
    if not values:
        return _refuse(name, "needs a value behind it.")
    for value in values:
        if reason := _fault_of_value(option, value):
            return _refuse(name, f"has the value {value[:80]!r}, which {reason}.")
    return width


def _fault_of_value(option: Option, value: str) -> str | None:
    """az reads a word, or what follows its first '=', as a file's name where it begins with '@'; a bare '@' is text."""
    if value == "@" and option.name in ("--query", "--name"):
        return None
    if value.startswith("@") or value.partition("=")[2].startswith("@"):
        return "az may read as '@FILE', a local file. In a --query put something before '@'"
    return option.check(value, _NO_ROOTS) if option.check else None


def _unknown_option(name: str, options: Mapping[str, Option], path: str) -> Refusal:
    known = _risks().options.get(name)
    if known:
        return _refuse(name, f"{known}.")
    where = f"az {path}" if path else "az before the command"
    full = sorted(long for long in options if name.startswith("--") and long.startswith(name))
    hint = f" Write it in full: {full[0]}." if full else ""
    return _refuse(name, f"is not an option that {where} is known to only read with.{hint}")


def _refuse(option: str, reason: str) -> Refusal:
    return Refusal(f"az: option {option[:80]}", f"The az command only reads, but {option[:80]} {reason}")


@dataclass(frozen=True)
class Risks:
    verbs: Mapping[str, str]
    secrets: tuple[tuple[re.Pattern[str], str], ...]
    groups: Mapping[str, str]
    options: Mapping[str, str]

    def of_path(self, path: str) -> str | None:
        """What an az command that is no read does, where its words tell; None otherwise."""
        head = path[:200]
        for pattern, why in self.secrets:
            if pattern.fullmatch(head):
                return f"only reads, but {why}; the output would go to the model"
        first, *_ = words = head.split()
        if first in self.groups:
            return self.groups[first]
        return next((self.verbs[word] for word in reversed(words) if word in self.verbs), None)


@cache
def _risks() -> Risks:
    table = tomllib.loads((POLICY / "az_risks.toml").read_text(encoding="utf-8"))
    return Risks(
        verbs=table["verbs"],
        secrets=tuple((re.compile(row["path"]), row["why"]) for row in table["secrets"]),
        groups=table["groups"],
        options={name: why for names, why in table["options"].items() for name in names.split(", ")},
    )


@cache
def reads() -> Reads:
    """The table, read and checked against its examples once."""
    return parse_reads(tomllib.loads((POLICY / "az_reads.toml").read_text(encoding="utf-8")))


def _by_each_option(types: Mapping[str, Any]) -> dict[str, str]:
    """`"--vm --nic" = type` stands for both; tables of single paths are left out."""
    return {name: text for names, text in types.items() if isinstance(text, str) for name in names.split()}


def parse_reads(table: Mapping[str, Any]) -> Reads:
    types = _by_each_option(table["types"])
    parsed = cache(parse_type)

    def options(path: str, text: str) -> dict[str, Option]:
        own = _by_each_option(table["types"].get(path, {}))
        known: dict[str, Option] = {}
        for word in text.split():
            match = _OPTION.fullmatch(word)
            if match is None:
                raise ConfigurationError(f"The az table's row {path!r} holds {word!r}, which is no option.")
            names = match["names"].split("/")
            wanted = next((own.get(name) or types.get(name) for name in names if name in own or name in types), None)
            arity: Literal["none", "one", "several"] = (
                "none" if match["arity"] == "?" else "several" if match["arity"] else "one"
            )
            check = None if arity == "none" else parsed(wanted or types["*"])
            option = Option(names[0], arity, check, bool(match["required"]))
            known.update(dict.fromkeys(names, option))
        return known

    everywhere = options("", table["everywhere"]["options"])
    reads = Reads(
        options_of={path: {**everywhere, **options(path, text)} for path, text in table["reads"].items()},
        everywhere=everywhere,
    )
    for kind in ("safe", "risky"):
        for command in table["examples"][kind]:
            line = parse(command)
            if (line.fault is None and reads.refusal(line.words) is None) != (kind == "safe"):
                raise ConfigurationError(f"The az table contradicts its example {command!r}, which must be {kind}.")
    return reads
