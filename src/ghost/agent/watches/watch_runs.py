"""Runs of watches: the path read again by the same SAFE commands, compared, and what differs put before a person.

Each run is a session of its own, read-only. Its result is written before the watch is changed, and that before anybody
is asked: a run that is cut off is made again, and a drift that nobody was asked about is asked about at the next turn.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from ghost.agent.facts.second_walk import flows_of
from ghost.agent.network_reads import Shell, reads_through
from ghost.agent.session import Session, SessionPaths, Workspace
from ghost.agent.watches.path_snapshot import Snapshot, open_snapshot, snapshot_of, snapshot_of_reads
from ghost.agent.watches.snapshot_comparison import compared
from ghost.agent.watches.watch_file import WATCH, Drift, Watch, WatchedFlow, Watches, WatchRun
from ghost.agent.watches.watch_results import WatchResult, path_of, question_of, result_of, save_result, with_reasons
from ghost.errors import GhostError, UsageError
from ghost.net import (
    ACTIVITY_LOG,
    Answer,
    Network,
    Read,
    absorb,
    collect,
    read_interfaces,
)
from ghost.records import Clock, new_command_id, valid_session_id, workspace_lock
from ghost.shell import SafeExecShell
from ghost.text import one_line, plural

MAX_TOLD: Final = 3
"""Of the changes in a question; all are in the result."""
INTENDED: Final = "Was this intended?"
REMOVED: Final = "The watch was removed."

OpenShell = Callable[[str, str, str], Shell]
"""Opens a read-only shell: in whose lab, in which network, and with which id of its session."""


class Questions(Protocol):
    """Questions to a person."""

    def ask(self, question: str, reason: str) -> str:
        """Ask, and return the question's id; one that was answered before is not asked again."""

    def withdraw(self, query_id: str, why: str) -> bool:
        """Close a question, and return whether nobody has answered it."""

    def is_refused(self, query_id: str) -> bool:
        """Return whether a question was answered, and not with yes."""


class WatchRuns:
    """Makes the runs of a workspace's watches, one at a time. `questions`: None leaves them to a later run."""

    def __init__(self, workspace: Workspace, open_shell: OpenShell, clock: Clock, questions: Questions | None) -> None:
        self.watches = Watches(workspace.root)
        self._workspace = workspace
        self._open_shell = open_shell
        self._clock = clock
        self._questions = questions

    def add_investigation(self, session: Session, every_seconds: float) -> Watch:
        """Watch the path of a finished investigation, which is what its runs are compared with.

        Raises `SessionError` where it has no traffic to walk, `RecordError` where its records do not hold.
        """
        paths = session.paths(self._workspace.root)
        snapshot = snapshot_of(session, paths)
        open_snapshot(snapshot, paths, session.head("shell"))
        title = ", ".join(str(flow) for flow, _ in snapshot.senders)
        title += f" (and not {plural(snapshot.left_out, 'further flow')})" if snapshot.left_out else ""
        flows = [WatchedFlow.of(sender) for sender in snapshot.senders]
        of = session.session_id
        return self.watches.add(self._new(title, flows, session.network, every_seconds, of, of))

    def add_ends(
        self, ends: dict[str, Any], title: str, network: str, every_seconds: float, lab: str | None = None
    ) -> tuple[Watch, WatchResult]:
        """Read the path between two ends, and watch it. `lab`: whose lab it is in, if it has one.

        Raises `UsageError` where an end is not known.
        """
        session_id = new_command_id(WATCH, self._clock.now())
        probe = self._new(title, [], network, every_seconds, "", lab)
        with workspace_lock(self._workspace.root):
            execute = reads_through(self._open_shell(probe.lab, network, session_id), f"ghost watch: {title}")
            known = read_interfaces(execute)
            if known.failed:
                raise GhostError(f"the network interfaces could not be read ({'; '.join(known.failed.values())})")
            flows = [WatchedFlow.of(sender) for sender in flows_of(known, ends)]
            if not flows:
                raise UsageError(f"{title}: an end is no machine, interface, address or DNS name that was read")
            collect([flow.sender[0] for flow in flows], execute, known)
            result = result_of("new", flows, self._paths(session_id), None)
            watch = self.watches.add(self._new(title, flows, network, every_seconds, session_id, lab))
            result = result.model_copy(update={"watch": watch.id})
            save_result(self._paths(session_id), result)
            self._end(watch.id, result)
        return watch, result

    def run(self, watch_id: str) -> WatchResult:
        """Run a watch now. Raises `WorkspaceError` while another process works here, `UsageError` without the watch."""
        with workspace_lock(self._workspace.root):
            SafeExecShell.record_interrupted(self._workspace.audit_dir)
            session_id = new_command_id(WATCH, self._clock.now())
            with self.watches.changed(watch_id) as watch:
                watch.begun(session_id)
            result = self._result(watch, session_id)
            self._end(watch_id, result, self._undone(watch, result))
        self.ask_open()
        return result

    def run_due(self) -> WatchResult | None:
        """Run the watch that has been due longest; None if none is due. Raises as `run` does."""
        due = [watch for watch in self.watches.all() if watch.due_at <= self._now()]
        return self.run(min(due, key=lambda watch: watch.due_at).id) if due else None

    def ask_open(self) -> None:
        """Ask about each drift that nobody was asked about; one that undoes others withdraws their questions."""
        questions = self._questions
        if questions is None:
            return
        for watch in self.watches.all():
            for drift in (each for each in watch.drifts if each.query_id is None):
                with suppress(UsageError):  # the watch was removed meanwhile
                    self._ask(questions, self.watches.get(watch.id), drift)

    def remove(self, watch_id: str) -> tuple[Watch, list[str]]:
        """Remove a watch, and return it with its questions that were withdrawn."""
        asked = [drift.query_id for drift in self.watches.get(watch_id).drifts if drift.query_id]
        questions = self._questions
        withdrawn = [each for each in asked if questions.withdraw(each, REMOVED)] if questions is not None else []
        return self.watches.remove(watch_id), withdrawn

    def _ask(self, questions: Questions, watch: Watch, drift: Drift) -> None:
        undone = [each for each in watch.drifts if each.session_id in drift.undoes]
        why = f"The path is again as it was before, in {undone[0].compared_with}: {drift.session_id}." if undone else ""
        closed = [each.session_id for each in undone if each.query_id and questions.withdraw(each.query_id, why)]
        first = watch.drifts.index(undone[0]) if undone else 0
        led_here = watch.drifts[first - 1].query_id if first else None
        is_bad = self._stops(watch, drift) if led_here is None else questions.is_refused(led_here)
        if closed and closed[0] == undone[0].session_id and not is_bad:
            # Nobody had said that what is undone was intended, nor that what is back was not;
            # and where the watch began with that, nothing that passed is stopped by it.
            with self.watches.changed(watch.id) as changed:
                changed.forget([*closed, drift.session_id])
            return
        query_id = questions.ask(question_about(watch, drift), _reason(drift))
        try:
            with self.watches.changed(watch.id) as changed:
                changed.forget(closed)
                for each in changed.drifts:
                    each.query_id = query_id if each.session_id == drift.session_id else each.query_id
        except UsageError:
            questions.withdraw(query_id, REMOVED)
            raise

    # --- one run

    def _result(self, watch: Watch, session_id: str) -> WatchResult:
        """Return what a run found, written beside its records; not known where it could not be made."""
        paths = self._paths(session_id)
        before = self._paths(watch.baseline)
        question = question_of(watch.id, watch.flows, watch.baseline)
        try:
            path_of(before, watch.flows)  # whose records must hold
            snapshot = snapshot_of_reads(watch.baseline, before, watch.senders)
            shell = self._open_shell(watch.lab, watch.network, session_id)
            network = _read_again(snapshot, reads_through(shell, f"{question}: {watch.title}"))
            result = with_reasons(result_of(watch.id, watch.flows, paths, before), network.failed)
            if result.outcome == "drift":
                shell.execute(
                    {"command": shlex.join(ACTIVITY_LOG), "reasoning": "The path changed: I read who did it."}
                )
                result = result_of(watch.id, watch.flows, paths, before)
            save_result(paths, result)
        except GhostError as error:
            why = one_line(str(error), 300)
            return WatchResult(
                watch=watch.id, session_id=session_id, outcome="not_known", why=why, flows=watch.flows, not_known=[why]
            )
        return result

    def _undone(self, watch: Watch, result: WatchResult) -> list[str]:
        """Return the drifts since the path was as it is now; none where it is not known to have been so."""
        for number, drift in enumerate(watch.drifts if result.outcome == "drift" else ()):
            with suppress(GhostError):  # an earlier snapshot that does not hold is as nothing
                before, _ = path_of(self._paths(drift.compared_with), watch.flows)
                now, _ = path_of(self._paths(result.session_id), watch.flows)
                if compared(before, now, watch.senders).outcome == "no_drift":
                    return [each.session_id for each in watch.drifts[number:]]
        return []

    def _stops(self, watch: Watch, drift: Drift) -> bool:
        """Return whether traffic is stopped with a drift that was not before; not where their records do not hold."""
        with suppress(GhostError):
            before, _ = path_of(self._paths(drift.compared_with), watch.flows)
            now, _ = path_of(self._paths(drift.session_id), watch.flows)
            pairs = zip(before.walks, now.walks, strict=True)
            return any(was.first_stop is None and walked.first_stop is not None for was, walked in pairs)
        return False

    def _end(self, watch_id: str, result: WatchResult, undone: Sequence[str] = ()) -> None:
        run = WatchRun(
            session_id=result.session_id,
            at=self._now(),
            outcome=result.outcome,
            why=result.why,
            is_whole=result.is_whole,
        )
        with suppress(UsageError), self.watches.changed(watch_id) as watch:  # it may have been removed meanwhile
            watch.ended(run)
            if result.outcome == "drift" and result.compared_with is not None:
                found = Drift(
                    session_id=result.session_id,
                    compared_with=result.compared_with,
                    at=run.at,
                    changes=result.changes,
                    changed_by=result.changed_by,
                    undoes=list(undone),
                )
                watch.note(found)
            kept = watch.kept_sessions
            gone = [each for each in watch.runs if each.session_id not in kept]
            gone = [each for each in gone if not _is_cited(self._workspace.audit_dir, each.session_id)]
            for each in gone:
                remove_run(self._paths(each.session_id))
            watch.runs = [each for each in watch.runs if each not in gone]

    def _new(
        self,
        title: str,
        flows: list[WatchedFlow],
        network: str,
        every_seconds: float,
        baseline: str,
        investigation: str | None,
    ) -> Watch:
        return Watch(
            id="new",
            title=title,
            flows=flows,
            network=network,
            investigation=investigation,
            every_seconds=every_seconds,
            due_at=self._now(),
            baseline=baseline,
        )

    def _paths(self, session_id: str) -> SessionPaths:
        return SessionPaths(self._workspace.audit_dir, session_id)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def question_about(watch: Watch, drift: Drift) -> str:
    """Return the question about a drift: the same for the same difference of the same watch."""
    shown = [f"{each['flow']}: before {each['before']}; now {each['now']}." for each in drift.changes[:MAX_TOLD]]
    more = [f"And {len(drift.changes) - MAX_TOLD} more."] if len(drift.changes) > MAX_TOLD else []
    return " ".join([f"Watch {watch.id} found a changed path.", *shown, *more, INTENDED])


def _reason(drift: Drift) -> str:
    by = f"Changed: {'; '.join(drift.changed_by)}. " if drift.changed_by else "Who changed it is not known. "
    return f"{by}Records: {drift.compared_with} before, {drift.session_id} now."


def _read_again(snapshot: Snapshot, execute: Callable[[Read], Answer]) -> Network:
    """Make the reads of a snapshot again, then those that the walks need now."""
    network = Network()
    for each in snapshot.reads:
        network = absorb(network, each.read, execute(each.read))
    return collect([flow for flow, _ in snapshot.senders], execute, network)


def remove_run(paths: SessionPaths) -> None:
    """Remove the records of a run of a watch; what is no run's stays."""
    if not (paths.session_id.startswith(WATCH) and valid_session_id(paths.session_id)):
        return
    files: Iterable[Path] = (
        *paths.audit_dir.glob(f"*_{paths.session_id}.*"),
        *paths.outputs.glob(f"{paths.session_id}_*.txt"),
    )
    for file in files:
        file.unlink(missing_ok=True)


def _is_cited(audit_dir: Path, session_id: str) -> bool:
    """Return whether a report names a run."""
    for report in audit_dir.glob("ghost_rca_*.json"):
        with suppress(OSError):
            if session_id in report.read_text(encoding="utf-8", errors="replace"):
                return True
    return False
