"""Random small networks as lines of `described`, and flows through them."""

from __future__ import annotations

from random import Random

from ghost.net import Flow

PREFIXES = ("*", "VirtualNetwork", "Internet", "Storage", "10.0.0.0/8", "10.1.0.0/16")
PEER = ("", " forwarded=yes", " forwarded=yes", " state=Initiated", " access=no", " gateway=yes")
HOPS = ("None", "VnetLocal", "Internet", "VirtualNetworkGateway", *["VirtualAppliance"] * 5)


def random_lines(random: Random) -> tuple[list[str], list[str]]:
    """Return a hub and spokes, and the addresses and names in them."""
    lines, addresses, tables, groups = [], ["10.0.250.4"], ["t0", "t1"], ["g0", "g1"]
    names = [*(f"nsg {group}" for group in groups), *(f"table {table}" for table in tables)]
    for n, home in enumerate(("hub", "a", "b")):
        lines += [f"vnet {home} 10.{n}.0.0/16", f"region {home} {random.choice(('eastus', 'westus'))}"]
        group = random.choice(("", " nsg=g0", " nsg=g1"))
        table = random.choice(("", " table=t0", " table=t1"))
        endpoints = random.choice((" endpoints=Microsoft.Storage", "", "", ""))
        lines.append(f"subnet {home}/s 10.{n}.0.0/24{group}{table}{endpoints}")
        for m in range(random.randint(1, 2)):
            addresses.append(f"10.{n}.0.{4 + m}")
            lines.append(f"vm {home}{m} {addresses[-1]} {home}/s{random.choice((' forwards=yes', ''))}")
        lines += [f"forwarding {home}0"] * (random.random() < 0.2) + [f"stopped {home}0"] * (random.random() < 0.1)
        if n:
            lines += [f"peering hub {home}{random.choice(PEER)}", f"peering {home} hub{random.choice(PEER)}"]
    lines += ["subnet hub/AzureFirewallSubnet 10.0.250.0/26", "firewall fw 10.0.250.4 hub"]
    for n in range(random.randint(0, 3)):
        to, port = random.choice(("*", *addresses)), random.choice(("*", "80"))
        lines.append(f"fwrule fw 100/{n} network {random.choice(('Allow', 'Deny'))} r{n} TCP * {to} {port}")
        action, way = random.choice(("Allow", "Deny")), random.choice(("Inbound", "Outbound"))
        ends = " ".join(random.choice((*PREFIXES, *addresses)) for _ in range(2))
        lines.append(f"rule {random.choice(groups)} r{n} {100 + n} {way} {action} * {ends}:{port}")
        prefix, hop = random.choice(("0.0.0.0/0", "10.0.0.0/8", "10.2.0.0/16", f"{to}/32")), random.choice(HOPS)
        via = random.choice((*addresses, "10.0.250.4", "10.0.0.100")) if hop == "VirtualAppliance" else ""
        lines.append(f"route {random.choice(tables)} r{n} {prefix if prefix != '*/32' else '10.1.0.0/16'} {hop} {via}")
    lines += [f"admin a m/c {random.choice(('Allow', 'AlwaysAllow', 'Deny'))} x 1 Inbound * {PREFIXES[n]} *:*" for n in
              range(3) if random.random() < 0.1]  # fmt: skip
    if random.random() < 0.4:
        lines += ["lb lb", "front lb/front address=10.0.0.100 subnet=hub/s", "pool lb/pool members=hub0",
                  "balance lb/rule front Tcp 80 8080 pool probe=probe", "probe lb/probe Tcp 22"]  # fmt: skip
        addresses.append("10.0.0.100")
    if random.random() < 0.4:
        lines += ["public p 20.1.1.1 vm=a0", "subnet hub/GatewaySubnet 10.0.251.0/27", "gateway gw hub",
                  "connection gw site 192.168.0.0/24"]  # fmt: skip
        addresses += ["20.1.1.1", "192.168.0.9"]
    zone = "privatelink.blob.core.windows.net"
    if random.random() < 0.4:
        lines += ["endpoint pe 10.2.0.200 b/s names=acc.blob.core.windows.net", f"zone {zone}", f"link {zone} a",
                  f"record {zone} acc 10.2.0.{random.choice((200, 200, 4))}"]  # fmt: skip
    lines.append(f"storage acc eastus{random.choice(('', ' access=Disabled', ' default=Deny', ' subnets=a/s'))}")
    return [*names, *lines], [*addresses, "acc.blob.core.windows.net", "8.8.8.8"]


def random_flow(random: Random, places: list[str]) -> Flow:
    source = random.choice([place for place in places if place.startswith("10.")])
    return Flow(random.choice(("Tcp", "Tcp", "Udp")), source, None, random.choice(places), random.choice((80, 443)))
