"""Looks at the audit again and again while the server runs, and lets the mind take in what is new."""

from __future__ import annotations

import asyncio
from typing import Final

from ghost.errors import GhostError
from ghost.mind import Stimulus
from ghost.server.audit_watch import AuditWatch, Seen
from ghost.server.dependencies import Services
from ghost.server.logs import logger

LOOK_SECONDS: Final = 1.0
LATER_SECONDS: Final = 30.0
"""After a look that failed: the mind does not keep up, or the store cannot be written."""

_log = logger("ghost.server.audit_watch")


async def following(services: Services, watch: AuditWatch) -> None:
    """Until it is cancelled. What cannot be taken in now is taken in later; nothing is lost."""
    while True:
        pause = LOOK_SECONDS
        try:
            await asyncio.to_thread(watch.look, lambda seen: _take(services, seen))
        except (GhostError, OSError) as error:
            _log.warning("the audit is looked at again later", seconds=LATER_SECONDS, exc_info=error)
            pause = LATER_SECONDS
        await asyncio.sleep(pause)


def _take(services: Services, seen: list[Seen]) -> None:
    now = services.now()
    ids = services.engine.store.new_ids("stim", now, len(seen))
    services.engine.ingest(
        [
            Stimulus(id=name, source="audit", content=each.text, metadata=each.about, ts=now)
            for name, each in zip(ids, seen, strict=True)
        ]
    )
    services.metrics.stimuli.labels("audit").inc(len(seen))
    for each in seen:
        services.feed.publish("record", now, each.about)
