"""Tokenisation into words and network identifiers (`prod-subnet`, `10.0.1.0/24`, `6379/tcp`) with their parts."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

from ghost.policy import load_policy

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])")
# Lengths are bounded: a text without a blank is cut, not held as one term.
_TERM = re.compile(r"[^\W_]{1,64}(?:[-_.:/]{1,3}[^\W_]{1,64}){0,24}")
_SEGMENTS = re.compile(r"[:/]+")
_PARTS = re.compile(r"[-_.:/]+")
IPV4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:/\d{1,2})?")


@cache
def words() -> dict[str, Any]:
    return load_policy(__file__, "words.toml")


@cache
def stop_words() -> frozenset[str]:
    return frozenset(words()["stop"].split())


@cache
def same_words() -> dict[str, str]:
    """Return a map from each word of a group to the group's first."""
    groups = [group.split() for group in words()["same"]]
    return {word: group[0] for group in groups for word in group}


def terms(text: str) -> list[str]:
    """Return terms in order, lower case; `virtualNetworkPeering` is `virtual-network-peering`."""
    return _TERM.findall(unicodedata.normalize("NFKC", _CAMEL.sub("-", text)).casefold())


def content_terms(text: str) -> list[str]:
    """Return terms without stop words."""
    stop = stop_words()
    return [term for term in terms(text) if term not in stop]


def inner_terms(term: str) -> list[str]:
    """Return the parts of an identifier: path segments, words of a name, networks of an address."""
    if address := IPV4.fullmatch(term):
        octets = address.groups()
        networks = [".".join(octets[:count]) + "." for count in (3, 2, 1)]
        return [".".join(octets), *networks] if "/" in term else networks
    inner: dict[str, None] = {}
    for segment in _SEGMENTS.split(term):
        inner[segment] = None
        if IPV4.fullmatch(segment):
            inner.update(dict.fromkeys(inner_terms(segment)))
        else:
            inner.update(dict.fromkeys(_PARTS.split(segment)))
    inner.pop(term, None)
    return list(inner)
