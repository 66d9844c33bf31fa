"""Commands in a person's words: a label for one line of progress, and what an approval is about, from a table.

Words are taken from the command itself, never from who asks for it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from ghost.net import GUEST_SCRIPT, name_of
from ghost.patterns import lazy
from ghost.policy import load_policy
from ghost.text import visible

MAX_LABEL: Final = 72
MAX_NAME: Final = 60
NAMED: Final = ("--ids", "--name", "--vm", "--vm-name", "--nsg-name", "--vnet-name", "--zone-name", "--file")
"""Options whose values say what a command is about, in the order they are looked for."""
_ALIASES: Final = {"-g": "--resource-group", "-n": "--name", "-l": "--location", "-o": "--output"}
_PLACE: Final = lazy(r"\{(--[a-z-]+|)\}")
"""`{--name}` is an option's value, `{}` the one word that stands without an option."""
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
        return shortened(visible(command))
    named = next((values for name in NAMED if (values := options.get(name))), options.get("", []))
    names = [visible(name_of(value))[:MAX_NAME] for value in named]
    while len(names) > 1 and len(", ".join(names)) > MAX_LABEL - len(known):
        names = [*names[:-2], "…"]
    return f"{known}: {', '.join(names)}" if names else known


def effect(command: str) -> str | None:
    """Return what a command does, on what, what it costs and how it is undone; None where that is not sure."""
    path, options = _parsed(command)
    known = _words().effects.get(path)
    if known is None or not options.keys() <= {*known.options}:
        return None
    if "--scripts" in options and (
        tuple(options["--scripts"]) != GUEST_SCRIPT or options.get("--command-id") != ["RunShellScript"]
    ):
        return None
    needed = _PLACE.findall(known.says)
    if any(len(options.get(name, [])) != 1 for name in needed):
        return None

    def value(place: re.Match[str]) -> str:
        given = options[place[1]][0]
        return visible(given if place[1] in ("", "--file") else name_of(given))

    return f"{_PLACE.sub(value, known.says)} Costs: {known.costs}. Undo: {known.undo}."


def shortened(text: str) -> str:
    """The text with a long `--query` and resource ids shortened; approvals and the audit hold the whole command."""
    return _RESOURCE_ID.sub(r"…/\1", _QUERY.sub(r"\1'\2…'", text))


def _parsed(command: str) -> tuple[str, dict[str, list[str]]]:
    """Return the longest known beginning of a command and its options; values without one are those of ``""``.

    A command that is not understood, or gives an option twice, has no beginning.
    """
    try:
        argv = shlex.split(command)
    except ValueError:
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
