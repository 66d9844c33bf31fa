"""Hosts that pages may be read from, and which of them may be internal. Judges names without lookups.

An entry is one of

- `example.com`       the host and every host below it, ports 80 and 443, public addresses only
- `wiki.corp:8443`    exactly this host and this port, private addresses too
- `localhost`, `10.0.0.5`, `[::1]`   a single label or an address: exactly this host, private addresses too
- `*`                 every host, ports 80 and 443, public addresses only
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from ghost.errors import ConfigurationError
from ghost.scraper.urls import DEFAULT_PORTS, Url, UrlRefused, address_of, parse_host, split_port

PLAIN_PORTS = frozenset(DEFAULT_PORTS.values())


class Reach(IntEnum):
    """The addresses that a connection may use. The minimum of two is what both permit."""

    NOWHERE = 0
    PUBLIC = 1
    PRIVATE = 2
    """Public addresses, and private, loopback and link-local ones; never those that `addresses.toml` excludes."""


@dataclass(frozen=True, slots=True)
class _Entry:
    host: str
    port: int | None

    @property
    def names_one_place(self) -> bool:
        return self.port is not None or "." not in self.host or address_of(self.host) is not None

    def reach(self, url: Url) -> Reach:
        if url.port not in (PLAIN_PORTS if self.port is None else {self.port}):
            return Reach.NOWHERE
        if url.host == self.host:
            return Reach.PRIVATE if self.names_one_place else Reach.PUBLIC
        below = url.host.endswith(f".{self.host}") and url.address is None and not self.names_one_place
        return Reach.PUBLIC if below else Reach.NOWHERE


class Allowlist:
    def __init__(self, entries: Iterable[str]) -> None:
        """Parse the entries; an empty list permits nothing. Raises `ConfigurationError` for an invalid entry."""
        texts = {entry.strip().lower() for entry in entries} - {""}
        self.unrestricted = "*" in texts
        self._entries = tuple(_entry(text) for text in sorted(texts - {"*"}))
        self.key = tuple(sorted(texts))
        """Equal for allowlists that permit the same."""

    def reach(self, url: Url) -> Reach:
        anywhere = Reach.PUBLIC if self.unrestricted and url.port in PLAIN_PORTS else Reach.NOWHERE
        return max([anywhere, *(entry.reach(url) for entry in self._entries)])


def _entry(text: str) -> _Entry:
    try:
        host, port = split_port(f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text)
        return _Entry(parse_host(host), port)
    except UrlRefused as error:
        raise ConfigurationError(
            f"the allowlist's entry {text[:80]!r} is not a domain, host:port or address ({error}); "
            "write example.com, wiki.corp:8443, 10.0.0.5, [::1] or *"
        ) from None
