"""The OpenAPI document: what FastAPI derives from the endpoints, with problems as what every error is."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ghost.server.problems import MEDIA_TYPE, Problem

_MEANING: Final = {
    400: "This is no HTTP request that can be read.",
    401: "The token is missing or wrong.",
    403: "A page of another site asked, or policy refuses what was asked.",
    404: "There is no such thing.",
    405: "The path does not answer this method.",
    408: "The request was not complete in time.",
    409: "It is too late for that.",
    413: "The body is too long.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    422: "The request is not valid: `errors` says where.",
    431: "The headers are too long.",
    500: "Something failed that should not; the log holds what, under the request id.",
    502: "A provider or a site did not answer usably.",
    503: "It cannot be done now: ask again in a moment.",
}
_ALWAYS: Final = (400, 401, 403, 414, 421, 422, 431, 500, 503)
_EXAMPLE: Final = {
    "type": "about:blank",
    "title": "Unprocessable Entity",
    "status": 422,
    "detail": "The request is not valid: see errors.",
    "request_id": "9f2c5e1ab04d7733",
    "errors": [{"where": "query.q", "message": "Field required"}],
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of an endpoint: these, and those that any request may get."""
    return {status: _response(status) for status in sorted({*_ALWAYS, *statuses})}


def _response(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    if status == 422:
        content["example"] = _EXAMPLE
    return {"description": _MEANING[status], "content": {MEDIA_TYPE: content}}


def document(app: FastAPI, *, needs_token: bool) -> dict[str, Any]:
    made = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "GHOST_API_TOKEN. Wanted wherever one is set; required for any bind but loopback.",
        }
    }
    made["security"] = [{"token": []}] if needs_token else [{}, {"token": []}]
    return made
