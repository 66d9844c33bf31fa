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
from ghost.errors import WorkspaceError
from ghost.mind import StreamOfConsciousness
from ghost.records import SERVER_LOCK, is_held, private_dir, workspace_lock
from ghost.server.app import Application, create_app
from ghost.server.audit_watch import AuditWatch
from ghost.server.engine_setup import Beside, opened_engine, re_embedding
from ghost.server.http_connection import BoundedConnection
from ghost.server.incident_results import check_address
from ghost.server.listen_socket import BACKLOG, bound_socket, url_of
from ghost.server.logs import logger, logging_to
from ghost.server.orders import Investigator
from ghost.server.request_limits import CONNECTIONS, GRACEFUL_SECONDS, KEEP_ALIVE_SECONDS

INTERRUPTED: Final = 130

_log = logger("ghost.server")


def serve(
    settings: Settings,
    root: Path,
    say: Callable[[str], None] | None = None,
    investigator: Investigator | None = None,
    beside: Beside = contextlib.nullcontext,
) -> int:
    """Serve the workspace `root` until SIGTERM (returns 0), SIGINT or SIGHUP (130). `say` prints a line.

    `beside`: what runs as long as the server does.

    Raises `ConfigurationError` if it cannot listen, `StoreError` if memory cannot be opened.
    """
    say = say or _to_stderr
    private_dir(root)
    settings = replace(settings, workspace=root)
    check_address(settings)
    with (
        contextlib.closing(bound_socket(settings)) as listening,
        logging_to(settings.log_directory) as log_file,
        _only_server(root, url_of(listening, settings)) as other,
        wired(settings, root, investigator, beside, read_only=bool(other)) as app,
    ):
        url = url_of(listening, settings)
        if other:
            say(f"Another ghost serve has this workspace ({other}): this one reads only, and does not think.")
        say(f"Ghost's dashboard: {url}/ui  (API: {url}/openapi.json, log: {log_file}, end with Ctrl-C)")
        if settings.private and investigator is not None:
            say("GHOST_PRIVATE: it starts no investigations; those of a terminal ask there.")
        elif not other and investigator is not None and settings.api_token is None:
            say("Without GHOST_API_TOKEN the investigations that it starts are read-only, and it takes no approvals.")
        _log.info(
            "serving",
            url=url,
            read_only=bool(other),
            token=settings.api_token is not None,
            soc_enabled=settings.soc_enabled,
        )
        ended_by = run(app, listening)
        _log.info("ended", by=ended_by.name if ended_by else None)
    return INTERRUPTED if ended_by in (signal.SIGINT, signal.SIGHUP) else 0


@contextmanager
def _only_server(root: Path, url: str) -> Iterator[str]:
    """Return who else serves this workspace; empty if nobody does, and nobody can until this ends."""
    with contextlib.ExitStack() as held:
        other = ""
        try:
            held.enter_context(workspace_lock(root, SERVER_LOCK, url))
        except WorkspaceError as busy:
            if not is_held(root / SERVER_LOCK):
                raise
            other = str(busy).partition(" is in use by ")[2].partition(":")[0]
        yield other


@contextmanager
def wired(
    settings: Settings,
    root: Path,
    investigator: Investigator | None = None,
    beside: Beside = contextlib.nullcontext,
    *,
    read_only: bool = False,
) -> Iterator[Application]:
    """Return the opened application of a workspace; closed at the end. `read_only`: it changes nothing by itself, and
    refuses to.
    """
    workspace = Workspace(root)
    with opened_engine(settings, root) as engine, contextlib.ExitStack() as meanwhile:
        if not read_only:
            meanwhile.enter_context(re_embedding(engine))
            meanwhile.enter_context(beside(engine))
        jitter = random.Random()  # noqa: S311 - not a secret
        thinks = settings.soc_enabled and not read_only
        stream = StreamOfConsciousness(engine, settings, engine.clock, jitter) if thinks else None
        watch = AuditWatch(workspace.audit_dir, root / "data" / "audit_watch.json", without_secrets)
        yield create_app(
            engine,
            stream,
            settings,
            workspace,
            embeddings=engine.ltm.embeddings,
            redact=without_secrets,
            audit_watch=None if read_only else watch,
            investigator=None if read_only else investigator,
            read_only=read_only,
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


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - said before and after a server runs, to who started it
