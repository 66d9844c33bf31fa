"""`GET /wm`: working memory and the weight of each thought."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.responses import Response

from ghost.server.dependencies import services
from ghost.server.openapi import errors

router = APIRouter(tags=["working memory"])


class WeighedThought(BaseModel):
    id: str = Field(examples=["thought:1732264000000"])
    content: str = Field(examples=["#plan look at the routes of vnet-b before its security groups"])
    tags: tuple[str, ...]
    sources: tuple[str, ...] = Field(description="Ids of the stimuli, memories and the task that it rests on.")
    importance: float
    uncertainty: float
    ts: float = Field(description="Epoch seconds.")
    weight: float = Field(description="importance x 0.5 ** (age / half-life)")


class WorkingMemoryNow(BaseModel):
    thoughts: list[WeighedThought] = Field(description="Newest first.")
    count: int = Field(description="Total number of thoughts in working memory.")
    weight: float = Field(description="The sum of all weights.")
    half_life_seconds: float
    now: float = Field(description="Epoch seconds for which the weights were calculated.")


@router.get("/wm", summary="Working memory", response_model=WorkingMemoryNow, responses=errors())
async def get_working_memory(
    request: Request,
    n: Annotated[int, Query(ge=1, le=10_000, description="Maximum number of thoughts, newest first.")] = 100,
) -> Response:
    to = services(request)
    now = to.now()
    weighed = to.engine.wm.weights(now)
    shown = {
        "thoughts": [{**thought.__dict__, "weight": weight} for thought, weight in reversed(weighed[-n:])],
        "count": len(weighed),
        "weight": sum(weight for _, weight in weighed),
        "half_life_seconds": to.engine.wm.half_life_seconds,
        "now": now,
    }
    # Straight to JSON: dashboards ask for this every second, and the thoughts were checked when they were made.
    return Response(to_json(shown), media_type="application/json")
