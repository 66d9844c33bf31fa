"""The command table and option parsing.

A command is registered with its words, options and function. An option is its names, the long one first, and a mark:
`--name -n !` is required, `--show-details -d ?` has no value, `--ids *` has several, `--ip-forwarding ~` may have one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ghost.lab.az_cli.cli_errors import AzError, usage
from ghost.lab.directory import LabDirectory

Answer = Callable[[LabDirectory, argparse.Namespace], Any]

FORMATS = ("json", "jsonc", "yaml", "yamlc", "table", "tsv", "none")
GLOBAL_OPTIONS = (
    "--query",
    "--output -o",
    "--subscription",
    "--only-show-errors ?",
    "--verbose ?",
    "--debug ?",
)
NAME, GROUP, IN_GROUP = "--name -n !", "--resource-group -g !", "--resource-group -g"


@dataclass(frozen=True)
class Command:
    words: str
    options: tuple[str, ...]
    answer: Answer
    id_names: tuple[str, ...] = ()
    """The options filled by `--ids`, one per level of the id; empty without `--ids`."""


COMMANDS: dict[str, Command] = {}


def command(words: str, *options: str, ids: tuple[str, ...] = ()) -> Callable[[Answer], Answer]:
    """Register the decorated function. `ids` names the options filled from an id."""

    def register(answer: Answer) -> Answer:
        COMMANDS[words] = Command(words, options, answer, ids)
        return answer

    return register


def find(arguments: Sequence[str]) -> tuple[Command, list[str]]:
    """Return the command of the leading words, and the remaining words."""
    words: list[str] = []
    for word in arguments:
        if word.startswith("-"):
            break
        words.append(word)
        if (found := COMMANDS.get(" ".join(words))) is not None:
            return found, list(arguments[len(words) :])
        if not any(known.startswith(" ".join(words) + " ") for known in COMMANDS):
            raise usage(f"'{word}' is misspelled or not recognized by the system.")
    raise usage("the following arguments are required: _subcommand")


def read_options(found: Command, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse options. Raises `AzError` with the CLI's own message if they do not fit the command."""
    parser = _Parser(prog=f"az {found.words}", add_help=False)
    options = [*found.options, *(["--ids *"] if found.id_names else []), *GLOBAL_OPTIONS]
    for option in options:
        names, mark = _split(option)
        if mark == "?":
            parser.add_argument(*names, action="store_true")
        elif mark == "*":
            parser.add_argument(*names, nargs="+")
        elif mark == "~":
            parser.add_argument(*names, nargs="?", const="true")
        elif names[0] == "--query":
            parser.add_argument(*names, type=jmespath_type)
        else:
            parser.add_argument(*names, required=mark == "!" and not found.id_names)
    read = parser.parse_args(list(arguments))
    _check_identified(found, read)
    if read.output is None:
        read.output = "json"
    if read.output not in FORMATS:
        allowed = ", ".join(FORMATS)
        raise usage(
            f"az {found.words}: '{read.output}' is not a valid value for '--output'. Allowed values: {allowed}."
        )
    return read


def attribute(option: str) -> str:
    """Return where the value of an option stands: `nsg_name` of `--nsg-name`."""
    return option.split()[0].removeprefix("--").replace("-", "_")


def _check_identified(found: Command, read: argparse.Namespace) -> None:
    """Require what `--ids` can replace; the CLI checks this after parsing."""
    if not found.id_names or read.ids:
        return
    required = [names for names, mark in map(_split, found.options) if mark == "!"]
    missing = [names[0] for names in required if getattr(read, attribute(names[0])) is None]
    if missing:
        raise AzError(f"({' '.join(missing)} | --ids) are required")


def answer(found: Command, lab: LabDirectory, options: argparse.Namespace) -> Any:
    """Return the command's result; a list for several `--ids`, of those that there are."""
    _check_subscription(lab, options.subscription)
    ids: list[str] | None = options.ids if found.id_names else None
    if not ids:
        return found.answer(lab, options)
    results, errors = [], []
    for resource_id in ids:
        try:
            results.append(found.answer(lab, _by_id(options, found.id_names, resource_id)))
        except AzError as error:
            errors.append(error)
    if not results:
        raise errors[0] if len(errors) == 1 else AzError("Encountered more than one exception.")
    return results[0] if len(results) == 1 else results


def split_id(resource_id: str) -> tuple[str, str, list[str]]:
    """Return resource group, type and names of an id. Raises `AzError` if it is invalid."""
    parts = resource_id.strip("/").split("/")
    well_formed = len(parts) >= 8 and len(parts) % 2 == 0
    if not (
        well_formed and [parts[i].casefold() for i in (0, 2, 4)] == ["subscriptions", "resourcegroups", "providers"]
    ):
        raise AzError(f"invalid resource ID: {resource_id}")
    return parts[3], "/".join([parts[5], *parts[6::2]]), parts[7::2]


def jmespath_type(text: str) -> Any:
    """Parse a query; the function's name is part of the CLI's error message."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        raise ValueError(str(error)) from error


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise usage(message)


def _split(option: str) -> tuple[list[str], str]:
    words = option.split()
    return (words[:-1], words[-1]) if words[-1] in "!?*~" else (words, "")


def _by_id(options: argparse.Namespace, names: tuple[str, ...], resource_id: str) -> argparse.Namespace:
    group, _, values = split_id(resource_id)
    if len(values) != len(names):
        raise AzError(
            f"Argument --name cannot be derived from ID {resource_id}. Please provide a complete resource ID "
            "containing all information of 'Resource Id' arguments."
        )
    return argparse.Namespace(**{**vars(options), "resource_group": group, **dict(zip(names, values, strict=True))})


def _check_subscription(lab: LabDirectory, wanted: str | None) -> None:
    subscription = lab.world.subscription
    if wanted is not None and wanted.casefold() not in (subscription.id.casefold(), subscription.name.casefold()):
        raise AzError(f"Subscription '{wanted}' not found. Check the spelling and casing and try again.")
