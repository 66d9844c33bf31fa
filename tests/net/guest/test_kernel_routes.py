"""Route selection against `ip route get` of the Linux kernel, for random tables and rules in a network namespace."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from ipaddress import ip_address

import pytest

from ghost.net.guest import RouteDecision, read_routes, read_rules, select_guest_route
from tests.exhaustive import EXHAUSTIVE
from tests.net.guest.rule_sets import Draw
from tests.pcap.netns.space import Space

pytestmark = [pytest.mark.needs("ip")]

PREFIXES = {
    4: "default 10.0.0.0/8 10.4.0.0/14 10.5.0.0/16 10.5.6.0/24 10.5.6.128/25 10.5.6.200 10.0.0.64/26",
    6: "default fd00::/8 fd05::/16 fd05:6::/32 fd05:6::/64 fd05:6::c0/122 fd05:6::c8 fd00:0:0:1::/64",
}
HOSTS = {
    4: "10.5.6.200 10.5.6.201 10.5.6.7 10.5.9.9 10.6.1.1 10.99.0.1 8.8.8.8 10.0.0.70 10.1.0.9 10.0.0.1",
    6: "fd05:6::c8 fd05:6::c9 fd05:6::7 fd05:6:0:9::1 fd05:9::1 fd99::1 2001:db8::1 fd00:0:0:1::5 fd01::9 fd00::1",
}
KINDS = ("via", "via", "via", "link", "onlink", "spread", "blackhole", "unreachable", "prohibit", "throw")
RULES = ("lookup 100", "lookup 100", "lookup main suppress_prefixlength 8", "unreachable", "blackhole", "goto 32766")
GATEWAYS = {4: {"d0": "10.0.0.254", "d1": "10.1.0.254"}, 6: {"d0": "fd00::254", "d1": "fd01::254"}}
SOURCES = {4: ("10.0.0.33", "10.1.0.33", "10.5.6.33"), 6: ("fd00::33", "fd01::33", "fd05:6::33")}
LIMIT = {"d0": 1500, "d1": 1400, "lo": 65536}
REFUSED = {
    "Invalid argument": ("blackhole",),
    "No route to host": ("unreachable", "none"),
    "Permission denied": ("prohibit",),
    "Network is unreachable": ("none", "unreachable"),
}


@pytest.fixture(scope="module")
def space() -> Space:
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    made, far = Space("routes"), Space("far")
    made.sysctl({f"net.ipv6.conf.{name}.disable_ipv6": 0 for name in ("default", "all", "lo")})
    for number, device in enumerate(("d0", "d1")):
        made.cable(device, f"02:00:00:00:00:0{number}", far, f"far{number}", f"02:00:00:00:01:0{number}", LIMIT[device])
        made.ip(
            f"link set {device} addrgenmode none",
            f"address add 10.{number}.0.1/24 dev {device}",
            f"address add fd0{number}::1/64 dev {device} nodad",
        )
    made.sysctl(
        {
            **{f"net.ipv4.conf.{name}.rp_filter": 0 for name in ("all", "d0", "d1")},
            "net.ipv4.ip_forward": 1,
            "net.ipv6.conf.all.forwarding": 1,
        }
    )
    return made


def routes(draw: Draw) -> list[str]:
    """Commands for a random table or two."""
    made = []
    tables = ("main", "main", "100")
    gateways = GATEWAYS[draw.version]
    for _ in range(draw.randint(2, 14)):
        prefix, table = draw.choice(PREFIXES[draw.version].split()), draw.choice(tables)
        metric = f" metric {draw.choice((5, 10, 20))}" if draw.maybe(0.6) else ""
        mtu = f" mtu {draw.choice((1300, 1450))}" if draw.maybe(0.2) else ""
        device = draw.choice(("d0", "d1"))
        kind = draw.choice(KINDS)
        match kind:
            case "via":
                way = f"{prefix} via {gateways[device]} dev {device}"
            case "link":
                way = f"{prefix} dev {device}{' scope link' if draw.version == 4 else ''}"
            case "onlink":
                way = f"{prefix} via {'192.0.2.1' if draw.version == 4 else '2001:db8::9'} dev {device} onlink"
            case "spread":
                way = f"{prefix}{metric}{mtu} table {table} " + " ".join(
                    f"nexthop via {gateway} dev {d}" for d, gateway in gateways.items()
                )
            case _:
                way, mtu = f"{kind} {prefix}", ""
        action = "append" if draw.version == 4 else "add"
        made.append(f"route {action} {way}" + ("" if kind == "spread" else f"{metric}{mtu} table {table}"))
    return made


def rules(draw: Draw) -> list[str]:
    made = []
    for priority in draw.sample(range(100, 120), draw.choice((0, 0, 1, 2, 3))):
        device = draw.choice(("d0", "d1", "lo"))
        asked = [f"from {draw.choice(SOURCES[draw.version])}", f"to {draw.choice(PREFIXES[draw.version].split()[1:5])}"]
        selected = draw.sample([*asked, f"iif {device}", "oif d1", "fwmark 7"], draw.choice((1, 1, 2)))
        negated = "not " if draw.maybe(0.15) else ""
        made.append(f"rule add {negated}{' '.join(selected)} {draw.choice(RULES)} priority {priority}")
    return made


def differences(space: Space, seed: int) -> tuple[list[str], Counter[str]]:
    draw = Draw(seed)
    draw.version = 4 if seed % 2 else 6
    version = f"-{draw.version}"
    for family in ("-4", "-6"):
        run(
            space,
            "ip",
            family,
            "-force",
            "-batch",
            "-",
            stdin="route flush table 100\nroute flush table main\nrule flush\n",
        )
    defaults = ["rule add lookup main priority 32766"]
    connected = (
        ["route add 10.0.0.0/24 dev d0 src 10.0.0.1 scope link", "route add 10.1.0.0/24 dev d1 src 10.1.0.1 scope link"]
        if draw.version == 4
        else ["route add fd00::/64 dev d0 metric 256", "route add fd01::/64 dev d1 metric 256"]
    )
    commands = [*defaults, *connected, *routes(draw), *rules(draw)]
    run(space, "ip", version, "-force", "-batch", "-", stdin="\n".join(commands) + "\n")
    table = read_routes(run(space, "ip", version, "-j", "route", "show", "table", "all")[0])
    chosen = read_rules(run(space, "ip", version, "-j", "rule")[0])
    asked = []
    for host in HOSTS[draw.version].split():
        source = draw.choice(SOURCES[draw.version])
        own = "10.1.0.1" if draw.version == 4 else "fd01::1"
        asked += [(host, "", "", ""), (host, own, "", ""), (host, source, draw.choice(("d0", "d1")), "")]
        asked += [(host, "", "", draw.choice(("d0", "d1")))]
    queries = [
        " ".join(f"{name}{value}" for name, value in zip(("", "from ", "iif ", "oif "), query, strict=True) if value)
        for query in asked
    ]
    orders = "".join(f"route get {query}\n" for query in queries)
    output, errors = run(space, "ip", version, "-j", "-force", "-batch", "-", stdin=orders)
    answers = iter([row for line in output.splitlines() if line.strip() for row in json.loads(line)])
    refused: dict[int, str] = {}
    last = ""
    for line in errors.splitlines():
        if line.startswith("Command failed"):
            refused[int(line.rpartition(":")[2])] = last
        last = line.rpartition(": ")[2]
    found, tally = [], Counter[str]()
    for number, (host, source, iif, oif) in enumerate(asked, 1):
        decision = select_guest_route(
            table,
            ip_address(host),
            chosen,
            source=ip_address(source) if source else None,
            in_interface=iif,
            out_interface=oif,
            mtus=LIMIT,
        )
        tally[decision.kind] += 1
        answer = refused[number] if number in refused else next(answers)
        if decision.kind != "unknown" and not agrees(decision, answer):
            made = "\n  ".join(commands)
            found.append(f"seed {seed} get {queries[number - 1]}\n  kernel {answer}\n  {decision}\n  {made}")
    return found, tally


def agrees(decision: RouteDecision, answer: object) -> bool:
    if isinstance(answer, str):
        return decision.kind in REFUSED[answer]
    assert isinstance(answer, dict)
    kind = answer.get("type", "unicast")
    if kind != decision.kind or kind == "local":
        return bool(kind == decision.kind)
    hops = [(hop.device, str(hop.gateway) if hop.gateway else None) for hop in decision.hops]
    stated = next((metric["mtu"] for metric in answer.get("metrics", ()) if "mtu" in metric), None)
    mtu = min(LIMIT[answer["dev"]], stated or 65535)
    return (answer["dev"], answer.get("gateway")) in hops and (decision.mtu == mtu or len(hops) > 1)


def run(space: Space, *command: str, stdin: str = "") -> tuple[str, str]:
    with space.entered():
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=20)
    return done.stdout, done.stderr


def test_the_kernel_and_the_model_choose_the_same_route(space: Space) -> None:
    found: list[str] = []
    tally = Counter[str]()
    for seed in range(500 if EXHAUSTIVE else 40):
        differing, kinds = differences(space, seed)
        found += differing
        tally += kinds
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:3])
    assert min(tally[kind] for kind in ("unicast", "local", "none", "blackhole", "unreachable", "prohibit")) > 5, tally
    assert tally["unknown"] < sum(tally.values()) / 5, tally
