"""An emulator for a test, and a client that speaks to it as an Azure CLI does: by the proxy, with its certificate."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghost import lab
from ghost.lab import Scenario
from ghost.lab.arm.local_emulator import Emulator, emulator
from ghost.lab.arm.request_log import read
from ghost.lab.directory import LabDirectory

ARM = "management.lab.invalid"
SUBSCRIPTION = "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211"
VERSION = "api-version=2024-05-01"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    up: Emulator

    def ask(
        self, method: str, target: str, host: str = ARM, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        trusted = ssl.create_default_context(cafile=self.up.environment["REQUESTS_CA_BUNDLE"])
        connection = http.client.HTTPSConnection("127.0.0.1", self.up.proxy_port, timeout=20, context=trusted)
        connection.set_tunnel(host, 443)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body)
            connection.request(method, target, content, dict(headers or {}))
            answered = connection.getresponse()
            return Answer(answered.status, {k.lower(): v for k, v in answered.getheaders()}, answered.read())
        finally:
            connection.close()

    def token(self, resource: str = f"https://{ARM}") -> str:
        secret = {"X-IDENTITY-HEADER": self.up.environment["IDENTITY_HEADER"]}
        answer = self.ask(
            "GET", f"/msi/token?api-version=2019-08-01&resource={resource}", "login.lab.invalid", headers=secret
        )
        return str(answer.json["access_token"])

    def arm(self, method: str, path: str, body: Any = None) -> Answer:
        """A request to Resource Manager; `path` follows the subscription."""
        headers = {"Authorization": f"Bearer {self.token()}"}
        return self.ask(method, f"{SUBSCRIPTION}{path}?{VERSION}", ARM, body, headers)

    def blob(self, method: str, target: str, account: str = "prodforensics01") -> Answer:
        headers = {"Authorization": f"Bearer {self.token('https://storage.azure.com')}", "x-ms-version": "2024-11-04"}
        return self.ask(method, target, f"{account}.blob.core.lab.invalid", None, headers)

    def asked(self) -> list[dict[str, Any]]:
        return read(self.up.log)


@contextmanager
def emulated(directory: Path, scenario: Scenario, speed: float = 1000.0) -> Iterator[Client]:
    lab.start(scenario, directory, speed=speed)
    with emulator(LabDirectory.open(directory)) as up:
        yield Client(up)
