"""How the tenant of a scenario answers: a hostile one is slow, throttles, refuses, pages and logs people out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TenantConditions:
    """How Azure answers; a hostile tenant."""

    az_latency_ms: float = 0.0
    """Of each request, in the lab's time."""
    throttle: int = 0
    """Of so many requests one is answered 429 with Retry-After; 0 for none."""
    forbidden_reads: tuple[str, ...] = ()
    """Actions that are answered 403, such as Microsoft.Network/routeTables/read."""
    page_size: int | None = None
    """Items of a list in one answer."""
    in_progress_seconds: float = 0.0
    """How long an operation stays InProgress."""
    login_expires_after: int | None = None
    """Requests until the login expires."""
