"""The emulator over HTTPS on loopback."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from ghost.lab.arm.api_messages import ArmError, Request, Response
from ghost.lab.arm.gateway import Gateway
from ghost.lab.arm.request_log import RequestLog
from ghost.lab.arm.service_hosts import MANAGEMENT

LARGEST_BODY_BYTES = 1 << 20
IDLE_SECONDS = 60


class ArmServer(ThreadingHTTPServer):
    """An HTTPS server that listens from its creation; `serve_forever` answers."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, gateway: Gateway, tls: ssl.SSLContext, log: RequestLog, after: Callable[[], None] = lambda: None
    ) -> None:
        """Create the server. `after` is called after each request that changed something or queried a capture."""
        self.gateway = gateway
        self.tls = tls
        self.log = log
        self.after = after
        super().__init__(("127.0.0.1", 0), _Exchange)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Leave the TLS handshake to the connection's thread, so that a silent client blocks nobody."""
        connection, address = super().get_request()
        connection.settimeout(IDLE_SECONDS)
        wrapped = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return wrapped, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a broken or non-TLS connection."""


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body leave together: two small writes would wait for each other
    disable_nagle_algorithm = True
    server: ArmServer

    def version_string(self) -> str:
        return "Ghost-Lab-Simulated-Azure"

    def log_message(self, *_: Any) -> None:
        """Write nothing to standard error; `RequestLog` records requests."""

    def _exchange(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = headers.get("host", MANAGEMENT)
        try:
            length = int(headers.get("content-length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= LARGEST_BODY_BYTES or "transfer-encoding" in headers:
            self.close_connection = True
            self._send(ArmError(413, "RequestTooLarge", "The request is longer than a lab takes.").response(), host)
            return
        body = self.rfile.read(length) if length else b""
        request = Request(self.command, self.path, body, headers, f"https://{host}")
        response = self._answer(host, request)
        if response.changed or "/packetcaptures/" in self.path.casefold():
            self.server.after()
        self._send(response, host)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _exchange  # noqa: N815 - the library's names

    def _answer(self, host: str, request: Request) -> Response:
        """Return the response; a defect becomes an error response, so that clients do not see a network failure."""
        try:
            return self.server.gateway.answer(host, request)
        except Exception as defect:  # noqa: BLE001 - the boundary to the client
            what = f"The lab cannot answer this ({type(defect).__name__}: {defect})."
            return ArmError(500, "InternalServerError", what).response()

    def _send(self, response: Response, host: str) -> None:
        """Log the request, then send the response."""
        note = {"note": response.note} if response.note else {}
        lost = {"lost": True} if response.lost else {}
        self.server.log.add(
            method=self.command,
            host=host,
            path=self.path,
            status=response.status,
            changed=response.changed,
            **note,
            **lost,
        )
        if response.lost:
            self.close_connection = True
            return
        request_id = str(uuid4())
        self.send_response(response.status)
        headers = {"Content-Length": str(len(response.body)), **response.headers}
        if response.status in (204, 304):
            del headers["Content-Length"]
        for name, value in {**headers, "x-ms-request-id": request_id, "x-ms-version": "2026-02-06"}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)
