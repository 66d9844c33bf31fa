"""`POST /incidents`: an alert starts a read-only investigation, and its result is posted to a configured address."""

from __future__ import annotations

import hmac
from typing import Annotated, Final

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from ghost.server.dependencies import Services, services
from ghost.server.incident_alerts import Alert, Incident, incident_of
from ghost.server.investigation_queue import InvestigationQueue, QueueFullError
from ghost.server.openapi import errors
from ghost.server.orders import Order, OrderState
from ghost.server.problems import Refused

router = APIRouter(tags=["incidents"])

AN_HOUR: Final = 10
"""Incidents in an hour; further ones are refused."""
REPEATED_SECONDS: Final = 86_400.0
WITHOUT: Final = "Incidents need a token of their own: start ghost serve with GHOST_INCIDENT_TOKEN."
WRONG: Final = "The token is missing or wrong: Authorization: Bearer <GHOST_INCIDENT_TOKEN>, or ?token=."


class Taken(BaseModel):
    taken: bool = Field(description="False for a repetition, and for an alert that is over.")
    order: Order | None = Field(description="The investigation, of a repetition the first one; see GET /queue.")


@router.post(
    "/incidents",
    status_code=202,
    summary="An alert",
    response_model=Taken,
    responses={200: {"model": Taken, "description": "Not taken: a repetition, or over."}, **errors(413, 415, 429, 503)},
)
def post_incident(
    request: Request,
    body: Annotated[Alert, Body(description="Azure Monitor's common schema, or a plain form.")],
    token: Annotated[
        str, Query(max_length=400, description="For senders that cannot set a header, as an action group.")
    ] = "",
) -> Response:
    """Investigate read-only with the offline brain. Ten an hour; a repeated alert id within a day starts nothing,
    unless the first one failed.
    """
    to = services(request)
    _check(to, request.headers.get("authorization") or f"Bearer {token}")
    if to.queue is None:
        raise Refused(403, str(to.why_no_queue))
    with to.queue.lock:  # repetitions that come at once are one
        return _taken(to, to.queue, incident_of(body))


def _taken(to: Services, queue: InvestigationQueue, incident: Incident) -> Response:
    now = to.now()
    earlier = [each for each in queue.orders() if each.source == "incident"]
    same = [each for each in earlier if each.alert_id == incident.alert_id and now - each.queued_at < REPEATED_SECONDS]
    known = [each for each in same if each.state is not OrderState.FAILED]
    if incident.is_over or known:
        return _answer(200, Taken(taken=False, order=known[0] if known else None))
    if sum(now - each.queued_at < 3600 for each in earlier) >= AN_HOUR:
        raise Refused(
            429, f"{AN_HOUR} incidents an hour are taken: send it again later.", headers={"Retry-After": "600"}
        )
    try:
        order = queue.put("incident", symptom=incident.symptom, alert_id=incident.alert_id, read_only=True)
    except QueueFullError as full:
        raise Refused(429, f"{str(full)[:1].upper()}{str(full)[1:]}.", headers={"Retry-After": "600"}) from full
    return _answer(202, Taken(taken=True, order=order))


def _check(to: Services, authorization: str) -> None:
    if to.settings.incident_token is None:
        raise Refused(403, WITHOUT)
    right = f"Bearer {to.settings.incident_token.get_secret_value()}".encode()
    if not hmac.compare_digest(authorization.encode("utf-8", "replace"), right):
        raise Refused(401, WRONG)


def _answer(status: int, taken: Taken) -> Response:
    return JSONResponse(taken.model_dump(mode="json"), status)
