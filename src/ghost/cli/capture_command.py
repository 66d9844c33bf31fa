"""`ghost capture`: the orchestrator of packet captures for a person, with the approvals of an investigation.

Exit status: 0 done or still running, 3 the capture ended without a result, 1 failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ghost.cli.approvals import gate_of
from ghost.cli.az_access import check_access
from ghost.cli.capture_settings import orchestrator_of
from ghost.cli.leftovers import tell_what_is_left
from ghost.cli.narration import NarratedShell, Narration
from ghost.cli.session_opening import network_of_az, own_lab_of
from ghost.cli.session_records import open_workspace, option_of
from ghost.cli.shell_errors import failure_text
from ghost.cli.terminal import is_interactive, to_stderr, to_stdout
from ghost.cloud import ANY_ACCOUNT, CaptureTask, capture_tasks, check_target
from ghost.config import Settings
from ghost.errors import GhostError, UsageError
from ghost.lab import RunningLab, lab_behind_az, lab_programs, load_case
from ghost.lab import reopen as reopen_lab
from ghost.lab import start as start_lab
from ghost.net import name_of
from ghost.records import SystemClock, elapsed, new_command_id, private_dir, workspace_lock
from ghost.report import page_of
from ghost.shell import SafeExecShell
from ghost.text import did_you_mean, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURE: Final = "capture_"
"""The beginning of the ids of its sessions."""
NO_RESULT: Final = 3
PENDING: Final = "task_pending"
MACHINE: Final = "Microsoft.Compute/virtualMachines"
LAST: Final = "last"
Answer = dict[str, Any]
"""Of the orchestrator."""


@dataclass(frozen=True)
class Asked:
    """What every one of the commands is given."""

    workspace: Path | None
    as_json: bool
    approve_each: bool = False


def start(
    target: str,
    pair: str | None,
    group: str | None,
    lab: str | None,
    reason: str,
    options: Mapping[str, Any],
    asked: Asked,
) -> int:
    """Start a capture at a machine, or at both ends of a path. `options`: settings of captures by name."""
    with _session(asked, lab=lab, options=options) as session:
        machines = [session.machine(name, group) for name in (target, pair) if name is not None]
        request = {
            "intent": "capture_traffic",
            "target": " to ".join(machine["id"] for machine in machines),
            "investigation_context": reason,
            "parameters": {"resource_group": machines[0]["group"], "storage_account": ANY_ACCOUNT},
        }
        return session.tell([session.ask(request)])


def check(task_id: str, asked: Asked) -> int:
    """Look at a capture for less than a minute; download and analyse it if it has stopped."""
    with _session(asked, task_id) as session:
        return session.tell(session.checked())


def fetch(task_id: str, asked: Asked) -> int:
    """Wait for a capture to stop; then download and analyse it, both ends together."""
    with _session(asked, task_id) as session:
        answers = session.checked()
        while any(each["status"] == PENDING for each in answers) and not any(each["user_denied"] for each in answers):
            answers = session.checked()
        return session.tell(answers)


def cancel(task_id: str, reason: str, asked: Asked) -> int:
    """End a capture early, both ends of it, and delete what it made in Azure."""
    with _session(asked, task_id) as session:
        active = [end.task_id for end in session.ends if end.active]
        if not active:
            of = f"{session.ends[0].task_id}{session.of}"
            raise UsageError(f"this capture has ended: what it left is deleted with ghost capture cleanup {of}")
        request = {"intent": "cancel_task", "reason": reason}
        return session.tell_cleanup([session.ask({**request, "task_id": task_id}) for task_id in active])


def cleanup(task_id: str, include_artifacts: bool, asked: Asked) -> int:
    """Delete a finished capture and its blob in Azure; with its reports here, if told so."""
    with _session(asked, task_id) as session:
        if any(end.active for end in session.ends):
            of = f"{session.ends[0].task_id}{session.of}"
            raise UsageError(f"this capture has not ended: ghost capture fetch {of}, or ghost capture cancel {of}")
        request = {"intent": "cleanup_task", "include_artifacts": include_artifacts}
        return session.tell_cleanup([session.ask({**request, "task_id": end.task_id}) for end in session.ends])


def list_captures(asked: Asked, *, in_azure: bool) -> int:
    """List the captures of a workspace, also those of investigations; with what Azure holds without a record."""
    workspace = open_workspace(asked.workspace, Settings())
    unrecorded: list[dict[str, Any]] = []
    if in_azure:
        with _session(asked) as session:
            session.orchestrator.search_azure()
            found = session.ask({"intent": "list_tasks"})["orphans"]
            unrecorded = [row for row in found if row["kind"] in ("untracked_azure", "untracked_blob")]
    tasks = capture_tasks(workspace.audit_dir)
    if asked.as_json:
        print(json.dumps({"captures": list(map(_row, tasks)), "unrecorded": unrecorded}, indent=2))
        return 0
    now = SystemClock().now()
    for task in tasks:
        age = elapsed(task.seconds_since_creation(now) or 0)
        print(visible(f"{task.task_id}  {task.target_name}  {task.outcome or task.state}, {age} ago"))
        row = _row(task)
        for name, text in {"left": ", ".join(row["left"]), "capture": row["local_pcap_path"]}.items():
            if text:
                print(visible(f"  {name}: {text}"))
    for orphan in unrecorded:
        running = ", may still be recording" if orphan["running"] else ""
        print(visible(f"{orphan['resource']}  without a record here, {orphan['owner'] or 'owner unknown'}{running}"))
        if orphan["command"] and not orphan["running"]:
            print(visible(f"  delete it, if it is yours: ghost shell run {shlex.quote(orphan['command'])}"))
    if not tasks and not unrecorded:
        print(f"No captures in {workspace.root}. Start one: ghost capture start VM")
    return 0


def _row(task: CaptureTask) -> dict[str, Any]:
    pcap = task.local_pcap_path
    return {
        "task_id": task.task_id,
        "session_id": task.session_id,
        "target": task.target,
        "state": task.state,
        "outcome": task.outcome,
        "paired_task_id": task.paired_task_id,
        "left": [] if task.settled else [step.name for step in task.remaining],
        "local_pcap_path": pcap if pcap and Path(pcap).is_file() else None,
    }


class _Session:
    """The orchestrator, its shell and what is shown, for the session of one capture."""

    def __init__(
        self, settings: Settings, session_id: str, ends: list[CaptureTask], lab: RunningLab | None, asked: Asked
    ) -> None:
        self.ends, self.session_id, self.of = ends, session_id, option_of(settings.workspace)
        self._asked = asked
        self._narration = Narration(
            to_stderr() if asked.as_json else to_stdout(), interactive=is_interactive() and not asked.as_json
        )
        self._narration.simulated = lab is not None
        behind_az = None if lab else lab_behind_az()
        shell = SafeExecShell(
            session_id,
            approve=lambda request: self._narration.decide(
                gate_of(self._narration.rich, lab, settings).approve, request
            ),
            read_only=settings.read_only,
            audit_dir=str(settings.audit_dir),
            timeout_seconds=settings.command_timeout_seconds,
            anonymization_enabled=settings.private,
            roots=[Path.cwd(), settings.workspace, settings.capture_dir],
            reads_only=[settings.capture_dir],
            **lab_programs(lab or behind_az, own_az=lab is None),
        )
        self._narration.real = shell.real if settings.private else str
        clock = lab.clock if lab else SystemClock()
        self._shell = narrated = NarratedShell(shell, self._narration, clock)
        network = lab.briefing.network if lab else network_of_az(behind_az)
        self._narration.banner(f"GHOST  Session: {session_id}", f"Network: {network}")
        check_access(narrated, simulated=lab is not None)
        approve_plan = None if asked.approve_each else narrated.approve_plan
        self.orchestrator = orchestrator_of(
            settings, narrated, session_id, clock, self._narration.announce, approve_plan, network
        )

    def ask(self, request: dict[str, Any]) -> Answer:
        """Raises `UsageError` for a request that is none, `GhostError` where it cannot be carried out."""
        answer = self.orchestrator.orchestrate(request)
        if answer["status"] == "error":
            wrong = answer["error"] in ("invalid_parameter", "missing_parameter")
            raise (UsageError if wrong else GhostError)(str(answer["message"]))
        return answer

    def machine(self, named: str, group: str | None) -> dict[str, str]:
        """Return id and group of a machine; `group` tells which, where the name is in several. Raises `UsageError`."""
        if check_target(named).startswith("/"):
            return {"id": named, "group": named.split("/")[4]}
        query = f"[?type=='{MACHINE}'].{{id:id,group:resourceGroup}}"
        found: list[dict[str, str]] = json.loads(self._listed("-n", named, "--query", query, "-o", "json"))
        fitting = [row for row in found if group is None or row["group"].lower() == group.lower()]
        if len(fitting) == 1:
            return fitting[0]
        groups = ", ".join(row["group"] for row in found[:5]) + (", ..." if len(found) > 5 else "")
        if fitting:
            raise UsageError(f"{named} is in several groups: say which with -g: {groups}")
        if found:
            raise UsageError(f"{named} is not in group {str(group)[:100]}: say where with -g: {groups}")
        names = self._listed("--resource-type", MACHINE, "--query", "join(' ',[].name)", "-o", "tsv")
        near = did_you_mean(named, set(names.split()))
        raise UsageError(f"az sees no virtual machine {named[:100]!r}: {near}check the name and az account show")

    def _listed(self, *options: str) -> str:
        command = shlex.join(["az", "resource", "list", *options])
        response = self._shell.execute({"command": command, "reasoning": "Which machine is meant."})
        if response["exit_code"] != 0:
            raise GhostError(f"az did not list machines: {failure_text(command, response)}")
        return str(response["output"])

    def checked(self) -> list[Answer]:
        """Return the answers about the task and the other end of its path, which wait for each other."""
        requests = [{"intent": "check_task", "task_id": end.task_id} for end in self.ends]
        answers = [self.ask(each) for each in requests]
        if len({each["status"] == PENDING for each in answers}) == 2 and not any(a["user_denied"] for a in answers):
            answers = [self.ask(each) for each in requests]
        return answers

    def tell(self, answers: list[Answer]) -> int:
        """Show the answers about a task, and what the capture shows. Returns the exit status."""
        self._show(answers)
        if not self._asked.as_json:
            self._show_results(answers)
        return 0 if any(each["status"] in (PENDING, "task_completed") for each in answers) else NO_RESULT

    def tell_cleanup(self, answers: list[Answer]) -> int:
        self._show(answers)
        kept = any(answer["cleanup_status"] in ("partial", "pending") for answer in answers)
        return GhostError.exit_status if kept else 0

    def _show(self, answers: list[Answer]) -> None:
        self._narration.flush()
        if self._asked.as_json:
            print(json.dumps({"session_id": self.session_id, "captures": answers}, indent=2))
            return
        for answer in answers:
            self._narration.line(f"{name_of(answer['target'])}: {answer['message']}")
        open_ones = [answer for answer in answers if answer["status"] == PENDING]
        cleanable = [answer for answer in answers if answer["cleanup_status"] in ("pending", "partial")]
        for answer in open_ones[:1]:
            self._narration.line(f"  Next: ghost capture fetch {answer['task_id']}{self.of}")
            self._narration.line(f"  End it early: ghost capture cancel {answer['task_id']}{self.of}", style="dim")
        for answer in cleanable[:1] if not open_ones else []:
            self._narration.line(f"  Next: ghost capture cleanup {answer['task_id']}{self.of}")

    def _show_results(self, answers: list[Answer]) -> None:
        """Show the summary of what was found, and the files; both ends share those of their comparison."""
        files: dict[str, str] = {}
        for answer in answers:
            found = answer["result"] or {}
            files |= {path: name for name, path in found.items() if path and name.endswith("_path")}
            if (page := page_of(str(found.get("report_path") or "-"))).is_file():
                files[str(page)] = "page"
        for summary in [path for path, name in files.items() if name == "executive_summary_path"]:
            command = shlex.join(["cat", summary])
            read = self._shell.execute({"command": command, "reasoning": "What the capture shows."})
            text = read["output"].partition("\n## ")[0] if read["exit_code"] == 0 else f"{summary} cannot be read."
            self._narration.line(f"\n{text.strip()}\n")
        for path, name in files.items():
            self._narration.line(f"  {name.removesuffix('_path').replace('_', ' ')}: {path}")


@contextmanager
def _session(
    asked: Asked, task_id: str | None = None, lab: str | None = None, options: Mapping[str, Any] | None = None
) -> Iterator[_Session]:
    """A new session, or that of the task if this command began it. Locks the workspace."""
    given = {"workspace": asked.workspace} if asked.workspace else {}
    settings = Settings(**given, **(options or {}))
    settings = replace(settings, workspace=open_workspace(asked.workspace, settings).root)
    scenario = load_case(lab) if lab else None
    with workspace_lock(settings.workspace):
        ends = _ends(settings, task_id) if task_id is not None else []
        began = ends[0].session_id if ends else new_command_id(CAPTURE, SystemClock().now())
        session_id = began if began.startswith(CAPTURE) else new_command_id(CAPTURE, SystemClock().now())
        private_dir(settings.audit_dir)
        directory = settings.workspace / "lab" / began
        running: RunningLab | None = None
        if scenario:
            running = start_lab(scenario, directory, speed=settings.lab_speed)
        elif ends and (network := ends[0].network):
            running = own_lab_of(began, network, settings.workspace, lab_behind_az())
        elif directory.is_dir():
            running = reopen_lab(directory)
        try:
            yield _Session(settings, session_id, ends, running, asked)
        except BaseException:
            tell_what_is_left(settings, began)
            raise


def _ends(settings: Settings, named: str) -> list[CaptureTask]:
    """The named capture, and that of the other end of its path; by `last` the source first. Raises `UsageError`."""
    tasks = capture_tasks(settings.audit_dir)
    found = tasks[-1:] if named == LAST else [task for task in tasks if task.task_id == named]
    if not found:
        near = did_you_mean(named, {task.task_id for task in tasks})
        raise UsageError(f"no capture {named[:100]!r} in {settings.workspace}: {near}ghost capture list names them")
    ends = [*found, *(other for other in tasks if other.task_id == found[0].paired_task_id)]
    return sorted(ends, key=lambda end: named == LAST and end.pair_role == "destination")
