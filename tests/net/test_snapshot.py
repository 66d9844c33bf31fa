"""What is read, and what an answer tells: held to bodies that Azure really answered."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.net import azure_resources
from ghost.net.admin_rules import AdminRules, NetworkManager
from ghost.net.az_reads import AZ_READS, argv_of
from ghost.net.firewall import AzureFirewall, FirewallPolicy, IpGroup, RuleCollectionGroup
from ghost.net.network import Missing, Network
from ghost.net.packet_path import walk
from ghost.net.snapshot import Answer, Read, absorb, collect, needed
from ghost.shell import SAFE, classify
from tests.net.small_network import PROVIDER, flow, nic_id, nsg_id

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the recorded answers of Azure")


def body(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())["body"]


@recorded
def test_the_readers_understand_what_azure_really_answered():
    (nic,) = azure_resources.interfaces(body("nic-get"), "r")
    assert (nic.name, nic.address, nic.reference) == ("vm1VMNic", "10.0.0.4", "r")
    assert nic.subnet.endswith("/virtualNetworks/vm1VNET/subnets/vm1Subnet")
    assert nic.machine is not None
    assert nic.configurations[0].public_address is not None
    (table,) = azure_resources.route_tables(body("route-table-get"))
    assert [str(route) for route in table.routes] == ["10.0.5.0/24 -> None (my-route), User route"]
    assert not table.propagates_bgp
    (group,) = azure_resources.security_groups(body("nsg-get-rule-put-by-template"))
    assert [rule.name for rule in group.rules][:2] == ["default-allow-ssh", "open-port-80"]
    (machine,) = azure_resources.machines(body("vm-get-instance-view"))
    assert machine.power == "running"


@recorded
def test_security_admin_rules_are_read_and_a_cut_list_is_not_taken_for_the_whole():
    answer = body("example-network-manager-effective-admin-rules")
    read = Read(("az", "network", "manager"), Missing(AdminRules, "/v"))
    cut = absorb(Network(), read, Answer(json.dumps(answer)))
    assert "a part of the rules only" in cut.failed[read.missing]
    whole = absorb(Network(), read, Answer(json.dumps({**answer, "skipToken": ""}), "r"))
    ((rule,),) = [known.rules for known in whole.all(AdminRules).values()]
    assert (rule.name, rule.effect, rule.manager[-19:]) == ("SampleAdminRule", "Deny", "/testnetworkmanager")
    assert str(rule.matches) == "SampleAdminRule (priority 1, Deny Tcp * -> *:22)"


@recorded
@pytest.mark.parametrize(
    "name", ["peering-get-connected", "peering-get-initiated", "peering-get-initiated-2023", "peering-get"]
)
def test_a_peering_is_read_from_each_version_of_the_api(name):
    network = {"id": nic_id("x"), "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}}}
    network["properties"]["virtualNetworkPeerings"] = [body(name)]
    ((peering,),) = [each.peerings for each in azure_resources.virtual_networks([network])]
    assert peering.state in ("Connected", "Initiated")
    assert peering.remote
    assert peering.remote_prefixes


def test_each_read_runs_unasked_and_one_that_fails_is_remembered():
    typed = {
        AzureFirewall: f"{PROVIDER}/azureFirewalls/f",
        FirewallPolicy: f"{PROVIDER}/firewallPolicies/p",
        RuleCollectionGroup: f"{PROVIDER}/firewallPolicies/p/ruleCollectionGroups/g",
        IpGroup: f"{PROVIDER}/ipGroups/i",
        NetworkManager: f"{PROVIDER}/networkManagers/m",
    }
    by_id = {kind for kind, how in AZ_READS.items() if how.name == "--ids"}
    assert by_id == set(typed), "what is read by its id is classified by its type"
    singles = [Missing(kind, typed.get(kind, nsg_id("n"))) for kind, how in AZ_READS.items() if how.one]
    for missing in (*singles, *(Missing(kind) for kind, how in AZ_READS.items() if how.every)):
        assert classify(shlex.join(argv_of(missing)))[0] == SAFE, missing
        failed = absorb(Network(), Read(argv_of(missing), missing), Answer("", failure="AuthorizationFailed"))
        assert failed.failed == {missing: "AuthorizationFailed"}


def test_a_read_that_fails_is_not_repeated_and_its_reason_is_told():
    asked: list[Read] = []

    def execute(read: Read) -> Answer:
        asked.append(read)
        return Answer("", failure="AuthorizationFailed: no right to read")

    there = flow("Tcp 10.0.0.4 10.0.1.4:80")
    network = collect([there], execute)
    assert len(asked) == 1
    walked = walk(network, there)
    assert (walked.outcome, walked.missing) == ("unknown", ())
    assert "AuthorizationFailed" in walked.hops[0].reason


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["value", "id", "properties", "ipConfigurations", "subnets", "addressSpace", "name", "subnet"]
                ),
                inner,
            )
        ),
    )
)
def test_no_answer_breaks_a_reader(answer):
    for kind, how in AZ_READS.items():
        missing = Missing(kind, "" if how.every else nic_id("a"))
        network = absorb(Network(), Read(("az", "x"), missing), Answer(json.dumps(answer), "r"))
        assert needed(network, [flow("Tcp 10.0.0.4 10.0.1.4:80")]) is not None


def test_a_read_that_a_change_makes_useless_is_not_repeated():
    asked: list[Read] = []

    def execute(read: Read) -> Answer:
        asked.append(read)
        return Answer("[]")

    collect([flow("Tcp 10.0.0.4 10.0.1.4:443")], execute, changed=lambda _: Network())
    assert len(asked) == len({read.missing for read in asked}) > 0
