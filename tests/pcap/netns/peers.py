"""Servers and clients that behave well or badly, on plain sockets inside namespaces."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable

from tests.pcap.netns.space import Space

Handler = Callable[[socket.socket], None]
_PATIENCE = 25.0


def serve(space: Space, address: str, port: int, handler: Handler, *, receive_buffer: int = 0) -> None:
    """A listener whose connections each get a thread; it ends with the process."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = space.socket(family=family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if receive_buffer:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    listener.bind((address, port))
    listener.listen(128)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connection.settimeout(_PATIENCE)
            threading.Thread(target=_handled, args=(handler, connection), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def _handled(handler: Handler, connection: socket.socket) -> None:
    try:
        handler(connection)
    except OSError:
        return  # the client went away, or the scene wants it so; the capture tells
    finally:
        connection.close()


def connect(
    space: Space, address: str, port: int, *, timeout: float = _PATIENCE, receive_buffer: int = 0, bind: str = ""
) -> socket.socket:
    sock = space.socket(family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    sock.settimeout(timeout)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    if bind:
        sock.bind((bind, 0))
    try:
        sock.connect((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def fails_to_connect(space: Space, address: str, port: int, timeout: float) -> None:
    try:
        connect(space, address, port, timeout=timeout).close()
    except OSError:
        return
    raise AssertionError(f"{address}:{port} was to be out of reach, and answers")


def abort(sock: socket.socket) -> None:
    """Close with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def read_head(sock: socket.socket) -> bytes:
    """Up to the empty line; empty where the peer closed."""
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = sock.recv(4096)
        if not chunk:
            return b""
        head += chunk
    return head


def body(size: int) -> bytes:
    return bytes(range(32, 127)) * (size // 95 + 1)


def http_head(length: int, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    return f"HTTP/1.1 {status}\r\nServer: small\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n".encode()


def web(size: int = 20_000, *, status: str = "200 OK", wait: float = 0.0) -> Handler:
    """Answers every request of a connection with `size` bytes, after `wait` seconds."""

    def handle(sock: socket.socket) -> None:
        while read_head(sock):
            if wait:
                time.sleep(wait)
            sock.sendall(http_head(size, status) + body(size)[:size])

    return handle


def fetch(
    space: Space, address: str, port: int, *, requests: int = 1, path: str = "/", pause: float = 0.0,
    receive_buffer: int = 0, bind: str = "",
) -> int:  # fmt: skip
    """GET over one connection; returns the bytes of all bodies. Reads to the promised length."""
    got = 0
    with connect(space, address, port, receive_buffer=receive_buffer, bind=bind) as sock:
        for _ in range(requests):
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: app.example.net\r\nUser-Agent: small\r\n\r\n".encode())
            head = b""
            while b"\r\n\r\n" not in head:
                chunk = sock.recv(65536)
                if not chunk:
                    return got
                head += chunk
            text, _, rest = head.partition(b"\r\n\r\n")
            length = int(text.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            have = len(rest)
            while have < length:
                chunk = sock.recv(65536)
                if not chunk:
                    return got + have
                have += len(chunk)
            got += have
            if pause:
                time.sleep(pause)
    return got


def upload(space: Space, address: str, port: int, size: int, *, bind: str = "") -> None:
    """POST `size` bytes and read the answer."""
    with connect(space, address, port, bind=bind) as sock:
        sock.sendall(f"POST /in HTTP/1.1\r\nHost: app.example.net\r\nContent-Length: {size}\r\n\r\n".encode())
        data = body(size)[:size]
        for begin in range(0, size, 16384):
            sock.sendall(data[begin : begin + 16384])
        sock.recv(4096)


def takes_uploads(pause: float = 0.0, chunk: int = 65536) -> Handler:
    """Reads what a POST promises, pausing before each piece, and says 204."""

    def handle(sock: socket.socket) -> None:
        while head := read_head(sock):
            text, _, rest = head.partition(b"\r\n\r\n")
            left = int(text.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) - len(rest)
            while left > 0:
                if pause:
                    time.sleep(pause)
                piece = sock.recv(min(chunk, left))
                if not piece:
                    return
                left -= len(piece)
            sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    return handle


def echo(sock: socket.socket) -> None:
    while data := sock.recv(65536):
        sock.sendall(data)


def converse(space: Space, address: str, port: int, rounds: int, size: int = 300, pause: float = 0.0) -> None:
    """Small questions and answers, one after the other."""
    with connect(space, address, port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(rounds):
            sock.sendall(body(size)[:size])
            left = size
            while left > 0:
                piece = sock.recv(left)
                if not piece:
                    return
                left -= len(piece)
            if pause:
                time.sleep(pause)
