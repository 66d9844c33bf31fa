"""HTTP exchanges with a model server, bounded in total time and size.

A read timeout bounds only the wait for the next byte, so a slow sender would never time out. Here the connection is
shut down when the time of the whole exchange is over. Connections are not reused, so each shutdown affects only its own
exchange. Needs `httpx2`; import this module late.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx2

from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback

MAX_ANSWER_BYTES = 16 * 2**20
CONNECT_SECONDS = 10.0


class AnswerTooLarge(httpx2.RequestError):
    pass


class BoundedTransport(httpx2.BaseTransport):
    """A transport that takes the time of an exchange from the request's read timeout and verifies certificates.
    Thread-safe.
    """

    def __init__(self, url: httpx2.URL) -> None:
        self._inner = httpx2.HTTPTransport(
            limits=httpx2.Limits(max_keepalive_connections=0, max_connections=None), proxy=_proxy_for(url)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        timeouts: Mapping[str, Any] = request.extensions.get("timeout", {})
        seconds = float(timeouts["read"])
        end = _End(seconds)
        request.extensions = {
            **request.extensions,
            "timeout": {**timeouts, "connect": min(CONNECT_SECONDS, seconds)},
            "trace": end.watch,
        }
        request.headers["accept-encoding"] = "identity"  # a compressed answer has no bound that can be checked early
        try:
            response = self._inner.handle_request(request)
            _check_headers(response)
        except BaseException as error:
            end.cancel()
            if end.reached and isinstance(error, httpx2.TransportError):
                raise httpx2.ReadTimeout("the exchange exceeded its time limit") from None
            raise
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(response, end),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._inner.close()


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response, end: _End) -> None:
        self._response = response
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        assert isinstance(self._response.stream, httpx2.SyncByteStream)
        try:
            for chunk in self._response.stream:
                received += len(chunk)
                if received > MAX_ANSWER_BYTES:
                    raise AnswerTooLarge(f"more than {MAX_ANSWER_BYTES} bytes")
                yield chunk
        except httpx2.TransportError:
            if self._end.reached:
                raise httpx2.ReadTimeout("the exchange exceeded its time limit") from None
            raise
        if self._end.reached:  # an answer without a length looks complete when it is cut
            raise httpx2.ReadTimeout("the exchange exceeded its time limit")

    def close(self) -> None:
        self._end.cancel()
        self._response.close()


class _End:
    """Shuts the connection down after `seconds`, unless cancelled."""

    def __init__(self, seconds: float) -> None:
        self.reached = False
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._shut_down)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, event: str, details: Mapping[str, Any]) -> None:
        """Trace callback of the connection pool; keeps a second handle of the socket, which TLS does not affect."""
        if not event.endswith("connect_tcp.complete"):
            return
        opened = details["return_value"].get_extra_info("socket")
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = opened.dup()
            over = self.reached
        if over:
            self._shut_down()

    def cancel(self) -> None:
        self._timer.cancel()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _shut_down(self) -> None:
        with self._lock:
            self.reached = True
            if self._connection is not None:
                with suppress(OSError):  # it is down already
                    self._connection.shutdown(socket.SHUT_RDWR)


def _check_headers(response: httpx2.Response) -> None:
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        response.close()
        raise httpx2.DecodingError(f"sent {encoding[:20]}-compressed, which was not requested")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > MAX_ANSWER_BYTES:
        response.close()
        raise AnswerTooLarge(f"{length[:20]} bytes")


def _proxy_for(url: httpx2.URL) -> str | None:
    """Return the proxy from the environment for this address; none for this machine. A configured proxy is never
    bypassed.
    """
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or is_loopback(url.host) or proxy_bypass(url.host):
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if not address.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"The proxy that the environment names for {url.host} is neither http nor https: set another, or NO_PROXY."
        )
    return address
