"""The generated table of az commands. A line is split into options when its command is looked up.

The header of `commands.txt` describes the format; `scripts/generate_az_table.py` writes it. `extensions.txt` has the
same format and is maintained by hand.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from ghost.errors import ConfigurationError

TABLE = Path(__file__).parent / "commands.txt"
EXTENSIONS = Path(__file__).parent / "extensions.txt"

MAX_WORDS = 12
"""Longer than any command's path, in words."""

Arity = Literal["none", "optional", "one", "any", "some"]
"""How many values: none, none or one, one, any number, one or more."""

_ARITIES: Mapping[str, Arity] = {"?": "none", "%": "optional", "": "one", "*": "any", "+": "some"}
_OPTION = re.compile(
    r"(?P<names>-[A-Za-z0-9_./-]*[A-Za-z0-9_]|<\w+>)"
    r"(?P<arity>[?%*+]?)(?P<need>[!~]?)(?P<configured>\^?)(?P<file>&?)(?:=(?P<choices>\S+))?"
)
_VERSION = re.compile(r"# The commands of azure-cli (\S+),")


@dataclass(frozen=True)
class Option:
    names: tuple[str, ...]
    """All spellings, long ones first; `<name>` for a positional argument."""
    arity: Arity
    required: bool
    required_without_ids: bool
    configurable: bool
    """The user's configuration may give it a default."""
    may_name_a_file: bool
    """A plain value that is a path is opened as a file."""
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    path: str
    origin: str
    """`aaz` generated, `aaz+` generated with steps added by hand, `sdk` bound to a library, `hand`, `extension`."""
    methods: frozenset[str]
    """The HTTP methods it is known to use; empty where that cannot be read."""
    deprecated: bool
    options: Mapping[str, Option]
    """By spelling, without the global options."""
    positionals: tuple[Option, ...]


@dataclass(frozen=True)
class Catalogue:
    version: str
    lines: Mapping[str, str]
    """By path; the rest of the line, not yet split."""
    shared: Mapping[str, str]
    _parsed: dict[str, Command] = field(default_factory=dict)

    def command(self, path: str) -> Command | None:
        """Return the command at this path (words joined by single spaces); None if there is none."""
        known = self._parsed.get(path)
        if known is None and (line := self.lines.get(path)) is not None:
            known = self._parsed[path] = self._parse(path, line)
        return known

    def _parse(self, path: str, line: str) -> Command:
        made, _, listed = line.partition("\t")
        origin, *more = made.split()
        methods = more[0] if more and more[0] != "deprecated" else ""
        options = parse_options(self.shared.get(word, word) for word in listed.split())
        return Command(
            path=path,
            origin=origin,
            methods=frozenset(methods.split(",") if methods else ()),
            deprecated="deprecated" in more,
            options={name: option for option in options for name in option.names if name.startswith("-")},
            positionals=tuple(option for option in options if option.names[0].startswith("<")),
        )

    def origin(self, path: str) -> str:
        """Return how a known command is implemented, without parsing the rest of its line."""
        return self.lines[path].partition("\t")[0].partition(" ")[0]

    def longest(self, words: Sequence[str]) -> tuple[Command | None, int]:
        """Return the command at the start of these words, and the length of its path."""
        for size in range(min(len(words), MAX_WORDS), 0, -1):
            if command := self.command(" ".join(words[:size])):
                return command, size
        return None, 0

    def below(self, group: str) -> frozenset[str]:
        """Return the words that may follow a group; for "" the first words of all commands."""
        start = f"{group} " if group else ""
        return frozenset(path[len(start) :].partition(" ")[0] for path in self.lines if path.startswith(start))

    def nearest(self, words: Sequence[str]) -> str | None:
        """Return the path of the command or group probably meant by these words; None if nothing is similar."""
        asked = " ".join(words)
        if not asked or len(asked) > 120:
            return None
        if (ending := self._by_suffix(asked)) is not None:
            return ending
        group = ""
        for index, word in enumerate(words):
            below = self.below(group)
            if not below:
                break
            if word not in below:
                near = _close(word, below)
                elsewhere = _close(asked, (path for path in self.lines if path.startswith(group)), 0.75)
                if elsewhere is not None and (near is None or index + 1 < len(words)):
                    return elsewhere
                return f"{group} {near}".strip() if near else None
            group = f"{group} {word}".strip()
        return group or None

    def nearest_by_group(self, path: str) -> str | None:
        """Return the command with these last words or a similar spelling. Searches group by group, which is much
        faster than comparing with every command as `nearest` does.
        """
        if (ending := self._by_suffix(path)) is not None:
            return ending
        group = ""
        for word in path.split(" "):
            below = self.below(group)
            close = word if word in below else _close(word, below)
            if close is None:
                return None
            group = f"{group} {close}".strip()
        return group

    def _by_suffix(self, words: str) -> str | None:
        """Return the shortest command that ends in these words."""
        ending = [path for path in self.lines if path.endswith(f" {words}")]
        return min(ending, key=lambda path: (path.count(" "), path), default=None)


@cache
def _words() -> frozenset[str]:
    return frozenset(re.findall(r"[a-z]+", TABLE.read_text("utf-8").lower()))


def is_word_of_az(text: str) -> bool:
    """Return whether a text in lower case is a word of az's commands and options."""
    return text in _words()


def _close(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    near = difflib.get_close_matches(word, sorted(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def parse_options(words: Iterable[str]) -> list[Option]:
    """Parse options in the table's notation: `--name/-n!`, `--ids+`, `--mode=a|b`."""
    options = []
    for word in words:
        match = _OPTION.fullmatch(word)
        if match is None:
            raise ConfigurationError(f"The table of az commands holds {word!r}, which is not an option. Regenerate it.")
        options.append(
            Option(
                names=tuple(match["names"].split("/")),
                arity=_ARITIES[match["arity"]],
                required=match["need"] == "!",
                required_without_ids=match["need"] == "~",
                configurable=bool(match["configured"]),
                may_name_a_file=bool(match["file"]),
                choices=tuple(match["choices"].split("|")) if match["choices"] else (),
            )
        )
    return options


@cache
def catalogue() -> Catalogue:
    """Return the table, read once (some milliseconds)."""
    head, shared, rows = TABLE.read_text(encoding="ascii").split("\n\n")
    version = _VERSION.match(head)
    if version is None:
        raise ConfigurationError(
            f"{TABLE.name} does not name the azure-cli version it was generated from. Regenerate it."
        )
    _, extensions = EXTENSIONS.read_text(encoding="ascii").split("\n\n")
    return Catalogue(version[1], {**_by_name(extensions), **_by_name(rows)}, _by_name(shared))


def _by_name(lines: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in lines.splitlines())
