"""`GET /tasks` and `/tasks/next`: the mind's tasks with their scores."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from ghost.mind import Task, TaskStatus
from ghost.server.dependencies import Services, services
from ghost.server.openapi import errors

router = APIRouter(tags=["tasks"])


class ScorePart(BaseModel):
    name: str = Field(examples=["urgency"])
    value: float = Field(description="From 0 to 1.")
    weight: float
    contribution: float = Field(description="value x weight")
    why: str = Field(examples=["due in 2h 05m"])


class TaskScore(BaseModel):
    total: float = Field(description="The sum of the contributions.")
    parts: list[ScorePart]


class WeighedTask(BaseModel):
    id: str
    title: str
    goal: str
    context: str
    deadline_ts: float | None
    importance: float
    uncertainty: float
    status: TaskStatus
    created_ts: float
    last_update_ts: float
    metadata: dict[str, Any]
    score: TaskScore


class NextTask(BaseModel):
    task: WeighedTask | None = Field(description="Null if there is no open task.")


class Tasks(BaseModel):
    tasks: list[WeighedTask] = Field(description="Open tasks, highest score first.")
    count: int = Field(description="Total number of tasks, open or not.")


@router.get("/tasks/next", summary="The next task", responses=errors())
async def next_task(request: Request) -> NextTask:
    """Return the open task with the highest score. Changes nothing: it is returned until it is done."""
    to = services(request)
    best = to.engine.attention.peek()
    return NextTask(task=_weighed(to, best) if best else None)


@router.get("/tasks", summary="What waits", responses=errors())
async def list_tasks(
    request: Request, k: Annotated[int, Query(ge=1, le=500, description="Maximum number of results, best first.")] = 20
) -> Tasks:
    to = services(request)
    best = [_weighed(to, task) for task, _ in to.engine.attention.top_k(k)]
    return Tasks(tasks=best, count=len(to.engine.attention))


def _weighed(to: Services, task: Task) -> WeighedTask:
    score = to.engine.attention.explain(task.id)
    parts = [
        ScorePart(name=part.name, value=part.value, weight=part.weight, contribution=part.contribution, why=part.why)
        for part in (score.components if score else ())
    ]
    return WeighedTask(**task.__dict__, score=TaskScore(total=score.total if score else 0.0, parts=parts))
