"""`GET /metrics` in the Prometheus text format."""

from __future__ import annotations

from collections import Counter

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from ghost.errors import GhostError
from ghost.server.dependencies import Services, services
from ghost.server.logs import logger
from ghost.server.openapi import errors
from ghost.server.prometheus_metrics import Levels

router = APIRouter(tags=["health"])

_log = logger("ghost.server")


@router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Text format of Prometheus.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": "ghost_cycles_total 42.0\n"}},
        },
        **errors(503),
    },
)
def metrics(request: Request) -> Response:
    return Response(services(request).metrics.text(), media_type=CONTENT_TYPE_LATEST)


def levels(to: Services) -> Levels:
    """Return the current gauges. If the store cannot be read, only that is reported."""
    memories: dict[str, int] | None = None
    open_interrupts: int | None = None
    try:
        memories = {kind.value: count for kind, count in to.engine.ltm.counts().items()}
        open_interrupts = len(to.engine.interrupts.list_open())
    except GhostError as error:
        _log.error("the store cannot be read", exc_info=error)
    return Levels(
        memories=memories,
        open_interrupts=open_interrupts,
        investigations=Counter(row.state.value for row in to.sessions.rows()),
        event_clients=to.feed.clients,
        user_available=to.engine.user_available,
        stream_running=to.stream is not None and to.stream.running,
    )
