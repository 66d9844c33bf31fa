"""The orchestrator of captures as the settings have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ghost.cloud import ApprovePlan, CloudOrchestrator, Wishes
from ghost.config import Settings
from ghost.records import Clock


def orchestrator_of(
    settings: Settings,
    shell: Any,
    session_id: str,
    clock: Clock,
    announce: Callable[[str], None],
    approve_plan: ApprovePlan | None,
    network: str,
) -> CloudOrchestrator:
    """Raises `UsageError` for a container, prefix or filter that is not one. Does not search Azure."""
    return CloudOrchestrator(
        shell,
        session_id,
        str(settings.audit_dir),
        clock=clock,
        max_polls=settings.capture_max_polls,
        initial_poll_interval=settings.capture_poll_seconds,
        max_poll_interval=settings.capture_max_poll_seconds,
        local_capture_dir=str(settings.capture_dir),
        storage_container=settings.storage_container,
        capture_name_prefix=settings.capture_prefix,
        poll_burst_limit=settings.capture_burst_seconds,
        local_artifact_max_age_days=settings.capture_max_age_days,
        wishes=Wishes(
            settings.storage_account,
            settings.storage_auth,  # type: ignore[arg-type]  # its pattern is that of the mode
            settings.capture_seconds,
            settings.capture_filter,
        ),
        keep_local_capture=settings.keep_capture,
        announce=announce,
        search_azure_at_start=False,
        approve_plan=approve_plan,
        network=network,
    )
