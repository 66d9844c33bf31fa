"""The CLI's JSON becomes rules and routes; what is not of that shape is refused."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.net import (
    Flow,
    evaluate_gates,
    group_from_arm,
    groups_from_effective_nsg,
    routes_from_effective_table,
    select_route,
)
from tests.exhaustive import examples

EFFECTIVE: dict[str, Any] = {
    "value": [
        {
            "association": {"networkInterface": {"id": "/x/nic"}},
            "effectiveSecurityRules": [
                {
                    "access": "Deny",
                    "destinationAddressPrefix": "0.0.0.0/0",
                    "destinationAddressPrefixes": ["0.0.0.0/0", "0.0.0.0/0"],
                    "destinationPortRange": "1433-1433",
                    "destinationPortRanges": ["1433-1433"],
                    "direction": "Inbound",
                    "expandedDestinationAddressPrefix": [],
                    "expandedSourceAddressPrefix": [],
                    "name": "securityRules/deny-sql",
                    "priority": 200,
                    "protocol": "Tcp",
                    "sourceAddressPrefix": "10.1.0.0/16",
                    "sourceAddressPrefixes": ["10.1.0.0/16"],
                    "sourcePortRange": "0-65535",
                    "sourcePortRanges": ["0-65535"],
                },
                {
                    "access": "Allow",
                    "destinationAddressPrefix": "VirtualNetwork",
                    "destinationAddressPrefixes": ["VirtualNetwork"],
                    "destinationPortRange": "0-65535",
                    "destinationPortRanges": ["0-65535"],
                    "direction": "Inbound",
                    "expandedDestinationAddressPrefix": ["10.0.0.0/16", "10.1.0.0/16"],
                    "expandedSourceAddressPrefix": ["10.0.0.0/16", "10.1.0.0/16"],
                    "name": "defaultSecurityRules/AllowVnetInBound",
                    "priority": 65000,
                    "protocol": "All",
                    "sourceAddressPrefix": "VirtualNetwork",
                    "sourceAddressPrefixes": ["VirtualNetwork"],
                    "sourcePortRange": "0-65535",
                    "sourcePortRanges": ["0-65535"],
                },
                {
                    "access": "Deny",
                    "destinationAddressPrefix": "0.0.0.0/0",
                    "direction": "Inbound",
                    "destinationPortRange": "0-65535",
                    "name": "defaultSecurityRules/DenyAllInBound",
                    "priority": 65500,
                    "protocol": "All",
                    "sourceAddressPrefix": "0.0.0.0/0",
                    "sourcePortRange": "0-65535",
                },
            ],
            "networkSecurityGroup": {"id": "/x/nsg"},
            "tagMap": {},
        },
        {"association": {"subnet": {"id": "/x/subnet"}}, "effectiveSecurityRules": [], "networkSecurityGroup": None},
    ]
}


@pytest.mark.parametrize(
    ("source", "port", "rule", "allowed"),
    [
        ("10.1.2.3", 1433, "deny-sql", False),
        ("10.1.2.3", 1434, "AllowVnetInBound", True),
        ("10.2.2.3", 1434, "DenyAllInBound", False),
        ("fd00::1", 1434, "DenyAllInBound", False),
    ],
)
def test_effective_groups_carry_the_prefixes_their_tags_stand_for(
    source: str, port: int, rule: str, allowed: bool
) -> None:
    nic = groups_from_effective_nsg(EFFECTIVE)[:1]
    destination = "10.0.0.4" if ":" not in source else "fd00::2"

    verdict = evaluate_gates(nic, Flow("Tcp", source, None, destination, port), "Inbound")

    assert verdict.rule is not None
    assert (verdict.rule.name, verdict.allowed, verdict.certain) == (rule, allowed, True)
    assert verdict.group is not None
    assert verdict.group.name == "/x/nsg"


def test_an_effective_rule_that_states_no_addresses_may_match_and_may_not() -> None:
    rule = {"name": "r/asg", "priority": 200, "access": "Allow", "direction": "Inbound", "sourceAddressPrefixes": []}
    nic = groups_from_effective_nsg([{"effectiveSecurityRules": [rule]}])

    verdict = evaluate_gates(nic, Flow("Tcp", "10.2.2.3", None, "10.0.0.4", 1433), "Inbound")

    assert (verdict.allowed, verdict.certain) == (False, False)


def test_the_association_says_at_which_gate_a_group_stands() -> None:
    assert [group.association for group in groups_from_effective_nsg(EFFECTIVE)] == ["nic", "subnet"]
    assert groups_from_effective_nsg(EFFECTIVE["value"]) == groups_from_effective_nsg(EFFECTIVE)


def test_a_group_of_nsg_show_takes_augmented_plain_and_application_group_rules() -> None:
    common = {"direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourcePortRange": "*"}
    plain = {
        **common,
        "name": "plain",
        "priority": 100,
        "sourceAddressPrefix": "*",
        "sourceAddressPrefixes": [],
        "destinationAddressPrefix": "10.0.0.4",
        "destinationPortRange": "443",
        "destinationPortRanges": [],
    }
    augmented = {
        **common,
        "name": "augmented",
        "priority": 110,
        "sourceAddressPrefix": "",
        "sourceAddressPrefixes": ["10.0.1.0/24", "Internet"],
        "destinationAddressPrefix": None,
        "destinationApplicationSecurityGroups": [{"id": "/x/asg"}],
        "destinationPortRange": None,
        "destinationPortRanges": ["80", "8000-8099"],
    }

    group = group_from_arm({"id": "/x/nsg", "securityRules": [plain, augmented]}, "subnet")

    assert group.name == "/x/nsg"
    assert group.rules[0].destination_ports == ("443",)
    assert group.rules[0].source_prefixes == ("*",)
    assert group.rules[1].source_prefixes == ("10.0.1.0/24", "Internet")
    assert group.rules[1].destination_prefixes == ("/x/asg",)
    assert group.rules[1].destination_ports == ("80", "8000-8099")


def test_each_prefix_of_an_effective_route_is_a_route() -> None:
    table = {
        "value": [
            {
                "addressPrefix": ["10.0.0.0/16", "10.1.0.0/16"],
                "nextHopIpAddress": [],
                "nextHopType": "VnetLocal",
                "source": "Default",
                "state": "Active",
            },
            {
                "addressPrefix": ["10.1.2.0/24"],
                "name": "blackhole",
                "nextHopIpAddress": ["10.0.9.4"],
                "nextHopType": "VirtualAppliance",
                "source": "User",
                "state": "Active",
            },
        ]
    }

    routes = routes_from_effective_table(table)

    assert len(routes) == 3
    chosen = select_route(routes, "10.1.2.3")
    assert chosen is not None
    assert (chosen.name, chosen.next_hop_ip) == ("blackhole", "10.0.9.4")


@pytest.mark.parametrize("answer", [None, "text", 7, {"values": []}, {"value": "x"}, ["x"]])
def test_json_of_another_shape_is_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|not the JSON"):
        groups_from_effective_nsg(answer)
    with pytest.raises(ValueError, match=r"expected|not the JSON"):
        routes_from_effective_table(answer)


ARM_GROUP = {
    "id": "/x/nsg",
    "securityRules": [
        {
            "name": "r",
            "priority": 100,
            "direction": "Inbound",
            "access": "Allow",
            "sourceAddressPrefixes": ["Internet"],
            "sourceApplicationSecurityGroups": [{"id": "/x/asg"}],
            "destinationPortRange": "443",
        }
    ],
    "defaultSecurityRules": [],
}
ROUTES = {"value": [{"addressPrefix": ["10.0.0.0/16"], "nextHopIpAddress": ["10.0.0.4"], "name": "r"}]}
junk = (
    st.none() | st.booleans() | st.integers(-5, 70000) | st.text(max_size=5) | st.just([]) | st.just({}) | st.just([7])
)


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """The JSON with one part of it replaced by something else."""
    if not isinstance(value, (dict, list)) or not value or draw(st.integers(0, 4)) == 0:
        return draw(junk)
    if isinstance(value, list):
        index = draw(st.integers(0, len(value) - 1))
        return [draw(damaged(item)) if i == index else item for i, item in enumerate(value)]
    key = draw(st.sampled_from(sorted(value)))
    return {**value, key: draw(damaged(value[key]))}


@settings(max_examples=examples(150))
@given(damaged(EFFECTIVE), damaged(ARM_GROUP), damaged(ROUTES))
def test_damaged_json_is_read_or_refused_with_a_value_error(groups: Any, group: Any, routes: Any) -> None:
    with contextlib.suppress(ValueError):
        groups_from_effective_nsg(groups)
    with contextlib.suppress(ValueError):
        group_from_arm(group, "nic")
    with contextlib.suppress(ValueError):
        routes_from_effective_table(routes)
