"""Walks of packets: 10,000 through 60 groups of 100 rules and 60 tables of 400 routes, in under 5 s.

No peer walks Azure's configuration offline; the time of one linear search of a table by `ipaddress` is given for scale.
"""

from __future__ import annotations

import random
import statistics
import time
from ipaddress import ip_address, ip_network

from tests.net.small_network import flow, network, nic, rules, subnet, table, vnet

from ghost.net import Network, walk

WALKS, BOUND_SECONDS, ROUNDS = 10_000, 5.0, 3


def a_network(choose: random.Random) -> Network:
    def a_rule(n: int) -> str:
        direction, access = choose.choice(["Inbound", "Outbound"]), choose.choice(["Allow", "Deny"])
        source = choose.choice(["*", "VirtualNetwork", f"10.0.{choose.randrange(60)}.0/24"])
        return f"r{n} {100 + n * 10} {direction} {access} Tcp {source} *:{choose.randrange(64_000)}-65000"

    groups = [rules(f"g{g}", *map(a_rule, range(100))) for g in range(60)]
    routes = [f"x{n} 172.{16 + n // 250}.{n % 250}.0/24 VirtualAppliance 10.0.0.9" for n in range(400)]
    tables = [table(f"t{g}", *routes) for g in range(60)]
    subnets = [subnet(f"v/s{g}", f"10.0.{g}.0/24", nsg=f"g{g}", table=f"t{g}") for g in range(60)]
    nics = [nic(f"m{g}", f"10.0.{g}.4", f"v/s{g}", nsg=f"g{(g + 1) % 60}") for g in range(60)]
    return network(vnet("v", "10.0.0.0/16", *subnets), *groups, *tables, *nics)


def main() -> int:
    choose = random.Random(15)
    flows = [
        flow(f"Tcp 10.0.{choose.randrange(60)}.4 10.0.{choose.randrange(60)}.4:{choose.randrange(1, 65_000)}")
        for _ in range(WALKS)
    ]
    seconds = []
    for _ in range(ROUNDS):
        tenant = a_network(random.Random(1))
        began = time.process_time()
        outcomes = [walk(tenant, each).outcome for each in flows]
        seconds.append(time.process_time() - began)
    median = statistics.median(seconds)
    prefixes = [ip_network(f"172.{16 + n // 250}.{n % 250}.0/24") for n in range(400)]
    began = time.process_time()
    for each in flows:
        destination = ip_address(each.destination_address)
        any(destination in prefix for prefix in prefixes)
    linear = time.process_time() - began
    passed = outcomes.count("passes")
    print(f"{WALKS} walks, {passed} pass: median {median:.2f} s of {ROUNDS}, bound {BOUND_SECONDS:g} s")
    print(f"one linear search of 400 prefixes a flow: {linear:.2f} s; a walk takes {median / linear:.2f} of it")
    return int(median > BOUND_SECONDS)
