"""A simulated ip of iproute2 6.1.0: addresses, links, routes and neighbours, read only."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface, ip_interface
from typing import Any

from ghost.lab.programs.laptop import Laptop, complain, parse_address, run

VERSION = "ip utility, iproute2-6.1.0"
USAGE = "Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\n       ip [ -force ] -batch filename"
OBJECTS = ("address", "link", "route", "neighbour", "rule")
READS = ("show", "list", "lst", "ls")
WRITES = ("add", "del", "delete", "change", "replace", "set", "flush", "append", "save", "restore")
FOREVER = 4294967295
GATEWAY_MAC = "a0:63:91:5e:20:c1"


class RefusedError(Exception):
    """The message ip prints before it exits."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Style:
    json: bool = False
    pretty: bool = False
    brief: bool = False
    oneline: bool = False
    family: int | None = None


@dataclass(frozen=True)
class Link:
    index: int
    name: str
    mac: str
    broadcast: str
    flags: tuple[str, ...]
    mtu: int
    qdisc: str
    state: str
    kind: str
    address: IPv4Interface
    """With the length of its prefix."""

    @property
    def is_loopback(self) -> bool:
        return self.kind == "loopback"


def main(argv: Sequence[str] | None = None) -> int:
    return run("ip", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    try:
        style, words = _style(argv)
        if style is None:
            print(VERSION)
            return 0
        if not words:
            raise RefusedError(USAGE, 255)
        if words[0] == "help":
            complain(USAGE)
            return 255
        name = _object(words[0])
        rest = words[1:]
        shown = {"address": _address, "link": _link, "route": _route, "neighbour": _neighbour, "rule": _rule}
        text = shown[name](laptop, style, _command(name, rest))
    except RefusedError as error:
        complain(str(error))
        return error.status
    if text:
        print(text)
    return 0


def _style(argv: Sequence[str]) -> tuple[Style | None, list[str]]:
    style, words = Style(), list(argv)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        plain = word[1:] if word.startswith("--") else word
        if plain in ("-V", "-Version"):
            return None, []
        if plain in ("-h", "-help"):
            raise RefusedError(USAGE, 255)
        if plain in ("-4", "-6"):
            style = replace(style, family=int(plain[1]))
        elif plain in ("-f", "-family"):
            family = words.pop(0) if words else ""
            if family not in ("inet", "inet6", "link"):
                raise RefusedError(f'Error: argument "{family}" is wrong: invalid protocol family\n', 255)
            style = replace(style, family={"inet": 4, "inet6": 6}.get(family))
        elif plain in ("-j", "-js", "-json"):
            style = replace(style, json=True)
        elif plain in ("-p", "-pretty"):
            style = replace(style, pretty=True)
        elif plain in ("-br", "-brief"):
            style = replace(style, brief=True)
        elif plain in ("-o", "-oneline"):
            style = replace(style, oneline=True)
        elif plain not in ("-s", "-stats", "-statistics", "-d", "-details", "-r", "-resolve", "-N", "-c", "-color"):
            raise RefusedError(f'Option "{plain}" is unknown, try "ip -help".', 255)
    return style, words


def _object(word: str) -> str:
    for name in OBJECTS:
        if name.startswith(word):
            return name
    if word == "neighbor":
        return "neighbour"
    raise RefusedError(f'Object "{word}" is unknown, try "ip help".', 1)


def _command(name: str, words: list[str]) -> list[str]:
    """Return the words after a read command; `show` is the default."""
    if not words:
        return ["show"]
    word = words[0]
    if name == "route" and "get".startswith(word):
        return ["get", *words[1:]]
    if any(read.startswith(word) for read in READS):
        return ["show", *words[1:]]
    if any(write.startswith(word) for write in WRITES):
        raise RefusedError("RTNETLINK answers: Operation not permitted", 2)
    if word == "help":
        raise RefusedError(f"Usage: ip {name} [ show [ dev IFNAME ] ]", 255)
    if name in ("address", "link") and word in ("dev", "up", "lo"):
        return ["show", *words]
    raise RefusedError(f'Command "{word}" is unknown, try "ip {name} help".', 255)


def _links(laptop: Laptop) -> tuple[Link, Link]:
    machine = laptop.machine
    up = ("UP", "LOWER_UP")
    zero, ones = "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"
    own, loopback = IPv4Interface(machine.address), IPv4Interface("127.0.0.1/8")
    return (
        Link(1, "lo", zero, zero, ("LOOPBACK", *up), 65536, "noqueue", "UNKNOWN", "loopback", loopback),
        Link(
            2,
            machine.interface,
            machine.mac,
            ones,
            ("BROADCAST", "MULTICAST", *up),
            1500,
            "fq_codel",
            "UP",
            "ether",
            own,
        ),
    )


def _chosen(laptop: Laptop, words: list[str]) -> list[Link]:
    """Return the links selected by `[dev] NAME` or `up`; all by default."""
    links = list(_links(laptop))
    names = [
        word for word in words[1:] if word not in ("dev", "up", "to", "scope", "global", "primary", "type", "ether")
    ]
    for name in names:
        links = [link for link in links if link.name == name]
        if not links:
            raise RefusedError(f'Device "{name}" does not exist.', 1)
    return links


def _address(laptop: Laptop, style: Style, words: list[str]) -> str:
    links = _chosen(laptop, words)
    if style.family == 6:
        links = []
    if style.json:
        return _dump(
            style, [_link_object(link, style) | {"addr_info": [_address_object(link, style)]} for link in links]
        )
    if style.brief:
        return "\n".join(f"{link.name:<16} {link.state:<14} {link.address} " for link in links)
    if style.oneline:
        return "\n".join(f"{link.index}: {link.name}    {_inet(link)}\\       {_lifetime()}" for link in links)
    heads = (_head(link, "") + ([] if style.family == 4 else [_hardware(link)]) for link in links)
    return "\n".join(
        "\n".join((*head, f"    {_inet(link)}", f"       {_lifetime()}"))
        for link, head in zip(links, heads, strict=True)
    )


def _link(laptop: Laptop, style: Style, words: list[str]) -> str:
    links = _chosen(laptop, words)
    if style.json:
        return _dump(style, [_link_object(link, style, mode=True) for link in links])
    if style.brief:
        return "\n".join(f"{link.name:<16} {link.state:<14} {link.mac} <{','.join(link.flags)}> " for link in links)
    joint = "\\" if style.oneline else "\n"
    return "\n".join(joint.join((*_head(link, "mode DEFAULT "), _hardware(link))) for link in links)


def _head(link: Link, mode: str) -> list[str]:
    return [
        f"{link.index}: {link.name}: <{','.join(link.flags)}> mtu {link.mtu} qdisc {link.qdisc} state {link.state} "
        f"{mode}group default qlen 1000"
    ]


def _hardware(link: Link) -> str:
    return f"    link/{link.kind} {link.mac} brd {link.broadcast}"


def _inet(link: Link) -> str:
    if link.is_loopback:
        return f"inet {link.address} scope host {link.name}"
    return f"inet {link.address} brd {link.address.network.broadcast_address} scope global {link.name}"


def _lifetime() -> str:
    return "valid_lft forever preferred_lft forever"


def _link_object(link: Link, style: Style, *, mode: bool = False) -> dict[str, Any]:
    if style.brief:
        short: dict[str, Any] = {"ifname": link.name, "operstate": link.state}
        return short | {"address": link.mac, "flags": list(link.flags)} if mode else short
    return {
        "ifindex": link.index,
        "ifname": link.name,
        "flags": list(link.flags),
        "mtu": link.mtu,
        "qdisc": link.qdisc,
        "operstate": link.state,
        **({"linkmode": "DEFAULT"} if mode else {}),
        "group": "default",
        "txqlen": 1000,
        "link_type": link.kind,
        "address": link.mac,
        "broadcast": link.broadcast,
    }


def _address_object(link: Link, style: Style) -> dict[str, Any]:
    short = {"local": str(link.address.ip), "prefixlen": link.address.network.prefixlen}
    if style.brief:
        return short
    broadcast = {} if link.is_loopback else {"broadcast": str(link.address.network.broadcast_address)}
    return {
        "family": "inet",
        **short,
        **broadcast,
        "scope": "host" if link.is_loopback else "global",
        "label": link.name,
        "valid_life_time": FOREVER,
        "preferred_life_time": FOREVER,
    }


def _route(laptop: Laptop, style: Style, words: list[str]) -> str:
    if words[0] == "get":
        return _route_get(laptop, style, words[1:])
    if style.family == 6:
        return _dump(style, []) if style.json else ""
    machine = laptop.machine
    default: dict[str, Any] = {"dst": "default", "gateway": machine.gateway, "dev": machine.interface, "flags": []}
    network = str(ip_interface(machine.address).network)
    own: dict[str, Any] = {
        "dst": network,
        "dev": machine.interface,
        "protocol": "kernel",
        "scope": "link",
        "prefsrc": laptop.address,
        "flags": [],
    }
    routes = [default, own]
    if "default" in words:
        routes = [default]
    if style.json:
        return _dump(style, routes)
    lines = [f"default via {machine.gateway} dev {machine.interface} "]
    lines.append(f"{network} dev {machine.interface} proto kernel scope link src {laptop.address} ")
    return "\n".join(lines[: len(routes)])


def _route_get(laptop: Laptop, style: Style, words: list[str]) -> str:
    destination = next((word for word in words if word not in ("to",)), None)
    if destination is None:
        raise RefusedError("need at least a destination address", 255)
    address = parse_address(destination.partition("/")[0])
    if address is None:
        raise RefusedError(f'Error: any valid prefix is expected rather than "{destination}".', 1)
    if address.version == 6:
        raise RefusedError("RTNETLINK answers: Network is unreachable", 2)
    machine, target = laptop.machine, str(address)
    if address.is_loopback or target == laptop.address:
        found = {
            "type": "local",
            "dst": target,
            "dev": "lo",
            "prefsrc": target,
            "flags": [],
            "uid": 1000,
            "cache": ["local"],
        }
        text = f"local {target} dev lo src {target} uid 1000 \n    cache <local> "
    else:
        via = {} if laptop.is_neighbour(target) else {"gateway": machine.gateway}
        found = {
            "dst": target,
            **via,
            "dev": machine.interface,
            "prefsrc": laptop.address,
            "flags": [],
            "uid": 1000,
            "cache": [],
        }
        hop = "" if laptop.is_neighbour(target) else f"via {machine.gateway} "
        text = f"{target} {hop}dev {machine.interface} src {laptop.address} uid 1000 \n    cache "
    return _dump(style, [found]) if style.json else text


def _neighbour(laptop: Laptop, style: Style, _words: list[str]) -> str:
    machine = laptop.machine
    if style.json:
        entry = {"dst": machine.gateway, "dev": machine.interface, "lladdr": GATEWAY_MAC, "state": ["REACHABLE"]}
        return _dump(style, [entry])
    return f"{machine.gateway} dev {machine.interface} lladdr {GATEWAY_MAC} REACHABLE "


def _rule(_laptop: Laptop, style: Style, _words: list[str]) -> str:
    rules = ((0, "local"), (32766, "main"), (32767, "default"))
    if style.json:
        return _dump(style, [{"priority": number, "src": "all", "table": table} for number, table in rules])
    return "\n".join(f"{number}:\tfrom all lookup {table}" for number, table in rules)


def _dump(style: Style, objects: list[dict[str, Any]]) -> str:
    return json.dumps(objects, indent=4) if style.pretty else json.dumps(objects, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
