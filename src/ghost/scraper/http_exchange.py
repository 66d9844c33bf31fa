"""One exchange over an open connection: HTTP/1.1 and TLS by httpcore2, with our deadline and stop.

httpcore2 gets a network backend that can open no other connection. It follows no redirect, keeps no cookie, reads no
environment and uses no proxy.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

import httpcore2

from ghost.scraper.decoding import ACCEPTED_CODINGS, BodyDecoder, TooLargeError
from ghost.scraper.http_response import Deadline, Response, UnreachableError, media_type
from ghost.scraper.urls import Url

T = TypeVar("T")

_SLICE_SECONDS = 0.1  # how long a wait for the peer lasts before the stop is looked at
_OVERHEAD_BYTES = 128 * 1024  # of headers, chunk sizes and TLS, on top of the body


def exchange(
    url: Url,
    connection: socket.socket,
    tls: Callable[[], ssl.SSLContext],
    headers: dict[str, str],
    patience: Deadline,
    limit: int,
    *,
    may_cut: bool,
    types: frozenset[str] | None,
) -> Response:
    """GET `url` over `connection`, which is closed at the end.

    Raises `UnreachableError`, `TooLargeError`, `DamagedBodyError`, `StoppedError`, `OutOfTimeError`.
    """
    stream = _Stream(connection, patience, limit + _OVERHEAD_BYTES)
    try:
        context = tls() if url.scheme == "https" else None
        http = httpcore2.HTTPConnection(
            httpcore2.Origin(url.scheme.encode(), url.host.encode(), url.port),
            ssl_context=context,
            network_backend=_OneConnection(stream),
        )
        sent = {"Host": url.authority, **headers, "Accept-Encoding": ACCEPTED_CODINGS, "Connection": "close"}
        request = httpcore2.Request(
            "GET",
            httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target),
            headers=list(sent.items()),
        )
        try:
            answer = http.handle_request(request)
            found = _by_name(answer.headers)
            response = Response(answer.status, found)
            if answer.status != 200 or (types is not None and media_type(response) not in types):
                return response
            return _with_body(response, answer, limit, may_cut=may_cut)
        finally:
            http.close()
    except (OSError, ValueError) as error:
        raise UnreachableError(f"{type(error).__name__}: {error}") from error
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise UnreachableError(f"{type(error).__name__}: {error}") from error
    finally:
        stream.close()


def _with_body(response: Response, answer: httpcore2.Response, limit: int, *, may_cut: bool) -> Response:
    announced = response.header("content-length") or ""
    if announced.isdigit() and int(announced[:20]) > limit and not may_cut:
        raise TooLargeError(f"the page is larger than {limit} bytes")
    decoder = BodyDecoder(", ".join(response.headers.get("content-encoding", ())), limit)
    try:
        for octets in answer.iter_stream():
            decoder.feed(octets)
    except TooLargeError:
        if not may_cut:
            raise
        return replace(response, body=bytes(decoder.body), cut=True)
    return replace(response, body=decoder.finish())


def _by_name(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        found[key] = (*found.get(key, ()), value.decode("latin-1"))
    return found


class _OneConnection(httpcore2.NetworkBackend):
    def __init__(self, stream: _Stream) -> None:
        self._stream: _Stream | None = stream

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - the connection is made already, to an address that was checked
        port: int,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        stream, self._stream = self._stream, None
        if stream is None:
            raise httpcore2.ConnectError("only one connection per exchange is allowed")
        return stream


class _Stream(httpcore2.NetworkStream):
    """A socket that waits no longer than its `Deadline`, however slowly the peer sends."""

    def __init__(self, connection: socket.socket, patience: Deadline, most_bytes: int) -> None:
        self._socket = connection
        self._patience = patience
        self._bytes_left = most_bytes

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - `Deadline` knows better
        octets = self._in_slices(lambda: self._socket.recv(max_bytes))
        self._bytes_left -= len(octets)
        if self._bytes_left < 0:
            raise TooLargeError("the response exceeds the size limit")
        return octets

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._socket.settimeout(self._patience.seconds_left())
        try:
            self._socket.sendall(buffer)
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname, do_handshake_on_connect=False)
        self._socket = secured
        self._in_slices(secured.do_handshake)
        return self

    def close(self) -> None:
        self._socket.close()

    def _in_slices(self, wait: Callable[[], T]) -> T:
        while True:
            self._socket.settimeout(min(_SLICE_SECONDS, self._patience.seconds_left()))
            try:
                return wait()
            except TimeoutError:
                continue
