"""Addresses, URLs and DNS names in a text. Classes and packages of code, and files, are no DNS names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from ghost.brain.offline.understanding.word_lists import service_of, word_set
from ghost.net import dns_name

_URL: Final = re.compile(
    r"\b(?P<scheme>[a-z][a-z0-9+.]{1,20})://(?:[^\s/@\"'<>]{1,80}@)?(?P<host>\[[0-9a-f:.]{2,45}\]|[\w.-]{1,253})",
    re.IGNORECASE,
)
_SHARE: Final = re.compile(r"(?<![\w:/])(?://|\\\\)(?P<host>[\w.-]{1,253})", re.IGNORECASE)
_IPV4: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}(?:(?:\.\d{1,3}){3})?(?![\w:])", re.IGNORECASE
)
_DOTTED: Final = re.compile(
    r"(?<![\w./\\@-])(?:[a-z0-9_-]{1,63}\.){1,10}[a-z][a-z0-9-]{0,62}(?![\w-]|\.\w|\()", re.IGNORECASE
)
_CODE: Final = re.compile(r"(?<![\w.])[\w$-]{1,80}(?:\.[\w$-]{1,80}){1,12}")
PUBLIC_ENDINGS: Final = ("com", "net", "org", "io")
"""Last labels behind which a capital letter is no sign of code."""
_CAMEL: Final = re.compile(r"[a-z][A-Z]|^[A-Z][a-z]+$|^[A-Z]{2,}[a-z]")


@dataclass(frozen=True)
class HostMention:
    start: int
    end: int
    host: str
    """An address or a name, folded."""
    is_address: bool
    scheme: str = ""
    """Of a URL."""


def hosts_in(text: str) -> list[HostMention]:
    """Return what is written as a host, in order, without overlaps."""
    found: list[HostMention] = []
    for each in (*_urls(text), *_addresses(text), *_names(text)):
        if not any(each.start < other.end and other.start < each.end for other in found):
            found.append(each)
    return sorted(found, key=lambda each: each.start)


def code_in(text: str) -> list[tuple[int, int]]:
    """Return the places of dotted words that are no hosts: classes, packages, files."""
    return [match.span() for match in _CODE.finditer(text)]


def address_of(text: str) -> str | None:
    """Return the address, IPv4 where IPv6 only wraps one; None if it is none."""
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _urls(text: str) -> Iterator[HostMention]:
    for pattern in (_URL, _SHARE):
        for match in pattern.finditer(text):
            host = match["host"].strip(".-").casefold()
            if host and not host.isdecimal() and (address_of(host) or _is_valid_name(host)):
                scheme = "smb" if pattern is _SHARE else match["scheme"].casefold().rpartition(":")[2]
                address = address_of(host)
                yield HostMention(
                    match.start(),
                    match.start("host") + len(match["host"].rstrip(".-")),
                    address or host,
                    address is not None,
                    scheme,
                )


def _is_valid_name(text: str) -> bool:
    try:
        return bool(dns_name(text))
    except ValueError:
        return False


def _addresses(text: str) -> Iterator[HostMention]:
    for pattern in (_IPV6, _IPV4):
        for match in pattern.finditer(text):
            address = address_of(match[0])
            if address is not None and _is_host(address) and text[match.end() : match.end() + 1] != "/":
                wrapped = text[match.start() - 1 : match.start()] == "[" and text[match.end() : match.end() + 1] == "]"
                yield HostMention(match.start() - wrapped, match.end() + wrapped, address, is_address=True)


def _is_host(address: str) -> bool:
    parsed = ip_address(address)
    return not (parsed.is_unspecified or parsed.is_loopback or parsed.is_multicast)


def _names(text: str) -> Iterator[HostMention]:
    for match in _DOTTED.finditer(text):
        followed_by_port = re.match(r":\d{1,5}\b", text[match.end() : match.end() + 6]) is not None
        if is_dns_name(match[0], followed_by_port=followed_by_port):
            yield HostMention(match.start(), match.end(), match[0].casefold(), is_address=False)


def is_dns_name(dotted: str, *, followed_by_port: bool = False) -> bool:
    """Return whether a dotted word is a DNS name, not a class, a package or a file."""
    if not _is_valid_name(dotted):
        return False
    folded = dns_name(dotted).split(".")
    if any(_CAMEL.search(label) for label in dotted.split(".")) and folded[-1] not in PUBLIC_ENDINGS:
        return False
    if followed_by_port:
        return True
    return folded[-1] in word_set("top_level") and folded[0] not in word_set("package_roots") and not dotted.isupper()


def port_of_scheme(scheme: str) -> tuple[str, int] | None:
    return service_of(scheme.removeprefix("jdbc:"))
