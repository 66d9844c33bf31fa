"""Services: the readers, held to what Azure really answered, what mends their faults, and what is read for one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ghost.net import Answer, Network, Read, collect, explain, proposed, walk
from ghost.net.network import Unread
from ghost.net.services import AddressRange, azure_services, service_named
from tests.net.described_services import GROUP, service_id
from tests.net.description import described
from tests.net.small_network import flow, subnet_id
from tests.net.test_snapshot import body, recorded

APP = tomllib.loads((Path(__file__).parent / "vectors" / "services.toml").read_text())["networks"]["app"]
STORE = "store.blob.core.windows.net:443"
DATABASE = "db.database.windows.net:1433"


@recorded
def test_the_readers_understand_what_azure_really_answered():
    (account,) = azure_services.storage_accounts(body("storage-account-get-network-rules"), "r")
    assert (account.location, account.secondary_location, account.minimum_tls) == ("westus", "eastus", "TLS1_0")
    assert {"cli000002.blob.core.windows.net", "cli000002-secondary.z22.web.core.windows.net"} <= {*account.hosts}
    assert (account.rules.default_allows, account.bypass, account.private_endpoints) == (False, "Logging", ())
    assert [str(each) for each in account.rules.ranges] == ["25.1.2.3", "25.2.0.0-25.2.0.255"]
    assert [(rule.subnet[-7:], rule.state) for rule in account.rules.subnets] == [("subnet1", "Succeeded")]
    (account,) = azure_services.storage_accounts(body("storage-account-get-private-endpoint"), "r")
    assert account.rules.default_allows
    assert [each.rpartition("/")[2] for each in account.private_endpoints] == ["cli-pe-000005"]
    read = azure_services.sql_address_rules(service_id("sql", "db"), [body("sql-firewall-rule-get")], "r")
    assert [each.is_everything for each in read.ranges] == [True]


def test_rules_are_read_as_az_names_them():
    printed = {
        "id": service_id("storage", "store"),
        "location": "westeurope",
        "networkRuleSet": {
            "defaultAction": "Deny",
            "ipRules": [{"action": "Allow", "ipAddressOrRange": "20.1.0.0/24"}],
            "virtualNetworkRules": [{"state": "Failed", "virtualNetworkResourceId": subnet_id("hub/app")}],
        },
    }
    (account,) = azure_services.storage_accounts([printed])
    assert account.rules.ranges == (AddressRange.of("20.1.0.0-20.1.0.255"),)
    assert account.rules.of_subnet(subnet_id("HUB/APP")) is not None
    cache = {"id": "c", "hostName": "C.redis.cache.windows.net", "location": "West Europe", "enableNonSslPort": False}
    assert azure_services.redis_caches([cache])[0].closed_ports == (6379,)
    rules = azure_services.redis_address_rules("c", [{"id": "c/r", "startIP": "20.1.0.1", "endIP": "20.1.0.9"}])
    assert [str(each) for each in rules.ranges] == ["20.1.0.1-20.1.0.9"]


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("Store.blob.core.windows.net.", "store"),
        ("store.privatelink.blob.core.windows.net", "store"),
        ("safe.vault.azure.net", "safe"),
        ("other.blob.core.chinacloudapi.cn", "unread"),
        ("other.database.usgovcloudapi.net", "unread"),
        ("www.example.com", None),
        ("store.blob.core.windows.net.example.com", None),
    ],
)
def test_a_host_name_leads_to_its_service(host, found):
    try:
        service = service_named(described(APP), host)
        assert (service and service.name) == found
    except Unread:
        assert found == "unread"


@pytest.mark.parametrize(
    ("lines", "asked", "mends"),
    [
        (
            ["storage store westeurope access=Disabled"],
            f"Tcp 10.0.2.4 {STORE}",
            [
                "service_public_access_disabled with public access to store",
                "service_firewall with a virtual network rule of store for plain",
                "service_endpoint_missing with the service endpoint Microsoft.Storage of plain",
            ],
        ),
        (
            ["storage store japaneast"],
            f"Tcp 10.0.1.4 {STORE}",
            ["service_endpoint_missing with the service endpoint Microsoft.Storage.Global of app"],
        ),
        (["sql db japaneast"], f"Tcp 10.0.1.4 {DATABASE}", ["service_endpoint_missing None"]),
        ([], f"Tcp 198.51.99.7 {DATABASE}", ["service_firewall with 198.51.99.7 let in by db"]),
        (
            ["table none", "route none out Sql None", "subnet hub/plain 10.0.2.0/24 table=none"],
            f"Tcp 10.0.2.4 {DATABASE}",
            [
                "route_none without route out of none",
                "service_firewall with a virtual network rule of db for plain",
                "service_endpoint_missing with the service endpoint Microsoft.Sql of plain",
            ],
        ),
        (
            ["nsg no", "rule no web 100 Outbound Deny * * Internet:*", "subnet hub/app 10.0.1.0/24 nsg=no"],
            f"Tcp 10.0.1.4 {STORE}",
            ["security_rule without rule web of no"],
        ),
    ],
)
def test_each_fault_of_a_service_is_mended_by_a_change_that_is_walked(lines, asked, mends):
    faults = explain(described([*APP, *lines]), flow(asked))
    assert [f"{fault.kind} {fault.mend}" for fault in faults] == mends
    assert faults[-1].outcome == ("blocked" if faults[-1].mend is None else "passes")


@pytest.mark.parametrize(
    ("lines", "asked", "changes"),
    [
        ([], f"Tcp 10.0.2.4 {STORE}", ["service-rule store hub plain", "service-endpoint hub plain Microsoft.Storage"]),
        ([], f"Tcp 198.51.99.7 {DATABASE}", ["service-address db 198.51.99.0/28"]),
        (["vault safe westeurope access=Disabled"], "Tcp 10.0.1.4 safe.vault.azure.net:443", ["public-access safe"]),
    ],
)
def test_what_an_engineer_proposes_is_walked(lines, asked, changes):
    made = described([*APP, *lines])
    assert walk(made, flow(asked)).outcome == "blocked"
    for change in changes:
        made = proposed(change, made).applied(made)
    assert walk(made, flow(asked)).outcome == "passes"


def test_behind_an_azure_wide_route_to_an_appliance_both_tags_decide_alike():
    forced = [
        "table t",
        "route t out 0.0.0.0/0 VirtualAppliance 10.0.2.4",
        "nsg g",
        "subnet hub/app 10.0.1.0/24 nsg=g table=t",
    ]
    walked = walk(described([*APP, *forced]), flow(f"Tcp 10.0.1.4 {STORE}"))
    assert walked.outcome == "passes", walked


HUB = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network"
SUBNET = f"{HUB}/virtualNetworks/hub/subnets/app"
ANSWERS = {
    "network nic list": [
        {
            "id": f"{HUB}/networkInterfaces/app-nic",
            "ipConfigurations": [{"privateIPAddress": "10.0.1.4", "subnet": {"id": SUBNET}}],
        }
    ],
    "network vnet list": [
        {
            "id": f"{HUB}/virtualNetworks/hub",
            "location": "westeurope",
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [
                {
                    "id": SUBNET,
                    "addressPrefix": "10.0.1.0/24",
                    "networkSecurityGroup": {"id": f"{HUB}/networkSecurityGroups/g"},
                    "serviceEndpoints": [{"service": "Microsoft.Sql"}, {"service": "Microsoft.KeyVault"}],
                }
            ],
        }
    ],
    "network nsg show -g rg -n g": {
        "id": f"{HUB}/networkSecurityGroups/g",
        "name": "g",
        "securityRules": [
            {
                "name": "sql",
                "priority": 100,
                "direction": "Outbound",
                "access": "Allow",
                "protocol": "Tcp",
                "sourceAddressPrefix": "*",
                "sourcePortRange": "*",
                "destinationAddressPrefix": "Sql.WestEurope",
                "destinationPortRange": "1433",
            }
        ],
    },
    "sql server list": [
        {"id": service_id("sql", "db"), "fullyQualifiedDomainName": "db.database.windows.net", "location": "westeurope"}
    ],
    "sql server vnet-rule list -g rg -s db": [{"id": f"{GROUP}/x", "virtualNetworkSubnetId": SUBNET, "state": "Ready"}],
    "keyvault list": [{"id": service_id("vault", name), "name": name} for name in ("other", "safe")],
    "keyvault show -g rg -n safe": {
        "id": service_id("vault", "safe"),
        "location": "japaneast",
        "properties": {"vaultUri": "https://safe.vault.azure.net/", "networkAcls": None},
    },
}


@pytest.mark.parametrize(
    ("to", "outcome", "of_service"),
    [
        (
            DATABASE,
            "passes",
            ["sql server list", "sql server vnet-rule list -g rg -s db", "sql server firewall-rule list -g rg -s db"],
        ),
        ("safe.vault.azure.net:443", "passes", ["keyvault list", "keyvault show -g rg -n safe"]),
        (STORE, "unknown", ["storage account list"]),
        ("www.example.com:443", "unknown", []),
    ],
)
def test_only_what_a_service_needs_is_read_and_nothing_twice(to, outcome, of_service):
    asked: list[str] = []

    def execute(read: Read) -> Answer:
        asked.append(" ".join(read.argv).removesuffix(" -o json").removeprefix("az "))
        return Answer(json.dumps(ANSWERS.get(asked[-1], [])), f"r{len(asked)}")

    there = flow(f"Tcp 10.0.1.4 {to}")
    walked = walk(collect([there], execute), there)
    assert walked.outcome == outcome, walked
    assert len(asked) == len(set(asked)), asked
    assert [each for each in asked if each.startswith(("sql", "storage", "redis", "keyvault"))] == of_service


def test_a_service_of_which_nothing_could_be_read_is_unknown():
    def execute(read: Read) -> Answer:
        return Answer("", failure="AuthorizationFailed")

    for source in ("10.0.1.4", "198.51.99.7"):
        there = flow(f"Tcp {source} {STORE}")
        network = collect([there], execute, described(APP).without(type(service_named(described(APP), STORE[:-4]))))
        walked = walk(network, there)
        assert (walked.outcome, walked.missing) == ("unknown", ())
        assert "AuthorizationFailed" in walked.hops[-1].reason
    assert walk(Network(), flow(f"Tcp 198.51.99.7 {STORE}")).missing
