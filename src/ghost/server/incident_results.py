"""The result of an incident's investigation, posted to `GHOST_INCIDENT_RESULT_URL`, whose host the allowlist names."""

from __future__ import annotations

import threading
from typing import Any, Final

from ghost.agent import SessionPaths, Workspace
from ghost.config import Settings
from ghost.errors import ConfigurationError, GhostError
from ghost.records import read_json
from ghost.scraper import Allowlist, Reach, UrlRefused, parse
from ghost.server.logs import logger
from ghost.server.orders import Order, OrderState

TRIES: Final = 3
PAUSE_SECONDS: Final = 5.0
TIMEOUT_SECONDS: Final = 10.0
_TOLD: Final = ("outcome", "confidence", "summary", "causes", "actions")
_log = logger("ghost.server.incident_results")


def check_address(settings: Settings) -> None:
    """Raise `ConfigurationError` if results are to be posted to a host that the allowlist does not name."""
    if settings.incident_result_url is None:
        return
    try:
        url = parse(settings.incident_result_url)
    except UrlRefused as error:
        raise ConfigurationError(f"GHOST_INCIDENT_RESULT_URL is not usable: {error}") from error
    if Allowlist(settings.allowlist()).reach(url) is Reach.NOWHERE:
        raise ConfigurationError(
            f"GHOST_INCIDENT_RESULT_URL names {url.authority}, which ALLOWLIST_DOMAINS does not: add it there"
        )


def result_of(order: Order, workspace: Workspace) -> dict[str, Any]:
    """Return what is posted: the order, and of its report what was found, without evidence."""
    told: dict[str, Any] = order.model_dump(
        mode="json", include={"alert_id", "session_id", "state", "symptom", "error"}
    )
    if order.session_id is not None and order.state is OrderState.ENDED:
        report = read_json(SessionPaths(workspace.audit_dir, order.session_id).report_json)
        told |= {name: report[name] for name in _TOLD}
    return told


def post_result(order: Order, address: str, workspace: Workspace, stopping: threading.Event) -> None:
    """Post it, at most three times; what fails is in the log. Never raises."""
    import httpx2

    for _ in range(TRIES):
        try:
            body = result_of(order, workspace)
            with httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=False, trust_env=False) as client:
                if client.post(address, json=body).is_success:
                    return
            failure = "the receiver refused it"
        except (GhostError, OSError, LookupError, httpx2.HTTPError) as error:
            failure = str(error)
        _log.warning("the result of an incident was not delivered", order=order.id, error=failure)
        if stopping.wait(PAUSE_SECONDS):
            return
