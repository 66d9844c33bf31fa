"""Dependencies of the endpoints: one object, created with the server."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import Request

from ghost.agent import WaitingRoom, Workspace
from ghost.config import Settings
from ghost.mind import Engine, StreamOfConsciousness
from ghost.providers import EmbeddingsProvider
from ghost.records import Clock
from ghost.server.feed import Feed
from ghost.server.incident_results import post_result
from ghost.server.investigation_queue import InvestigationQueue
from ghost.server.orders import Investigator, Order
from ghost.server.prometheus_metrics import Metrics
from ghost.server.request_limits import CYCLES_AT_ONCE, EVENT_CHARACTERS, SCRAPES_AT_ONCE, SEARCHES_AT_ONCE
from ghost.server.sessions import Sessions
from ghost.text import map_text

NONE_HERE: Final = "This server starts no investigations: it was not started by ghost serve."
IN_PRIVATE: Final = (
    "This server starts no investigations: its queue would hold each symptom as it was typed, and private mode "
    "(GHOST_PRIVATE) keeps no names and addresses. Start it at a terminal: ghost investigate."
)


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

    investigator: Investigator | None = None
    """None: no investigation can be started here."""

    sessions: Sessions = field(init=False)
    room: WaitingRoom = field(init=False)
    queue: InvestigationQueue | None = field(init=False)

    def __post_init__(self) -> None:
        root = self.workspace.root
        object.__setattr__(self, "sessions", Sessions(self.workspace))
        object.__setattr__(self, "room", WaitingRoom(root, self.clock))
        starts = None if self.settings.private else self.investigator
        queue = starts and InvestigationQueue(root, starts, self.clock, self._ordered, self._told)
        object.__setattr__(self, "queue", queue)

    @property
    def why_no_queue(self) -> str | None:
        """Return why this server starts no investigations; None if it does."""
        return None if self.queue else IN_PRIVATE if self.settings.private else NONE_HERE

    @property
    def has_token(self) -> bool:
        return self.settings.api_token is not None

    @property
    def stream_enabled(self) -> bool:
        return self.stream is not None and self.stream.enabled

    def _ordered(self, order: Order) -> None:
        self.feed.publish("order", self.now(), order.model_dump(mode="json"))
        address = self.settings.incident_result_url
        if address is not None and order.source == "incident" and order.ended_at is not None:
            given = (order, address, self.workspace, self.stopping)
            threading.Thread(target=post_result, args=given, name="incident result", daemon=True).start()

    def _told(self, order: Order, event: str, fields: dict[str, Any]) -> None:
        told = map_text(fields, lambda text: text[:EVENT_CHARACTERS])
        about = {"order": order.id, "session_id": order.session_id, "event": event}
        self.feed.publish("investigation", self.now(), {**told, **about})

    def now(self) -> float:
        """Return epoch seconds."""
        return self.clock.now().timestamp()


def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found
