"""The packet filter of a Linux guest as data: tables, chains, rules; one form for iptables and nftables.

A match compares fields of a packet, named as in nft(8) ("ip saddr", "tcp dport", "meta iifname", "ct state"), with
intervals of whole numbers. Sets and verdict maps are resolved when they are read: a set becomes the elements of a
match, a verdict map one rule per entry. A field that this package does not know makes a match unknown, never false.

https://www.netfilter.org/projects/nftables/manpage.html (nft(8): statements, expressions)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network
from typing import Literal

from ghost.net.address_matching import Address

Family = Literal["ip", "ip6", "inet"]
Hook = Literal["prerouting", "input", "forward", "output", "postrouting"]
State = Literal["NEW", "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED"]
Verdict = Literal["accept", "drop", "reject", "unknown"]
Translation = Literal["dnat", "redirect", "snat", "masquerade"]
ActionKind = Verdict | Translation | Literal["continue", "return", "jump", "goto"]
Interval = tuple[int, int]
"""First and last value."""
Element = tuple[Interval, ...]
"""One interval per field of a match."""

EVERYTHING: Interval = (0, (1 << 128) - 1)


def _numbers(stated: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (pair.partition("=") for pair in stated.split())}


PROTOCOLS = _numbers(
    "icmp=1 igmp=2 ipencap=4 tcp=6 udp=17 dccp=33 ipv6=41 gre=47 esp=50 ah=51 icmpv6=58 ipv6-icmp=58 ospf=89 vrrp=112"
    " sctp=132 udplite=136"
)
PORT_PROTOCOLS = ("tcp", "udp", "dccp", "sctp", "udplite")
STATE_BITS = _numbers("INVALID=1 ESTABLISHED=2 RELATED=4 NEW=8 UNTRACKED=64")
TCP_FLAGS = _numbers("FIN=1 SYN=2 RST=4 PSH=8 ACK=16 URG=32 ECN=64 CWR=128")
ICMP_TYPES = {
    "icmp": _numbers(
        "echo-reply=0 destination-unreachable=3 source-quench=4 redirect=5 echo-request=8 router-advertisement=9"
        " router-solicitation=10 time-exceeded=11 parameter-problem=12 timestamp-request=13 timestamp-reply=14"
    ),
    "icmpv6": _numbers(
        "destination-unreachable=1 packet-too-big=2 time-exceeded=3 parameter-problem=4 echo-request=128 echo-reply=129"
        " mld-listener-query=130 mld-listener-report=131 mld-listener-done=132 nd-router-solicit=133"
        " nd-router-advert=134 nd-neighbor-solicit=135 nd-neighbor-advert=136 nd-redirect=137 mld2-listener-report=143"
    ),
}


@dataclass(frozen=True)
class Packet:
    """A whole packet (no fragment) without extension headers. None: not known."""

    protocol: str
    """A name of `PROTOCOLS`; of ICMP for IPv6 "icmpv6"."""
    source: Address | None
    destination: Address | None
    source_port: int | None = None
    destination_port: int | None = None
    icmp_type: int | None = None
    in_interface: str | None = ""
    """Empty: none, the packet is made here. None: not known which, but not the loopback."""
    out_interface: str | None = ""
    """Empty: none, the packet is for this host."""

    @property
    def version(self) -> int:
        """4 or 6. Raises `ValueError` if neither address is known."""
        known = self.source or self.destination
        if known is None:
            raise ValueError("a packet needs a known source or destination address")
        return known.version


@dataclass(frozen=True)
class Match:
    """True if an element holds the fields' values (of which `mask` keeps bits); `negated`: if none does.

    A packet without such a field (a UDP packet has no "tcp dport") is not matched in either case.
    """

    fields: tuple[str, ...]
    elements: tuple[Element, ...] = ()
    negated: bool = False
    mask: int = -1

    def __str__(self) -> str:
        return " . ".join(self.fields)


@dataclass(frozen=True)
class Action:
    kind: ActionKind
    target: str = ""
    """The chain of a jump, the answer of a reject ("tcp reset", "icmp port-unreachable"), or what is not known."""
    addresses: Interval | None = None
    """What the address is translated to; None: it is kept. The kernel chooses among more than one, as among ports."""
    ports: Interval | None = None


@dataclass(frozen=True)
class Rule:
    matches: tuple[Match, ...]
    action: Action
    text: str
    handle: str
    """What names the rule in its chain: "rule 3" (iptables), "handle 14" (nftables)."""


@dataclass(frozen=True)
class Chain:
    name: str
    rules: tuple[Rule, ...] = ()
    hook: Hook | None = None
    """None: packets come only by a jump."""
    priority: int = 0
    policy: ActionKind = "accept"
    is_nat: bool = False


@dataclass(frozen=True)
class Table:
    family: Family
    name: str
    chains: tuple[Chain, ...]
    reference: str = ""
    """Where the table was read, as the caller named it."""

    @cached_property
    def chain(self) -> dict[str, Chain]:
        return {chain.name: chain for chain in self.chains}

    def serves(self, version: int) -> bool:
        return self.family == "inet" or (self.family == "ip6") == (version == 6)


@dataclass(frozen=True)
class Ruleset:
    tables: tuple[Table, ...] = ()

    def merged(self, other: Ruleset) -> Ruleset:
        """Return both; where family and name agree, the table of `other`.

        `nft` also lists what iptables (nf_tables) made, with matches that it cannot name: merge the iptables reading
        into that of nft. Tables of iptables (legacy) are in no listing of nft.
        """
        replaced = {(table.family, table.name) for table in other.tables}
        return Ruleset((*(t for t in self.tables if (t.family, t.name) not in replaced), *other.tables))

    def base_chains(self, hook: Hook, version: int) -> list[tuple[Table, Chain]]:
        """Return the chains of a hook, the last registered first: the kernel's order among equal priorities."""
        return [
            (table, chain)
            for table in reversed(self.tables)
            for chain in reversed(table.chains)
            if chain.hook == hook and table.serves(version)
        ]


def name_interval(name: str, *, prefix: bool = False) -> Interval:
    """Return the interval of an interface's name, as the kernel compares it: 16 bytes, padded with zeros."""
    raw = name.encode()[:16]
    low, high = (int.from_bytes(raw.ljust(16, pad), "big") for pad in (b"\0", b"\xff"))
    return low, high if prefix else low


def address_interval(text: str) -> Interval:
    """Return the interval of an address, a prefix, or FIRST-LAST. Raises `ValueError`."""
    first, dash, last = text.partition("-")
    low, high = (ip_network(part, strict=False) for part in (first, last if dash else first))
    return int(low.network_address), int(high.broadcast_address)


def port_interval(text: str, separator: str = ":") -> Interval:
    """Return the interval of a port or a range, whose ends may be left out. Raises `ValueError`."""
    first, ranged, last = text.partition(separator)
    low = int(first) if first or not ranged else 0
    high = int(last) if last else 65535 if ranged else low
    if not 0 <= low <= high <= 65535:
        raise ValueError(f"{text!r} is not a range of ports")
    return low, high
