"""What earlier sessions left behind: shown first, deleted only where the engineer asks and approves each deletion."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ghost.agent.loop import Console
from ghost.agent.session import Session
from ghost.agent.tools import Orchestrator, Shell

KINDS: Final = {
    "abandoned_task": "captures of earlier sessions that never ended",
    "needs_cleanup": "finished captures whose cleanup is pending",
    "partially_cleaned": "captures that were cleaned up in part",
    "untracked_azure": "ghost_* captures in Azure that no record knows",
    "stale_local_file": "old ghost_* files on this machine",
}


@dataclass(frozen=True)
class Orphan:
    kind: str
    task_id: str | None
    resource: str | None
    location: str | None
    path: str | None
    age_days: float | None

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Orphan:
        return cls(
            kind=str(value.get("kind")),
            task_id=value.get("task_id"),
            resource=value.get("resource"),
            location=value.get("location"),
            path=value.get("path"),
            age_days=value.get("age_days"),
        )

    @property
    def name(self) -> str:
        return str(self.task_id or self.resource or self.path)


def find_orphans(orchestrator: Orchestrator) -> list[Orphan]:
    response = orchestrator.orchestrate({"intent": "list_tasks"})
    return [Orphan.from_dict(value) for value in response.get("orphans") or []]


def clean_up(orphans: Sequence[Orphan], orchestrator: Orchestrator, shell: Shell, session: Session) -> list[str]:
    """Asks for every deletion through the shell's gate. Returns warnings about what is left."""
    warnings = []
    for orphan in orphans:
        if orphan.task_id is not None and orphan.kind != "untracked_azure":
            response = orchestrator.orchestrate({"intent": "cleanup_task", "task_id": orphan.task_id})
            if response.get("cleanup_status") == "partial":
                session.manual_cleanup_pending.append(orphan.task_id)
                warnings.append(f"Task {orphan.task_id}: partial cleanup, some resources require manual deletion.")
        else:
            command = _deletion(orphan)
            if command is None:
                warnings.append(f"{orphan.name}: where it lies is not known, delete it by hand.")
                continue
            response = shell.execute(
                {"command": command, "reasoning": f"Startup cleanup: {len(orphans)} orphaned resources."}
            )
            if response.get("status") != "completed" or response.get("exit_code") != 0:
                warnings.append(f"{orphan.name} was not deleted.")
    return warnings


def choose_and_clean(
    orphans: Sequence[Orphan], orchestrator: Orchestrator, shell: Shell, session: Session, console: Console
) -> list[str]:
    """Offers the clean-up; nothing is deleted where nobody answers."""
    choice = console.choose(
        f"{len(orphans)} orphaned resources from earlier sessions.",
        {"c": "Clean up now", "s": "Skip", "r": "Review each one"},
    )
    if choice == "c":
        return clean_up(orphans, orchestrator, shell, session)
    if choice == "r":
        chosen = [o for o in orphans if console.choose(f"Delete {o.kind} {o.name}?", {"y": "Yes", "n": "No"}) == "y"]
        return clean_up(chosen, orchestrator, shell, session)
    return []


def _deletion(orphan: Orphan) -> str | None:
    if orphan.kind == "stale_local_file" and orphan.path:
        return shlex.join(["rm", orphan.path])
    if orphan.kind == "untracked_azure" and orphan.resource and orphan.location:
        words = ["az", "network", "watcher", "packet-capture", "delete", "-l", orphan.location, "-n", orphan.resource]
        return shlex.join(words)
    return None
