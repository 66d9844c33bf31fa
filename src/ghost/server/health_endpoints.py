"""`/healthz` and `/readyz`: whether the server runs, and whether the mind can work."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from ghost.errors import GhostError
from ghost.server.dependencies import Services, services
from ghost.server.logs import logger
from ghost.server.openapi import errors
from ghost.server.problems import Refused

router = APIRouter(tags=["health"])

_log = logger("ghost.server")


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class StreamState(StrEnum):
    RUNNING = "running"
    DISABLED = "disabled"


class StreamNow(BaseModel):
    state: StreamState | Literal["ended"] = Field(description="`ended`: it should run and does not.")
    paused: bool = Field(description="True while it waits for an answer: GET /interrupts.")
    last_error: str = Field(description="Error of the last cycle; empty after a success.")
    failures_in_a_row: int
    idle_cycles_in_a_row: int = Field(description="Current interval; longer while nothing is new.")
    next_at: float | None = Field(description="Epoch seconds of the next cycle without new input.")


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    store: Literal["readable"] = "readable"
    stream: StreamState = Field(description="`disabled` if SOC_ENABLED is false.")


@router.get("/healthz", summary="Whether the server runs", openapi_extra={"security": []}, responses=errors())
async def healthz() -> Alive:
    """Return that the server runs. Needs no token."""
    return Alive()


@router.get("/readyz", summary="Whether the mind can work", responses=errors(503))
def readyz(request: Request) -> Ready:
    """Return ready if the store can be read and the stream runs or is switched off; else 503 with the reasons."""
    to = services(request)
    reasons = [*_of_store(to), *_of_stream(to)]
    if reasons:
        raise Refused(
            503,
            " ".join(reasons),
            kind="urn:ghost:problem:not-ready",
            headers={"Retry-After": "5"},
            extension={"reasons": reasons},
        )
    return Ready(stream=StreamState.RUNNING if to.stream_enabled else StreamState.DISABLED)


@router.get("/stream", summary="State of the stream of thoughts", responses=errors())
async def stream(request: Request) -> StreamNow:
    to = services(request)
    if to.stream is None or not to.stream_enabled:
        return StreamNow(
            state=StreamState.DISABLED,
            paused=False,
            last_error="",
            failures_in_a_row=0,
            idle_cycles_in_a_row=0,
            next_at=None,
        )
    now = to.stream.status()
    return StreamNow(
        state=StreamState.RUNNING if now["running"] else "ended",
        paused=now["paused"],
        last_error=to.redact(now["last_error"])[:500],
        failures_in_a_row=now["failures_in_a_row"],
        idle_cycles_in_a_row=now["idle_cycles_in_a_row"],
        next_at=now["next_at"],
    )


def _of_store(to: Services) -> list[str]:
    try:
        to.engine.ltm.counts()
    except GhostError as error:
        _log.error("the store cannot be read", exc_info=error)
        return ["The store cannot be read: the log says why."]
    return []


def _of_stream(to: Services) -> list[str]:
    if to.stopping.is_set():
        return ["The server is stopping."]
    if to.stream is None or not to.stream_enabled or to.stream.running:
        return []
    return ["The stream of thoughts has ended: the log says why. Restart ghost serve."]
