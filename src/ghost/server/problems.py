"""Every API error as a problem document (RFC 9457).

A problem says what was refused and what to do. It never contains a local path, a store query or a traceback: those are
in the log, under the problem's `request_id`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ghost.errors import GhostError, ProviderError, RecordError, ScrapeError, StoreError, UsageError
from ghost.mind import Abandoned, InboxFull
from ghost.server.investigation_queue import QUEUED_AT_MOST, QueueFullError
from ghost.server.logs import logger

MEDIA_TYPE: Final = "application/problem+json"

_log = logger("ghost.server")


class FieldError(BaseModel):
    """One invalid field of a request."""

    where: str = Field(examples=["query.k"])
    message: str = Field(examples=["Input should be less than or equal to 100"])


class Problem(BaseModel):
    """A problem document as in RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="The kind of problem; `about:blank` if the status is sufficient.")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What was refused, and what to do.")
    request_id: str = Field(description="The id of the request in the log.")
    errors: list[FieldError] = Field(default_factory=list, description="Each invalid field of the request.")


class Refused(HTTPException):
    """Raised by an endpoint; answered as a problem with this status."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        extension: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, detail, dict(headers) if headers else None)
        self.kind = kind
        self.extension = dict(extension or {})


def problem_response(
    status: int,
    detail: str,
    request_id: str,
    *,
    kind: str = "about:blank",
    headers: Mapping[str, str] | None = None,
    errors: Sequence[Mapping[str, str]] = (),
    extension: Mapping[str, Any] | None = None,
) -> Response:
    body: dict[str, Any] = {
        **(extension or {}),
        "type": kind,
        "title": _title(status),
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    if errors:
        body["errors"] = [dict(error) for error in errors]
    return Response(json.dumps(body).encode("ascii"), status, dict(headers) if headers else None, media_type=MEDIA_TYPE)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def request_id_of(request: Request) -> str:
    return str(request.scope.get("ghost.request_id", ""))


# What a failure below the API means to its client.

_OF_GHOST: Final[Sequence[tuple[type[GhostError], int, str]]] = (
    (Abandoned, 503, "The server is stopping: nothing of the cycle was written."),
    (InboxFull, 503, "Too many stimuli are waiting, and none of these was stored. Retry in a moment."),
    (QueueFullError, 429, f"{QUEUED_AT_MOST} investigations wait: cancel one, or ask again later."),
    (StoreError, 503, "Memory cannot be read or written now. The log says why, under the request id."),
    (ProviderError, 502, "The language or embedding model gave no usable answer. The log says why."),
    (ScrapeError, 502, "The pages could not be read. The log says why, under the request id."),
    (RecordError, 500, "A file of the workspace cannot be read. The log says which, under the request id."),
    (UsageError, 422, "The request cannot be carried out as it stands. The log says why."),
)
_INTERNAL: Final = "Internal error. The log has details under the request id."
_DETAILS: Final = {
    404: "There is no endpoint at this path. The API is described at /openapi.json.",
    405: "This path does not support that method; `Allow` lists those it supports.",
}

Handler = Callable[[Request, Any], Awaitable[Response]]


def exception_handlers(allowed_methods: Callable[[str], set[str]]) -> dict[Any, Handler]:
    """Return handlers for all exceptions of endpoints and routing.

    `allowed_methods` returns the methods of a path, for `Allow`.
    """

    async def refused(request: Request, error: HTTPException) -> Response:
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(sorted(allowed_methods(request.scope["path"])))
        own = error if isinstance(error, Refused) else None
        detail = own.detail if own else _DETAILS.get(error.status_code, str(error.detail))
        return problem_response(
            error.status_code,
            detail,
            request_id_of(request),
            kind=own.kind if own else "about:blank",
            headers=headers,
            extension=own.extension if own else None,
        )

    async def invalid(request: Request, error: RequestValidationError) -> Response:
        errors = [
            {"where": ".".join(str(part) for part in fault["loc"]), "message": str(fault["msg"])}
            for fault in error.errors()[:20]
        ]
        return problem_response(422, "The request is not valid: see errors.", request_id_of(request), errors=errors)

    async def failed(request: Request, error: GhostError) -> Response:
        status, detail = next(
            ((status, detail) for kind, status, detail in _OF_GHOST if isinstance(error, kind)), (500, _INTERNAL)
        )
        if isinstance(error, InboxFull | QueueFullError):
            _log.warning("request refused", path=request.scope["path"], status=status, why=str(error))
        else:
            _log.error("request failed", path=request.scope["path"], status=status, exc_info=error)
        headers = {"Retry-After": "5"} if status == 503 else None
        return problem_response(status, detail, request_id_of(request), headers=headers)

    async def defect(request: Request, _error: Exception) -> Response:
        return internal_problem(request_id_of(request))  # it is raised on, and logged by the guard

    return {HTTPException: refused, RequestValidationError: invalid, GhostError: failed, Exception: defect}


def internal_problem(request_id: str) -> Response:
    return problem_response(500, _INTERNAL, request_id)
