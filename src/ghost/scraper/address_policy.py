"""Decision whether an address may be connected to. Pure: judges the address itself, never the name behind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

from ghost.policy import load_policy
from ghost.scraper.allowlist import Reach

Address = IPv4Address | IPv6Address

_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/96"))
_TEREDO = IPv6Network("2001::/32")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = 0x00005EFE
_ISATAP_MASK = 0xFCFFFFFF  # the two bits that say universal and group may be set


class Kind(StrEnum):
    PUBLIC = "public"
    PRIVATE = "private"
    NEVER = "never"


class Judgement(NamedTuple):
    kind: Kind
    why: str

    def within(self, reach: Reach) -> bool:
        needed = {Kind.PUBLIC: Reach.PUBLIC, Kind.PRIVATE: Reach.PRIVATE}
        return self.kind in needed and reach >= needed[self.kind]


def judge(text: str | Address) -> Judgement:
    """Return the kind of an address from a resolver. Anything that is not an address is refused.

    An IPv6 address that embeds an IPv4 address leads there, so both are judged. Only an IPv4-mapped address is
    equivalent to the embedded one; for others, used by tunnels and translators, a non-public embedded address excludes
    the whole. A translator with its own prefix cannot be recognised.
    """
    try:
        address = ip_address(text) if isinstance(text, str) else text
    except ValueError:
        return Judgement(Kind.NEVER, "not an address")
    if isinstance(address, IPv4Address):
        return _by_range(address)
    if address.scope_id is not None:
        return Judgement(Kind.NEVER, "an address of one zone of this machine")
    if address.ipv4_mapped is not None:
        return _by_range(address.ipv4_mapped)
    for inner in _embedded(address):
        judgement = _by_range(inner)
        if judgement.kind is not Kind.PUBLIC:
            return Judgement(Kind.NEVER, f"carries {inner} ({judgement.why})")
    return _by_range(address)


def _embedded(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses embedded by NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo (RFC 4380) and ISATAP (RFC
    5214).
    """
    bits = int(address)
    inner = []
    if any(address in network for network in _NAT64):
        inner.append(IPv4Address(bits & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR:
        inner.append(IPv4Address(bits >> 80 & 0xFFFFFFFF))
    if address in _TEREDO:
        inner.append(IPv4Address(bits >> 64 & 0xFFFFFFFF))  # the server
        inner.append(IPv4Address(~bits & 0xFFFFFFFF))  # the client, its bits inverted
    if bits >> 32 & _ISATAP_MASK == _ISATAP:
        inner.append(IPv4Address(bits & 0xFFFFFFFF))
    return inner


def _by_range(address: Address) -> Judgement:
    for network, judgement in _ranges()[address.version]:
        if address in network:
            return judgement
    return Judgement(Kind.NEVER, "in no known range")


@dataclass(frozen=True)
class _Range:
    network: str
    kind: Kind
    why: str


@cache
def _ranges() -> dict[int, list[tuple[IPv4Network | IPv6Network, Judgement]]]:
    """Return the ranges by IP version, most specific first."""
    table = load_policy(__file__, "addresses.toml", dict[str, tuple[_Range, ...]])["range"]
    rows = [(ip_network(row.network), Judgement(row.kind, row.why)) for row in table]
    rows.sort(key=lambda row: row[0].prefixlen, reverse=True)
    return {version: [row for row in rows if row[0].version == version] for version in (4, 6)}
