"""How platform services refuse: their firewalls let a connection begin, and the service answers no, or closes it.

https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes
https://learn.microsoft.com/azure/key-vault/general/rest-error-codes
https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ghost.net import REFUSES_WITH, Hop

PORTS = {"storage": (80, 443, 445), "key_vault": (443,), "sql": (1433,), "redis": (6379, 6380)}
"""Of each kind of hop, what is open to everybody."""
MESSAGES = {
    "AuthorizationFailure": "This request is not authorized to perform this operation.",
    "ForbiddenByFirewall": "Client address is not authorized and caller is not a trusted service.",
    "ForbiddenByConnection": "Public network access is disabled and request is not from a trusted service nor via an "
    "approved private link.",
}


@dataclass(frozen=True)
class Refusal:
    body: str = ""
    """What the service says before it closes the connection; empty: nothing."""
    http_status: int | None = None


def refusal_of(stop: Hop, port: int | None) -> Refusal | None:
    """Return with what a service refuses connections, which the end of its reason tells; None: it takes none."""
    _, told, answer = stop.reason.rpartition(REFUSES_WITH)
    if not told or (port is not None and port not in PORTS[stop.kind]):
        return None
    status, code = answer.split()[-2:]
    match stop.kind:
        case "storage":
            said = f"<Error><Code>{code}</Code><Message>{MESSAGES[code]}</Message></Error>"
            return Refusal(f'<?xml version="1.0" encoding="utf-8"?>{said}', int(status))
        case "key_vault":
            error = {"code": "Forbidden", "message": MESSAGES[code], "innererror": {"code": code}}
            return Refusal(json.dumps({"error": error}), int(status))
    return Refusal(answer if stop.kind == "sql" else "")
