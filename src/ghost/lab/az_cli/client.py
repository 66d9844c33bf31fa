"""The lab's `az` as a client of `ghost.lab.arm` in its own process: polls operations and words errors like the CLI."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ghost.lab.arm import resource_manager
from ghost.lab.arm.api_messages import Request, Response
from ghost.lab.arm.hostility import EXPIRED_LOGIN
from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.directory import LabDirectory

API_VERSION = "2024-05-01"
ORIGIN = Request("GET", "/").origin
LOG_IN_AGAIN = (
    "Interactive authentication is needed. Please run:\naz login --scope https://management.core.windows.net//.default"
)
RETRIES = 10
"""Of throttled requests, as the CLI's HTTP library has it."""


@dataclass(frozen=True)
class ArmClient:
    lab: LabDirectory

    def scope(self, group: str | None = None) -> str:
        """Return the path of the subscription or of one of its groups."""
        own = f"/subscriptions/{self.lab.world.subscription.id}"
        return own if group is None else f"{own}/resourceGroups/{_quoted(group)}"

    def path(self, group: str | None, kind: str, *names: str) -> str:
        """Return a resource path; `kind` is an Azure type, and one name less than its levels gives a list."""
        provider, *types = kind.split("/")
        words = [self.scope(group), "providers", provider]
        for level, name in enumerate(types):
            words += [name, *(_quoted(part) for part in names[level : level + 1])]
        return "/".join(words)

    def get(self, path: str, **query: str) -> Any:
        return self._sent("GET", path, query)

    def list(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the items of all pages."""
        page = self.get(path, **query)
        found: list[dict[str, Any]] = page["value"]
        while "nextLink" in page:
            page = self._final(Request("GET", page["nextLink"].removeprefix(ORIGIN))).json()
            found += page["value"]
        return found

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._sent("POST", path, {}, body or {})

    def operated(self, path: str) -> Any:
        """Return the status of the operation that a POST begins, at its end."""
        begun = self._answered(Request("POST", f"{path}?{urlencode({'api-version': API_VERSION})}", b"{}"))
        return self._status(begun).json()

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self._sent("PUT", path, {}, body)

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        return self._sent("PATCH", path, {}, body)

    def delete(self, path: str) -> None:
        self._sent("DELETE", path, {})

    def _sent(self, method: str, path: str, query: dict[str, str], body: dict[str, Any] | None = None) -> Any:
        """Return the final response, after any long-running operation."""
        target = f"{path}?{urlencode({**query, 'api-version': API_VERSION})}"
        content = b"" if body is None else json.dumps(body).encode()
        return self._final(Request(method, target, content)).json()

    def _final(self, request: Request) -> Response:
        response = self._answered(request)
        while response.status == 202:
            response = self._answered(Request("GET", response.headers["Location"].removeprefix(ORIGIN)))
            _wait(response)
        if "Azure-AsyncOperation" not in response.headers or request.method not in ("PUT", "PATCH"):
            return response
        self._status(response)
        return self._answered(Request("GET", request.target))

    def _status(self, begun: Response) -> Response:
        """Return the last status of an operation."""
        request = Request("GET", begun.headers["Azure-AsyncOperation"].removeprefix(ORIGIN))
        while (status := self._answered(request)).json()["status"] == "InProgress":
            _wait(status)
        return status

    def _answered(self, request: Request) -> Response:
        response = resource_manager.answer(self.lab, request)
        for _ in range(RETRIES):
            if response.status != 429:
                break
            self.lab.clock.sleep(float(response.headers["Retry-After"]))
            response = resource_manager.answer(self.lab, request)
        if response.lost and request.method != "POST":  # as the CLI's HTTP library repeats it
            return self._answered(request)
        if response.lost:
            raise AzError(
                "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))"
            )
        if response.status == 401:
            raise AzError(f"{EXPIRED_LOGIN}\n{LOG_IN_AGAIN}")
        if response.status >= 400:
            answer = response.json()
            error = answer.get("error", answer)
            code, message = error["code"], error["message"]
            status = 3 if response.status == 404 else 1
            raise AzError(f"({code}) {message}\nCode: {code}\nMessage: {message}", status)
        return response


def group_of(client: ArmClient, kind: str, name: str) -> str | None:
    """Return the group of a resource that the subscription is searched for."""
    found = (body["id"] for body in client.list(client.path(None, kind)) if body["name"].casefold() == name.casefold())
    return next((str(own_id.split("/")[4]) for own_id in found), None)


def _wait(response: Response) -> None:
    if "retry-after-ms" in response.headers:
        time.sleep(int(response.headers["retry-after-ms"]) / 1000)


def _quoted(name: str) -> str:
    return quote(name, safe="")
