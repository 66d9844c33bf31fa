"""Pins the hosts of a curl command: each is resolved before the run, judged, and pinned to its address.

A name that leads to a cloud's metadata service or wire server is refused: those hand out credentials to whoever asks
from inside. Pinning closes the gap between looking and running: the program asks no name server again.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ghost.patterns import lazy
from ghost.shell.call_timeout import call_within
from ghost.shell.judge.network.curl_resolve import steered_in
from ghost.shell.judge.network.request_urls import Address, is_metadata, parse_ipv4_leniently

Resolver = Callable[[str], Iterable[str]]
"""Host name to addresses. Raises `OSError`, or answers none, where the name does not exist."""

RESOLVE_SECONDS = 10.0
COULD_NOT_RESOLVE = 6  # curl's exit status for it

_URL = lazy(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^@/?#\s]*@)?(?P<host>\[[^\]]*\]|[^:/?#\s]*)(?::(?P<port>\d{1,5}))?")
_BARE_HOST = lazy(r"(?:[^@/?#\s]*@)?(?P<host>\[[^\]]*\]|[^:/?#\s]+)")


@dataclass(frozen=True)
class Pinned:
    """The words to run, or why not: the host that leads to a forbidden address, or that nobody can resolve."""

    arguments: tuple[str, ...]
    forbidden: str | None = None
    unresolved: str | None = None


def resolve_by_system(host: str) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def pin_hosts(arguments: Sequence[str], hosts: Sequence[str], resolver: Resolver) -> Pinned:
    """Add `--resolve HOST:PORT:ADDRESS` for each host name of a curl command.

    `hosts` are those that judging a SAFE command found: it has no others. Where there are none, as in a command that a
    person approved, every word that may lead somewhere counts, those of --resolve and --connect-to too. Fails closed: a
    name that does not resolve now is not left to the program, which might be told another answer.
    """
    words = tuple(arguments)
    pins: list[str] = []
    named = [match["port"] for word in words for match in _URL.finditer(word)] + [port for _, port in steered_in(words)]
    ports = sorted({80, 443} | {int(port) for port in named if port})
    for host in dict.fromkeys(hosts or _hosts_in(words)):
        if (literal := _literal(host)) is not None:
            if is_metadata(literal):
                return Pinned(words, forbidden=f"{host} is {literal}")
            continue
        addresses = _resolve(host, resolver)
        if not addresses:
            return Pinned(words, unresolved=host)
        for address in addresses:
            if is_metadata(address):
                return Pinned(words, forbidden=f"{host} leads to {address}")
        pinned = ",".join(f"[{a}]" if isinstance(a, ipaddress.IPv6Address) else str(a) for a in addresses)
        for spelling in dict.fromkeys((host, host.rstrip("."))):
            pins += [part for port in ports for part in ("--resolve", f"{spelling}:{port}:{pinned}")]
    first = 2 if words[1:2] in (("-q",), ("--disable",)) else 1  # curl heeds -q only as its first option
    return Pinned((*words[:first], *pins, *words[first:]))


def _hosts_in(words: Sequence[str]) -> Iterator[str]:
    """Hosts of URLs, and words that spell an address: curl takes one without a scheme for a URL."""
    for word in words[1:]:
        bare = _BARE_HOST.match(word)
        if bare is not None and _literal(bare["host"]) is not None:
            yield bare["host"]
    yield from (host for host, _ in steered_in(words[1:]) if _literal(host) is not None)
    for word in words[1:]:
        yield from (match["host"] for match in _URL.finditer(word))


def _resolve(host: str, resolver: Resolver) -> list[Address]:
    if not host:
        return []
    try:
        found = call_within(RESOLVE_SECONDS, lambda: list(resolver(host)))
        return list(dict.fromkeys(ipaddress.ip_address(str(text).partition("%")[0]) for text in found))
    except (OSError, ValueError):  # UnicodeError of an odd name among them
        return []


def _literal(host: str) -> Address | None:
    """The address written as host in any form that curl accepts; None for a name."""
    bare = host.strip("[]").partition("%")[0].removesuffix(".")
    if (lenient := parse_ipv4_leniently(bare)) is not None:
        return lenient
    try:
        return ipaddress.ip_address(bare)
    except ValueError:
        return None
