"""Matching of address prefixes, service tags and port ranges of a rule.

The result is True, False, or None if unknown: the tag's prefixes are not available, or the flow has no known source
port. An undecidable rule must be reported, not guessed.

https://learn.microsoft.com/azure/virtual-network/service-tags-overview
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Prefix = IPv4Network | IPv6Network

HOST_ADDRESS = "168.63.129.16"
"""The virtual public address of the Azure host, from which load balancer probes come.

https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
"""
METADATA_ADDRESS = "169.254.169.254"
"""The metadata service of the Azure host."""


@dataclass(frozen=True)
class ServiceTags:
    """Prefixes of service tags, as seen from one network interface.

    `virtual_network` holds the prefixes of the interface's network and of all networks and sites connected to it;
    `others` the known prefixes of further tags and application security groups (by name or id). `may_hold_more`: sites
    behind a gateway are not known, so that an address outside of `virtual_network` may still be part of it.
    `members_known`: all interfaces were read, so that an application security group not in `others` has no member.
    """

    virtual_network: tuple[str, ...] = ()
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_hold_more: bool = False
    members_known: bool = False

    def covers(self, tag: str, address: Address) -> bool | None:
        name = tag.casefold()
        if name == "virtualnetwork":
            if str(address) == HOST_ADDRESS:
                return True
            if _within(self.virtual_network, address):
                return True
            return False if self.virtual_network and not self.may_hold_more else None
        if name == "azureloadbalancer":
            return str(address) == HOST_ADDRESS
        if name == "internet":
            outside = address.is_global and str(address) != HOST_ADDRESS
            if not outside or _within(self.virtual_network, address):
                return False
            return None if self.may_hold_more else True
        for known, prefixes in self.others.items():
            if known.casefold() == name:
                return _within(prefixes, address)
        return False if self.members_known and "/applicationsecuritygroups/" in name else None

    def settled(self, near: str, far: str) -> tuple[ServiceTags, ...]:
        """Return the tags as they are if VirtualNetwork does not hold `far`, and if it does; none if `near` is open."""
        if not _within(self.virtual_network, parse_address(near)):
            return ()
        held = (self.virtual_network, (*self.virtual_network, far))
        return tuple(replace(self, virtual_network=each, may_hold_more=False) for each in held)


def covers_address(prefixes: Iterable[str], address: str, tags: ServiceTags) -> bool | None:
    """Return whether one of `prefixes` (`*`, an address, a prefix or a service tag) covers `address`."""
    parsed = parse_address(address)
    answer: bool | None = False
    for prefix in prefixes:
        network = parse_network(prefix)
        covered = parsed in network if network else prefix == "*" or tags.covers(prefix, parsed)
        if covered:
            return True
        if covered is None:
            answer = None
    return answer


def covers_port(ranges: Iterable[str], port: int | None, *, has_ports: bool = True) -> bool | None:
    """Return whether one of `ranges` (`*`, `443`, `8000-8999`) covers `port`.

    `port` None: unknown if the protocol `has_ports`; a protocol without ports is covered only by a range of all ports.
    """
    spans = [parse_ports(text) for text in ranges]
    if any(span == (0, 65535) for span in spans):
        return True
    if port is None:
        return None if has_ports and spans else False
    return any(low <= port <= high for low, high in spans)


parse_address = lru_cache(maxsize=65_536)(ip_address)


def is_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def parse_network(text: str) -> Prefix | None:
    """Return the prefix in `text`, or None for a tag. Host bits are allowed, as in Azure."""
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def parse_ports(text: str) -> tuple[int, int]:
    """Return the first and last port of a range. Raises `ValueError` if it is not a range."""
    if text == "*":
        return 0, 65535
    low, dash, high = text.partition("-")
    numbers = (low, high) if dash else (low, low)
    if all(number.isascii() and number.isdigit() for number in numbers):
        first, last = map(int, numbers)
        if first <= last <= 65535:
            return first, last
    raise ValueError(f"{text!r} is not a port range: give '*', a port, or LOW-HIGH within 0-65535")


def _within(prefixes: Iterable[str], address: Address) -> bool:
    return any(address in network for prefix in prefixes if (network := parse_network(prefix)))
