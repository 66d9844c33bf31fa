"""Checks of an az command before it reaches the shell: its path, its options and `--query`.

A mistake is returned to the brain as advice, without a process, a prompt, an audit record or a denial. Only what the
real CLI is sure to refuse is reported; nothing is reported where the CLI may know more than the table (an extension, a
default in the user's configuration, an abbreviation).
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from ghost.azure import (
    MAX_WORDS,
    Catalogue,
    Command,
    Configuration,
    Option,
    catalogue,
    parse_options,
    read_configuration,
)

_GLOBAL_OPTIONS = "--help/-h? --verbose? --debug? --only-show-errors? --output/-o --query"
_OPERATOR = re.compile(r"[|&;]+|\d?[<>]{1,2}.*")
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


def preflight(command: str, configuration: Configuration | None = None) -> str | None:
    """Return the mistake in `command` and how to correct it; None if there is none or only the shell can tell."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if not words or words[0] != "az":
        return None
    if configuration is None:
        configuration = _users_configuration()
    return _az_mistake(words[1:], catalogue(), configuration)


@cache
def _users_configuration() -> Configuration:
    return read_configuration()


def _az_mistake(words: list[str], offered: Catalogue, configuration: Configuration) -> str | None:
    start = _command_start(words)
    end = next((index for index in range(start, len(words)) if words[index].startswith("-")), len(words))
    path, rest = [word.lower() for word in words[start:end]], words[end:]
    if not path or path[0] == "help" or "-h" in words or "--help" in words:
        return None
    command, size = offered.longest(path)
    if command is None:
        return _path_mistake(path, offered, configuration)
    if start > 0:
        return f"az takes options only after the command: az {command.path} {shlex.join(words[:start])} ..."
    line = None if command.origin == "extension" else [*words[size:end], *rest]
    mistake = None if line is None else _line_mistake(command, line, configuration)
    return mistake or _query_mistake(_value_of(words, "--query"))


def _command_start(words: Sequence[str]) -> int:
    """Return the index of the first word of the command after any leading global options."""
    position = 0
    while position < len(words) and words[position].startswith("-"):
        option = _global_options().get(words[position])
        position += 2 if option is not None and option.arity == "one" else 1
    return position


@cache
def _global_options() -> Mapping[str, Option]:
    return {name: option for option in parse_options(_GLOBAL_OPTIONS.split()) for name in option.names}


def _path_mistake(path: Sequence[str], offered: Catalogue, configuration: Configuration) -> str | None:
    typed_path = " ".join(path)
    if path[0] in configuration.extended or configuration.unknown_extensions or _is_extension_command(path, offered):
        return None
    if below := offered.below(typed_path):
        shown = ", ".join(sorted(below)[:12])
        return f"az {typed_path} is a group of commands. Name one of them: {shown}{', ...' if len(below) > 12 else ''}"
    near = offered.nearest(path)
    hint = f"Did you mean az {near}?" if near else "See az --help for the groups of commands."
    return f"az {typed_path[:120]} is not a command of azure-cli {offered.version}. {hint}"


def _is_extension_command(path: Sequence[str], offered: Catalogue) -> bool:
    """Return whether the command would belong to a group that only an extension provides."""
    for size in range(min(len(path) - 1, MAX_WORDS), 0, -1):
        inside = [known for known in offered.lines if known.startswith(" ".join(path[:size]) + " ")]
        if inside:
            return all(offered.origin(known) == "extension" for known in inside)
    return False


# The options of one command, read as the CLI's own parser (argparse) reads them


@dataclass
class _Line:
    """One pass over the words that follow the command path."""

    command: Command
    options: Mapping[str, Option]
    seen: set[Option] = field(default_factory=set)
    is_certain: bool = True
    """False once a word was found that the CLI may read in more than one way."""

    def mistake(self, words: Sequence[str]) -> str | None:
        position = 0
        while position < len(words) and self.is_certain:
            word = words[position]
            if self._is_option(word):
                taken = self._take(word, words[position + 1 :])
                if isinstance(taken, str):
                    return taken
                position += taken
            elif self.command.positionals:
                position += 1
            else:
                return f"az {self.command.path} takes no word {word[:80]!r} here{_stray_word_advice(words, position)}"
        return None

    def _take(self, word: str, following: Sequence[str]) -> int | str:
        """Return the number of words used by the option and its values, or the mistake in it."""
        name, equals, _ = word.partition("=") if word.startswith("--") else (word, "", "")
        near = self._candidates(name)
        if not near:
            return self._unknown(name)
        if len(near) > 1 or (not word.startswith("--") and word not in self.options):
            self.is_certain = False  # ambiguous, or a short option with something joined
            return 1
        option = near.pop()
        self.seen.add(option)
        values = 0 if equals else self._values(option, following)
        if not values and not equals and option.arity in ("one", "some"):
            return f"{name} of az {self.command.path} needs a value after it"
        return 1 + values

    def _candidates(self, name: str) -> set[Option]:
        """Return the options that match by exact spelling, else by prefix; a short option may have its value
        attached.
        """
        if name in self.options:
            return {self.options[name]}
        near = {option for known, option in self.options.items() if known.startswith(name)}
        if not name.startswith("--") and name[:2] in self.options:
            near.add(self.options[name[:2]])
        return near

    def _is_option(self, word: str) -> bool:
        if not word.startswith("-") or len(word) == 1:
            return False
        return word.partition("=")[0] in self.options or (not _NUMBER.fullmatch(word) and " " not in word)

    def _values(self, option: Option, following: Sequence[str]) -> int:
        max_values = {"none": 0, "optional": 1, "one": 1}.get(option.arity, len(following))
        return next(
            (index for index, word in enumerate(following[:max_values]) if self._is_option(word)),
            min(max_values, len(following)),
        )

    def _unknown(self, name: str) -> str:
        own = list(dict.fromkeys(option.names[0] for option in self.command.options.values()))
        near = difflib.get_close_matches(
            name, [known for known in self.options if known.startswith("--")], n=1, cutoff=0.7
        )
        hint = f"Did you mean {near[0]}?" if near else f"It has: {', '.join(own) or 'none of its own'}"
        return f"az {self.command.path} has no option {name[:80]}. {hint}"

    def missing(self, configuration: Configuration) -> str | None:
        absent = [
            option
            for option in dict.fromkeys(self.command.options.values())
            if option not in self.seen and not (option.configurable and configuration.has_defaults)
        ]
        with_ids = self.command.options.get("--ids") in self.seen
        required = [option.names[0] for option in absent if option.required]
        instead = [] if with_ids else [option.names[0] for option in absent if option.required_without_ids]
        if not required and not instead:
            return None
        needs = " and ".join([*required, *instead])
        return f"az {self.command.path} needs {needs}{' (or --ids with the full id)' if instead else ''}"


def _line_mistake(command: Command, words: Sequence[str], configuration: Configuration) -> str | None:
    line = _Line(command, {**_global_options(), **command.options})
    mistake = line.mistake(words)
    if mistake is None and line.is_certain:
        mistake = line.missing(configuration)
    return mistake


def _stray_word_advice(words: Sequence[str], position: int) -> str:
    if _OPERATOR.fullmatch(words[position]):
        return ": one plain command runs, without pipes or redirections. Leave out what follows and filter with --query"
    if any(word.startswith("-") for word in words[:position]):
        return ": put a value with spaces in quotes, or leave the word out"
    return ": leave it out, or name the option it belongs to"


# --query


def _value_of(words: Sequence[str], option: str) -> str | None:
    for index, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return words[index + 1] if index + 1 < len(words) else ""
    return None


def _query_mistake(query: str | None) -> str | None:
    import jmespath
    from jmespath.exceptions import JMESPathError

    if query is None or query.startswith("@"):  # '@FILE' is for the shell to judge
        return None
    if not query.strip():
        return "--query has no expression: add one, or leave the option out"
    try:
        jmespath.compile(query.replace("\\`", "`"))  # a shell takes the backslash away, shlex does not
    except JMESPathError as error:
        hint = "compare with == (not =), and quote text as 'text'" if "=" in query else "see jmespath.org"
        first_line = str(error).splitlines()[0] if str(error) else "not a JMESPath expression"
        return f"--query is not valid JMESPath ({first_line}): {hint}"
    return None
