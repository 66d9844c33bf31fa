"""What Network Watcher, Azure Monitor and flow logs answer, held to the walk: each row asks the lab's az."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.lab.scenario import world_from_source
from tests.lab.in_process import run_main

FLOW_LOG = "networkWatchers/NetworkWatcher_westeurope/flowLogs/shop"
EDITS = [
    Edit(machine="db-02", set={"listeners": []}),
    Edit(wire={"source": "app-01", "destination": "cache-01", "loss": 0.3}),
    Edit(wire={"source": "app-01", "destination": "db-01", "snat_ports": 10}),
    Edit(put="networkManagers/avnm"),
    Edit(put="natGateways/nat", properties={}, more={"sku": {"name": "Standard"}}),
    Edit(patch="virtualNetworks/shop-vnet/subnets/app", properties={"natGateway": {"id": "natGateways/nat"}}),
    Edit(put=FLOW_LOG, group="NetworkWatcherRG", properties={
        "enabled": True, "targetResourceId": "virtualNetworks/shop-vnet", "storageId": "storageAccounts/shopcaptures"}),
    Edit(world={
        "service_tags": {"Storage.WestEurope": ["20.60.88.0/24"]},
        "activity": [{"minutes_ago": 30, "caller": "kim@shop.example", "resource": "networkSecurityGroups/app-nsg",
                      "operation": "Microsoft.Network/networkSecurityGroups/securityRules/write"}],
        "azure_says": [{"machine": "app-01", "direction": "Outbound", "address": "10.50.3.4", "access": "Deny",
                        "rule": "securityRules/gone"}],
        "admin_rules": {"shop-vnet": [{
            "id": "/x/ruleCollections/c/rules/no-telnet", "kind": "Custom", "access": "Deny", "direction": "Outbound",
            "protocol": "Tcp", "priority": 5, "sources": [{"addressPrefix": "*", "addressPrefixType": "IPPrefix"}],
            "destinations": [{"addressPrefix": "*", "addressPrefixType": "IPPrefix"}],
            "sourcePortRanges": ["0-65535"], "destinationPortRanges": ["23"]}]},
        "traffic": [{"client": "app-01", "server": "db-01", "port": 5432, "connections_per_minute": 20.0},
                    {"client": "web-01", "server": "db-01", "port": 5432}]}),
]  # fmt: skip
CHECK = "network watcher test-connectivity -g shop-rg --source-resource"
LB = "/subscriptions/6a1f0c52-9d3e-4b7a-8c15-2e4f6a8b0c11/resourceGroups/shop-rg/providers/Microsoft.Network"
METRIC = f"monitor metrics list --resource {LB}"
FLOW = "network watcher test-ip-flow -g shop-rg --vm app-01 --direction Outbound --protocol TCP --local 10.50.2.4:50000"
LOGS = "monitor log-analytics query -w w --analytics-query"
ROWS: list[tuple[str, Any]] = [
    (f"{CHECK} app-01 --dest-resource db-01 --dest-port 5432 --query connectionStatus", "Reachable"),
    (f"{CHECK} web-01 --dest-resource db-01 --dest-port 5432 --query hops[].issues[].context[].value",
     ["UserRule_deny-other-tiers"]),
    (f"{CHECK} app-01 --dest-address nobody.example --query hops[0].issues[0].type", "DnsResolution"),
    (f"{CHECK} app-01 --dest-address 10.50.3.5 --dest-port 5432 --query [connectionStatus,hops[].issues[]]",
     ["Unreachable", []]),
    (f"{CHECK} app-01 --dest-address 10.50.3.8 --dest-port 6379 --query [connectionStatus,probesFailed>`8`]",
     ["Reachable", True]),
    (f"{METRIC}/loadBalancers/db-lb --metrics DipAvailability --query value[].timeseries[].data[0].average", [50.0]),
    (f"{METRIC}/loadBalancers/db-lb --metrics DipAvailability --dimension BackendIPAddress --query "
     "value[].timeseries[].[metadatavalues[0].value,data[0].average]", [["10.50.3.4", 100.0], ["10.50.3.5", 0.0]]),
    (f"{METRIC}/natGateways/nat --metrics SNATConnectionCount --dimension ConnectionState --query "
     "value[].timeseries[].data[0].total", [10.0, 10.0]),
    (f"{METRIC}/natGateways/nat --metrics PacketDropCount --offset 5m --query length(value[].timeseries[].data[])", 5),
    ("monitor activity-log list -g shop-rg --query [].[caller,operationName.value]",
     [["kim@shop.example", "Microsoft.Network/networkSecurityGroups/securityRules/write"]]),
    ("network list-service-tags -l westeurope --query values[].[name,properties.region]",
     [["Storage.WestEurope", "westeurope"]]),
    ("network vnet subnet list-available-ips -g shop-rg --vnet-name shop-vnet -n ops",
     ["10.50.9.5", "10.50.9.6", "10.50.9.7", "10.50.9.8", "10.50.9.10"]),
    (f"{FLOW} --remote 10.50.3.4:5432 --query ruleName", "securityRules/gone"),
    (f"{FLOW} --remote 10.50.3.8:23 --query ruleName", "securityAdminRules/no-telnet"),
    (f"{FLOW} --remote 10.50.3.8:6379 --query access", "Allow"),
    ("network vnet list-available-ips -g shop-rg -n shop-vnet --query length(@)", 5),
    ("network watcher flow-log show -l westeurope -n shop --query enabled", True),
    ("network watcher flow-log list -l westeurope --query [].name", ["shop"]),
    (f"{LOGS} \"NTANetAnalytics | where FlowStatus == 'Denied' | summarize count() by SrcVm, AclRule\" --query "
     "[].[SrcVm,AclRule,count_]", [["web-01", "deny-other-tiers", "6"]]),
    (f"{LOGS} \"NTANetAnalytics | where SrcVm == 'app-01' and TimeGenerated > ago(25m) | project FlowDirection\" "
     "--query [].FlowDirection", ["Outbound", "Outbound", "Inbound", "Inbound"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    world = edited(world_from_source({"base": "two-tier"}, ""), EDITS)
    scenario = replace(lab.load_scenario("blocked-port"), world=world)
    here = LabDirectory.create(tmp_path_factory.mktemp("watcher") / "lab", scenario, LabClock(time.time(), 1.0))

    def call(command: str) -> Any:
        done = run_main("ghost.lab.programs.az", shlex.split(command), {"GHOST_LAB_DIR": str(here.path)})
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return call


@pytest.mark.parametrize(("command", "answer"), ROWS)
def test_what_is_answered(ask: Callable[[str], Any], command: str, answer: Any) -> None:
    assert ask(command) == answer


def test_the_log_holds_a_change_of_an_hour_that_only_the_labs_clock_has_seen(tmp_path: Path) -> None:
    clock = LabClock(time.time() - 600, 20.0)
    here = LabDirectory.create(tmp_path / "lab", lab.load_scenario("blocked-port"), clock)
    words = "network nsg rule delete -g prod-rg --nsg-name cache-nsg -n close-legacy-ports"
    real = datetime.now(UTC)
    for command in (words, f"monitor activity-log list --start-time {real - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ} "
                           f"--end-time {real:%Y-%m-%dT%H:%M:%SZ} --query [].operationName.value"):  # fmt: skip
        done = run_main("ghost.lab.programs.az", shlex.split(command), {"GHOST_LAB_DIR": str(here.path)})
        assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == ["Microsoft.Network/networkSecurityGroups/securityRules/delete"]
