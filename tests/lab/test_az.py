"""`az` of the lab behaves as the real one: options, output formats, exit codes, field names, captures by the clock."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.errors import LabError
from ghost.lab import RunningLab
from ghost.lab.arm import capture_life
from ghost.lab.az_cli.command_table import COMMANDS
from ghost.lab.az_cli.output import render
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.programs import az
from ghost.net import Flow, evaluate_gates, groups_from_effective_nsg, routes_from_effective_table, select_route

CONFORMANCE = Path(__file__).with_name("conformance.toml")
NEWER_TESTS = Path(__file__).with_name("test_az_captures.py")


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Az = Callable[[str], Result]


def _caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], directory: Path) -> Az:
    monkeypatch.setenv("GHOST_LAB_DIR", str(directory))

    def call(command: str) -> Result:
        capsys.readouterr()
        status = az.main(shlex.split(command)[1:])
        out, err = capsys.readouterr()
        return Result(status, out, err)

    return call


@pytest.fixture
def running(tmp_path: Path) -> RunningLab:
    return lab.start(lab.load_scenario("blocked-port"), tmp_path / "lab", speed=1000.0)


@pytest.fixture
def call(running: RunningLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Az:
    return _caller(monkeypatch, capsys, Path(running.environment["GHOST_LAB_DIR"]))


@pytest.fixture
def call_in_wire_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Az:
    started = lab.start(lab.load_scenario("wire-loss"), tmp_path / "wire", speed=1000.0)
    return _caller(monkeypatch, capsys, Path(started.environment["GHOST_LAB_DIR"]))


# --- every read answers ---

VM_ID = (
    "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211/resourceGroups/prod-rg/providers/"
    "Microsoft.Compute/virtualMachines/web-vm-01"
)

READS = {
    "az account show": {"id", "tenantId", "name", "user"},
    "az account list": {"id", "cloudName", "isDefault"},
    "az role assignment list": {"principalName", "roleDefinitionName", "scope"},
    "az group list": {"id", "name", "location"},
    "az group show -n prod-rg": {"id", "name", "location", "properties"},
    "az resource list": {"id", "name", "type", "location", "resourceGroup"},
    "az resource list -g prod-rg -n web-vm-01": {"id", "name", "type", "location"},
    "az resource list --resource-type Microsoft.Network/networkInterfaces": {"id", "name"},
    "az resource list --tag role=redis-cache": {"id", "tags"},
    f"az resource show --ids {VM_ID}": {"id", "name", "type", "location", "properties"},
    "az resource show -g prod-rg -n web-vm-01 --resource-type Microsoft.Compute/virtualMachines": {"id"},
    "az vm list": {"id", "name", "networkProfile", "hardwareProfile", "resourceGroup", "tags"},
    "az vm list -d -g prod-rg": {"powerState", "privateIps", "publicIps"},
    "az vm show -g prod-rg -n web-vm-01": {"id", "provisioningState", "storageProfile", "vmId"},
    "az vm show --show-details --ids " + VM_ID: {"powerState", "privateIps", "macAddresses"},
    "az vm get-instance-view -g prod-rg -n web-vm-01": {"instanceView"},
    "az vm list-ip-addresses -g prod-rg -n web-vm-01": {"virtualMachine"},
    "az vm extension list -g prod-rg --vm-name web-vm-01": {"typePropertiesType", "publisher"},
    "az network vnet list": {"addressSpace", "subnets", "virtualNetworkPeerings"},
    "az network vnet show -g prod-rg -n prod-vnet": {"addressSpace", "subnets"},
    "az network vnet subnet list -g prod-rg --vnet-name prod-vnet": {"addressPrefix", "networkSecurityGroup"},
    "az network vnet subnet show -g prod-rg --vnet-name prod-vnet -n prod-subnet": {"routeTable", "ipConfigurations"},
    "az network nsg list": {"securityRules", "defaultSecurityRules", "subnets"},
    "az network nsg show -g prod-rg -n web-nic-nsg": {"networkInterfaces"},
    "az network nsg show -g prod-rg -n cache-nsg": {"securityRules", "defaultSecurityRules"},
    "az network nsg rule list -g prod-rg --nsg-name cache-nsg": {"access", "priority", "direction", "protocol"},
    "az network nsg rule show -g prod-rg --nsg-name cache-nsg -n allow-redis": {"destinationPortRanges"},
    "az network nic list": {"ipConfigurations", "macAddress", "virtualMachine"},
    "az network nic show -g prod-rg -n web-vm-01-nic": {"networkSecurityGroup", "enableIPForwarding"},
    "az network nic ip-config list -g prod-rg --nic-name web-vm-01-nic": {"privateIPAddress", "subnet"},
    "az network nic ip-config show -g prod-rg --nic-name web-vm-01-nic -n ipconfig1": {"privateIPAddress"},
    "az network nic show-effective-route-table -g prod-rg -n web-vm-01-nic": {"value"},
    "az network nic list-effective-nsg -g prod-rg -n web-vm-01-nic": {"value"},
    "az network route-table list -g prod-rg": {"routes", "disableBgpRoutePropagation"},
    "az network route-table show -g prod-rg -n prod-routes": {"routes", "subnets"},
    "az network route-table route list -g prod-rg --route-table-name prod-routes": {"nextHopType", "addressPrefix"},
    "az network route-table route show -g prod-rg --route-table-name prod-routes -n branch-office": {
        "nextHopIpAddress"
    },
    "az network watcher list": {"name", "location", "resourceGroup"},
    "az network watcher show-next-hop -g prod-rg --vm web-vm-01 --source-ip 10.20.1.4 --dest-ip 10.20.2.5": {
        "nextHopType"
    },
    "az network watcher test-ip-flow -g prod-rg --vm web-vm-01 --direction Outbound --protocol TCP "
    "--local 10.20.1.4:60000 --remote 10.20.2.5:6379": {"access", "ruleName"},
    "az storage account list": {"id", "name", "primaryEndpoints", "sku"},
    "az storage account show -n prodforensics01": {"networkRuleSet"},
    "az storage container exists --account-name prodforensics01 --name captures --auth-mode login": {"exists"},
    "az storage container list --account-name prodforensics01": {"name", "properties"},
    "az storage container show --account-name prodforensics01 -n captures": {"name"},
    "az storage blob exists --account-name prodforensics01 -c captures -n x.cap": {"exists"},
    "az storage account keys list -n prodforensics01": {"keyName", "value", "permissions"},
    "az vm run-command invoke -g prod-rg -n web-vm-01 --command-id RunShellScript --scripts hostname": {"value"},
    "az version": {"azure-cli"},
}


@pytest.mark.parametrize("command", READS)
def test_a_read_answers_with_azures_fields(command: str, call: Az) -> None:
    result = call(command + " -o json")

    assert (result.status, result.err) == (0, "")
    answer = result.json
    first = answer[0] if isinstance(answer, list) else answer
    assert READS[command] <= set(first)
    if isinstance(answer, dict):
        assert list(answer) == sorted(answer)


def test_every_registered_command_is_asked_in_this_file_or_is_a_list_of_nothing(call: Az) -> None:
    newer = NEWER_TESTS.read_text().replace("{NEWER}", "az network network-watcher packet-capture")
    compared = tomllib.loads(CONFORMANCE.read_text())
    changes = [*compared["hub"]["changes"], *(text for row in compared["writes"] for text in row)]
    asked = " ".join([*READS, Path(__file__).read_text(), newer, *(f"az {row}" for row in changes)])
    of_the_watcher = (Path(__file__).parent / "test_network_watcher.py").read_text()
    for words, command in COMMANDS.items():
        if f"az {words}" in asked or words in of_the_watcher:
            continue
        required = [option.split()[0] for option in command.options if option.endswith("!")]
        result = call(f"az {words} " + " ".join(f"{name} prod-rg" for name in required))
        owner_is_named = bool(set(required) - {"--resource-group"})
        if words.endswith("list") and not owner_is_named:
            assert (result.status, result.out) == (0, "[]\n"), words
        else:
            assert result.status == 3, words


def test_a_group_exists_or_does_not(call: Az) -> None:
    assert call("az group exists -n PROD-rg").json is True
    assert call("az group exists -n nope").json is False


def test_peerings_are_listed_and_shown(call_in_wire_loss: Az) -> None:
    listed = call_in_wire_loss("az network vnet peering list -g app-rg --vnet-name app-vnet").json
    shown = call_in_wire_loss("az network vnet peering show -g app-rg --vnet-name app-vnet -n app-to-data").json

    assert listed == [shown]
    assert shown["peeringState"] == "Connected"
    assert shown["remoteVirtualNetwork"]["id"].endswith("/virtualNetworks/data-vnet")
    assert shown["remoteAddressSpace"] == {"addressPrefixes": ["10.40.0.0/16"]}


# --- what configuration says is what ghost.net reads ---


def test_effective_groups_and_routes_read_back_to_the_worlds_own_verdict(call: Az) -> None:
    nsg = call("az network nic list-effective-nsg -g prod-rg -n redis-cache-01-nic").json
    routes = call("az network nic show-effective-route-table -g prod-rg -n web-vm-01-nic").json
    flow = Flow("Tcp", "10.20.1.4", None, "10.20.2.5", 6379)

    verdict = evaluate_gates(groups_from_effective_nsg(nsg), flow, "Inbound")
    chosen = select_route(routes_from_effective_table(routes), "10.20.2.5")

    assert verdict.rule is not None
    assert (verdict.allowed, verdict.rule.name, verdict.gate) == (False, "close-legacy-ports", "subnet")
    assert chosen is not None
    assert chosen.next_hop_type == "VnetLocal"


def test_effective_rules_are_written_as_azure_writes_them(call: Az) -> None:
    (group,) = call("az network nic list-effective-nsg -g prod-rg -n redis-cache-01-nic").json["value"]
    rules = {rule["name"]: rule for rule in group["effectiveSecurityRules"]}

    assert "subnet" in group["association"]
    assert group["networkSecurityGroup"]["id"].endswith("/networkSecurityGroups/cache-nsg")
    default = rules["defaultSecurityRules/AllowVnetInBound"]
    assert default["protocol"] == "All"
    assert default["sourcePortRange"] == "0-65535"
    assert default["expandedSourceAddressPrefix"] == ["10.20.0.0/16", "168.63.129.16/32"]
    assert rules["securityRules/close-legacy-ports"]["destinationPortRange"] == "6000-6500"
    assert rules["securityRules/allow-redis"]["destinationPortRanges"] == ["6379-6379", "6380-6380"]


def test_the_internet_expands_to_public_prefixes_without_the_network(call: Az) -> None:
    groups = call("az network nic list-effective-nsg -g prod-rg -n web-vm-01-nic").json
    flow = Flow("Tcp", "203.0.113.9", None, "10.20.1.4", 443)

    assert evaluate_gates(groups_from_effective_nsg(groups), flow, "Inbound").allowed
    inside = replace(flow, source_address="192.168.9.9")
    assert not evaluate_gates(groups_from_effective_nsg(groups)[1:], inside, "Inbound").allowed


@pytest.mark.parametrize(
    ("direction", "local", "remote", "expected"),
    [
        ("Inbound", "10.20.2.5:6379", "10.20.1.4:*", ("Deny", "securityRules/close-legacy-ports")),
        ("Inbound", "10.20.2.5:6379", "10.20.3.10:60000", ("Allow", "securityRules/allow-redis")),
        ("Outbound", "10.20.2.5:60000", "10.99.0.4:443", ("Deny", "defaultSecurityRules/DenyAllOutBound")),
    ],
)
def test_ip_flow_verify_names_the_rule_that_decides(
    direction: str, local: str, remote: str, expected: tuple[str, str], call: Az
) -> None:
    answer = call(
        f"az network watcher test-ip-flow -g prod-rg --vm redis-cache-01 --direction {direction} --protocol TCP "
        f"--local {local} --remote {remote}"
    ).json

    assert (answer["access"], answer["ruleName"]) == expected


def test_next_hop_names_the_route_table_of_a_users_route(call: Az) -> None:
    answer = call(
        f"az network watcher show-next-hop -g prod-rg --vm {VM_ID} --source-ip 10.20.1.4 --dest-ip 172.20.0.9"
    ).json

    assert answer["nextHopType"] == "VirtualAppliance"
    assert answer["routeTableId"].endswith("/routeTables/prod-routes")


# --- options and exit codes ---


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("az network nsg show -g prod-rg", 1, "(--name | --ids) are required"),
        ("az network nsg show", 1, "(--resource-group --name | --ids) are required"),
        ("az network nsgs list", 2, "'nsgs' is misspelled or not recognized by the system."),
        ("az nonsense", 2, "'nonsense' is misspelled or not recognized by the system."),
        ("az network nsg", 2, "the following arguments are required: _subcommand"),
        ("az vm list --nope x", 2, "unrecognized arguments: --nope x"),
        ("az vm list stray", 2, "unrecognized arguments: stray"),
        ("az vm list -g", 2, "argument --resource-group/-g: expected one argument"),
        ("az vm list --query '[?a=b]'", 2, "argument --query: invalid jmespath_type value: '[?a=b]'"),
        (
            "az vm list -o xml",
            2,
            "az vm list: 'xml' is not a valid value for '--output'. Allowed values: json, jsonc, ",
        ),
        ("az vm list --subscription other", 1, "Subscription 'other' not found."),
        ("az vm list --query 'sum([].name)'", 1, "In function sum(), invalid type for value"),
        (
            "az vm show -g prod-rg -n x",
            3,
            "(ResourceNotFound) The Resource 'Microsoft.Compute/virtualMachines/x' under resource group 'prod-rg' was "
            "not found.",
        ),
        ("az vm show -g nope -n x", 3, "(ResourceGroupNotFound) Resource group 'nope' could not be found."),
        ("az vm list -g nope", 3, "(ResourceGroupNotFound)"),
        ("az network vnet subnet show -g prod-rg --vnet-name prod-vnet -n x", 3, "(NotFound) Resource /subscriptions/"),
        ("az keyvault show -n x", 1, "The Vault 'x' not found within subscription."),
        ("az resource show --ids nonsense", 1, "argument --ids: invalid ResourceId value: 'nonsense'"),
        (f"az resource show --ids {VM_ID}x", 3, "(ResourceNotFound) The Resource 'Microsoft.Compute/virtualMachines/"),
        ("az resource show -n web-vm-01", 1, "--resource-group/-g is required."),
        (
            "az storage container exists --account-name nope --name x",
            1,
            "Failed to resolve 'nope.blob.core.windows.net'",
        ),
        ("az storage container exists --name x", 1, "Please provide storage account name or connection string."),
        ("az storage blob list --account-name prodforensics01 -c nope", 3, "The specified container does not exist."),
        (
            "az storage blob show --account-name prodforensics01 -c captures -n x",
            3,
            "ErrorCode:BlobNotFound",
        ),
        ("az storage blob download --account-name prodforensics01 -c captures -n x -f y", 3, "ErrorCode:BlobNotFound"),
        ("az storage blob delete --account-name prodforensics01 -c captures -n x", 3, "ErrorCode:BlobNotFound"),
        ("az storage blob list --account-name prodforensics01 -c captures --auth-mode x", 2, "for '--auth-mode'"),
        ("az network watcher packet-capture show -g prod-rg -n x", 2, "required: --location/-l"),
        ("az network watcher packet-capture show -l eastus -g prod-rg -n x", 2, "unrecognized arguments: -g prod-rg"),
        ("az network watcher packet-capture show -l eastus -n x", 3, "NetworkWatcher_eastus/packetCaptures/x"),
        ("az network watcher packet-capture list -l mars", 1, "network watcher is not enabled for region mars."),
        ("az network watcher test-ip-flow --vm x --direction Inbound --local a --remote b --protocol Tcp", 1, "usage"),
        (
            "az network watcher test-ip-flow -g prod-rg --vm web-vm-01 --direction Inbound --local 10.20.1.4:² "
            "--remote 10.20.2.5:80 --protocol TCP",
            1,
            "Value '²' for the property 'localPort' is no port.",
        ),
    ],
)
def test_what_is_wrong_ends_with_the_clis_words_and_exit_code(
    command: str, status: int, message: str, call: Az
) -> None:
    result = call(command)

    assert result.status == status
    assert result.out == ""
    assert result.err.startswith("ERROR: ")
    assert message in result.err


@pytest.mark.parametrize(
    "options",
    [
        "-g prod-rg -n web-vm-01",
        "--resource-group prod-rg --name web-vm-01",
        "--resource-group=prod-rg --name=web-vm-01",
        "-gprod-rg -nweb-vm-01",
        "--resource prod-rg --name web-vm-01",
        "-g PROD-RG -n WEB-VM-01",
        f"--ids {VM_ID}",
        "--name web-vm-01 -g prod-rg --subscription Production --only-show-errors",
    ],
)
def test_options_are_read_in_every_spelling(options: str, call: Az) -> None:
    assert call(f"az vm show {options} --query name -o tsv").out == "web-vm-01\n"


def test_several_ids_give_a_list(call: Az) -> None:
    other = VM_ID.replace("web-vm-01", "jobs-vm-01")
    assert call(f"az vm show --ids {VM_ID} {other} --query [].name").json == ["web-vm-01", "jobs-vm-01"]


@pytest.mark.parametrize(
    ("query", "output", "expected"),
    [
        ("[].name", "tsv", "web-vm-01\nredis-cache-01\njobs-vm-01\n"),
        ("[:1].[name, tags, networkProfile.networkInterfaces]", "tsv", "web-vm-01\t\t1\n"),
        ("[].{n:name,l:location} | [:1]", "tsv", "web-vm-01\teastus\n"),
        ("[].{n:name,l:location} | [:1]", "table", "N          L\n---------  ------\nweb-vm-01  eastus\n"),
        ("[].name | [:1]", "table", "Result\n---------\nweb-vm-01\n"),
        ("[0].tags", "yaml", 'environment: "production"\nrole: "web"\n'),
        ("[0].tags", "none", ""),
        ("[0].nothing", "json", ""),
        ("length(@)", "json", "3\n"),
        ("[?tags.role=='web'].name", "json", '[\n  "web-vm-01"\n]\n'),
    ],
)
def test_query_and_output_shape_the_answer(query: str, output: str, expected: str, call: Az) -> None:
    assert call(f'az vm list --query "{query}" -o {output}').out == expected


def test_yaml_nests_objects_in_lists() -> None:
    assert render([{"a": [1, {"b": None}], "c": {}}], "yaml") == "- a:\n    - 1\n    - b: null\n  c: {}\n"


def test_help_lists_the_commands_of_a_group(call: Az) -> None:
    assert "az network nsg rule list" in call("az network nsg --help").out
    assert "--resource-group -g" in call("az vm show -h").out


# --- captures ---

CREATE = (
    "az network watcher packet-capture create -g prod-rg -n cap1 --vm web-vm-01 --storage-account prodforensics01 "
    "--storage-path https://prodforensics01.blob.core.windows.net/captures/cap1.cap --time-limit 300 -o json"
)
STATUS = "az network watcher packet-capture show-status -l eastus -n cap1 -o json"
EXISTS = "az storage blob exists --account-name prodforensics01 -c captures -n cap1.cap"


class Time:
    """The lab's clock, moved by hand."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "world.json"
        self.lab_seconds = 0.0
        self.set(0.0)

    def set(self, lab_seconds: float) -> None:
        """`speed` is so small that the lab stands still but for this."""
        self.lab_seconds = lab_seconds
        content = json.loads(self.path.read_text())
        content["clock"] = {"started": 1_700_000_000.0 + lab_seconds, "speed": 1e-12}
        self.path.write_text(json.dumps(content))


@pytest.fixture
def at(running: RunningLab) -> Time:
    return Time(Path(running.environment["GHOST_LAB_DIR"]))


def test_a_capture_runs_by_the_clock_and_leaves_its_blob_when_it_ends(call: Az, at: Time) -> None:
    created = call(CREATE).json
    assert created["provisioningState"] == "Succeeded"
    assert created["target"] == VM_ID
    assert created["resourceGroup"] == "NetworkWatcherRG"
    assert created["storageLocation"]["storagePath"].endswith("/captures/cap1.cap")

    assert call(STATUS).json["packetCaptureStatus"] == "NotStarted"
    at.set(10)
    assert call(STATUS).json["packetCaptureStatus"] == "Running"
    assert "stopReason" not in call(STATUS).json
    assert call(EXISTS).json == {"exists": False}
    at.set(301)
    assert call(STATUS).json["packetCaptureStatus"] == "Running"
    at.set(303)
    stopped = call(STATUS).json
    assert (stopped["packetCaptureStatus"], stopped["stopReason"]) == ("Stopped", "TimeExceeded")
    assert stopped["packetCaptureError"] == []
    assert call(EXISTS).json == {"exists": True}
    assert call("az network watcher packet-capture show -l eastus -n cap1").json == created


def test_a_capture_that_is_stopped_leaves_what_it_has(call: Az, at: Time, running: RunningLab) -> None:
    call(CREATE)
    at.set(42)
    result = call("az network watcher packet-capture stop -l eastus -n cap1")
    assert (result.status, result.out) == (0, "")
    assert call(STATUS).json["stopReason"] == "Manual"
    assert call(EXISTS).json == {"exists": True}
    (blob,) = LabDirectory.open(Path(running.environment["GHOST_LAB_DIR"])).state()["blobs"]
    assert blob["seconds"] == pytest.approx(40.0)
    at.set(400)
    call("az network watcher packet-capture stop -l eastus -n cap1")
    assert call(STATUS).json["stopReason"] == "Manual"


def test_a_capture_stopped_before_its_first_packet_is_empty(call: Az, at: Time, running: RunningLab) -> None:
    call(CREATE)
    call("az network watcher packet-capture stop -l eastus -n cap1")
    (blob,) = LabDirectory.open(Path(running.environment["GHOST_LAB_DIR"])).state()["blobs"]
    assert blob["seconds"] == 0.0


def test_the_blob_is_a_capture_that_downloads_alike_each_time_and_can_be_deleted(
    call: Az, at: Time, tmp_path: Path
) -> None:
    call(CREATE.replace("--time-limit 300", "--time-limit 20"))
    at.set(30)
    download = "az storage blob download --account-name prodforensics01 --container-name captures --name cap1.cap"
    first, second = tmp_path / "a.cap", tmp_path / "b.cap"

    result = call(f"{download} --file {first} --auth-mode login --no-progress -o none")
    assert (result.status, result.out) == (0, "")
    shape = call(f"{download} --file {second}").json

    assert first.read_bytes()[:4] in (
        b"\xd4\xc3\xb2\xa1",
        b"\x4d\x3c\xb2\xa1",
        b"\xa1\xb2\xc3\xd4",
        b"\xa1\xb2\x3c\x4d",
    )
    assert first.read_bytes() == second.read_bytes()
    assert shape["properties"]["contentLength"] == first.stat().st_size
    (listed,) = call("az storage blob list --account-name prodforensics01 -c captures --prefix cap").json
    assert listed["name"] == "cap1.cap"
    shown = call("az storage blob show --account-name prodforensics01 -c captures -n cap1.cap").json
    assert shown["properties"]["contentSettings"] == listed["properties"]["contentSettings"]
    assert call(f"{download} --file {tmp_path}/no/dir/x.cap").status == 1
    delete = "az storage blob delete --account-name prodforensics01 --container-name captures --name cap1.cap"
    assert call(f"{delete} --auth-mode login").status == 0
    assert call(EXISTS).json == {"exists": False}
    at.set(60)
    assert call(EXISTS).json == {"exists": False}, "a deleted blob does not come back"


def test_a_deleted_capture_is_gone_and_its_blob_stays(call: Az, at: Time) -> None:
    call(CREATE)
    at.set(100)
    delete = "az network watcher packet-capture delete -l eastus -n cap1"
    assert call(delete).status == 0
    assert call("az network watcher packet-capture list -l EastUS").json == []
    assert call(STATUS).status == 3
    assert call(EXISTS).json == {"exists": True}
    assert call(delete).status == 0
    assert call(CREATE).status == 0, "the name is free again"


def test_captures_are_listed_by_location(call: Az, at: Time) -> None:
    call(CREATE)
    query = '--query "[].{name:name,provisioningState:provisioningState}" -o json'
    listed = call(f"az network watcher packet-capture list -l eastus {query}").json

    assert listed == [{"name": "cap1", "provisioningState": "Succeeded"}]


@pytest.mark.parametrize(
    ("old", "new", "status", "message"),
    [
        ("--vm web-vm-01", "--vm nope", 3, "virtualMachines/nope"),
        ("--vm web-vm-01", f"--vm {VM_ID}x", 3, "virtualMachines/web-vm-01x"),
        ("--vm web-vm-01", "", 1, "--vm NAME_OR_ID is needed"),
        ("--vm web-vm-01", "--target nope --target-type AzureVMSS", 3, "virtualMachineScaleSets/nope"),
        ("-g prod-rg", "", 2, "required: --resource-group/-g"),
        ("-g prod-rg", "-g prod-rg --location eastus", 2, "unrecognized arguments: --location eastus"),
        ("--storage-account prodforensics01", "--storage-account nope", 1, "storageAccounts/nope"),
        ("--storage-account prodforensics01", "", 1, "--storage-account"),
        ("captures/cap1.cap", "captures/cap1.pcap", 1, "must end in .cap"),
        ("https://prodforensics01", "https://other", 1, "is not of the form"),
        ("--time-limit 300", "--time-limit x", 1, "invalid literal for int() with base 10: 'x'"),
        ("--time-limit 300", "--time-limit 99999", 1, "'99999' is greater than 18000"),
        ("--time-limit 300", "--filters x", 1, "Failed to parse '--filters' argument"),
        ("--time-limit 300", "--filters [1]", 1, "Invalid at [0] : dict type value expected, got '1'(<class 'int'>)"),
    ],
)
def test_a_capture_that_cannot_be_taken_is_refused(old: str, new: str, status: int, message: str, call: Az) -> None:
    assert old in CREATE
    result = call(CREATE.replace(old, new, 1))

    assert result.status == status
    assert message in result.err
    assert call("az network watcher packet-capture list -l eastus").json == []


def test_a_name_is_taken_while_its_capture_exists(call: Az) -> None:
    call(CREATE)
    result = call(CREATE)

    assert result.status == 1
    assert "already exists" in result.err


def test_a_capture_into_a_container_that_is_not_there_fails_with_azures_error(call: Az, at: Time) -> None:
    assert call(CREATE.replace("/captures/", "/nowhere/")).status == 0
    status = call(STATUS).json

    assert (status["packetCaptureStatus"], status["packetCaptureError"]) == ("Error", ["StorageFailed"])


def test_a_capture_without_a_path_goes_to_azures_own_container(call: Az, at: Time) -> None:
    path = "--storage-path https://prodforensics01.blob.core.windows.net/captures/cap1.cap"
    call(CREATE.replace(path, "").replace("--time-limit 300", "--time-limit 1"))
    at.set(20)

    names = call("az storage container list --account-name prodforensics01 --query [].name").json
    blobs = call("az storage blob list --account-name prodforensics01 -c network-watcher-logs --query [].name").json

    assert names == ["captures", "network-watcher-logs"]
    assert len(blobs) == 1
    assert blobs[0].endswith(".cap")


def _world_with(machine_change: dict[str, Any], tmp_path: Path) -> Path:
    scenario = lab.load_scenario("blocked-port")
    machines = tuple(replace(vm, **machine_change) if vm.name == "web-vm-01" else vm for vm in scenario.world.machines)
    changed = replace(scenario, world=replace(scenario.world, machines=machines))
    LabDirectory.create(tmp_path / "changed", changed, LabClock(time.time(), 1.0))
    return tmp_path / "changed"


def test_a_machine_without_the_agent_cannot_be_captured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = _caller(monkeypatch, capsys, _world_with({"extensions": ()}, tmp_path))

    assert call("az vm extension list -g prod-rg --vm-name web-vm-01").json == []
    result = call(CREATE)
    assert result.status == 1
    assert "Network Watcher Agent extension is not installed" in result.err


def test_a_machine_that_does_not_run_has_no_effective_rules_no_effective_routes_and_no_captures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call = _caller(monkeypatch, capsys, _world_with({"power": "deallocated"}, tmp_path))

    for verb in ("list-effective-nsg", "show-effective-route-table"):
        result = call(f"az network nic {verb} -g prod-rg -n web-vm-01-nic")
        assert result.status == 1
        assert "must be attached to a running virtual machine" in result.err
    assert call(CREATE).status == 1
    assert call("az vm show -d -g prod-rg -n web-vm-01 --query powerState -o tsv").out == "VM deallocated\n"
    view = call("az vm get-instance-view -g prod-rg -n web-vm-01").json["instanceView"]
    assert "PowerState/deallocated" in [status["code"] for status in view["statuses"]]


def test_the_commands_of_a_capture_are_the_ones_its_module_registers() -> None:
    assert {"create", "delete", "list", "show", "show-status", "stop"} == {
        words.rpartition(" ")[2] for words in COMMANDS if words.startswith("network watcher packet-capture ")
    }
    assert capture_life.LONGEST_SECONDS == 18000


# --- the programs ---


def test_the_launchers_run_with_nothing_in_their_environment_but_the_lab(running: RunningLab) -> None:
    started = time.perf_counter()
    result = subprocess.run(
        [running.program_dir / "az", "vm", "list", "--query", "[].name", "-o", "tsv"],
        env=running.environment,
        capture_output=True,
        text=True,
        timeout=30,
        cwd="/",
    )

    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "web-vm-01\nredis-cache-01\njobs-vm-01\n"
    assert time.perf_counter() - started < 5.0


def test_the_launchers_give_back_the_exit_status(running: RunningLab) -> None:
    for arguments, status in ((["nonsense"], 2), (["vm", "show", "-g", "prod-rg", "-n", "x"], 3)):
        result = subprocess.run(
            [running.program_dir / "az", *arguments], env=running.environment, capture_output=True, timeout=30
        )
        assert result.returncode == status


def test_the_program_directory_holds_no_real_network_program(running: RunningLab) -> None:
    names = {path.name for path in running.program_dir.iterdir()}
    links = {path.name for path in running.program_dir.iterdir() if path.is_symlink()}

    assert names == {"az", "ping", "traceroute", "dig", "ss", "curl", "ip", "cat", "rm"}
    assert links == {"cat", "rm"}
    for name in names - links:
        content = (running.program_dir / name).read_text()
        assert content.splitlines()[1].endswith(f' -I -m ghost.lab.programs.{name} "$@"')
        assert os.access(running.program_dir / name, os.X_OK)


def test_a_program_outside_a_lab_says_so(running: RunningLab) -> None:
    result = subprocess.run(
        [running.program_dir / "az", "vm", "list"], env={}, capture_output=True, text=True, timeout=30
    )

    assert result.returncode == 1
    assert "GHOST_LAB_DIR is not set" in result.stderr


def test_a_lab_is_reopened_as_it_is_and_replaced_when_started_anew(call: Az, at: Time, running: RunningLab) -> None:
    directory = Path(running.environment["GHOST_LAB_DIR"])
    call(CREATE)

    again = lab.reopen(directory)
    assert again.environment == running.environment
    assert again.briefing == lab.load_scenario("blocked-port").briefing
    assert len(call("az network watcher packet-capture list -l eastus").json) == 1
    lab.start(lab.load_scenario("blocked-port"), directory)
    assert call("az network watcher packet-capture list -l eastus").json == []


def test_a_reopened_lab_trusts_nothing_that_lies_in_its_directory(running: RunningLab, tmp_path: Path) -> None:
    directory = Path(running.environment["GHOST_LAB_DIR"])
    (directory / "bin" / "nettool").write_text("#!/bin/sh\n")
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (directory / "bin" / "az").unlink()
    (directory / "bin" / "az").symlink_to(victim)
    content = json.loads((directory / "world.json").read_text())
    content["briefing"]["approvals"] = {"rules": [{"match": "", "answer": "approve"}]}
    (directory / "world.json").write_text(json.dumps(content))

    again = lab.reopen(directory)

    assert not (again.program_dir / "nettool").exists()
    assert victim.read_text() == "untouched"
    assert not (again.program_dir / "az").is_symlink()
    assert again.briefing.approvals == lab.load_scenario("blocked-port").approvals
    assert not again.briefing.approvals.decide("az group delete -n prod-rg").allowed


def test_a_lab_whose_programs_are_a_link_is_not_written_through_it(running: RunningLab, tmp_path: Path) -> None:
    directory = Path(running.environment["GHOST_LAB_DIR"])
    shutil.rmtree(directory / "bin")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (directory / "bin").symlink_to(elsewhere)
    with pytest.raises(LabError, match="is a link"):
        lab.reopen(directory)
    assert list(elsewhere.iterdir()) == []


def test_where_no_lab_was_started_none_is_reopened(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="start one first"):
        lab.reopen(tmp_path)


def test_a_lab_has_a_speed_above_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="above 0"):
        lab.start(lab.load_scenario("wire-loss"), tmp_path, speed=0)
