"""Nothing that stands in a field of anybody's text is printed without the name by which redaction knows it."""

from __future__ import annotations

import json
import shlex
from collections import OrderedDict
from typing import Any

import jmespath
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.shell import redact
from ghost.shell.judge.az.free_fields import parse_free_fields
from ghost.shell.judge.az.jmespath_queries import fault_of_query, projected_paths
from ghost.shell.judge.az.read_commands import reads
from ghost.shell.judge.classification import decide
from ghost.shell.policy_tables import policy_table
from tests.each_row import each
from tests.exhaustive import examples

SECRET = "Wint3r2026Pa55"
EXTENSION = {
    "name": "cse",
    "publisher": "Microsoft.Compute",
    "settings": {"commandToExecute": f"join.ps1 svc-join {SECRET}", "timestamp": 5},
    "protectedSettings": None,
    "typeHandlerVersion": "1.10",
}
NAMES = ("json", "jsonc", "JSON")


def verdict(command: str) -> str:
    return decide(command).classification


@each("output", ["tsv", "table", "TSV", "yaml", "yamlc"])
@each(
    "command, query",
    [
        ("vm extension show -g g --vm-name v -n e", "settings"),
        ("vm extension list -g g --vm-name v", "[].settings"),
        ("vm extension list -g g --vm-name v", "[].[name,settings]"),
        ("vm extension list -g g --vm-name v", "[?publisher=='Microsoft.Azure.Extensions'].settings"),
        ("vm show -g g -n v", "resources[].settings"),
        ("vm list", "[].resources[].settings"),
        ("vmss show -g g -n v", "virtualMachineProfile.extensionProfile.extensions[].settings"),
        ("vmss extension show -g g --vmss-name v -n e", "{a:settings}"),
        ("vmss extension list -g g --vmss-name v", "[0].settings"),
        ("redis show -g g -n r", "redisConfiguration"),
        ("webapp list", "[].siteConfig"),
        ("network traffic-manager profile show -g g -n t", "monitorConfig.customHeaders"),
        ("monitor activity-log list", "[].properties"),
        ("aks show -g g -n a", "addonProfiles.omsagent.config"),
        ("network dns record-set a show -g g -z z.example -n n", "metadata"),
        ("policy assignment show -n p", "parameters"),
        ("group show -n g", "tags"),
        ("group list", "[].tags"),
        ("resource list", "[].{n:name,t:tags}"),
        ("network vnet show -g g -n v", "[tags]"),
        ("group list", "[].[name,tags]|[0]"),
        ("tag list --resource-id /subscriptions/00000000-0000-0000-0000-000000000000", "properties.tags"),
        ("aks nodepool list -g g --cluster-name c", "[].nodeLabels"),
        (
            "resource show -g g -n v --resource-type Microsoft.Compute/virtualMachines",
            "resources[].properties.settings",
        ),
    ],
)
def test_what_holds_anything_is_not_printed_without_its_names(command: str, query: str, output: str) -> None:
    assert verdict(f"az {command} --query {shlex.quote(query)} -o {output}") == "RISKY"
    for keeps_names in NAMES:
        assert verdict(f"az {command} --query {shlex.quote(query)} -o {keeps_names}") == "SAFE"


@each("output", ["", "-o json", "-o yaml", "-o tsv", "-o table"])
@each(
    "command, query",
    [
        ("vm extension show -g g --vm-name v -n e", "settings.script"),
        ("group show -n g", "tags|@"),
        ("group show -n g", "{t:tags}.t.x"),
        ("group show -n g", "tags.{a:env}"),
        ("group show -n g", "not_null(tags,name)"),
        ("group show -n g", '"t\\u0061gs"'),
        ("vm extension show -g g --vm-name v -n e", '"settings".x'),
        ("vm extension show -g g --vm-name v -n e", '"\\u0073ettings".x'),
        ("vm extension show -g g --vm-name v -n e", "settings|x"),
        ("vm extension show -g g --vm-name v -n e", "{a:settings}.a.x"),
        ("vm extension show -g g --vm-name v -n e", "{tags:settings}.tags.x"),
        ("vm extension show -g g --vm-name v -n e", "not_null(settings.x,name)"),
        ("vm extension show -g g --vm-name v -n e", "join(',',[settings.x,name])"),
        ("vm extension show -g g --vm-name v -n e", "{a:name,b:settings.{c:x}}"),
        ("vm extension list -g g --vm-name v", "[?settings.x=='a'].name"),
        ("vm extension list -g g --vm-name v", "[?contains(settings.x,'a')].name"),
        ("vm extension list -g g --vm-name v", "sort_by([],&settings.x)[].name"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[].substatuses[].message"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[].statuses[].message"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[].statuses"),
        ("vm get-instance-view -g g -n v", "{vmAgent:instanceView.extensions[0]}.vmAgent.statuses[].message"),
        ("vm show -g g -n v", "resources[].instanceView.substatuses"),
        ("network traffic-manager profile show -g g -n t", "monitorConfig.customHeaders[].value"),
        (
            "network application-gateway rewrite-rule list -g g --gateway-name a --rule-set-name r",
            "[].actionSet.requestHeaderConfigurations[].headerValue",
        ),
        ("afd rule show -g g --profile-name p --rule-set-name s -n n", "actions[].parameters.value"),
        ("monitor activity-log list", "[].properties.requestbody"),
        ("monitor activity-log list", "[?properties.requestbody=='a'].properties.statusCode"),
        ("network traffic-manager profile show -g g -n t", "monitorConfig.customHeaders[?value=='a'].name"),
        ("storage blob metadata show --account-name abc -c c -n n --auth-mode login", "ghostid"),
    ],
)
def test_a_value_is_not_taken_out_of_what_holds_anything(command: str, query: str, output: str) -> None:
    assert verdict(f"az {command} --query {shlex.quote(query)} {output}") == "RISKY"


@each(
    "command, query, output",
    [
        ("vm extension list -g g --vm-name v", "", "tsv"),
        (
            "vm extension list -g g --vm-name v",
            "[?publisher=='Microsoft.Azure.Monitor'].{n:name,s:provisioningState}",
            "tsv",
        ),
        ("vm extension show -g g --vm-name v -n e", "{n:name,s:settings}", "json"),
        ("vm get-instance-view -g g -n v", "instanceView.statuses", "table"),
        (
            "vm get-instance-view -g g -n v",
            "instanceView.statuses[?starts_with(code,'PowerState/')].displayStatus",
            "tsv",
        ),
        ("vm get-instance-view -g g -n v", "instanceView.vmAgent.statuses[].message", "tsv"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[].{n:name,s:statuses[0].displayStatus}", "table"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[?name=='cse'].statuses[-1].displayStatus", "tsv"),
        ("vm get-instance-view -g g -n v", "instanceView.extensions[?starts_with(name,'Azure')].type", "tsv"),
        ("vmss show -g g -n v", "virtualMachineProfile.extensionProfile.extensions[].{n:name,p:publisher}", "table"),
        ("vm list", "[?tags.settings=='x' && tags.parameters].name", "tsv"),
        ("group list", "[].{n:name,e:tags.env}", "table"),
        ("group list", "[?tags!=null].name", "tsv"),
        ("redis show -g g -n r", "redisConfiguration.maxmemoryPolicy", "tsv"),
        ("webapp list", "[].{n:name,v:siteConfig.linuxFxVersion}", "table"),
        ("aks show -g g -n a", "addonProfiles.omsagent.config.logAnalyticsWorkspaceResourceID", "tsv"),
        ("network traffic-manager profile show -g g -n t", "monitorConfig.customHeaders[].name", "tsv"),
        (
            "monitor activity-log list -g g",
            "[?status.value=='Failed'].{t:eventTimestamp,m:properties.statusMessage}",
            "table",
        ),
        ("monitor activity-log list", "[?contains(operationName.value,'securityRules')].properties.statusCode", "tsv"),
        ("account list-locations", "[?metadata.regionType=='Physical'].name", "tsv"),
        ("storage blob metadata show --account-name abc -c c -n n --auth-mode login", "", "json"),
    ],
)
def test_states_and_names_beside_such_a_field_are_read_unasked(command: str, query: str, output: str) -> None:
    decision = decide(f"az {command} {'--query ' + shlex.quote(query) if query else ''} -o {output}")

    assert decision.classification == "SAFE", decision.explanation


def test_the_top_of_an_answer_that_holds_anything_is_shown_with_its_names_alone() -> None:
    read = "az storage container metadata show --account-name abc -n c --auth-mode login"

    assert {verdict(f"{read} -o {output}") for output in NAMES} == {"SAFE"}
    assert {verdict(f"{read} -o {output}") for output in ("tsv", "table", "yaml", "yamlc")} == {"RISKY"}
    assert "SAFE is the whole answer, without a --query, as json" in decide(f"{read} -o tsv").explanation


def test_a_refused_query_is_told_which_field_and_which_forms() -> None:
    explanation = decide("az vm extension show -g g --vm-name v -n e --query settings -o tsv").explanation

    assert "settings" in explanation
    assert "another form than json jsonc" in explanation
    assert "the command of a script" in explanation


@each("output", ["yaml", "yamlc"])
@each(
    "read", ["vm show -g g -n v", "vm list", "vmss show -g g -n v", "vm extension list -g g --vm-name v", "vmss list"]
)
def test_a_long_script_is_not_folded_over_lines_without_a_name(read: str, output: str) -> None:
    for whole in ("", "--query '[]'", "--query '[0]'", "--query resources", "--query '{r:[resources]}'", "--query '@'"):
        decision = decide(f"az {read} {whole} -o {output}")
        assert decision.classification == "RISKY"
    assert "Use -o json" in decide(f"az {read} -o {output}").explanation
    assert verdict(f"az {read} -o json") == "SAFE"
    assert verdict(f"az {read} --query '[].{{n:name,l:location,s:provisioningState}}' -o {output}") == "SAFE"


@each(
    "query, paths",
    [
        ("a", ["a"]),
        ("[].a[0].b", ["a.b"]),
        ("[a,b.c]", ["a", "b.c"]),
        ("[].{x:a.b,y:c}", ["a.b", "c"]),
        ("a[].{x: b.c, y: d}", ["a.b.c", "a.d"]),
        ("[].[a, b.{x:c,y:d.e}, f] | [0]", ["a", "b.c", "b.d.e", "f"]),
        ("a.[b,c]", ["a.b", "a.c"]),
    ],
)
def test_a_projection_takes_the_values_at_these_paths(query: str, paths: list[str]) -> None:
    assert [".".join(path) for path in projected_paths(query) or () if path] == paths


@each("query", ["a | b", "length(a)", "a || b", "[?a].b", "@.a", '"a".b', "a.*", "{x:a}.x", "a[?b].c"])
def test_what_does_more_than_take_fields_is_no_projection(query: str) -> None:
    assert projected_paths(query) is None


def as_tsv(answer: Any) -> str:
    """A row for each element, its plain values in columns; of a list its length, of an object nothing."""
    rows = []
    for row in answer if isinstance(answer, list) else [answer]:
        values = list(row.values()) if isinstance(row, dict) else row if isinstance(row, list) else [row]
        rows.append(
            "\t".join(str(len(v)) if isinstance(v, list) else "" if isinstance(v, dict) else str(v) for v in values)
        )
    return "\n".join(rows) + "\n"


def as_table(answer: Any) -> str:
    """Of an object its plain values as columns; of a list each element as Python writes it."""
    lines = []
    for row in answer if isinstance(answer, list) else [answer]:
        if isinstance(row, dict):
            lines.append("  ".join(str(v) for v in row.values() if not isinstance(v, list | dict | None)))
        else:
            lines.append("  ".join(str(value) for value in (row if isinstance(row, list) else [row])))
    return "\n".join(lines) + "\n"


PRINTED = {"tsv": as_tsv, "table": as_table, "json": lambda answer: json.dumps(answer, indent=2) + "\n"}
PIECES = [
    "settings",
    "name",
    "resources",
    "extensions",
    "commandToExecute",
    "x",
    "[]",
    "[0]",
    "[*]",
    "@",
    "*",
    ".",
    ",",
    ":",
]
PIECES += [
    "|",
    "{a:",
    "}",
    "[",
    "]",
    " ",
    "a",
    '"settings"',
    "[?name=='cse']",
    "[?settings]",
    "keys(",
    "to_string(",
    ")",
    "&&",
    "||",
]


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join), st.sampled_from(sorted(PRINTED)))
def test_no_accepted_query_prints_a_secret_that_redaction_does_not_take(query: str, output: str) -> None:
    if reads().free.fault_of_query("vm show", query, output) or fault_of_query(query):
        return
    for answer in (EXTENSION, [EXTENSION], {"resources": [EXTENSION]}, [{"name": "v", "extensions": [EXTENSION]}]):
        try:
            taken = jmespath.search(query, answer, jmespath.Options(dict_cls=OrderedDict))
        except jmespath.exceptions.JMESPathError:
            return
        assert SECRET not in redact(PRINTED[output](taken))[0], (query, output)


def test_the_fields_are_listed_once_for_a_command_and_each_row_says_why() -> None:
    table = policy_table("az_free_fields.toml")
    rows = parse_free_fields(table).rows

    assert len({(scope, one.name.lower()) for scope, one in rows}) == len(rows)
    assert all(row["why"].startswith(("may hold ", "is a ")) for row in table["free"])
    known = reads().catalogue
    assert [scope for scope, _ in rows if scope and not known.below(scope)] == []
