"""`POST /cycle`: run one cycle now."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from ghost.server.dependencies import services
from ghost.server.openapi import errors
from ghost.server.worker_threads import detached

router = APIRouter(tags=["stimuli"])


class ThoughtMade(BaseModel):
    id: str
    content: str
    tags: tuple[str, ...]
    importance: float
    uncertainty: float
    ts: float


class CycleDone(BaseModel):
    thought: ThoughtMade | None = Field(description="Null if there was no new thought.")
    stored: str | None = Field(description="The id of the memory stored from the thought.")
    next_task: str | None = Field(description="The id of the next task.")
    interrupts: list[str] = Field(description="Ids of questions opened by this cycle.")
    stimuli: int = Field(description="Number of stimuli processed.")
    seconds: float


@router.post("/cycle", summary="Run one cycle now", responses=errors(502, 503))
async def cycle(request: Request) -> CycleDone:
    """Run one cycle, for use without the background loop or without waiting for it. Cycles run one at a time."""
    to = services(request)
    done = await detached(to.cycles, "Cycles run", lambda: to.engine.cycle(abandoned=to.stopping.is_set))
    return CycleDone(
        thought=ThoughtMade(**done.thought.__dict__) if done.thought else None,
        stored=done.stored.id if done.stored else None,
        next_task=done.next_task.id if done.next_task else None,
        interrupts=[query.id for query in done.interrupts],
        stimuli=done.stimuli,
        seconds=done.seconds,
    )
