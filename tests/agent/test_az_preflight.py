from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.agent.az_preflight import preflight
from ghost.azure import Configuration, catalogue
from tests.exhaustive import examples

CORPORA = Path(__file__).parent.parent / "corpora"
NOTHING = Configuration()


def lines(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (CORPORA / name).read_text("utf-8").splitlines()]


PARSED = lines("az_parsed.jsonl")
"""Command lines over the whole table, and whether the parser of azure-cli 2.91.0 itself took them."""
BENIGN = [str(row["command"]) for name in ("az_benign.jsonl", "commands_benign.jsonl") for row in lines(name)]


def test_nothing_that_the_real_cli_accepts_is_called_a_mistake() -> None:
    accepted = [str(row["command"]) for row in PARSED if row["accepted"]]

    assert len(accepted) >= 300
    assert [command for command in accepted if preflight(command, NOTHING)] == []


def test_most_of_what_the_real_cli_refuses_is_called_a_mistake() -> None:
    """The rest is values: types, formats and choices, which the CLI knows better."""
    refused = [str(row["command"]) for row in PARSED if not row["accepted"]]
    found = [command for command in refused if preflight(command, NOTHING)]

    assert len(refused) >= 150
    assert len(found) / len(refused) > 0.75


def test_no_daily_read_is_called_a_mistake() -> None:
    behind = [command for command in BENIGN if not command.startswith("az -")]  # the CLI itself refuses options there

    assert [command for command in behind if preflight(command, NOTHING)] == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("az vm lst", ["not a command of azure-cli", "Did you mean az vm list?"]),
        ("az nsg list -g g", ["Did you mean az network nsg list?"]),
        ("az netwrok vnet list", ["Did you mean az network vnet list?"]),
        ("az network watcher", ["a group of commands", "show-next-hop"]),
        ("az nothing at all", ["not a command of azure-cli", "az --help"]),
        ("az vm show -g g", ["needs --name (or --ids"]),
        ("az network nsg rule list -g g", ["needs --nsg-name"]),
        ("az network nsg rule list --nsg g --nsg-name n", ["needs --resource-group"]),
        ("az network vnet subnet list -g g", ["needs --vnet-name"]),
        ("az network nic show -g g --nic-name n", ["no option --nic-name", "Did you mean --name?"]),
        ("az network nsg rule list -g g --nsg-names n", ["no option --nsg-names", "Did you mean --nsg-name?"]),
        ("az network watcher packet-capture show -g g -n c", ["no option -g"]),
        ("az network watcher packet-capture create --location l -n c", ["no option --location"]),
        ("az vm list -g g | grep x", ["takes no word '|'", "one plain command runs", "--query"]),
        ("az vm list -g g 2>/dev/null", ["without pipes or redirections"]),
        ("az vm list prod-rg", ["takes no word 'prod-rg'", "name the option it belongs to"]),
        ("az vm show -g g -n my vm", ["takes no word 'vm'", "in quotes"]),
        ("az vm list -g", ["-g of az vm list needs a value"]),
        ("az -o json vm list", ["options only after the command: az vm list -o json"]),
        ("az vm list --query \"[?name='x'\"", ["not valid JMESPath"]),
        ("az vm list --query=", ["no expression"]),
        ("az network firewall list --query '[?'", ["not valid JMESPath"]),
    ],
)
def test_a_mistake_is_told_with_what_to_write_instead(command: str, words: list[str]) -> None:
    suggestion = preflight(command, NOTHING)

    assert suggestion is not None
    assert [word for word in words if word not in suggestion] == []


@pytest.mark.parametrize(
    "command",
    [
        *("", "ping -c 1 10.0.0.1", "az", "az --version", "az help", "az vm", "az vm list 'x", "az vm nonsense --help"),
        *(
            "az VM LIST",
            "az vm list --resource-g g",
            "az vm list -gprod",
            "az vm list -dg prod",
            "az vm list --out table",
        ),
        *("az vm show --ids x", "az network firewall nonsense", "az vm list --query @file", "az vm list -- x"),
        *("az storage blob list -c c --account-name a --num-results -1", "az rest --method get --url x"),
    ],
)
def test_where_the_cli_may_know_more_nothing_is_said(command: str) -> None:
    if command == "az vm":
        assert "a group of commands" in (preflight(command, NOTHING) or "")
    else:
        assert preflight(command, NOTHING) is None


def test_a_configured_default_stands_in_for_a_required_option() -> None:
    command = "az network vnet show -n v"

    assert "--resource-group" in (preflight(command, NOTHING) or "")
    assert preflight(command, Configuration(has_defaults=True)) is None
    assert "--name" in (preflight("az network vnet show -g g", Configuration(has_defaults=True)) or "")


def test_commands_of_installed_extensions_are_left_to_the_cli() -> None:
    assert preflight("az kusto cluster list", NOTHING) is not None
    assert preflight("az kusto cluster list", Configuration(extended=frozenset({"kusto"}))) is None
    assert preflight("az vm repair create", Configuration(unknown_extensions=True)) is None


@settings(max_examples=examples(200))
@given(st.text(max_size=60))
def test_any_text_is_checked_without_an_error(text: str) -> None:
    for command in (text, f"az {text}", f"az network nic show {text}"):
        suggestion = preflight(command, NOTHING)
        assert suggestion is None or suggestion.strip()


@settings(max_examples=examples(100))
@given(st.sampled_from(sorted(catalogue().lines)), st.data())
def test_a_command_with_all_it_needs_is_no_mistake(path: str, data: st.DataObject) -> None:
    command = catalogue().command(path)
    assert command is not None
    needed = [
        option for option in dict.fromkeys(command.options.values()) if option.required or option.required_without_ids
    ]
    words = [f"{data.draw(st.sampled_from(option.names))} value" for option in needed if option.arity != "none"]
    positionals = ["word" for _ in command.positionals]

    assert preflight(f"az {path} {' '.join([*words, *positionals])}", NOTHING) is None


def test_a_long_command_is_checked_in_linear_time() -> None:
    started = time.process_time()
    preflight("az " + "nothing " * 4000, NOTHING)
    preflight("az vm list " + "--zzz " * 4000, NOTHING)
    preflight("az vm list --ids " + "x " * 8000, NOTHING)

    assert time.process_time() - started < 15  # 0.3 s is usual
