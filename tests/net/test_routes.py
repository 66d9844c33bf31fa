"""Route selection against an oracle over integers, and against Azure's documentation."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.net import Route, select_route
from tests.exhaustive import examples

RANK = {"User": 0, "VirtualNetworkGateway": 1, "Default": 2}


@st.composite
def routes(draw: st.DrawFn) -> tuple[int, int, Route]:
    bits = draw(st.sampled_from([0, 8, 12, 16, 24, 32]))
    base = draw(st.sampled_from([0x0A000000, 0x0A010000, 0x0A010204, 0xAC100000]))
    base = base >> (32 - bits) << (32 - bits)
    source = draw(st.sampled_from(list(RANK)))
    hop = {"User": "VirtualAppliance", "VirtualNetworkGateway": "VirtualNetworkGateway", "Default": "Internet"}[source]
    state = draw(st.sampled_from(["Active", "Active", "Invalid"]))
    return base, bits, Route(f"{IPv4Address(base)}/{bits}", hop, None, source, state)


@settings(max_examples=examples(300))
@given(st.lists(routes(), max_size=8), st.sampled_from([0x0A010204, 0x0A010304, 0x0A020000, 0xAC100001, 0x08080808]))
def test_the_longest_prefix_wins_then_user_then_bgp_then_default(
    table: list[tuple[int, int, Route]], address: int
) -> None:
    chosen = select_route([route for _, _, route in table], str(IPv4Address(address)))

    expected = None
    for bits in range(32, -1, -1):
        for source in RANK:
            for base, length, route in table:
                fits = length == bits and route.source == source and route.state == "Active"
                if expected is None and fits and address >> (32 - bits) == base >> (32 - bits):
                    expected = route
    assert chosen == expected


LOCAL = Route("10.0.0.0/16", "VnetLocal")
INTERNET = Route("0.0.0.0/0", "Internet")
DROP = Route("10.0.0.0/8", "None")


@pytest.mark.parametrize(
    ("table", "address", "hop"),
    [
        ([LOCAL, INTERNET, DROP], "10.0.3.4", "VnetLocal"),
        ([LOCAL, INTERNET, DROP], "10.9.3.4", "None"),
        ([LOCAL, INTERNET, DROP], "8.8.8.8", "Internet"),
        (
            [LOCAL, INTERNET, Route("0.0.0.0/0", "VirtualAppliance", "10.0.100.4", "User")],
            "8.8.8.8",
            "VirtualAppliance",
        ),
        (
            [LOCAL, Route("10.0.0.0/16", "VirtualAppliance", "10.0.100.4", "User")],
            "10.0.3.4",
            "VirtualAppliance",
        ),
        (
            [INTERNET, Route("0.0.0.0/0", "VirtualNetworkGateway", None, "VirtualNetworkGateway")],
            "8.8.8.8",
            "VirtualNetworkGateway",
        ),
        # System routes to the network are preferred even to a more specific BGP route.
        (
            [LOCAL, Route("10.0.3.0/24", "VirtualNetworkGateway", None, "VirtualNetworkGateway")],
            "10.0.3.4",
            "VnetLocal",
        ),
        ([Route("fd00::/48", "VnetLocal"), Route("::/0", "Internet")], "fd00::7", "VnetLocal"),
    ],
)
def test_a_route_is_chosen_as_in_azures_documentation(table: list[Route], address: str, hop: str) -> None:
    chosen = select_route(table, address)

    assert chosen is not None
    assert chosen.next_hop_type == hop


def test_an_invalid_route_is_never_chosen() -> None:
    assert select_route([Route("0.0.0.0/0", "Internet", state="Invalid")], "8.8.8.8") is None
