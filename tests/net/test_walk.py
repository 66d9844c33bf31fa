"""A packet's way: what stops it is certain, what is not known is unknown, and a mend is walked, not said."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from ghost.net import azure_resources
from ghost.net.az_reads import argv_of
from ghost.net.faults import explain
from ghost.net.guest import Ruleset, read_iptables, read_routes
from ghost.net.guest.listeners import read_listeners
from ghost.net.network import Missing, Network
from ghost.net.packet_path import walk
from ghost.net.resources import (
    EffectiveGroups,
    EffectiveRoutes,
    Guest,
    Interface,
    Machine,
    RouteTable,
    RuleSet,
    SubscriptionInterfaces,
    VirtualNetwork,
    name_of,
)  # fmt: skip
from ghost.net.routes import Route
from ghost.net.security import Flow, SecurityGroup
from tests.net.description import described
from tests.net.small_network import (
    flow,
    machine_id,
    network,
    nic,
    nic_id,
    nsg_id,
    peering,
    rule,
    rules,
    subnet,
    table,
    vnet,
)  # fmt: skip

WEB_TO_DB = flow("Tcp 10.0.0.4 10.0.1.4:5432")


def one_vnet(*more: object, web_table: str | None = None, db_nsg: str | None = None, stopped=()) -> Network:
    home = vnet(
        "home",
        "10.0.0.0/16",
        subnet("home/web", "10.0.0.0/24", table=web_table),
        subnet("home/db", "10.0.1.0/24", nsg=db_nsg),
        subnet("home/nva", "10.0.2.0/24"),
    )
    machines = (
        nic("web", "10.0.0.4", "home/web"),
        nic("db", "10.0.1.4", "home/db"),
        nic("nva", "10.0.2.4", "home/nva"),
    )
    return network(home, *machines, *more, stopped=stopped)


def hub_and_spokes(**spoke_b: object) -> Network:
    """Spokes a and b, each peered with a hub that has an appliance; a route of each leads through it."""
    return network(
        vnet("hub", "10.0.0.0/16", subnet("hub/nva", "10.0.0.0/24"), peerings=(
            peering("a", "10.1.0.0/16"), peering("b", "10.2.0.0/16"))),
        vnet("a", "10.1.0.0/16", subnet("a/s", "10.1.0.0/24", table="ra"), peerings=(
            peering("hub", "10.0.0.0/16", allow_forwarded=True),)),
        vnet("b", "10.2.0.0/16", subnet("b/s", "10.2.0.0/24", table="rb"), peerings=(
            peering("hub", "10.0.0.0/16", **{"allow_forwarded": True, **spoke_b}),)),
        table("ra", "to-b 10.2.0.0/16 VirtualAppliance 10.0.0.4"),
        table("rb", "to-a 10.1.0.0/16 VirtualAppliance 10.0.0.4"),
        nic("nva", "10.0.0.4", "hub/nva", forwards=True), nic("va", "10.1.0.4", "a/s"), nic("vb", "10.2.0.4", "b/s"),
    )  # fmt: skip


def test_a_packet_that_nothing_stops_passes_there_and_back():
    walked = walk(one_vnet(), WEB_TO_DB)
    assert walked.outcome == "passes"
    assert {(hop.leg, hop.kind) for hop in walked.hops} == {
        ("forward", "machine"), ("forward", "route"), ("return", "machine"), ("return", "route"),
    }  # fmt: skip
    assert all(hop.references for hop in walked.hops)


@pytest.mark.parametrize(
    ("made", "fault", "rule_named", "mend"),
    [
        (one_vnet(rules("n", "no 200 Inbound Deny Tcp 10.0.0.0/24 *:5000-6000"), db_nsg="n"),
         "security_rule", "no", "without rule no of n"),
        (one_vnet(rules("n", "yes 300 Inbound Allow Tcp * *:80", "no 400 Inbound Deny * * *:*"), db_nsg="n"),
         "security_rule", "no", "without rule no of n"),
        (one_vnet(table("r", "hole 10.0.1.0/24 None"), web_table="r"), "route_none", "hole", "without route hole"),
        (one_vnet(stopped=("db",)), "machine_stopped", None, "with db running"),
        (one_vnet(stopped=("web",)), "machine_stopped", None, "with web running"),
        (one_vnet(table("r", "x 10.0.1.0/24 VirtualAppliance 10.0.2.4"), web_table="r"),
         "ip_forwarding_off", "enableIPForwarding", "IP forwarding on at nva-nic"),
    ],
)  # fmt: skip
def test_what_stops_a_packet_is_named_with_the_change_that_lets_it_pass(made, fault, rule_named, mend):
    (found, *others) = explain(made, WEB_TO_DB)
    assert (found.kind, others) == (fault, [])
    assert (rule_named or "") in str(found.hop.rule)
    assert mend in str(found.mend)
    assert walk(found.mend.applied(made), WEB_TO_DB).outcome == found.outcome != "blocked"


def test_where_no_removal_helps_it_is_mended_by_a_rule_for_exactly_this_flow():
    made = one_vnet(
        rules("n", "no-vnet 4000 Inbound Deny * VirtualNetwork *:*", "y 100 Inbound Allow Tcp 1.2.3.4 *:1"), db_nsg="n"
    )
    outside = flow("Tcp 10.0.0.4 10.0.1.4:1")
    (fault,) = explain(made, outside)
    assert str(fault.mend) == "without rule no-vnet of n"
    denied = one_vnet(rules("n", "web 100 Outbound Deny * * *:*"))
    made = denied.with_resources(Interface, [nic("web", "10.0.0.4", "home/web", nsg="n")])
    made = made.with_resources(RuleSet, [rules("n", "other 100 Outbound Allow Udp * *:53")])
    assert explain(made, WEB_TO_DB) == []  # AllowVnetOutBound
    denying = rules("n", "d 4096 Outbound Deny * * *:*", "e 4095 Outbound Deny Tcp * *:*")
    made = made.with_resources(RuleSet, [denying])
    (fault,) = explain(made, WEB_TO_DB)
    assert "allow-flow (priority 4094" in str(fault.mend)


def test_two_faults_are_two():
    made = one_vnet(
        table("r", "hole 10.0.1.0/24 None"), rules("n", "no 200 Inbound Deny Tcp * *:5432"), web_table="r", db_nsg="n"
    )
    assert [(fault.kind, fault.outcome) for fault in explain(made, WEB_TO_DB)] == [
        ("route_none", "blocked"),
        ("security_rule", "passes"),
    ]


def test_a_guest_without_a_route_sends_nothing():
    routes = [{"dst": "10.0.0.0/24", "dev": "eth0", "table": "main"}]
    lost = with_guest(one_vnet(), "web", routes=read_routes(json.dumps(routes)))
    blocker = walk(lost, WEB_TO_DB).blocker
    assert (blocker.fault, blocker.verdict, blocker.rule) == ("guest_route", "reject", "no route")
    found = [
        *routes,
        {"dst": "default", "gateway": "10.0.0.1", "dev": "eth0", "table": "main", "metrics": [{"mtu": 1400}]},
    ]
    whole = walk(with_guest(one_vnet(), "web", routes=read_routes(json.dumps(found))), WEB_TO_DB)
    assert whole.outcome == "passes"
    assert "by eth0 via 10.0.0.1, MTU 1400" in " ".join(hop.reason for hop in whole.hops)


def test_interfaces_of_a_peer_in_another_subscription_are_read_there():
    lines = ["vnet a 10.1.0.0/16", "vnet b 10.2.0.0/16", "subnet a/s 10.1.0.0/24", "subnet b/s 10.2.0.0/24",
             "vm va 10.1.0.4 a/s", "vm vb 10.2.0.4 b/s", "peering a b", "peering b a"]  # fmt: skip
    both = described(lines)
    here, there = both.all(VirtualNetwork).values()
    moved = replace(
        there,
        id=there.id.replace("/s/", "/t/"),
        subnets=tuple(replace(each, id=each.id.replace("/s/", "/t/", 1)) for each in there.subnets),
    )
    peered = replace(here, peerings=tuple(replace(each, remote=moved.id) for each in here.peerings))
    made = both.without(VirtualNetwork).with_resources(VirtualNetwork, [peered, moved], complete=True)
    far = replace(both.one(Interface, nic_id("vb")), subnet=moved.subnets[0].id, id=nic_id("vb").replace("/s/", "/t/"))
    near = made.without(Interface).with_resources(Interface, [made.one(Interface, nic_id("va"))], complete=True)
    walked = walk(near, flow("Tcp 10.1.0.4 10.2.0.4:443"))
    assert walked.missing == (Missing(SubscriptionInterfaces, "/subscriptions/t"),)
    assert argv_of(*walked.missing) == ("az", "network", "nic", "list", "--subscription", "t", "-o", "json")
    told = near.with_resources(Interface, [far])
    assert walk(told, flow("Tcp 10.1.0.4 10.2.0.4:443")).outcome == "passes"


def test_a_peering_leads_to_the_address_space_that_it_was_synced_with():
    def spoke(remote: dict[str, object]) -> VirtualNetwork:
        body = {
            "id": vnet("a", "").id, "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
            "subnets": [{"id": subnet("a/s", "").id, "addressPrefix": "10.1.0.0/24"}],
            "virtualNetworkPeerings": [{
                "name": "to-b", "peeringState": "Connected", "remoteVirtualNetwork": {"id": vnet("b", "").id},
                "allowVirtualNetworkAccess": True, **remote}],
        }  # fmt: skip
        return azure_resources.virtual_networks([body])[0]

    grown = {"addressPrefixes": ["10.2.0.0/16", "10.3.0.0/16"]}
    lines = ["vnet a 10.1.0.0/16", "vnet b 10.2.0.0/16,10.3.0.0/16", "subnet a/s 10.1.0.0/24", "subnet b/s 10.3.0.0/24",
             "vm va 10.1.0.4 a/s", "vm vb 10.3.0.4 b/s", "peering a b", "peering b a"]  # fmt: skip
    there = flow("Tcp 10.1.0.4 10.3.0.4:443")
    behind = {"remoteAddressSpace": {"addressPrefixes": ["10.2.0.0/16"]}, "remoteVirtualNetworkAddressSpace": grown}
    (fault,) = explain(described(lines).with_resources(VirtualNetwork, [spoke(behind)]), there)
    assert (fault.kind, fault.outcome, str(fault.mend)) == (
        "peering_not_synced", "passes", "with the peering of a to b synced")  # fmt: skip
    known = described(lines).with_resources(VirtualNetwork, [spoke({"remoteAddressSpace": grown})])
    assert walk(known, there).outcome == "passes"


def test_a_security_admin_rule_is_mended_where_it_stands():
    made = described(
        ["vnet a 10.1.0.0/16", "subnet a/s 10.1.0.0/24", "vm va 10.1.0.4 a/s", "vm vb 10.1.0.5 a/s",
         "admin a m/c Deny no-ssh 10 Inbound Tcp * *:22"]
    )  # fmt: skip
    (fault,) = explain(made, flow("Tcp 10.1.0.4 10.1.0.5:22"))
    assert (fault.kind, fault.outcome) == ("admin_rule", "passes")
    assert str(fault.mend) == "without the security admin rule no-ssh of m"


def test_an_azure_firewall_is_mended_by_a_rule_or_by_leading_answers_past_it():
    hub = [
        "vnet hub 10.0.0.0/16", "vnet a 10.1.0.0/16", "table ta", "subnet hub/AzureFirewallSubnet 10.0.1.0/26",
        "subnet hub/s 10.0.2.0/24", "subnet a/s 10.1.0.0/24 table=ta", "firewall fw 10.0.1.4 hub", "vm va 10.1.0.4 a/s",
        "vm vh 10.0.2.4 hub/s", "peering hub a", "peering a hub", "route ta hub 10.0.2.0/24 VirtualAppliance 10.0.1.4",
    ]  # fmt: skip
    denied, one_way = explain(described(hub), flow("Tcp 10.1.0.4 10.0.2.4:443"))[0], described(hub)
    assert (denied.kind, denied.outcome) == ("azure_firewall", "unknown")  # the answer goes past the firewall
    (fault,) = explain(one_way, flow("Tcp 10.0.2.4 10.1.0.4:443"))
    assert (fault.kind, str(fault.mend), fault.outcome) == ("firewall_asymmetric", "without route hub of ta", "passes")


@pytest.mark.parametrize("state", ["Disconnected", "Initiated"])
def test_a_peering_that_is_not_connected_stops_both_ways(state):
    made = hub_and_spokes()
    direct = flow("Tcp 10.1.0.4 10.0.0.4:22")
    assert walk(made, direct).outcome == "passes"
    for owner, remote in (("a", "hub"), ("hub", "a")):
        home = made.one(VirtualNetwork, vnet(owner, "10.9.0.0/16").id)
        broken = replace(
            home, peerings=tuple(replace(p, state=state) if p.name == f"to-{remote}" else p for p in home.peerings)
        )
        (fault,) = explain(made.with_resources(VirtualNetwork, [broken]), direct)
        assert (fault.kind, fault.outcome) == ("peering_disconnected", "passes")
        assert state in fault.hop.reason


def test_without_access_the_tag_does_not_hold_the_peer_but_a_rule_with_its_addresses_lets_it_in():
    def made(*texts: str) -> Network:
        return network(
            vnet("a", "10.1.0.0/16", subnet("a/s", "10.1.0.0/24"), peerings=(peering("b", "10.2.0.0/16"),)),
            vnet("b", "10.2.0.0/16", subnet("b/s", "10.2.0.0/24", nsg="n"), peerings=(
                peering("a", "10.1.0.0/16", allow_access=False),)),
            rules("n", *texts), nic("va", "10.1.0.4", "a/s"), nic("vb", "10.2.0.4", "b/s"),
        )  # fmt: skip

    there = flow("Tcp 10.1.0.4 10.2.0.4:443")
    assert walk(made(), there).blocker.rule == "DenyAllInBound"
    assert walk(made("yes 100 Inbound Allow Tcp 10.1.0.0/16 *:443"), there).outcome == "passes"


def test_through_an_appliance_the_far_spoke_must_let_forwarded_traffic_in():
    there = flow("Tcp 10.1.0.4 10.2.0.4:443")
    walked = walk(hub_and_spokes(), there)
    assert walked.outcome == "unknown"  # what the appliance does with it is not Azure's
    assert [hop.reason for hop in walked.hops if hop.verdict == "unknown"] == [
        "Azure does not show what nva-nic forwards"
    ] * 2
    closed = hub_and_spokes(allow_forwarded=False)
    assert walk(closed, there).outcome == "unknown"  # the appliance may translate the source to its own address
    assert "unless nva-nic translates addresses" in " ".join(hop.reason for hop in walk(closed, there).hops)
    (fault,) = explain(with_guest(closed, "nva", DROPS.format("-A FORWARD -j ACCEPT\n"), forwards=True), there)
    assert fault.kind == "peering_forwarded"
    assert str(fault.mend) == "with forwarded traffic of hub let into b"


def test_a_loop_of_routes_ends():
    made = one_vnet(table("r", "x 10.0.1.0/24 VirtualAppliance 10.0.0.9"), web_table="r")
    made = made.with_resources(Interface, [nic("nva", "10.0.0.9", "home/web")])  # its own subnet has the route too
    assert [(fault.kind, fault.outcome) for fault in explain(made, WEB_TO_DB)] == [("ip_forwarding_off", "unknown")]
    read = with_guest(made, "nva", DROPS.format("-A FORWARD -j ACCEPT\n"), forwards=True)  # it translates nothing
    assert [fault.kind for fault in explain(read, WEB_TO_DB)] == ["ip_forwarding_off", "routing_loop"]


def test_an_answer_past_the_appliance_is_not_called_a_fault():
    made = hub_and_spokes()
    made = made.with_resources(RouteTable, [table("rb", "x 192.168.0.0/16 None")])
    spoke = made.one(VirtualNetwork, vnet("b", "").id)
    direct = replace(spoke, peerings=(*spoke.peerings, peering("a", "10.1.0.0/16")))
    other = made.one(VirtualNetwork, vnet("a", "").id)
    both = replace(other, peerings=(*other.peerings, peering("b", "10.2.0.0/16")))
    walked = walk(made.with_resources(VirtualNetwork, [direct, both]), flow("Tcp 10.1.0.4 10.2.0.4:443"))
    assert walked.outcome == "unknown"
    assert "the packet but not its answer" in walked.hops[-1].reason


def test_what_was_not_read_is_unknown_and_says_what_to_read():
    whole = one_vnet(rules("n", "no 200 Inbound Deny Tcp * *:5432"), db_nsg="n")
    assert walk(Network(), WEB_TO_DB).missing == (Missing(Interface),)
    for kind, missing in (
        (RuleSet, Missing(RuleSet, nsg_id("n"))),
        (Machine, Missing(Machine, machine_id("web"))),
    ):
        walked = walk(whole.without(kind), WEB_TO_DB)
        assert missing in walked.missing
        assert walked.outcome == ("blocked" if kind is Machine else "unknown")  # a later drop is certain


def test_a_gateway_may_teach_routes_which_only_azure_knows():
    made = one_vnet()
    home = next(iter(made.all(VirtualNetwork).values()))
    with_gateway = made.with_resources(
        VirtualNetwork, [replace(home, subnets=(*home.subnets, subnet("home/GatewaySubnet", "10.0.9.0/24")))]
    )
    assert walk(with_gateway, WEB_TO_DB).outcome == "passes"  # routes within the network win over learned ones
    away = walk(with_gateway, flow("Tcp 10.0.0.4 172.16.0.4:443"))
    assert away.missing == (Missing(EffectiveRoutes, nic_id("web")),)
    learned = EffectiveRoutes(
        id=nic_id("web"), routes=(Route("172.16.0.0/16", "None", source="Default"),), reference="read-routes"
    )
    told = with_gateway.with_resources(EffectiveRoutes, [learned])
    assert walk(told, flow("Tcp 10.0.0.4 172.16.0.4:443")).blocker.references == ("read-routes",)


def test_a_rule_by_a_tag_that_is_not_known_asks_for_what_azure_computed():
    made = one_vnet(rules("n", "sql 100 Inbound Deny Tcp Sql *:5432"), db_nsg="n")
    walked = walk(made, WEB_TO_DB)
    assert (walked.outcome, walked.missing) == ("unknown", (Missing(EffectiveGroups, nic_id("db")),))
    computed = SecurityGroup(nsg_id("n"), "subnet", (rule("sql 100 Inbound Deny Tcp 20.0.0.0/8 *:5432"),))
    told = made.with_resources(EffectiveGroups, [EffectiveGroups(id=nic_id("db"), groups=(computed,))])
    assert walk(told, WEB_TO_DB).outcome == "passes"


def test_overlapping_addresses_are_not_guessed():
    made = network(
        vnet("a", "10.0.0.0/16", subnet("a/s", "10.0.0.0/24")), vnet("b", "10.0.0.0/16", subnet("b/s", "10.0.0.0/24")),
        nic("one", "10.0.0.4", "a/s"), nic("two", "10.0.0.4", "b/s"), nic("far", "10.0.0.5", "b/s"),
    )  # fmt: skip
    there = flow("Tcp 10.0.0.4 10.0.0.5:80")
    assert "name the one" in walk(made, there).hops[0].reason
    assert walk(made, there, source=nic_id("two")).outcome == "passes"
    assert walk(made, there, source=nic_id("one")).outcome == "unknown"


WORDS = (
    ["Allow", "Deny"],
    ["Tcp", "Udp", "*"],
    ["*", "10.0.0.0/24", "VirtualNetwork", "10.9.0.0/16"],
    ["*:*", "*:5432", "*:80", "*:5000-6000"],
)


def test_rules_below_the_decisive_one_and_their_order_change_nothing():
    random = Random(15)
    for _ in range(200):
        texts = [
            " ".join([f"r{n}", str(random.randrange(100, 4000)), "Inbound", *(random.choice(words) for words in WORDS)])
            for n in range(6)
        ]
        texts = list({text.split()[1]: text for text in texts}.values())
        made = one_vnet(rules("n", *texts), db_nsg="n")
        gate = next(hop for hop in walk(made, WEB_TO_DB).hops if hop.kind == "security_group")
        above = [text for text in texts if int(text.split()[1]) <= (gate.priority or 0)]
        for other in (random.sample(texts, len(texts)), above):
            same = next(
                h for h in walk(one_vnet(rules("n", *other), db_nsg="n"), WEB_TO_DB).hops if h.kind == "security_group"
            )
            assert (same.verdict, same.rule) == (gate.verdict, gate.rule)


def with_guest(
    made: Network, name: str, save: str | None = None, sockets: str | None = None, **more: object
) -> Network:
    guest = Guest(
        id=machine_id(name),
        reference=f"inside-{name}",
        packet_filter=read_iptables(save) if save else None,
        listeners=tuple(("tcp", listener) for listener in read_listeners(sockets)) if sockets is not None else None,
        **more,  # type: ignore[arg-type]
    )
    return made.with_resources(Guest, [guest])


DROPS = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{}COMMIT\n"
ANSWERS = "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\n"


@pytest.mark.parametrize(
    ("guest", "outcome", "fault"),
    [
        ({"save": DROPS.format("")}, "blocked", "guest_firewall"),
        ({"save": DROPS.format("-A INPUT -p tcp --dport 5432 -j ACCEPT\n")}, "passes", None),
        ({"save": DROPS.format("-A INPUT -p tcp -j REJECT --reject-with tcp-reset\n")}, "blocked", "guest_firewall"),
        ({"save": DROPS.format("-A INPUT -i lo -j ACCEPT\n")}, "blocked", "guest_firewall"),
        ({"save": DROPS.format("-A INPUT ! -i lo -p tcp -j ACCEPT\n")}, "passes", None),
        ({"save": DROPS.format("-A INPUT -i eth0 -j ACCEPT\n")}, "unknown", None),
        ({"save": DROPS.format("-A INPUT -p tcp -m recent --name x --rcheck -j ACCEPT\n")}, "unknown", None),
        ({"sockets": "LISTEN 0 128 0.0.0.0:5432 0.0.0.0:*\n"}, "passes", None),
        ({"sockets": "LISTEN 0 128 127.0.0.1:5432 0.0.0.0:*\n"}, "blocked", "not_listening"),
        ({"sockets": ""}, "blocked", "not_listening"),
    ],
)
def test_the_guest_at_the_destination_decides_where_it_was_read(guest, outcome, fault):
    walked = walk(with_guest(one_vnet(), "db", **guest), WEB_TO_DB)
    assert (walked.outcome, walked.blocker and walked.blocker.fault) == (outcome, fault)
    (decided,) = [hop for hop in walked.hops if hop.kind == "guest" and hop.leg == "forward"]
    assert decided.references == ("inside-db",)


def test_the_guest_that_sends_must_let_the_answer_in():
    assert walk(with_guest(one_vnet(), "web", DROPS.format("")), WEB_TO_DB).blocker.leg == "return"
    assert walk(with_guest(one_vnet(), "web", DROPS.format(ANSWERS)), WEB_TO_DB).outcome == "passes"


def test_an_appliance_that_was_read_forwards_or_does_not():
    there = flow("Tcp 10.1.0.4 10.2.0.4:443")
    assert walk(with_guest(hub_and_spokes(), "nva", forwards=True), there).outcome == "passes"
    assert walk(with_guest(hub_and_spokes(), "nva", forwards=False), there).blocker.fault == "guest_not_forwarding"
    closed = DROPS.format("-A FORWARD -j DROP\n")
    assert walk(with_guest(hub_and_spokes(), "nva", closed, forwards=True), there).blocker.fault == "guest_firewall"


MASQUERADING = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -o eth0 -j MASQUERADE\nCOMMIT\n"


def test_behind_an_appliance_that_masquerades_its_address_counts_and_it_knows_the_answer() -> None:
    lines = [
        "vnet v 10.0.0.0/16", "table t", "subnet v/web 10.0.0.0/24 table=t", "nsg g", "subnet v/db 10.0.1.0/24 nsg=g",
        "subnet v/dmz 10.0.2.0/24", "vm web 10.0.0.4 v/web", "vm db 10.0.1.4 v/db",
        "vm nva 10.0.2.4 v/dmz forwards=yes",
        "route t all 10.0.1.0/24 VirtualAppliance 10.0.2.4", "rule g nva 100 Inbound Allow Tcp 10.0.2.4 *:5432",
        "rule g rest 200 Inbound Deny * * *:*",
    ]  # fmt: skip
    flow = Flow("Tcp", "10.0.0.4", None, "10.0.1.4", 5432)
    network = described(lines)
    routes = read_routes('[{"dst": "default", "gateway": "10.0.2.1", "dev": "eth0"}]')
    inside = Guest(id=machine_id("nva"), packet_filter=read_iptables(MASQUERADING), forwards=True, routes=routes)
    plain = replace(inside, packet_filter=Ruleset())

    seen = walk(network.with_resources(Guest, [inside]), flow)

    assert (seen.outcome, [hop.rule for hop in seen.hops if hop.kind == "security_group"][-1]) == ("passes", "nva")
    assert [name_of(hop.resource) for hop in seen.hops if hop.leg == "return" and hop.kind == "appliance"] == [
        "nva-nic"
    ]
    assert walk(network.with_resources(Guest, [plain]), flow).blocker is not None
