"""ASGI middleware that checks every request and completes every response.

In order: access (`access`), size (`request_limits`), body type. Each request gets an id, which its response, problem
and log lines carry. An unexpected exception becomes a problem here.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ghost import page
from ghost.report import STYLE
from ghost.server.access import SAFE_METHODS, Access, Headers
from ghost.server.logs import logger, request_id
from ghost.server.problems import Refused, internal_problem, problem_response
from ghost.server.prometheus_metrics import Metrics
from ghost.server.request_limits import MAX_BODY_BYTES, MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_BYTES

_log = logger("ghost.server")


def _hash_of(style: str) -> bytes:
    return b"'sha256-%s'" % base64.b64encode(hashlib.sha256(style.encode()).digest())


_OF_PAGES: Final = _hash_of(page.style())
_NOTHING: Final = b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_DASHBOARD: Final = (  # a capture's page is shown in a frame without rights, made of a blob: it has this policy too
    b"default-src 'none'; script-src 'self'; style-src 'self' %s; img-src 'self' blob:; frame-src blob:; "
    b"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'" % _OF_PAGES
)
_ALWAYS: Final = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_OF_API: Final = [*_ALWAYS, (b"content-security-policy", _NOTHING), (b"cache-control", b"no-store")]
_OF_STYLED: Final = [
    *_ALWAYS,
    (b"content-security-policy", b"%s; style-src %s %s; sandbox" % (_NOTHING, _hash_of(STYLE), _OF_PAGES)),
    (b"cache-control", b"no-store"),
]
_OF_DASHBOARD: Final = [*_ALWAYS, (b"content-security-policy", _DASHBOARD), (b"cache-control", b"no-cache")]

Refusal = tuple[int, str]


class Guard:
    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics, *, read_only: bool = False) -> None:
        self._app = app
        self._access = access
        self._read_only = read_only
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = secrets.token_hex(8)
        request_id.set(name)  # a request has a task, and so a context, of its own
        scope["ghost.request_id"] = name
        out = _Outgoing(send, name, scope["path"])
        started = time.perf_counter()
        try:
            refusal = self._refusal(scope)
            if refusal is None:
                await self._app(scope, _Limited(receive), out)
            else:
                await _refuse(refusal, name, scope, receive, out)
        except asyncio.CancelledError:  # only a server that stops cancels, and has waited by then
            if out.status is None:
                await problem_response(503, "The server is stopping.", name)(scope, receive, out)
        except Exception as defect:  # noqa: BLE001 - the boundary: nothing of it reaches the client
            _log.error("request failed", method=scope["method"], path=scope["path"], exc_info=defect)
            if out.status is None:
                await internal_problem(name)(scope, receive, out)
        finally:
            self._note(scope, out.status, time.perf_counter() - started)

    def _note(self, scope: Scope, status: int | None, seconds: float) -> None:
        self._metrics.answered(scope, status or 0, seconds)
        if scope["method"] not in SAFE_METHODS or (status or 500) >= 400:
            _log.info("request", method=scope["method"], path=scope["path"], status=status, seconds=round(seconds, 4))

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers: Headers = scope["headers"]
        method: str = scope["method"]
        refusal = self._access.refusal(method, scope["path"], headers, scope.get("server"), scope["scheme"])
        if refusal is not None:
            return refusal.status, refusal.detail
        if self._read_only and method not in SAFE_METHODS:
            return 409, "Another ghost serve has this workspace, and this one reads only: send changes to that one."
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL_BYTES:
            return 414, f"The address is longer than {MAX_URL_BYTES} bytes. Send long text in a JSON body."
        if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
            return 431, f"The headers are more than {MAX_HEADERS}, or longer than {MAX_HEADER_BYTES} bytes."
        return _of_body(method, headers)


def _of_body(method: str, headers: Headers) -> Refusal | None:
    length, content_type, encoding, chunked = b"0", None, None, False
    for name, value in headers:
        if name == b"content-length":
            length = value
        elif name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            encoding = value
        elif name == b"transfer-encoding":
            chunked = True
    if not chunked and length == b"0":
        return None
    if not length.isdigit() or int(length[:20]) > MAX_BODY_BYTES:
        return 413, f"The body is longer than {MAX_BODY_BYTES} bytes."
    if method in SAFE_METHODS:
        return None
    media_type = (content_type or b"").split(b";")[0].strip().lower()
    if media_type != b"application/json" or encoding not in (None, b"identity"):
        return 415, "A body is JSON: Content-Type: application/json, without Content-Encoding."
    return None


async def _refuse(refusal: Refusal, name: str, scope: Scope, receive: Receive, send: Send) -> None:
    status, detail = refusal
    headers = {"Connection": "close"} if status in (413, 414, 431) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    await problem_response(status, detail, name, headers=headers)(scope, receive, send)


class _Outgoing:
    """Adds the headers of every response and records the status."""

    def __init__(self, send: Send, name: str, path: str) -> None:
        self._send = send
        of_path = _OF_DASHBOARD if path == "/ui" or path.startswith("/ui/") else _OF_API
        of_path = _OF_STYLED if path.endswith(("/path.svg", "/page")) and of_path is _OF_API else of_path
        self._own = [*of_path, (b"x-request-id", name.encode("ascii"))]
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *self._own]}
        await self._send(message)


class _Limited:
    """Counts a body without a stated length while it arrives."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > MAX_BODY_BYTES:
                raise Refused(413, f"The body is longer than {MAX_BODY_BYTES} bytes.", headers={"Connection": "close"})
        return message
