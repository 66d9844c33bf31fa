"""A real server behind a socket: events, slow clients, and an end under open connections."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from ghost.providers import StubLLM
from ghost.server.app import Application
from ghost.server.http_connection import BoundedConnection
from ghost.server.request_limits import CONNECTIONS, EVENT_CLIENTS, MAX_BODY_BYTES, MAX_HEAD_BYTES, SEARCHES_AT_ONCE
from tests.server.conftest import Live, append, client_of, command_record, problem, served, stimulus, until

GET_WM = b"GET /wm HTTP/1.1\r\nHost: localhost:%d\r\n\r\n"


def events_of(response: httpx2.Response) -> Iterator[tuple[str | None, str, dict[str, object]]]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and "event" in fields:
            yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}


@contextlib.contextmanager
def following(live: Live, **headers: str) -> Iterator[Iterator[tuple[str | None, str, dict[str, object]]]]:
    with live.client() as client, client.stream("GET", "/events", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield events_of(response)


def read_all(connection: socket.socket) -> bytes:
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            content += piece
    return content


# --- events ---


def test_what_the_mind_does_is_followed_as_it_happens(live: Live) -> None:
    with following(live) as events, live.client() as client:
        client.post("/stimuli", json={"source": "cli", "content": "vnet-b lost its peering"})
        client.post("/cycle")
        kinds = []
        for _, kind, data in events:
            kinds.append(kind)
            assert data["ts"] > 0
            if kind == "thought":
                break
    assert kinds[0] == "stimulus"
    assert data["content"].startswith("#")


def test_after_a_break_what_was_missed_follows(live: Live) -> None:
    engine = live.app.services.engine
    with following(live) as events:
        engine.ingest([stimulus(1, "one")])
        last, _, _ = next(events)
    engine.ingest([stimulus(2, "two")])
    with following(live, **{"last-event-id": str(last)}) as events:
        assert next(events)[2]["content"] == "two"
    with following(live, **{"last-event-id": "another-1"}) as events:
        assert next(events)[1] == "gap"


def test_many_follow_and_one_too_many_is_told_so(live: Live) -> None:
    request = b"GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % live.port
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(live.connect(request)) for _ in range(EVENT_CLIENTS)]
        for connection in clients:
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        with live.client() as client:
            problem(client.get("/events"), 503)
            live.app.services.engine.ingest([stimulus(1, "all of you")])
            for connection in clients:
                assert b"all of you" in read_until(connection, b"all of you")
            assert f"ghost_event_clients {EVENT_CLIENTS:.1f}" in client.get("/metrics").text
            for connection in clients:
                connection.close()
            until(lambda: live.app.services.feed.clients == 0)
            assert client.get("/wm").status_code == 200


def read_until(connection: socket.socket, wanted: bytes) -> bytes:
    content = b""
    while wanted not in content:
        piece = connection.recv(65_536)
        assert piece, content
        content += piece
    return content


def test_a_follower_that_reads_nothing_is_let_go(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ghost.server.event_stream.SEND_SECONDS", 0.2)
    with served(app) as live, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", live.port))
        deaf.sendall(b"GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % live.port)
        until(lambda: app.services.feed.clients == 1)

        def told() -> bool:
            for number in range(64):
                app.services.feed.publish("thought", 0.0, {"content": "x" * 60_000, "n": number})
            return app.services.feed.clients == 0

        until(told)
        with live.client() as client:
            assert client.get("/wm").status_code == 200


def test_audit_records_reach_the_mind_and_the_followers(live: Live, root: Path) -> None:
    sid = "ghost_20250115_143200"
    with following(live) as events:
        append(root / "audit" / f"shell_audit_{sid}.jsonl", command_record(sid, 1))
        seen = {}
        for _, kind, data in events:
            seen[kind] = data
            if {"stimulus", "record"} <= set(seen):
                break
    assert seen["record"]["audit_id"] == f"{sid}_001"
    assert seen["stimulus"]["source"] == "audit"
    assert "az network nsg rule list" in str(seen["stimulus"]["content"])


# --- slow, long and broken requests ---


class Hasty(BoundedConnection):
    head_seconds = 0.3
    request_seconds = 0.5


@pytest.mark.parametrize("start", [b"", b"GET /wm HTTP/1.1\r\nHost: loc", b"GET /w"])
def test_who_does_not_finish_its_headers_is_let_go(app: Application, start: bytes) -> None:
    with served(app, Hasty) as live, live.connect(start) as slow:
        began = time.monotonic()
        assert read_all(slow) == b""
        assert time.monotonic() - began < 5
        with live.connect(GET_WM % live.port + start) as second:
            assert read_until(second, b"half_life").startswith(b"HTTP/1.1 200")
            if start:
                read_all(second)  # the second request on a connection has no longer


def test_who_does_not_finish_its_body_is_told_so(app: Application) -> None:
    head = (
        b"POST /stimuli HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{"
    )
    with served(app, Hasty) as live, live.connect(head % live.port) as slow:
        answer = read_all(slow)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"application/problem+json" in answer


def test_headers_without_end_are_not_collected(live: Live) -> None:
    with live.connect(b"GET /wm HTTP/1.1\r\nHost: localhost:%d\r\n" % live.port) as endless:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 * MAX_HEAD_BYTES:
                endless.sendall(b"X-More: " + b"a" * 4000 + b"\r\n")
                sent += 4010
                time.sleep(0.001)
        assert sent < 16 * MAX_HEAD_BYTES


def test_what_is_no_http_is_a_problem(live: Live) -> None:
    for nonsense in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /wm HTTP/9.9\r\n\r\n", b"SSH-2.0-x\r\n"):
        with live.connect(nonsense) as connection:
            answer = read_all(connection)
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"application/problem+json" in answer


def test_two_lengths_are_not_guessed_at(live: Live) -> None:
    smuggled = (
        b"POST /stimuli HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /wm HTTP/1.1\r\n\r\n"
    )
    with live.connect(smuggled % live.port) as connection:
        assert read_all(connection).startswith(b"HTTP/1.1 400")


def test_a_body_without_end_is_cut_off(live: Live) -> None:
    head = (
        b"POST /stimuli HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    piece = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with live.connect(head % live.port) as connection:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 64 * MAX_BODY_BYTES:
                connection.sendall(piece)
                sent += len(piece)
        assert sent < 32 * MAX_BODY_BYTES  # what the sockets' buffers hold, and no more
        assert live.app.services.engine.waiting == 0


def test_a_websocket_is_not_spoken(live: Live) -> None:
    upgrade = (
        b"GET /events HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with live.connect(upgrade) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 421")


def test_many_at_once_are_answered(live: Live) -> None:
    with live.client() as client, ThreadPoolExecutor(16) as pool:
        paths = ["/wm", "/tasks", "/interrupts", "/ltm/search?q=x", "/metrics", "/investigations", "/config"] * 16
        assert {answer.status_code for answer in pool.map(client.get, paths)} == {200}


# --- the end ---


def test_it_ends_soon_under_open_connections_and_streams(app: Application) -> None:
    with served(app) as live, contextlib.ExitStack() as stack:
        request = b"GET /events HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % live.port
        streams = [stack.enter_context(live.connect(request)) for _ in range(5)]
        for stream in streams:
            stream.recv(4096)
        idle = stack.enter_context(live.connect(GET_WM % live.port))
        idle.recv(65_536)
        silent = stack.enter_context(live.connect())
        began = time.monotonic()
        live.stop()
        assert time.monotonic() - began < 4
        for stream in streams:
            assert read_all(stream).endswith(b"0\r\n\r\n")  # a whole response
        assert read_all(silent) == b""
        assert app.services.stopping.is_set()
        with pytest.raises(ConnectionRefusedError):
            live.connect()


def test_a_request_under_way_is_answered_before_the_end(app: Application) -> None:
    search = app.services.engine.ltm.search

    def slow(*given: object, **named: object) -> object:
        time.sleep(0.6)
        return search(*given, **named)

    app.services.engine.ltm.search = slow
    with served(app) as live, live.client() as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.get, "/ltm/search?q=x")
        until(lambda: live.server.server_state.tasks)
        live.stop()
        assert answer.result(5).status_code == 200


class Hanging(StubLLM):
    """A model that does not answer before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let_go = threading.Semaphore(0), threading.Event()

    def generate(self, *given: object, **named: object) -> str:
        self.asked.release()
        self.let_go.wait(30)
        return super().generate(*given, **named)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    model = Hanging()
    monkeypatch.setattr("ghost.server.engine_setup.language_model", lambda settings: model)
    yield model
    model.let_go.set()


def test_a_model_that_hangs_holds_up_neither_the_end_nor_other_requests(
    hanging: Hanging, make_app, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ghost.server.server_process.GRACEFUL_SECONDS", 0.3)
    with served(make_app(soc_enabled=True)) as live, live.client() as client, ThreadPoolExecutor(2) as pool:
        cycles = [pool.submit(client.post, "/cycle") for _ in range(2)]
        assert hanging.asked.acquire(timeout=10)
        until(lambda: live.app.services.cycles._value == 0)
        problem(client.post("/cycle"), 503)  # no third waits
        for path in ("/wm", "/readyz", "/ltm/search?q=x", "/metrics"):
            assert client.get(path).status_code == 200
        began = time.monotonic()
        live.stop()
        assert time.monotonic() - began < 5
        for cycle in cycles:
            assert problem(cycle.result(5), 503)["detail"] == "The server is stopping."
    assert "request" in {thread.name for thread in threading.enumerate() if thread.daemon}


def test_a_slot_is_free_again_after_its_work_whatever_came_of_it(app: Application) -> None:
    app.services.engine.store.close()
    client = client_of(app)
    for _ in range(2 * SEARCHES_AT_ONCE):
        problem(client.get("/ltm/search?q=x"), 503)
    assert app.services.searches._value == SEARCHES_AT_ONCE


def test_more_connections_than_may_be_are_told_so(live: Live) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(live.connect())
        until(lambda: len(live.server.server_state.connections) == CONNECTIONS)
        answer = read_all(stack.enter_context(live.connect(GET_WM % live.port)))
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"application/problem+json" in answer
    until(lambda: not live.server.server_state.connections)
    with live.client() as client:
        assert client.get("/wm").status_code == 200
