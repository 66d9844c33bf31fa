"""`ghost apply`: runs the walked fix of a finished session after one approval, and walks the path again.

With `--check` it changes nothing: it says whether the traffic passes now.

Exit status: 0 mended, 3 not known, 4 not mended, 1 not applied, or a command failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from rich.console import Console
from rich.text import Text

from ghost.agent import (
    APPLY,
    Evidence,
    Fix,
    FixLog,
    Session,
    SessionPaths,
    Step,
    Workspace,
    check_question,
    check_records,
    checked,
    drift,
    failing_traffic,
    fix_of,
    load_session,
    read_again,
    steps_for,
    verdict,
    walked,
)
from ghost.cli.approvals import Gate, interactive_gate
from ghost.cli.reads_on_terminal import shown_reads
from ghost.cli.session_opening import own_lab_of
from ghost.cli.session_records import option_of, workspace_of
from ghost.cli.shell_errors import failure_text
from ghost.cli.terminal import to_stderr, to_stdout
from ghost.config import Settings
from ghost.errors import GhostError, SessionError, UsageError
from ghost.lab import lab_behind_az, lab_programs
from ghost.net import Mend, Network
from ghost.records import SystemClock, new_command_id, workspace_lock
from ghost.shell import ApprovalRequest, HitlDecision, SafeExecShell
from ghost.text import plural, visible

CHANGE_SECONDS: Final = 900
"""That a change may take: az waits until Azure has carried it out."""
STATUS: Final = {"mended": 0, "not_known": 3, "not_mended": 4}
"""Exit status of an outcome; 1 of any other."""
CONFIGURATION_ONLY: Final = (
    "By Azure's configuration; it does not show the guest's own firewall and services, nor loss on the wire."
)
NOBODY: Final = "no terminal to ask on"

State = Literal["not_run", "done", "failed", "denied"]
_MARKS: Final[dict[State, tuple[str, str]]] = {
    "done": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "denied": ("✗", "yellow"),
    "not_run": ("-", "dim"),
}


@dataclass(frozen=True)
class Request:
    session: str
    approve_each: bool = False
    read_only: bool = False
    as_json: bool = False
    check: bool = False
    """Change nothing: read again whether the traffic passes, and put the answer on record."""


@dataclass
class Run:
    """A command of the fix, and what became of it."""

    command: str
    undo: str | None
    change: str
    state: State = "not_run"
    audit_id: str | None = None
    why: str = ""


@dataclass
class Applied:
    """What `--json` prints. `outcome`: mended, not_mended, not_known, drifted, denied or failed."""

    session_id: str
    """Of the records of this run."""
    investigation: str
    network: str
    outcome: str = "not_known"
    why: str = ""
    commands: list[Run] = field(default_factory=list)
    flows: list[dict[str, str]] = field(default_factory=list)
    besides: list[str] = field(default_factory=list)
    """Causes of the report that these commands do not mend."""

    @property
    def undo(self) -> list[str]:
        """What undoes the commands that ran, to be run in this order."""
        return [run.undo for run in reversed(self.commands) if run.state == "done" and run.undo]


def apply(request: Request, workspace_option: Path | None, gate: Gate | None = None) -> int:
    """Apply the fix of a session. `gate`: who is asked, in place of the terminal. Raises `SessionError` without one."""
    settings = Settings(workspace=workspace_option) if workspace_option else Settings()
    if settings.private:
        raise UsageError("a walk compares addresses, which private mode hides: unset GHOST_PRIVATE for ghost apply")
    workspace, file = workspace_of(request.session, workspace_option, settings)
    session, intact = load_session(file)
    paths = session.paths(workspace.root)
    _check(session, workspace, intact)
    settings = replace(settings, workspace=workspace.root)
    with workspace_lock(workspace.root):
        return _Application(request, settings, session, paths, gate).carry_out()


def _check(session: Session, workspace: Workspace, intact: bool) -> None:
    """Raise `SessionError` where the records are no ground to change a network on."""
    of, paths = f"{session.session_id}{option_of(workspace.root)}", session.paths(workspace.root)
    if session.completion is None or session.rca_report_path is None:
        raise SessionError(f"{session.session_id} is not finished: ghost investigate --resume {of}")
    if paths.anonymization_map.exists() or Evidence(paths.shell_audit).is_masked:
        raise SessionError(
            f"{session.session_id} is private, and a walk compares real addresses: run the commands of "
            f"ghost report {of} by hand"
        )
    check_records(session, intact=intact, workspace=workspace)


class _Application:
    """One run from the recorded fix to the verdict. The workspace is locked around it."""

    def __init__(
        self, request: Request, settings: Settings, session: Session, paths: SessionPaths, gate: Gate | None
    ) -> None:
        self._request = request
        self._workspace = Workspace(settings.workspace)
        self._out = to_stderr() if request.as_json else to_stdout()
        self._session, self._evidence = session, (evidence := Evidence(paths.shell_audit))
        self._fix: Fix = failing_traffic(session, evidence) if request.check else fix_of(session, evidence)
        self._gate = gate or _gate(self._out)
        self._option = option_of(settings.workspace)
        self._told = Applied(
            new_command_id(APPLY, SystemClock().now()),
            session.session_id,
            session.network,
            besides=list(self._fix.besides),
        )
        az_lab = lab_behind_az()
        lab = own_lab_of(session.session_id, session.network, settings.workspace, az_lab)
        self._question = check_question(session.session_id) if request.check else f"ghost apply {session.session_id}"
        self._log = FixLog(self._workspace)
        self._shell = SafeExecShell(
            self._told.session_id,
            approve=self._gate.approve,
            read_only=request.read_only or request.check,
            audit_dir=settings.audit_dir,
            timeout_seconds=settings.command_timeout_seconds,
            roots=[Path.cwd(), settings.workspace],
            **lab_programs(lab or az_lab, own_az=lab is None),
        )

    def carry_out(self) -> int:
        """Returns the exit status."""
        told = self._told
        what = "Check of the fix" if self._request.check else "Fix"
        self._say(
            f"{what} of {told.investigation}: {self._flows()}   {told.network}",
            "bold",
        )
        if self._request.check:
            self._keep("begun")
            network = self._read()
            told.flows = walked(network, self._fix.senders)
            told.outcome, told.why = checked(network, self._fix)
            self._keep("checked")
            self._end()
            return STATUS[told.outcome]
        steps = self._checked_steps()
        told.commands = [Run(**asdict(step)) for step in steps]
        try:
            if steps:
                self._show_commands()
                self._run_commands()
            if any(run.state in ("done", "failed") for run in told.commands):
                self._judge(self._read())
                self._keep("applied")
        except (KeyboardInterrupt, GhostError):
            told.outcome, told.why, told.flows = "not_known", "the path was not walked again", []
            if any(run.state in ("done", "failed") for run in told.commands):
                self._keep("applied")
            self._end()
            raise
        self._end()
        return STATUS.get(told.outcome, 1)

    def _read(self, network: Network | None = None, mends: Sequence[Mend] = ()) -> Network:
        return read_again(self._fix, shown_reads(self._shell, self._question), network, mends)

    def _checked_steps(self) -> Sequence[Step]:
        """Return the commands, made from what is read now; none where that is not what they were recommended on."""
        told, senders = self._told, self._fix.senders
        network = self._read()
        told.flows = walked(network, senders)
        outcomes = {row["outcome"]: row["why"] for row in told.flows}
        if outcomes.keys() == {"passes"}:
            told.outcome, told.why = "drifted", "it passes already"
            return ()
        if "unknown" in outcomes:
            told.why = f"what decides could not be read again: {outcomes['unknown']}"
            return ()
        if differing := drift(self._fix.network, network, senders):
            before, now = (text or "not on the path" for text in differing[0])
            more = f" (and {plural(len(differing) - 1, 'other difference')})" if len(differing) > 1 else ""
            told.outcome, told.why = "drifted", f"in the session: {before}; now: {now}{more}"
            return ()
        try:
            steps, _ = steps_for(self._read(network, self._fix.mends), senders)
        except ValueError as why:
            told.why = str(why)
            return ()
        if _commands(steps) == _commands(self._fix.steps):
            return steps
        told.outcome, told.why = "drifted", f"it would take other commands now: {'; '.join(_commands(steps))}"
        return ()

    def _run_commands(self) -> None:
        told = self._told
        if self._shell.is_read_only:
            told.outcome, told.why = "denied", "read-only: nobody is asked"
            return
        self._keep("begun")
        lasting = [str(number) for number, run in enumerate(told.commands, 1) if run.undo is None]
        reason = f"The fix of {told.investigation}: with it a walk of {self._flows()} passes."
        reason += f" NO COMMAND UNDOES {', '.join(lasting)}." if lasting else ""
        if not self._request.approve_each:
            self._shell.approve_plan([run.command for run in told.commands], reason)
        for number, run in enumerate(told.commands, 1):
            request = {"command": run.command, "reasoning": f"{reason} Here: {run.change}."}
            run.state, run.why = "failed", "interrupted"
            is_done = _note(run, self._shell.execute({**request, "timeout_seconds": CHANGE_SECONDS}))
            self._say_state(number, run)
            if not is_done:
                told.outcome, told.why = run.state, f"command {number}: {run.why}" if number > 1 else run.why
                return

    def _judge(self, network: Network) -> None:
        """Set the outcome by a walk of what is read now; a command that failed stays what is told first."""
        told = self._told
        told.flows = walked(network, self._fix.senders)
        if told.outcome not in ("failed", "denied"):
            told.outcome, told.why = verdict(network, self._fix)

    def _keep(self, kind: Literal["begun", "applied", "checked"]) -> None:
        """Put on record what became of the fix: it opens the task to check it, or closes it."""
        told, now = self._told, SystemClock().now()
        outcome = ("", "") if kind == "begun" else (told.outcome, told.why)
        self._log.append(kind, told.investigation, told.session_id, now, outcome)

    # -- what a person sees

    def _flows(self) -> str:
        return ", ".join(str(flow) for flow, _ in self._fix.senders)

    def _say(self, text: str, style: str = "") -> None:
        self._out.print(Text(visible(text), style=style), soft_wrap=True)

    def _show_commands(self) -> None:
        self._say("Read again: what decides is as it was. With these commands a walk passes:")
        for number, run in enumerate(self._told.commands, 1):
            self._say(f"  {number}. {run.command}")
            self._say(f"     {_undone_by(run)}", "dim" if run.undo else "bold yellow")
        for cause in self._told.besides:
            self._say(f"Not mended by them: {cause}", "yellow")

    def _say_state(self, number: int, run: Run) -> None:
        mark, style = _MARKS[run.state]
        record = f"  #{run.audit_id.rpartition('_')[2]}" if run.audit_id else ""
        self._say(f"{mark} {number}. {run.state.replace('_', ' ')}{f': {run.why}' if run.why else ''}{record}", style)

    def _end(self) -> None:
        told = self._told
        if self._request.as_json:
            print(json.dumps({**asdict(told), "undo": told.undo}, indent=2))
            return
        style = {"mended": "bold green", "not_known": "bold yellow"}.get(told.outcome, "bold red")
        self._say(f"{told.outcome.replace('_', ' ').upper()}: {told.why.rstrip('.')}.", style)
        for line in self._way_on():
            self._say(line)
        self._say(f"Records: ghost audit show {told.session_id}{self._option}", "dim")

    def _way_on(self) -> Iterator[str]:
        told = self._told
        done = [run for run in told.commands if run.state == "done"]
        failed = [run for run in told.commands if run.state == "failed"]
        if not (done or failed):
            yield "Nothing was changed."
        elif told.outcome in ("failed", "denied"):
            yield from (f"Read again: {row['flow']} is {row['outcome']}{_because(row)}." for row in told.flows)
        elif told.outcome == "mended":
            yield CONFIGURATION_ONLY
        yield from (f"It may have taken effect all the same: {run.command}; {_undone_by(run)}" for run in failed)
        if told.undo:
            yield "To undo it, in this order:"
            yield from (f"  {command}" for command in told.undo)
        yield from (f"No command undoes: {run.command}" for run in done if run.undo is None)
        if self._is_to_be_run:
            yield f"Run the fix: ghost apply {told.investigation}{self._option}"
        elif told.outcome in ("drifted", "not_mended", "not_known") and any(
            row["outcome"] != "passes" for row in told.flows
        ):
            yield "Investigate anew: ghost investigate --fresh with the symptom as it is now."

    @property
    def _is_to_be_run(self) -> bool:
        """Whether a check found what the report found, and its fix was never run."""
        results = self._log.results().get(self._told.investigation, [])
        if self._told.outcome != "not_mended" or any(result["kind"] == "applied" for result in results):
            return False
        with suppress(SessionError):
            return self._request.check and bool(fix_of(self._session, self._evidence).steps)
        return False


def _because(row: dict[str, str]) -> str:
    return f": {row['why']}" if row["why"] else ""


def _undone_by(run: Run) -> str:
    return f"undone by: {run.undo}" if run.undo else "NO COMMAND UNDOES IT"


def _commands(steps: Sequence[Step]) -> list[str]:
    return [step.command for step in steps]


def _note(run: Run, response: dict[str, Any]) -> bool:
    """Set what became of a command. Returns whether it succeeded."""
    run.audit_id = str(response["audit_id"])
    if response["status"] == "denied":
        run.state, run.why = "denied", str(response["denial_reason"] or "not approved")
    elif response["status"] != "completed" or response["exit_code"] != 0:
        run.state, run.why = "failed", failure_text(run.command, response)
    else:
        run.state, run.why = "done", ""
        if response["action"] == "user_modified":
            run.undo, run.why = None, "another command, which you wrote, ran in its place"
    return run.state == "done"


class _NobodyGate(Gate):
    """Denies: a change of a network is approved by a person at a terminal."""

    def approve(self, request: ApprovalRequest) -> HitlDecision:  # noqa: ARG002
        return HitlDecision("deny", reason=NOBODY)


def _gate(out: Console) -> Gate:
    return interactive_gate(out) if sys.stdin.isatty() else _NobodyGate()
