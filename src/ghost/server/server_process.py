"""`ghost serve`: opens memory, wires the mind, and serves until it is stopped.

Resources are closed in reverse order, however it ends: event streams first, so that no client blocks the end, then
running requests, the background loop, the engine, the store, and the log.
"""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn

from ghost.agent import Workspace, without_secrets
from ghost.config import Settings
from ghost.errors import GhostError
from ghost.mind import Engine, StreamOfConsciousness
from ghost.records import private_dir
from ghost.server.app import Application, create_app
from ghost.server.audit_watch import AuditWatch
from ghost.server.engine_setup import opened_engine
from ghost.server.http_connection import BoundedConnection
from ghost.server.incident_results import checked_address
from ghost.server.listen_socket import BACKLOG, bound_socket, url_of
from ghost.server.logs import logger, logging_to
from ghost.server.orders import Investigator
from ghost.server.request_limits import CONNECTIONS, GRACEFUL_SECONDS, KEEP_ALIVE_SECONDS

INTERRUPTED: Final = 130

_log = logger("ghost.server")


def serve(
    settings: Settings, root: Path, say: Callable[[str], None] | None = None, investigator: Investigator | None = None
) -> int:
    """Serve the workspace `root` until SIGTERM (returns 0), SIGINT or SIGHUP (130). `say` prints a line.

    Raises `ConfigurationError` if it cannot listen, `StoreError` if memory cannot be opened.
    """
    say = say or _to_stderr
    private_dir(root)
    settings = replace(settings, workspace=root)
    checked_address(settings)
    with (
        contextlib.closing(bound_socket(settings)) as listening,
        logging_to(settings.log_directory) as log_file,
        wired(settings, root, investigator) as app,
    ):
        url = url_of(listening, settings)
        say(f"Ghost's dashboard: {url}/ui  (API: {url}/openapi.json, log: {log_file}, end with Ctrl-C)")
        _log.info("serving", url=url, token=settings.api_token is not None, soc_enabled=settings.soc_enabled)
        ended_by = run(app, listening)
        _log.info("ended", by=ended_by.name if ended_by else None)
    return INTERRUPTED if ended_by in (signal.SIGINT, signal.SIGHUP) else 0


@contextmanager
def wired(settings: Settings, root: Path, investigator: Investigator | None = None) -> Iterator[Application]:
    """Return the opened application of a workspace; closed at the end."""
    workspace = Workspace(root)
    with opened_engine(settings, root) as engine, _re_embedding(engine):
        jitter = random.Random()  # noqa: S311 - not a secret
        stream = StreamOfConsciousness(engine, settings, engine.clock, jitter) if settings.soc_enabled else None
        watch = AuditWatch(workspace.audit_dir, root / "data" / "audit_watch.json", without_secrets)
        yield create_app(
            engine,
            stream,
            settings,
            workspace,
            embeddings=engine.ltm.embeddings,
            redact=without_secrets,
            audit_watch=watch,
            investigator=investigator,
        )


def run(app: Application, listening: socket.socket) -> signal.Signals | None:
    """Serve on a bound socket until a signal arrives; return that signal."""
    server = Server(app)
    server.run(sockets=[listening])
    return server.ended_by


def _config(app: Application) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="auto",
        http=BoundedConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )


class Server(uvicorn.Server):
    """uvicorn's server that ends event streams before waiting for clients, and records the ending signal."""

    def __init__(self, app: Application) -> None:
        super().__init__(_config(app))
        self._app = app
        self.ended_by: signal.Signals | None = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.end_streams()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals quietly: uvicorn raises them again at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.ended_by = self.ended_by or signal.Signals(sig)
        super().handle_exit(sig, frame)


@contextmanager
def _re_embedding(engine: Engine) -> Iterator[None]:
    """Re-embed memories in the background after a change of the embedding model; search keeps working."""
    stop = threading.Event()

    def embed() -> None:
        try:
            done = engine.ltm.embed_anew(stop.is_set)
            if done:
                _log.info("memories re-embedded", count=done, space=engine.ltm.embeddings.name)
        except GhostError as error:
            _log.warning("re-embedding failed: restart ghost serve to retry", exc_info=error)

    embedding = threading.Thread(target=embed, name="embedding", daemon=True)
    if engine.store.without_embedding(1):
        embedding.start()
    try:
        yield
    finally:
        stop.set()
        if embedding.is_alive():
            embedding.join(GRACEFUL_SECONDS)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - said before and after a server runs, to who started it
