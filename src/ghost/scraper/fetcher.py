"""Fetches a page from a checked address and no other.

A name is looked up once per exchange, every address of the answer must pass, and the connection goes to one of these
addresses, so DNS rebinding has no effect. Redirects are not followed here; each one is checked by a new call.
"""

from __future__ import annotations

import functools
import socket
import ssl
from collections.abc import Mapping

from ghost.errors import ScrapeError
from ghost.records import Clock
from ghost.scraper.address_policy import judge
from ghost.scraper.allowlist import Reach
from ghost.scraper.http_response import Deadline, OutOfTimeError, Response, Stop, UnreachableError
from ghost.scraper.network_io import Connect, Resolve, system_resolve, tcp_connect
from ghost.scraper.urls import Url

MAX_ADDRESSES = 32
_TRIED_ADDRESSES = 4


class AddressRefusedError(ScrapeError):
    """The address, or an address of its name, may not be read. No connection was made."""


class Fetcher:
    def __init__(
        self,
        clock: Clock,
        user_agent: str,
        *,
        resolve: Resolve = system_resolve,
        connect: Connect = tcp_connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Create a fetcher. `tls` replaces the system's trusted certificates; it must verify names and certificates."""
        self.clock = clock
        self.user_agent = user_agent
        self._resolve = resolve
        self._connect = connect
        self._tls = tls

    def get(
        self,
        url: Url,
        reach: Reach,
        *,
        within: float,
        stop: Stop,
        limit: int,
        may_cut: bool = False,
        types: frozenset[str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Do one GET within `within` seconds and `limit` bytes; the body is read only for accepted types.

        Raises `AddressRefusedError`, `UnreachableError`, `TooLargeError`, `DamagedBodyError`, `OutOfTimeError`,
        `StoppedError`; all are `ScrapeError`.
        """
        from ghost.scraper.http_exchange import exchange

        patience = Deadline(self.clock, self.clock.monotonic() + within, stop)
        addresses = self.checked_addresses(url, reach, patience)
        connection = self._connected(addresses, url.port, patience)
        sent = {"User-Agent": self.user_agent, "Accept": "text/html, text/plain;q=0.9", **(headers or {})}
        return exchange(url, connection, self._tls_context, sent, patience, limit, may_cut=may_cut, types=types)

    def checked_addresses(self, url: Url, reach: Reach, patience: Deadline) -> list[str]:
        """Return the addresses of the host, all of them within `reach`. Names not allowed are not looked up."""
        if reach is Reach.NOWHERE:
            raise AddressRefusedError("not on the allowlist")
        if url.address is not None:
            addresses = [url.host]
        else:
            try:
                addresses = list(self._resolve(url.host, url.port, patience.seconds_left()))
            except TimeoutError as error:
                raise OutOfTimeError(f"the name {url.host} was not resolved in time: {error}") from error
            except OSError as error:
                raise UnreachableError(f"the name {url.host} is not resolved: {error}") from error
        if not addresses:
            raise UnreachableError(f"the name {url.host} has no address")
        if len(addresses) > MAX_ADDRESSES:
            raise AddressRefusedError(f"the name {url.host} has more than {MAX_ADDRESSES} addresses")
        for address in addresses:
            judgement = judge(address)
            if not judgement.within(reach):
                advice = "; an entry host:port of the allowlist permits it" if judgement.within(Reach.PRIVATE) else ""
                raise AddressRefusedError(f"{url.host} resolves to {address} ({judgement.why}){advice}")
        return addresses

    def _connected(self, addresses: list[str], port: int, patience: Deadline) -> socket.socket:
        """Connect to the first checked address that accepts."""
        failures = []
        tried = addresses[:_TRIED_ADDRESSES]
        for remaining, address in zip(range(len(tried), 0, -1), tried, strict=True):
            share = patience.seconds_left() / remaining  # one that keeps silent leaves time for the next
            try:
                return self._connect(address, port, share)
            except OSError as error:
                failures.append(f"{address}: {error}")
        raise UnreachableError(f"no connection: {'; '.join(failures)}")

    @functools.cached_property
    def _trusted(self) -> ssl.SSLContext:
        import httpcore2

        return httpcore2.default_ssl_context()

    def _tls_context(self) -> ssl.SSLContext:
        context = self._trusted if self._tls is None else self._tls
        if not context.check_hostname or context.verify_mode is not ssl.CERT_REQUIRED:
            raise ScrapeError("the TLS context does not check certificates and names")
        return context
