"""Periodic reading of the audit while the server runs."""

from __future__ import annotations

import asyncio
from typing import Final

from ghost.errors import GhostError
from ghost.mind import InboxFull, Stimulus
from ghost.server.audit_watch import AuditStimulus, AuditWatch
from ghost.server.dependencies import Services
from ghost.server.logs import logger

LOOK_SECONDS: Final = 1.0
LATER_SECONDS: Final = 30.0
"""Seconds to wait after a failed poll: the inbox is full, or the store cannot be written."""

_log = logger("ghost.server.audit_watch")


async def poll_audit(services: Services, watch: AuditWatch) -> None:
    """Poll until cancelled. Records that cannot be ingested now are retried; nothing is lost."""
    while True:
        pause = LOOK_SECONDS
        try:
            await asyncio.to_thread(watch.look, lambda stimuli: _take(services, stimuli))
        except InboxFull as busy:
            _log.warning("the audit is read later", seconds=LATER_SECONDS, why=str(busy))
            pause = LATER_SECONDS
        except (GhostError, OSError) as error:
            _log.warning("reading the audit failed, it is retried later", seconds=LATER_SECONDS, exc_info=error)
            pause = LATER_SECONDS
        await asyncio.sleep(pause)


def _take(services: Services, stimuli: list[AuditStimulus]) -> None:
    now = services.now()
    ids = services.engine.store.new_ids("stim", now, len(stimuli))
    services.engine.ingest(
        [
            Stimulus(id=name, source="audit", content=each.text, metadata=each.about, ts=now)
            for name, each in zip(ids, stimuli, strict=True)
        ]
    )
    services.metrics.stimuli.labels("audit").inc(len(stimuli))
    for each in stimuli:
        services.feed.publish("record", now, each.about)
