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
    "needs_cleanup": "finished captures that were not cleaned up",
    "partially_cleaned": "captures whose clean-up was not completed",
    "untracked_azure": "ghost_* captures in Azure without a record here",
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
    session_id: str | None = None
    """The session whose task it is."""

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Orphan:
        kind = str(value.get("kind"))
        name = value.get("task_id") or value.get("resource") or value.get("path")
        return cls(kind, str(name), value.get("task_id"), value.get("command"), value.get("session_id"))


def find_orphans(orchestrator: Orchestrator) -> list[Orphan]:
    response = orchestrator.orchestrate({"intent": "list_tasks"})
    return [Orphan.from_dict(value) for value in response.get("orphans") or []]


def choose_and_clean(
    orphans: Sequence[Orphan], orchestrator: Orchestrator, shell: Shell, session: Session, console: Console
) -> list[str]:
    """Offer the clean-up and return warnings about what could not be deleted.

    Nothing is deleted if nobody answers. What is left, declined or not deleted, is noted in the session.
    """
    choice = None
    if orphans:
        choice = console.choose(
            f"{plural(len(orphans), 'resource')} left over from earlier sessions.",
            {"c": "Clean up now", "s": "Skip", "r": "Review each one"},
        )
    chosen = list(orphans) if choice == "c" else []
    if choice == "r":
        asked = {o: f"Delete {o.name} ({KINDS.get(o.kind, o.kind)})?" for o in orphans}
        chosen = [o for o in orphans if console.choose(asked[o], {"y": "Yes", "n": "No"}) == "y"]
    failures = {orphan: _clean_up(orphan, orchestrator, shell, len(chosen)) for orphan in chosen}
    left = [o.name for o in orphans if o not in chosen or failures[o]]
    others = {*session.manual_cleanup_pending} - {o.name for o in orphans}
    session.manual_cleanup_pending = [*sorted(others), *left]
    return [warning for warning in failures.values() if warning]


def _clean_up(orphan: Orphan, orchestrator: Orchestrator, shell: Shell, count: int) -> str | None:
    """Delete an orphan, with approval through the shell. Returns why it is left; None if it was deleted."""
    if orphan.command is None and orphan.task_id is not None:
        response = orchestrator.orchestrate({"intent": "cleanup_task", "task_id": orphan.task_id})
        if response.get("cleanup_status") in {"completed", "skipped"}:
            return None
        return f"Task {orphan.task_id}: partial cleanup, some resources must be deleted manually."
    if orphan.command is None:
        return f"{orphan.name}: its name is not safe in a command; delete it manually."
    why = f"Clean-up of what earlier sessions left: {plural(count, 'resource')}.{MAY_BE_ANOTHERS.get(orphan.kind, '')}"
    response = shell.execute({"command": orphan.command, "reasoning": why})
    deleted = response.get("status") == "completed" and response.get("exit_code") == 0
    return None if deleted else f"{orphan.name} was not deleted."
