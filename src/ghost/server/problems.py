"""Every error of the API as a problem document (RFC 9457).

A problem says what was refused and what to do. It never holds a path of the machine, a query to the store or a
traceback: those are in the log, under the `request_id` that the problem names.
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
from ghost.server.logs import logger

MEDIA_TYPE: Final = "application/problem+json"

_log = logger("ghost.server")


class FieldError(BaseModel):
    """One thing that is wrong with a request, and where."""

    where: str = Field(examples=["query.k"])
    message: str = Field(examples=["Input should be less than or equal to 100"])


class Problem(BaseModel):
    """A problem document as in RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="What kind of problem it is; `about:blank` where the status says it all.")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What was refused and what to do.")
    request_id: str = Field(description="The log holds more under this id.")
    errors: list[FieldError] = Field(default_factory=list, description="Of a request that is not valid: each fault.")


class Refused(HTTPException):
    """Raised by an endpoint: answered as a problem of this status."""

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
    (Abandoned, 503, "The server stops: nothing of the cycle was written."),
    (InboxFull, 503, "As many stimuli wait as may wait, and none of these was taken. Send them again in a moment."),
    (StoreError, 503, "Memory cannot be read or written now. The log says why, under the request id."),
    (ProviderError, 502, "The language or embedding model did not answer usably. The log says why."),
    (ScrapeError, 502, "The pages could not be read. The log says why, under the request id."),
    (RecordError, 500, "A file of the workspace cannot be read. The log says which, under the request id."),
    (UsageError, 422, "The request cannot be carried out as it stands. The log says why."),
)
_INTERNAL: Final = "Something failed that should not. The log says what, under the request id."
_DETAILS: Final = {
    404: "There is nothing at this path. The API is described at /openapi.json.",
    405: "This path does not answer that method; `Allow` lists those that it does.",
}

Handler = Callable[[Request, Any], Awaitable[Response]]


def exception_handlers(allowed_methods: Callable[[str], set[str]]) -> dict[Any, Handler]:
    """Handlers for everything that an endpoint, or routing itself, may raise.

    `allowed_methods` names the methods that some path answers, for `Allow`.
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
        _log.error("request failed", path=request.scope["path"], status=status, exc_info=error)
        headers = {"Retry-After": "5"} if status == 503 else None
        return problem_response(status, detail, request_id_of(request), headers=headers)

    async def defect(request: Request, _error: Exception) -> Response:
        return internal_problem(request_id_of(request))  # it is raised on, and logged by the guard

    return {HTTPException: refused, RequestValidationError: invalid, GhostError: failed, Exception: defect}


def internal_problem(request_id: str) -> Response:
    return problem_response(500, _INTERNAL, request_id)
