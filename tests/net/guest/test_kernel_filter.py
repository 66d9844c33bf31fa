"""The verdict of `evaluate` against the Linux kernel's, for random rule sets and packets in a network namespace."""

from __future__ import annotations

import json
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address

import pytest

from ghost.net.guest import (
    GuestVerdict,
    Hook,
    Packet,
    Ruleset,
    State,
    evaluate,
    listeners_at,
    read_iptables,
    read_listeners,
    read_nft,
)
from tests.exhaustive import EXHAUSTIVE
from tests.net.guest.kernel import ACK, FIN, KEEP, LOCAL, SYN, TRACK, Guest, Seen, Sent, device_of, one_processor
from tests.net.guest.rule_sets import Draw, iptables_rules, nft_rules

pytestmark = [pytest.mark.needs("ip", "nft", "iptables", "ss")]

ANSWERS = {
    **{f"icmp 3/{code}": f"icmp {kind}-unreachable" for code, kind in enumerate(("net", "host", "prot", "port"))},
    **{f"icmp 3/{code}": f"icmp {kind}-prohibited" for code, kind in {9: "net", 10: "host", 13: "admin"}.items()},
    "icmpv6 1/0": "icmpv6 no-route",
    "icmpv6 1/1": "icmpv6 admin-prohibited",
    "icmpv6 1/3": "icmpv6 addr-unreachable",
    "icmpv6 1/4": "icmpv6 port-unreachable",
}
ADDRESSES = {
    device: [ip_address(a) for version in (4, 6) for a in LOCAL[version][device]] for device in ("eth0", "net1")
}
LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))
BACKENDS = ("nft", "nft6", "iptables", "iptables-legacy", "ip6tables", "ip6tables-legacy")
EMPTY = "".join(
    f"*{table}\n{policies}COMMIT\n"
    for table, policies in {
        "filter": ":INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\n",
        **dict.fromkeys(("nat", "mangle", "raw", "security"), ""),
    }.items()
)
PACKETS = 60
Place = tuple[str, str, str]
"""Table, chain and handle of a rule."""


@pytest.fixture(scope="module")
def guest() -> Iterator[Guest]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    with one_processor():
        made = Guest()
        yield made
        made.close()


def expected(rules: Ruleset, packet: Packet, state: State) -> GuestVerdict:
    """The verdict; where the packet goes is asked when its destination may have been translated."""
    first = evaluate(rules, ("prerouting" if packet.in_interface else "output",), packet, state, addresses=ADDRESSES)
    if first.verdict != "accept":
        return first
    packet = first.packet
    local = packet.destination in (*LOOPBACK, *(own for device in ADDRESSES.values() for own in device))
    hooks: tuple[Hook, ...] = ("postrouting",)
    if not packet.in_interface:
        packet = replace(packet, out_interface="lo" if local else device_of(packet.destination))
    elif local:
        hooks = ("input",)
    else:
        hooks, packet = ("forward", "postrouting"), replace(packet, out_interface=device_of(packet.destination))
    last = evaluate(rules, hooks, packet, state, addresses=ADDRESSES)
    return replace(last, decisions=(*first.decisions, *last.decisions), doubts=(*first.doubts, *last.doubts))


def agrees(verdict: GuestVerdict, seen: Seen) -> bool:
    if verdict.verdict != seen.verdict:
        return verdict.verdict == "unknown"
    if seen.packet:
        return replace(verdict.packet, in_interface="", out_interface="") == seen.packet
    return verdict.detail == ANSWERS.get(seen.detail, seen.detail)


def load(guest: Guest, backend: str, draw: Draw, *, outward: bool) -> None:
    if backend.startswith("nft"):
        guest.run("nft", "-f", "-", stdin=TRACK + nft_rules(draw, outward=outward))
    else:
        guest.run("nft", "-f", "-", stdin=TRACK)
        guest.run(f"{backend}-restore", stdin=iptables_rules(draw, outward=outward))


def listed(guest: Guest, backend: str) -> str:
    return (
        guest.run("nft", "-j", "list", "ruleset") if backend.startswith("nft") else guest.run(f"{backend}-save", "-c")
    )


def read(backend: str, text: str) -> Ruleset:
    if backend.startswith("nft"):
        return read_nft(text)
    return read_iptables(text, "ip6" if backend.startswith("ip6") else "ip")


def counted(backend: str, text: str) -> dict[Place, int]:
    """How many packets each rule with a counter and a verdict met: (table, chain, handle)."""
    counts = {}
    if backend.startswith("nft"):
        for item in json.loads(text)["nftables"]:
            rule = item.get("rule", {"expr": []})
            for statement in rule["expr"]:
                if "counter" in statement:
                    place = rule["table"], rule["chain"], f"handle {rule['handle']}"
                    counts[place] = statement["counter"]["packets"]
        return counts
    table, number = "", Counter[str]()
    for line in text.splitlines():
        if line.startswith("*"):
            table, number = line[1:], Counter()
        elif found := re.match(r"\[(\d+):\d+\] -A (\S+)", line):
            number[found[2]] += 1
            counts[table, found[2], f"rule {number[found[2]]}"] = int(found[1])
    return counts


def differences(guest: Guest, seed: int) -> tuple[list[str], Counter[str]]:
    draw = Draw(seed)
    backend = BACKENDS[seed % len(BACKENDS)]
    draw.version = 6 if "6" in backend else 4
    outward = draw.maybe(0.35)
    packets = draw.packets(PACKETS, outward=outward)
    states: list[State] = []
    for place, sent in enumerate(packets):
        state: State = draw.choice(("NEW", "NEW", "ESTABLISHED"))
        if state == "NEW" and sent.packet.icmp_type in (0, 129):
            state = "INVALID"
        elif sent.packet.protocol == "tcp" and state == "NEW" and draw.maybe(0.1):
            state, packets[place] = "INVALID", replace(sent, flags=SYN | FIN)
        elif state == "ESTABLISHED":
            packets[place] = replace(sent, flags=ACK)
        states.append(state)
    guest.run("nft", "-f", "-", stdin=KEEP)
    guest.forget_connections()
    guest.establish([sent for sent, state in zip(packets, states, strict=True) if state == "ESTABLISHED"])
    load(guest, backend, draw, outward=outward)
    seen = guest.observe(packets)
    listing = listed(guest, backend)
    if backend.endswith("legacy"):
        guest.run(f"{backend}-restore", stdin=EMPTY)
    rules = read(backend, listing)
    judged = [expected(rules, sent.packet, state) for sent, state in zip(packets, states, strict=True)]
    ends = Counter(end for verdict in judged for end in both_ends(verdict.packet))
    found, tally, used = [], Counter[str](), Counter[Place]()
    for sent, state, result, verdict in zip(packets, states, seen, judged, strict=True):
        tally[verdict.verdict] += 1
        by_rule = [d for d in verdict.decisions if d.rule and not d.chain.is_nat]
        used.update((d.table.name, d.chain.name, d.rule.handle) for d in by_rule if d.rule)
        clashes = sent.packet != verdict.packet and ends[both_ends(verdict.packet)[0]] > 1
        if not clashes and not agrees(verdict, result):
            decided = "\n    ".join(map(str, verdict.decisions))
            stated = f"{verdict.verdict} {verdict.detail} {verdict.packet}"
            found.append(f"seed {seed} {backend} {sent} {state}\n  kernel {result}\n  {stated}\n    {decided}")
    counts = counted(backend, listing)
    doubted = any(verdict.doubts or verdict.verdict == "unknown" for verdict in judged)
    plain = {
        place for place, kind in verdicts(rules).items() if kind in ("accept", "drop", "reject") and place in counts
    }
    for place in plain:
        if counts[place] != used[place] and not doubted:
            found.append(f"seed {seed} {backend} {place}: the kernel counted {counts[place]}, decided {used[place]}")
    return found, tally


def both_ends(packet: Packet) -> tuple[object, object]:
    """What tells one connection from another, as seen from each end. Where two agree, the kernel lets only one be."""
    source, destination = (packet.source, packet.source_port), (packet.destination, packet.destination_port)
    return (packet.protocol, source, destination), (packet.protocol, destination, source)


def verdicts(rules: Ruleset) -> dict[Place, str]:
    return {
        (table.name, chain.name, rule.handle): rule.action.kind
        for table in rules.tables
        for chain in table.chains
        if not chain.is_nat and table.name != "nat"
        for rule in chain.rules
        if "lo" not in rule.text.split()
    }


def test_the_kernel_and_the_model_agree_on_each_packet(guest: Guest) -> None:
    found: list[str] = []
    tally = Counter[str]()
    for seed in range(500 if EXHAUSTIVE else 40):
        differing, verdicts_given = differences(guest, seed)
        found += differing
        tally += verdicts_given
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:5])
    assert min(tally[kind] for kind in ("accept", "drop", "reject")) > 50, tally
    assert 0 < tally["unknown"] < sum(tally.values()) / 10, tally


NAT, FILTER = "type nat hook", "type filter hook"
EDGES = {
    "nat chains are asked at their place whatever their priority": (
        f"ip|{NAT} prerouting priority 50|dnat to 10.0.0.2|{FILTER} prerouting priority 0|ip daddr 10.0.0.1 drop",
        f"ip|{NAT} prerouting priority -150|dnat to 10.0.0.2|{FILTER} prerouting priority -120|ip daddr 10.0.0.2 drop",
        f"ip|{NAT} input priority 0|snat to 10.0.0.12|{FILTER} input priority 50|ip saddr 10.0.0.12 drop",
        f"ip|{NAT} prerouting priority -100|dnat to 10.0.0.2|{NAT} prerouting priority -100|dnat to 10.1.0.1",
    ),
    "an answer or a translation asks for the family and the protocol": (
        f"inet|{FILTER} input priority 0|reject with icmp net-unreachable|{FILTER} input priority 1|drop",
        f"inet|{FILTER} input priority 0|reject with icmpv6 no-route|{FILTER} input priority 1|drop",
        f"inet|{FILTER} input priority 0|reject with tcp reset|{FILTER} input priority 1|drop",
        f"inet|{NAT} prerouting priority -100|dnat ip to 10.0.0.2|{NAT} prerouting priority 0|dnat ip6 to fd01::1",
    ),
    "among equal priorities the last registered is asked first": (
        f"inet|{FILTER} input priority 0|drop|{FILTER} input priority 0|reject",
        f"inet|{FILTER} input priority 0|reject|{FILTER} input priority 0|drop",
    ),
    "behind a forward the interface of arrival is still known": (
        f"inet|{FILTER} postrouting priority 0|iifname eth0 drop|{FILTER} postrouting priority 1|drop",
        f"inet|{FILTER} postrouting priority 0|iifname net1 drop|{FILTER} forward priority 1|oifname eth0 drop",
    ),
}


def test_edges_that_random_rules_seldom_meet(guest: Guest) -> None:
    ends = [("10.0.0.10", "10.0.0.1"), ("fd00::10", "fd00::1"), ("10.0.0.10", "10.1.0.11"), ("fd00::10", "fd01::11")]
    packets = [
        Sent(
            Packet(protocol, ip_address(source), ip_address(to), 1000 + number, 22, in_interface="eth0"),
            2 * number + other,
        )
        for number, (source, to) in enumerate(ends)
        for other, protocol in enumerate(("tcp", "udp"))
    ]
    wrong = []
    for promise, edges in EDGES.items():
        for edge in edges:
            family, first, rule, second, other_rule = edge.split("|")
            chains = f"chain a {{ {first};\n {rule}\n }}\n chain b {{ {second};\n {other_rule}\n }}"
            guest.run("nft", "-f", "-", stdin=f"{TRACK}table {family} edge {{\n {chains}\n}}\n")
            guest.forget_connections()
            rules = read_nft(listed(guest, "nft"))
            for sent, seen in zip(packets, guest.observe(packets), strict=True):
                verdict = expected(rules, sent.packet, "NEW")
                if verdict.verdict == "unknown" or not agrees(verdict, seen):
                    wrong.append((promise, edge, sent.packet, seen, verdict))
    assert not wrong


def test_listening_sockets_answer_as_they_were_bound(guest: Guest) -> None:
    bound = [("0.0.0.0", 0), ("127.0.0.1", 0), ("10.0.0.1", 0), ("::", 0), ("::", 1), ("::1", 0), ("fd01::1", 0)]
    bound += [("::ffff:10.0.0.2", 0)]
    listening = []
    for port, (address, six_only) in enumerate(bound, 2000):
        listening.append(guest.space.socket(family=family_of(address)))
        if ":" in address:
            listening[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, six_only)
        listening[-1].bind((address, port))
        listening[-1].listen()
    guest.run("nft", "flush", "ruleset")
    found = read_listeners(guest.run("ss", "-tlnpH"))
    wrong = []
    for port in range(2000, 2000 + len(bound)):
        for address in ("127.0.0.1", "10.0.0.1", "10.0.0.2", "::1", "fd00::1", "fd01::1"):
            with guest.space.socket(family=family_of(address)) as client:
                connected = client.connect_ex((address, port)) == 0
            if connected != bool(listeners_at(found, ip_address(address), port)):
                wrong.append((bound[port - 2000], address, connected))
    for each in listening:
        each.close()
    assert len(found) == len(bound)
    assert not wrong


def family_of(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
