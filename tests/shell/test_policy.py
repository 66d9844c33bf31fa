from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ghost.errors import ConfigurationError
from ghost.shell.judge.grammar import PROGRAMS, built_in, parse_grammar
from ghost.shell.judge.value_types import parse_type

POLICY = PROGRAMS.parent
MINIMAL: dict[str, Any] = {
    "program": "probe",
    "about": "probes",
    "clusters": True,
    "equals": True,
    "flags": ["-a --all", "-b"],
    "values": {"-n --number": "INT 1..9"},
    "operands": ["HOST"],
    "examples": {"safe": ["probe -ab host"], "risky": ["probe -z host"]},
}


@pytest.mark.parametrize("path", sorted(POLICY.rglob("*.toml")), ids=lambda path: path.name)
def test_every_policy_file_is_valid_toml_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text("utf-8")

    assert text.startswith("# ")
    assert tomllib.loads(text)


def test_every_program_has_its_own_table_with_examples_of_both_kinds() -> None:
    tables = {path: tomllib.loads(path.read_text("utf-8")) for path in PROGRAMS.glob("*.toml")}
    names = {name: path.stem for path, table in tables.items() for name in (path.stem, *table.get("also", ()))}

    assert {name: grammar.program for name, grammar in built_in().items()} == {name: name for name in names}
    assert {table["program"] for table in tables.values()} == {path.stem for path in tables}
    for path, table in tables.items():
        examples = table["examples"]
        assert len(examples["safe"]) >= 3, path
        assert len(examples["risky"]) >= 3, path


@pytest.mark.parametrize("program", sorted(built_in()))
def test_no_option_is_both_safe_without_a_value_and_called_a_risk(program: str) -> None:
    grammar = built_in()[program]

    assert grammar.flags & set(grammar.risks) == set()


@pytest.mark.parametrize(("kind", "example"), [("safe", "probe -z host"), ("risky", "probe -a host")])
def test_a_table_that_contradicts_its_examples_is_refused(kind: str, example: str) -> None:
    table = {**MINIMAL, "examples": {**MINIMAL["examples"], kind: [example]}}

    with pytest.raises(ConfigurationError, match="contradicts its example"):
        parse_grammar(table)


def test_a_table_without_examples_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no risky examples"):
        parse_grammar({**MINIMAL, "examples": {"safe": ["probe host"]}})


def test_a_key_that_no_table_has_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown key 'require'"):
        parse_grammar({**MINIMAL, "require": []})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown type 'COLOUR'"):
        parse_type("COLOUR red")
