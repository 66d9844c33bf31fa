"""Requests to Azure Resource Manager and their responses, independent of transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True)
class Request:
    """A request. `target` is path and query as in the request line; `origin` is scheme and host."""

    method: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    origin: str = "https://management.azure.com"

    @cached_property
    def path(self) -> str:
        """Return the quoted path without a final slash."""
        return urlsplit(self.target).path.rstrip("/") or "/"

    @cached_property
    def segments(self) -> tuple[str, ...]:
        return tuple(unquote(part) for part in self.path.split("/") if part) or ("",)

    @cached_property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def json(self) -> dict[str, Any]:
        """Return the body. Raises `ArmError` if it is not a JSON object."""
        try:
            content = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise ArmError(400, "InvalidRequestContent", f"The request content was invalid: {error}") from error
        if not isinstance(content, dict):
            raise ArmError(400, "InvalidRequestContent", "The request content was invalid: an object is expected")
        return content


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    changed: bool = False
    """Whether the request changed anything in the lab."""
    note: str = ""
    """For the log of requests: why the answer is empty."""
    lost: bool = False
    """The connection is dropped before the answer."""

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


def json_response(
    value: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    changed: bool = False,
    note: str = "",
) -> Response:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Response(status, body, {"Content-Type": "application/json; charset=utf-8", **(headers or {})}, changed, note)


class ArmError(Exception):
    """An error of Azure Resource Manager, or of a service behind it.

    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        by_provider: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`by_provider`: not Resource Manager itself refuses, but a provider, which adds details."""
        super().__init__(message)
        self.by_provider = by_provider
        self.headers = headers or {}
        self.status = status
        self.code = code
        self.message = message

    def response(self) -> Response:
        cause = {"x-ms-failure-cause": "gateway"} if self.status in (403, 404) and not self.by_provider else {}
        headers = {**cause, **self.headers}
        details: dict[str, Any] = {"details": []} if self.by_provider else {}
        return json_response({"error": {"code": self.code, "message": self.message, **details}}, self.status, headers)


def resource_not_found(kind: str, resource_group: str, name: str) -> ArmError:
    return ArmError(
        404,
        "ResourceNotFound",
        f"The Resource '{kind}/{name}' under resource group '{resource_group}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def part_not_found(resource_id: str) -> ArmError:
    """Return the error for a part of a resource: a subnet, a rule, a route."""
    return ArmError(404, "NotFound", f"Resource {resource_id} not found.", by_provider=True)


def group_not_found(name: str) -> ArmError:
    return ArmError(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")


def subscription_not_found(subscription: str) -> ArmError:
    return ArmError(404, "SubscriptionNotFound", f"The subscription '{subscription}' could not be found.")


def bad_request(message: str, code: str = "InvalidRequestFormat") -> ArmError:
    return ArmError(400, code, message)
