"""Commands in a person's words: a label for one line of progress, and what an approval is about, from a table.

Words are taken from the command itself, never from who asks for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ghost.net import GUEST_SCRIPT, name_of
from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.text import one_line, visible

MAX_LABEL: Final = 72
MAX_NAME: Final = 60
NAMED: Final = ("--ids", "--name", "--vm", "--vm-name", "--nsg-name", "--vnet-name", "--zone-name", "--file")
"""Options whose values say what a command is about, in the order they are looked for."""
_ALIASES: Final = {"-g": "--resource-group", "-n": "--name", "-l": "--location", "-o": "--output"}
_PLACE: Final = lazy(r"\{(--[a-z-]+|)\}")
"""`{--name}` is an option's value, `{}` the one word that stands without an option."""
_PLAIN: Final = lazy(r"[A-Za-z0-9_./:~+-]+")
"""Values that a sentence may hold: nothing that looks like words of its own."""
_ID: Final = lazy(r"/subscriptions/[\w-]+/resourceGroups/([\w.()-]+)/providers/[\w.]+/\w+/([\w.-]+)")
_OPERATORS: Final = "|&;<>"
_QUERY = lazy(r"(--query )'([^']{60})[^']*'")
_RESOURCE_ID = lazy(r"/subscriptions/[^/\s]+/resourceGroups/[^/\s]+/providers/[\w./-]+/([\w.-]+)")


@dataclass(frozen=True)
class Effect:
    """What a command comes to, with the options it may have for that to be true."""

    options: tuple[str, ...]
    says: str
    costs: str
    undo: str


@dataclass(frozen=True)
class _Words:
    labels: dict[str, str] = field(default_factory=dict)
    effects: dict[str, Effect] = field(default_factory=dict)


@cache
def _words() -> _Words:
    return load_policy(__file__, "command_words.toml", _Words)


def label(command: str) -> str:
    """Return what a command reads or does and on what, on one line; the shortened command where no words are known."""
    path, options = _parsed(command)
    labels = _words().labels
    known = next((labels[f"{path} {name}"] for name in options if f"{path} {name}" in labels), labels.get(path))
    if known is None:
        return one_line(shortened(visible(command)), MAX_LABEL)
    named = next((values for name in NAMED if (values := options.get(name))), options.get("", []))
    if not path.startswith("az ") and not named:  # what a flag took for its value may be what it is about
        return one_line(shortened(visible(command)), MAX_LABEL)
    names = [visible(name_of(value))[:MAX_NAME] for value in named]
    while len(names) > 1 and len(", ".join(names)) > MAX_LABEL - len(known):
        names = [*names[:-2], "…"]
    return one_line(f"{known}: {', '.join(names)}" if names else known, MAX_LABEL)


def effect(command: str) -> str | None:
    """Return what a command does, on what, what it costs and how it is undone; None where that is not sure."""
    path, options = _parsed(command)
    known = _words().effects.get(path)
    if known is None or not options.keys() <= {*known.options}:
        return None
    if any(value.startswith("@") for values in options.values() for value in values):  # az reads a file's content
        return None
    own = tuple(options.get("--scripts", [])) == GUEST_SCRIPT and options.get("--command-id") == ["RunShellScript"]
    if "--scripts" in known.options and not own:
        return None
    given = {name: options.get(name, []) for name in _PLACE.findall(known.says)}
    if any(len(values) != 1 or _PLAIN.fullmatch(values[0]) is None for values in given.values()):
        return None
    told = _PLACE.sub(lambda place: _told(given[place[1]][0]), known.says)
    return f"{told} Costs: {known.costs}. Undo: {known.undo}."


def _told(value: str) -> str:
    """Return a resource id as name and group, anything else whole."""
    found = _ID.fullmatch(value)
    return f"“{found[2]}” of group “{found[1]}”" if found else f"“{value}”"


def shortened(text: str) -> str:
    """The text with a long `--query` and resource ids shortened; approvals and the audit hold the whole command."""
    return _RESOURCE_ID.sub(r"…/\1", _QUERY.sub(r"\1'\2…'", text))


def _parsed(command: str) -> tuple[str, dict[str, list[str]]]:
    """Return the longest known beginning of a command and its options; values without one are those of ``""``.

    A command that is not understood, gives an option twice or is one of several has no beginning.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        argv = list(lexer)
    except ValueError:
        return "", {}
    if any(word and set(word) <= set(_OPERATORS) for word in argv):
        return "", {}
    count = next((n for n, word in enumerate(argv) if word.startswith("-")), len(argv))
    known = {*_words().labels, *_words().effects}
    length = next((n for n in range(count, 0, -1) if " ".join(argv[:n]) in known), 0)
    options = _options(argv[length:])
    return (" ".join(argv[:length]), options) if options is not None else ("", {})


def _options(words: Sequence[str]) -> dict[str, list[str]] | None:
    options: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("-") and len(word) > 1:
            name, _, value = word.partition("=")
            name = _ALIASES.get(name, name)
            if name in options:
                return None
            options[name] = [value] if value else []
        else:
            options.setdefault(name, []).append(word)
    return options
