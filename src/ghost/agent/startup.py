"""Resources left by earlier sessions: listed first, deleted only after the engineer approves each deletion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ghost.agent.loop import Console
from ghost.agent.session import Session
from ghost.agent.tools import Orchestrator, Shell
from ghost.text import plural

KINDS: Final = {
    "abandoned_task": "captures of earlier sessions that did not end",
    "needs_cleanup": "finished captures whose cleanup is pending",
    "partially_cleaned": "captures that were partially cleaned up",
    "untracked_azure": "ghost_* captures in Azure without a task record",
    "stale_local_file": "old ghost_* files on this machine",
}

MAY_BE_ANOTHERS: Final = {
    "untracked_azure": " No task record covers this capture: it may belong to a colleague and still be running.",
}
"""Shown with the approval prompt."""


@dataclass(frozen=True)
class Orphan:
    kind: str
    name: str
    task_id: str | None
    """The task whose cleanup plan covers it; None without a task record."""
    command: str | None
    """The command that deletes it if no plan does; None if its name is not safe in a command."""

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Orphan:
        kind = str(value.get("kind"))
        name = value.get("task_id") or value.get("resource") or value.get("path")
        return cls(kind, str(name), value.get("task_id"), value.get("command"))


def find_orphans(orchestrator: Orchestrator) -> list[Orphan]:
    response = orchestrator.orchestrate({"intent": "list_tasks"})
    return [Orphan.from_dict(value) for value in response.get("orphans") or []]


def clean_up(orphans: Sequence[Orphan], orchestrator: Orchestrator, shell: Shell, session: Session) -> list[str]:
    """Delete orphans, each with approval through the shell. Returns warnings about what is left."""
    warnings = []
    for orphan in orphans:
        if orphan.command is None and orphan.task_id is not None:
            response = orchestrator.orchestrate({"intent": "cleanup_task", "task_id": orphan.task_id})
            if response.get("cleanup_status") == "partial":
                session.manual_cleanup_pending.append(orphan.task_id)
                warnings.append(f"Task {orphan.task_id}: partial cleanup, some resources require manual deletion.")
        else:
            if orphan.command is None:
                warnings.append(f"{orphan.name}: its name is not safe in a command; delete it manually.")
                continue
            why = f"Startup cleanup: {plural(len(orphans), 'orphaned resource')}.{MAY_BE_ANOTHERS.get(orphan.kind, '')}"
            response = shell.execute({"command": orphan.command, "reasoning": why})
            if response.get("status") != "completed" or response.get("exit_code") != 0:
                warnings.append(f"{orphan.name} was not deleted.")
    return warnings


def choose_and_clean(
    orphans: Sequence[Orphan], orchestrator: Orchestrator, shell: Shell, session: Session, console: Console
) -> list[str]:
    """Offer the clean-up; nothing is deleted if nobody answers."""
    choice = console.choose(
        f"{plural(len(orphans), 'orphaned resource')} from earlier sessions.",
        {"c": "Clean up now", "s": "Skip", "r": "Review each one"},
    )
    if choice == "c":
        return clean_up(orphans, orchestrator, shell, session)
    if choice == "r":
        chosen = [o for o in orphans if console.choose(f"Delete {o.kind} {o.name}?", {"y": "Yes", "n": "No"}) == "y"]
        return clean_up(chosen, orchestrator, shell, session)
    return []
