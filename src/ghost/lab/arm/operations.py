"""Long-running operations, in the four shapes that Azure gives them.

    Network's posts     202 null, Location; there 202 null until the answer
    creations           201, Azure-AsyncOperation: InProgress, then Succeeded; the resource is read again
    stops, deletions    202 empty, both headers; the result is 200 null, of a deletion 204
    Compute's posts     202 empty, both headers; the operation has times, and the answer at its end

https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations

Operations have no state: request and time are packed into the address of the result, which is evaluated when fetched.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote

from ghost.lab.arm.api_messages import ArmError, Response, json_response
from ghost.lab.arm.request_routing import IN_SUBSCRIPTION, Call, route
from ghost.lab.tenant import guid

Shape = Literal["post", "creation", "stop", "deletion", "compute"]
RETRY_AFTER_MS = 20
"""Azure says ten seconds and more; a lab need not make a person wait."""
LONGEST_RETRY_MS = 2000
LONGEST_TOKEN = 6000
RESULTS: dict[str, Callable[[Call], Any]] = {"nothing": lambda _call: None}
"""What an operation, by its name, answers in the end; None for nothing."""

_LOCATION = f"{IN_SUBSCRIPTION}/providers/{{namespace}}/locations/{{location}}"


@dataclass(frozen=True)
class Operation:
    shape: Shape
    name: str
    values: Mapping[str, str]
    body: bytes
    began: datetime

    @property
    def token(self) -> str:
        content = [self.shape, self.name, dict(self.values), self.body.decode(), self.began.isoformat()]
        packed = base64.urlsafe_b64encode(zlib.compress(json.dumps(content).encode()))
        return packed.decode().rstrip("=")


def accepted(call: Call, operation: str, location: str, namespace: str) -> Response:
    """Return 202 with the address of the result of `RESULTS[operation]`."""
    return json_response(None, 202, _headers(call, _begun(call, "post", operation), location, namespace))


def created(call: Call, body: dict[str, Any], location: str, namespace: str, *, status: int = 201) -> Response:
    """Return 201, or 200 of a replaced resource, with the address of the creation's status."""
    headers = _headers(call, _begun(call, "creation"), location, namespace)
    updating = {**body, "properties": {**body["properties"], "provisioningState": "Updating"}}
    if "etag" in body:
        updating["etag"] = f'W/"{guid(body["id"] + "#updating")}"'
    return json_response(updating, status, headers, changed=True)


def ended(call: Call, shape: Literal["stop", "deletion"], location: str, namespace: str) -> Response:
    return Response(202, b"", _headers(call, _begun(call, shape), location, namespace), changed=True)


def accepted_by_compute(call: Call, operation: str, location: str, *, changed: bool = False) -> Response:
    headers = _headers(call, _begun(call, "compute", operation), location, "Microsoft.Compute")
    return Response(202, b"", headers, changed)


def _begun(call: Call, shape: Shape, name: str = "nothing") -> Operation:
    return Operation(shape, name, call.values, call.request.body, call.lab.clock.now())


def _headers(call: Call, operation: Operation, location: str, namespace: str) -> dict[str, str]:
    if len(operation.token) > LONGEST_TOKEN:
        raise ArmError(400, "RequestTooLarge", "The request is longer than a lab takes.")
    root = f"{call.request.origin}/subscriptions/{call['subscription']}/providers/{namespace}/locations/{location}"
    version = f"api-version={quote(call.request.query['api-version'], safe='')}"
    status, result = (f"{root}/{place}/{operation.token}" for place in ("operations", "operationResults"))
    result = f"{status}?monitor=true&{version}" if operation.shape == "compute" else f"{result}?{version}"
    remaining = call.lab.tenant.in_progress_seconds - (call.lab.clock.now() - operation.began).total_seconds()
    wait_ms = min(max(remaining / call.lab.clock.speed * 1000, RETRY_AFTER_MS), LONGEST_RETRY_MS)
    headers = {"retry-after-ms": str(round(wait_ms))}
    if operation.shape != "post":
        headers["Azure-AsyncOperation"] = f"{status}?{version}"
    if operation.shape != "creation":
        headers["Location"] = result
    return headers


@route("GET", f"{_LOCATION}/operationResults/{{token}}")
def operation_result(call: Call) -> Response:
    return _result(call, _unpacked(call["token"]))


@route("GET", f"{_LOCATION}/operations/{{token}}")
def operation_status(call: Call) -> Response:
    operation = _unpacked(call["token"])
    if "monitor" in call.request.query:
        return _result(call, operation)
    done = _is_done(call, operation)
    status: dict[str, Any] = {"status": "Succeeded" if done else "InProgress"}
    headers = {"retry-after-ms": _headers(call, operation, call["location"], call["namespace"])["retry-after-ms"]}
    if operation.shape == "stop" and done:
        status["properties"] = {}
    if operation.shape == "compute":
        ends = operation.began + timedelta(seconds=call.lab.tenant.in_progress_seconds)
        answer = _answer(call, operation) if done else None
        output = {"properties": {"output": answer["value"]}} if answer is not None else {}
        times = {"startTime": _time(operation.began), **({"endTime": _time(ends)} if done else {})}
        status = {**times, **status, **output, "name": guid(operation.token)}
    return json_response(status, 200, {} if done else headers)


def _result(call: Call, operation: Operation) -> Response:
    headers = _headers(call, operation, call["location"], call["namespace"])
    if not _is_done(call, operation):
        return json_response(None, 202, headers)
    del headers["retry-after-ms"]
    if operation.shape == "deletion":
        return Response(204, b"", headers)
    return json_response(_answer(call, operation), 200, headers)


def _answer(call: Call, operation: Operation) -> Any:
    asked = replace(call.request, body=operation.body)
    return RESULTS[operation.name](replace(call, values=operation.values, request=asked))


def _is_done(call: Call, operation: Operation) -> bool:
    return (call.lab.clock.now() - operation.began).total_seconds() >= call.lab.tenant.in_progress_seconds


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}0+00:00"


def _unpacked(token: str) -> Operation:
    try:
        packed = zlib.decompress(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        shape, name, values, body, began = json.loads(packed)
        if name not in RESULTS:
            raise ValueError(name)
        return Operation(shape, name, dict(values), str(body).encode(), datetime.fromisoformat(began))
    except (ValueError, TypeError, zlib.error) as error:
        raise ArmError(404, "OperationNotFound", "The operation could not be found.") from error
