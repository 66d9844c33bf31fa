"""Forms of reads that ask: the words of a command with `*` for each value that may differ.

A person who allows a form allows every command of the same form, and the form of each is made anew from its parsed
words. A slot is the value of a known option that fits its type in the tables; everything else stands in the form as it
is, in its place. A literal `*` is quoted, so no word reads as a slot.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise

from ghost.azure import Arity
from ghost.shell.judge.az import read_commands
from ghost.shell.judge.grammar import Grammar
from ghost.shell.judge.value_types import Roots

SLOT = "*"
_AS_WRITTEN = frozenset(("--query", "--output", "--subscription", "--ids", "--filter", "--expand"))
"""Options of az that decide what is told, or of whom."""
_COUNTS: dict[Arity, tuple[int, float]] = {
    "none": (0, 0), "optional": (0, 1), "one": (1, 1), "any": (0, float("inf")), "some": (1, float("inf")),
}  # fmt: skip
_NO_ROOTS = Roots(())


def form_of_az(words: Sequence[str]) -> str | None:
    """The form of an az command that uses GET alone and hands out no secret, by its metadata; None for any other."""
    table = read_commands.reads()
    command, size = table.catalogue.longest(words[1:])
    if command is None or not command.methods or command.methods - {"GET", "HEAD"} or command.positionals:
        return None
    if table.risks.of_reading(command.path) is not None:
        return None
    typed = {**table.everywhere, **table.values.allowed(command.options.values(), command.path)}
    shown = list(words[: 1 + size])
    given: set[str] = set()
    rest = list(words[1 + size :])
    while rest:
        word = rest.pop(0)
        name, equals, joined = word.partition("=") if word.startswith("--") else (word, "", "")
        option, allowed = command.options.get(name), typed.get(name)
        if option is not None and (option.may_name_a_file or table.values.is_never(command.path, option)):
            return None
        if name in table.risks.options:
            return None
        if allowed is not None:
            full, arity, check = allowed.name, allowed.arity, allowed.check
        elif option is not None:
            full, arity, check = option.names[0], option.arity, None
        else:
            return None
        values = [joined] if equals else []
        while not equals and rest and not rest[0].startswith("-"):
            values.append(rest.pop(0))
        least, most = _COUNTS[arity]
        if full in given or not least <= len(values) <= most or not all(map(_is_plain, values)):
            return None
        given.add(full)
        differs = check is not None and arity == "one" and full not in _AS_WRITTEN and not check(values[0], _NO_ROOTS)
        told = [SLOT] if differs else [shlex.quote(value) for value in values]
        shown += [f"{name}={told[0]}"] if equals else [name, *told]
    return " ".join(shown)


def _is_plain(value: str) -> bool:
    """Whether az takes a value for itself: it names neither a file nor another server."""
    return bool(value) and not any(part.startswith("@") for part in value.split("=")) and "://" not in value


def form_of_program(grammar: Grammar, words: Sequence[str], roots: Roots) -> str | None:
    """The form of a command of a program that has a table; None where a word of it is known to do more than read.

    Whether the program only reads, its sandbox decides.

    Behind an option that the table does not know nothing differs: it may take the word after it for itself.
    """
    pairs = (" ".join(pair) for pair in pairwise(words[1:]))
    letters = (
        f"{word[0]}{letter}" for word in words[1:] if grammar.clusters and word[:1] == "-" for letter in word[1:]
    )
    if not grammar.risks.keys().isdisjoint((*words[1:], *pairs, *letters)):
        return None
    shown = [shlex.quote(words[0])]
    check, is_known = None, True
    for word in words[1:]:
        differs = check is not None and not word.startswith(("-", "+", "@")) and check(word, roots) is None
        shown.append(SLOT if differs else shlex.quote(word))
        is_value = check is not None
        check = grammar.values.get(word) if is_known and not is_value else None
        if not is_value and check is None and word.startswith(grammar.prefixes) and word not in grammar.flags:
            is_known = False
    return " ".join(shown)
