"""Unfinished work of a workspace as tasks of the mind: open investigations, unchecked fixes, captures not cleaned up.

Reads session files and task registries and changes nothing. An unreadable file is skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ghost.agent.fix_log import CHECK, FixLog
from ghost.agent.session import Session, Workspace, load_session
from ghost.cloud import UnreleasedCapture, unreleased_captures_of
from ghost.errors import GhostError
from ghost.mind import Task, TaskStatus
from ghost.net import name_of
from ghost.policy import load_policy
from ghost.records import is_locked
from ghost.text import plural

CLEANUP_WITHIN_SECONDS: Final = 86_400.0
"""A capture left in Azure incurs storage charges from the first day."""
_WHY: Final = {
    "abandoned_task": "its session ended while the capture was active",
    "needs_cleanup": "it is done and was not cleaned up",
    "partially_cleaned": "part of it could not be removed",
}


class OpenInvestigations:
    """Investigations of the workspace without a conclusion, resumable or running."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[Path, tuple[_Version, Task | None]] = {}

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002 - the face of a source of tasks
        current = self._workspace.session_file
        paths = [current, *sorted(self._workspace.audit_dir.glob("ghost_session_*.json"))]
        self._known = {
            path: read for path in paths if (read := _reread(path, self._known.get(path), _unfinished)) is not None
        }
        is_running = is_locked(self._workspace.root)
        return [
            task.model_copy(update={"status": TaskStatus.DOING}) if is_running and path == current else task
            for path, (_, task) in self._known.items()
            if task is not None
        ]


class PendingCleanups:
    """Captures whose resources in Azure or on this machine were not all removed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen: object = None
        self._tasks: list[Task] = []

    def tasks(self, now: float) -> Iterable[Task]:
        running = self._running()
        paths = sorted(self._workspace.audit_dir.glob("orchestrator_tasks_*.jsonl"))
        seen = (running, {path: _version(path) for path in paths})
        if seen != self._seen:
            found = unreleased_captures_of(self._workspace.audit_dir, running, datetime.fromtimestamp(now, UTC))
            self._tasks = [_cleanup(one) for one in found]
            self._seen = seen
        return list(self._tasks)

    def _running(self) -> str:
        """Return the session that a process is working on; None if there is none."""
        if is_locked(self._workspace.root):
            with contextlib.suppress(GhostError):
                return load_session(self._workspace.session_file)[0].session_id
        return ""


@dataclass(frozen=True)
class FixChecks:
    deadline_hours: float
    ask_days: float
    check_after_hours: float
    max_backoff: float


class UncheckedFixes:
    """Investigations that found a cause, of which no check has shown since that the traffic passes."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[Path, tuple[_Version, Task | None]] = {}
        self._limits = load_policy(__file__, "fix_checks.toml", FixChecks)

    def tasks(self, now: float) -> Iterable[Task]:
        paths = [self._workspace.session_file, *sorted(self._workspace.audit_dir.glob("ghost_session_*.json"))]
        known = ((path, _reread(path, self._known.get(path), self._of_session)) for path in paths)
        self._known = {path: read for path, read in known if read is not None}
        results = FixLog(self._workspace).results()
        tasks = (
            self._since(task, results.get(task.metadata["session_id"], [])) for _, task in self._known.values() if task
        )
        oldest = now - self._limits.ask_days * 86_400
        begins = self._limits.deadline_hours * 3600
        return [task for task in tasks if task is not None and (task.deadline_ts or 0.0) - begins > oldest]

    def _of_session(self, path: Path) -> Task | None:
        session, _ = load_session(path)
        completion = session.completion or {}
        causes = completion.get("causes") or ()
        is_private = session.paths(self._workspace.root).anonymization_map.exists()  # its ends are not known here
        if session.rca_report_path is None or not causes or completion.get("outcome") != "cause_found" or is_private:
            return None
        ended = path.stat().st_mtime
        return Task(
            id=f"mended:{session.session_id}",
            title=f"Was it mended? {first_fault(session)}",
            goal="The traffic of the symptom passes",
            context=f"{session.network}. SAFE commands only: ghost apply {session.session_id} --check",
            importance=0.7,
            uncertainty=0.5,
            created_ts=ended,
            last_update_ts=ended,
            metadata={"session_id": session.session_id},
        )

    def _since(self, task: Task, results: Sequence[Mapping[str, Any]]) -> Task | None:
        """Return the task after applications and checks of the fix; None where the last check says that it is mended.

        Its deadline is of the report or the last application: a check that does not say mended gives no more time.
        A person's checks do not lengthen the wait for the next one by the schedule.
        """
        updates: dict[str, Any] = {}
        began, tries, is_blocked = task.last_update_ts, 0, False
        for result in results:
            when = datetime.fromisoformat(str(result["at"])).timestamp()
            by_schedule = str(result["records"]).startswith(CHECK)
            began, tries = (when, 0) if result["kind"] == "applied" else (began, tries + by_schedule)
            if result["kind"] == "applied" or result["outcome"] != "not_known":  # a check that failed says nothing new
                is_blocked = result["outcome"] == "not_mended"
            updates["last_update_ts"] = when
        if results:
            last = results[-1]
            if (last["kind"], last["outcome"]) == ("checked", "mended"):
                return None
            told = f"{last['kind']} {str(last['at'])[:16].replace('T', ' ')}: {str(last['outcome']).replace('_', ' ')}"
            updates["context"] = f"{task.context} ({told})"
            if is_blocked:
                updates |= {"title": task.title.replace("Was it mended?", "NOT MENDED:"), "importance": 0.8}
        wait = self._limits.check_after_hours * 3600 * min(2.0**tries, self._limits.max_backoff)
        due = updates.get("last_update_ts", began) + wait
        updates["deadline_ts"] = began + self._limits.deadline_hours * 3600
        return task.model_copy(update={**updates, "metadata": {**task.metadata, "check_due_ts": due}})


def first_fault(session: Session) -> str:
    """Return what a session found first to be at fault, and where."""
    cause = (session.completion or {})["causes"][0]
    return f"{str(cause['kind']).replace('_', ' ')} at {name_of(str(cause['resource']))}"


_Version = tuple[int, int]
"""Modification time of a file in nanoseconds, and its size."""


def _version(path: Path) -> _Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _reread(
    path: Path, before: tuple[_Version, Task | None] | None, task_of: Callable[[Path], Task | None]
) -> tuple[_Version, Task | None] | None:
    """Return the task of a session file, cached until the file changes, since sources are polled every few seconds."""
    version = _version(path)
    if version is None:
        return None
    if before is not None and before[0] == version:
        return before
    try:
        return version, task_of(path)
    except (GhostError, OSError, ValueError):  # damaged, or gone meanwhile
        return version, None


def _unfinished(path: Path) -> Task | None:
    session, _ = load_session(path)
    if session.completion is not None:
        return None
    started_at = datetime.fromisoformat(session.created_at).timestamp()
    return Task(
        id=f"investigation:{session.session_id}",
        title=f"Finish the investigation {session.session_id}",
        goal="A root cause that records support",
        context=(
            f"{session.network}, {plural(session.turn_count, 'turn')}. ghost investigate --resume {session.session_id}"
        ),
        importance=0.8,
        uncertainty=0.8,
        created_ts=started_at,
        last_update_ts=path.stat().st_mtime,
        metadata={"session_id": session.session_id},
    )


def _cleanup(capture: UnreleasedCapture) -> Task:
    started_at = capture.created.timestamp() if capture.created else 0.0
    return Task(
        id=f"cleanup:{capture.task_id}",
        title=f"Clean up the capture {capture.task_id}",
        goal="All resources removed from Azure and this machine",
        context=f"{capture.target}, session {capture.session_id}: {_WHY[capture.kind]}; "
        f"{plural(capture.left, 'step')} left. "
        "The next ghost investigate here offers it",
        deadline_ts=started_at + CLEANUP_WITHIN_SECONDS,
        importance=0.7,
        uncertainty=0.2,
        created_ts=started_at,
        last_update_ts=started_at,
        metadata={"task_id": capture.task_id, "session_id": capture.session_id},
    )
