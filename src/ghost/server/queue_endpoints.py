"""`POST /investigations`, the queue of those that the server started, and cancel and resume."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

import ghost.lab
from ghost.server.dependencies import Services, services
from ghost.server.investigation_endpoints import SessionId
from ghost.server.investigation_queue import InvestigationQueue
from ghost.server.openapi import errors
from ghost.server.orders import Order
from ghost.server.problems import Refused
from ghost.server.request_limits import ID_CHARACTERS, SYMPTOM_CHARACTERS
from ghost.server.sessions import InvestigationState

router = APIRouter(tags=["investigations"])

OrderId = Annotated[str, Path(min_length=1, max_length=ID_CHARACTERS, examples=["i:1732264000000"])]


class NewInvestigation(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"symptom": "web-vm cannot reach db-vm on 5432"}]}
    )

    symptom: str | None = Field(
        None,
        min_length=1,
        max_length=SYMPTOM_CHARACTERS,
        pattern=r"\S",
        description="What fails; a lab brings its own.",
    )
    lab: str | None = Field(
        None, max_length=60, pattern=r"^[a-z0-9][a-z0-9-]*$", description="In this simulated network, to practise."
    )
    read_only: bool = Field(False, description="Ask nobody: what would ask is refused. Always so without a token.")

    @model_validator(mode="after")
    def _something_fails(self) -> NewInvestigation:
        if self.symptom is None and self.lab is None:
            raise ValueError("say what fails in symptom, or name a lab")
        return self


class Scenario(BaseModel):
    name: str
    symptom: str = Field(description="Its own.")


class Scenarios(BaseModel):
    scenarios: list[Scenario]


class Queue(BaseModel):
    orders: list[Order] = Field(description="Newest first.")
    why_not: str | None = Field(description="Why this server starts none, if so.")


@router.post(
    "/investigations", status_code=202, summary="Start an investigation", responses=errors(413, 415, 429, 500, 503)
)
def start(request: Request, body: NewInvestigation) -> Order:
    """Queue an investigation: one runs at a time, at most 20 wait. What it asks is in `GET /approvals`."""
    to = services(request)
    return _queued(to, symptom=body.symptom, lab=body.lab, read_only=body.read_only or not to.has_token)


@router.get("/scenarios", summary="Simulated networks to practise in", responses=errors())
def list_scenarios() -> Scenarios:
    return Scenarios(scenarios=[Scenario(name=each.name, symptom=each.symptom) for each in ghost.lab.headlines()])


@router.get("/queue", summary="Investigations that the server started", responses=errors(503))
def list_queue(request: Request) -> Queue:
    to = services(request)
    return Queue(orders=to.queue.orders() if to.queue else [], why_not=to.why_no_queue)


@router.post("/queue/{order_id}/cancel", summary="Cancel one", responses=errors(404, 503))
def cancel(request: Request, order_id: OrderId) -> Order:
    """Take a queued one out, or stop the one that runs: after its current command it saves its session."""
    order = _queue(services(request)).cancel(order_id)
    if order is None:
        raise Refused(404, f"{order_id!r} neither waits nor runs. GET /queue lists those that do.")
    return order


@router.post(
    "/queue/{order_id}/again", status_code=202, summary="Go on with an interrupted one", responses=errors(404, 429, 503)
)
def again(request: Request, order_id: OrderId) -> Order:
    to = services(request)
    order = _queue(to).again(order_id, read_only=not to.has_token)
    if order is None:
        raise Refused(404, f"{order_id!r} was not interrupted. GET /queue lists those that were.")
    return order


@router.post(
    "/investigations/{session_id}/resume",
    status_code=202,
    summary="Resume an investigation",
    responses=errors(404, 409, 429, 503),
)
def resume(request: Request, session_id: SessionId) -> Order:
    to = services(request)
    row = to.sessions.row(session_id)
    if row is None:
        raise Refused(404, f"There is no investigation {session_id!r} in this workspace.")
    if row.state is not InvestigationState.RESUMABLE:
        raise Refused(409, f"{session_id} is {row.state}: only one without a report, that nobody works on, goes on.")
    return _queued(to, resume=session_id, read_only=not to.has_token)


def _queued(to: Services, **wanted: object) -> Order:
    return _queue(to).put("dashboard", **wanted)


def _queue(to: Services) -> InvestigationQueue:
    if to.queue is None:
        raise Refused(403, str(to.why_no_queue))
    return to.queue
