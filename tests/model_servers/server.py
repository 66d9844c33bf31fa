"""A model server on loopback: checks requests as its API would, answers by a script, keeps every byte it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ghost.brain import Message, Turn
from tests.model_servers.exchange import (
    KEY,
    MODEL,
    Answer,
    ApiError,
    Dialect,
    Memory,
    RefusedRequest,
    Reply,
    Script,
    Understood,
)


@dataclass
class ModelServer:
    dialect: Dialect
    script: Script
    url: str = ""
    received: list[bytes] = field(default_factory=list)
    """Each request with its first line, headers and body."""
    understood: list[Understood] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Why requests were answered with 400."""
    memory: Memory = field(default_factory=Memory)

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        try:
            request = self.dialect.understand(path, headers, json.loads(body), self.memory)
        except (RefusedRequest, KeyError, TypeError, ValueError) as refused:
            self.refused.append(f"{type(refused).__name__}: {refused}")
            return ApiError("bad_request", str(refused))
        if request.key != KEY:
            return ApiError("wrong_key")
        if request.model != MODEL:
            return ApiError("unknown_model", request.model)
        self.understood.append(request)
        return self.script(request.messages)


@contextmanager
def serving(dialect: Dialect, script: Script | Sequence[Answer]) -> Iterator[ModelServer]:
    """Serve on 127.0.0.1. A list of answers is given in order, and its last one for every further request."""
    if not callable(script):
        script = _in_order(script)
    state = ModelServer(dialect, script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # a client that was killed, or has read enough
                super().handle()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            state.received.append(f"{self.requestline}\r\n{self.headers}".encode() + body)
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = state.answer(self.path, headers, body)
            if isinstance(answer, Turn):
                answer = Reply(answer.text, answer.tool_calls, thinking="One step at a time.")
            if isinstance(answer, Reply):
                self._send(200, state.dialect.body(answer, state.memory))
            elif isinstance(answer, ApiError):
                status, content = state.dialect.error(answer)
                self._send(status, content, answer.retry_after_seconds)
            else:
                self.close_connection = True
                answer(self.connection)

        def _send(self, status: int, content: Any, retry_after_seconds: int | None = None) -> None:
            encoded = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(encoded)))
            if retry_after_seconds is not None and state.dialect.name != "gemini":  # its body says so
                self.send_header("retry-after", str(retry_after_seconds))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        state.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


def _in_order(answers: Sequence[Answer]) -> Script:
    left = list(answers)

    def script(_: Sequence[Message]) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return script
