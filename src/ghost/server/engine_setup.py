"""The wired engine of a workspace: its store, models, task sources and page reader, and embedding in the background.

For `ghost serve`, and for commands that run cycles without a server.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ghost.agent import (
    DriftTasks,
    OpenInvestigations,
    PendingCleanups,
    UncheckedFixes,
    Workspace,
    without_secrets,
)
from ghost.config import Settings
from ghost.errors import GhostError
from ghost.mind import Engine, open_store
from ghost.providers import embeddings, language_model, system_clock
from ghost.scraper import Scraper
from ghost.server.timed_engine import MeasuredEngine
from ghost.server.turn_thread import background_turns

_log = logging.getLogger(__name__)

EMBED_AGAIN_SECONDS: Final = 60.0
"""Between two looks for memories without an embedding of the space, and after a failure."""
STOP_SECONDS: Final = 2.0

Beside = Callable[[Engine], contextlib.AbstractContextManager[object]]
"""What runs beside an engine, of rooms that the server does not know; `contextlib.nullcontext` for nothing."""


@contextlib.contextmanager
def opened_engine(settings: Settings, root: Path) -> Iterator[MeasuredEngine]:
    """Open the engine; closed at the end, the store last.

    Raises `StoreError` if memory cannot be opened, `ConfigurationError` for an invalid setting.
    """
    workspace = Workspace(root)
    settings = replace(settings, workspace=root)
    clock = system_clock(settings)
    vectors = embeddings(settings)
    with contextlib.closing(open_store(settings, vectors.name, vectors.dim)) as store:
        engine = MeasuredEngine(
            store,
            language_model(settings),
            vectors,
            clock,
            without_secrets,
            settings,
            sources=(
                OpenInvestigations(workspace),
                UncheckedFixes(workspace),
                PendingCleanups(workspace),
                DriftTasks(workspace, store.queries),
            ),
            scraper=Scraper(settings, clock),
        )
        with contextlib.closing(engine):
            yield engine


def re_embedding(engine: Engine) -> contextlib.AbstractContextManager[None]:
    """Embed memories of another model, size or form of queries anew in the background: they are found by words
    meanwhile. A kill loses a batch at most.
    """

    def embed(ends: Callable[[], bool]) -> None:
        try:
            if done := engine.ltm.embed_anew(ends):
                _log.info("%d memories embedded anew for %s", done, engine.ltm.embeddings.name)
        except GhostError as error:
            _log.warning("memories are embedded anew in %.0f s: %s", EMBED_AGAIN_SECONDS, error)

    return background_turns("embedding", embed, EMBED_AGAIN_SECONDS, STOP_SECONDS)
