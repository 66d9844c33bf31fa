"""Drifts of watched paths, as tasks of the mind."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ghost.agent.session import Workspace
from ghost.agent.watches.watch_file import Drift, Watch, Watches
from ghost.agent.watches.watch_runs import INTENDED
from ghost.mind import Query, QueryStatus, Task
from ghost.text import plural


class DriftTasks:
    """Drifts whose question expired unanswered, or was not asked, as tasks: an open question is a task by itself.

    `queries`: the questions of the store.
    """

    def __init__(self, workspace: Workspace, queries: Callable[[], Iterable[Query]]) -> None:
        self._watches = Watches(workspace.root)
        self._queries = queries

    def tasks(self, now: float) -> Iterable[Task]:
        drifts = [(watch, drift) for watch in self._watches.all() for drift in watch.drifts]
        if not drifts:
            return []
        told = {query.id for query in self._queries() if not _is_over(query, now)}
        return [_task(watch, drift) for watch, drift in drifts if drift.query_id not in told]


def _is_over(query: Query, now: float) -> bool:
    return query.status is QueryStatus.EXPIRED or (query.status is QueryStatus.OPEN and query.expires_ts <= now)


def _task(watch: Watch, drift: Drift) -> Task:
    first = drift.changes[0]
    more = f" (and {plural(len(drift.changes) - 1, 'other change')})" if len(drift.changes) > 1 else ""
    by = f" Changed: {'; '.join(drift.changed_by)}." if drift.changed_by else ""
    return Task(
        id=f"drift:{drift.session_id}",
        title=f"Check the changed path of watch {watch.id}: {watch.title}",
        goal=INTENDED,
        context=f"{first['flow']}: before {first['before']}; now {first['now']}{more}.{by} "
        f"ghost audit show {drift.session_id}",
        importance=0.8,
        uncertainty=0.6,
        created_ts=drift.at,
        last_update_ts=drift.at,
        metadata={"watch": watch.id, "session_id": drift.session_id, "query_id": drift.query_id},
    )
