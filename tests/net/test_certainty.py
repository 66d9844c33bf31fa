"""What is not certain neither blocks nor passes, and what is mended can be done."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from ghost.lab import load_scenario
from ghost.lab.tenant.compiled_network import network_of_world
from ghost.net import explain, walk
from ghost.net.effective import groups_of, routes_of
from ghost.net.network import Missing, Network
from ghost.net.resources import EffectiveGroups, EffectiveRoutes, Interface, VirtualNetwork
from ghost.net.security import SecurityRule
from tests.net.description import described
from tests.net.random_networks import random_flow, random_lines
from tests.net.small_network import flow, nic_id

TWO = [
    "vnet v 10.0.0.0/16,fd00:1::/48", "nsg g", "table t", "subnet v/a 10.0.0.0/24 nsg=g",
    "subnet v/b 10.0.1.0/24 table=t",
    "vm a 10.0.0.4 v/a", "vm b 10.0.1.4 v/b", "vm c fd00:1::4 v/b",
]  # fmt: skip
CLOSED = [*TWO, "rule g closed 100 Inbound Deny * * *:*"]
OPEN_TO_B = [*TWO, "public pa 20.1.1.1 vm=a", "public pb 20.1.1.2 vm=b", "rule g b 100 Inbound Allow Tcp 20.1.1.2 *:80"]
IN_FIREWALL = [
    *TWO, "subnet v/AzureFirewallSubnet 10.0.9.0/26", "firewall fw 10.0.9.4 v public=pf", "public pb 20.1.1.2 vm=b",
    "public pf 20.1.1.3 of=/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/azureFirewalls/fw/a/one",
    "fwrule fw 100/100 nat Dnat in TCP 20.1.1.2 20.1.1.3 80 to=10.0.0.4:80",
]  # fmt: skip
POOL = ["lb lb", "front lb/front address=10.0.0.100 subnet=v/a", "balance lb/rule front Tcp 80 80 pool"]


@pytest.mark.parametrize(
    ("lines", "asked", "outcome", "why"),
    [
        (CLOSED, "Tcp 10.0.0.4 10.0.0.4:80", "passes", "a packet to oneself meets no group"),
        ([*CLOSED, "also a2 a 10.0.1.9 v/b"], "Tcp 10.0.1.9 10.0.0.4:80", "passes", "two interfaces, one machine"),
        ([*CLOSED, "listens a 10.0.0.4:22"], "Tcp 10.0.0.4 10.0.0.4:80", "blocked", "nothing listens"),
        (OPEN_TO_B, "Tcp 10.0.1.4 20.1.1.1:80", "passes", "it comes by the public address of b"),
        (OPEN_TO_B, "Tcp 192.168.0.9 20.1.1.1:80", "unknown", "a private address is translated on its way"),
        ([*CLOSED, *POOL, "vnet w 10.1.0.0/16", "subnet w/a 10.1.0.0/24", "vm x 10.1.0.4 w/a",
          "pool lb/pool members=x"], "Tcp 10.0.1.4 10.0.0.100:80", "blocked", "a member in a network without peering"),
        (IN_FIREWALL, "Tcp 10.0.1.4 20.1.1.3:80", "passes", "a firewall sees the public address too"),
        ([*CLOSED, "manager m"], "Tcp 10.0.1.4 10.0.0.4:80", "unknown", "it may be allowed"),
        ([*CLOSED, "admin v m/c AlwaysAllow x 1 Inbound * Storage *:*"], "Tcp 10.0.1.4 10.0.0.4:80", "unknown", "tag"),
        ([*CLOSED, "admin v m/c Deny x 1 Inbound * Storage *:*"], "Tcp 10.0.1.4 10.0.0.4:80", "blocked", "denied"),
        ([*CLOSED, *POOL, "pool lb/pool members=a addresses=10.0.0.77 vnet=v"], "Tcp 10.0.1.4 10.0.0.100:80", "unknown",
         "the other member may take it"),
        (TWO, "Tcp fd00:1::4 2606:4700::1111:443", "unknown", "IPv6 has a way out of its own"),
        ([*TWO, "route t r 20.0.0.0/8 VirtualAppliance 10.99.9.9", "nat n v/b public=p", "public p 20.9.9.9 nat=n",
          "storage acc eastus default=Deny", "region v westus"], "Tcp 10.0.1.4 acc.blob.core.windows.net:443",
         "unknown", "by an appliance it may come with an address that is let in"),
        ([*TWO, "nsg h", "rule h all 100 Inbound Allow * * *:*", "subnet v/b 10.0.1.0/24 nsg=h",
          "public p 20.1.1.1 vm=b", "subnet v/GatewaySubnet 10.0.8.0/27", "gateway gw v", "connection gw circuit",
          "effective b 0.0.0.0/0 VirtualNetworkGateway VirtualNetworkGateway"],
         "Tcp 8.8.8.8 20.1.1.1:80", "unknown", "forced tunnelling takes the answer elsewhere"),
        ([*TWO, "subnet v/nva 10.0.2.0/24 table=t", "vm nva 10.0.2.4 v/nva forwards=yes", "also out nva 10.0.3.4 v/out",
          "subnet v/out 10.0.3.0/24", "forwarding nva", "route t r 10.0.0.0/24 VirtualAppliance 10.0.2.4"],
         "Tcp 10.0.1.4 10.0.0.4:80", "unknown", "the appliance sends on by its other interface"),
        (TWO, "Udp 10.0.1.4 224.0.0.1:53", "unknown", "multicast does not go to the internet"),
        (TWO, "Udp 10.0.1.4 255.255.255.255:67", "unknown", "nor does broadcast"),
        (CLOSED, "Tcp 10.0.0.4 127.0.0.1:80", "passes", "the loopback is one's own"),
        (TWO, "Tcp fd00:1::4 10.0.0.4:80", "unknown", "no packet is of both families"),
        ([*TWO, "subnet v/AzureFirewallSubnet 10.0.9.0/26 table=t", "firewall fw 10.0.9.4 v",
          "fwrule fw 100/100 network Allow all Any * * *", "route t loop 10.0.0.0/24 VirtualAppliance 10.0.9.4"],
         "Tcp 10.0.1.4 10.0.0.4:80", "blocked", "a loop through a firewall"),
    ],
)  # fmt: skip
def test_an_outcome_is_certain_or_unknown(lines, asked, outcome, why):
    protocol, source, to = asked.split()
    address, _, port = to.rpartition(":")
    packet = flow(f"{protocol} 10.0.0.4 10.0.0.4:{port}")
    packet = type(packet)(protocol, source, None, address, int(port))
    assert walk(described(lines), packet).outcome == outcome, why


@pytest.mark.parametrize(
    ("rules", "mend"),
    [
        (["x 103 Inbound Deny * * *:*", "y 104 Inbound Deny * * *:*", "z 102 Inbound Allow Udp * *:*"], "priority 101"),
        (["x 100 Inbound Deny * * *:*", "y 101 Inbound Deny * * *:*"], None),
        (["x 4096 Inbound Allow Udp * *:*", "y 4095 Inbound Deny Tcp * *:*"], "without rule y"),
    ],
)
def test_a_rule_that_would_mend_has_a_priority_that_is_free(rules, mend):
    (fault,) = explain(described([*TWO, *(f"rule g {rule}" for rule in rules)]), flow("Tcp 10.0.1.4 10.0.0.4:80"))
    assert (mend in str(fault.mend)) if mend else fault.mend is None


def test_what_a_firewall_drops_by_a_route_is_mended():
    lines = [*TWO, "subnet v/AzureFirewallSubnet 10.0.9.0/26 table=f", "table f", "route f r 0.0.0.0/0 None",
             "firewall fw 10.0.9.4 v", "fwrule fw 100/100 network Allow all Any * * *",
             "route t r 0.0.0.0/0 VirtualAppliance 10.0.9.4"]  # fmt: skip
    (fault,) = explain(described(lines), flow("Tcp 10.0.1.4 8.8.8.8:80"))
    assert (fault.kind, str(fault.mend)) == ("route_none", "without route r of f")


def test_an_address_of_two_interfaces_near_is_nobodys():
    spokes = ["vnet hub 10.0.0.0/16", "subnet hub/s 10.0.0.0/24", "vm h 10.0.0.4 hub/s"]
    for name in ("one", "two"):
        spokes += [f"vnet {name} 10.1.0.0/16", f"subnet {name}/s 10.1.0.0/24", f"vm {name} 10.1.0.4 {name}/s",
                   f"peering hub {name}", f"peering {name} hub"]  # fmt: skip
    assert "networks that overlap" in walk(described(spokes), flow("Tcp 10.0.0.4 10.1.0.4:80")).hops[-1].reason


def test_an_address_that_nothing_has_is_a_drop_only_where_all_of_its_subnet_was_read():
    lines = ["vnet v 10.0.0.0/16", "subnet v/a 10.0.0.0/24", "vm a 10.0.0.4 v/a", "vm b 10.0.0.5 v/a"]
    made = described(lines)
    (home,) = made.all(VirtualNetwork).values()
    (place,) = home.subnets
    inside = tuple(f"{nic_id(name)}/ipConfigurations/one" for name in ("a", "b"))

    def outcome(**known: object) -> tuple[str, str | None]:
        changed = replace(home, subnets=(replace(place, **known),))
        walked = walk(made.with_resources(VirtualNetwork, [changed]), flow("Tcp 10.0.0.4 10.0.0.99:80"))
        return walked.outcome, walked.blocker.fault if walked.blocker else None

    assert outcome(occupants=inside) == ("blocked", "address_unused")
    assert outcome() == ("unknown", None)  # what is in the subnet was not told
    assert outcome(occupants=(*inside, f"{nic_id('c')}/ipConfigurations/one")) == ("unknown", None)
    assert outcome(occupants=inside, is_shared=True) == ("unknown", None)


def test_mail_and_interfaces_of_nobody_are_not_called_passing():
    made = described(["vnet v 10.0.0.0/16", "subnet v/a 10.0.0.0/24", "vm a 10.0.0.4 v/a", "vm b 10.0.0.5 v/a",
                      "public p 20.1.1.1 vm=a"])  # fmt: skip
    assert walk(made, flow("Tcp 10.0.0.4 40.0.0.1:443")).outcome == "passes"
    assert walk(made, flow("Tcp 10.0.0.4 40.0.0.1:25")).outcome == "unknown"
    alone = made.with_resources(Interface, [replace(made.one(Interface, nic_id("b")), machine=None)])
    assert walk(alone, flow("Tcp 10.0.0.4 10.0.0.5:443")).outcome == "unknown"


PEERED = [
    "vnet a 10.1.0.0/16", "vnet b 10.2.0.0/16", "nsg na", "subnet a/s 10.1.0.0/24 nsg=na", "subnet b/s 10.2.0.0/24",
    "vm va 10.1.0.4 a/s", "vm vb 10.2.0.4 b/s", "peering a b", "peering b a",
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "asked", "expected"),
    [
        (["peering a b state=Disconnected", "no peering b a"], "Tcp 10.1.0.4 10.2.0.4:443",
         [("peering_disconnected", "passes")]),
        (["peering a b state=Disconnected", "no peering b a"], "Tcp 10.2.0.4 10.1.0.4:443",
         [("peering_disconnected", "passes")]),
        ([], "Tcp 10.1.0.4 172.16.0.4:443", [("route_none", "blocked")]),
        (["rule na no 100 Outbound Deny * * *:*"], "Tcp 10.1.0.4 172.16.0.4:443",
         [("security_rule", "blocked"), ("route_none", "blocked")]),
    ],
)  # fmt: skip
def test_a_default_rule_that_only_lacks_a_route_is_no_fault_of_its_own(lines, asked, expected):
    found = explain(described([*PEERED, *lines]), flow(asked))
    assert [(fault.kind, fault.outcome) for fault in found] == expected


def computed_by_azure(made: Network) -> Network:
    """Return a network whose virtual networks this login may not read, with what Azure computed for its interfaces."""
    reads = [Missing(VirtualNetwork, home.id) for home in made.all(VirtualNetwork).values()]
    interfaces = [each for each in made.all(Interface).values() if each.machine]
    routes, groups = [], []
    for each in interfaces:
        told, gates = routes_of(made, each), groups_of(made, each)
        held = {"VirtualNetwork": gates.tags.virtual_network}
        if not told.learned_unknown and not gates.tags.may_hold_more:
            routes.append(EffectiveRoutes(id=each.id, routes=told.routes, reference="routes"))
            rules = [[_expanded(rule, held) for of in group.in_order.values() for rule in of] for group in gates.groups]
            expanded = tuple(replace(group, rules=tuple(of)) for group, of in zip(gates.groups, rules, strict=True))
            groups.append(EffectiveGroups(id=each.id, groups=expanded, reference="groups"))
    made = made.without(VirtualNetwork).with_resources(EffectiveRoutes, routes)
    return replace(made.with_resources(EffectiveGroups, groups), failed=dict.fromkeys(reads, "AuthorizationFailed"))


def _expanded(rule: SecurityRule, held: dict[str, tuple[str, ...]]) -> SecurityRule:
    ends = ([p for prefix in of for p in held.get(prefix, (prefix,))] for of in
            (rule.source_prefixes, rule.destination_prefixes))  # fmt: skip
    sources, destinations = map(tuple, ends)
    return replace(rule, source_prefixes=sources, destination_prefixes=destinations)


def test_what_azure_computed_for_an_interface_stops_a_packet_and_lets_none_pass():
    blocked = 0
    for seed in range(40):
        random = Random(seed)
        lines, places = random_lines(random)
        made = described(lines)
        blind = computed_by_azure(made)
        for there in (random_flow(random, places) for _ in range(4)):
            walked = walk(blind, there)
            assert walked.outcome != "passes" or walk(made, there).outcome == "passes", (seed, there, walked)
            assert walked.outcome != "blocked" or walk(made, there).outcome == "blocked", (seed, there, walked)
            blocked += walked.outcome == "blocked"
            explain(blind, there)
    assert blocked > 15


@pytest.mark.parametrize(
    ("lines", "asked", "told", "doubtful"),
    [
        ([], "Tcp 10.1.0.4 172.16.0.4:443", "route_none", True),
        (["table t", "route t r 172.16.0.0/12 None", "subnet a/s 10.1.0.0/24 nsg=na table=t"],
         "Tcp 10.1.0.4 172.16.0.4:443", "route_none", False),
        (["rule na x 100 Inbound Deny Tcp * *:443"], "Tcp 8.8.8.8 10.1.0.4:443", "security_rule", False),
        ([], "Tcp 8.8.8.8 10.1.0.4:443", "security_rule", False),
        ([], "Tcp 192.168.0.9 10.1.0.4:443", "security_rule", True),
        (["manager m"], "Tcp 8.8.8.8 10.1.0.4:443", None, False),
        (["rule na x 100 Inbound Allow Tcp * *:443"], "Tcp 8.8.8.8 10.1.0.4:443", None, False),
        ([], "Tcp 10.1.0.4 10.2.0.4:443", None, False),
        ([], "Tcp 10.1.0.4 8.8.8.8:443", None, False),
    ],
)  # fmt: skip
def test_without_its_network_a_drop_at_an_interface_is_told_with_what_may_lie_behind(lines, asked, told, doubtful):
    blind = computed_by_azure(described([*PEERED, *lines]))
    found = explain(blind, flow(asked))
    assert [fault.kind for fault in found][:1] == ([told] if told else [])
    assert any(fault.hop.doubt for fault in found[:1]) == doubtful
    assert told or walk(blind, flow(asked)).outcome == "unknown"
    asks = walk(blind.without(EffectiveRoutes).without(EffectiveGroups), flow(asked)).missing
    assert {each.of for each in asks} & {EffectiveRoutes, EffectiveGroups}


def test_a_route_whose_removal_leaves_the_answer_without_one_is_not_removed():
    made = network_of_world(load_scenario("two-office-search").world).without(EffectiveRoutes)
    (fault,) = explain(made, flow("Tcp 172.16.5.20 10.1.2.4:8443"))
    assert (fault.kind, fault.mend) == ("firewall_asymmetric", None)
