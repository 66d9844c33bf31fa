"""HTTP connections with limits that uvicorn does not set.

uvicorn buffers headers of any length without a time limit. Here a request line and its headers fit in `MAX_HEAD_BYTES`
and arrive within `HEAD_SECONDS`, and a whole request within `REQUEST_SECONDS`. Input that is not HTTP is answered with
a problem document too.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ghost.server.request_limits import HEAD_SECONDS, MAX_HEAD_BYTES, REQUEST_SECONDS

_BUSY = {
    "type": "about:blank",
    "title": "Service Unavailable",
    "status": 503,
    "detail": "Too many connections are open. Close some, or retry in a moment.",
    "request_id": "",
}


class BoundedConnection(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    request_seconds = REQUEST_SECONDS

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._within(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._within(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._answer(431, f"The request line and the headers are longer than {MAX_HEAD_BYTES} bytes.")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._within(self.head_seconds)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._within(self.request_seconds)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._within(None)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - its own words are said
        self._answer(400, "This is not an HTTP request.")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        super()._start_asgi_task(cycle, app if app is self.app else cast("Any", _too_many))

    def _within(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._too_late)

    def _too_late(self) -> None:
        if self.transport.is_closing():
            return
        if self._in_head or self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        elif self.cycle.response_started:
            self.transport.abort()
        else:
            self._answer(408, f"The request was not complete within {self.request_seconds:.0f} seconds.")

    def _answer(self, status: int, detail: str) -> None:
        """Write directly to the socket, without the application."""
        body = json.dumps({**_BUSY, "title": _phrase(status), "status": status, "detail": detail}).encode()
        head = [
            STATUS_LINE[status],
            b"content-type: application/problem+json\r\nx-content-type-options: nosniff\r\n",
            b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body),
        ]
        if not self.transport.is_closing():
            self.transport.write(b"".join([*head, body]))
            self.transport.close()


async def _too_many(_scope: Scope, _receive: Receive, send: Send) -> None:
    body = json.dumps(_BUSY).encode()
    start: Message = {
        "type": "http.response.start",
        "status": 503,
        "headers": [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"retry-after", b"5"),
            (b"connection", b"close"),
        ],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})


def _phrase(status: int) -> str:
    return STATUS_LINE[status].split(b" ", 2)[2].strip().decode()
