"""Checks of fixes that are due: the traffic walked again by what SAFE commands read now.

Each check is a session of its own, read-only. Its result is on record before it is told: one that is cut off is made
again, and one that was not told is told at the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ghost.agent.audit_evidence import Evidence
from ghost.agent.fix_log import CHECK, FixLog, Outcome, check_question, checked, read_again
from ghost.agent.fixes import failing_traffic
from ghost.agent.network_reads import reads_through
from ghost.agent.open_work import UncheckedFixes
from ghost.agent.session import Session, Workspace, load_session
from ghost.agent.verification import verify_session
from ghost.agent.watches import OpenShell
from ghost.errors import GhostError, SessionError
from ghost.records import Clock, new_command_id, workspace_lock
from ghost.shell import SafeExecShell
from ghost.text import one_line

Tell = Callable[[Session, Mapping[str, Any]], None]
"""Tells of a check on record, of the fix of a session."""


class FixCheckRuns:
    """Makes the checks of a workspace, one at a time."""

    def __init__(self, workspace: Workspace, open_shell: OpenShell, clock: Clock, tell: Tell) -> None:
        self._workspace = workspace
        self._open_shell = open_shell
        self._clock = clock
        self._tell = tell
        self._log = FixLog(workspace)
        self._unchecked = UncheckedFixes(workspace)

    def run_due(self) -> None:
        """Check the fix that has been due longest. Raises `WorkspaceError` while another process works here."""
        now = self._clock.now().timestamp()
        waiting = [task.metadata for task in self._unchecked.tasks(now) if task.metadata["check_due_ts"] <= now]
        if waiting:
            self._run(str(min(waiting, key=lambda each: float(each["check_due_ts"]))["session_id"]))
            self.tell_open()

    def tell_open(self) -> None:
        """Tell of each check that was not told of. Raises as `run_due` does."""
        for record in self._log.untold():
            with suppress(SessionError), workspace_lock(self._workspace.root):  # a session that is gone
                session, _ = load_session(self._workspace.find(str(record["session_id"])))
                self._tell(session, record)
                self._log.append("told", session.session_id, str(record["records"]), self._clock.now())

    def _run(self, session_id: str) -> None:
        with workspace_lock(self._workspace.root):
            SafeExecShell.record_interrupted(self._workspace.audit_dir)
            records = new_command_id(CHECK, self._clock.now())
            self._log.append("begun", session_id, records, self._clock.now())
            try:
                outcome = self._checked(session_id, records)
            except GhostError as error:
                outcome = "not_known", one_line(str(error), 300)
            self._log.append("checked", session_id, records, self._clock.now(), outcome)

    def _checked(self, session_id: str, records: str) -> Outcome:
        session, intact = load_session(self._workspace.find(session_id))
        paths = session.paths(self._workspace.root)
        check_records(session, intact=intact, workspace=self._workspace)
        fix = failing_traffic(session, Evidence(paths.shell_audit))
        shell = self._open_shell(session_id, session.network, records)
        return checked(read_again(fix, reads_through(shell, check_question(session_id))), fix)


def check_records(session: Session, *, intact: bool, workspace: Workspace) -> None:
    """Raise `SessionError` where the records of a session are no ground to judge a network on."""
    paths, of = session.paths(workspace.root), session.session_id
    checks = verify_session(session, paths, checksum_holds=intact)
    if broken := [check.name for check in checks if not check.ok]:
        raise SessionError(f"the records of {of} do not hold ({', '.join(broken)}): see ghost audit verify {of}")
