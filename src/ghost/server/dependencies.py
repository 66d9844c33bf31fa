"""Dependencies of the endpoints: one object, created with the server."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from fastapi import Request

from ghost.agent import Workspace
from ghost.config import Settings
from ghost.mind import Engine, StreamOfConsciousness
from ghost.providers import EmbeddingsProvider
from ghost.records import Clock
from ghost.server.feed import Feed
from ghost.server.prometheus_metrics import Metrics
from ghost.server.request_limits import CYCLES_AT_ONCE, SCRAPES_AT_ONCE, SEARCHES_AT_ONCE
from ghost.server.sessions import Sessions


@dataclass(frozen=True)
class Services:
    engine: Engine
    stream: StreamOfConsciousness | None
    """None if the stream is switched off."""
    settings: Settings
    workspace: Workspace
    embeddings: EmbeddingsProvider
    clock: Clock
    redact: Callable[[str], str]
    metrics: Metrics = field(default_factory=Metrics)
    feed: Feed = field(default_factory=lambda: Feed(secrets.token_hex(4)))
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the server stops, so that threads end soon."""
    searches: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SEARCHES_AT_ONCE))
    scrapes: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(SCRAPES_AT_ONCE))
    cycles: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(CYCLES_AT_ONCE))

    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sessions", Sessions(self.workspace))

    @property
    def stream_enabled(self) -> bool:
        return self.stream is not None and self.stream.enabled

    def now(self) -> float:
        """Return epoch seconds."""
        return self.clock.now().timestamp()


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
