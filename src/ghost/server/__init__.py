"""The mind over HTTP: its API, its dashboard, and `serve`, which runs both on a workspace.

Needs the extra `mind`, which is imported only when one of these is called.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.server.engine_setup import Beside, opened_engine, re_embedding
from ghost.server.orders import Investigator, Order
from ghost.server.turn_thread import background_turns

NEEDED: Final = (
    "fastapi",
    "uvicorn",
    "httptools",
    "httpx2",
    "prometheus_client",
    "protego",
    "structlog",
    "trafilatura",
)


def serve(
    settings: Settings,
    root: Path,
    say: Callable[[str], None] | None = None,
    investigator: Investigator | None = None,
    beside: Beside = nullcontext,
) -> int:
    """Serve the workspace `root` until SIGTERM (returns 0), SIGINT or SIGHUP (130). `say` prints a line, `investigator`
    runs the investigations that are asked for; None starts none.

    `beside`: what runs as long as the server does.

    Raises `ConfigurationError` if the extra is missing or the address cannot be bound, `StoreError` if memory cannot be
    opened.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"ghost serve needs {', '.join(missing)}: install the extra with pip install 'ghost-investigator[mind]'"
        )
    from ghost.server.server_process import serve as run

    return run(settings, root, say, investigator, beside)


__all__ = ["Investigator", "Order", "background_turns", "opened_engine", "re_embedding", "serve"]
