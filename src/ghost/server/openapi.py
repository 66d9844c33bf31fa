"""The OpenAPI document: FastAPI's, with problem documents for every error."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ghost.server.problems import MEDIA_TYPE, Problem

_MEANING: Final = {
    400: "The request is not valid HTTP.",
    401: "The token is missing or wrong.",
    403: "The request came from another site, or policy refuses it.",
    404: "Not found.",
    405: "The path does not support this method.",
    408: "The request was not complete in time.",
    409: "The question is already closed.",
    413: "The body is too long.",
    414: "The address is too long.",
    415: "The body is not JSON.",
    421: "The Host header names another server.",
    422: "The request is not valid: `errors` says where.",
    429: "Too many wait: cancel one, or retry later.",
    431: "The headers are too long.",
    500: "Internal error; see the log under the request id.",
    502: "A provider or a site gave no usable answer.",
    503: "Not possible now: retry in a moment.",
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
    """Return the `responses` of an endpoint: these statuses, and those of every request."""
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
            "description": "GHOST_API_TOKEN. Required if one is set, and for any bind but loopback.",
        }
    }
    made["security"] = [{"token": []}] if needs_token else [{}, {"token": []}]
    return made
