"""Tells the clients of `/events` when an investigation asks something, or was answered, in whatever process."""

from __future__ import annotations

import asyncio
from typing import Final

from ghost.errors import GhostError
from ghost.server.dependencies import Services
from ghost.server.logs import logger

LOOK_SECONDS: Final = 0.5
LATER_SECONDS: Final = 30.0

_log = logger("ghost.server.approval_watch")


async def watch_approvals(services: Services) -> None:
    """Look until cancelled."""
    known: list[str] = []
    while True:
        pause = LOOK_SECONDS
        try:
            waiting = [each.id for each in await asyncio.to_thread(services.room.open)]
            if waiting != known:
                known = waiting
                services.feed.publish("approvals", services.now(), {"waiting": waiting})
        except GhostError as error:
            _log.warning("what investigations wait for cannot be read", error=str(error))
            pause = LATER_SECONDS
        await asyncio.sleep(pause)
