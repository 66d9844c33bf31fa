"""The schedule of watches beside a server or the background loop, and their drifts as tasks of the mind."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ghost.agent.session import Workspace
from ghost.agent.watches.watch_file import Drift, Watch, Watches
from ghost.agent.watches.watch_runs import INTENDED, WatchRuns
from ghost.errors import GhostError, WorkspaceError
from ghost.mind import Query, QueryStatus, Task
from ghost.text import plural

LOOK_SECONDS: Final = 5.0
"""Between looks for a watch that is due, and before a turn that the workspace's lock refused."""
END_SECONDS: Final = 5.0
"""That a run may take to end once it was told to."""

_log = logging.getLogger(__name__)


@contextmanager
def scheduled(runs: WatchRuns, end_command: Callable[[], object], look_seconds: float = LOOK_SECONDS) -> Iterator[None]:
    """Run due watches on one thread, one at a time. `end_command` ends the command that runs at the end."""
    stop = threading.Event()

    def turns() -> None:
        with suppress(KeyboardInterrupt):  # the command that ran was ended
            while not stop.is_set():
                _turn(runs)
                stop.wait(look_seconds)

    thread = threading.Thread(target=turns, name="drift-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        end_command()
        thread.join(END_SECONDS)


def _turn(runs: WatchRuns) -> None:
    try:
        runs.ask_open()
        runs.run_due()
    except WorkspaceError:  # an investigation works here: the next turn
        return
    except GhostError as error:
        _log.warning("a watch did not run: %s", error)
    except Exception:  # noqa: BLE001  one mistake must not end the schedule
        _log.exception("a watch failed")


class DriftTasks:
    """Drifts whose question nobody has answered, as tasks. `queries`: the questions of the store."""

    def __init__(self, workspace: Workspace, queries: Callable[[], Iterable[Query]]) -> None:
        self._watches = Watches(workspace.root)
        self._queries = queries

    def tasks(self, now: float) -> Iterable[Task]:  # noqa: ARG002 - the face of a source of tasks
        drifts = [(watch, drift) for watch in self._watches.all() for drift in watch.drifts]
        if not drifts:
            return []
        answered = {query.id for query in self._queries() if query.status is QueryStatus.ANSWERED}
        return [_task(watch, drift) for watch, drift in drifts if drift.query_id not in answered]


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
