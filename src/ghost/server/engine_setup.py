"""The wired engine of a workspace: its store, models, task sources and page reader.

For `ghost serve`, and for commands that run cycles without a server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ghost.agent import OpenInvestigations, PendingCleanups, Workspace, without_secrets
from ghost.config import Settings
from ghost.mind import open_store
from ghost.providers import embeddings, language_model, system_clock
from ghost.scraper import Scraper
from ghost.server.timed_engine import MeasuredEngine


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
            sources=(OpenInvestigations(workspace), PendingCleanups(workspace)),
            scraper=Scraper(settings, clock),
        )
        with contextlib.closing(engine):
            yield engine
