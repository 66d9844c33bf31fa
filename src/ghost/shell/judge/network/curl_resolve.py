"""Where `curl --resolve` and `--connect-to` lead: the address they give is judged as if it stood in the URL.

`--resolve HOST:PORT:ADDRESS[,ADDRESS]` and `--connect-to HOST:PORT:HOST:PORT` (curl(1)) keep the name that is asked for
and choose who is asked. They are read strictly: one that speaks of another host or port than the URL, that has a sign
before it or an address that is none, is not understood and so not SAFE.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from ghost.patterns import lazy
from ghost.shell.judge.network.request_urls import fault_of_url

_PARTS = lazy(
    r"(?P<scheme>https?)://(?P<host>\[[^\]]+\]|[^/?#:@]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?", re.I | re.S
)
_HOST = r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+"
_RESOLVE = lazy(rf"(?P<host>{_HOST}):(?P<port>[0-9]{{1,5}}):(?P<to>[^,]+(?:,[^,]+){{0,15}})")
_CONNECT_TO = lazy(rf"(?P<host>(?:{_HOST})?):(?P<port>[0-9]{{0,5}}):(?P<to>{_HOST}):(?P<to_port>[0-9]{{0,5}})")
_TARGET = lazy(rf"(?:--[a-z-]{{1,12}}=)?[+*-]?(?:{_HOST})?:[0-9]{{0,5}}:(?P<to>[^/?#@]+)", re.S)
"""What either option may take, in any spelling that curl may accept: for a command that a person approved."""
_PORT_BEHIND = lazy(rf"(?P<host>{_HOST})(?::(?P<port>[0-9]{{0,5}}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}

OPTIONS = ("--resolve", "--connect-to")


def fault_of_target(url: str, option: str, value: str) -> str | None:
    """Why a request for `url` whose connection `option VALUE` redirects is not SAFE."""
    asked = _PARTS.fullmatch(url)
    given = (_RESOLVE if option == "--resolve" else _CONNECT_TO).fullmatch(value)
    if asked is None or given is None:
        form = "HOST:PORT:ADDRESS" if option == "--resolve" else "HOST:PORT:HOST:PORT"
        return f"the value {value[:80]!r} of {option} is not {form}"
    port = asked["port"] or _DEFAULT_PORTS[asked["scheme"].lower()]
    if given["host"].lower() not in (asked["host"].lower(), *([""] if option == "--connect-to" else [])):
        return f"{option} names {given['host'][:80]}, the URL names {asked['host'][:80]}"
    if given["port"] not in (port, *([""] if option == "--connect-to" else [])):
        return f"{option} names port {given['port']}, the URL names port {port}"
    to_port = port if option == "--resolve" else given["to_port"] or port
    for to in _targets(option, value):
        if option == "--resolve" and not _is_address(to):
            return f"{to[:80]!r} in --resolve is not an address; write [ADDRESS] for IPv6"
        if fault := fault_of_url(f"{asked['scheme']}://{to}:{to_port}{asked['rest'] or ''}"):
            return f"{option} {fault}"
    return None


def target_hosts(option: str, value: str) -> tuple[str, ...]:
    """The hosts that the option connects to in place of the URL's, without brackets."""
    return tuple(to.strip("[]") for to in _targets(option, value))


def _targets(option: str, value: str) -> list[str]:
    given = (_RESOLVE if option == "--resolve" else _CONNECT_TO).fullmatch(value)
    return given["to"].split(",") if given is not None else []


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return text.startswith("[") == (address.version == 6)


def steered_in(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Hosts and ports that --resolve and --connect-to add to those of the URLs; the port may be empty."""
    for word in words:
        if (match := _TARGET.fullmatch(word)) is not None:
            for part in match["to"].split(","):
                if (target := _PORT_BEHIND.fullmatch(part)) is not None:
                    yield target["host"], target["port"] or ""
