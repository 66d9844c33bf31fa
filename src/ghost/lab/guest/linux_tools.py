"""The programs of a Linux guest: one table of what a script may run. None changes anything.

curl, ping, dig, ss and ip are those of the engineer's laptop, on another machine (`station.py`).
"""

from __future__ import annotations

import getopt
import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import datetime
from threading import Lock

from ghost.lab.guest import guest_routes, packet_filter
from ghost.lab.guest.shell import NotSimulatedError, Ran, read_script, run
from ghost.lab.guest.station import ScriptClock, Station, TimeUpError
from ghost.lab.guest.text_filters import FILTERS
from ghost.lab.local_machine import Socket
from ghost.lab.programs import curl, dig, ip, ping, ss
from ghost.lab.programs.laptop import Laptop
from ghost.lab.tenant import guest_texts
from ghost.lab.world import Machine, World

_PRINTING = Lock()
"""The programs print: one script at a time may take what they print."""
BOOTED_SECONDS = 19 * 86400 + 3 * 3600
CONNECT_SECONDS = 127.0


def run_script(world: World, vm: Machine, lines: Sequence[str], now: datetime) -> Ran:
    """Return what a script prints on a machine, and its exit status."""
    station = Station.of(world, vm, now)
    try:
        return _interpreted(station, "\n".join(lines))
    except NotSimulatedError as refusal:
        return Ran(err=f"script.sh: {refusal}\n", status=2)
    except RecursionError:
        return Ran(err="script.sh: it is nested too deeply for a lab\n", status=2)
    except TimeUpError:
        return Ran(err="script.sh: it did not end in the 90 minutes that Azure gives a script\n", status=124)


def _interpreted(station: Station, text: str) -> Ran:
    def tool(words: Sequence[str], stdin: str) -> Ran:
        return _tool(station, words, stdin)

    def connect(target: str, line: int) -> Ran:
        _, _, kind, host, port = (*target.split("/"), "", "")[:5]
        return _dev_tcp(station, kind, host, port, f"script.sh: line {line}: ")

    return run(read_script(text), tool, connect)


def _tool(station: Station, words: Sequence[str], stdin: str) -> Ran:
    name, arguments = words[0].rpartition("/")[2], list(words[1:])
    try:
        if name in FILTERS:
            return FILTERS[name](_files(station), arguments, stdin)
        if name in TOOLS:
            return TOOLS[name](station, arguments)
    except NotSimulatedError as refusal:
        return Ran(err=f"{refusal}\n", status=127)
    except (getopt.GetoptError, ValueError, IndexError) as error:
        return Ran(err=f"{' '.join(words)}: not simulated in this lab ({error})\n", status=127)
    there = ", ".join(sorted({*TOOLS, *FILTERS}))
    return Ran(err=f"{words[0]}: not simulated in this lab; there is {there}\n", status=127)


def _files(station: Station) -> dict[str, str]:
    servers = "".join(f"nameserver {server}\n" for server in station.servers)
    return {
        "/etc/hostname": f"{station.vm.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {station.vm.name}\n",
        "/etc/resolv.conf": f"{servers}search reddog.microsoft.com\n",
        "/proc/sys/net/ipv4/ip_forward": f"{guest_texts(station.vm)['forwarding']}\n",
        "/dev/null": "",
    }


# --------------------------------------------------------------------------------------- the programs of the laptop


def _of_the_laptop(execute: Callable[[Laptop, Sequence[str]], int]) -> Callable[[Station, Sequence[str]], Ran]:
    def answer(station: Station, words: Sequence[str]) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with _PRINTING, redirect_stdout(out), redirect_stderr(err):
            try:
                status = execute(station, words)
            except TimeUpError:
                status = 124
        return Ran(out.getvalue(), err.getvalue(), status)

    return answer


_curl, _ping, _ip, _ss = map(_of_the_laptop, (curl.execute, ping.execute, ip.execute, ss.execute))


def _curl_without_files(station: Station, words: Sequence[str]) -> Ran:
    request = curl.parse(words) if "-h" not in words else None
    written = [name for name in (request.outputs if request else ()) if name not in ("-", "/dev/null")]
    if written or (request and "remote-name" in request.options):
        raise NotSimulatedError(f"curl: a lab writes no files: {' '.join(written) or '-O'}")
    return _curl(station, words)


def _sockets(station: Station, words: Sequence[str]) -> Ran:
    sockets = (*station.machine.sockets, *_connections(station))
    return _ss(replace(station, machine=replace(station.machine, sockets=sockets)), words)


def _connections(station: Station) -> list[Socket]:
    """Return sockets of what the machine connects to: waiting for an answer, or closed a moment ago."""
    found = []
    for traffic in station.world.traffic:
        if traffic.client != station.vm.name or traffic.protocol != "Tcp":
            continue
        name = traffic.name or traffic.server
        machines = {vm.name: station.world.address_of(vm.name) for vm in station.world.machines}
        for address in [machines[name]] if name in machines else station.resolve(name)[:1]:
            way = station.way(address, traffic.port)
            state = {"silent": "SYN-SENT", "answers": "TIME-WAIT"}.get(way)
            seconds = CONNECT_SECONDS if way == "silent" else 60.0
            for number in range(min(int(traffic.connections_per_minute * seconds / 60), 12) if state else 0):
                local = f"{station.address}:{36000 + 2 * number + traffic.port % 1000 * 14 % 20000}"
                found.append(Socket(state, local, f"{address}:{traffic.port}"))  # type: ignore[arg-type]
    return found


def _addresses(station: Station, words: Sequence[str]) -> Ran:
    plain = [word for word in words if not word.startswith("-")]
    options = [word for word in words if word.startswith("-")]
    as_json = any(word in ("-j", "-json", "-js", "--json") for word in options)
    if plain and "route".startswith(plain[0]) and "-6" not in options:
        return guest_routes.route(station, plain[1:], as_json=as_json)
    return _ip(station, words)


# ------------------------------------------------------------------------------------------------- names and ports


def _getent(station: Station, words: Sequence[str]) -> Ran:
    if len(words) != 2 or words[0] not in ("hosts", "ahosts", "ahostsv4"):
        raise NotSimulatedError(f"getent {' '.join(words)}: not simulated in this lab; there is getent hosts NAME")
    found = station.resolve(words[1])
    return Ran("".join(f"{address:<15} {words[1]}\n" for address in found), status=0 if found else 2)


def _nslookup(station: Station, words: Sequence[str]) -> Ran:
    plain = [word for word in words if not word.startswith("-")]
    if not 1 <= len(plain) <= 2:
        raise NotSimulatedError("nslookup: not simulated in this lab without one NAME and at most one SERVER")
    name, servers = plain[0], plain[1:] or list(station.servers)
    for server in servers:
        way = station.dns_way(server, 53)
        if way != "answers":
            station.clock.sleep(5.0 if way == "silent" else 0.001)
            continue
        top = f"Server:\t\t{server}\nAddress:\t{server}#53\n\n"
        found = station.dns_entries(server, name.rstrip(".").casefold())
        if not found:
            why = "SERVFAIL" if found is None else "NXDOMAIN"
            return Ran(f"{top}** server can't find {name}: {why}\n\n", status=1)
        top += "Non-authoritative answer:\n"
        return Ran(top + "".join(f"Name:\t{name}\nAddress: {each.address}\n" for each in found) + "\n")
    return Ran(";; connection timed out; no servers could be reached\n\n", status=1)


def _netcat(station: Station, words: Sequence[str]) -> Ran:
    """Connect and say so: without `-z` too, for a script sends nothing."""
    found, plain = getopt.gnu_getopt(list(words), "zvuw:n4N")
    options = dict(found)
    if len(plain) != 2 or not plain[1].isdecimal():
        raise NotSimulatedError(
            f"nc {' '.join(words)}: not simulated in this lab; there is nc -zv [-u] [-w N] HOST PORT"
        )
    host, port, protocol = plain[0], int(plain[1]), "Udp" if "-u" in options else "Tcp"
    addresses = station.resolve(host)
    if not addresses:
        said = f'nc: getaddrinfo for host "{host}" port {port}: Name or service not known\n'
        return Ran(err=said, status=1)
    kind = "udp" if protocol == "Udp" else "tcp"
    way = station.outcome(addresses[0], port, protocol)
    if way == "answers" or (protocol == "Udp" and way == "silent"):
        shown = host if host == addresses[0] else f"{host} ({addresses[0]})"
        said = f"Connection to {shown} {port} port [{kind}/*] succeeded!\n"
        return Ran(err=said if "-v" in options else "")
    if way == "silent":
        station.clock.sleep(float(options.get("-w", CONNECT_SECONDS)))
    why = {"refused": "Connection refused", "unreachable": "No route to host"}
    shown = why.get(way, "Operation now in progress" if "-w" in options else "Connection timed out")
    said = f"nc: connect to {host} port {port} ({kind}) failed: {shown}\n"
    if "-w" in options and way == "silent":
        said = f"nc: connect to {host} port {port} ({kind}) timed out: Operation now in progress\n"
    return Ran(err=said if "-v" in options else "", status=1)


def _dev_tcp(station: Station, kind: str, host: str, port: str, place: str) -> Ran:
    addresses = station.resolve(host)
    if not addresses or not port.isdecimal():
        return Ran(err=f"{place}{host}: Name or service not known\n", status=1)
    way = station.outcome(addresses[0], int(port), kind.capitalize())
    if way == "answers" or (kind == "udp" and way == "silent"):
        return Ran()
    if way == "silent":
        station.clock.sleep(CONNECT_SECONDS)
    why = {"refused": "Connection refused", "unreachable": "No route to host"}.get(way, "Connection timed out")
    return Ran(err=f"{place}connect: {why}\n{place}/dev/{kind}/{host}/{port}: {why}\n", status=1)


# ------------------------------------------------------------------------------------------------- the machine itself


def _iptables_save(station: Station, words: Sequence[str]) -> Ran:
    if [word for word in words if word != "-c"]:
        raise NotSimulatedError(f"iptables-save {' '.join(words)}: not simulated in this lab; there is iptables-save")
    text = guest_texts(station.vm)["iptables"]
    return Ran(text if text.endswith("\n") else f"{text}\n")


def _iptables(station: Station, words: Sequence[str]) -> Ran:
    return Ran(packet_filter.listed(guest_texts(station.vm)["iptables"], words) + "\n")


def _nft(station: Station, words: Sequence[str]) -> Ran:
    plain = [word for word in words if word not in ("-j", "--json", "-a", "-n", "-nn", "-s")]
    if plain != ["list", "ruleset"]:
        raise NotSimulatedError(f"nft {' '.join(words)}: not simulated in this lab; there is nft -j list ruleset")
    if "-j" in words or "--json" in words:
        return Ran(guest_texts(station.vm)["nft"].strip() + "\n")
    if station.vm.nft:
        raise NotSimulatedError("nft list ruleset: this lab prints it as JSON only: nft -j list ruleset")
    return Ran()


def _sysctl(station: Station, words: Sequence[str]) -> Ran:
    known = {"net.ipv4.ip_forward": guest_texts(station.vm)["forwarding"]}
    names = [word for word in words if not word.startswith("-")]
    unknown = [name for name in names if name.replace("/", ".") not in known]
    if unknown or not names:
        raise NotSimulatedError(f"sysctl {' '.join(words)}: not simulated in this lab; there is {', '.join(known)}")
    values = [(name, known[name.replace("/", ".")]) for name in names]
    return Ran("".join(f"{value}\n" if "-n" in words else f"{name} = {value}\n" for name, value in values))


def _qdisc(station: Station, words: Sequence[str]) -> Ran:
    """Print queues that drop nothing: what a world loses, it loses behind the interface."""
    if not [word for word in words if not word.startswith("-")][:1] == ["qdisc"]:
        raise NotSimulatedError(f"tc {' '.join(words)}: not simulated in this lab; there is tc -s qdisc show")
    counts = " Sent 84930211 bytes 331804 pkt (dropped 0, overlimits 0 requeues 11) \n backlog 0b 0p requeues 11\n"
    lines = ((f"mq 0: dev {station.machine.interface} root ", 1), ("noqueue 0: dev lo root refcnt 2 ", 0))
    return Ran("".join(f"qdisc {line}\n{counts * used if '-s' in words else ''}" for line, used in lines))


def _systemctl(station: Station, words: Sequence[str]) -> Ran:
    plain = [word.removesuffix(".service") for word in words if not word.startswith("-")]
    running = {listener.process: 701 + number for number, listener in enumerate(station.vm.listeners)}
    if len(plain) != 2 or plain[0] not in ("status", "is-active") or plain[1] not in running:
        raise NotSimulatedError(
            f"systemctl {' '.join(words)}: not simulated in this lab; there is systemctl status of what listens: "
            f"{', '.join(running) or 'nothing'}"
        )
    if plain[0] == "is-active":
        return Ran("active\n")
    number = running[plain[1]]
    return Ran(f"● {plain[1]}.service\n     Active: active (running)\n   Main PID: {number} ({plain[1]})\n")


def _timeout(station: Station, words: Sequence[str]) -> Ran:
    _, plain = getopt.getopt(list(words), "s:k:v", ["signal=", "kill-after=", "preserve-status", "foreground"])
    clock = station.clock
    assert isinstance(clock, ScriptClock)
    clock.ends.append(clock.monotonic() + float(plain[0].removesuffix("s")))
    try:
        return _tool(station, plain[1:], "")
    except TimeUpError:
        return Ran(status=124)
    finally:
        clock.ends.pop()


def _bash(station: Station, words: Sequence[str]) -> Ran:
    if len(words) < 2 or words[0] not in ("-c", "-lc"):
        raise NotSimulatedError("bash: not simulated in this lab but for bash -c SCRIPT")
    return _interpreted(station, words[1])


def _date(station: Station, words: Sequence[str]) -> Ran:
    formats = [word[1:] for word in words if word.startswith("+")]
    stated = formats[0] if formats else "%a %b %e %H:%M:%S UTC %Y"
    now = station.clock.now()
    return Ran(now.strftime(stated.replace("%s", str(int(now.timestamp()))).replace("%N", f"{now:%f}000")) + "\n")


def _uptime(station: Station, _words: Sequence[str]) -> Ran:
    now = station.clock.now()
    days, hours = divmod(BOOTED_SECONDS // 3600, 24)
    return Ran(f" {now:%H:%M:%S} up {days} days, {hours:2}:07,  0 users,  load average: 0.11, 0.08, 0.05\n")


def _which(_station: Station, words: Sequence[str]) -> Ran:
    plain = [word for word in words if not word.startswith("-")]
    known = [name for name in plain if name in TOOLS or name in FILTERS]
    return Ran("".join(f"/usr/bin/{name}\n" for name in known), status=int(len(known) < len(plain)))


def _echo(_station: Station, words: Sequence[str]) -> Ran:
    plain = [word for word in words if word not in ("-n", "-e", "-ne", "-en")]
    return Ran(" ".join(plain) + ("" if words[:1] in (["-n"], ["-ne"], ["-en"]) else "\n"))


def _sleep(station: Station, words: Sequence[str]) -> Ran:
    station.clock.sleep(float(words[0].removesuffix("s")))
    return Ran()


def _hostname(station: Station, words: Sequence[str]) -> Ran:
    if set(words) - {"-I", "-i", "-s", "-f"}:
        raise NotSimulatedError(f"hostname {' '.join(words)}: not simulated in this lab")
    return Ran(f"{station.address} \n" if set(words) & {"-I", "-i"} else f"{station.vm.name}\n")


def _sudo(station: Station, words: Sequence[str]) -> Ran:
    plain = list(words)
    while plain and plain[0] in ("-n", "-E", "--"):
        plain.pop(0)
    return _tool(station, plain, "") if plain else Ran(err="usage: sudo command\n", status=1)


def _said(text: str, status: int = 0) -> Callable[[Station, Sequence[str]], Ran]:
    return lambda _station, _words: Ran(text, status=status)


TOOLS: dict[str, Callable[[Station, Sequence[str]], Ran]] = {
    "bash": _bash,
    "command": _which,
    "curl": _curl_without_files,
    "date": _date,
    "dig": _of_the_laptop(dig.execute),
    "echo": _echo,
    "false": _said("", 1),
    "getent": _getent,
    "hostname": _hostname,
    "ip": _addresses,
    "ip6tables-save": _said(""),
    "iptables": _iptables,
    "iptables-save": _iptables_save,
    "nc": _netcat,
    "nft": _nft,
    "nslookup": _nslookup,
    "ping": _ping,
    "set": _said(""),
    "sh": _bash,
    "sleep": _sleep,
    "ss": _sockets,
    "sudo": _sudo,
    "sysctl": _sysctl,
    "systemctl": _systemctl,
    "tc": _qdisc,
    "timeout": _timeout,
    "true": _said(""),
    "uname": _said("Linux\n"),
    "uptime": _uptime,
    "which": _which,
    "whoami": _said("root\n"),
}
