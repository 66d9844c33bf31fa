"""A simulated dig 9.18, answered by the resolver of the simulated local machine.

The resolver knows the names of the world; all others do not exist. Other servers do not answer unless the world
declares port 53 for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_address

from ghost.lab.programs.laptop import InterruptError, Laptop, complain, options_of, parse_address, run

VERSION = "DiG 9.18.49-1~deb12u3-Debian"
USAGE = """Usage:  dig [@global-server] [domain] [q-type] [q-class] {q-opt}
            {global-d-opt} host [@local-server] {local-d-opt}
            [ host [@local-server] {local-d-opt} [...]]

Use "dig -h" (or "dig -h | more") for complete list of options"""
OPTIONS = options_of("dig")
TYPES = frozenset(OPTIONS["types"].split())
CLASSES = frozenset({"IN", "CH", "HS"})
SWITCHES = frozenset(OPTIONS["switches"].split())
VALUES = {
    "time": "timeout",
    "timeout": "timeout",
    "tries": "tries",
    "retry": "retries",
    "ndots": "ndots",
    "bufsize": "buffer size",
    "padding": "padding",
    "split": "split",
}
SECTIONS = frozenset({"comments", "question", "answer", "authority", "additional", "stats", "cmd"})
ROOT_SOA = "a.root-servers.net. nstld.verisign-grs.com. 2025011500 1800 900 604800 86400"
EDNS_BYTES = 11


class RefusedError(Exception):
    """The message dig prints before it exits."""

    def __init__(self, text: str, status: int, *, usage: bool = False) -> None:
        super().__init__(f"{text}\n{USAGE}" if usage else text)
        self.status = status


@dataclass(frozen=True)
class Query:
    name: str
    kind: str = "A"
    reverse: bool = False


@dataclass(frozen=True)
class Request:
    queries: tuple[Query, ...] = ()
    server: str | None = None
    port: int = 53
    tries: int = 3
    timeout: int = 5
    tcp: bool = False
    short: bool = False
    edns: bool = True
    recurse: bool = True
    shown: frozenset[str] = SECTIONS


@dataclass(frozen=True)
class Answer:
    status: str
    answers: tuple[tuple[str, int, str, str], ...] = ()
    """Owner, time to live, type, value."""
    authority: tuple[tuple[str, int, str, str], ...] = ()


def main(argv: Sequence[str] | None = None) -> int:
    return run("dig", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    if "-h" in argv:
        print(USAGE)
        return 0
    if "-v" in argv:
        complain(VERSION)
        return 0
    try:
        request = parse(argv)
        server = _server(laptop, request)
    except RefusedError as error:
        complain(str(error))
        return error.status
    try:
        return _ask_all(laptop, request, server, argv)
    except InterruptError:
        return 1


def parse(argv: Sequence[str]) -> Request:
    request = Request()
    words = list(argv)
    kind: str | None = None
    while words:
        word = words.pop(0)
        if word.startswith("@"):
            request = replace(request, server=word[1:])
        elif word.startswith("+") and len(word) > 1:
            request = _plus(request, word)
        elif word.startswith("-") and len(word) > 1:
            request, kind = _minus(request, word, words, kind)
        elif word.upper() in TYPES:
            kind = word.upper()
            request = _typed(request, kind)
        elif word.upper() not in CLASSES:
            request = replace(
                request, queries=(*request.queries, Query(word, kind if kind and not request.queries else "A"))
            )
    return request if request.queries else replace(request, queries=(Query(".", "NS"),))


def _typed(request: Request, kind: str) -> Request:
    """Assign a type after a name to that name, one before all names to the first."""
    if not request.queries or request.queries[-1].reverse:
        return request
    return replace(request, queries=(*request.queries[:-1], replace(request.queries[-1], kind=kind)))


def _minus(request: Request, word: str, words: list[str], kind: str | None) -> tuple[Request, str | None]:
    letter = word[1]
    if word in ("-4", "-6", "-i", "-m", "-r", "-u"):
        return request, kind
    if letter not in "bcfkpqtxy":
        raise RefusedError(f"Invalid option: {word}", 1, usage=True)
    value = word[2:]
    if not value:
        if not words:
            raise RefusedError(f"Invalid option: {word}", 1, usage=True)
        value = words.pop(0)
    match letter:
        case "p":
            return replace(request, port=_number(value, "port number", 65535)), kind
        case "q":
            return replace(request, queries=(*request.queries, Query(value, kind or "A"))), kind
        case "t":
            if value.upper() not in TYPES:
                complain(f";; Warning, ignoring invalid type {value}")
                return request, kind
            return _typed(request, value.upper()), value.upper()
        case "x":
            literal = parse_address(value)
            name = literal.reverse_pointer if literal else ".".join(reversed(value.split("."))) + ".in-addr.arpa"
            return replace(request, queries=(*request.queries, Query(name + ".", "PTR", reverse=True))), kind
        case "f":
            raise RefusedError(f"Couldn't open batch file '{value}': file not found", 8)
    return request, kind


def _plus(request: Request, word: str) -> Request:
    name, equals, value = word[1:].lower().partition("=")
    if name in VALUES:
        if not equals:
            raise RefusedError(f"Invalid option: {word}", 1, usage=True)
        number = _number(value, VALUES[name], 65535)
        if name in ("time", "timeout"):
            return replace(request, timeout=max(number, 1))
        if name in ("tries", "retry"):
            return replace(request, tries=max(number + (name == "retry"), 1))
        return request
    on = not name.startswith("no") or name in ("nsid",)
    plain = name if on else name[2:]
    if plain not in SWITCHES:
        raise RefusedError(f"Invalid option: {word}", 1, usage=True)
    if plain == "all":
        return replace(request, shown=SECTIONS if on else frozenset())
    if plain in SECTIONS:
        return replace(request, shown=request.shown | {plain} if on else request.shown - {plain})
    if plain in ("tcp", "vc"):
        return replace(request, tcp=on)
    if plain == "short":
        return replace(request, short=on)
    if plain == "edns":
        return replace(request, edns=on)
    return replace(request, recurse=on) if plain in ("recurse", "rdflag") else request


def _number(text: str, what: str, maximum: int) -> int:
    if not text.isdigit():
        complain(f"invalid {what} '{text}': not a valid number")
        raise RefusedError(f"dig: Couldn't parse {what}", 1)
    if int(text) > maximum:
        complain(f"invalid {what} '{text}': out of range")
        raise RefusedError(f"dig: Couldn't parse {what}", 1)
    return int(text)


def _server(laptop: Laptop, request: Request) -> str:
    if request.server is None:
        return laptop.machine.dns_server
    found = laptop.resolve(request.server)
    if not found:
        raise RefusedError(f"dig: couldn't get address for '{request.server}': not found", 10)
    return found[0]


def _ask_all(laptop: Laptop, request: Request, server: str, argv: Sequence[str]) -> int:
    for number, query in enumerate(request.queries):
        banner = _banner(request, argv) if number == 0 else ""
        reason = laptop.dns_way(server, request.port)
        if reason == "answers":
            rtt_ms = laptop.rtt_ms(max(host.rtt_ms if (host := laptop.host(server)) else 1.0, 1.0))
            laptop.clock.sleep(rtt_ms / 1000)
            _print_answer(laptop, request, query, server, banner, round(rtt_ms))
            continue
        _complain_of_server(laptop, request, query, server, reason)
        if not request.short:
            print(banner, end="")
        print(";; no servers could be reached")
        return 9
    return 0


def _complain_of_server(laptop: Laptop, request: Request, query: Query, server: str, reason: str) -> None:
    if request.tcp:
        why = {"refused": "connection refused", "unreachable": "host unreachable"}.get(reason, "timed out")
        if why == "timed out":
            laptop.clock.sleep(request.timeout * request.tries)
        print(f";; Connection to {server}#{request.port}({server}) for {query.name.rstrip('.')} failed: {why}.")
        return
    for _ in range(1 if reason == "refused" else request.tries):
        if reason == "silent":
            laptop.clock.sleep(request.timeout)
        why = {"refused": "connection refused", "unreachable": "host unreachable"}.get(reason, "timed out")
        print(f";; communications error to {server}#{request.port}: {why}", flush=True)


def _banner(request: Request, argv: Sequence[str]) -> str:
    if "cmd" not in request.shown:
        return ""
    found = "; (1 server found)\n" if request.server is not None else ""
    return f"\n; <<>> {VERSION} <<>> {' '.join(argv)}\n{found};; global options: +cmd\n"


def look_up(laptop: Laptop, query: Query, server: str) -> Answer:
    """Return a server's answer for a name."""
    name = query.name.rstrip(".").casefold()
    if not name:
        servers = tuple((".", 86400, "NS", f"{letter}.root-servers.net.") for letter in "abcdefghijklm")
        return Answer("NOERROR", servers if query.kind in ("NS", "ANY") else ())
    entries = laptop.dns_entries(server, name)
    if entries is None:
        return Answer("SERVFAIL")
    if name == "localhost" and not entries:
        return Answer("NOERROR", (("localhost.", 86400, "A", "127.0.0.1"),) if query.kind in ("A", "ANY") else ())
    if query.kind == "PTR" and name == "1.0.0.127.in-addr.arpa":
        return Answer("NOERROR", ((f"{name}.", 86400, "PTR", "localhost."),))
    if not entries:
        return Answer("NXDOMAIN", (), (_authority(laptop, name),))
    record_types = {4: ("A", "ANY"), 6: ("AAAA", "ANY")}
    records = tuple(
        (f"{entry.name.rstrip('.')}.", entry.ttl, "A" if version == 4 else "AAAA", entry.address)
        for entry in entries
        if query.kind in record_types[version := ip_address(entry.address).version]
    )
    return Answer("NOERROR", records, () if records else (_authority(laptop, name),))


def _authority(laptop: Laptop, name: str) -> tuple[str, int, str, str]:
    """Return the zone of a negative answer: that of a known name in the same domain, else the root."""
    domain = ".".join(name.split(".")[-2:])
    if any(entry.name.rstrip(".").casefold().endswith(f".{domain}") for entry in laptop.machine.names):
        return f"{domain}.", 300, "SOA", f"ns1.{domain}. hostmaster.{domain}. 1 3600 300 2419200 300"
    return ".", 3600, "SOA", ROOT_SOA


def _print_answer(laptop: Laptop, request: Request, query: Query, server: str, banner: str, rtt_ms: int) -> None:
    answer = look_up(laptop, query, server)
    if request.short:
        for record in answer.answers:
            print(record[3])
        return
    print(banner, end="")
    name = query.name if query.name.endswith(".") else f"{query.name}."
    if "comments" in request.shown:
        flags = f"qr{' rd' if request.recurse else ''} ra"
        additional = int(request.edns)
        print(";; Got answer:")
        print(f";; ->>HEADER<<- opcode: QUERY, status: {answer.status}, id: {laptop.random.randrange(65536)}")
        print(
            f";; flags: {flags}; QUERY: 1, ANSWER: {len(answer.answers)}, AUTHORITY: {len(answer.authority)}, "
            f"ADDITIONAL: {additional}\n"
        )
        if request.edns:
            print(";; OPT PSEUDOSECTION:\n; EDNS: version: 0, flags:; udp: 1232")
    if "question" in request.shown:
        if "comments" in request.shown:
            print(";; QUESTION SECTION:")
        print(f"{_padded(f';{name}', 32)}IN\t{query.kind}")
        if "comments" in request.shown:
            print()
    for section, records in (("answer", answer.answers), ("authority", answer.authority)):
        if records and section in request.shown:
            _print_records(section, records, commented="comments" in request.shown)
    if "stats" in request.shown:
        _print_statistics(laptop.clock.now(), request, server, rtt_ms, _size(request, name, answer))


def _print_records(section: str, records: tuple[tuple[str, int, str, str], ...], *, commented: bool) -> None:
    if commented:
        print(f";; {section.upper()} SECTION:")
    for owner, ttl, kind, value in records:
        print(f"{_padded(f'{_padded(owner, 24)}{ttl}', 32)}IN\t{kind}\t{value}")
    if commented:
        print()


def _print_statistics(now: datetime, request: Request, server: str, rtt_ms: int, size: int) -> None:
    print(f";; Query time: {rtt_ms} msec")
    print(f";; SERVER: {server}#{request.port}({request.server or server}) ({'TCP' if request.tcp else 'UDP'})")
    print(now.strftime(";; WHEN: %a %b %d %H:%M:%S UTC %Y"))
    print(f";; MSG SIZE  rcvd: {size}\n")


def _padded(text: str, column: int) -> str:
    """Pad with tabs to the column, as dig does; a single blank if the text is longer."""
    if len(text.expandtabs()) >= column:
        return f"{text} "
    while len(text.expandtabs()) < column:
        text += "\t"
    return text


def _size(request: Request, name: str, answer: Answer) -> int:
    """Return the bytes of the message, with compressed owners."""
    octets = 12 + len(name) + 1 + 4 + (EDNS_BYTES if request.edns else 0)
    for _, _, kind, value in answer.answers:
        octets += 12 + {"A": 4, "AAAA": 16}.get(kind, len(value) + 1)
    for owner, _, _, value in answer.authority:
        octets += (1 if owner == "." else 2) + 10 + 20 + sum(len(part) + 1 for part in value.split()[:2])
    return octets


if __name__ == "__main__":
    sys.exit(main())
