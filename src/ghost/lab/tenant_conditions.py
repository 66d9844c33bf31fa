"""How the tenant of a scenario answers: a hostile one is slow, throttles, refuses, pages and logs people out."""

from __future__ import annotations

from dataclasses import dataclass

from ghost.errors import LabError
from ghost.lab.role_definitions import Role, built_in


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
    """Requests until the login expires; one is counted in every 4 s of the lab at least."""
    roles: tuple[str, ...] = ("Contributor", "Storage Blob Data Contributor")
    """Of the login, on the subscription: names of Azure's built-in ones, and of `custom_roles`."""
    custom_roles: tuple[Role, ...] = ()
    locked: tuple[str, ...] = ()
    """Ids, without the subscription, that have a lock against deletion: /resourceGroups/prod-rg."""
    captures_per_region: int | None = None
    """The quota of packet captures."""
    lost_answers: int = 0
    """Of so many changes the answer to one is lost: it takes effect, and the connection is dropped; 0 for none."""


LONGEST_SECONDS = 86_400.0


def check_tenant(tenant: TenantConditions, place: str) -> None:
    """Raise `LabError` for a time that cannot be, pages without items, or a limit that no request passes."""
    bounds = {
        "az_latency_ms": (0, LONGEST_SECONDS * 1000),
        "in_progress_seconds": (0, LONGEST_SECONDS),
        "throttle": (0, None),
        "page_size": (1, None),
        "login_expires_after": (0, None),
        "captures_per_region": (0, None),
        "lost_answers": (0, None),
    }
    for name, (least, most) in bounds.items():
        value = getattr(tenant, name)
        if value is not None and (value < least or (most is not None and value > most)):
            raise LabError(f"{place}.{name}: {value} is not {f'{least:g} to {most:g}' if most else f'{least} or more'}")
    known = [role.name for role in (*built_in(), *tenant.custom_roles)]
    for name in tenant.roles:
        if name not in known:
            raise LabError(
                f"{place}.roles: {name!r} is neither built-in nor in custom_roles; known: {', '.join(known)}"
            )
    if tenant.throttle == 1:
        raise LabError(f"{place}.throttle: 1 would answer every request with 429: give 2 or more, or 0 for none")
