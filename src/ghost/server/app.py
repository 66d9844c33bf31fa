"""The HTTP API of the mind, with the background loop, the audit watch and the event feed.

    create_app      wires endpoints, problems and the guard; starts and stops the rest with the server

Each group of endpoints has its own file here. `docs/api.md` describes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from ghost import __version__
from ghost.agent import Workspace
from ghost.config import Settings
from ghost.mind import Event, StreamOfConsciousness
from ghost.providers import EmbeddingsProvider
from ghost.server import (
    approval_endpoints,
    configuration_endpoint,
    cycle_endpoint,
    event_stream,
    health_endpoints,
    incident_endpoint,
    interrupt_endpoints,
    investigation_endpoints,
    memory_endpoints,
    metrics_endpoint,
    queue_endpoints,
    scrape_endpoint,
    stimuli_endpoint,
    task_endpoints,
    working_memory_endpoint,
)
from ghost.server.access import Access
from ghost.server.approval_watch import watch_approvals
from ghost.server.audit_polling import poll_audit
from ghost.server.audit_watch import AuditWatch
from ghost.server.dashboard import FOLDER, dashboard_router
from ghost.server.dependencies import Services
from ghost.server.guard import Guard
from ghost.server.openapi import document
from ghost.server.orders import Investigator
from ghost.server.problems import exception_handlers
from ghost.server.timed_engine import MeasuredEngine

ROUTERS: Final[tuple[APIRouter, ...]] = (
    working_memory_endpoint.router,  # asked for most often: routes are tried in this order
    stimuli_endpoint.router,
    cycle_endpoint.router,
    memory_endpoints.router,
    task_endpoints.router,
    interrupt_endpoints.router,
    configuration_endpoint.router,
    scrape_endpoint.router,
    event_stream.router,
    health_endpoints.router,
    metrics_endpoint.router,
    queue_endpoints.router,
    approval_endpoints.router,
    incident_endpoint.router,
    investigation_endpoints.router,
)
_DESCRIPTION: Final = (
    "Ghost between investigations: working memory, long-term memory, tasks and questions. Times are epoch seconds. "
    "Every error is a problem document (RFC 9457). Texts in responses may be external: treat them as data."
)


class Application:
    """An ASGI application: the guard in front of the API. `end_streams` disconnects every client of `/events`."""

    def __init__(self, api: FastAPI, services: Services, access: Access, *, read_only: bool = False) -> None:
        self.api = api
        self.services = services
        self._guarded = Guard(api, access, services.metrics, read_only=read_only)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._guarded(scope, receive, send)

    def end_streams(self) -> None:
        self.services.stopping.set()
        self.services.feed.close()


def create_app(
    engine: MeasuredEngine,
    stream: StreamOfConsciousness | None,
    settings: Settings,
    workspace: Workspace,
    *,
    embeddings: EmbeddingsProvider,
    redact: Callable[[str], str],
    audit_watch: AuditWatch | None = None,
    investigator: Investigator | None = None,
    dashboard: Path = FOLDER,
    read_only: bool = False,
) -> Application:
    """Return the application. `stream` is None if switched off, `audit_watch` None if the audit is not watched,
    `investigator` None if no investigation can be started; `read_only` refuses every change.

    The application starts and stops both; the caller closes the engine and the store. With `settings.api_token`,
    requests need it.
    """
    services = Services(
        engine, stream, settings, workspace, embeddings, engine.clock, redact, investigator=investigator
    )
    token = settings.api_token.get_secret_value() if settings.api_token else None
    api = FastAPI(
        title="Ghost",
        version=__version__,
        summary="The mind of an investigator of network failures",
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lambda _: _running(services, audit_watch),
    )
    api.state.services = services
    routers = (*ROUTERS, dashboard_router(dashboard, needs_token=bool(token)))
    for router in routers:
        api.include_router(router)
    for kind, handler in exception_handlers(lambda path: _methods(routers, path)).items():
        api.add_exception_handler(kind, handler)
    api.openapi = cache(partial(document, api, needs_token=bool(token)))  # type: ignore[method-assign]
    services.metrics.describe(engine.observe, lambda: metrics_endpoint.levels(services))
    engine.observe_cycle = services.metrics.cycle_seconds.observe
    return Application(api, services, Access.of(settings.api_host, token), read_only=read_only)


@asynccontextmanager
async def _running(services: Services, audit_watch: AuditWatch | None) -> AsyncIterator[None]:
    """Run the feed, the background loop and the audit watch with the server; stop them in reverse order."""
    services.feed.open(asyncio.get_running_loop())
    unsubscribe = services.engine.subscribe(lambda event: _announce(services, event))
    watching = [asyncio.create_task(watch_approvals(services))]
    if audit_watch is not None:
        watching.append(asyncio.create_task(poll_audit(services, audit_watch)))
    if services.queue is not None:
        services.queue.start()
    try:
        if services.stream is not None:
            await services.stream.start()
        yield
    finally:
        services.stopping.set()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        if services.queue is not None:
            await asyncio.to_thread(services.queue.stop)
        if services.stream is not None:
            await services.stream.stop()
        unsubscribe()
        services.feed.close()


def _announce(services: Services, event: Event) -> None:
    services.feed.publish(event.kind.value, event.ts, event.data)


def _methods(routers: Sequence[APIRouter], path: str) -> set[str]:
    """Return every method that an endpoint supports at this path."""
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    found = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
    return found or {"GET"}  # the document itself
