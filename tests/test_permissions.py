"""The role that docs/permissions.md gives covers every read that Ghost makes by itself, and nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from ghost.azure import catalogue
from ghost.cli import command_words
from ghost.cli.doctor_command import READS
from ghost.net.az_reads import AZ_READS

ROOT = Path(__file__).parent.parent
ROLE = json.loads((ROOT / "docs" / "role-reader.json").read_text(encoding="utf-8"))
ACTIONS = """
account show: Resources/subscriptions/read
role assignment list: Authorization/roleAssignments/read Authorization/roleDefinitions/read
resource list: Resources/subscriptions/resources/read Resources/subscriptions/resourceGroups/read
 Network/networkManagers/read Network/dnsForwardingRulesets/read
resource show: Resources/subscriptions/providers/read Network/networkManagers/read Network/azureFirewalls/read
 Network/firewallPolicies/read Network/firewallPolicies/ruleCollectionGroups/read Network/ipGroups/read
 Compute/virtualMachines/read Compute/virtualMachineScaleSets/read
monitor activity-log list: Insights/eventtypes/*/read
monitor log-analytics query: OperationalInsights/workspaces/query/read OperationalInsights/workspaces/query/*/read
monitor metrics list: Insights/metrics/read
network firewall policy rule-collection-group list: Network/firewallPolicies/ruleCollectionGroups/read
network firewall policy show: Network/firewallPolicies/read
network firewall show: Network/azureFirewalls/read
network lb list, network lb show: Network/loadBalancers/read
network local-gateway show: Network/localNetworkGateways/read
network manager list-effective-security-admin-rule:
 Network/virtualNetworks/listNetworkManagerEffectiveSecurityAdminRules/action
network nat gateway show: Network/natGateways/read
network nic list, network nic show: Network/networkInterfaces/read
network nic list-effective-nsg: Network/networkInterfaces/effectiveNetworkSecurityGroups/action
network nic show-effective-route-table: Network/networkInterfaces/effectiveRouteTable/action
 Network/locations/operations/read Network/locations/operationResults/read
network nsg list, network nsg show: Network/networkSecurityGroups/read
network nsg rule list: Network/networkSecurityGroups/securityRules/read
network private-dns link vnet list: Network/privateDnsZones/virtualNetworkLinks/read
network private-dns record-set list: Network/privateDnsZones/ALL/read
network private-dns zone list: Network/privateDnsZones/read
network private-endpoint list, network private-endpoint show: Network/privateEndpoints/read
network private-endpoint dns-zone-group list: Network/privateEndpoints/privateDnsZoneGroups/read
network public-ip list, network public-ip show: Network/publicIPAddresses/read
network public-ip prefix show: Network/publicIPPrefixes/read
network route-table list, network route-table show: Network/routeTables/read
network route-table route list: Network/routeTables/routes/read
network vnet list, network vnet show: Network/virtualNetworks/read
network vnet peering list: Network/virtualNetworks/virtualNetworkPeerings/read
network vnet-gateway list, network vnet-gateway show: Network/virtualNetworkGateways/read
network vpn-connection list: Network/connections/read
network watcher flow-log list: Network/networkWatchers/flowLogs/read
network watcher list: Network/networkWatchers/read
network watcher packet-capture list: Network/networkWatchers/packetCaptures/read
network watcher show-next-hop: Network/networkWatchers/nextHop/action
network watcher test-ip-flow: Network/networkWatchers/ipFlowVerify/action
keyvault list, keyvault show: KeyVault/vaults/read
redis list, redis show: Cache/redis/read
redis firewall-rules list: Cache/redis/firewallRules/read
sql server list, sql server show: Sql/servers/read
sql server firewall-rule list: Sql/servers/firewallRules/read
sql server vnet-rule list: Sql/servers/virtualNetworkRules/read
storage account list, storage account show: Storage/storageAccounts/read
storage container exists: Storage/storageAccounts/blobServices/containers/read
vm extension list: Compute/virtualMachines/extensions/read
vm get-instance-view: Compute/virtualMachines/instanceView/read
vm list, vm show: Compute/virtualMachines/read
vmss get-instance-view: Compute/virtualMachineScaleSets/virtualMachines/instanceView/read
vmss list-instances: Compute/virtualMachineScaleSets/virtualMachines/read
vmss nic list: Compute/virtualMachineScaleSets/networkInterfaces/read
"""
"""What Azure's REST reference calls the operations behind each command."""
OPTIONAL = re.compile(r"network watcher packet-capture (?!list)|storage blob |storage container create|vm run-command ")
"""What only the optional roles of docs/permissions.md allow, and a person approves."""


def operations() -> dict[str, set[str]]:
    rows = (row.split(":") for row in ACTIONS.replace("\n ", " ").strip().splitlines())
    return {
        command.strip(): {f"Microsoft.{action}" for action in actions.split()}
        for commands, actions in rows
        for command in commands.split(",")
    }


def commands_run() -> set[str]:
    """The paths of the az commands in the tables of reads, of checks before a capture, and of what progress names."""
    checks = tomllib.loads((ROOT / "src/ghost/cloud/preflight.toml").read_text(encoding="utf-8"))["checks"]
    words = tomllib.loads(Path(command_words.__file__).with_suffix(".toml").read_text(encoding="utf-8"))["labels"]
    written = [
        *(f"{how.one} -" for how in AZ_READS.values() if how.one),
        *(how.every for how in AZ_READS.values() if how.every),
        *(" ".join(check["words"][1:]) for check in checks),
        *(command.removeprefix("az ") for command in words if command.startswith("az ")),
        *(command.removeprefix("az ") for _, command, _ in READS),
    ]
    found = (catalogue().longest(command.split(" -")[0].split())[0] for command in written)
    return {command.path for command in found if command is not None}


def test_the_role_allows_every_read_that_ghost_makes_and_no_more() -> None:
    needed = {path for path in commands_run() if not OPTIONAL.match(path)}

    assert len(needed) > 45
    assert sorted(needed - operations().keys()) == []
    assert {action for actions in operations().values() for action in actions} == set(ROLE["actions"])


def test_the_role_has_the_form_that_az_loads_and_changes_nothing() -> None:
    assert set(ROLE) == {
        *("name", "description", "actions", "notActions", "dataActions", "notDataActions", "assignableScopes"),
    }
    assert ROLE["actions"] == sorted(set(ROLE["actions"]))
    assert [
        one for one in ROLE["actions"] if not re.fullmatch(r"Microsoft(?:\.\w+)(?:/[\w*]+)+/(?:read|action)", one)
    ] == []
    assert [one for one in ROLE["actions"] if re.search(r"(?i)key|secret|sas|write|delete|/\*$", one)] == [
        "Microsoft.KeyVault/vaults/read"
    ]
    assert re.fullmatch(r"/subscriptions/[0-]{36}", *ROLE["assignableScopes"])
