"""Access control by Host header, origin and token.

Pure decisions, no I/O. A web page can make a browser send requests to this machine, under its own name (DNS rebinding)
or from its own origin; both are refused before any endpoint is called.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from ghost.hosts import is_loopback

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OPEN_PATHS = ("/", "/healthz", "/ui", "/incidents")
"""Paths that need no token: `/incidents` has its own. The dashboard's files contain no local data, and its login field
must be reachable.
"""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

Headers = Sequence[tuple[bytes, bytes]]
_AUTHORITY = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True)
class Refusal:
    status: int
    detail: str


@dataclass(frozen=True)
class Access:
    """The access rules of one bind address; `token` is None on loopback without a token."""

    host: str
    token: str | None = None
    names: frozenset[str] = field(default=frozenset())

    @classmethod
    def of(cls, host: str, token: str | None) -> Access:
        own = set() if is_loopback(host) else {socket.gethostname().lower()}
        if not _is_every_address(host):
            own.add(_bare(host))
        return cls(host, token, LOOPBACK_NAMES | own)

    def refusal(
        self, method: str, path: str, headers: Headers, server: tuple[str, int | None] | None, scheme: str
    ) -> Refusal | None:
        """Return why this request is refused; None if it is allowed. `server` is the address it arrived at."""
        authority = _only(headers, b"host")
        if authority is None or not self._names_us(authority, server, scheme):
            return Refusal(
                421,
                "The Host header names another server. Use localhost, or the address Ghost listens on, with the port.",
            )
        foreign = _foreign(method, headers, scheme, authority)
        if foreign is not None:
            return foreign
        if self.token is not None and not _is_open(path) and not self._carries_token(headers):
            return Refusal(401, "This server requires a token: Authorization: Bearer <GHOST_API_TOKEN>.")
        return None

    def _names_us(self, authority: str, server: tuple[str, int | None] | None, scheme: str) -> bool:
        match = _AUTHORITY.fullmatch(authority)
        if match is None:
            return False
        name = (match["v6"] or match["name"]).lower()
        if name not in self.names and not (server is not None and _same_address(name, server[0])):
            return False
        port = int(match["port"]) if match["port"] else {"http": 80, "https": 443}[scheme]
        return server is None or server[1] is None or port == server[1]

    def _carries_token(self, headers: Headers) -> bool:
        authorization = _only(headers, b"authorization") or ""
        scheme, _, credentials = authorization.partition(" ")
        # digests are of one length: the time of the comparison tells nothing of the token, not even how long it is
        name = (self.token or "").encode()
        right = hmac.compare_digest(_digest(credentials.strip().encode("latin-1")), _digest(name))
        return right and scheme.lower() == "bearer" and bool(self.token)


def _is_every_address(host: str) -> bool:
    """Return whether the address is 0.0.0.0 or ::, which clients cannot use."""
    try:
        return ipaddress.ip_address(_bare(host)).is_unspecified
    except ValueError:
        return False


def _foreign(method: str, headers: Headers, scheme: str, authority: str) -> Refusal | None:
    """Return whether a page of another origin sent the request. Only browsers send these two headers."""
    origins = [value for name, value in headers if name == b"origin"]
    if origins and [f"{scheme}://{authority}".lower()] != [value.decode("latin-1").lower() for value in origins]:
        return Refusal(
            403,
            "The request came from a page of another origin. Only Ghost's own dashboard is allowed, "
            "from the address it was loaded from.",
        )
    site = _only(headers, b"sec-fetch-site")
    if site in (None, "same-origin", "none"):
        return None
    if method in SAFE_METHODS and _only(headers, b"sec-fetch-mode") == "navigate":
        return None  # a link somebody followed: the page that holds it learns nothing
    return Refusal(403, "The request came from a page of another site. Open Ghost's dashboard directly.")


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith("/ui/")


def _only(headers: Headers, wanted: bytes) -> str | None:
    """Return the single value of a header; None if it is missing or repeated."""
    values = [value for name, value in headers if name == wanted]
    return values[0].decode("latin-1") if len(values) == 1 else None


def _bare(host: str) -> str:
    return host.lower().removeprefix("[").removesuffix("]")


def _same_address(name: str, address: str) -> bool:
    """Return whether a literal Host address is the local address of the connection, which cannot be rebound."""
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(address)
    except ValueError:
        return False


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
