from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.azure import catalogue, parse_options
from ghost.azure.command_catalogue import EXTENSIONS, TABLE
from ghost.errors import ConfigurationError
from tests.exhaustive import examples


def test_every_line_of_the_table_can_be_read() -> None:
    for path in catalogue().lines:
        command = catalogue().command(path)
        assert command is not None
        assert command.origin in ("aaz", "aaz+", "sdk", "hand", "extension")
        assert bool(command.methods) == (command.origin not in ("hand", "extension"))
        assert command.methods <= {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}


def test_the_table_is_of_one_cli_and_small_enough_to_keep() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", catalogue().version)
    assert len(catalogue().lines) > 6000
    assert TABLE.stat().st_size < 1_500_000


def test_the_table_is_sorted_so_that_a_new_cli_shows_as_a_diff() -> None:
    rows = TABLE.read_text("ascii").split("\n\n")[2].splitlines()

    assert [row.partition("\t")[0].split(" ") for row in rows] == sorted(
        (row.partition("\t")[0].split(" ") for row in rows), key=lambda words: " ".join(words)
    )


def test_extensions_add_commands_and_change_none_of_the_clis_own() -> None:
    _, rows = EXTENSIONS.read_text("ascii").split("\n\n")
    own = {row.partition("\t")[0] for row in TABLE.read_text("ascii").split("\n\n")[2].splitlines()}

    assert {row.partition("\t")[0] for row in rows.splitlines()}.isdisjoint(own)


def test_an_option_tells_its_spellings_its_values_and_whether_it_is_needed() -> None:
    show = catalogue().command("vm show")
    captures = catalogue().command("network watcher packet-capture show-status")
    assert show is not None
    assert captures is not None

    assert show.options["-g"] is show.options["--resource-group"]
    assert show.options["-g"].required_without_ids
    assert show.options["-g"].configurable
    assert show.options["--ids"].arity == "some"
    assert show.options["--show-details"].arity == "none"
    assert captures.options["--name"].required
    assert captures.methods == {"POST", "GET"} or captures.methods == {"POST"}
    assert catalogue().command("network vnet list").methods == {"GET"}  # type: ignore[union-attr]


def test_a_compound_value_is_marked_as_one_the_cli_may_open() -> None:
    create = catalogue().command("network vnet create")
    assert create is not None

    assert create.options["--tags"].may_name_a_file


def test_an_unknown_path_has_no_command() -> None:
    for path in ("", "vm", "vm list extra", " vm list", "vm  list", "VM LIST", "$0"):
        assert catalogue().command(path) is None


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("vm lst", "vm list"),
        ("nsg list", "network nsg list"),
        ("netwrok vnet list", "network vnet list"),
        ("network nsg lst", "network nsg list"),
        ("network watcher test-ipflow", "network watcher test-ip-flow"),
        ("network nsg rules list", "network nsg rule list"),
        ("zzz qqq", None),
        ("", None),
        ("x" * 500, None),
    ],
)
def test_the_nearest_command_is_the_one_that_was_meant(asked: str, near: str | None) -> None:
    assert catalogue().nearest(asked.split()) == near


@settings(max_examples=examples(50))
@given(st.lists(st.text(max_size=12), max_size=6))
def test_whatever_is_asked_the_nearest_is_a_command_or_a_group(words: list[str]) -> None:
    near = catalogue().nearest(words)

    assert near is None or near in catalogue().lines or catalogue().below(near)


def test_a_word_that_is_no_option_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not an option"):
        parse_options(["--name", "name!"])
