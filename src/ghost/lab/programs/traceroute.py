"""A simulated traceroute 2.1.2 ("Modern traceroute for Linux")."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypeVar

from ghost.lab.programs.laptop import InterruptError, Laptop, complain, run

USAGE = "Usage:\n  traceroute [ OPTIONS ] host [ packetlen ]\n\nFor the options see traceroute(8)."
VERSION = "Modern traceroute for Linux, version 2.1.2"
FLAGS = frozenset("46dFITnreAUD")
WITH_ARGUMENT = {
    "f": "first_ttl",
    "g": "gate,...",
    "i": "device",
    "m": "max_ttl",
    "M": "name",
    "N": "squeries",
    "O": "OPTS,...",
    "p": "port",
    "P": "prot",
    "q": "nqueries",
    "s": "src_addr",
    "t": "tos",
    "l": "flow_label",
    "w": "MAX,HERE,NEAR",
    "z": "sendwait",
}
LONG = {
    "debug": "d",
    "dont-fragment": "F",
    "first": "f",
    "gateway": "g",
    "icmp": "I",
    "tcp": "T",
    "interface": "i",
    "max-hops": "m",
    "sim-queries": "N",
    "port": "p",
    "tos": "t",
    "flowlabel": "l",
    "wait": "w",
    "queries": "q",
    "source": "s",
    "sendwait": "z",
    "extensions": "e",
    "as-path-lookups": "A",
    "module": "M",
    "options": "O",
    "udp": "U",
    "dccp": "D",
    "protocol": "P",
}
LONG_ONLY = frozenset({"mtu", "back"})
LONG_ONLY_WITH_ARGUMENT = frozenset({"sport", "fwmark"})

Number = TypeVar("Number", int, float)


class RefusedError(Exception):
    """The message traceroute prints before exit status 2."""


@dataclass(frozen=True)
class Request:
    host: str
    first: int = 1
    last: int = 30
    queries: int = 3
    simultaneous: int = 16
    wait: float = 5.0
    numeric: bool = False
    six: bool = False
    length: int = 60
    tcp_port: int | None = None
    count: int = 0
    """Of the words on the command line, which messages name."""


def main(argv: Sequence[str] | None = None) -> int:
    return run("traceroute", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    if not argv or "--help" in argv:
        print(USAGE)
        return 0
    if "-V" in argv or "--version" in argv:
        complain(VERSION)
        return 0
    try:
        request = parse(argv)
        address = _address(laptop, request)
    except RefusedError as error:
        complain(str(error))
        return 2
    _trace(laptop, request, address)
    return 0


def parse(argv: Sequence[str]) -> Request:
    options, words = _split(argv)
    if not words:
        raise RefusedError('Specify "host" missing argument.')
    if len(words) > 2:
        raise RefusedError(f"Extra arg `{words[2][1]}' (position 3, argc {words[2][0]})")

    def number(key: str, default: Number, kind: Callable[[str], Number]) -> Number:
        if key not in options:
            return default
        position, text = options[key]
        try:
            return kind(text.split(",")[0] if key == "w" else text)
        except ValueError:
            raise RefusedError(f"Cannot handle `-{key}' option with arg `{text}' (argc {position})") from None

    length = 60
    if len(words) == 2:
        position, text = words[1]
        if not text.isdigit():
            raise RefusedError(f'Cannot handle "packetlen" cmdline arg `{text}\' on position 2 (argc {position})')
        length = max(28, min(int(text), 65000))
    request = Request(
        host=words[0][1],
        first=number("f", 1, int),
        last=number("m", 30, int),
        queries=number("q", 3, int),
        simultaneous=number("N", 16, int),
        wait=number("w", 5.0, float),
        numeric="n" in options,
        six="6" in options,
        length=length,
        tcp_port=number("p", 80, int) if "T" in options else None,
        count=words[0][0],
    )
    if request.last > 255:
        raise RefusedError("max hops cannot be more than 255")
    if not 1 <= request.first <= request.last:
        raise RefusedError("first hop out of range")
    if not 1 <= request.queries <= 10:
        raise RefusedError("no more than 10 probes per hop")
    if request.wait < 0:
        raise RefusedError(f"bad wait seconds `{request.wait:g}' specified")
    return request


def _split(argv: Sequence[str]) -> tuple[dict[str, tuple[int, str]], list[tuple[int, str]]]:
    """Return the options with arguments, and the other words, each with its position."""
    options: dict[str, tuple[int, str]] = {}
    words: list[tuple[int, str]] = []
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        if not word.startswith("-") or word == "-":
            words.append((position, word))
            continue
        key, value, takes = _option(word, position)
        for flag in key[:-1] if len(word) > 1 and not word.startswith("--") else "":
            options[flag] = (position, "")
        last = key if word.startswith("--") else key[-1]
        if takes and value is None:
            if position >= len(argv):
                shown = word if word.startswith("--") else f"-{last}"
                asked = f"`{shown} {WITH_ARGUMENT.get(last, 'num')}'"
                raise RefusedError(f"Option `{shown}' (argc {position}) requires an argument: {asked}")
            value = argv[position]
            position += 1
        options[last] = (position, value or "")
    return options, words


def _option(word: str, position: int) -> tuple[str, str | None, bool]:
    """Return an option's letters (or long name), its argument, and whether it takes one."""
    bad = RefusedError(f"Bad option `{word}' (argc {position})")
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if name in LONG_ONLY or name in LONG_ONLY_WITH_ARGUMENT:
            return name, value if equals else None, name in LONG_ONLY_WITH_ARGUMENT
        if name not in LONG:
            raise bad
        return LONG[name], value if equals else None, LONG[name] in WITH_ARGUMENT
    if word == "-UL":
        return "U", None, False
    for at, letter in enumerate(word[1:], 1):
        if letter in WITH_ARGUMENT:
            return word[1 : at + 1], word[at + 1 :] or None, True
        if letter not in FLAGS:
            raise bad
    return word[1:], None, False


def _address(laptop: Laptop, request: Request) -> str:
    found = laptop.resolve(request.host)
    wanted = 6 if request.six else 4
    suitable = [address for address in found if ip_address(address).version == wanted]
    if suitable:
        return suitable[0]
    why = "Address family for hostname not supported" if found else "Name or service not known"
    place = f'Cannot handle "host" cmdline arg `{request.host}\' on position 1 (argc {request.count})'
    raise RefusedError(f"{request.host}: {why}\n{place}")


def _trace(laptop: Laptop, request: Request, address: str) -> None:
    print(
        f"traceroute to {request.host} ({address}), {request.last} hops max, {request.length} byte packets", flush=True
    )
    unanswered = 0
    try:
        for ttl in range(request.first, request.last + 1):
            node, rtt_ms = _answering(laptop, request, address, ttl)
            if node is None:
                unanswered += request.queries
                if unanswered >= request.simultaneous:  # So many probes are under way at once, and wait together.
                    laptop.clock.sleep(request.wait)
                    unanswered -= request.simultaneous
                print(f"{ttl:2d}  {' '.join('*' * request.queries)}", flush=True)
                continue
            times = [laptop.rtt_ms(rtt_ms) for _ in range(request.queries)]
            laptop.clock.sleep(max(times) / 1000)
            shown = node if request.numeric else f"{laptop.name_of(node) or node} ({node})"
            mark = " !H" if node == laptop.address != address else ""
            print(f"{ttl:2d}  {shown}  {'  '.join(f'{time:.3f} ms{mark}' for time in times)}", flush=True)
            if node == address or mark:
                return
        if unanswered:
            laptop.clock.sleep(request.wait)
    except InterruptError:
        return


def _answering(laptop: Laptop, request: Request, address: str, ttl: int) -> tuple[str | None, float]:
    """Return who answers a probe of this time to live, and after how long."""
    routers, host = laptop.path(address), laptop.host(address)
    if ttl <= len(routers):
        far = host.rtt_ms if host else 10.0
        return routers[ttl - 1], 1.2 if ttl == 1 else far * ttl / (len(routers) + 1)
    if host is None:
        return (laptop.address, 3000.0) if laptop.is_neighbour(address) else (None, 0.0)
    if request.tcp_port is not None and laptop.way(address, request.tcp_port) == "silent":
        return None, 0.0
    return address, host.rtt_ms


if __name__ == "__main__":
    sys.exit(main())
