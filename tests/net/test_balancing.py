"""Load balancers, public addresses and ways out: what is read, what mends, what changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ghost.net.balancing import azure_balancing
from ghost.net.faults import explain
from ghost.net.packet_path import walk
from ghost.net.proposals import proposed
from ghost.net.resources import VirtualNetwork
from ghost.net.snapshot import Answer, Read, collect, needed
from tests.net.description import described
from tests.net.small_network import PROVIDER, flow
from tests.net.test_snapshot import body, recorded
from tests.net.test_vectors import vectors

VECTORS = {name: vectors(name)["networks"] for name in ("balancing", "nat")}
INTERNAL, PUBLIC = VECTORS["balancing"]["internal"], VECTORS["balancing"]["public"]
PLAIN = VECTORS["nat"]["plain"]
TO_FRONT = "Tcp 10.0.0.4 10.0.1.100:80"
NO_PROBE = "rule g no 100 Inbound Deny Tcp AzureLoadBalancer *:*"


@recorded
def test_the_readers_understand_what_azure_really_answered() -> None:
    (outbound,) = azure_balancing.load_balancers(body("load-balancer-get-outbound-rules"), "r")
    assert (outbound.sku, outbound.reference, outbound.pools[0].members) == ("Standard", "r", ())
    assert [(rule.protocol, rule.allocated_ports) for rule in outbound.outbound_rules] == [("Tcp", 512), ("All", 1024)]
    assert [front.public_prefix is not None for front in outbound.front_ends] == [False, True]
    (balancer,) = azure_balancing.load_balancers(body("load-balancer-get-probes-rules"))
    rules = {rule.name: (rule.protocol, rule.port, rule.backend_port, rule.floating_ip) for rule in balancer.rules}
    assert rules == {"rule1": ("Udp", 40, 40, True), "rule2": ("Tcp", 60, 60, False)}
    (gateway,) = azure_balancing.nat_gateways(body("nat-gateway-get"))
    assert (len(gateway.public_addresses), len(gateway.public_prefixes), gateway.zones) == (1, 1, ("2",))
    (public,) = azure_balancing.public_addresses(body("public-ip-get"))
    assert (public.address, public.sku, public.is_standard) == ("20.236.29.124", "Basic", False)
    assert (public.attached_to or "").endswith("/ipConfigurations/ipconfigvm1")
    found = azure_balancing.scale_set_interfaces("set", body("vmss-nic-list")).interfaces
    assert [each.address for each in found] == ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"]
    assert len(found[0].configurations[0].pools) == len(found[0].configurations[0].nat_rules) == 1


@pytest.mark.parametrize(
    ("lines", "packet", "expected"),
    [
        ([*INTERNAL, NO_PROBE], TO_FRONT, [("security_rule", "without rule no of g", "passes")]),
        ([*INTERNAL, "rule g all 4000 Inbound Deny * * *:*", "rule g web 300 Inbound Allow Tcp * *:8080"], TO_FRONT,
         [("security_rule", "without rule all of g", "passes")]),
        ([*INTERNAL, "stopped app1", "stopped app2", "stopped app3"], TO_FRONT,
         [("machine_stopped", "with app1 running", "passes")]),
        ([*INTERNAL, "pool lb/pool members=app1", "stopped app1", NO_PROBE], TO_FRONT,
         [("machine_stopped", "with app1 running", "blocked"), ("security_rule", "without rule no of g", "passes")]),
        ([*INTERNAL, "vm app2 nsg=one", "rule one no 100 Inbound Deny Tcp VirtualNetwork *:8080"], TO_FRONT,
         [("security_rule", "without rule no of one", "passes")]),
        (INTERNAL, "Udp 10.0.0.4 10.0.1.100:53", [("balancer_no_rule", "with a rule of lb for udp port 53", "passes")]),
        ([*INTERNAL, "pool lb/pool members="], TO_FRONT, [("balancer_pool_empty", "None", "blocked")]),
        ([*PUBLIC, "subnet vnet/app nsg=", "pool lb/pool members=app1"], "Tcp 52.1.2.3 20.1.1.1:80",
         [("public_without_group", "a security group at app1-nic that allows", "passes")]),
        ([*PUBLIC, "no nsg g", "nsg n", "subnet vnet/app nsg=n"], "Tcp 52.1.2.3 20.1.1.1:80",
         [("security_rule", "Allow Tcp 52.1.2.3 -> *:8080", "passes")]),
        ([*PLAIN, "private vnet/web"], "Tcp 10.0.0.4 13.107.21.200:443",
         [("no_outbound_access", "with a NAT gateway at web", "passes")]),
        ([*VECTORS["nat"]["nat"], "nat natgw public="], "Tcp 10.0.0.4 13.107.21.200:443",
         [("nat_without_address", "with a public address at natgw", "passes")]),
    ],
)  # fmt: skip
def test_what_stops_a_packet_is_explained_by_its_cause(lines: list[str], packet: str, expected: Any) -> None:
    found = explain(described(lines), flow(packet))
    told = [(fault.kind, str(fault.mend), fault.outcome) for fault in found]
    assert [(kind, outcome) for kind, _, outcome in told] == [(kind, outcome) for kind, _, outcome in expected], told
    assert all(part in mend for (_, mend, _), (_, part, _) in zip(told, expected, strict=True)), told


def test_that_no_member_is_healthy_follows_from_what_stops_the_probes() -> None:
    made = described([*INTERNAL, NO_PROBE])
    (fault,) = explain(made, flow(TO_FRONT))
    assert (fault.kind, fault.derived) == ("security_rule", ("balancer_no_healthy_member",))
    assert fault.hop.flow is not None
    assert fault.hop.flow.source_address == "168.63.129.16"


@pytest.mark.parametrize(
    ("lines", "packet", "change", "outcome"),
    [
        (INTERNAL, "Tcp 10.0.0.4 10.0.1.100:443", "balance lb tcp 443 8443", "passes"),
        (PLAIN, "Tcp 10.0.0.4 13.107.21.200:443", "private vnet web", "blocked"),
        ([*PLAIN, "private vnet/web"], "Tcp 10.0.0.4 13.107.21.200:443", "nat-gateway vnet web", "passes"),
    ],
)
def test_a_proposed_change_is_walked(lines: list[str], packet: str, change: str, outcome: str) -> None:
    made = described(lines)
    assert walk(made, flow(packet)).outcome != outcome
    assert walk(proposed(change, made).applied(made), flow(packet)).outcome == outcome


def test_the_order_of_members_and_rules_and_who_is_out_change_nothing_else() -> None:
    random = Random(15)
    kinds = ("vm app", "pool", "balance")
    for _ in range(20):
        members = random.sample(["app1", "app2", "app3"], 3)
        stopped = [f"stopped {each}" for each in members[: random.randrange(3)]]
        lines = [*INTERNAL, "balance lb/other front Tcp 81 81 pool", *stopped]
        first = walk(described(lines), flow(TO_FRONT))
        moved = [line for line in lines if line.startswith(kinds)]
        rest = [line for line in lines if not line.startswith(kinds)]
        other = [*rest, *random.sample(moved, len(moved)), f"pool lb/pool members={','.join(members)}"]
        again = walk(described(other), flow(TO_FRONT))
        assert (again.outcome, again.hops, again.others) == (first.outcome, first.hops, first.others)
        alone = ",".join(sorted(members[len(stopped) :]))
        fewer = walk(described([*lines, f"pool lb/pool members={alone}"]), flow(TO_FRONT))
        assert fewer.outcome == first.outcome == "passes"
        ways = [[hop for hop in each.hops if hop.kind != "load_balancer"] for each in (first, *first.others)]
        assert [[hop for hop in each.hops if hop.kind != "load_balancer"] for each in (fewer, *fewer.others)] == ways


def test_a_basic_front_end_is_not_said_to_be_reached_from_another_region() -> None:
    far = ["vnet far 10.9.0.0/16", "subnet far/s 10.9.0.0/24", "vm away 10.9.0.4 far/s", "peering vnet far"]
    for sku, outcome in (("Basic", "unknown"), ("Standard", "passes")):
        made = described([*INTERNAL, *far, "peering far vnet", f"lb lb sku={sku}"])
        regions = {"vnet": "westeurope", "far": "eastus"}
        homes = [replace(each, location=regions[each.name]) for each in made.all(VirtualNetwork).values()]
        made = made.with_resources(VirtualNetwork, homes)
        assert walk(made, flow("Tcp 10.9.0.4 10.0.1.100:80")).outcome == outcome


def az(command: str) -> Any:
    """Answer as az prints it: a public load balancer with two instances of a scale set, and a client behind NAT."""
    scale_set = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/set"
    vnet, lb, pip = (f"{PROVIDER}/{kind}" for kind in ("virtualNetworks/v", "loadBalancers/lb", "publicIPAddresses"))
    nsg, front, pool = (
        f"{PROVIDER}/networkSecurityGroups/g",
        f"{lb}/frontendIPConfigurations/f",
        f"{lb}/backendAddressPools/p",
    )

    def nic(at: str, machine: str, address: str, place: str, **more: Any) -> dict[str, Any]:
        configuration: dict[str, Any] = {
            "id": f"{at}/ipConfigurations/main",
            "name": "main",
            "primary": True,
            "privateIPAddress": address,
        }
        configuration = {**configuration, "subnet": {"id": f"{vnet}/subnets/{place}"}, **more}
        return {"id": at, "virtualMachine": {"id": machine}, "ipConfigurations": [configuration]}

    instances = [f"{scale_set}/virtualMachines/{n}" for n in range(2)]
    pools = {"loadBalancerBackendAddressPools": [{"id": pool}]}
    nics = [nic(f"{of}/networkInterfaces/nic", of, f"10.0.1.{n + 4}", "app", **pools) for n, of in enumerate(instances)]
    client = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/client"
    rule = {"name": "web", "priority": 100, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
            "sourceAddressPrefix": "20.2.2.1", "destinationAddressPrefix": "*", "sourcePortRange": "*",
            "destinationPortRange": "8080"}  # fmt: skip
    answers: dict[str, Any] = {
        "az network nic list": [nic(f"{PROVIDER}/networkInterfaces/client-nic", client, "10.0.0.4", "web")],
        "az network vnet list": [{
            "id": vnet, "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "virtualNetworkPeerings": [],
            "subnets": [
                {"id": f"{vnet}/subnets/web", "addressPrefix": "10.0.0.0/24",
                 "natGateway": {"id": f"{PROVIDER}/natGateways/nat"}},
                {"id": f"{vnet}/subnets/app", "addressPrefix": "10.0.1.0/24", "networkSecurityGroup": {"id": nsg},
                 "ipConfigurations": [{"id": each["ipConfigurations"][0]["id"]} for each in nics]},
            ]}],
        "az network nsg show -g rg -n g": {"id": nsg, "securityRules": [rule]},
        "az vm get-instance-view -g rg -n client": {
            "id": client, "instanceView": {"statuses": [{"code": "PowerState/running"}]}},
        "az network nat gateway show -g rg -n nat": {
            "id": f"{PROVIDER}/natGateways/nat", "publicIpAddresses": [{"id": f"{pip}/natip"}]},
        "az network public-ip list": [
            {"id": f"{pip}/natip", "ipAddress": "20.2.2.1", "sku": {"name": "Standard"},
             "natGateway": {"id": f"{PROVIDER}/natGateways/nat"}},
            {"id": f"{pip}/lbip", "ipAddress": "20.4.4.1", "sku": {"name": "Standard"},
             "ipConfiguration": {"id": front}}],
        "az network lb show -g rg -n lb": {
            "id": lb, "sku": {"name": "Standard", "tier": "Regional"},
            "frontendIPConfigurations": [{"id": front, "publicIPAddress": {"id": f"{pip}/lbip"}}],
            "backendAddressPools": [
                {"id": pool, "backendIPConfigurations": [{"id": each["ipConfigurations"][0]["id"]} for each in nics]}],
            "probes": [{"id": f"{lb}/probes/up", "protocol": "Http", "port": 8080, "requestPath": "/"}],
            "loadBalancingRules": [
                {"name": "http", "frontendIPConfiguration": {"id": front}, "protocol": "Tcp", "frontendPort": 80,
                 "backendPort": 8080, "backendAddressPool": {"id": pool}, "probe": {"id": f"{lb}/probes/up"}}]},
        "az vmss nic list -g rg --vmss-name set": nics,
        "az vmss list-instances --expand instanceView -g rg -n set": [
            {"id": each, "instanceView": {"statuses": [{"code": "PowerState/running"}]}} for each in instances],
        "az resource list --query [].{id: id, tags: tags}": [
            {"id": each} for each in (client, vnet, lb, f"{pip}/natip")],
    }  # fmt: skip
    return answers[command.removesuffix(" -o json")]


def test_a_balancer_is_read_with_few_commands_and_none_twice() -> None:
    asked: list[str] = []

    def execute(read: Read) -> Answer:
        asked.append(" ".join(read.argv))
        return Answer(json.dumps(az(asked[-1])), f"r{len(asked)}")

    there = flow("Tcp 10.0.0.4 20.4.4.1:80")
    walked = walk(collect([there], execute), there)
    assert walked.outcome == "passes", [hop for hop in walked.hops if hop.verdict == "unknown"]
    assert len(asked) == len(set(asked)) == 10, asked
    assert [hop.kind for hop in walked.hops if hop.verdict == "rewrite"] == ["nat", "load_balancer"]
    assert len(walked.others) == 1
    assert walk(collect([there], execute), flow("Tcp 10.0.0.4 20.4.4.1:81")).blocker is not None


def test_an_instance_of_a_scale_set_is_found_by_its_subnet() -> None:
    asked: list[str] = []

    def execute(read: Read) -> Answer:
        asked.append(" ".join(read.argv))
        return Answer(json.dumps(az(asked[-1])), "r")

    there = flow("Tcp 10.0.1.4 10.0.0.4:22")
    walked = walk(collect([there], execute), there)
    assert walked.outcome == "passes", walked.hops
    assert [hop.reason for hop in walked.hops if hop.kind == "machine"][:2] == ["set_0 runs", "client runs"]
    assert len(asked) == len(set(asked)), asked


def test_what_azure_computed_for_an_instance_is_not_asked_of_another_interface() -> None:
    lines = [*INTERNAL, "instance set 0 10.0.1.20 vnet/app", "rule g sql 100 Inbound Deny Tcp Sql *:8080"]
    instance, machine = flow("Tcp 10.0.0.4 10.0.1.20:8080"), flow("Tcp 10.0.0.4 10.0.1.4:8080")
    made = described(lines)
    assert walk(made, instance).outcome == walk(made, machine).outcome == "unknown"
    assert (len(needed(made, [instance])), len(needed(made, [machine]))) == (0, 1)
