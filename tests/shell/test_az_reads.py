from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from string import Template

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts.write_az_table_doc import PAGE, page

import ghost.brain.offline
from ghost.azure import catalogue
from ghost.shell.judge.az.jmespath_queries import fault_of_query, first_secret_field, projects_only, secret_field
from ghost.shell.judge.az.read_commands import reads
from ghost.shell.judge.classification import decide
from ghost.shell.policy_tables import policy_table
from tests.each_row import each
from tests.exhaustive import examples

CORPORA = Path(__file__).parent.parent / "corpora"
QUERIES = Path(ghost.brain.offline.__file__).parent / "queries.toml"
ADVERSARIAL = [json.loads(line) for line in (CORPORA / "az_adversarial.jsonl").read_text("utf-8").splitlines()]
BENIGN = [json.loads(line)["command"] for line in (CORPORA / "az_benign.jsonl").read_text("utf-8").splitlines()]
READS = sorted(reads().paths())

INVESTIGATOR_READS = """
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
    for entry in INVESTIGATOR_READS.split(";"):
        *group, verbs = entry.split()
        paths += [" ".join([*group, verb]) for verb in verbs.split("|")]
    return paths


@each("path", investigator_reads())
def test_every_read_of_an_investigation_is_safe(path: str) -> None:
    assert decide(f"az {path} --query '[].name' -o json").classification == "SAFE"


def test_no_harmful_az_command_is_safe() -> None:
    assert len(ADVERSARIAL) >= 400
    assert [row for row in ADVERSARIAL if decide(row["command"]).classification == "SAFE"] == []


def test_the_harmful_commands_are_of_many_techniques() -> None:
    techniques = Counter((row["class"], row["technique"]) for row in ADVERSARIAL)

    assert len({row["command"] for row in ADVERSARIAL}) == len(ADVERSARIAL)
    assert max(techniques.values()) <= 5
    assert min(Counter(row["class"] for row in ADVERSARIAL).values()) >= 20


def test_what_a_network_engineer_reads_daily_is_safe() -> None:
    assert len(BENIGN) >= 200
    assert [command for command in BENIGN if decide(command).classification != "SAFE"] == []


def words_that_confine(path: str) -> str:
    """The option without which the read acts or waits for long, and a query of a field that it may show."""
    risks = reads().risks
    option, _ = risks.needs.get(path, ("--timeout 60" if path.endswith(" wait") else "", ""))
    projected = risks.projected.get(path)
    field = "name" if projected is None or "name" in projected.fields else next(iter(sorted(projected.fields)), "")
    return f"{option} {f'--query {field}' if field else '-o json'}"


@settings(max_examples=examples(60))
@given(st.sampled_from(READS), st.sampled_from(["--zzz", "-~", "--zzz=1", "zzz", "--debug", "@x", "--", "--file=x"]))
def test_one_word_more_than_a_read_knows_makes_it_risky(path: str, extra: str) -> None:
    read = f"az {path} {words_that_confine(path)}"
    assert decide(read).classification == "SAFE"
    assert decide(f"{read} {shlex.quote(extra)}").classification == "RISKY"


@settings(max_examples=examples(60))
@given(st.sampled_from(READS), st.data())
def test_an_option_that_is_not_spelled_in_full_makes_a_read_risky(path: str, data: st.DataObject) -> None:
    known = reads().options(path)
    assert known is not None
    full = data.draw(st.sampled_from(sorted(name for name in known if name.startswith("--"))))
    short = full[: data.draw(st.integers(3, max(3, len(full) - 1)))]

    if short not in known:
        assert decide(f"az {path} {short} x").classification == "RISKY"


@settings(max_examples=examples(60))
@given(st.sampled_from(READS), st.data())
def test_no_value_of_a_read_may_name_a_file_a_url_or_an_option(path: str, data: st.DataObject) -> None:
    known = reads().options(path)
    assert known is not None
    text = {"--query", "--filter", "--apply", "--order-by", "--odata-query", "--analytics-query"}
    option = data.draw(st.sampled_from(sorted(name for name in known if known[name].arity not in ("none", "optional"))))
    values = ["@x", "a=@x", "@-", "--yes", "-x", ""]
    if known[option].name not in text and policy_table("az_options.toml")["types"]["text"].find(option) < 0:
        values += ["https://a.example/x", "//a.example", "../../x", "a?b", "a#b", "a\tb", "~/.azure/config"]

    for value in values:
        if value or known[option].name not in text:
            assert decide(f"az {path} {option} {shlex.quote(value)}").classification != "SAFE", value


def test_no_option_of_a_read_carries_a_secret_or_names_a_file() -> None:
    risky = re.compile(r"key|token|secret|password|connection-s|endpoint|url|file|debug|user-data|template|sas|uri$")
    harmless = re.compile(
        r"--(?:next-token|skip-?token|(?:inbound-|outbound-|data-collection-)?endpoint-(?:name|type)|file-system|key(?:word|space-name)"
        r"|(?:.*-)?profile-(?:name|version)|private-endpoint-connection-name|resource-uri"
        r"|enable-file-backup-request-intent"  # sign in to a file share with a token
        r"|ssh-public-key-name)"
    )
    found = {option for path in READS for option in reads().options(path) or () if risky.search(option)}

    assert [option for option in found if not harmless.fullmatch(option)] == []


def test_no_read_ends_in_a_verb_that_changes_something() -> None:
    changing = set(policy_table("az_risks.toml")["verbs"])

    assert [path for path in READS if path.split()[-1] in changing] == []


def test_a_command_is_no_read_by_its_name_alone() -> None:
    """`hand` commands declare no methods: only the reviewed list makes reads of them."""
    by_hand = {path for path in READS if not (command := catalogue().command(path)) or not command.methods}
    table = policy_table("az_reads.toml")
    reviewed = {
        f"{group} {leaf}".strip()
        for part in ("hand_written", "extensions")
        for group, leaves in table[part].items()
        for leaf in leaves.split()
    }

    assert by_hand == reviewed


def test_no_read_sends_anything_but_get_head_and_the_listed_posts() -> None:
    listed = set(policy_table("az_post_reads.toml")["post_reads"])
    posting = set()
    for path in READS:
        command = catalogue().command(path)
        assert command is not None
        assert command.methods <= {"GET", "HEAD", "POST"}, path
        if "POST" in command.methods:
            posting.add(path)

    assert posting == listed


SECRET_FAMILIES = """
account get-access-token; storage account keys list; search admin-key show; search query-key list; redis list-keys;
monitor log-analytics workspace get-shared-keys; sql db show-connection-string; cosmosdb list-connection-strings;
network vpn-connection shared-key show; keyvault secret show; keyvault secret download; acr credential show;
aks get-credentials; ad app credential list; ad sp credential list; webapp config appsettings list;
functionapp config appsettings list; webapp deployment list-publishing-profiles; containerapp secret list;
containerapp secret show; network vnet-gateway vpn-client show-url; vm boot-diagnostics get-boot-log-uris;
network express-route auth list; network express-route auth show; storage message get; aks check-acr;
acr check-health; find; functionapp function show; container logs; container exec; deployment tenant show;
lab secret list; lab secret show; network express-route port authorization list; databoxedge device user list;
bot authsetting show
"""


@each("path", [" ".join(path.split()) for path in SECRET_FAMILIES.split(";")])
def test_what_hands_out_secrets_or_acts_is_risky_however_it_is_made(path: str) -> None:
    assert path in catalogue().lines, "the CLI no longer has it: name another of the family"
    assert path not in READS


@each("group", ["some new thing", "network future-gateway"])
@each(
    "leaf",
    [
        *("keys list", "key list", "admin-key list", "list-keys", "get-shared-keys", "show-connection-string"),
        *("list-connection-strings", "shared-key show", "credential show", "get-credentials", "appsettings list"),
        *("list-publishing-profiles", "secret list", "secret show", "auth list", "authorization show", "token list"),
    ],
)
def test_a_secret_family_is_known_in_groups_that_do_not_exist_yet(group: str, leaf: str) -> None:
    assert reads().risks.of_reading(f"{group} {leaf}") is not None


def test_every_reviewed_row_names_a_command_that_exists() -> None:
    lines = catalogue().lines
    risky = policy_table("az_risky_reads.toml")
    beginnings = {
        path for kind in ("holds", "acts", "private") for row in risky[kind] for path in row["path"].split(", ")
    }
    of_extensions = {
        *("network cross-connection", "network vpn-gateway", "network vpn-server-config", "network p2s-vpn-gateway"),
        "monitor app-insights api-key",
    }

    assert [path for path in policy_table("az_post_reads.toml")["post_reads"] if path not in lines] == []
    assert [
        path for path in beginnings - of_extensions if not any(f"{line} ".startswith(f"{path} ") for line in lines)
    ] == []


def test_every_option_and_scope_of_the_option_table_is_used() -> None:
    table = policy_table("az_options.toml")
    names = {name for path in READS for name in (catalogue().command(path) or pytest.fail(path)).options}
    names |= {"--output", "--query", "--help", "--verbose", "--only-show-errors"}

    assert [name for kind in table["types"].values() for name in kind.split() if name not in names] == []
    assert [scope for scope in table["only"] if not any(f"{path} ".startswith(f"{scope} ") for path in READS)] == []


def test_a_value_that_the_cli_would_open_as_a_file_is_never_safe() -> None:
    openers = [
        (path, name)
        for path in READS
        for name, option in (catalogue().command(path) or pytest.fail(path)).options.items()
        if option.may_name_a_file
    ]

    assert openers
    assert [(path, name) for path, name in openers if name in (reads().options(path) or {})] == []


def test_a_secret_reading_command_is_explained_by_what_it_prints() -> None:
    refusal = reads().refusal(["az", "storage", "account", "keys", "list"])

    assert refusal is not None
    assert "prints keys" in refusal.explanation


@each(
    "command, words",
    [
        ("az network nsg lst", "Did you mean az network nsg list?"),
        ("az netwrok vnet list", "Did you mean az network vnet list?"),
        ("az webapp config show -g g -n w", "credentials of an app"),
        ("az express-route auth list", "prints authorization keys"),
        ("az network nic wait -g g -n n --exists --interval 0", "time between two"),
        ("az network nic wait -g g -n n --custom x", "--custom"),
        ("az network nic wait -g g -n n --exists", "Add --timeout 60"),
        ("az network nic wait -g g -n n --exists --timeout 3600", "up to 120"),
        ("az network dns list-references --parameters x", "--parameters"),
        ("az resource show --id x", "--id"),
    ],
)
def test_a_refusal_says_why_and_what_else_to_run(command: str, words: str) -> None:
    assert words in decide(command).explanation


@each(
    "query",
    [
        "name",
        "[].name",
        "[0].name",
        "[].{n:name,s:sku.tier}",
        "[].[name,location]",
        "[*].name | [0]",
        "sku",
        "[].sku.x",
    ],
)
def test_only_a_query_of_listed_fields_confines_an_answer(query: str) -> None:
    fields = {"name", "location", "sku", "tier"}
    answer = {"name": "n", "sku": {"tier": "t"}, "key": "SECRET", "more": [{"key": "SECRET"}]}

    assert projects_only(fields, query) == ("x" not in query)
    for context in (answer, [answer], [[answer]]):
        assert "SECRET" not in json.dumps(jmespath.search(query, context))


QUERY_PIECES = ["name", "sku", "key", "[]", "[0]", "[*]", "*", "@", ".", ",", ":", "|", "{", "}", "[", "]", " ", "{a:"]


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(QUERY_PIECES), min_size=1, max_size=8).map("".join))
def test_a_confined_query_gives_no_other_field_away(query: str) -> None:
    answer = {"name": "n", "sku": {"tier": "t"}, "key": "SECRET", "more": [{"key": "SECRET"}]}

    if projects_only({"name", "sku"}, query):
        for context in (answer, [answer], {"value": [answer]}):
            assert "SECRET" not in json.dumps(jmespath.search(query, context))


@each(
    "query",
    ["[?name==`key`].id", "[].keyVaultId", "{key:name}", "keys(tags)", "osProfile.ssh.publicKeys", "[?x=='a.token']"],
)
def test_a_query_that_takes_no_secret_is_safe(query: str) -> None:
    assert decide(f"az vm list --query {shlex.quote(query)}").classification == "SAFE"


@each(
    "command",
    [
        "az network vpn-connection show -g g -n c --query=name --query '*'",
        "az network vpn-connection show -g g -n c --query name --query=name",
        "az network vnet-gateway list -g g --query=[].name --query '[].vpnClientConfiguration'",
        "az webapp show -g g -n w --query=name --query 'siteConfig.*'",
        "az network express-route show -g g -n c --query=name --query 'values(@)'",
        "az --query name network vpn-connection show -g g -n c --query '*'",
        "az network vnet-gateway list -g g -o table --output=json",
        "az vm show -g g --name a -n b",
    ],
)
def test_no_option_of_one_value_stands_twice_since_the_last_one_counts(command: str) -> None:
    assert decide(command).classification == "RISKY"


@each(
    "query",
    [
        *("*", "*.name", "[].*", "[].settings.*", "{a:*}", "[ * ]", "values(@)", "values (@)", "length(values(@))"),
        *("to_string(@)", "reverse(to_string(@))", "map(&join('',values(@)),@)", "merge(a,b)", "to_array(@)"),
        *(
            "reverse(name)",
            "reverse([0].name)",
            "reverse(sort([].name)[0])",
            "join('x',[].name)",
            "join('',['a',name])",
        ),
        *("[?contains(to_string(@),'pw=a')]", "[?contains(@,'a')]", '[?starts_with(`"a"`, name)]', '"values"(@)'),
    ],
)
def test_a_query_that_drops_names_or_rewrites_values_is_asked(query: str) -> None:
    assert fault_of_query(query) is not None
    assert decide(f"az vm list --query {shlex.quote(query)}").classification == "RISKY"


@each(
    "query",
    [
        *("@", "[*].name", "(a || b).name", "[?destinationPortRange=='*']", "[?length(nics) > `1`].name"),
        *("[?contains(['Allow','Deny'], access)].name", "[?contains(@.name, 'x')]", "max_by(@, &priority).name"),
        *("reverse(sort_by([?x=='(*'], &priority))[0].name", "join(', ', [?access=='Deny'].name)"),
        *("join(',', [a, b])", "[].{p:portRange || join(',', portRanges)}", "not_null(a, b)", "keys(tags)"),
    ],
)
def test_a_query_that_keeps_names_and_values_is_safe(query: str) -> None:
    assert decide(f"az vm list --query {shlex.quote(query)}").classification == "SAFE"


JMESPATH_PIECES = [
    *(
        "name",
        "key",
        "tags",
        "[]",
        "[*]",
        "[0]",
        "*",
        "@",
        ".",
        ",",
        "(",
        ")",
        "{a:",
        "}",
        "'x'",
        "`1`",
        "values(",
        "|",
    ),
    *(
        "to_string(",
        "join(",
        "','",
        "reverse(",
        "sort(",
        "contains(",
        "[?",
        "]",
        "keys(",
        "not_null(",
        " ",
        "map(",
        "&",
    ),
]


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(JMESPATH_PIECES), min_size=1, max_size=10).map("".join))
def test_what_an_accepted_query_shows_has_the_secrets_name_beside_it(query: str) -> None:
    if fault_of_query(query) is not None:
        return
    answer = {"name": "n", "tags": {"key": "SECRET", "more": {"key": "SECRET"}}, "list": [{"key": "SECRET"}]}
    for context in (answer, [answer]):
        try:
            shown = json.dumps(jmespath.search(query, context), default=repr)  # of a lone "&name"
        except jmespath.exceptions.JMESPathError:
            continue
        assert shown.count("SECRET") == shown.count('"key": "SECRET"')


@each("query", ["tags.[*]", "[].tags.[*]", "tags . [*]", "[0].{a:tags.[*]}", "[*].tags.[*, name]"])
def test_a_list_of_all_values_of_an_object_drops_their_names(query: str) -> None:
    assert fault_of_query(query) is not None
    assert fault_of_query("tags[*].name") is None


SECRET_PIECES = [
    *("sharedKey", "name", "key", "Key", "vault", '"', "'", "`", "\\", "u006bey", "\\u006b", "ey", ".", "[?"),
    *("]", "==", ":", "(", "é", "_", "-", " ", "tok", "en", "sas", "Url", "K"),
]  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(SECRET_PIECES), min_size=1, max_size=10).map("".join))
def test_the_quick_look_at_a_query_never_misses_a_secret_field(query: str) -> None:
    assert secret_field(query) == first_secret_field(query)


@each(
    "query, safe",
    [
        ("[].{name:name,bgp:bgpSettings.{asn:asn,peer:bgpPeeringAddress}}", True),
        ("[?gatewayType=='Vpn'].name", False),
        ("[].bgpSettings.[asn,peerWeight] | [0]", True),
        ("{all:[0]}", False),
        ("[].{n:name,k:vpnClientConfiguration}", False),
    ],
)
def test_a_gateway_is_shown_by_listed_fields_alone(query: str, safe: bool) -> None:
    verdict = decide(f"az network vnet-gateway list -g g --query {shlex.quote(query)}").classification

    assert (verdict == "SAFE") is safe


@each(
    "query, safe",
    [
        ("Resources | where type =~ 'microsoft.network/virtualnetworks' | project name, location | limit 5", True),
        ("resources | where type in~ ('a', 'b') and location == 'westeurope' | summarize count() by type", True),
        ("resources | where name contains 'web' | project id, name | order by name asc | take 50", True),
        ("resources", False),
        ("resources | project properties", False),
        ("resources | project name, k=properties.sharedKey", False),
        ("resources | where properties.sharedKey startswith 'a' | count", False),
        ("resources | where tostring(properties) contains 'a' | project name", False),
        (r"resources | where name == 'a\' or name == ' | project properties ' | project name", False),
        (r'resources | where name == "a\" or name == " | project properties " | project name', False),
        ("resources | extend name=properties | project name", False),
        ("securityresources | project name", False),
        ("resources | project name | join (resources) on id", False),
        ("resources | project name, properties.ipConfigurations[0].properties.privateIPAddress", True),
        ("resources | mv-expand i=properties.ipConfigurations | project tostring(i.properties.privateIPAddress)", True),
        ("resources | where properties.ipAddress == '20.1.2.3' | project id, sku.name", True),
        ("resources | extend s = properties.provisioningState | summarize n=count() by s | order by n", True),
        ("resources | extend a = properties.sku | project a.key", False),
        ("resources | mv-expand p=properties | project p.adminPassword", False),
        ("resources | extend tags = name, x = tags | project x", False),
        ("resources | extend Tags = name | project tags", False),
        ("resources | union securityresources | project name", False),
        ("resources | extend p = properties.addressSpace.addressPrefixes | mv-expand p | project name, p", True),
        ("resources | extend s = properties.subnets | mv-expand s | project s.name, s.properties.addressPrefix", True),
        ("resources | extend s = properties.subnets | mv-expand s | project s.properties.key", False),
        ("resources | mv-expand properties | project properties", False),
        ("resources | extend n = name | mv-expand n | project n", False),
        ("healthresources | project id, properties.availabilityState, properties.reasonType", True),
        ("healthresources | project properties.occurredTime, properties.summary", False),
        ("resourcechanges | where todatetime(properties.changeAttributes.timestamp) > ago(1d) | count", True),
        ("resourcechanges | project properties.targetResourceId, properties.changeType", True),
        ("resourcechanges | project properties.changes", False),
        ("resourcechanges | project properties.changeAttributes", False),
        ("Resources | where tags.env == 'prod' | project id", True),
        ("resources | where tolower(tags['cost-center']) in~ ('a', 'b') and location == 'x' | count", True),
        ("resources | where not(isempty(tags.owner)) or (tags.env !~ 'prod') | project name", True),
        ("resources | where tags.env startswith 'p' | project id", False),
        ("resources | where tags.env < 'p' | project id", False),
        ("resources | where 'p' < tags.env == 'true' | project id", False),
        ("resources | where tostring('p' < tags.env) == 'true' | project id", False),
        ("resources | where tolower(tags.env) contains 'p' | project id", False),
        ("resources | where tags.password == 'p' | project id", False),
        ("resources | where tags['api-key'] == 'p' | project id", False),
        ("resources | where tags.env == tags.password | project id", False),
        ("resources | where tags.env.x == 'p' | project id", False),
        ("resources | where tags contains 'p' | project id", False),
        ("resources | where tostring(tags) == 'p' | project id", False),
        ("resources | where tags.env == 'prod' | project id, tags.env", False),
        ("resources | extend e = tags.env | where e == 'prod' | project id", False),
        ("resources | where tags['env'] in (resources | project name) | project id", False),
        ("resources | where tolower(tags.env", False),
    ],
)
def test_a_graph_query_tells_which_resources_there_are_and_listed_properties_alone(query: str, safe: bool) -> None:
    assert (decide(f"az graph query -q {shlex.quote(query)} -o json").classification == "SAFE") is safe


LOGS = "az monitor log-analytics query -w w --analytics-query "


@each(
    "query",
    [
        "AzureActivity | where Caller !in ('a') | summarize count() by bin(TimeGenerated, 5m)",
        "let t = ago(1d); Heartbeat | where TimeGenerated > t | summarize arg_max(TimeGenerated, *) by Computer",
        "VMConnection | join kind=inner (Perf | where x has_any ('a')) on $left.X == $right.Y | extend r = a * b",
        "union AZFWNatRule, AZFWDnsQuery | where TimeGenerated between (datetime(2026-01-01T10:00:00Z) .. now())",
        r"AzureMetrics | where Url has 'https://x' and m matches regex @'\d+' | extend k = P_d['code']",
    ],
)
def test_a_query_of_logs_that_keeps_names_and_values_is_safe(query: str) -> None:
    assert decide(LOGS + shlex.quote(query)).classification == "SAFE"


@each(
    "query",
    [
        *(
            "Perf | extend x = reverse(m)",
            "Perf | project substring(m, 0, 1)",
            "Perf | extend x = tostring(properties.a)",
        ),
        *("Perf | extend x = strcat(a, b)", "Perf | parse m with * 'x' y", "Perf | extend x = extract('a', 0, m)"),
        *(
            "Perf | extend bag_keys(p)",
            "Perf | project treepath(p)",
            "Perf | extend x = hash_sha256(m)",
            "Perf | extend pack_all()",
        ),
        *(
            "Perf | extend base64_encode_tostring(m)",
            "Perf | where * has 'x'",
            "Perf | where x == 'a' and * has 'b'",
            "union *",
        ),
        *(
            "search 'pw'",
            "let x = search 'a'; x",
            "Perf | union (search 'a')",
            "Perf | evaluate bag_unpack(p)",
            "Perf // x",
        ),
        *(
            "Perf | project x = SharedKey",
            "Perf | project x = p.sharedKey",
            "Perf | project x = p['sharedKey']",
            "set x; Perf",
        ),
        *(
            r"Perf | extend x = p['\u006bey']",
            "Perf | project x = p[tolower('KEY')]",
            "workspace('x').Perf | take 1",
            "Perf | invoke f()",
        ),
        *(
            "externaldata(x:string)['https://a.example']",
            ".drop table x",
            "Perf | where x == ```a```",
            "Perf | where x has 'a",
        ),
    ],
)
def test_a_query_of_logs_that_drops_names_rewrites_values_or_leaves_the_workspace_is_asked(query: str) -> None:
    assert decide(LOGS + shlex.quote(query)).classification == "RISKY"


def test_a_gateway_is_shown_whole_where_its_secret_has_its_name_beside_it_or_is_left_out() -> None:
    for format_ in ("-o table", "--output=table", "-o json", "-o yaml", ""):
        assert decide(f"az network vnet-gateway list -g g {format_}").classification == "SAFE"
    for format_ in ("-o tsv", "--output=tsv", "-o none", "--query '[]'"):
        assert decide(f"az network vnet-gateway list -g g {format_}").classification == "RISKY"
    assert decide("az network vnet-gateway list -g g -o table -o json").classification == "RISKY"
    assert decide("az network vpn-connection list -g g -o table").classification == "RISKY"


@each(
    "command",
    [
        *(
            "network vpn-gateway list -g g",
            "network p2s-vpn-gateway show -g g -n v",
            "network express-route gateway list",
        ),
        *("monitor autoscale list -g g", "monitor action-group show -g g -n a"),
    ],
)
def test_an_answer_whose_secrets_stand_in_lists_is_shown_as_a_table_alone(command: str) -> None:
    """The CLI's table has a column for each plain value at the top, and none for a list or an object."""
    assert decide(f"az {command} -o table").classification == "SAFE"
    for format_ in (
        "",
        "-o json",
        "-o tsv",
        "-o yaml",
        "-o table --query '[]'",
        "-o table -o json",
        "-o table --debug",
    ):
        assert decide(f"az {command} {format_}").classification == "RISKY"


@each(
    "command",
    [
        *("network vpn-connection show -g g -n c", "network express-route list", "network vpn-site list -g g"),
        *("network vpn-gateway connection list -g g --gateway-name v", "keyvault secret list --vault-name kv1"),
        *("webapp config ssl list -g g", "functionapp config ssl show -g g --certificate-name c"),
    ],
)
def test_an_answer_whose_secret_is_a_column_is_shown_whole_in_no_form(command: str) -> None:
    for format_ in ("", "-o table", "-o json", "-o tsv", "-o yaml"):
        assert decide(f"az {command} {format_}").classification == "RISKY"


@each(
    "command, plain, not_shown",
    [
        ("webapp config show -g g -n a", "minTlsVersion", "appSettings"),
        ("webapp config show -g g -n a", "{tls:minTlsVersion,ftps:ftpsState}", "connectionStrings"),
        ("webapp config show -g g -n a", "ipSecurityRestrictions", "azureStorageAccounts"),
        ("functionapp config show -g g -n a", "properties.minTlsVersion", "appCommandLine"),
        ("functionapp function list -g g -n a", "[].name", "[].invokeUrlTemplate"),
        ("cognitiveservices account list", "[].{n:name,s:properties.provisioningState}", "[].properties"),
        ("cognitiveservices account show -g g -n c", "properties.endpoint", "properties.apiProperties"),
        ("deployment operation group list -g g -n d", "[].properties.provisioningState", "[].properties.response"),
        ("deployment operation sub list -n d", "[].properties.targetResource.id", "[].properties.statusMessage"),
        ("postgres flexible-server server-logs list -g g -s s", "[].{n:name,kb:sizeInKb}", "[].url"),
        ("ad sp show --id 00000000-0000-0000-0000-000000000001", "displayName", "passwordCredentials"),
        ("ad app list --display-name a", "[].{n:displayName,id:appId}", "[].passwordCredentials[].hint"),
        ("containerapp show -g g -n c", "properties.configuration.ingress", "properties.configuration.secrets"),
        ("containerapp show -g g -n c", "properties.configuration.ingress.traffic", "properties.configuration"),
    ],
)
def test_a_plain_field_of_an_answer_that_may_hold_keys_is_read_unasked(
    command: str, plain: str, not_shown: str
) -> None:
    assert decide(f"az {command} --query {shlex.quote(plain)} -o tsv").classification == "SAFE"
    assert decide(f"az {command} --query {shlex.quote(not_shown)} -o tsv").classification == "RISKY"
    assert decide(f"az {command} -o json").classification == "RISKY"


def test_a_table_of_a_directory_or_of_accounts_leaves_out_what_holds_keys() -> None:
    for command in ("ad sp list --all", "ad app list", "cognitiveservices account list -g g"):
        assert decide(f"az {command} -o table").classification == "SAFE"
        assert decide(f"az {command}").classification == "RISKY"
    for command in ("ad user list -o table", "ad sp list --filter x -o table", "ad sp show --id x -o table"):
        assert decide(f"az {command}").classification == "RISKY"


def test_management_groups_are_listed_only_where_nothing_is_registered_first() -> None:
    for command in ("list", "show -n m", "show -n m --expand --recurse"):
        assert decide(f"az account management-group {command} --no-register -o table").classification == "SAFE"
        decision = decide(f"az account management-group {command} -o table")
        assert decision.classification == "RISKY"
        assert "unless --no-register is given" in decision.explanation
    assert decide("az account management-group delete -n m --no-register").classification == "RISKY"


def test_a_vault_is_asked_for_the_names_dates_and_public_halves_of_its_keys() -> None:
    for read in ("list", "list-versions -n k", "list-deleted", "show -n k"):
        assert decide(f"az keyvault key {read} --vault-name kv1 -o table").classification == "SAFE"
    for other in ("download -n k -f x", "backup -n k -f x", "random --count 8", "get-attestation -n k", "list --id x"):
        assert decide(f"az keyvault key {other} --vault-name kv1").classification == "RISKY"


@each(
    "registry, safe",
    [
        *(("acr1", True), ("ContosoProd01", True), ("contoso.azurecr.io", True), ("evil.example", False)),
        *(("evil.example/x", False), ("evil.example#", False), ("a@evil.example", False), ("https://a.example", False)),
        *(("contoso.azurecr.io.evil.example", False), ("a" * 51, False)),
    ],
)
def test_a_token_for_a_registry_goes_to_what_is_named_like_one(registry: str, safe: bool) -> None:
    for command in (
        "repository list -n",
        "repository show-tags --repository web -n",
        "manifest list-metadata -n web -r",
    ):
        assert (decide(f"az acr {command} {registry}").classification == "SAFE") is safe


def test_the_help_of_what_exists_is_a_read_and_nothing_stands_beside_it() -> None:
    assert decide("az network vnet --help").classification == "SAFE"
    assert decide("az vm delete -h").classification == "SAFE"
    for command in (
        "az vm delete -n x --help",
        "az nonsense --help",
        "az vm delete --help --yes",
        "az vm delete --help x",
    ):
        assert decide(command).classification == "RISKY", command


def test_the_tables_judge_their_examples_as_they_say() -> None:
    for name in ("az_reads.toml", "az_free_fields.toml"):
        examples = policy_table(name)["examples"]
        assert [one for one in examples["safe"] if reads().refusal(shlex.split(one)) is not None] == []
        assert [one for one in examples["risky"] if decide(one).classification == "SAFE"] == []


@each("name", [k for k, v in tomllib.loads(QUERIES.read_text()).items() if isinstance(v, str)])
def test_every_read_of_the_offline_brain_runs_unasked(name: str) -> None:
    values = defaultdict(lambda: '`["10.0.0.0/24","VirtualNetwork"]`', token='`"app"`', address='`"10.0.0.4"`')
    values |= {"direction": '`"Inbound"`', "low": "`100`", "high": "`200`"}
    query = Template(tomllib.loads(QUERIES.read_text())[name]).substitute(values)
    decision = decide(f"az network nic list --query {shlex.quote(query)} -o json")
    assert decision.classification == "SAFE", decision.explanation


NSG = "AzureDiagnostics | where Category == 'NetworkSecurityGroupFlowEvent'"


@each(
    "query",
    [
        *(
            NSG,
            f"{NSG} and Resource has 'nsg' | take 20",
            "AzureDiagnostics | where x > 1 | where Category in ('AzureFirewallDnsProxy')",
        ),
        *(
            "AzureDiagnostics | where ResourceType =~ 'azurefirewalls' | where msg_s contains 'Deny'",
            "AZFWNetworkRule | take 5",
        ),
        "AzureDiagnostics | summarize n = count() by Category | order by n desc | render timechart",
        "let bad = AZFWNetworkRule | where Action == 'Deny' | distinct SourceIp; VMConnection | where Ip in (bad)",
        "union isfuzzy=true AZFWNetworkRule, (AZFWNatRule | take 5) | count",
        "VMConnection | join kind=inner AzureMetrics on $left.a == $right.b | where c in (dynamic(['x']))",
        "AGWAccessLogs | where HttpStatus >= 500 | project TimeGenerated, Host, HttpStatus, ServerRouted | take 20",
        "requests | where success == false | summarize count() by resultCode | order by count_ desc",
        "AzureActivity | project TimeGenerated, Caller, what = OperationNameValue | where what has 'delete'",
    ],
)
def test_rows_of_the_network_and_listed_columns_of_other_logs_are_safe(query: str) -> None:
    assert decide(LOGS + shlex.quote(query)).classification == "SAFE"


@each(
    "query",
    [
        *(
            "SecretTable | take 5",
            "SecretTable | where Value startswith 'a' | count",
            "AppTraces | take 1",
            "Syslog | count",
        ),
        *("AzureDiagnostics | take 5", "AzureDiagnostics | where Category == 'AuditEvent' | take 5", f"{NSG} or true"),
        *(
            "AzureDiagnostics | where not(Category == 'AZFWDnsQuery')",
            "AzureDiagnostics | where (1 == 1 and Category == 'AZFWDnsQuery') == false",
        ),
        *(
            "AzureDiagnostics | where Category != 'AZFWDnsQuery'",
            "AzureDiagnostics | where Category == 'AZFWDnsQuery' == false",
        ),
        *(
            "AzureDiagnostics | where Category in ('AZFWDnsQuery', 'AuditEvent')",
            "AzureDiagnostics | take 9 | where Category == 'AZFWDnsQuery'",
        ),
        *("AzureDiagnostics | where (a or Category == 'AZFWDnsQuery')", f"union AzureDiagnostics, (Perf) {NSG[16:]}"),
        *(
            "AzureDiagnostics | where Category !in ('AZFWDnsQuery')",
            "AzureDiagnostics | where iff(a and Category == 'AZFWDnsQuery', b, c)",
        ),
        *(
            "Perf | union SecretTable",
            "Perf | union (SecretTable)",
            "Perf | union ((SecretTable | take 1))",
            "union Perf, SecretTable",
        ),
        *(
            "Perf | join SecretTable on a",
            "Perf | join kind=inner (SecretTable) on a",
            "Perf | lookup SecretTable on a",
        ),
        *(
            "Perf | where a in (SecretTable | project b)",
            "Perf | where a in (SecretTable)",
            "Perf | where a in ((SecretTable))",
        ),
        *("Perf | extend a = toscalar(SecretTable | take 1)", "Perf | extend a = toscalar(SecretTable)"),
        *(
            "let x = SecretTable; x",
            "let x = (SecretTable); x",
            "let x = materialize(SecretTable); x",
            "Perf; SecretTable",
            "Perf; (SecretTable)",
        ),
        *("let SecretTable = SecretTable | take 1; SecretTable", "Perf | as SecretTable | union SecretTable"),
        *(
            "union ['SecretTable']",
            "Perf | union ['SecretTable']",
            "Perf | join (['SecretTable']) on a",
            "Perf | join kind=inner ['S'] on a",
        ),
        *(
            "AzureActivity | take 5",
            "AzureActivity | project Claims",
            "AzureActivity | extend Claims = Claims | project Claims",
        ),
        *(
            "AzureActivity | project a = Claims | project a",
            "AzureActivity | summarize arg_max(TimeGenerated, *) by Caller",
        ),
        *(
            "AzureActivity | project TimeGenerated['a']",
            "AzureActivity | join (AzureActivity | extend Claims = 1) on Caller | project Claims",
        ),
        *(
            "let Claims = 1; AzureActivity | project Claims",
            "AzureActivity | where Claims has 'a' | count",
            "AzureActivity | summarize make_list(Claims)",
        ),
        *(
            "requests | take 10",
            "requests | project url",
            "requests | where url contains 'token=a' | count",
            "traces | summarize count()",
        ),
        *(
            "AGWAccessLogs | project RequestQuery",
            "AGWFirewallLogs | project Message",
            "AZFWApplicationRule | project TargetUrl",
        ),
        *(
            "Perf | where Message contains 'a' | count",
            "Perf | extend m = Message | where m startswith 'a'",
            "Perf | where tolower(x) has 'a'",
        ),
    ],
)
def test_rows_that_may_be_anybodys_text_are_asked_for(query: str) -> None:
    assert decide(LOGS + shlex.quote(query)).classification == "RISKY"


def test_the_page_of_the_table_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python scripts/write_az_table_doc.py"


def test_of_ten_network_commands_that_only_get_nine_are_read_unasked() -> None:
    table = reads()
    gets = {
        path
        for path in table.catalogue.lines
        if path.startswith("network ") and catalogue().command(path).methods == frozenset({"GET"})
    }
    asked = gets - set(table.paths()) | gets & table.risks.projected.keys()

    assert len(gets) > 300
    assert len(asked) * 10 <= len(gets), sorted(asked)
