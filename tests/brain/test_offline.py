"""The offline brain against small subscriptions: it must find what is wrong in each, and only that."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ghost.brain import OfflineBrain
from ghost.brain.offline.case import LAYERS
from ghost.brain.offline.symptom import vocabulary, word_set
from ghost.net import known_kinds
from tests.brain.small_tenant import Facts, Net, Played, SmallTenant, Vm, net_id, play, rule, talk
from tests.exhaustive import examples

SYMPTOM = "VMs in front cannot reach the Redis cache on port 6379"


def investigate(facts: Facts, symptom: str = SYMPTOM, **options: Any) -> Played:
    played = play(OfflineBrain(), symptom, SmallTenant(facts), **options)
    assert_honest(played)
    return played


def assert_honest(played: Played) -> None:
    """What holds of every investigation, whatever it finds."""
    completion, tenant = played.completion, played.tenant
    assert [item["layer"] for item in completion["coverage"]] == list(LAYERS)
    cited = {i for s in completion["statements"] for i in s["audit_ids"]}
    cited |= {i for c in completion["coverage"] if c["status"] != "not_verified" for i in c["audit_ids"]}
    assert not any(i in completion["root_cause_summary"] for i in tenant.denied_ids)
    cited |= {i for cause in completion["causes"] for i in cause["audit_ids"]}
    assert all(cause["kind"] in known_kinds() and cause["resource"] for cause in completion["causes"])
    assert all(cause["audit_ids"] for cause in completion["causes"])
    assert (completion["outcome"] == "cause_found") is bool(completion["causes"])
    assert completion["outcome"] != "healthy" or "at_fault" not in {c["status"] for c in completion["coverage"]}
    known = {f"s_{number:03d}" for number in range(1, len(tenant.commands) + 1)}
    assert cited <= known - tenant.denied_ids
    assert all(statement["audit_ids"] for statement in completion["statements"])
    assert all(item["audit_ids"] for item in completion["coverage"] if item["status"] != "not_verified")
    assert len(tenant.commands) == len(set(tenant.commands)), "a command ran twice"
    assert all(turn.text.strip() for turn in played.turns)
    ids = [call.id for turn in played.turns for call in turn.tool_calls]
    assert len(ids) == len(set(ids))


def stated(played: Played) -> list[tuple[str, str, str]]:
    """Kind, resource's name and rule of each cause; without one, the outcome."""
    causes = played.completion["causes"]
    found = [(cause["kind"], cause["resource"].split("/")[-1], cause["rule"]) for cause in causes]
    return found or [(played.completion["outcome"], "", "")]


def denying(**fields: Any) -> dict[str, Any]:
    return rule("deny-it", 200, "Deny", destinationPortRange="6379", **fields)


def test_a_deny_at_the_destinations_subnet_is_the_cause() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert played.completion["confidence"] == "high"
    assert played.completion["confirmed_hypotheses"] == ["H1"]
    assert played.coverage("nsg_inbound") == "at_fault"
    assert played.coverage("nsg_outbound") == played.coverage("routes") == "cleared"
    assert "deny-it" in played.completion["root_cause_summary"]
    assert "store-nsg" in played.completion["root_cause_summary"]
    assert stated(played) == [("security_rule", "store-nsg", "deny-it")]
    assert played.completion["causes"][0]["direction"] == "Inbound"
    assert played.completion["causes"][0]["flow"]["port"] == 6379
    assert not played.tenant.captures


def test_a_deny_at_the_destinations_interface_is_the_cause() -> None:
    facts = Facts()
    facts.vm("cache-vm-01").nsg = "nic-nsg"
    facts.nsgs["nic-nsg"].append(denying())
    played = investigate(facts)
    assert played.coverage("nsg_inbound") == "at_fault"
    assert "nic-nsg at the interface" in played.completion["root_cause_summary"]


@pytest.mark.parametrize(("prefix", "status"), [("10.1.2.0/24", "at_fault"), ("52.0.0.0/8", "cleared")])
def test_a_rule_with_a_tag_counts_by_what_azure_says_the_tag_stands_for(prefix: str, status: str) -> None:
    facts = Facts()
    expanded = {"destinationAddressPrefix": "Storage.EastUS", "expandedDestinationAddressPrefix": [prefix]}
    facts.nsgs["front-nsg"].append(denying(direction="Outbound", **expanded))
    assert investigate(facts).coverage("nsg_outbound") == status


def test_a_rule_for_application_security_groups_is_not_taken_for_one_about_everything() -> None:
    facts = Facts()
    members = {"sourceAddressPrefix": None, "expandedSourceAddressPrefix": ["10.1.3.4/32"]}
    facts.nsgs["store-nsg"].append(denying(**members))
    assert investigate(facts).coverage("nsg_inbound") == "cleared"


def test_a_deny_outbound_at_the_source_is_the_cause() -> None:
    facts = Facts()
    facts.nsgs["front-nsg"].append(denying(direction="Outbound"))
    played = investigate(facts)
    assert played.coverage("nsg_outbound") == "at_fault"
    assert played.coverage("nsg_inbound") == "cleared"
    assert played.completion["causes"][0]["direction"] == "Outbound"


def test_denies_at_both_ends_are_two_findings() -> None:
    facts = Facts()
    facts.nsgs["front-nsg"].append(denying(direction="Outbound"))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert played.coverage("nsg_outbound") == played.coverage("nsg_inbound") == "at_fault"
    assert played.completion["root_cause_summary"].startswith("2 faults")


def test_denies_at_both_gates_of_one_end_are_two_findings() -> None:
    facts = Facts()
    facts.vm("cache-vm-01").nsg = "nic-nsg"
    facts.nsgs["nic-nsg"].append(denying())
    facts.nsgs["store-nsg"].append(denying())
    summary = investigate(facts).completion["root_cause_summary"]
    assert summary.startswith("2 faults")
    assert "nic-nsg at the interface" in summary
    assert "store-nsg at the subnet" in summary


def test_a_deny_and_a_black_hole_are_two_findings() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    facts.networks[0].subnets["front"]["table"] = "front-routes"
    facts.tables["front-routes"] = [{"name": "hole", "addressPrefix": "10.1.2.0/24", "nextHopType": "None"}]
    played = investigate(facts)
    assert played.coverage("nsg_inbound") == played.coverage("routes") == "at_fault"
    assert sorted(played.completion["confirmed_hypotheses"]) == ["H1", "H2"]
    hole = ("route_none", "web-vm-01-nic", "hole")
    assert stated(played) == [("security_rule", "store-nsg", "deny-it"), hole]


def test_a_black_hole_on_the_way_back_is_the_cause_and_its_route_is_named() -> None:
    facts = Facts()
    facts.networks[0].subnets["store"]["table"] = "store-routes"
    facts.tables["store-routes"] = [{"name": "hole", "addressPrefix": "10.1.1.0/24", "nextHopType": "None"}]
    played = investigate(facts)
    assert played.coverage("routes") == "at_fault"
    assert "cache-vm-01 drops packets to 10.1.1.4" in played.completion["root_cause_summary"]
    assert any("route-table-name store-routes -n hole" in action for action in played.completion["recommended_actions"])


def test_a_route_through_an_appliance_that_does_not_forward_is_the_cause() -> None:
    facts = Facts()
    facts.networks[0].subnets["front"]["table"] = "front-routes"
    hop = {"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.1.3.4"}
    facts.tables["front-routes"] = [{"name": "via", "addressPrefix": "10.1.2.0/24", **hop}]
    played = investigate(facts)
    assert played.coverage("routes") == "at_fault"
    assert "batch-vm-01, which has IP forwarding switched off" in played.completion["root_cause_summary"]
    assert stated(played) == [("ip_forwarding_off", "batch-vm-01-nic", "")]


def test_a_machine_that_is_deallocated_is_the_cause_and_the_other_layers_are_still_cleared() -> None:
    facts = Facts()
    facts.vm("cache-vm-01").power = "VM deallocated"
    played = investigate(facts)
    assert played.coverage("vm_state") == "at_fault"
    assert played.completion["confirmed_hypotheses"] == ["H3"]
    assert stated(played) == [("machine_stopped", "cache-vm-01", "")]
    assert played.coverage("nsg_inbound") == played.coverage("routes") == "cleared"
    assert any("az vm start" in action for action in played.completion["recommended_actions"])


def test_a_missing_peering_is_one_cause_and_not_also_a_route() -> None:
    facts = Facts()
    facts.machines[1] = Vm("cache-vm-01", "10.9.2.4", "store", "net-b", tags={"role": "redis-cache"})
    facts.networks[0].subnets.pop("store")
    facts.networks.append(Net("net-b", "10.9.0.0/16", {"store": {"prefix": "10.9.2.0/24"}}))
    played = investigate(facts)
    assert played.coverage("peering") == "at_fault"
    assert played.coverage("routes") == "not_verified"
    assert "net-a has no peering with net-b" in played.completion["root_cause_summary"]
    assert stated(played) == [("route_none", "web-vm-01-nic", "10.0.0.0/8")]
    for subnet, prefix in (("front", "10.9.0.0/16"), ("store", "10.1.0.0/16")):
        network = next(net for net in facts.networks if subnet in net.subnets)
        network.subnets[subnet]["table"] = f"{subnet}-routes"
        hop = {"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.1.4"}
        facts.tables[f"{subnet}-routes"] = [{"name": "hub", "addressPrefix": prefix, **hop}]
    assert stated(investigate(facts)) == [("inconclusive", "", "")]  # both may be peered with a hub


def test_peered_networks_count_as_one_virtual_network_to_the_default_rules() -> None:
    facts = Facts()
    facts.machines[1] = Vm("cache-vm-01", "10.9.2.4", "store", "net-b", tags={"role": "redis-cache"})
    facts.networks[0].subnets.pop("store")
    facts.networks.append(Net("net-b", "10.9.0.0/16", {"store": {"prefix": "10.9.2.0/24", "nsg": "store-nsg"}}))
    for near, far in ((0, "net-b"), (1, "net-a")):
        peering = {"name": f"to-{far}", "peeringState": "Connected", "allowVirtualNetworkAccess": True}
        facts.networks[near].peerings.append({**peering, "remoteVirtualNetwork": {"id": net_id(far)}})
    played = investigate(facts)
    assert played.coverage("peering") == played.coverage("routes") == "cleared"
    assert played.coverage("nsg_inbound") == played.coverage("nsg_outbound") == "cleared"
    facts.networks[1].peerings[0]["peeringState"] = "Disconnected"
    assert stated(investigate(facts)) == [("peering_disconnected", "net-b", "to-net-a")]


def test_a_healthy_path_has_no_cause() -> None:
    played = investigate(Facts())
    assert played.completion["confidence"] == "medium"
    assert played.completion["root_cause_summary"].startswith("No fault found")
    assert stated(played) == [("healthy", "", "")]
    assert played.completion["confirmed_hypotheses"] == []
    assert "at_fault" not in {item["status"] for item in played.completion["coverage"]}
    assert played.tenant.captures == ["web-vm-01"]
    assert played.tenant.cleaned == ["ghost_web-vm-01"]


def lossy(source: str, destination: str, **measured: Any) -> dict[str, Any]:
    counts = {"retransmissions": 90, "data_segments": 1000, "loss_pct": 9.0, **measured}
    who = {"src": source, "dst": destination, "port": 6379}
    return {"kind": "loss", "severity": "HIGH", "blame": "network", "who": who, "measured": counts, "title": "loss"}


@pytest.mark.parametrize(("source", "destination"), [("web-vm-01", "cache-vm-01"), ("cache-vm-01", "web-vm-01")])
def test_loss_is_placed_in_the_direction_the_capture_shows(source: str, destination: str) -> None:
    facts = Facts()
    unrelated = lossy("10.1.1.4", "10.77.0.9")
    found = lossy(facts.vm(source).address, facts.vm(destination).address)
    facts.findings = {"web-vm-01": [unrelated, found]}
    played = investigate(facts, "Transfers from web-vm-01 to cache-vm-01 on port 6379 stall and are slow")
    assert played.completion["confidence"] == "high"
    assert played.coverage("wire") == "at_fault"
    assert f"from {source} to {destination} are lost" in played.completion["root_cause_summary"]
    assert "10.77.0.9" not in played.completion["root_cause_summary"]
    assert stated(played) == [("packet_loss", source, "")]
    assert played.completion["confirmed_hypotheses"] == ["H4"]


def test_loss_that_only_the_other_end_shows_is_looked_for_there() -> None:
    facts = Facts()
    facts.findings = {"cache-vm-01": [lossy("10.1.2.4", "10.1.1.4")]}
    played = investigate(facts, "Transfers from web-vm-01 to cache-vm-01 on port 6379 stall")
    assert played.tenant.captures == ["web-vm-01", "cache-vm-01"]
    assert "from cache-vm-01 to web-vm-01 are lost" in played.completion["root_cause_summary"]


def test_a_slow_path_is_clean_only_when_both_ends_say_so() -> None:
    played = investigate(Facts(), "Transfers from web-vm-01 to cache-vm-01 on port 6379 stall")
    assert played.tenant.captures == ["web-vm-01", "cache-vm-01"]
    assert played.coverage("wire") == "cleared"
    assert played.completion["confidence"] == "medium"


def test_a_refused_connection_is_the_servers_and_the_wire_is_cleared() -> None:
    refused = {**SILENT, "kind": "refused", "blame": "server_application", "title": "refused", "measured": {}}
    played = investigate(Facts(findings={"web-vm-01": [refused]}))
    assert played.coverage("guest_firewall") == "at_fault"
    assert played.coverage("wire") == "cleared"
    assert stated(played) == [("not_listening", "cache-vm-01", "")]


SILENT = {
    "kind": "syn_unanswered",
    "severity": "HIGH",
    "blame": "network",
    "who": {"src": "10.1.1.4", "dst": "10.1.2.4", "port": 6379},
    "measured": {"syn": 12, "answered": 0},
}


def test_connections_that_arrive_and_are_not_answered_are_the_guests_fault() -> None:
    facts = Facts(findings={"web-vm-01": [SILENT], "cache-vm-01": [SILENT]})
    played = investigate(facts)
    assert played.tenant.captures == ["web-vm-01", "cache-vm-01"]
    assert len(played.tenant.cleaned) == 2
    assert played.coverage("guest_firewall") == "at_fault"
    assert stated(played) == [("guest_firewall", "cache-vm-01", "")]
    assert played.completion["causes"][0]["confidence"] == "medium"


def test_connections_that_leave_and_do_not_arrive_are_lost_in_between() -> None:
    facts = Facts(findings={"web-vm-01": [SILENT]}, conversations=[])
    played = investigate(facts)
    assert played.coverage("wire") == "at_fault"
    assert "do not arrive" in played.completion["root_cause_summary"]
    assert stated(played) == [("inconclusive", "", "")]  # a firewall or an appliance may drop them as well
    away = {**SILENT, "who": {**SILENT["who"], "dst": "9.9.9.9"}}
    played = investigate(Facts(findings={"web-vm-01": [away]}), "web-vm-01 cannot reach 9.9.9.9 on port 6379")
    assert played.tenant.captures == ["web-vm-01"]
    assert stated(played) == [("inconclusive", "", "")]  # nobody saw them arrive


# What is advised

ALLOW = rule("let-it", 300, "Allow", destinationPortRange="6379-6379")


def advice(played: Played) -> str:
    return "\n".join(played.completion["recommended_actions"])


@pytest.mark.parametrize(
    "wide",
    [
        rule("deny-it", 200, "Deny", destinationPortRange="6000-6500"),
        rule("deny-it", 200, "Deny", destinationPortRange="6379"),
        rule("deny-it", 200, "Deny", destinationPortRange="6379", sourceAddressPrefix="VirtualNetwork"),
    ],
)
def test_a_deny_that_covers_more_than_the_traffic_is_never_turned_round(wide: dict[str, Any]) -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(wide)
    text = advice(investigate(facts))
    assert "-n deny-it" not in text
    assert "--source-address-prefixes 10.1.1.0/24 --destination-address-prefixes 10.1.2.4 " in text
    assert "--destination-port-ranges 6379" in text


def test_a_deny_of_exactly_this_traffic_may_be_turned_round() -> None:
    exact = {"sourceAddressPrefix": "10.1.1.4/32", "destinationAddressPrefix": "10.1.2.4"}
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying(**exact))
    assert "-n deny-it --access Allow" in advice(investigate(facts))


def test_an_allow_that_comes_too_late_is_named_and_moved() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"] += [rule("deny-it", 200, "Deny", destinationPortRange="6000-6500"), ALLOW]
    played = investigate(facts)
    assert "shadows rule let-it (priority 300), which would allow it" in played.completion["root_cause_summary"]
    assert "az network nsg rule update -g rg-a --nsg-name store-nsg -n let-it --priority 190" in advice(played)


def test_a_single_port_is_written_as_one() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying() | {"destinationPortRange": "6379-6379"})
    played = investigate(facts)
    assert "port 6379)" in played.completion["root_cause_summary"]
    assert "6379-6379" not in played.text


def test_no_advice_needs_a_capture_that_was_removed() -> None:
    found = {"web-vm-01": [LOST], "cache-vm-01": [LOST]}
    played = investigate(Facts(findings=found, conversations=ON_5432), "cache-vm-01 is slow from web-vm-01")
    assert "CAPTURE-AT" not in advice(played)
    assert "web-vm-01 to cache-vm-01" in advice(played)


# How it is said


def test_the_cause_comes_first_and_is_said_once_in_the_conclusion() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert "deny-it" in played.completion["statements"][0]["text"]
    assert played.turns[-1].text.count("deny-it (priority") == 1
    assert "(record s_" in played.completion["root_cause_summary"]
    assert "(records" not in played.completion["root_cause_summary"]


def test_a_conclusion_without_a_cause_speaks_in_words_and_leaves_the_records_to_the_statements() -> None:
    played = investigate(Facts())
    summary = played.completion["root_cause_summary"]
    assert not any(layer in summary for layer in LAYERS if "_" in layer)
    assert "s_0" not in summary
    assert any(
        s["text"].startswith("Checked, no fault found") and s["audit_ids"] for s in played.completion["statements"]
    )


# Whose traffic it is

LOSS = {"kind": "loss", "severity": "MEDIUM", "blame": "network", "protocol": "TCP", "title": "3% lost"}
LOST = {
    **LOSS,
    "who": {"src": "10.1.1.4", "dst": "10.1.2.4", "port": 5432},
    "detail": "59 of 1,324 segments lost between the capture point and the receiver; 48 flagged.",
    "measured": {"retransmissions": 48, "data_segments": 1302, "loss_pct": 4.46, "lost_after_capture_point": 59},
}
ON_5432 = [talk("10.1.1.4", "10.1.2.4", 5432)]


@pytest.mark.parametrize(
    "symptom",
    [
        "packet loss between web-vm-01 and cache-vm-01",
        "cache-vm-01 is slow from web-vm-01",
        "web-vm-01 drops connections to the cache",
        "cache-vm-01 is slow for web-vm-01",
        "packet loss from cache-vm-01 to web-vm-01",
    ],
)
def test_without_a_stated_port_every_loss_between_the_two_ends_counts(symptom: str) -> None:
    found = {"web-vm-01": [LOST], "cache-vm-01": [LOST]}
    played = investigate(Facts(findings=found, conversations=ON_5432), symptom)
    assert played.completion["confidence"] == "high"
    assert played.coverage("wire") == "at_fault"
    summary = played.completion["root_cause_summary"]
    assert (
        "from web-vm-01 to cache-vm-01 are lost (59 of 1324 segments, 4.46%, 48 retransmissions seen; port 5432)"
        in summary
    )
    assert "nothing broken" not in played.text


@pytest.mark.parametrize("service", ["port 8080", "port 22", "port 5433", "UDP port 5432"])
def test_with_a_stated_port_another_ports_failure_is_an_observation_and_decides_nothing(service: str) -> None:
    facts = Facts(findings={"web-vm-01": [LOST]}, conversations=ON_5432)
    played = investigate(facts, f"transfers from web-vm-01 to cache-vm-01 on {service} are slow")
    assert played.completion["confidence"] == "low"
    assert played.completion["confirmed_hypotheses"] == []
    assert played.coverage("wire") == "not_verified"
    summary = played.completion["root_cause_summary"]
    assert summary.startswith("No cause found in what could be checked")
    assert "TCP port 5432" in summary
    assert any("Reproduce the symptom" in action for action in played.completion["recommended_actions"])


@pytest.mark.parametrize(
    "symptom",
    [
        "web-vm-01 cannot ssh to cache-vm-01",
        "web-vm-01 cannot reach batch-vm-01 on port 22",
        "web-vm-01 cannot ping cache-vm-01",
        "web-vm-01 cannot reach 8.8.8.8 port 53",
        "web-vm-01 cannot ssh to cache-vm-01 on port 22",
    ],
)
def test_a_capture_without_the_traffic_clears_nothing(symptom: str) -> None:
    played = investigate(Facts(), symptom)
    assert played.coverage("wire") == "not_verified"
    assert played.completion["confidence"] == "low"
    assert "holds no packet of" in played.completion["root_cause_summary"]
    assert not any("show no fault" in action for action in played.completion["recommended_actions"])
    assert any("Reproduce the symptom" in action for action in played.completion["recommended_actions"])


@pytest.mark.parametrize("verb", ["ssh to", "rdp to"])
def test_a_protocol_that_is_named_decides_as_a_port_does(verb: str) -> None:
    facts = Facts(findings={"web-vm-01": [LOST]}, conversations=ON_5432)
    played = investigate(facts, f"{verb} cache-vm-01 from web-vm-01 is slow")
    assert played.coverage("wire") == "not_verified"
    assert played.completion["confirmed_hypotheses"] == []


def test_a_product_means_the_machine_that_plays_its_part() -> None:
    facts = Facts()
    facts.machines.append(Vm("store-vm-07", "10.1.2.9", "store", tags={"role": "database"}))
    played = investigate(facts, "high latency between the web server and the postgres server")
    assert "The destination is store-vm-07" in played.text


def test_an_incomplete_list_of_conversations_does_not_say_that_one_is_absent() -> None:
    played = investigate(Facts(conversations=[], conversations_complete=("ICMP",)))
    assert played.coverage("wire") == "not_verified"
    assert "does not show whether" in played.completion["root_cause_summary"]


def test_attempts_without_an_answer_are_not_clean_even_where_no_finding_names_these_ends() -> None:
    facts = Facts(conversations=[talk("10.1.1.4", "10.1.2.4", 6379, unanswered=2)])
    assert investigate(facts).coverage("wire") == "not_verified"


@pytest.mark.parametrize("symptom", ["web-vm-01 cannot reach cache-vm-01", "web-vm-01 cannot reach the mysql cache"])
def test_a_port_that_only_the_capture_shows_is_judged_by_the_rules_too(symptom: str) -> None:
    facts = Facts(conversations=[talk("10.1.1.4", "10.1.2.4", 6379, unanswered=7)], findings={"web-vm-01": [SILENT]})
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, symptom)
    assert played.coverage("nsg_inbound") == "at_fault"
    assert "deny-it" in played.completion["root_cause_summary"]
    assert played.coverage("wire") != "at_fault"
    assert played.completion["confirmed_hypotheses"] == ["H1"]


def test_syns_are_not_counted_as_attempts() -> None:
    counted = {**SILENT, "measured": {"syn": 79, "syn_retransmitted": 58, "answered": 0}}
    facts = Facts(findings={"web-vm-01": [counted]}, conversations=[])
    assert "79 SYNs in 21 connection attempts" in investigate(facts).completion["root_cause_summary"]


def test_answers_that_are_lost_on_the_way_back_are_told_from_attempts_that_do_not_arrive() -> None:
    played = investigate(Facts(findings={"web-vm-01": [SILENT]}))
    assert "answers are lost on the way back to web-vm-01" in played.completion["root_cause_summary"]


# Denials


def test_a_denied_effective_rules_read_is_replaced_by_the_configured_rules() -> None:
    facts = Facts(denied=("list-effective-nsg",))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert played.coverage("nsg_inbound") == "at_fault"
    assert "was denied" in played.text


def test_with_every_read_of_rules_denied_the_conclusion_is_honest() -> None:
    facts = Facts(denied=("list-effective-nsg", "nsg show"))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert played.completion["confidence"] == "low"
    assert played.coverage("nsg_inbound") == played.coverage("nsg_outbound") == "not_verified"
    assert "H1" in played.completion["unverifiable_hypotheses"]


@pytest.mark.parametrize("refused", ["capture_traffic", "download"])
def test_a_denied_capture_leaves_the_wire_unverified(refused: str) -> None:
    played = investigate(Facts(denied=(refused,)))
    (row,) = (item for item in played.completion["coverage"] if item["layer"] == "wire")
    assert set(row["audit_ids"]) == played.tenant.denied_ids
    summary = played.completion["root_cause_summary"]
    assert summary.startswith("No cause found in what could be checked")
    assert "no wire capture was examined" in summary
    assert "not now" in summary
    actions = " ".join(played.completion["recommended_actions"])
    assert "by hand" in actions
    assert "show no fault" not in actions + summary
    assert "clean it up" not in played.text
    assert played.tenant.cleaned == []
    assert played.completion["confidence"] == "low"
    assert stated(played) == [("inconclusive", "", "")]
    assert played.coverage("wire") == "not_verified"
    assert "H4" in played.completion["unverifiable_hypotheses"]


def test_a_denied_list_of_machines_is_replaced_by_that_of_interfaces() -> None:
    facts = Facts(denied=("vm list",))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, "web-vm-01 cannot reach cache-vm-01 on port 6379")
    assert played.coverage("nsg_inbound") == "at_fault"


def test_with_everything_denied_it_concludes_and_repeats_nothing() -> None:
    played = investigate(Facts(denied=("az ", "ping")))
    assert played.completion["confidence"] == "low"
    assert stated(played) == [("not_investigated", "", "")]


@given(st.sets(st.sampled_from(["vm list", "vm show", "nic show", "vnet list", "vnet show", "subnet show", "ping"])))
@settings(max_examples=examples(25))
def test_whatever_is_denied_no_cause_is_made_up(denied: set[str]) -> None:
    played = investigate(Facts(denied=tuple(denied)), "web-vm-01 cannot reach cache-vm-01 on port 6379")
    assert played.completion["confirmed_hypotheses"] == []


# Answers that are too long


def many_rules(count: int, step: int) -> list[dict[str, Any]]:
    return [rule(f"allow-{n}", 300 + n * step, "Allow", destinationPortRange=str(20000 + n)) for n in range(count)]


def test_rules_too_many_for_one_answer_are_read_in_parts() -> None:
    facts = Facts(most_lines=30)
    facts.nsgs["store-nsg"] += [*many_rules(24, 100), denying()]
    played = investigate(facts)
    assert "was truncated" in played.text
    assert played.coverage("nsg_inbound") == "at_fault"


def test_rules_that_are_too_many_even_in_parts_are_not_concluded_from() -> None:
    facts = Facts(most_lines=30)
    facts.nsgs["store-nsg"] += [*many_rules(60, 10), denying()]
    played = investigate(facts)
    assert played.coverage("nsg_inbound") == "not_verified"
    assert played.completion["confidence"] != "high"


def test_a_tenant_too_large_to_list_is_searched_by_the_words_of_the_symptom() -> None:
    facts = Facts()
    facts.machines += [Vm(f"other-{n}", f"10.1.3.{n % 250 + 5}", "jobs") for n in range(300)]
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, "web-vm-01 cannot reach cache-vm-01 on port 6379")
    assert played.coverage("nsg_inbound") == "at_fault"


# Names of the domain name system


def zone(**records: str) -> dict[str, Any]:
    return {"corp.internal": {"records": records, "networks": ["net-a"]}}


NAMED = "web-vm-01 cannot reach cache.corp.internal on port 6379"


def test_a_name_in_a_private_zone_leads_to_its_machine() -> None:
    facts = Facts(zones=zone(cache="10.1.2.4"))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, NAMED)
    assert played.coverage("dns") == "cleared"
    assert played.coverage("nsg_inbound") == "at_fault"


def test_a_zone_that_the_source_does_not_see_is_the_cause() -> None:
    facts = Facts(zones={"corp.internal": {"records": {"cache": "10.1.2.4"}, "networks": ["net-z"]}})
    played = investigate(facts, NAMED)
    assert played.coverage("dns") == "at_fault"
    assert played.completion["confirmed_hypotheses"] == ["H3"]
    assert "not linked with net-a" in played.completion["root_cause_summary"]
    assert stated(played) == [("dns_zone_not_linked", "corp.internal", "")]


def test_a_name_that_its_zone_does_not_hold_is_the_cause() -> None:
    facts = Facts(zones=zone(other="10.1.2.9"))
    played = investigate(facts, NAMED, answer=lambda q: "cache-vm-01")
    assert played.coverage("dns") == "at_fault"
    assert stated(played) == [("dns_record_missing", "corp.internal", "cache")]
    assert any("add-record" in action for action in played.completion["recommended_actions"])


def test_an_address_of_no_machine_is_examined_as_far_as_the_tenant_reaches() -> None:
    facts = Facts()
    facts.nsgs["front-nsg"].append(denying(direction="Outbound"))
    played = investigate(facts, "web-vm-01 cannot reach 10.200.0.9 on port 6379")
    assert played.coverage("nsg_outbound") == "at_fault"
    assert played.coverage("nsg_inbound") == "not_verified"
    assert played.coverage("load_balancer") == "cleared"


# Questions


def two_caches() -> Facts:
    facts = Facts()
    facts.machines.append(Vm("cache-vm-02", "10.1.2.5", "store", tags={"role": "redis-cache"}))
    facts.nsgs["store-nsg"].append(denying(destinationAddressPrefix="10.1.2.5"))
    return facts


@pytest.mark.parametrize("answer", ["2", "cache-vm-02", "10.1.2.5", "the one called cache-vm-02, please"])
def test_an_ambiguous_target_is_asked_for_and_the_answer_taken(answer: str) -> None:
    asked: list[str] = []

    def engineer(question: str) -> str:
        asked.append(question)
        return answer

    played = investigate(two_caches(), "web-vm-01 cannot reach the Redis cache on port 6379", answer=engineer)
    assert len(asked) == 1
    assert "cache-vm-01" in asked[0]
    assert "cache-vm-02" in asked[0]
    assert "denies TCP 10.1.1.4 -> 10.1.2.5:6379 inbound" in played.completion["root_cause_summary"]


def test_without_anyone_to_answer_it_says_what_is_missing() -> None:
    played = investigate(two_caches(), "web-vm-01 cannot reach the Redis cache on port 6379")
    assert played.completion["confidence"] == "low"
    assert stated(played) == [("not_investigated", "", "")]
    assert "destination" in played.completion["root_cause_summary"]
    assert {item["status"] for item in played.completion["coverage"]} == {"not_verified"}


def test_a_target_nobody_knows_is_asked_for() -> None:
    played = investigate(Facts(), "web-vm-01 cannot reach the zeppelin on port 6379", answer=lambda q: "cache-vm-01")
    assert "zeppelin" in played.text
    assert played.completion["root_cause_summary"].startswith("No fault found")


def test_a_port_that_nothing_implies_is_asked_for() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, "web-vm-01 cannot reach batch-vm-01", answer=lambda q: "443")
    assert "443" in played.completion["root_cause_summary"]


def test_words_side_by_side_in_a_tag_mean_that_machine_and_not_one_that_has_one_of_them() -> None:
    facts = Facts()
    facts.machines.append(Vm("redis-old-01", "10.1.3.20", "jobs", tags={"role": "big-cache"}))
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts)
    assert "cache-vm-01" in played.completion["root_cause_summary"]


# Names nobody has, ends that are one, ports that are none


@pytest.mark.parametrize("name", ["nosuch-vm", "web-vm-02", "cache-vm-1", "prod-server", "batch01", "wbe-vm-01"])
@pytest.mark.parametrize("form", ["web-vm-01 cannot reach {} on 6379", "{} cannot reach batch-vm-01 on port 443"])
def test_a_name_that_no_machine_has_never_becomes_another_machine(name: str, form: str) -> None:
    played = investigate(Facts(), form.format(name))
    assert played.completion["confidence"] == "low"
    assert stated(played) == [("not_investigated", "", "")]
    assert f"no machine named {name}" in played.completion["root_cause_summary"]
    assert "web-vm-01, cache-vm-01, batch-vm-01" in played.completion["statements"][0]["text"]
    assert not played.tenant.captures
    assert any(f"“{name}”" in turn.text for turn in played.turns if not turn.tool_calls), "it was not asked for"


def test_the_engineer_can_say_which_machine_a_wrong_name_means() -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, "web-vm-01 cannot reach cahce-vm-01 on port 6379", answer=lambda q: "1")
    assert "cache-vm-01" in played.completion["root_cause_summary"]
    assert played.coverage("nsg_inbound") == "at_fault"


@pytest.mark.parametrize("phrase", ["the redis-cache", "the cache-server", "redis", "the cache since the roll-out"])
def test_a_way_to_say_it_is_not_taken_for_a_wrong_name(phrase: str) -> None:
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    played = investigate(facts, f"web-vm-01 cannot reach {phrase} on port 6379")
    assert played.coverage("nsg_inbound") == "at_fault"


@pytest.mark.parametrize("symptom", ["web-vm-01 cannot reach web-vm-01", "10.1.1.4 cannot reach web-vm-01 on port 80"])
def test_a_machine_that_cannot_reach_itself_is_said_to_be_one(symptom: str) -> None:
    played = investigate(Facts(), symptom)
    assert "web-vm-01 is both source and destination" in played.completion["root_cause_summary"]
    assert not played.tenant.captures


def test_a_number_that_is_no_port_is_asked_about_and_never_replaced() -> None:
    symptom = "web-vm-01 cannot reach the Redis cache on port 99999"
    played = investigate(Facts(), symptom)
    assert "99999 is not a port" in played.completion["root_cause_summary"]
    assert "6379" not in played.completion["root_cause_summary"]
    facts = Facts()
    facts.nsgs["store-nsg"].append(denying())
    assert investigate(facts, symptom, answer=lambda q: "6379").coverage("nsg_inbound") == "at_fault"


@pytest.mark.parametrize(
    "symptom",
    ["web-vm-01 cannot resolve cache-vm-01.internal", "web-vm-01 cannot reach ghost.example.internal on port 443"],
)
def test_a_name_that_resolves_to_nothing_is_the_finding(symptom: str) -> None:
    played = investigate(Facts(zones=zone(other="10.1.2.9")), symptom)
    summary = played.completion["root_cause_summary"]
    assert "resolves to nothing" in summary
    assert "engineer's local machine" in summary
    assert "corp.internal" in summary
    assert played.coverage("dns") == "at_fault"


# Names are data


ANSWERING = vocabulary()["clauses"]["answering"]
WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=8).filter(
    lambda word: word not in word_set("stop_words") and not re.fullmatch("|".join(ANSWERING), word)
)
"""A name that is an article, or that says who answers whom, makes another sentence."""
SHORT = ["aab", "aac", "aad", "aae", "aaf", "aag", "aah"]


@given(
    st.lists(WORDS, min_size=8, max_size=8, unique=True).filter(lambda w: len({x[:3] for x in w}) == 8),
    st.integers(1, 65535),
    st.sampled_from(["store-nsg", "front-nsg"]),
    st.tuples(st.integers(1, 250), st.integers(1, 250)),
)
@example(["cannot", *SHORT], 1, "store-nsg", (1, 1))
@example(["never", *SHORT], 1, "store-nsg", (1, 1))
@example(["stopped", *SHORT], 1, "store-nsg", (1, 1))
@settings(max_examples=examples(40))
def test_any_names_addresses_and_ports_lead_to_the_same_cause(
    names: list[str], port: int, denying_group: str, nets: tuple[int, int]
) -> None:
    one, two, group, source_word, target_word, table, role, net = names
    second, third = nets
    subnets = {
        one: {"prefix": f"10.{second}.{third}.0/25", "nsg": "front-nsg"},
        two: {"prefix": f"10.{second}.{third}.128/25", "nsg": "store-nsg"},
    }
    source, target = f"{source_word}-1", f"{target_word}-{role}"
    direction = "Inbound" if denying_group == "store-nsg" else "Outbound"
    facts = Facts(
        machines=[
            Vm(source, f"10.{second}.{third}.9", one, net, group),
            Vm(target, f"10.{second}.{third}.200", two, net, group),
            Vm(f"{table}-7", f"10.{second}.{third}.201", two, net, group),
        ],
        networks=[Net(net, f"10.{second}.0.0/16", subnets, group=group)],
    )
    deny = rule("no", 300, "Deny", direction, destinationPortRange=f"{max(port - 5, 0)}-{min(port + 5, 65535)}")
    facts.nsgs = {"store-nsg": [], "front-nsg": []}
    facts.nsgs[denying_group].append(deny)
    played = investigate(facts, f"Since noon the VMs in {one} cannot reach the {target_word} {role} on port {port}")
    assert played.completion["confirmed_hypotheses"] == ["H1"], played.text
    assert played.coverage("nsg_inbound" if direction == "Inbound" else "nsg_outbound") == "at_fault"


@pytest.mark.parametrize("hostile", ["x; rm -rf /", "--yes", "$(reboot)", "a\x1b[2Jb", "`id`"])
def test_hostile_names_never_become_part_of_a_command(hostile: str) -> None:
    facts = Facts()
    facts.machines.append(Vm(hostile, "10.1.3.9", "jobs", tags={hostile: hostile}))
    facts.nsgs["store-nsg"].append(rule(hostile, 200, "Deny", destinationPortRange="6379"))
    played = investigate(facts)
    assert not any(hostile in command for command in played.tenant.commands)
    assert played.coverage("nsg_inbound") == "at_fault"
    assert "\x1b" not in json.dumps([turn.text for turn in played.turns])
    for action in played.completion["recommended_actions"]:
        command = action[action.index("az network") :]
        assert shlex.split(command)[:4] == ["az", "network", "nsg", "rule"]


def test_at_most_three_hypotheses_are_tested_at_once_and_each_can_be_refuted() -> None:
    played = investigate(Facts())
    active: set[str] = set()
    for turn in played.turns:
        for call in turn.tool_calls:
            if call.name == "manage_hypotheses":
                arguments = call.arguments
                if arguments["action"] == "register":
                    assert arguments["refuted_by"]
                    active |= {arguments["id"]} if len(active) < 3 else set()
                elif arguments["action"] == "activate":
                    active.add(arguments["id"])
                else:
                    active.discard(arguments["id"])
                assert len(active) <= 3
