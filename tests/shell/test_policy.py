from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from ghost.errors import ConfigurationError
from ghost.shell import az
from ghost.shell.az import parse_reads, reads
from ghost.shell.classify import decide
from ghost.shell.grammar import PROGRAMS, built_in, parse_grammar
from ghost.shell.values import parse_type

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

AZ_READS = """
account show|list; group list|show; resource list|show; vm list|show|get-instance-view|list-ip-addresses; vm
extension list; vmss list|show; network vnet list|show; network vnet subnet list|show; network vnet peering
list|show; network nsg list|show; network nsg rule list|show; network nic list|show; network nic
show-effective-route-table; network nic list-effective-nsg; network nic ip-config list|show; network asg list|show;
network route-table list|show; network route-table route list|show; network public-ip list|show; network watcher
list; network watcher packet-capture list|show|show-status; network watcher show-next-hop|test-ip-flow; network lb
list|show; network lb probe list|show; network lb rule list|show; network lb address-pool list|show; network
private-endpoint list|show; network private-dns zone list|show; network private-dns record-set a list|show; network
private-dns link vnet list; network dns zone list|show; network dns record-set list; network application-gateway
list|show|show-backend-health; network nat gateway list|show; network firewall list|show; network vnet-gateway
list|show; network express-route list|show; network bastion list; redis list|show; storage account list|show;
storage container exists|list|show; storage blob exists|list|show; monitor metrics list; monitor activity-log list;
aks list|show; sql server list|show; postgres flexible-server list|show
"""


def investigator_reads() -> list[str]:
    paths = []
    for entry in AZ_READS.split(";"):
        *group, verbs = entry.split()
        paths += [" ".join([*group, verb]) for verb in verbs.split("|")]
    return paths


@pytest.mark.parametrize("path", investigator_reads())
def test_every_read_of_an_investigation_is_in_the_table(path: str) -> None:
    assert decide(f"az {path} --query '[].name' -o json").classification == "SAFE"


@pytest.mark.parametrize("path", sorted(reads().options_of))
def test_no_option_of_a_read_carries_a_secret_or_names_a_file(path: str) -> None:
    risky = (
        "key",
        "token",
        "secret",
        "password",
        "connection-string",
        "endpoint",
        "url",
        "file",
        "debug",
        "user-data",
        "template",
    )
    harmless = {"--next-token", "--endpoint-name"}

    assert [
        option
        for option in reads().options_of[path]
        if option not in harmless and any(word in option for word in risky)
    ] == []


def test_no_read_ends_in_a_verb_that_changes_something() -> None:
    changing = set(tomllib.loads((POLICY / "az_risks.toml").read_text("utf-8"))["verbs"])

    assert [path for path in reads().options_of if changing & set(path.split())] == []


def test_every_reason_for_a_secret_reading_command_wins_over_its_verb() -> None:
    refusal = reads().refusal(["az", "storage", "account", "keys", "list"])

    assert refusal is not None
    assert "prints keys" in refusal.explanation


@pytest.mark.parametrize("path", sorted(POLICY.rglob("*.toml")), ids=lambda path: path.name)
def test_every_policy_file_is_valid_toml_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text("utf-8")

    assert text.startswith("# ")
    assert tomllib.loads(text)


def test_every_program_has_its_own_table_with_examples_of_both_kinds() -> None:
    assert set(built_in()) == {path.stem for path in PROGRAMS.glob("*.toml")}
    for path in PROGRAMS.glob("*.toml"):
        examples = tomllib.loads(path.read_text("utf-8"))["examples"]
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


def test_an_az_table_that_contradicts_its_examples_is_refused() -> None:
    table = tomllib.loads((az.POLICY / "az_reads.toml").read_text("utf-8"))
    table["examples"]["safe"].append("az vm delete -n x")

    with pytest.raises(ConfigurationError, match="contradicts its example"):
        parse_reads(table)
