"""Changes that somebody proposes: what Azure computed holds them too, and one that Azure would refuse is refused."""

from __future__ import annotations

import pytest

from ghost.net import proposal_of, proposed
from ghost.net.packet_path import walk
from ghost.net.resources import EffectiveRoutes
from ghost.net.routes import Route
from tests.net.small_network import flow, network, nic, nic_id, peering, rules, subnet, table, vnet

MADE = network(
    vnet(
        "home",
        "10.0.0.0/16",
        subnet("home/web", "10.0.0.0/24", table="t"),
        subnet("home/db", "10.0.1.0/24", nsg="n", table="u"),
        peerings=(peering("far", "10.9.0.0/16"),),
    ),
    vnet("far", "10.9.0.0/16"),
    nic("web", "10.0.0.4", "home/web"),
    nic("db", "10.0.1.4", "home/db"),
    rules("n", "shut 200 Inbound Deny Tcp * *:5432", "other 300 Outbound Allow Tcp * *:1"),
    table("t", "hole 10.0.1.0/24 None"),
    table("u", "hole 10.0.1.0/24 None"),
)
HOLE = Route("10.0.1.0/24", "None", source="User", name="hole")
SYSTEM = Route("10.0.0.0/16", "VnetLocal")


def test_what_azure_computed_follows_a_change_of_the_table_that_leads_it():
    computed = [EffectiveRoutes(id=nic_id(name), routes=(SYSTEM, HOLE)) for name in ("web", "db")]
    read = MADE.with_resources(EffectiveRoutes, computed)
    without = proposed("no-route t hole", read).applied(read)
    assert [known.routes for known in without.all(EffectiveRoutes).values()] == [(SYSTEM,), (SYSTEM, HOLE)]
    again = proposed("route t again 10.0.1.4/32 None", without).applied(without)
    assert walk(again, flow("Tcp 10.0.0.4 10.0.1.4:1")).blocker.rule == "10.0.1.4/32 -> None (again), User route"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rule n x 200 Inbound Allow Tcp * * 80", "shut of n has priority 200"),
        ("rule n x 99 Inbound Allow Tcp * * 80", "100 to 4096"),
        ("rule n x 150 Inbound Allow Foo * * 80", "none of Tcp"),
        ("rule n x 150 Inbound Allow Tcp 10.0.0.0/33 * 80", "not a prefix"),
        ("rule n x 150 Inbound Allow Tcp * * http", "port"),
        ("no-rule n DenyAllInBound", "shut, other"),
        ("route t x 10.0.0.0/8 Nowhere", "none of VirtualAppliance"),
        ("route t x 10.0.0.0/8 VirtualAppliance", "takes the address"),
        ("peering far home", "no peering"),
        ("start nobody", "there are: db, web"),
        ("mend everything", "give one of: rule GROUP"),
    ],
)
def test_what_azure_would_refuse_is_refused_with_the_reason(text, why):
    with pytest.raises(ValueError, match=why):
        proposed(text, MADE)


def test_a_rule_with_a_known_name_takes_its_place():
    opened = proposed("rule n shut 200 Inbound Allow Tcp * * 5432", MADE).applied(MADE)
    routed = proposed("no-route t hole", opened).applied(opened)
    assert walk(routed, flow("Tcp 10.0.0.4 10.0.1.4:5432")).outcome == "passes"


@pytest.mark.parametrize(
    "text",
    [
        "rule n x 150 Inbound Allow Tcp 10.0.0.0/24,Internet '*' 5432,80-90",
        "no-rule n shut",
        "route t x 10.0.1.0/24 VirtualAppliance 10.0.0.9",
        "route t 'a b' 10.0.1.0/24 None",
        "no-route t hole",
        "peering home far",
        "forwarded home far",
        "start web",
        "nat-gateway home web",
        "private home db",
        "service-endpoint home db Microsoft.Storage",
    ],
)
def test_a_change_has_the_text_that_proposes_it(text):
    assert proposal_of(proposed(text, MADE), MADE) == text
