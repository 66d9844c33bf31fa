"""A simulated ss of iproute2 6.1.0, over the socket table of the local machine."""

from __future__ import annotations

import getopt
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from ghost.lab.local_machine import Socket
from ghost.lab.programs.laptop import Laptop, complain, run

VERSION = "ss utility, iproute2-6.1.0"
USAGE = "Usage: ss [ OPTIONS ]\n       ss [ OPTIONS ] [ FILTER ]"
SHORT = "hVnralomeipsbEZzN:460tMSudwxf:KHOA:D:F:T"
LONG = {
    "help": "h",
    "version": "V",
    "numeric": "n",
    "resolve": "r",
    "all": "a",
    "listening": "l",
    "options": "o",
    "memory": "m",
    "extended": "e",
    "info": "i",
    "processes": "p",
    "summary": "s",
    "bpf": "b",
    "events": "E",
    "context": "Z",
    "contexts": "z",
    "ipv4": "4",
    "ipv6": "6",
    "tcp": "t",
    "udp": "u",
    "raw": "w",
    "unix": "x",
    "packet": "0",
    "no-header": "H",
    "oneline": "O",
    "threads": "T",
    "family=": "f",
    "query=": "A",
    "socket=": "A",
    "net=": "N",
}
FAMILIES = ("inet", "inet6", "link", "unix", "netlink", "vsock", "tipc", "xdp")
QUERIES = ("all", "inet", "tcp", "udp", "raw", "unix", "packet", "netlink", "mptcp", "sctp", "dccp")
STATES = {
    "established": "ESTAB",
    "listening": "LISTEN",
    "listen": "LISTEN",
    "time-wait": "TIME-WAIT",
    "closed": "UNCONN",
    "unconnected": "UNCONN",
    "syn-sent": "SYN-SENT",
    "syn-recv": "SYN-RECV",
    "fin-wait-1": "FIN-WAIT-1",
    "fin-wait-2": "FIN-WAIT-2",
    "close-wait": "CLOSE-WAIT",
    "last-ack": "LAST-ACK",
    "closing": "CLOSING",
}
GROUPS = {
    "all": frozenset(STATES.values()),
    "connected": frozenset(STATES.values()) - {"LISTEN", "UNCONN"},
    "synchronized": frozenset(STATES.values()) - {"LISTEN", "UNCONN", "SYN-SENT"},
    "bucket": frozenset({"SYN-RECV", "TIME-WAIT"}),
}
SERVICES = {"22": "ssh", "53": "domain", "67": "bootps", "68": "bootpc", "80": "http", "443": "https", "631": "ipp"}
FIRST_PROCESS_ID = 871


class RefusedError(Exception):
    """The message ss prints before exit status 1, or 255 with its usage."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Filter:
    states: frozenset[str]
    ends: tuple[tuple[str, str, str], ...] = ()
    """Side (src or dst), address or "", port or ""."""

    def admits(self, socket: Socket) -> bool:
        if socket.state not in self.states:
            return False
        for side, address, port in self.ends:
            host, _, number = (socket.local if side == "src" else socket.peer).rpartition(":")
            if (address and address != host) or (port and port != number):
                return False
        return True


def main(argv: Sequence[str] | None = None) -> int:
    return run("ss", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    try:
        options, words = _options(argv)
        if "h" in options or "V" in options:
            print(USAGE if "h" in options else VERSION)
            return 0
        if "s" in options:
            _summary(laptop.machine.sockets)
            return 0
        selected = _selected_protocols(options)
        chosen = _filter(words, options)
    except RefusedError as error:
        complain(str(error) if error.status == 1 else f"ss: {error}\n{USAGE}")
        return error.status
    rows = [socket for socket in laptop.machine.sockets if socket.protocol in selected and chosen.admits(socket)]
    if "6" in options and "4" not in options:
        rows = [socket for socket in rows if socket.local.startswith("[")]
    elif "4" in options:
        rows = [socket for socket in rows if not socket.local.startswith("[")]
    rows.sort(key=lambda socket: socket.protocol, reverse=True)
    _table(rows, laptop.machine.sockets, options, netid=len(selected) > 1, state=len(chosen.states) != 1)
    return 0


def _options(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    try:
        found, words = getopt.gnu_getopt(list(argv), SHORT, list(LONG))
    except getopt.GetoptError as error:
        if "requires argument" in error.msg:
            raise RefusedError(f"option requires an argument -- '{error.opt}'", 255) from error
        letter = len(error.opt) == 1
        what = f"invalid option -- '{error.opt}'" if letter else f"unrecognized option '--{error.opt}'"
        raise RefusedError(what, 255) from error
    letters = {name.rstrip("="): letter for name, letter in LONG.items()}
    options = {(letters[name[2:]] if name.startswith("--") else name[1:]): value for name, value in found}
    if options.get("f") and options["f"] not in FAMILIES:
        raise RefusedError(f'"{options["f"]}" is invalid family', 255)
    return options, words


def _selected_protocols(options: dict[str, str]) -> frozenset[str]:
    protocol_names = {
        "t": "tcp",
        "u": "udp",
        "w": "raw",
        "x": "unix",
        "0": "packet",
        "M": "mptcp",
        "S": "sctp",
        "d": "dccp",
    }
    selected = {protocol for letter, protocol in protocol_names.items() if letter in options}
    for query in options["A"].split(",") if "A" in options else ():
        if query not in QUERIES:
            raise RefusedError(f'"{query}" is illegal socket table id', 255)
        selected |= {"tcp", "udp", "raw"} if query in ("all", "inet") else {query}
    return frozenset(selected or {"tcp", "udp", "raw", "unix"})


def _filter(words: list[str], options: dict[str, str]) -> Filter:
    """Parse a filter: `state NAME`, `src` and `dst` with addresses and ports, `sport = :22`, joined by `and`."""
    states = GROUPS["connected"] - GROUPS["bucket"]
    if "a" in options:
        states = GROUPS["all"]
    elif "l" in options:
        states = frozenset({"LISTEN", "UNCONN"})
    ends: list[tuple[str, str, str]] = []
    rest = [word for word in words if word not in ("and", "(", ")")]
    protocol_names: set[str] = set()
    while rest:
        word = rest.pop(0)
        if word == "state":
            name = rest.pop(0) if rest else ""
            if name not in STATES and name not in GROUPS:
                raise RefusedError(f"wrong state name: {name}", 255)
            protocol_names |= GROUPS.get(name, frozenset({STATES.get(name, "")}))
        elif word in ("src", "dst") and rest:
            host, _, port = rest.pop(0).rpartition(":") if ":" in rest[0] else (rest.pop(0), "", "")
            ends.append((word, host, port.replace("*", "")))
        elif word in ("sport", "dport"):
            if rest and rest[0] in ("=", "==", "eq"):
                rest.pop(0)
            port = rest.pop(0).lstrip(":") if rest else ""
            ends.append(("src" if word == "sport" else "dst", "", port))
        else:
            raise RefusedError(
                f'Error: an inet prefix is expected rather than "{word}".\nCannot parse dst/src address.', 1
            )
    return Filter(frozenset(protocol_names) if protocol_names else states, tuple(ends))


def _table(rows: list[Socket], every: tuple[Socket, ...], options: dict[str, str], *, netid: bool, state: bool) -> None:
    processes = _process_ids(every)
    cells: list[list[str]] = []
    if "H" not in options:
        cells.append(["Netid", "State", "Recv-Q", "Send-Q", "Local Address", "Port", "Peer Address", "Port", "Process"])
    for socket in rows:
        local, peer = _ends(socket.local, options), _ends(socket.peer, options)
        queue = "128" if socket.state == "LISTEN" else "0"
        process = ""
        if "p" in options and socket.process is not None:
            process = f' users:(("{socket.process}",pid={processes[socket.process]},fd=3))'
        cells.append([socket.protocol, socket.state, "0", queue, *local, *peer, process])
    widths = [max(len(row[at]) for row in cells) if cells else 0 for at in range(9)]
    for row in cells:
        line = ""
        if netid:
            line += row[0].ljust(widths[0]) + " "
        if state:
            line += row[1].ljust(widths[1]) + " "
        line += row[2].ljust(widths[2]) + " " + row[3].ljust(widths[3]) + " "
        line += (
            f"{row[4].rjust(widths[4])}:{row[5].ljust(widths[5])} {row[6].rjust(widths[6])}:{row[7].ljust(widths[7])}"
        )
        print(line + row[8].ljust(widths[8]) if widths[8] else line)


def _ends(end: str, options: dict[str, str]) -> tuple[str, str]:
    address, _, port = end.rpartition(":")
    return address, port if "n" in options else SERVICES.get(port, port)


def _process_ids(sockets: tuple[Socket, ...]) -> dict[str, int]:
    numbers = count(FIRST_PROCESS_ID, 137)
    names = dict.fromkeys(socket.process for socket in sockets if socket.process is not None)
    return {name: next(numbers) for name in names}


def _summary(sockets: tuple[Socket, ...]) -> None:
    tcp = [socket for socket in sockets if socket.protocol == "tcp"]
    udp = len(sockets) - len(tcp)
    waiting = sum(socket.state == "TIME-WAIT" for socket in tcp)
    established = sum(socket.state == "ESTAB" for socket in tcp)
    six = sum(socket.local.startswith("[") for socket in tcp)
    live = len(tcp) - waiting
    print(f"Total: {len(sockets) + 12}")
    print(f"TCP:   {len(tcp)} (estab {established}, closed {waiting}, orphaned 0, timewait {waiting})\n")
    print("Transport Total     IP        IPv6")
    for name, total, four, v6 in (
        ("RAW", 0, 0, 0),
        ("UDP", udp, udp, 0),
        ("TCP", live, live - six, six),
        ("INET", udp + live, udp + live - six, six),
        ("FRAG", 0, 0, 0),
    ):
        print(f"{name}\t  {total:<9} {four:<9} {v6:<9}")
    print()


if __name__ == "__main__":
    sys.exit(main())
