"""What a few PowerShell commands print inside a Windows machine.

https://learn.microsoft.com/powershell/module/nettcpip/test-netconnection
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from ghost.lab.guest.shell import Ran
from ghost.lab.guest.station import Station
from ghost.lab.programs.laptop import parse_address
from ghost.lab.world import Machine, World

_OPTION = re.compile(r"-(?P<name>\w+)(?:[ :]+(?P<value>[^-\s][^\s]*))?|(?P<word>[^\s-]\S*)")


def run_powershell(world: World, vm: Machine, lines: Sequence[str], now: datetime) -> Ran:
    station = Station.of(world, vm, now)
    out, err = "", ""
    for number, line in enumerate((part.strip() for text in lines for part in re.split(r"[;\n]", text)), 1):
        if not line or line.startswith("#"):
            continue
        answer = None if set("|$(){}`") & set(line) else _answer(station, *_read(line))
        if answer is None:
            there = (
                "Test-NetConnection HOST -Port N, Resolve-DnsName NAME, Get-NetTCPConnection -State Listen, hostname"
            )
            err += f"line {number}: {line}: not simulated in this lab; there is {there}\n"
        else:
            out += answer
    return Ran(out, err, 1 if err else 0)


def _read(line: str) -> tuple[str, list[str], dict[str, str]]:
    command, _, rest = line.partition(" ")
    options, words = {}, []
    for found in _OPTION.finditer(rest):
        if found["name"] is not None:
            options[found["name"].casefold()] = found["value"] or ""
        else:
            words.append(found["word"])
    return command.casefold(), [word.strip("'\"") for word in words], options


def _answer(station: Station, command: str, words: list[str], options: dict[str, str]) -> str | None:
    match command:
        case "test-netconnection" | "tnc":
            return _test_connection(station, words, options)
        case "resolve-dnsname":
            return _resolved(station, (words or [options.get("name", "")])[0])
        case "get-nettcpconnection" if options.get("state", "").casefold() == "listen":
            return _listening(station)
        case "hostname":
            return f"{station.vm.name}\r\n"
    return None


def _test_connection(station: Station, words: list[str], options: dict[str, str]) -> str | None:
    host = (words or [options.get("computername", "")])[0]
    port = options.get("port", "")
    if not host or (port and not port.isdecimal()):
        return None
    found = station.resolve(host)
    if not found:
        return f"WARNING: Name resolution of {host} failed\r\n" + _fields(
            {"ComputerName": host, "RemoteAddress": "", "TcpTestSucceeded" if port else "PingSucceeded": "False"}
        )
    address = found[0]
    shown = {"ComputerName": host, "RemoteAddress": address}
    if port:
        shown["RemotePort"] = port
    shown |= {"InterfaceAlias": "Ethernet", "SourceAddress": station.address}
    if port and station.way(address, int(port)) == "answers":
        return _fields({**shown, "TcpTestSucceeded": "True"})
    warning = f"WARNING: TCP connect to ({address} : {port}) failed\r\n" if port else ""
    host_there = station.echoes(address)
    rtt = f"{round(host_there.rtt_ms)} ms" if host_there else "0 ms"
    if host_there is None:
        warning += f"WARNING: Ping to {address} failed with status: TimedOut\r\n"
    shown |= {"PingSucceeded": str(host_there is not None), "PingReplyDetails (RTT)": rtt}
    return warning + _fields({**shown, **({"TcpTestSucceeded": "False"} if port else {})})


def _fields(values: dict[str, str]) -> str:
    width = max(map(len, values))
    return "\r\n" + "".join(f"{name:<{width}} : {value}\r\n" for name, value in values.items()) + "\r\n"


def _resolved(station: Station, name: str) -> str | None:
    if not name or parse_address(name) is not None:
        return None
    found = station.resolve(name)
    if not found:
        return f"Resolve-DnsName : {name} : DNS name does not exist\r\n"
    head = "Name                                           Type   TTL   Section    IPAddress"
    rows = (f"{name:<46} A      10    Answer     {address}" for address in found)
    return "\r\n".join(["", head, head.translate({ord(c): "-" for c in head if c != " "}), *rows, "", ""])


def _listening(station: Station) -> str:
    head = "LocalAddress                        LocalPort RemoteAddress                       RemotePort State       "
    rows = (
        f"{each.address:<35} {each.port:<9} 0.0.0.0                             0          Listen      "
        for each in station.vm.listeners
        if each.protocol == "Tcp"
    )
    return "\r\n".join(["", head, head.translate({ord(c): "-" for c in head if c != " "}), *rows, "", ""])
