"""The normal form of a command: spellings that ask for the same have the same form.

Only what cannot change the answer is left out: the order of options, their short names, `--ids` in place of `-g` and
`-n`, case where Azure ignores it, the login's own subscription, and options about what az prints of its own work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ghost.azure import Arity, Command, catalogue, parse_options

_OF_EVERY_COMMAND = parse_options(
    ("--output/-o", "--query", "--subscription", "--only-show-errors?", "--verbose?", "--debug?", "--help/-h?")
)
_ABOUT_OUTPUT = ("--only-show-errors", "--verbose", "--debug", "--no-progress")
_ANY_CASE = ("--resource-group", "--name", "--ids", "--location", "--subscription", "--vm", "--nic")
_MOST_LEVELS = 2

Options = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class CommandForm:
    words: tuple[str, ...]
    """The program, the command and its positional arguments."""
    options: Options
    """Each with its values, sorted."""
    query: str | None = None
    output: str = "json"
    """Of az: how the answer is projected and printed, which is no part of what is asked."""

    def asks_like(self, other: CommandForm) -> bool:
        return (self.words, self.options) == (other.words, other.options)

    @property
    def of_az(self) -> bool:
        return self.words[0] == "az"


def form_of(argv: Sequence[str], home: frozenset[str] = frozenset()) -> CommandForm:
    """Return the form. `home`: id and name of the login's own subscription."""
    program = argv[0].rpartition("/")[2]
    if program == "az":
        command, size = catalogue().longest(list(takewhile(lambda word: not word.startswith("-"), argv[1:])))
        if command is not None:
            return _of_az(command, argv[1 + size :], home)
    options, positional = _plain(argv[1:])
    return CommandForm((program, *positional), tuple(sorted(options)))


def _of_az(command: Command, arguments: Sequence[str], home: frozenset[str]) -> CommandForm:
    named, positional = _named(command, arguments)
    output, query = named.pop("--output", ("json",)), named.pop("--query", None)
    for name in _ABOUT_OUTPUT:
        named.pop(name, None)
    if command.path.startswith("storage blob download"):
        named.pop("--file", None)  # where the caller puts it
    for name, values in named.items():
        if name in _ANY_CASE or name.endswith("-name"):
            named[name] = tuple(value.casefold() for value in values)
    named |= _by_name(command, named.pop("--ids", ())) if len(named.get("--ids", ())) == 1 else {}
    if set(named.get("--subscription", ())) <= {name.casefold() for name in home}:
        named.pop("--subscription", None)
    return CommandForm(
        words=("az", *command.path.split(), *positional),
        options=tuple(sorted(named.items())),
        query=" ".join(query) if query else None,
        output={"jsonc": "json"}.get(output[0], output[0]) if output else "json",
    )


def _named(command: Command, arguments: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the values of each option by its first spelling, and the positional arguments."""
    known = {name: option for option in _OF_EVERY_COMMAND for name in option.names} | dict(command.options)
    named: dict[str, tuple[str, ...]] = {}
    positional, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, attached = word.partition("=")
        option = known.get(name)
        if option is None:
            positional.append(word)
        elif equals:
            named[option.names[0]] = (attached,)
        else:
            named[option.names[0]] = values = tuple(_values(option.arity, rest))
            del rest[: len(values)]
    return named, tuple(positional)


def _values(arity: Arity, rest: Sequence[str]) -> Iterator[str]:
    if arity == "one":
        yield from rest[:1]
    elif arity != "none":
        following = takewhile(lambda word: not word.startswith("-"), rest)
        yield from following if arity != "optional" else list(following)[:1]


def _by_name(command: Command, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the options that say the same as one id; the id itself where that is not plain."""
    parts = ids[0].strip("/").split("/")
    names = {o.names[0] for o in command.options.values() if o.required_without_ids} - {"--resource-group"}
    ordered = sorted(names, key=lambda name: name == "--name")
    if len(parts) % 2 or [parts[0], *parts[2:5:2]] != ["subscriptions", "resourcegroups", "providers"]:
        return {"--ids": tuple(ids)}
    if len(parts[7::2]) != len(ordered) or not 0 < len(ordered) <= _MOST_LEVELS:
        return {"--ids": tuple(ids)}
    values = {"--subscription": parts[1], "--resource-group": parts[3], **dict(zip(ordered, parts[7::2], strict=True))}
    return {name: (value,) for name, value in values.items()}


def _plain(arguments: Sequence[str]) -> tuple[list[tuple[str, tuple[str, ...]]], list[str]]:
    """Return the options of another program, each with the word after it, and its other words.

    What takes no value may seem to have one: then two orders of the same words have two forms, and never one in common
    with another command.
    """
    options: list[tuple[str, tuple[str, ...]]] = []
    positional, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            options.append((word, (rest.pop(0),) if rest and not rest[0].startswith("-") else ()))
        else:
            positional.append(word)
    return options, positional
