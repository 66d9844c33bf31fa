"""The real application on a real store, in process or behind a socket. The stream is off unless a test wants it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from ghost.config import Settings
from ghost.mind import Changes, Memory, MemoryType, Query, Stimulus, Task, Thought
from ghost.server.app import Application
from ghost.server.listen_socket import bound_socket
from ghost.server.server_process import Server, wired
from ghost.shell.record.kept_output import keep

NOW = 1_732_264_000.0


def settings_for(root: Path, **given: Any) -> Settings:
    return Settings(**{"workspace": root, "soc_enabled": False, "api_port": 0, **given})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def make_app(root: Path) -> Iterator[Callable[..., Application]]:
    """Makes the application of the workspace, with settings of its own."""
    with contextlib.ExitStack() as stack:
        yield lambda **given: stack.enter_context(wired(settings_for(root, **given), root))


@pytest.fixture
def app(make_app: Callable[..., Application]) -> Application:
    return make_app()


@pytest.fixture
def client(app: Application) -> TestClient:
    """Asks without a socket and without the lifespan: neither stream nor watch runs."""
    return client_of(app)


def client_of(app: Application, **given: Any) -> TestClient:
    return TestClient(app, base_url="http://localhost:8000", raise_server_exceptions=False, **given)


@dataclass(frozen=True)
class Live:
    app: Application
    port: int
    server: Server
    thread: threading.Thread

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def client(self, **given: Any) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=10, trust_env=False, **given)

    def connect(self, request: bytes = b"", seconds: float = 10.0) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), seconds)
        connection.sendall(request)
        return connection

    def stop(self, seconds: float = 10.0) -> None:
        self.server.should_exit = True
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the server did not end"


@contextlib.contextmanager
def served(app: Application, http: type | None = None) -> Iterator[Live]:
    """A server in a thread, on a free port of this machine, ended at the end."""
    listening = bound_socket(settings_for(Path()))
    server = Server(app)
    if http is not None:
        server.config.http = http
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    live = Live(app, listening.getsockname()[1], server, thread)
    try:
        until(lambda: server.started or not thread.is_alive())
        assert server.started
        yield live
    finally:
        live.stop()


@pytest.fixture
def live(app: Application) -> Iterator[Live]:
    with served(app) as running:
        yield running


def until(true: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What `true` returns once it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.01)
    raise AssertionError(f"not so within {seconds} seconds")


def problem(response: Any, status: int) -> dict[str, Any]:
    """The problem document of a response, after checking that it is one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert document["detail"]
    assert document["title"]
    assert document["request_id"] == response.headers["x-request-id"]
    return document


# --- what tests put into the mind ---


def thought(number: int, *, ts: float, importance: float = 0.5) -> Thought:
    return Thought(
        id=f"thought:{number}", content=f"#plan look at route {number}", tags=("plan",), importance=importance, ts=ts
    )


def remember(app: Application, *texts: str, kind: MemoryType = MemoryType.SEMANTIC, **given: Any) -> list[str]:
    ltm = app.services.engine.ltm
    kept = []
    for text in texts:
        name = ltm.new_id()
        given = {"created_at": NOW, "last_access": NOW, **given}
        ltm.upsert_memory(Memory(id=name, type=kind, content=text, **given))
        kept.append(name)
    return kept


def ask(app: Application, name: str, question: str, **given: Any) -> None:
    now = app.services.now()
    query = Query(**{"id": name, "question": question, "created_ts": now, "expires_ts": now + 3600, **given})
    app.services.engine.store.apply(Changes(queries=[query]))


def task(name: str, now: float, **given: Any) -> Task:
    return Task(**{"id": name, "title": f"Do {name}", "created_ts": now, "last_update_ts": now, **given})


def stimulus(number: int, content: str) -> Stimulus:
    return Stimulus(id=f"stim:{number}", source="test", content=content, ts=NOW)


# --- what an investigation left behind ---


def write_session(root: Path, session_id: str, **given: Any) -> Path:
    """An archived session file, as `save_session` writes it."""
    from ghost.agent import Session, save_session

    session = Session(
        **{
            "session_id": session_id,
            "created_at": "2025-01-15T14:32:00.000Z",
            "model": "offline",
            "audit_dir": str(root / "audit"),
            **given,
        }
    )
    path = root / "audit" / f"ghost_session_{session_id}.json"
    save_session(path, session)
    return path


def command_record(session_id: str, number: int, **given: Any) -> dict[str, Any]:
    return {
        "timestamp": "2025-01-15T14:32:01.000Z",
        "session_id": session_id,
        "sequence": number,
        "audit_id": f"{session_id}_{number:03d}",
        "command": "az network nsg rule list --resource-group rg-a --nsg-name nsg-b",
        "reasoning": "Which rules are there?",
        "status": "completed",
        "classification": "SAFE",
        "action": "auto_approved",
        "error": None,
        "denial_reason": None,
        "modified_command": None,
        "environment": "azure",
        "exit_code": 0,
        "output": '[{"access": "Deny"}]',
        "output_summary": '[{"access": "Deny"}]',
        "duration_seconds": 1.5,
        **given,
    }


def with_whole_output(audit_dir: Path, record: dict[str, Any], text: str) -> dict[str, Any]:
    """The record with all of its output in a file beside the audit."""
    kept = keep(audit_dir, record["audit_id"], text)
    return {**record, "output_truncated": True, "output_sha256": kept.sha256, "output_bytes": kept.size}


def append(path: Path, *records: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
