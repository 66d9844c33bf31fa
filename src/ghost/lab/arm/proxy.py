"""The proxy into the lab: it resolves the lab's names and refuses all others.

It connects to ports of this machine only, so a client that uses it for everything reaches the lab or nothing.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from socketserver import StreamRequestHandler, ThreadingTCPServer

from ghost.lab.arm.request_log import RequestLog

CHUNK_BYTES = 1 << 16
IDLE_SECONDS = 120.0
LONGEST_HEAD_LINES = 100
HTTPS = "443"


class LabProxy(ThreadingTCPServer):
    """A proxy. `port_of` returns the local port of a host name, None to refuse it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port_of: Callable[[str], int | None], log: RequestLog) -> None:
        self.port_of = port_of
        self.log = log
        super().__init__(("127.0.0.1", 0), _Tunnel)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a broken connection."""


class _Tunnel(StreamRequestHandler):
    server: LabProxy
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True

    def handle(self) -> None:
        words = self.rfile.readline(CHUNK_BYTES).decode("latin-1").split()
        for _ in range(LONGEST_HEAD_LINES):
            if self.rfile.readline(CHUNK_BYTES) in (b"\r\n", b"\n", b""):
                break
        method, target = (words[0], words[1]) if len(words) >= 2 else ("", "")
        host, _, port = target.rpartition(":")
        local = self.server.port_of(host) if (method, port) == ("CONNECT", HTTPS) else None
        if local is None:
            self.server.log.add(method=method, path=target, status=403, changed=False, refused=True)
            text = b"SIMULATED network of a Ghost lab: it reaches nothing outside.\n"
            head = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text)
            self.wfile.write(head + text)
            return
        with socket.create_connection(("127.0.0.1", local), timeout=IDLE_SECONDS) as other:
            other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _carry(self.connection, other)


def _carry(client: socket.socket, server: socket.socket) -> None:
    """Copy bytes in both directions until one side ends or both are silent."""
    with selectors.DefaultSelector() as ready:
        ready.register(client, selectors.EVENT_READ, server)
        ready.register(server, selectors.EVENT_READ, client)
        while events := ready.select(IDLE_SECONDS):
            for key, _ in events:
                source = key.fileobj
                assert isinstance(source, socket.socket)
                received = source.recv(CHUNK_BYTES)
                if not received:
                    return
                key.data.sendall(received)
