"""The readers of a guest's rules, routes and sockets: what they name unknown, and what they refuse."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ghost.net.guest import (
    FORWARD,
    INPUT,
    OUTPUT,
    Packet,
    evaluate,
    listeners_at,
    read_iptables,
    read_listeners,
    read_nft,
    read_routes,
    read_rules,
    select_guest_route,
)
from tests.exhaustive import examples
from tests.net.guest.rule_sets import Draw, iptables_rules

CORPUS = Path(__file__).parents[2] / "corpora" / "guest"
NFT = (CORPUS / "nft.json").read_text(encoding="utf-8")
IPTABLES = (CORPUS / "iptables-save.txt").read_text(encoding="utf-8")
SSH = Packet("tcp", ip_address("10.0.0.10"), ip_address("10.0.0.4"), 50000, 22, in_interface="eth0")


def filter_table(*rules: str, policy: str = "ACCEPT") -> str:
    lines = "\n".join(f"-A {rule}" for rule in rules)
    return f"*filter\n:INPUT {policy} [0:0]\n:FORWARD ACCEPT [0:0]\n:user - [0:0]\n{lines}\nCOMMIT\n"


@pytest.mark.parametrize(
    ("rules", "verdict", "detail"),
    [
        (["INPUT -m limit --limit 5/sec -j ACCEPT", "INPUT -j DROP"], "unknown", "limit"),
        (["INPUT -m limit --limit 5/sec -j ACCEPT", "INPUT -j ACCEPT"], "accept", ""),
        (["INPUT -m limit --limit 5/sec -j LOG", "INPUT -j DROP"], "drop", ""),
        (["INPUT -m recent --update -j user", "user -p udp -j DROP", "INPUT -j ACCEPT"], "accept", ""),
        (["INPUT -m owner --uid-owner 0 -p udp -j DROP"], "accept", ""),
        (["INPUT -j NFQUEUE --queue-num 0"], "unknown", "NFQUEUE"),
        (["INPUT -p tcp --dport 22 -j NFQUEUE", "INPUT -j ACCEPT"], "unknown", "NFQUEUE"),
        (["INPUT -j REJECT --reject-with icmp-host-prohibited"], "reject", "icmp host-prohibited"),
        (["INPUT -m set --match-set ours src -j ACCEPT", "INPUT -j DROP"], "unknown", "set"),
    ],
)
def test_what_is_not_known_decides_nothing_unless_every_way_ends_the_same(
    rules: list[str], verdict: str, detail: str
) -> None:
    found = evaluate(read_iptables(filter_table(*rules)), INPUT, SSH)
    assert found.verdict == verdict
    assert detail in found.detail


def test_the_decisive_rule_and_what_its_tables_were_read_from_are_named() -> None:
    text = filter_table("INPUT -j user", 'user -p tcp -m tcp --dport 22 -m comment --comment "a b" -j DROP')
    rules = read_iptables(text, reference="a-17")
    decisive = evaluate(rules, INPUT, SSH).decisive
    assert decisive is not None
    assert decisive.table.reference == "a-17"
    assert str(decisive).startswith("ip filter user rule 1: -p tcp -m tcp --dport 22")


def test_matches_and_targets_that_are_not_known_are_kept_by_name() -> None:
    unknown = {
        name
        for ruleset in (read_nft(NFT), read_iptables(IPTABLES))
        for table in ruleset.tables
        for chain in table.chains
        for rule in chain.rules
        for name in (*(str(m) for m in rule.matches), rule.action.target if rule.action.kind == "unknown" else "")
    }
    assert {
        "addrtype",
        "limit",
        "connmark",
        "physdev",
        "recent",
        "time",
        "NFQUEUE",
        "SYNPROXY",
        "TPROXY",
        "CT",
    } <= unknown
    assert {
        "meta mark",
        "fib type { daddr }",
        "ip ttl",
        "ct status",
        "@dy, which changes",
        "notrack",
        "hook ingress",
    } <= unknown


def test_translation_to_several_addresses_leaves_the_address_unknown() -> None:
    rules = read_iptables(
        "*nat\n:PREROUTING ACCEPT\n-A PREROUTING -j DNAT --to-destination 10.0.0.1-10.0.0.9\nCOMMIT\n"
    )
    packet = evaluate(rules, FORWARD[:1], SSH).packet
    assert packet.destination is None
    assert packet.destination_port == 22


def test_what_conntrack_translates_of_an_established_connection_is_seen_by_later_chains() -> None:
    rules = read_iptables(filter_table("INPUT -d 10.0.0.99 -j DROP"))
    became = Packet("tcp", SSH.source, ip_address("10.0.0.99"), 50000, 22)
    assert evaluate(rules, INPUT, SSH, "ESTABLISHED").verdict == "accept"
    assert evaluate(rules, INPUT, SSH, "ESTABLISHED", translated=became).verdict == "drop"


def test_the_tables_of_iptables_take_the_place_of_those_that_nft_lists() -> None:
    listed = read_nft(
        '{"nftables": [{"table": {"family": "ip", "name": "filter"}}, {"table": {"family": "inet", "name": "own"}}]}'
    )
    merged = listed.merged(read_iptables(filter_table(policy="DROP")))
    assert [(table.family, table.name) for table in merged.tables] == [("inet", "own"), ("ip", "filter")]
    assert evaluate(merged, INPUT, SSH).verdict == "drop"


@settings(max_examples=examples(60))
@given(st.integers(0, 100_000))
def test_a_rule_below_the_decisive_one_changes_nothing(seed: int) -> None:
    draw = Draw(seed)
    lines = iptables_rules(draw, outward=False).split("*nat")[0].splitlines()
    for sent in draw.packets(5, outward=False):
        verdict = evaluate(read_iptables("\n".join(lines)), ("input",), sent.packet)
        decisive = verdict.decisive
        if decisive is None or decisive.rule is None or verdict.doubts:
            continue
        chain, place = decisive.chain.name, int(decisive.rule.handle.split()[1])
        own = [number for number, line in enumerate(lines) if line.startswith(f"-A {chain} ")]
        other = f"-A {chain} {draw.choice(('-j DROP', '-j ACCEPT', '-m limit --limit 1/s -j REJECT'))}"
        changed = [*lines[: own[place - 1] + 1], other, *lines[own[place - 1] + 1 :]]
        again = evaluate(read_iptables("\n".join(changed)), ("input",), sent.packet)
        assert (again.verdict, again.detail, str(again.decisive)) == (verdict.verdict, verdict.detail, str(decisive))


def use(read: Callable[[str], Any], text: str) -> None:
    """Read and use it: only a `ValueError` may come, and only of reading."""
    try:
        result = read(text)
    except ValueError:
        return
    if read in (read_iptables, read_nft):
        for hooks in (INPUT, FORWARD, OUTPUT):
            evaluate(result, hooks, SSH)
    elif read is read_routes:
        select_guest_route(result, ip_address("10.0.0.4"))
    elif read is read_rules:
        select_guest_route((), ip_address("10.0.0.4"), result)


TOKENS = [
    "!",
    "-j",
    "-A",
    "-p",
    ":",
    "[",
    "0",
    '"',
    "99999",
    "--dport",
    "*filter",
    "COMMIT",
    "a/b",
    "-m tcp",
    "\n",
    "-g foo",
]


@given(st.integers(0, 10**9))
def test_damaged_rules_of_iptables_raise_nothing_but_value_errors(seed: int) -> None:
    draw = random.Random(seed)
    words = IPTABLES.split(" ")
    for _ in range(draw.randint(1, 5)):
        words[draw.randrange(len(words))] = draw.choice([*TOKENS, draw.choice(words), ""])
    use(read_iptables, " ".join(words)[: draw.choice((None, draw.randrange(len(IPTABLES))))])


ROUTES = json.dumps(
    [
        {"dst": "default", "gateway": "10.0.0.1", "dev": "eth0", "metric": 5, "flags": [], "metrics": [{"mtu": 1400}]},
        {"type": "blackhole", "dst": "10.3.0.0/16", "table": "100", "flags": []},
        {
            "dst": "10.2.0.0/16",
            "flags": [],
            "nexthops": [{"gateway": "10.0.0.9", "dev": "eth0", "weight": 1, "flags": []}],
        },
        {
            "dst": "10.9.0.0/16",
            "via": {"family": "inet6", "host": "fd00::5"},
            "dev": "eth0",
            "tos": "0x04",
            "flags": [],
        },
    ]
)
RULES = json.dumps(
    [
        {"priority": 0, "src": "all", "table": "local"},
        {"priority": 5, "not": None, "src": "10.0.0.0", "srclen": 24, "dst": "10.1.0.1", "iif": "eth0", "table": "100"},
        {"priority": 9, "src": "all", "fwmark": "0x5", "fwmask": "0xff", "goto": 32766},
        {"priority": 32766, "src": "all", "table": "main", "suppress_prefixlen": 0},
    ]
)
ODD = [
    None,
    True,
    0,
    -1,
    10**30,
    "",
    "a",
    "10.0.0.1",
    "*",
    "@m",
    [],
    {},
    [[]],
    {"set": []},
    {"range": []},
    {"concat": []},
]


@given(st.sampled_from([(read_nft, NFT), (read_routes, ROUTES), (read_rules, RULES)]), st.integers(0, 10**9))
@example((read_nft, "[" * 100_000), -1)
@example((read_routes, "[" * 100_000), -1)
def test_damaged_json_raises_nothing_but_value_errors(form: tuple[Callable[[str], Any], str], seed: int) -> None:
    read, text = form
    if seed >= 0:
        draw = random.Random(seed)
        whole = json.loads(text)
        for _ in range(draw.randint(1, 4)):
            node = whole
            while isinstance(node, dict | list) and node:
                places = list(node) if isinstance(node, dict) else range(len(node))
                place = draw.choice(places)
                if draw.random() < 0.25 or not isinstance(node[place], dict | list) or not node[place]:
                    node[place] = copy.deepcopy(draw.choice(ODD))
                    break
                node = node[place]
        text = json.dumps(whole)
    use(read, text)


@given(st.text())
def test_what_is_none_of_it_raises_nothing_but_value_errors(text: str) -> None:
    for read in (read_iptables, read_nft, read_routes, read_rules, read_listeners):
        use(read, text)


def test_sockets_of_udp_and_of_one_interface_are_read() -> None:
    stub, dual, six = read_listeners(
        'UNCONN 0 0 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=601,fd=13))\n'
        "UNCONN 0 0 *:123 *:*\nUNCONN 0 0 [::]:546 [::]:*\n"
    )
    assert listeners_at((stub, dual, six), ip_address("127.0.0.53"), 53, "lo") == (stub,)
    assert not listeners_at((stub,), ip_address("127.0.0.53"), 53, "eth0")
    assert dual.answers(ip_address("10.0.0.4"), 123)
    assert not six.answers(ip_address("10.0.0.4"), 546)
    assert "systemd-resolve" in stub.process
