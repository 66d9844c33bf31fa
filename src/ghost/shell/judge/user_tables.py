"""User tables: programs added to the allowlist by files in the directory GHOST_POLICY_DIR.

A user's table may only add. It never changes a program of the built-in tables, nor allows one that runs code, writes,
deletes, or runs other programs (`policy/user_tables.toml`). The directory and its files must belong to the user or to
root, with nobody else able to write them, and one broken file makes every command ask, so that a mistake is seen at
once. See `docs/policy.md`.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ghost.errors import ConfigurationError
from ghost.patterns import lazy
from ghost.shell.judge.forbidden_commands import programs_never_allowed
from ghost.shell.judge.grammar import Grammar, built_in, check_examples, parse_grammar
from ghost.shell.judge.regex_cost import most_ways
from ghost.shell.policy_tables import policy_table

VARIABLE = "GHOST_POLICY_DIR"
_FEWEST_EXAMPLES = 3
_NAME = lazy(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_VERSION = lazy(r"[-.\d]+$")
"""`python3.11` is `python`."""
_LONGEST_WORD = 256
"""Of a command of a user's program; the expressions of its table are judged for words of this length."""
_MOST_WAYS = 500_000
"""That an expression may try on such a word: a few milliseconds."""
_TYPES_BY_EXPRESSION = frozenset(("MATCH", "NAMED", "SENT", "TOKENS", "INTERFACE", "DNS_NAME"))
_NOT_FOR_USERS = {
    "open": "would allow options that nobody read in a manual",
    "spellings": "would give the words of other programs a new meaning",
    "operands_are_urls": "is for curl, whose hosts the shell pins",
}


@cache
def grammars() -> Mapping[str, Grammar]:
    """Every table by its program: the built-in ones and the user's, read and checked once."""
    directory = os.environ.get(VARIABLE)
    return {**built_in(), **user_grammars(Path(directory))} if directory else built_in()


def user_grammars(directory: Path) -> dict[str, Grammar]:
    """The tables in a directory; ConfigurationError names the file and what is wrong with it."""
    if not directory.is_absolute():
        raise ConfigurationError(f"{VARIABLE} is {str(directory)!r}; give an absolute path.")
    _check_owner(directory, is_directory=True)
    return {grammar.program: grammar for grammar in _read(directory)}


def _read(directory: Path) -> Iterator[Grammar]:
    for path in sorted(directory.glob("*.toml")):
        _check_owner(path, is_directory=False)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            _check_place(table, path)
            grammar = parse_grammar(table)
            check_examples(grammar, table["examples"])
            yield replace(grammar, longest_word=_LONGEST_WORD)
        except KeyError as error:
            raise ConfigurationError(f"The policy file {path} has no {error.args[0]!r}.") from error
        except (AttributeError, TypeError, ValueError, re.error, OSError) as error:
            raise ConfigurationError(f"The policy file {path} cannot be read: {error}") from error
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (in {path})") from error


def _check_owner(path: Path, *, is_directory: bool) -> None:
    try:
        status = path.lstat()
    except OSError as error:
        raise ConfigurationError(f"{VARIABLE}: {path} cannot be read: {error.strerror}.") from error
    kind = stat.S_ISDIR(status.st_mode) if is_directory else stat.S_ISREG(status.st_mode)
    if not kind:
        raise ConfigurationError(f"{VARIABLE}: {path} is not a {'directory' if is_directory else 'regular file'}.")
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigurationError(
            f"{VARIABLE}: others can write {path}; make it writable by you only: chmod go-w {path}"
        )


def _check_place(table: Mapping[str, Any], path: Path) -> None:
    program = str(table["program"])
    if program != path.stem or not _NAME.fullmatch(program):
        raise ConfigurationError(f"The table is for {program!r}; a file is named after its program, {program}.toml.")
    if program in built_in() or program == "az":
        raise ConfigurationError(f"{program} has a built-in table, which a user's file cannot change: remove the file.")
    if why := _why_never(program):
        raise ConfigurationError(f"{program} {why}, and always asks: remove its file.")
    for key, why in _NOT_FOR_USERS.items():
        if key in table:
            raise ConfigurationError(f"{key!r} {why}; leave it out.")
    for kind in ("safe", "risky"):
        if len(table["examples"][kind]) < _FEWEST_EXAMPLES:
            raise ConfigurationError(f"The table of {program} needs {_FEWEST_EXAMPLES} {kind} examples or more.")
    for name, value in table.get("variables", {}).items():
        if not _may_be_set(str(name), str(value)):
            raise ConfigurationError(
                f"A table may not set the variable {name} to {str(value)[:80]!r}: only the language, the time zone and "
                "colours, and the name of a configuration to /dev/null or below /nonexistent."
            )
    for text in _types(table):
        name, _, parameters = text.partition(" ")
        expression = parameters.partition(" -- ")[0].strip()
        if name not in _TYPES_BY_EXPRESSION:
            continue
        re.compile(expression, re.ASCII)  # here, since a grammar compiles it when a word first needs it
        if most_ways(expression, _LONGEST_WORD) > _MOST_WAYS:
            raise ConfigurationError(
                f"The expression {expression[:80]!r} may take long to match: bound its repeats, as in {{1,15}}, and "
                "repeat nothing that repeats."
            )


def _types(table: Mapping[str, Any]) -> Iterator[str]:
    """Every type in a table, alternatives separately."""
    forms = table.get("forms", ())
    texts = [*table.get("values", {}).values(), *table.get("operands", ()), table.get("sentence", "")]
    texts += [text for form in forms for text in (*form.get("pairs", {}).values(), *form.get("operands", ()))]
    return (part.strip() for text in texts for part in text.split(" | "))


def _why_never(program: str) -> str | None:
    """Why no user's table may allow a program, also under a variant of its name (`python3.11`, `nc.openbsd`)."""
    name = program.lower()
    spellings = {name, _VERSION.sub("", name), name.partition(".")[0], _VERSION.sub("", name.partition(".")[0])}
    if spellings & programs_never_allowed():
        return "runs code, changes files or runs other programs"
    return next((why for why, pattern in _limits().programs if any(map(pattern.fullmatch, spellings))), None)


def _may_be_set(name: str, value: str) -> bool:
    limits = _limits()
    if limits.never.fullmatch(name):
        return False
    return any(names.fullmatch(name) and values.fullmatch(value) for names, values in limits.variables)


class _Limits(NamedTuple):
    """`policy/user_tables.toml`."""

    programs: tuple[tuple[str, re.Pattern[str]], ...]
    variables: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    never: re.Pattern[str]


@cache
def _limits() -> _Limits:
    table = policy_table("user_tables.toml")
    return _Limits(
        programs=tuple((why, _any_of(names)) for why, names in table["programs"].items()),
        variables=tuple((_any_of(names), lazy(values)) for names, values in table["variables"].items()),
        never=_any_of(table["never"]["variables"]),
    )


def _any_of(patterns: str) -> re.Pattern[str]:
    return lazy("|".join(fnmatch.translate(pattern) for pattern in patterns.split()))
