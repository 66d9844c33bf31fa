"""What `ip route` and `ip rule` print of a machine: the routes of its world, or those that Azure's DHCP gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from ipaddress import ip_address, ip_interface
from typing import Any

from ghost.lab.guest.shell import Ran
from ghost.lab.guest.station import Station
from ghost.net import HOST_ADDRESS, read_routes, select_guest_route

METADATA = "169.254.169.254"
Row = dict[str, Any]


def rows(station: Station) -> list[Row]:
    """Return the rows of `ip -j route show table all`."""
    if station.vm.routes:
        stated: list[Row] = json.loads(station.vm.routes)
        return stated
    machine, own = station.machine, station.address
    link: Row = {"dev": machine.interface}
    by_dhcp: Row = {**link, "protocol": "dhcp", "prefsrc": own, "metric": 100, "flags": []}
    network = ip_interface(machine.address).network
    local: Row = {"table": "local", "protocol": "kernel", "flags": []}
    lo: Row = {**local, "type": "local", "dev": "lo", "scope": "host", "prefsrc": "127.0.0.1"}
    last = {"dst": str(network.broadcast_address), **link, "scope": "link", "prefsrc": own}
    return [
        {"dst": "default", "gateway": machine.gateway, **by_dhcp},
        {"dst": str(network), **by_dhcp, "protocol": "kernel", "scope": "link"},
        {"dst": machine.gateway, **by_dhcp, "scope": "link"},
        *({"dst": each, "gateway": machine.gateway, **by_dhcp} for each in (HOST_ADDRESS, METADATA)),
        {"type": "local", "dst": own, **link, **local, "scope": "host", "prefsrc": own},
        {"type": "broadcast", **last, **local},
        {**lo, "dst": "127.0.0.0/8"},
        {**lo, "dst": "127.0.0.1"},
    ]


def route(station: Station, words: Sequence[str], *, as_json: bool) -> Ran:
    """Answer `ip route ...`."""
    if words and "get".startswith(words[0]) and words[0]:
        return _get(station, [word for word in words[1:] if word != "to"], as_json=as_json)
    rest = [word for word in words if word not in ("show", "list", "ls", "sh", "s", "l")]
    table = rest[rest.index("table") + 1] if "table" in rest[:-1] else "main"
    known = [row for row in rows(station) if table in ("all", row.get("table", "main"))]
    wanted = next((word for word in rest if word == "default" or word[0].isdigit()), None)
    shown = [row for row in known if wanted in (None, row["dst"])]
    if as_json:
        return Ran(json.dumps(shown, separators=(",", ":")) + "\n")
    return Ran("".join(_line(row, in_all=table == "all") + "\n" for row in shown))


def _line(row: Row, *, in_all: bool) -> str:
    kind = row.get("type", "unicast")
    parts = [] if kind == "unicast" else [kind]
    parts.append(row["dst"])
    names = (("gateway", "via"), ("dev", "dev"), ("table", "table"), ("protocol", "proto"), ("scope", "scope"))
    for field, word in (*names, ("prefsrc", "src"), ("metric", "metric")):
        if row.get(field) not in (None, "") and not (field == "table" and not in_all):
            parts += [word, str(row[field])]
    return " ".join(parts) + " "


def _get(station: Station, words: Sequence[str], *, as_json: bool) -> Ran:
    try:
        destination = ip_address(words[0].partition("/")[0])
    except (IndexError, ValueError):
        what = words[0] if words else ""
        return Ran(err=f'Error: any valid prefix is expected rather than "{what}".\n', status=1)
    if station.is_own(str(destination)):
        found: Row = {"type": "local", "dst": str(destination), "dev": "lo", "prefsrc": str(destination)}
    else:
        decision = select_guest_route(read_routes(json.dumps(rows(station))), destination)
        if not decision.hops:
            why = {"prohibit": "Permission denied", "blackhole": "Invalid argument"}
            kind = "No route to host" if decision.kind == "unreachable" else "Network is unreachable"
            return Ran(err=f"RTNETLINK answers: {why.get(decision.kind, kind)}\n", status=2)
        hop = decision.hops[0]
        gateway = {"gateway": str(hop.gateway)} if hop.gateway else {}
        found = {"dst": str(destination), **gateway, "dev": hop.device, "prefsrc": station.address}
    if as_json:
        return Ran(json.dumps([{**found, "flags": [], "uid": 0, "cache": []}], separators=(",", ":")) + "\n")
    return Ran(f"{_line(found, in_all=False)}uid 0 \n    cache \n")
