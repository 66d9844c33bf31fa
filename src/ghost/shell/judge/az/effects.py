"""Effects of az commands that are not reads, for the prompt: `policy/az_effects.toml`. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from ghost.shell.policy_tables import policy_table

_LONGEST_PATH = 8
"""Words, of the commands in the table."""
_VERBS_OF_READS = frozenset(("list", "show", "wait"))


def effect_of(words: Sequence[str]) -> str | None:
    """One sentence on the effect of `az ...`; None where it is unknown or only reads."""
    path: list[str] = []
    for word in words[1:]:
        if word.startswith("-") or len(path) == _LONGEST_PATH:
            break
        path.append(word)
    if not path or path[-1] in _VERBS_OF_READS or path[-1].startswith(("list-", "show-", "get-")):
        return None
    table = _effects()
    for end in range(len(path), 0, -1):
        command = " ".join(path[:end])
        if what := table.commands.get(command):
            return ". ".join((f"az {' '.join(path)[:120]} {what}", *_of_values(table, command, words))) + "."
    return None


def _of_values(table: _Effects, command: str, words: Sequence[str]) -> list[str]:
    told = []
    for value in table.values:
        if command in value.commands:
            given = [words[at + 1] for at, word in enumerate(words[:-1]) if word == value.option]
            given += [word.partition("=")[2] for word in words if word.startswith(f"{value.option}=")]
            if given and given[-1].lower() == value.value.lower():
                told.append(value.why)
    return told


class _OfValue(NamedTuple):
    commands: frozenset[str]
    option: str
    value: str
    why: str


class _Effects(NamedTuple):
    commands: Mapping[str, str]
    values: tuple[_OfValue, ...]


@cache
def _effects() -> _Effects:
    table = policy_table("az_effects.toml")
    return _Effects(
        commands={command: why for commands, why in table["commands"].items() for command in commands.split(", ")},
        values=tuple(
            _OfValue(frozenset(row["commands"].split(", ")), row["option"], row["value"], row["why"])
            for row in table["values"]
        ),
    )
