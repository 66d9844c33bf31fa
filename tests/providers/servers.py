"""A model server on loopback that plays a script: one step a connection, each free to misbehave byte by byte."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

KEY = "sk-secret-0123456789abcdef"


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Step = Callable[[socket.socket], None]


@dataclass
class ModelServerScript:
    """The last step is played again for every further connection."""

    steps: list[Step]
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> ModelServerScript:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with suppress(OSError):
            socket.create_connection(self._listener.getsockname(), timeout=1).close()  # wakes accept
        self._accepting.join(5)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        number = 0
        while True:
            connection, _ = self._listener.accept()
            if self._stopped.is_set():
                connection.close()
                return
            step = self.steps[min(number, len(self.steps) - 1)]
            number += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._play, args=(connection, step))
            self._threads.append(thread)
            thread.start()

    def _play(self, connection: socket.socket, step: Step) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            request = _read_request(connection)
            if request is None:
                return
            self.requests.append(request)
            step(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)


def _read_request(connection: socket.socket) -> Request | None:
    received = b""
    while b"\r\n\r\n" not in received:
        if not (chunk := connection.recv(65536)):
            return None
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return Request(first.split(" ")[1], headers, body)


def answer(status: int, body: bytes | Any, headers: dict[str, str] | None = None) -> Step:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"content-type": "application/json", "content-length": str(len(content)), "connection": "close"}
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{k}: {v}\r\n" for k, v in {**lines, **(headers or {})}.items())
    return lambda connection: connection.sendall(head.encode() + b"\r\n" + content)


def half_a_body(body: Any) -> Step:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(content)}\r\n\r\n".encode()
    return lambda connection: connection.sendall(head + content[: len(content) // 2])


def close_at_once(connection: socket.socket) -> None:
    """Answers nothing."""


def no_http(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def silence(connection: socket.socket) -> None:
    connection.recv(1)


def dripping_headers(connection: socket.socket) -> None:
    """A header byte now and then: never late by a read timeout, never ready."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
    for _ in range(2000):
        connection.sendall(b"x")
        time.sleep(0.02)


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
    for _ in range(2000):
        connection.sendall(b" ")
        time.sleep(0.02)


def huge_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" " * 2**20)


@dataclass
class WaitingClock:
    """Time passes only by sleeping; the sleeps are kept."""

    slept: list[float] = field(default_factory=list)
    start: datetime = datetime(2026, 1, 15, 3, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Highest(Random):
    """Full jitter at its longest: the bounds become visible."""

    def uniform(self, a: float, b: float) -> float:
        return b
