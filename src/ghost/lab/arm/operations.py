"""Long-running operations: 202 with a `Location`, where the answer is fetched.

https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations

Operations have no state: the request is packed into the address of its result and evaluated when that is fetched.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from ghost.lab.arm.api_messages import ArmError, Response, json_response
from ghost.lab.arm.request_routing import IN_SUBSCRIPTION, Call, route

RETRY_AFTER_MS = 20
"""Azure says ten seconds and more; a lab need not make a person wait."""
LONGEST_TOKEN = 6000
RESULTS: dict[str, Callable[[Call], Any]] = {}
"""What an operation, by its name, answers in the end; None for nothing."""

_RESULT = f"{IN_SUBSCRIPTION}/providers/{{namespace}}/locations/{{location}}"


def accepted(call: Call, operation: str, location: str, namespace: str, *, changed: bool = False) -> Response:
    """Return 202 with the address of the result of `RESULTS[operation]`."""
    return Response(202, b"", _pointers(call, operation, location, namespace, "Location"), changed)


def created(call: Call, body: dict[str, Any], location: str, namespace: str) -> Response:
    """Return 201 with the address of the creation's status; the resource is read again afterwards."""
    headers = _pointers(call, "creation", location, namespace, "Azure-AsyncOperation")
    return json_response(body, 201, headers, changed=True)


def _pointers(call: Call, operation: str, location: str, namespace: str, header: str) -> dict[str, str]:
    packed = json.dumps([operation, dict(call.values), call.request.body.decode()]).encode()
    token = base64.urlsafe_b64encode(zlib.compress(packed)).decode().rstrip("=")
    if len(token) > LONGEST_TOKEN:
        raise ArmError(400, "RequestTooLarge", "The request is longer than a lab takes.")
    place = "operationResults" if header == "Location" else "operations"
    path = f"/subscriptions/{call.world.subscription.id}/providers/{namespace}/locations/{location}/{place}/{token}"
    version = quote(call.request.query["api-version"], safe="")
    return {header: f"{call.request.origin}{path}?api-version={version}", "retry-after-ms": str(RETRY_AFTER_MS)}


@route("GET", f"{_RESULT}/operationResults/{{token}}")
def operation_result(call: Call) -> Response:
    operation, values, body = _unpacked(call["token"])
    result = RESULTS[operation](replace(call, values=values, request=replace(call.request, body=body)))
    return Response(200) if result is None else json_response(result)


@route("GET", f"{_RESULT}/operations/{{token}}")
def operation_status(call: Call) -> dict[str, Any]:
    _unpacked(call["token"])
    return {"status": "Succeeded"}


def _unpacked(token: str) -> tuple[str, dict[str, str], bytes]:
    try:
        packed = zlib.decompress(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        operation, values, body = json.loads(packed)
        if operation != "creation" and operation not in RESULTS:
            raise ValueError(operation)
        return operation, dict(values), str(body).encode()
    except (ValueError, TypeError, zlib.error) as error:
        raise ArmError(404, "OperationNotFound", "The operation could not be found.") from error
