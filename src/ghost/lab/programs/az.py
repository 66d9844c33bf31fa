"""`az` of the lab: parses the command, queries the world, prints like the Azure CLI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ghost.errors import LabError
from ghost.lab.az_cli import (
    account_commands,
    diagnostic_commands,
    machine_commands,
    special_changes,
    storage_commands,
    table_changes,
    table_reads,
    watcher_commands,
)
from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.command_table import COMMANDS, answer, find, read_options
from ghost.lab.az_cli.output import in_order, render
from ghost.lab.directory import LabDirectory

MODULES = (
    account_commands,
    diagnostic_commands,
    machine_commands,
    table_reads,
    table_changes,
    special_changes,
    storage_commands,
    watcher_commands,
)
"""Importing them fills the table of commands."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if not arguments or {"--help", "-h"} & set(arguments):
            sys.stdout.write(_help(arguments))
            return 0
        found, rest = find(["version"] if arguments == ["--version"] else arguments)
        options = read_options(found, rest)
        result = in_order(answer(found, LabDirectory.from_environment(), options))
        if options.query is not None:
            result = _search(options.query, result)
        sys.stdout.write(render(result, options.output))
    except AzError as error:
        sys.stderr.write(f"ERROR: {error.message}\n")
        return error.exit_status
    except LabError as error:
        sys.stderr.write(f"ERROR: {error}\n")
        return 1
    return 0


def _search(query: Any, result: Any) -> Any:
    from jmespath.exceptions import JMESPathError

    try:
        return query.search(result)
    except JMESPathError as error:
        raise AzError(f"Invalid jmespath query supplied for `--query`: {error}") from error


def _help(arguments: Sequence[str]) -> str:
    words = " ".join(word for word in arguments if not word.startswith("-"))
    under = [known for known in sorted(COMMANDS) if f"{known} ".startswith(f"{words} " if words else "")]
    if words in COMMANDS:
        return f"\nCommand\n    az {words}\n\nArguments\n" + "".join(f"    {o}\n" for o in COMMANDS[words].options)
    return f"\nGroup\n    az {words}\n\nCommands:\n" + "".join(f"    az {known}\n" for known in under)


if __name__ == "__main__":
    sys.exit(main())
