"""Resources left by earlier sessions: listed first, deleted only after the engineer approves each deletion."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ghost.agent.loop import Console
from ghost.agent.session import Session
from ghost.agent.tools import Orchestrator, Shell
from ghost.errors import GhostError
from ghost.records import read_json, write_json
from ghost.text import one_line, plural

KINDS: Final = {
    "abandoned_task": "captures of earlier sessions that did not end",
    "needs_cleanup": "finished captures that were not cleaned up",
    "partially_cleaned": "captures whose clean-up was not completed",
    "untracked_azure": "ghost_* captures in Azure without a record here",
    "untracked_blob": "ghost_* blobs in storage without a record here",
    "stale_local_file": "old ghost_* files on this machine",
}

MAY_BE_ANOTHERS: Final = {
    "untracked_azure": " No task record covers this capture: it may belong to a colleague and still be running.",
    "untracked_blob": " No task record covers this blob: it may belong to a colleague.",
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
    owner: str | None = None
    age_days: float | None = None
    is_running: bool = False
    """The capture may still be recording: it is named, and its deletion is not offered."""

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Orphan:
        kind = str(value.get("kind"))
        name = value.get("task_id") or value.get("resource") or value.get("path")
        return cls(
            kind,
            str(name),
            value.get("task_id"),
            value.get("command"),
            value.get("session_id"),
            value.get("owner"),
            value.get("age_days"),
            value.get("running") is True,
        )

    def __str__(self) -> str:
        age = None if self.age_days is None else f"{self.age_days:g} days old"
        facts = ", ".join(fact for fact in (KINDS.get(self.kind, self.kind), self.owner, age) if fact)
        return one_line(f"{self.name} ({facts})", 300)


def find_orphans(orchestrator: Orchestrator) -> list[Orphan]:
    response = orchestrator.orchestrate({"intent": "list_tasks"})
    return [Orphan.from_dict(value) for value in response.get("orphans") or []]


def choose_and_clean(
    orphans: Sequence[Orphan],
    orchestrator: Orchestrator,
    shell: Shell,
    session: Session,
    console: Console,
    audit_dir: Path,
) -> list[str]:
    """Ask once, for a yes or no for each item, and return warnings about what could not be deleted.

    Nothing is deleted if nobody answers. What is left, declined or not deleted, is noted in the session; what was
    declined is noted in the workspace, and not asked again.
    """
    declined_file = audit_dir / _DECLINED
    declined = _declined(declined_file)
    asked = [o for o in orphans if not o.is_running and o.name not in declined]
    heading = f"{plural(len(asked), 'resource')} left over from earlier sessions. Delete?"
    answers = console.choose_each(heading, list(map(str, asked))) if asked else None
    chosen = [orphan for orphan, yes in zip(asked, answers or (), strict=False) if yes]
    if answers and len(chosen) < len(asked):
        write_json(declined_file, sorted(declined | {o.name for o in asked if o not in chosen}))
    failures = {orphan: _clean_up(orphan, orchestrator, shell, len(chosen)) for orphan in chosen}
    done = {o.name for o in chosen if not failures[o]}
    now = find_orphans(orchestrator) if chosen else orphans
    left = dict.fromkeys(o.name for o in (*orphans, *now) if o.name not in done)
    others = {*session.manual_cleanup_pending} - {*left} - done
    session.manual_cleanup_pending = [*sorted(others), *left]
    return [warning for warning in failures.values() if warning]


_DECLINED: Final = "declined_cleanup.json"


def _declined(path: Path) -> set[str]:
    """Return the names whose deletion was declined; none if that cannot be read, so that it is asked again."""
    with suppress(OSError, ValueError, GhostError):
        names = read_json(path)
        return set(map(str, names)) if isinstance(names, list) else set()
    return set()


def _clean_up(orphan: Orphan, orchestrator: Orchestrator, shell: Shell, count: int) -> str | None:
    """Delete an orphan, with approval through the shell. Returns why it is left; None if it was deleted."""
    if orphan.command is None and orphan.task_id is not None:
        response = orchestrator.orchestrate({"intent": "cleanup_task", "task_id": orphan.task_id})
        if response.get("cleanup_status") in {"completed", "skipped"}:
            return None
        return f"Task {orphan.task_id}: {response.get('message') or 'its clean-up was not completed'}"
    if orphan.command is None:
        return f"{orphan.name}: its name is not safe in a command; delete it manually."
    why = f"Clean-up of what earlier sessions left: {plural(count, 'resource')}.{MAY_BE_ANOTHERS.get(orphan.kind, '')}"
    response = shell.execute({"command": orphan.command, "reasoning": why})
    deleted = response.get("status") == "completed" and response.get("exit_code") == 0
    return None if deleted else f"{orphan.name} was not deleted."
