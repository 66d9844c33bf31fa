from __future__ import annotations

import gc
import importlib
import pkgutil
import tomllib
from typing import Any

import pytest

import ghost.shell
from ghost.errors import ConfigurationError
from ghost.patterns import _LazyPattern
from ghost.shell.judge.az.read_commands import reads
from ghost.shell.judge.classification import decide
from ghost.shell.judge.grammar import HOST_READS, PROGRAMS, built_in, check_examples, parse_grammar
from ghost.shell.judge.value_types import parse_type
from ghost.shell.policy_tables import policy_table
from tests.each_row import each

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


def test_every_policy_file_is_valid_toml_and_says_what_it_is_for() -> None:
    for path in sorted(POLICY.rglob("*.toml")):
        text = path.read_text("utf-8")
        assert text.startswith("# "), path
        assert tomllib.loads(text), path


def test_every_program_has_its_own_table_with_examples_of_both_kinds() -> None:
    tables = {path: tomllib.loads(path.read_text("utf-8")) for path in PROGRAMS.glob("*.toml")}
    names = {name: path.stem for path, table in tables.items() for name in (path.stem, *table.get("also", ()))}

    names |= {name: name for row in policy_table(HOST_READS)["reads"] for name in row["programs"].split()}

    assert {name: grammar.program for name, grammar in built_in().items()} == {name: name for name in names}
    assert {table["program"] for table in tables.values()} == {path.stem for path in tables}
    for path, table in tables.items():
        check_examples(built_in()[path.stem], table["examples"])
        assert len(table["examples"]["safe"]) >= 3, path
        assert len(table["examples"]["risky"]) >= 3, path


def test_every_pattern_of_the_shell_compiles() -> None:
    for module in pkgutil.walk_packages(ghost.shell.__path__, "ghost.shell."):
        if module.name != "ghost.shell.run.launcher_program":
            importlib.import_module(module.name)
    decide("curl -H 'User-Agent: a/1' http://a.example/b")
    assert len(built_in()) > 30
    assert len(list(reads().paths())) > 400
    patterns = [one for one in gc.get_objects() if type(one) is _LazyPattern]

    assert len(patterns) > 300
    for pattern in patterns:
        pattern.search  # noqa: B018 - compiles it


def test_no_option_is_both_safe_without_a_value_and_called_a_risk() -> None:
    assert {name: grammar.flags & set(grammar.risks) for name, grammar in built_in().items()} == dict.fromkeys(
        built_in(), frozenset()
    )


@each("kind, example", [("safe", "probe -z host"), ("risky", "probe -a host")])
def test_a_table_that_contradicts_its_examples_is_refused(kind: str, example: str) -> None:
    with pytest.raises(ConfigurationError, match="contradicts its example"):
        check_examples(parse_grammar(MINIMAL), {**MINIMAL["examples"], kind: [example]})


def test_a_table_without_examples_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no risky examples"):
        check_examples(parse_grammar(MINIMAL), {"safe": ["probe host"]})


def test_a_key_that_no_table_has_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown key 'require'"):
        parse_grammar({**MINIMAL, "require": []})


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="unknown type 'COLOUR'"):
        parse_type("COLOUR red")
