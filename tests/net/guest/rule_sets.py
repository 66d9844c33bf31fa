"""Random rule sets, as text for iptables-restore and nft, and random packets that come near their edges."""

from __future__ import annotations

import random
import re
from ipaddress import ip_address

from ghost.net.guest import Packet
from tests.net.guest.kernel import LOCAL, REMOTE, Sent, device_of

PORTS = (22, 53, 80, 443, 1000, 1023, 8080, 30000, 65535)
PREFIXES = {
    4: (
        "10.0.0.8/29",
        "10.0.0.16/29",
        "10.1.0.0/24",
        "10.0.0.0/15",
        "10.0.0.0/24",
        "10.0.0.0/255.0.255.248",
        "0.0.0.0/0",
    ),
    6: ("fd00::/64", "fd00::10/124", "fd01::/16", "fd00::/15"),
}
INTERFACES = ("eth0", "net1", "eth+", "net+", "lo", "eth", "e+")
NFT_INTERFACES = ("eth0", "net1", '"eth*"', '"n*"', "lo", "eth", "{ eth0, lo }", '{ "e*", lo }')
MASKS = {4: ("255.0.255.0", "0.0.0.1"), 6: ("ffff::f", "::1")}
MASKED = {4: ("10.0.0.0", "0.0.0.1", "0.0.0.0"), 6: ("fd00::1", "fd01::", "::1", "::")}
UNKNOWN = ("-m mark --mark 0x0", "-m length --length 0:100", "-m pkttype --pkt-type unicast", "-m length ! --length 9")
"""Matches that are not known; the kernel's answer must be one of those that are possible."""
NFT_UNKNOWN = ("meta mark 0", "meta length < 100", "meta pkttype host", "ct direction original", "meta cpu 77")
STATES = ("NEW", "ESTABLISHED", "RELATED,ESTABLISHED", "INVALID", "NEW,INVALID", "NEW,ESTABLISHED", "RELATED")
REJECTS = {
    4: ("port", "net", "host", "proto", "admin-prohibited", "net-prohibited", "host-prohibited"),
    6: ("icmp6-port-unreachable", "icmp6-no-route", "icmp6-adm-prohibited", "icmp6-addr-unreachable"),
}


def addresses(version: int) -> list[str]:
    return [a for side in (*LOCAL[version].values(), *REMOTE[version].values()) for a in side]


class Draw(random.Random):
    version = 4

    def maybe(self, likelihood: float) -> bool:
        return self.random() < likelihood

    def address(self) -> str:
        return self.choice(addresses(self.version))

    def remote(self) -> str:
        return self.choice([a for side in REMOTE[self.version].values() for a in side])

    def prefix(self) -> str:
        return self.choice(PREFIXES[self.version]) if self.maybe(0.6) else self.address()

    def span(self) -> tuple[str, str]:
        """Two addresses in order, of one side."""
        low, high = sorted(self.sample(REMOTE[self.version][self.choice(("eth0", "net1"))], 2))
        return low, high

    def ports(self, separator: str) -> str:
        low, high = sorted(self.choices(PORTS, k=2))
        return f"{low}{separator}{high}" if self.maybe(0.4) and low < high else str(low)

    def packets(self, count: int, *, outward: bool) -> list[Sent]:
        sports = self.sample([*range(1, 3000), *range(29000, 31000), *range(65000, 65536)], count)
        drawn = []
        for number, sport in enumerate(sports, 1):
            protocol = self.choice(("tcp", "tcp", "udp", "icmp"))
            if outward:
                to = ip_address(self.remote())
                source, place = self.choice(LOCAL[self.version][device_of(to)]), {"out_interface": device_of(to)}
            else:
                source = self.remote()
                to = ip_address(self.choice([a for a in addresses(self.version) if a != source]))
                place = {"in_interface": device_of(ip_address(source))}
            kind = None
            if protocol == "icmp":
                protocol = "icmp" if self.version == 4 else "icmpv6"
                kind = self.choice((8, 8, 0) if self.version == 4 else (128, 128, 129))
            dport = self.choice(PORTS) + self.choice((0, 0, -1)) if kind is None else None
            packet = Packet(
                protocol, ip_address(source), to, sport if kind is None else None, dport, icmp_type=kind, **place
            )
            drawn.append(Sent(packet, number))
        return drawn


# --- iptables ---


def iptables_rules(draw: Draw, *, outward: bool) -> str:
    """All tables with a few rules each. Outward, what the guest answers itself is let pass (`-o lo`)."""
    tables = {
        "filter": ("OUTPUT",) if outward else ("INPUT", "FORWARD"),
        "nat": ("OUTPUT", "POSTROUTING") if outward else ("PREROUTING", "INPUT", "POSTROUTING"),
        "mangle": ("OUTPUT", "POSTROUTING") if outward else ("PREROUTING", "INPUT", "FORWARD"),
        "raw": ("OUTPUT",) if outward else ("PREROUTING",),
        "security": ("OUTPUT",) if outward else ("INPUT", "FORWARD"),
    }
    lines = []
    for table, chains in tables.items():
        busy = table in ("filter", "nat") or draw.maybe(0.3)
        policies = [f":{c} {'DROP' if table == 'filter' and draw.maybe(0.3) else 'ACCEPT'} [0:0]" for c in chains]
        lines += [f"*{table}", *policies, ":one - [0:0]", ":two - [0:0]"]
        for chain in (*chains, "one", "two"):
            if outward and chain in chains:
                lines.append(f"-A {chain} -o lo -j ACCEPT")
            jumps = {"one": ["two"], "two": []}.get(chain, ["one", "two"])
            for _ in range(draw.randint(0, 5 if table == "filter" else 3) if busy else 0):
                lines.append(f"-A {chain} {_iptables_rule(draw, table, chain, jumps, outward=outward)}")
        lines.append("COMMIT")
    return "\n".join(lines) + "\n"


def _iptables_rule(draw: Draw, table: str, chain: str, jumps: list[str], *, outward: bool) -> str:
    words, protocol = [], ""
    for option in ("-s", "-d"):
        if draw.maybe(0.3):
            prefix = draw.prefix()
            words += [*(_not(draw) if prefix != "0.0.0.0/0" else []), option, prefix]
    if not outward and draw.maybe(0.25) and chain in ("PREROUTING", "INPUT", "FORWARD"):
        words += [*_not(draw), "-i", draw.choice(INTERFACES)]
    if draw.maybe(0.25) and chain in ("OUTPUT", "POSTROUTING", "FORWARD"):
        words += [*_not(draw), "-o", draw.choice(INTERFACES)]
    target = _iptables_target(draw, table, chain, jumps)
    needs_ports = "to-ports" in target or (" --to-" in target and re.search(r"(\]|\.\d+):\d+$", target) is not None)
    if draw.maybe(0.6) or needs_ports or "tcp-reset" in target:
        icmp = "icmp" if draw.version == 4 else "ipv6-icmp"
        protocol = (
            "tcp" if "tcp-reset" in target else draw.choice(("tcp", "udp") if needs_ports else ("tcp", "udp", icmp))
        )
        negated = not needs_ports and "tcp-reset" not in target and draw.maybe(0.15)
        words += [*(["!"] if negated else []), "-p", protocol]
        if not negated:
            words += _iptables_transport(draw, protocol)
    if draw.maybe(0.2):
        low, high = draw.span()
        words += ["-m", "iprange", *_not(draw), draw.choice(("--src-range", "--dst-range")), f"{low}-{high}"]
    if draw.maybe(0.3):
        option = draw.choice(("conntrack --ctstate", "state --state")).split()
        words += ["-m", option[0], *_not(draw), option[1], draw.choice(STATES)]
    if draw.maybe(0.05):
        words += draw.choice(UNKNOWN).split()
    if draw.maybe(0.1):
        words += ["-m", "comment", "--comment", '"-j \\"ACCEPT\\" ! --dport 5"']
    return " ".join([*words, target])


def _iptables_transport(draw: Draw, protocol: str) -> list[str]:
    if protocol == "icmp":
        return ["-m", "icmp", *_not(draw), "--icmp-type", draw.choice(("8", "0", "8/0"))] if draw.maybe(0.5) else []
    if protocol == "ipv6-icmp":
        return ["-m", "icmp6", *_not(draw), "--icmpv6-type", draw.choice(("128", "129"))] if draw.maybe(0.5) else []
    if draw.maybe(0.3):
        ports = ",".join(dict.fromkeys(draw.ports(":") for _ in range(draw.randint(1, 4))))
        return ["-m", "multiport", *_not(draw), draw.choice(("--sports", "--dports", "--ports")), ports]
    words = ["-m", protocol]
    if protocol == "tcp" and draw.maybe(0.1):
        words += [*_not(draw), *draw.choice(("--syn", "--tcp-flags SYN,FIN SYN", "--tcp-flags ALL ACK")).split()]
    for option in ("--sport", "--dport"):
        if draw.maybe(0.4):
            words += [*_not(draw), option, draw.ports(":")]
    return words


def _iptables_target(draw: Draw, table: str, chain: str, jumps: list[str]) -> str:
    plain = ["-j ACCEPT", "-j RETURN", "", '-j LOG --log-prefix "-j DROP"', *(f"-j {j}" for j in jumps)]
    plain += [f"-g {j}" for j in jumps]
    if table == "nat":
        remote = draw.remote()
        with_port = f"[{remote}]:{draw.choice(PORTS)}" if draw.version == 6 else f"{remote}:{draw.choice(PORTS)}"
        if chain in ("PREROUTING", "OUTPUT"):
            plain += [f"-j DNAT --to-destination {t}" for t in (draw.address(), with_port)]
            plain += [f"-j REDIRECT --to-ports {draw.choice(PORTS)}", "-j REDIRECT"]
        elif chain in ("POSTROUTING", "INPUT"):
            plain += [f"-j SNAT --to-source {t}" for t in (draw.remote(), with_port)]
            plain += ["-j MASQUERADE"] * 2 if chain == "POSTROUTING" else []
        return draw.choice(plain)
    plain += ["-j DROP", "-j ACCEPT"]
    if table == "filter":
        if draw.version == 4:
            answer = draw.choice(REJECTS[4])
            answer = "icmp-" + (answer if answer.endswith("ed") else f"{answer}-unreachable")
        else:
            answer = draw.choice(REJECTS[6])
        plain += ["-j DROP", f"-j REJECT --reject-with {answer}", "-j REJECT --reject-with tcp-reset"]
    return draw.choice(plain)


def _not(draw: Draw) -> list[str]:
    return ["!"] if draw.maybe(0.25) else []


# --- nft ---


def nft_rules(draw: Draw, *, outward: bool) -> str:
    """Two or three tables of several families, with base chains of the same hooks at various priorities."""
    families = ["inet", "ip" if draw.version == 4 else "ip6", *draw.sample(("inet", "ip", "ip6"), 1)]
    lines = []
    for number, family in enumerate(families):
        lines.append(f"table {family} t{number} {{")
        lines += _nft_sets(draw, family)
        for chain in ("two", "one"):
            lines.append(f"chain {chain} {{")
            jumps = ["two"] if chain == "one" else []
            lines += [_nft_rule(draw, family, "", jumps) for _ in range(draw.randint(0, 4))]
            lines.append("}")
        hooks = ("output", "postrouting") if outward else ("prerouting", "input", "forward")
        for hook in draw.sample(hooks, draw.randint(1, len(hooks))):
            priority = draw.choice((-350, -150, -120, -5, 0, 0, 10, 150))
            policy = "drop" if draw.maybe(0.15) else "accept"
            lines.append(
                f"chain {hook}{draw.randint(0, 9)} {{ type filter hook {hook} priority {priority}; policy {policy};"
            )
            lines += ["oifname lo accept"] if outward else []
            lines += [_nft_rule(draw, family, hook, ["one", "two"]) for _ in range(draw.randint(0, 6))]
            lines.append("}")
        nat_hooks = ("output", "postrouting") if outward else ("prerouting", "input", "postrouting")
        for hook in draw.sample(nat_hooks, draw.randint(0, 2)):
            lines.append(f"chain nat{hook} {{ type nat hook {hook} priority {draw.choice((-100, -99, 0, 100))};")
            lines += ["oifname lo accept"] if outward else []
            lines += [_nft_translation(draw, family, hook) for _ in range(draw.randint(1, 4))]
            lines.append("}")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _layer(draw: Draw, family: str) -> tuple[str, int]:
    """`ip` or `ip6` of what a rule of the family may ask, mostly that of the packets."""
    if family == "inet":
        version = draw.version if draw.maybe(0.8) else 10 - draw.version
    else:
        version = 4 if family == "ip" else 6
    return ("ip", 4) if version == 4 else ("ip6", 6)


def _of(draw: Draw, version: int) -> str:
    low, high = sorted(draw.sample(REMOTE[version][draw.choice(("eth0", "net1"))], 2))
    return draw.choice((draw.choice(PREFIXES[version][:4]), draw.choice(addresses(version)), f"{low}-{high}"))


def _nft_sets(draw: Draw, family: str) -> list[str]:
    layer, version = _layer(draw, family)
    kind = "ipv4_addr" if version == 4 else "ipv6_addr"
    elements = ", ".join(draw.sample(REMOTE[version]["eth0"] + REMOTE[version]["net1"], 3))
    base = REMOTE[version]["net1"][0]
    return [
        f"set hosts {{ type {kind}; elements = {{ {elements} }}\n}}",
        f"set nets {{ type {kind}; flags interval; elements = {{ {draw.choice(PREFIXES[version][:3])} }}\n}}",
        f"set ends {{ type {kind} . inet_service; flags interval; elements = {{ "
        f"{PREFIXES[version][0]} . 0-{draw.choice(PORTS)}, {base} . 443-65535 }}\n}}",
        "map ways { type inet_service : verdict; flags interval; "
        "elements = { 22 : accept, 53 : drop, 80-443 : jump two, 1000 : return, * : jump one }\n}"
        if draw.maybe(0.5)
        else "map ways { type inet_service : verdict; elements = { 22 : accept, 53 : drop, 80 : goto two }\n}",
        f"# {layer}",
    ]


def _nft_ports(draw: Draw) -> str:
    spans = [(low, high) for low, high in ((20, 53), (80, 443), (1000, 1023), (30000, 65535))]
    chosen = draw.sample(spans, draw.randint(1, 3))
    inside = ", ".join(f"{low}-{high}" if draw.maybe(0.5) else str(low) for low, high in chosen)
    return f"{{ {inside} }}" if draw.maybe(0.6) else draw.ports("-")


def _nft_rule(draw: Draw, family: str, hook: str, jumps: list[str]) -> str:
    layer, version = _layer(draw, family)
    word = draw.choice
    is_not = "!= " if draw.maybe(0.25) else ""
    side = word(("s", "d"))
    names = word(("iifname", "oifname"))
    icmp = "icmp" if version == 4 else "icmpv6"
    choices = [
        f"{layer} {side}addr {is_not}{_of(draw, version)}",
        f"{layer} {side}addr {is_not}{word(('@hosts', '@nets'))}"
        if family != "inet"
        else f"meta nfproto {word(('ipv4', 'ipv6'))}",
        f"{word(('tcp', 'udp'))} {side}port {is_not}{_nft_ports(draw)}",
        f"meta l4proto {{ tcp, udp }} th {side}port {is_not}{_nft_ports(draw)}",
        f"ct state {is_not}{word(('new', 'established', 'invalid'))}",
        f"ct state {word(('established,related', 'new,invalid', '{ new, established }'))}",
        f"{names} {is_not}{word(NFT_INTERFACES)}",
        f"{icmp} type {is_not}{word(('echo-request', '{ echo-request, echo-reply }'))}",
        f"meta l4proto {is_not}{word(('tcp', 'udp', '{ tcp, udp }', icmp))}",
        f"{layer} {'protocol' if version == 4 else 'nexthdr'} {word(('tcp', 'udp'))}",
        f"tcp dport {word(('<', '>', '>=', '<='))} {word(PORTS[:-1])}",
        f"tcp flags {word(('syn', '& (syn | fin) == syn', '! ack', '!= syn'))}",
        f"{layer} saddr & {word(MASKS[version])} {word(('==', '!='))} {word(MASKED[version])}",
    ]
    matches = draw.sample(choices, word((0, 1, 1, 2)))
    if (
        sum(
            "port" in m or "flags" in m or "l4proto" in m or "icmp" in m or "protocol" in m or "nexthdr" in m
            for m in matches
        )
        > 1
    ):
        matches = matches[:1]
    if sum(("ip " in m or "ip6 " in m or "icmp" in m or "nfproto" in m) for m in matches) > 1:
        matches = matches[:1]
    transport = any(
        "port" in m or "flags" in m or "l4proto" in m or "icmp" in m or "protocol" in m or "nexthdr" in m
        for m in matches
    )
    network = any("ip " in m or "ip6 " in m or "icmp" in m or "nfproto" in m for m in matches)
    actions = ["accept", "accept", "drop", "return", "continue", 'log prefix "a"', ""]
    actions += [f"{kind} {chain}" for kind in ("jump", "goto") for chain in jumps]
    if hook in ("input", "forward", "output", ""):
        if hook and family == "inet":
            actions += [
                "reject with icmpx " + word(("port-unreachable", "admin-prohibited", "no-route", "host-unreachable"))
            ]
        if hook:
            actions += ["reject"]
            if not transport:
                actions += ["reject with tcp reset"]
            if family == "ip" or (family == "inet" and not network):
                actions += ["reject with icmp " + word(("net-unreachable", "prot-unreachable", "host-prohibited"))]
            if family == "ip6" or (family == "inet" and not network):
                actions += ["reject with icmpv6 " + word(("no-route", "addr-unreachable", "admin-prohibited"))]
    if hook:  # a verdict map that jumps to chain two cannot stand in that chain
        if not transport:
            actions += ["tcp dport vmap @ways", "meta l4proto vmap { tcp : jump one, udp : goto two }"]
        if not network:
            low, high = REMOTE[version]["net1"][1], REMOTE[version]["net1"][5]
            actions += [f"{layer} saddr vmap {{ {PREFIXES[version][0]} : jump one, {low}-{high} : drop }}"]
            if not transport and family != "inet":
                actions += [f"{layer} daddr . tcp dport @ends drop", f"{layer} saddr . tcp dport != @ends drop"]
        actions += ["ct state vmap { established : accept, invalid : drop, new : jump one }"]
    if draw.maybe(0.05):
        matches.append(word(NFT_UNKNOWN))
    action = word(actions)
    counted = "" if "vmap" in action or "@ends" in action else "counter "
    return f"{' '.join(matches)} {counted}{action}"


def _nft_translation(draw: Draw, family: str, hook: str) -> str:
    layer, version = _layer(draw, family)
    match = draw.choice(
        (
            "",
            f"tcp dport {_nft_ports(draw)}",
            f"{layer} saddr {_of(draw, version)}",
            f"{layer} daddr != {_of(draw, version)}",
        )
    )
    needs_port = match if match.startswith("tcp") else "meta l4proto { tcp, udp }"
    port, to = draw.choice(PORTS), draw.choice(REMOTE[version][draw.choice(("eth0", "net1"))])
    bound = f"[{to}]:{port}" if version == 6 else f"{to}:{port}"
    if hook in ("prerouting", "output"):
        local = draw.choice(LOCAL[version]["eth0"])
        return draw.choice(
            (
                f"{match} dnat {layer} to {local}",
                f"{needs_port} dnat {layer} to {bound}",
                f"{needs_port} redirect to :{port}",
                f"{match} redirect",
                f"{match} accept",
            )
        )
    choices = [f"{match} snat {layer} to {to}", f"{needs_port} snat {layer} to {bound}", f"{match} accept"]
    return draw.choice(choices + ([f"{match} masquerade"] if hook == "postrouting" else []))
