"""Walks of sets: every port and source of a part ends as the part says."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address, ip_network
from random import Random

import pytest

from ghost.net.network import Network
from ghost.net.walk_sets import Part, ports_to, public_address_of, sources_of
from ghost.net.walks import walk
from tests.net.description import described
from tests.net.small_network import flow

TCP = flow("Tcp 10.1.0.4 10.1.1.4:1")


def a_network(seed: int) -> Network:
    """Two subnets with random rules, and a way through an Azure Firewall or none."""
    choose = Random(seed)
    lines = ["vnet a 10.1.0.0/16", "nsg n", "table t", "subnet a/s 10.1.0.0/24 table=t", "subnet a/t 10.1.1.0/24 nsg=n",
             "subnet a/AzureFirewallSubnet 10.1.9.0/26", "firewall fw 10.1.9.4 a",
             *(f"vm v{n} 10.1.0.{n} a/s" for n in range(4, 9)), "vm db 10.1.1.4 a/t"]  # fmt: skip
    for n in range(12):
        low = choose.randrange(1, 60000)
        ports = choose.choice(["*", str(low), f"{low}-{low + choose.randrange(4000)}"])
        source = choose.choice(["*", "10.1.0.0/24", f"10.1.0.{choose.randrange(4, 9)}/32", "10.1.0.4/30"])
        access = choose.choice(["Allow", "Deny"])
        lines.append(f"rule n r{n} {100 + n} Inbound {access} Tcp {source} *:{ports}")
        lines.append(f"fwrule fw 200/{100 + n} network {access} f{n} TCP {source} * {ports}")
    if choose.random() < 0.5:
        lines.append("route t db 10.1.1.0/24 VirtualAppliance 10.1.9.4")
    return described(lines)


@pytest.mark.parametrize("seed", range(8))
def test_every_port_and_source_of_a_part_ends_alike(seed):
    made, choose = a_network(seed), Random(seed)
    parts = ports_to(made, TCP)
    for port in [1, 65535, *(choose.randrange(1, 65536) for _ in range(60))]:
        (part,) = [part for part in parts if any(_holds(span, port) for span in part.of)]
        assert _same(part, walk(made, replace(TCP, destination_port=port)))
    sources = sources_of(made, replace(TCP, destination_port=443))
    for last in range(4, 9):
        address = f"10.1.0.{last}"
        (part,) = [p for p in sources if any(ip_address(address) in ip_network(prefix) for prefix in p.of)]
        assert _same(part, walk(made, replace(TCP, source_address=address, destination_port=443)))


def test_the_internet_is_a_source_where_the_destination_has_a_public_address():
    made = described(
        ["vnet a 10.1.0.0/16", "nsg n", "subnet a/s 10.1.0.0/24 nsg=n", "vm v 10.1.0.4 a/s",
         "public p 20.0.0.1 vm=v", "rule n office 100 Inbound Allow Tcp 40.0.0.0/8 *:443"]
    )  # fmt: skip
    public = public_address_of(made, "10.1.0.4")
    assert public == "20.0.0.1"
    found = {part.walk.outcome: part.of for part in sources_of(made, flow("Tcp 10.1.0.9 10.1.0.4:443"), public)}
    assert found["passes"] == ("40.0.0.0/8",)
    assert not any(ip_network(prefix).overlaps(ip_network("40.0.0.0/8")) for prefix in found["blocked"])


def _holds(span: str, port: int) -> bool:
    first, _, last = span.partition("-")
    return int(first) <= port <= int(last or first)


def _same(part: Part, walked: object) -> bool:
    return (part.walk.outcome, part.walk.blocker and part.walk.blocker.rule) == (
        walked.outcome,
        walked.blocker and walked.blocker.rule,
    )
