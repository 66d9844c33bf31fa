"""What a hostile tenant does to requests: it delays, throttles, locks, logs out, loses answers, and pages lists.

Texts as Azure answered them. https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from ghost.lab.arm.api_messages import ArmError, Request
from ghost.lab.directory import LabDirectory
from ghost.lab.tenant import guid

RETRY_AFTER_SECONDS = 4
SECONDS_OF_A_REQUEST = 4.0
EXPIRED_LOGIN = (
    "AADSTS70043: The refresh token has expired or is invalid due to sign-in frequency checks by conditional access. "
    "The token was issued on 2026-11-23T05:53:09.5071163Z and the maximum allowed lifetime for this request is 43200."
)
_WORDS = {"GET": "read", "HEAD": "read", "DELETE": "delete"}


def hinder(lab: LabDirectory, request: Request) -> None:
    """Delay a request, and raise `ArmError` where the login has expired or the limit of requests is reached."""
    tenant = lab.tenant
    if tenant.az_latency_ms:
        lab.clock.sleep(tenant.az_latency_ms / 1000)
    if not tenant.throttle and tenant.login_expires_after is None:
        return
    number = _count(lab)
    if tenant.login_expires_after is not None and number > tenant.login_expires_after:
        now = lab.clock.now()
        moment = f"{now.month}/{now.day}/{now.year} {now.hour % 12 or 12}:{now:%M:%S %p}"
        raise ArmError(
            401,
            "ExpiredAuthenticationToken",
            f"The access token expiry UTC time '{moment}' is earlier than current UTC time '{moment}'.",
        )
    if tenant.throttle and number % tenant.throttle == 0:
        own = lab.world.subscription
        raise ArmError(
            429,
            "SubscriptionRequestsThrottled",
            f"Number of '{_WORDS.get(request.method, 'write')}' requests for subscription '{own.id}' actor "
            f"'{guid(own.user)}' exceeded. Please try again after '{RETRY_AFTER_SECONDS}' seconds after additional "
            "tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )


def check_unlocked(lab: LabDirectory, request: Request) -> None:
    """Raise `ArmError` for a deletion below a lock, in Azure's recorded words."""
    own = f"/subscriptions/{lab.world.subscription.id}"
    asked = "/" + "/".join(request.segments)
    locks = [own + place for place in lab.tenant.locked]
    found = [lock for lock in locks if f"{asked}/".casefold().startswith(f"{lock}/".casefold())]
    if request.method == "DELETE" and found:
        raise ArmError(
            409,
            "ScopeLocked",
            f"The scope '{asked}' cannot perform delete operation because following scope(s) are locked: "
            f"'{','.join(found)}'. Please remove the lock and try again.",
        )


def is_lost(lab: LabDirectory) -> bool:
    """Return whether the answer to this change is lost."""
    if not lab.tenant.lost_answers:
        return False
    with lab.changing() as state:
        state["changes"] = state.get("changes", 0) + 1
        return bool(state["changes"] % lab.tenant.lost_answers == 0)


def is_logged_out(lab: LabDirectory) -> bool:
    limit = lab.tenant.login_expires_after
    return limit is not None and max(lab.state().get("requests", 0), _by_the_clock(lab)) >= limit


def _count(lab: LabDirectory) -> int:
    """Return the number of this request. In the sandbox of safe commands, which write nothing, the clock tells it."""
    try:
        with lab.changing() as state:
            state["requests"] = max(state.get("requests", 0), _by_the_clock(lab)) + 1
            return int(state["requests"])
    except OSError:
        return _by_the_clock(lab) + 1


def _by_the_clock(lab: LabDirectory) -> int:
    """Return how many requests there may have been: one in every so many seconds of the lab."""
    return int(lab.clock.monotonic() / SECONDS_OF_A_REQUEST)


def paged(lab: LabDirectory, request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """Return one page of a list, with the address of the next."""
    size, items = lab.tenant.page_size, body.get("value")
    if size is None or request.method != "GET" or not isinstance(items, list) or body.keys() - {"value"}:
        return body
    token = request.query.get("$skiptoken", "0")
    if not token.isdecimal():
        raise ArmError(400, "InvalidSkipToken", "The skip token is invalid.")
    at = int(token)
    if at + size >= len(items):
        return {"value": items[at:]}
    query = urlencode({**request.query, "$skiptoken": str(at + size)})
    return {"value": items[at : at + size], "nextLink": f"{request.origin}{request.path}?{query}"}
