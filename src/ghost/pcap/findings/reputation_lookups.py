"""Lookups in reputation services, for which a non-existent name is an answer."""

from __future__ import annotations

from functools import cache

from ghost.pcap.protocols.dns_question import labels_of
from ghost.policy import load_policy

_NIBBLES = frozenset("0123456789abcdef")


@cache
def _zones() -> frozenset[str]:
    table = load_policy(__file__, "reputation.toml", dict[str, frozenset[str]])
    return frozenset().union(*table.values())


def in_reputation_zone(name: str) -> bool:
    """Return whether the name is below one of reputation.toml."""
    labels = labels_of(name)
    return any(".".join(labels[-length:]) in _zones() for length in range(2, min(len(labels), 5)))


def asks_about_an_address(name: str) -> bool:
    """Return whether the name is a reversed address in a DNS list (RFC 5782, 2.1 and 2.4)."""
    labels = labels_of(name)
    four = len(labels) >= 6 and all(label.isdecimal() and int(label[:4]) <= 255 for label in labels[:4])
    return four or (len(labels) >= 34 and all(label in _NIBBLES for label in labels[:32]))


def asks_reputation(name: str) -> bool:
    return asks_about_an_address(name) or in_reputation_zone(name)
