"""The emulator's identity service: tokens for clients with the secret of this lab, and the service endpoints.

A token names the tenant and the service, is signed by this lab's key, and expires after a day. It is not valid outside:
its signature is not Azure's.
https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ghost.lab.arm.api_messages import ArmError, Request, Response, json_response
from ghost.lab.arm.service_hosts import LOGIN, MANAGEMENT, STORAGE_SUFFIX
from ghost.lab.tenant import guid
from ghost.lab.world import World

LIFETIME_SECONDS = 86400


@dataclass(frozen=True)
class Identity:
    world: World
    secret: str
    """What a client shows to be given a token; the key of the signatures follows from it."""

    def answer(self, request: Request) -> Response:
        """Answer `GET /msi/token`. Raises `ArmError` without the secret."""
        if not hmac.compare_digest(request.headers.get("x-identity-header", "").encode(), self.secret.encode()):
            raise ArmError(401, "Unauthorized", "X-IDENTITY-HEADER is not the secret of this lab.")
        audience = request.query.get("resource", "")
        if not audience:
            raise ArmError(400, "InvalidRequest", "The query parameter 'resource' is missing.")
        expires = int(time.time()) + LIFETIME_SECONDS
        return json_response(
            {
                "access_token": self.token(audience, expires),
                "expires_on": str(expires),
                "resource": audience,
                "token_type": "Bearer",
                "client_id": guid(f"{self.world.subscription.user}/client"),
            }
        )

    def token(self, audience: str, expires: int) -> str:
        tenant = self.world.subscription.tenant
        claims = {
            "aud": audience.rstrip("/"),
            "iss": f"https://sts.windows.net/{tenant}/",
            "iat": expires - LIFETIME_SECONDS,
            "nbf": expires - LIFETIME_SECONDS,
            "exp": expires,
            "oid": guid(self.world.subscription.user),
            "sub": guid(self.world.subscription.user),
            "tid": tenant,
            "ver": "1.0",
        }
        unsigned = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}"
        return f"{unsigned}.{self._signature(unsigned)}"

    def accepts(self, authorization: str, audience: str) -> bool:
        """Return whether an `Authorization` header has a valid token of this lab for this service."""
        scheme, _, token = authorization.partition(" ")
        unsigned, _, signed = token.rpartition(".")
        own = self._signature(unsigned)
        if scheme.casefold() != "bearer" or not hmac.compare_digest(signed.encode(), own.encode()):
            return False
        claims = json.loads(_decoded(unsigned.partition(".")[2]))
        return bool(claims["aud"] == audience and claims["exp"] > time.time())

    def _signature(self, text: str) -> str:
        return _plain(hmac.new(self.secret.encode(), text.encode(), sha256).digest())


def endpoints() -> Response:
    """Return the answer to `GET /metadata/endpoints`, which `az cloud register` reads."""
    origin, login = f"https://{MANAGEMENT}", f"https://{LOGIN}"
    return json_response(
        [
            {
                "name": "GhostLab",
                "resourceManager": origin,
                "authentication": {
                    "loginEndpoint": login,
                    "audiences": [origin],
                    "tenant": "common",
                    "identityProvider": "AAD",
                },
                "graph": f"https://graph.{STORAGE_SUFFIX}",
                "graphAudience": f"https://graph.{STORAGE_SUFFIX}",
                "suffixes": {"storage": STORAGE_SUFFIX},
            }
        ]
    )


def _encoded(value: dict[str, Any]) -> str:
    return _plain(json.dumps(value).encode())


def _plain(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
