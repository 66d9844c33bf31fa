"""A simulated curl 7.88.1: its command line, and its transfers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from ghost.lab.programs.http_transfer import Limits, Plan, Transfer, perform
from ghost.lab.programs.laptop import InterruptError, Laptop, complain, options_of, run
from ghost.lab.programs.write_out import expand

VERSION = """curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.19 zlib/1.2.13 nghttp2/1.52.0
Release-Date: 2023-02-20
Protocols: http https telnet
Features: AsynchDNS HTTP2 IPv6 Largefile SSL"""
USAGE = "Usage: curl [options...] <url>"
TRY = "curl: try 'curl --help' or 'curl --manual' for more information"
DEFAULT_PORTS = {"http": 80, "https": 443, "telnet": 23}
REPEATED = frozenset({"output", "resolve", "header", "url", "write-out"})


class RefusedError(Exception):
    """The message curl prints before exit status 2."""


class BadUrlError(Exception):
    """A URL that curl rejects."""


@dataclass(frozen=True)
class Request:
    urls: tuple[str, ...]
    options: dict[str, str]
    """Long names with their last argument; flags with none."""
    outputs: tuple[str, ...]
    resolved: dict[tuple[str, int], str]


def main(argv: Sequence[str] | None = None) -> int:
    return run("curl", execute, argv)


def execute(laptop: Laptop, argv: Sequence[str]) -> int:
    if argv and argv[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    try:
        request = parse(argv)
        if "version" in request.options:
            print(VERSION)
            return 0
        if not request.urls:
            raise RefusedError(TRY)
        limits = _limits(request.options)
    except RefusedError as error:
        complain(str(error))
        return 2
    status = 0
    try:
        for number, url in enumerate(request.urls):
            status = _one(laptop, request, limits, number, url)
    except InterruptError:
        return 130
    return status


def parse(argv: Sequence[str]) -> Request:
    flags, arguments = _table("flags"), _table("arguments")
    options: dict[str, str] = {}
    urls: list[str] = []
    outputs: list[str] = []
    resolved: dict[tuple[str, int], str] = {}
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            urls.append(word)
            continue
        for shown, name, attached in _names(word, flags, arguments):
            value = attached
            if name in arguments.values():
                if value is None:
                    if not words:
                        raise RefusedError(f"curl: option {shown}: requires parameter\n{TRY}")
                    value = words.pop(0)
                if name == "url":
                    urls.append(value)
                elif name == "output":
                    outputs.append(value)
                elif name == "resolve":
                    host, port, address = (*value.split(":", 2), "", "")[:3]
                    if not port.isdigit() or not address:
                        raise RefusedError(f"curl: (49) Couldn't parse CURLOPT_RESOLVE entry '{value}'!")
                    resolved[host.casefold(), int(port)] = address
                elif name in ("connect-timeout", "max-time"):
                    _seconds(shown, value)
            options[name] = value or ""
    return Request(tuple(urls), options, tuple(outputs), resolved)


def _table(kind: str) -> dict[str, str]:
    """Return every spelling of an option with its long name."""
    spellings: dict[str, str] = {}
    for entry in options_of("curl")[kind].split():
        name, _, letter = entry.partition(":")
        spellings[f"--{name}"] = name
        if letter:
            spellings[f"-{letter}"] = name
    return spellings


def _names(word: str, flags: dict[str, str], arguments: dict[str, str]) -> list[tuple[str, str, str | None]]:
    """Yield the options of one word: spelling, long name, attached argument."""
    unknown = RefusedError(f"curl: option {word}: is unknown\n{TRY}")
    if word.startswith("--"):
        known = flags.get(word) or arguments.get(word)
        if known is None and word.startswith("--no-") and f"--{word[5:]}" in flags:
            return [(word, f"no-{word[5:]}", None)]
        if known is None:
            candidates = {name for spelling, name in (flags | arguments).items() if spelling.startswith(word)}
            if len(candidates) > 1:
                raise RefusedError(f"curl: option {word}: is ambiguous\n{TRY}")
            if not candidates:
                raise unknown
            known = candidates.pop()
        return [(word, known, None)]
    found: list[tuple[str, str, str | None]] = []
    for at, letter in enumerate(word[1:], 1):
        spelling = f"-{letter}"
        if spelling in arguments:
            return [*found, (spelling if len(word) == 2 else word, arguments[spelling], word[at + 1 :] or None)]
        if spelling not in flags:
            raise unknown
        found.append((spelling, flags[spelling], None))
    return found


def _seconds(shown: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise RefusedError(f"curl: option {shown}: expected a proper numerical parameter\n{TRY}") from None
    if value < 0:
        raise RefusedError(f"curl: option {shown}: expected a positive numerical parameter\n{TRY}")
    return value


def _limits(options: dict[str, str]) -> Limits:
    connect, total = options.get("connect-timeout"), options.get("max-time")
    return Limits(float(connect) if connect else None, float(total) if total else None)


def _one(laptop: Laptop, request: Request, limits: Limits, number: int, url: str) -> int:
    """Transfer one URL and return the exit status."""
    options = request.options
    try:
        transfer = perform(laptop, _plan(laptop, request, url), limits)
    except BadUrlError as error:
        status, text = (1, str(error)) if "Protocol" in str(error) else (3, str(error))
        transfer = Transfer(Plan(url, url, "", "", 0, None), status=status, error=text)
    silent = "silent" in options
    if transfer.status == 0 and transfer.http_code >= 400 and options.keys() & {"fail", "fail-with-body"}:
        text = f"The requested URL returned error: {transfer.http_code}"
        transfer = replace(transfer, status=22, error=text)
    if "verbose" in options:
        complain("\n".join(transfer.log))
    elif not silent and "no-progress-meter" not in options:
        _progress(transfer)
    _deliver(request, number, transfer)
    sys.stdout.flush()
    if transfer.error and (not silent or "show-error" in options):
        complain(f"curl: ({transfer.status}) {transfer.error}")
    if "write-out" in options:
        print(expand(options["write-out"], transfer, number), end="", flush=True)
    return transfer.status


def _plan(laptop: Laptop, request: Request, url: str) -> Plan:
    parts = _split(url)
    if parts.scheme not in _protocols(request.options.get("proto")):
        raise BadUrlError(f'Protocol "{parts.scheme}" not supported or disabled in libcurl')
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    given = request.resolved.get((host.casefold(), port))
    found = [given] if given else laptop.resolve(host)
    wanted = {"ipv4": 4, "ipv6": 6}
    for option, version in wanted.items():
        if option in request.options:
            found = [address for address in found if ip_address(address).version == version]
    method = request.options.get("request") or ("HEAD" if "head" in request.options else "GET")
    if any(name.startswith("data") or name == "json" for name in request.options) and "request" not in request.options:
        method = "POST"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    effective = f"{parts.scheme}://{parts.netloc}{path}"
    return Plan(
        url,
        effective,
        parts.scheme,
        host,
        port,
        found[0] if found else None,
        path,
        method,
        bool(given),
        "insecure" in request.options,
    )


def _split(url: str) -> SplitResult:
    bad = BadUrlError("URL using bad/illegal format or missing URL")
    if any(letter.isspace() for letter in url):
        raise bad
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        _ = parts.port
    except ValueError:
        raise bad from None
    if not parts.hostname:
        raise bad
    return parts


def _protocols(text: str | None) -> set[str]:
    """Return the protocols that `--proto` allows: `=only,these`, `-without`, `+with`."""
    allowed = set(DEFAULT_PORTS)
    for word in (text or "").split(","):
        names = (
            set(DEFAULT_PORTS) if word.lstrip("=+-") == "all" else {word.lstrip("=+-").casefold()} & set(DEFAULT_PORTS)
        )
        if word.startswith("="):
            allowed = names
        elif word.startswith("-"):
            allowed -= names
        else:
            allowed |= names
    return allowed


def _deliver(request: Request, number: int, transfer: Transfer) -> None:
    head = "include" in request.options or "head" in request.options
    text = (transfer.head if head else "") + ("" if transfer.plan.method == "HEAD" else transfer.body)
    if transfer.status == 22 and "fail-with-body" not in request.options:
        text = ""
    target = request.outputs[number] if number < len(request.outputs) else "-"
    if target == "-":
        print(text, end="")
    elif target != "/dev/null":
        with open(target, "w", encoding="utf-8") as file:  # noqa: PTH123 -- what `-o` asks for
            file.write(text)


def _progress(transfer: Transfer) -> None:
    size = len(transfer.body)
    complain("  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current")
    complain("                                 Dload  Upload   Total   Spent    Left  Speed")
    line = "\r  0     0    0     0    0     0      0      0 --:--:-- {} --:--:--     0"
    for second in range(min(int(transfer.total), 300) + 1):
        spent = f"{second // 3600:2d}:{second // 60 % 60:02d}:{second % 60:02d}" if second else "--:--:--"
        print(line.format(spent), end="", file=sys.stderr)
    if size:
        speed = round(size / transfer.total) if transfer.total else 0
        full = f"\r100 {size:5d}  100 {size:5d}    0     0  {speed:5d}      0 --:--:-- --:--:-- --:--:-- {speed:5d}"
        print(full, end="", file=sys.stderr)
    print(file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
