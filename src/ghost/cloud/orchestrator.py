"""The Cloud Orchestrator: turns an intent into the commands of a capture's life cycle and passes them to the shell.

`lifecycle` decides the next step; this module runs the commands, waits, and saves every state before and after each
command. It starts no program and reads no capture: both are the shell's.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ghost.cloud import capture_commands, lifecycle, orphans, progress_lines, task_events, tool_responses
from ghost.cloud.capture_commands import Purpose, ShellCommand, artifacts_of
from ghost.cloud.registry import TaskRegistry
from ghost.cloud.replies import event_of
from ghost.cloud.requests import (
    AUTH_MODES,
    NO_WISHES,
    AuthMode,
    CaptureRequest,
    RequestRefused,
    Wishes,
    capture_request,
    required_text,
)
from ghost.cloud.resource_names import check_container, check_prefix, is_local_path, new_task_id, random_ending, shown
from ghost.cloud.shell_reply import Reply
from ghost.cloud.task import CaptureTask, Outcome, State, Timestamps
from ghost.cloud.task_events import Event
from ghost.cloud.tool_responses import CallTrace
from ghost.cloud.traffic_filters import capture_filters
from ghost.errors import GhostError, LoginError, RecordError, UsageError
from ghost.records import Clock, Head, SystemClock, private_dir


class Shell(Protocol):
    """The shell as the orchestrator sees it."""

    def execute(self, request: dict[str, Any]) -> dict[str, Any]: ...


_CREATION = frozenset({Purpose.CREATE_CONTAINER, Purpose.CREATE})
_NOT_BEGUN = frozenset({State.CREATED, State.DETECTING, State.APPROVED})
ApprovePlan = Callable[[Sequence[str], str], object]
"""Takes the commands and the reason; the shell remembers the answer, and asks for what no earlier one covers."""


class CloudOrchestrator:
    """Capture tasks of one session. Looks for orphans in Azure when created or when told; deletes nothing unasked."""

    def __init__(
        self,
        shell: Shell,
        session_id: str,
        task_dir: str | Path = "./audit/",
        *,
        clock: Clock | None = None,
        max_polls: int = 20,
        initial_poll_interval: float = 5,
        max_poll_interval: float = 30,
        local_capture_dir: str | Path = "/tmp/captures",  # noqa: S108  the specification's default; made 0700
        storage_container: str = "captures",
        capture_name_prefix: str = "ghost",
        poll_burst_limit: float = 45,
        local_artifact_max_age_days: float = 7,
        storage_auth_mode: AuthMode = "login",
        wishes: Wishes = NO_WISHES,
        keep_local_capture: bool = False,
        announce: Callable[[str], None] | None = None,
        name_ending: Callable[[], str] = random_ending,
        search_azure_at_start: bool = True,
        approve_plan: ApprovePlan | None = None,
        network: str | None = None,
    ) -> None:
        """`approve_plan`: asks once about the commands of a capture's whole life; without it each asks by itself."""
        if storage_auth_mode not in AUTH_MODES:
            raise UsageError(f"storage_auth_mode {storage_auth_mode!r} is neither 'login' nor 'key'")
        if max_polls < 1:
            raise UsageError(f"max_polls is {max_polls}: at least one poll is needed")
        self._shell = shell
        self._session_id = session_id
        self._clock = clock or SystemClock()
        self._max_polls = max_polls
        self._initial_poll_interval = initial_poll_interval
        self._max_poll_interval = max_poll_interval
        self._capture_dir = Path(local_capture_dir).absolute()
        if not is_local_path(str(self._capture_dir)):
            raise UsageError(f"local_capture_dir {shown(str(local_capture_dir))} holds control or invisible characters")
        self._container = check_container(storage_container)
        self._prefix = check_prefix(capture_name_prefix)
        self._poll_burst_limit = min(poll_burst_limit, 45)
        self._max_age_days = local_artifact_max_age_days
        self._auth_mode = storage_auth_mode
        self._wishes = wishes
        self._keep_local_capture = keep_local_capture
        capture_filters(wishes.filters)
        self._announce = announce or _to_stderr
        self._approve_plan = approve_plan
        self._network = network
        self._name_ending = name_ending
        self._trace = CallTrace()
        self._registry = TaskRegistry(Path(task_dir), session_id, self._warn)
        self._untracked: list[orphans.Orphan] = []
        self._scan_warnings: tuple[str, ...] = ()
        self._scan_audit_ids: list[str] = []
        if search_azure_at_start:
            self.search_azure()

    def search_azure(self) -> None:
        """Look for captures of this network left behind in each region; `list_tasks` tells of them."""
        self._trace = CallTrace()
        here = [task for task in self._registry.all() if task.network in (None, self._network) or not self._network]
        scan = orphans.scan_azure(self._execute, self._prefix, here)
        self._untracked = orphans.untracked(scan, self._registry.unsettled(), self._clock.now())
        self._scan_warnings = tuple(scan.warnings)
        self._scan_audit_ids = self._trace.audit_ids
        for warning in scan.warnings:
            self._warn(warning)

    @property
    def registry_path(self) -> Path:
        return self._registry.path

    @property
    def registry_head(self) -> Head:
        return self._registry.head

    def orchestrate(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out `request` and return the state of its task. Errors are responses, but for `LoginError`."""
        self._trace = CallTrace()
        task_id = request.get("task_id") if isinstance(request, dict) else None
        shown_id = task_id if isinstance(task_id, str) else None
        try:
            return self._dispatch(request)
        except RequestRefused as refused:
            return tool_responses.error_response(refused.code, str(refused), self._trace, shown_id)
        except LoginError:  # the task stands as it stood, and goes on with the session
            raise
        except GhostError as error:
            return tool_responses.error_response("internal_error", str(error), self._trace, shown_id)
        except Exception as error:  # noqa: BLE001  the boundary: whatever broke, the investigation goes on
            message = (
                f"{type(error).__name__}: {error}. list_tasks shows the state of the task; check_task continues it"
            )
            return tool_responses.error_response("internal_error", message, self._trace, shown_id)

    def _dispatch(self, request: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(request, dict):
            raise RequestRefused("invalid_request", "a request is an object with an intent")
        intent = required_text(request, "intent")
        match intent:
            case "capture_traffic":
                return self._capture_traffic(capture_request(request, self._auth_mode, self._wishes))
            case "check_task":
                return self._check_task(self._asked_for(request))
            case "cancel_task":
                return self._cancel_task(self._asked_for(request), request.get("reason"))
            case "cleanup_task":
                return self._cleanup_task(self._asked_for(request), request.get("include_artifacts") is True)
            case "list_tasks":
                return self._list_tasks()
            case _:
                raise RequestRefused("unknown_intent", f"Unsupported intent: {intent[:100]!r}")

    def _asked_for(self, request: dict[str, Any]) -> CaptureTask:
        task_id = required_text(request, "task_id")
        task = self._registry.get(task_id)
        if task is None:
            raise RequestRefused("unknown_task", f"No task found with ID: {task_id[:100]!r}. list_tasks names them")
        return task if task.capture_dir else task.having(capture_dir=str(self._capture_dir))

    # --- intents -------------------------------------------------------------------------------------------------

    def _capture_traffic(self, request: CaptureRequest) -> dict[str, Any]:
        tasks = [self._new_task(request, target, is_far_end=n > 0) for n, target in enumerate(request.targets)]
        if len(tasks) == 2:
            source, destination = tasks
            tasks = [
                source.having(paired_task_id=destination.task_id, pair_role="source"),
                destination.having(paired_task_id=source.task_id, pair_role="destination"),
            ]
        tasks = [self._registry.save(task) for task in tasks]
        for task in tasks:
            self._announce(progress_lines.new_task(task))
        tasks = self._begin(tasks, task_events.Registered())
        return self._respond(next((task for task in tasks if task.active), tasks[0]))

    def _begin(self, tasks: list[CaptureTask], event: Event) -> list[CaptureTask]:
        # Both ends of a path are made ready before either capture begins: their times should overlap.
        ready = [self._until(_CREATION, task, event) for task in tasks]
        self._ask_for_plan(ready)
        return [self._carry_on(task, command) for task, command in ready]

    def _ask_for_plan(self, ready: list[tuple[CaptureTask, ShellCommand | None]]) -> None:
        """Ask once about the whole life of these captures. What is denied here is denied when its turn comes."""
        lines = [line for task, command in ready if command for line in capture_commands.whole_life(task)]
        if self._approve_plan is not None and lines:
            targets = " and ".join(task.target_name for task, command in ready if command)
            why = f"The whole life of a packet capture on {targets}: it is created, downloaded and removed."
            self._approve_plan(lines, f"{why} Investigation: {capture_commands.context(ready[0][0])}")

    def _new_task(self, request: CaptureRequest, target: str, *, is_far_end: bool) -> CaptureTask:
        now = self._clock.now()
        task_id = new_task_id(self._prefix, target, now, self._id_is_taken)
        capture_name = f"{task_id}_{self._name_ending()}"
        task = CaptureTask(
            task_id=task_id,
            session_id=self._session_id,
            network=self._network,
            target=target,
            state=State.CREATED,
            investigation_context=request.investigation_context,
            parameters=request.parameters,
            resource_group=request.group_of(target),
            azure_operation_id=capture_name,
            storage_account=request.storage_account,
            chooses_account=not request.storage_account,
            storage_container=self._container,
            storage_blob_name=f"{capture_name}.cap",
            storage_auth_mode=request.storage_auth_mode,
            duration_limit_seconds=request.duration_seconds,
            size_limit_bytes=request.size_limit_bytes,
            filters=tuple(f.mirrored for f in request.filters) if is_far_end else request.filters,
            keeps_local_capture=self._keep_local_capture,
            capture_dir=str(self._capture_dir),
            max_polls=self._max_polls,
            timestamps=Timestamps(created=now),
        )
        return self._registry.save(task)

    def _id_is_taken(self, task_id: str) -> bool:
        return self._registry.holds(task_id) or (self._capture_dir / f"{task_id}.cap").exists()

    def _check_task(self, task: CaptureTask) -> dict[str, Any]:
        if task.active and task.state is not State.COMPLETED:
            task = self._burst(task)
        if task.active and task.state is State.COMPLETED:
            task = self._finish_pair(task)
        if task.denial and not self._trace.audit_ids:  # an earlier process was told, and may not have passed it on
            self._trace = CallTrace.of(task.denial)
        return self._respond(task)

    def _burst(self, task: CaptureTask) -> CaptureTask:
        """Poll with back-off until the capture has stopped or the burst's time is used up.

        A burst always takes its full time, so that a brain that asks again at once does not exhaust the polls of a long
        capture.
        """
        end = self._clock.monotonic() + self._poll_burst_limit
        while True:
            partner = self._partner(task)
            far_end = [partner] if partner is not None and partner.state in _NOT_BEGUN else []
            task = self._begin([task, *far_end], task_events.Resumed())[0]  # an earlier process may have ended there
            if not task.active or task.state not in {State.APPROVED, State.PROVISIONING, State.WAITING}:
                return task
            seconds_left = end - self._clock.monotonic()
            interval = self._interval(task.poll_count)
            if self._trace.user_denied or seconds_left <= 0:
                return task
            self._clock.sleep(min(interval, seconds_left))
            if interval >= seconds_left:
                return task

    def _interval(self, poll_count: int) -> float:
        doublings = min(max(poll_count - 1, 0), 30)
        return min(self._initial_poll_interval * 2.0**doublings, self._max_poll_interval)

    def _finish_pair(self, task: CaptureTask) -> CaptureTask:
        """Finish a capture that waits for the other end: compare when that is ready, analyse alone if it is lost."""
        partner = self._partner(task)
        news = lifecycle.news_of_partner(partner)
        if news is None:
            return task
        task = self._run(task, news)
        if isinstance(news, task_events.PartnerReady) and partner is not None and task.outcome is Outcome.COMPLETED:
            self._run(partner, task_events.ComparedByPartner(task.local_pcap_path or task.download_path))
        return task

    def _cancel_task(self, task: CaptureTask, reason: object) -> dict[str, Any]:
        if task.active:
            task = self._run(task, task_events.CancelRequested(reason if isinstance(reason, str) else None))
        return self._respond(task)

    def _cleanup_task(self, task: CaptureTask, include_artifacts: bool) -> dict[str, Any]:
        if task.active and task.session_id != self._session_id:
            task = self._run(task, task_events.SessionEnded())
        if task.active:
            raise RequestRefused(
                "task_active",
                f"Task {task.task_id} is {task.state}: finish it with check_task or end it with cancel_task",
            )
        return self._respond(self._run(task, task_events.CleanupRequested(include_artifacts)))

    def _list_tasks(self) -> dict[str, Any]:
        now = self._clock.now()
        found = [
            *orphans.in_registry(self._registry.unsettled(), self._session_id, now),
            *self._untracked,
            *orphans.stale_files(self._capture_dir, self._prefix, now, self._max_age_days),
        ]
        self._trace.audit_ids += self._scan_audit_ids
        own = self._registry.of_session(self._session_id)
        rows = [orphan.as_dict() for orphan in found]
        return tool_responses.list_response(own, rows, self._scan_warnings, now, self._trace)

    # --- carrying commands ---------------------------------------------------------------------------------------

    def _run(self, task: CaptureTask, event: Event) -> CaptureTask:
        """Feed `event` and its consequences to the state machine until it requests nothing more."""
        return self._until(frozenset(), task, event)[0]

    def _carry_on(self, task: CaptureTask, command: ShellCommand | None) -> CaptureTask:
        return task if command is None else self._run(*self._carry_out(task, command))

    def _until(
        self, purposes: frozenset[Purpose], task: CaptureTask, event: Event
    ) -> tuple[CaptureTask, ShellCommand | None]:
        """Like `_run`, but stop before a command for one of the `purposes` and return it."""
        while True:
            before = task
            task, command = lifecycle.advance(before, event, self._clock.now())
            task = self._registry.save(task)
            for line in progress_lines.moved(before, task):
                self._announce(line)
            if command is not None and command.purpose in purposes:
                return task, command
            if command is not None:
                task, event = self._carry_out(task, command)
                continue
            following = lifecycle.follow_up(task)
            if following is None:
                return task, None
            event = following

    def _carry_out(self, task: CaptureTask, command: ShellCommand) -> tuple[CaptureTask, Event]:
        if command.delay_seconds:
            self._clock.sleep(command.delay_seconds)
        if command.purpose is Purpose.DOWNLOAD:
            try:
                private_dir(Path(task.capture_dir))
            except RecordError as error:
                return task, task_events.DownloadFailed(str(error))
        if command.purpose is Purpose.CLEAN_UP and (why := self._why_kept(task, command.step)):
            return task, task_events.StepKept(command.step, why)
        reply = self._execute(command)
        if reply.audit_id is not None:
            task = task.having(shell_audit_ids=(*task.shell_audit_ids, reply.audit_id))
        return task, self._with_local_facts(task, event_of(task, command, reply))

    def _why_kept(self, task: CaptureTask, step: int) -> str | None:
        """Return why a local file is none that Ghost removes: a record may name any path."""
        words = shlex.split(task.cleanup_plan[step].command)
        if words[0] != "rm":
            return None
        path = Path(words[1])
        if path.parent != self._capture_dir:
            return f"it is not directly in {self._capture_dir}: remove it yourself"
        if not any(self._registry.holds(path.name[: match.start()]) for match in re.finditer("[._]", path.name)):
            return "it is not named after a capture on record: remove it yourself"
        if path.is_symlink() or (path.exists() and not path.is_file()):
            return "it is not a regular file: remove it yourself"
        return None

    def _with_local_facts(self, task: CaptureTask, event: Event) -> Event:
        """Add the resulting local files to a download or analysis event."""
        path = Path(task.download_path)
        if isinstance(event, task_events.Analysed):
            return task_events.Analysed(tuple(f for f in artifacts_of(task).where_written if Path(f).is_file()))
        if isinstance(event, task_events.DownloadFailed):
            return task_events.DownloadFailed(event.detail, left_a_file=path.is_file())
        if isinstance(event, task_events.Downloaded):
            try:
                path.chmod(0o600)  # az leaves it readable for others
                with path.open("rb") as file:
                    return task_events.Downloaded(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())
            except OSError:
                return event  # the engine says what is wrong with it
        return event

    def _execute(self, command: ShellCommand) -> Reply:
        reply = Reply.of(self._shell.execute(command.request()))
        if reply.audit_id is not None:
            self._trace.audit_ids.append(reply.audit_id)
        if reply.user_denied:
            self._trace.user_denied = True
            self._trace.denial_reason = reply.denial_reason or self._trace.denial_reason
        return reply

    # --- answering -----------------------------------------------------------------------------------------------

    def _partner(self, task: CaptureTask) -> CaptureTask | None:
        return self._registry.get(task.paired_task_id) if task.paired_task_id else None

    def _respond(self, task: CaptureTask) -> dict[str, Any]:
        return tool_responses.task_response(task, self._partner(task), self._clock.now(), self._trace)

    def _warn(self, text: str) -> None:
        self._announce(progress_lines.warning(text))


def _to_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201  progress is for the person at the terminal
