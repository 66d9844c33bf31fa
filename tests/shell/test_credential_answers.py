"""What a command that yields secrets prints holds none, whatever stands beside them; what else it tells stays."""

from __future__ import annotations

import itertools
import json
import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ghost.shell.record.command_output import Output, process_output
from ghost.shell.record.credential_answers import is_open_value, yields_secrets
from ghost.shell.run.execution import STDERR_LIMIT, STDOUT_LIMIT, Captured
from tests.exhaustive import examples

SECRET = "Winter2024!Prod"
GUID = "7f3c1a52-9b64-4d0e-8f1a-2b6c7d8e9f00"
KEY_VAULT = {
    "attributes": {"created": "2024-01-02T03:04:05+00:00", "enabled": True},
    "contentType": None,
    "id": "https://kv.vault.azure.net/secrets/db/0123456789abcdef0123456789abcdef",
    "name": "db",
    "value": SECRET,
}


def processed(command: str, stdout: str, stderr: str = "") -> Output:
    return process_output(
        Captured.of(stdout, STDOUT_LIMIT), Captured.of(stderr, STDERR_LIMIT), None, shlex.split(command)
    )


YIELDING = [
    "az keyvault secret show --vault-name kv --name db --query value -o tsv",
    "az keyvault secret show --vault-name kv --name db --qu value -otsv",
    "az keyvault secret set --vault-name kv --name db --file /tmp/x --query value -o tsv",
    "az network vpn-connection shared-key show -g rg --connection-name c --query value -o tsv",
    "az network vpn-connection shared-key reset -g rg --connection-name c --key-length 32 --query value -o tsv",
    "az network vpn-connection show -g rg -n c --query sharedKey -o tsv",
    "az network vpn-connection show -g rg -n c -o tsv",
    "az network vpn-connection show -g rg -n c --query '*' -o tsv",
    'az acr credential show -n reg --query "passwords[0].value" -o tsv',
    "az cognitiveservices account keys list -n ai -g rg --query key1 -o tsv",
    "az redis list-keys -n cache -g rg --query primaryKey -o tsv",
    "az functionapp keys list -n app -g rg --query functionKeys.default -o tsv",
    "az network express-route auth show -g rg --circuit-name c -n a --query authorizationKey -o tsv",
    "az ad sp create-for-rbac --query password -o tsv",
    "az deployment group show -g rg -n d --query properties.outputs.db.value -o tsv",
    "az rest --method post --url https://management.azure.com/x/listKeys?api-version=1 --query keys[0].value -o tsv",
    "kubectl get secret db -o jsonpath={.data.password}",
    "aws secretsmanager get-secret-value --secret-id db --query SecretString --output text",
    "vault kv get -field=password secret/db",
    "gh auth token",
    "sudo az keyvault secret show --vault-name kv --name db --query value -o tsv",
    "timeout 20 az redis list-keys -n cache -g rg --query primaryKey -o tsv",
    """bash -c 'az keyvault secret show --vault-name kv -n db --query "{name:value}" -o tsv | cat'""",
]


SECRETS = [SECRET, "Sommer", "correct horse battery", GUID, "48151623", "a\tb word\n--\nname: x"]


def test_a_bare_secret_goes() -> None:
    failed = []
    for command, secret in itertools.product(YIELDING, SECRETS):
        output = processed(command, f"{secret}\n")
        left = any(word in output.text for word in secret.split() if len(word) > 2)
        if left or output.metadata["redaction_categories"] != ["api_key"]:
            failed.append((command, secret, output.text))
    assert failed == []


@pytest.mark.parametrize(
    "command",
    [
        "az account show",
        "az network vnet list -o tsv",
        "az network vpn-connection show -g rg -n c --query connectionStatus -o tsv",
        "az keyvault secret list --vault-name kv --query [].name -o tsv",
        "az keyvault secret list --vault-name kv --query '[].{id:id, on:attributes.enabled}'",
        "az deployment group show -g rg -n d --query properties.provisioningState -o tsv",
        "tshark -r /tmp/captures/a.pcap -T fields -e ip.src -e tcp.port",
        "kubectl get secret",
        "bash -c 'az network vnet list -o tsv'",
        "ss -tn",
        "",
    ],
)
def test_what_yields_no_secret_is_left_to_the_other_rules(command: str) -> None:
    words = shlex.split(command)
    assert not yields_secrets(words)
    assert processed(command, "Connected\tprod-vnet\n").text == "Connected\tprod-vnet\n"


def test_of_json_only_what_may_be_a_secret_goes() -> None:
    output = processed("az keyvault secret show --vault-name kv --name db", json.dumps(KEY_VAULT, indent=2))
    assert json.loads(output.text) == {**KEY_VAULT, "value": "[REDACTED]"}
    shared = processed(
        "az network vpn-connection shared-key show -g rg --connection-name c", '{"value": "Contoso-S2S"}'
    )
    assert json.loads(shared.text) == {"value": "[REDACTED]"}
    keys = {"functionKeys": {"default": "KoVgA==", "ci": "word"}, "masterKey": "x-y", "systemKeys": {}}
    hidden = json.loads(processed("az functionapp keys list -n app -g rg", json.dumps(keys)).text)
    assert hidden == {
        "functionKeys": {"default": "[REDACTED]", "ci": "[REDACTED]"},
        "masterKey": "[REDACTED]",
        "systemKeys": {},
    }


@pytest.mark.parametrize(
    "query", ["[].{name:value}", '[].{"na\\u006de": value}', "[].{name:not_null(value)}", "{name: values(@)[0]}"]
)
def test_a_query_cannot_give_a_secret_a_harmless_name(query: str) -> None:
    command = shlex.join(["az", "keyvault", "secret", "show", "--vault-name", "kv", "-n", "db", "--query", query])
    assert SECRET not in processed(command, json.dumps([{"name": SECRET}])).text


def test_of_a_table_the_columns_stay_that_hold_no_secret() -> None:
    table = (
        "Name    Value\n------  ---------------\napi     Winter2024!Prod\nvnet    10.0.0.4\nproxy   two words\nsecond\n"
    )
    output = processed("az containerapp secret list -n app -g rg --show-values -o table", table)
    assert output.text == (
        "Name    Value\n------  ---------------\napi     [REDACTED]\nvnet    10.0.0.4\nproxy   [REDACTED]\n[REDACTED]\n"
    )


def test_yaml_and_json_that_was_cut_are_read_by_line() -> None:
    command = "az keyvault secret show --vault-name kv --name db"
    yaml = "attributes:\n  enabled: true\nid: https://kv.vault.azure.net/\nvalue: Winter2024!Prod\n"
    assert processed(f"{command} -o yaml", yaml).text == yaml.replace(SECRET, "[REDACTED]")
    cut = json.dumps(KEY_VAULT, indent=2)[:-2]
    assert processed(command, cut).text.rstrip() == cut.replace(SECRET, "[REDACTED]").rstrip()


def test_the_fields_of_packets_beside_a_community_stay() -> None:
    command = "tshark -r /tmp/captures/a.pcap -T fields -e frame.number -e ip.src -e snmp.community"
    assert processed(command, "1\t10.0.0.4\tpublic-ro\n2\t10.0.0.5\tword\n").text == (
        "1\t10.0.0.4\t[REDACTED]\n2\t10.0.0.5\t[REDACTED]\n"
    )
    assert "word" not in processed(f"{command} -E separator=,", "2,10.0.0.5,word\n").text


def test_what_az_says_of_an_error_stays_and_what_it_logs_of_an_answer_goes() -> None:
    command = "az keyvault secret show --vault-name kv --name db"
    error = "ERROR: (SecretNotFound) A secret with (name/id) db was not found in this key vault."
    assert processed(command, "", error).stderr == error
    assert SECRET not in processed(f"{command} --debug", "", f'cli: {{"value": "{SECRET}"}}').stderr


@settings(max_examples=examples(100))
@given(st.text(min_size=3, max_size=60), st.sampled_from(["tsv", "json", "table", "yaml"]))
@example("\r\x9b0", "json")
@example("ab\x9dc", "json")
@example("ab\x1b(", "json")
def test_whatever_is_printed_nothing_fails_and_json_stays_json(text: str, form: str) -> None:
    command = f"az keyvault secret show --vault-name kv --name db -o {form}"
    processed(command, text)
    shown = json.loads(processed(command, json.dumps({"value": text})).text)["value"]
    bare = shown.strip().strip("\"'")
    assert len(bare) < 3 or is_open_value(bare)
