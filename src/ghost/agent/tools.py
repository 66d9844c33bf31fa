"""The seven tools of a brain: typed calls to the shell, the orchestrator or the session.

A brain can reach nothing else. Arguments are validated first; a wrong call is returned as an error the brain can read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ghost.agent.audit_evidence import CAPTURE, Evidence, tag_of
from ghost.agent.az_preflight import preflight
from ghost.agent.hypotheses import IllegalHypothesisChange, State
from ghost.agent.session import Session
from ghost.brain import ToolCall


class Shell(Protocol):
    def execute(self, request: dict[str, Any]) -> dict[str, Any]: ...


class Orchestrator(Protocol):
    def orchestrate(self, request: dict[str, Any]) -> dict[str, Any]: ...


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RunShellCmd(_Arguments):
    """Run one diagnostic or Azure read command through the safe shell."""

    command: str = Field(min_length=1)
    reasoning: str = Field(min_length=1)
    hypothesis_ids: list[str] = Field(default_factory=list)


class CaptureTraffic(_Arguments):
    """Start a packet capture with Network Watcher. Returns at once; `check_task` polls it."""

    target: str
    resource_group: str
    storage_account: str
    duration_seconds: int = Field(60, ge=1, le=300)
    size_limit_bytes: int | None = None
    """Checked by the orchestrator against Azure's limits; None is Azure's own limit."""
    investigation_context: str = ""
    storage_auth_mode: Literal["login", "key"] = "login"
    hypothesis_ids: list[str] = Field(default_factory=list)


class CheckTask(_Arguments):
    """Return the state of a capture; polls for up to 45 seconds."""

    task_id: str
    hypothesis_ids: list[str] = Field(default_factory=list)


class CancelTask(_Arguments):
    """End a capture early and delete its resources."""

    task_id: str
    reason: str = ""


class CleanupTask(_Arguments):
    """Delete the capture, its blob and the local copy."""

    task_id: str


class ManageHypotheses(_Arguments):
    """Register, resolve or reactivate a hypothesis. Changes the session only."""

    action: Literal["register", "activate", "confirm", "refute", "contradict"]
    id: str = Field(min_length=1, max_length=40)
    description: str = ""
    refuted_by: str = ""
    audit_ids: list[str] = Field(default_factory=list)
    higher_fidelity_source: str | None = None
    resolution: str | None = None


class Statement(_Arguments):
    text: str
    audit_ids: list[str] = Field(default_factory=list)


class Coverage(_Arguments):
    layer: str
    status: Literal["cleared", "at_fault", "not_verified"]
    audit_ids: list[str] = Field(default_factory=list)
    note: str = ""


class CompleteInvestigation(_Arguments):
    """End the investigation; the report is written from the records."""

    confidence: Literal["high", "medium", "low"]
    root_cause_summary: str
    confirmed_hypotheses: list[str] = Field(default_factory=list)
    refuted_hypotheses: list[str] = Field(default_factory=list)
    unverifiable_hypotheses: list[str] = Field(default_factory=list)
    contradicted_hypotheses: list[str] = Field(default_factory=list)
    recommended_actions: list[str] = Field(default_factory=list)
    statements: list[Statement] = Field(default_factory=list)
    coverage: list[Coverage] = Field(default_factory=list)


class Tools:
    """The tools of one session. `call` does not raise for invalid requests of a brain."""

    def __init__(
        self,
        shell: Shell,
        orchestrator: Orchestrator,
        session: Session,
        evidence: Callable[[], Evidence],
        now: Callable[[], str],
    ) -> None:
        self._shell = shell
        self._orchestrator = orchestrator
        self._session = session
        self._evidence = evidence
        self._now = now
        self._tools: dict[str, tuple[type[_Arguments], Callable[[Any], dict[str, Any]]]] = {
            "run_shell_cmd": (RunShellCmd, self._run_shell_cmd),
            "capture_traffic": (CaptureTraffic, self._capture_traffic),
            "check_task": (CheckTask, self._check_task),
            "cancel_task": (CancelTask, self._cancel_task),
            "cleanup_task": (CleanupTask, self._cleanup_task),
            "manage_hypotheses": (ManageHypotheses, self._manage_hypotheses),
            "complete_investigation": (CompleteInvestigation, self._complete_investigation),
        }

    def call(self, call: ToolCall) -> dict[str, Any]:
        if call.name not in self._tools:
            return {
                "status": "error",
                "error": "unknown_tool",
                "tool": call.name,
                "message": f"unknown tool {call.name!r}; known tools: {', '.join(self._tools)}",
            }
        arguments, tool = self._tools[call.name]
        try:
            return tool(arguments.model_validate(call.arguments))
        except ValidationError as invalid:
            mistakes = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in invalid.errors())
            return {"status": "error", "error": "invalid_arguments", "message": f"{call.name}: {mistakes}"}

    def _run_shell_cmd(self, request: RunShellCmd) -> dict[str, Any]:
        mistake = preflight(request.command)
        if mistake is not None:
            return {"status": "error", "error": "preflight", "suggestion": mistake}
        result = self._shell.execute({"command": request.command, "reasoning": request.reasoning})
        meta = tag_of({"command": request.command}).as_meta()
        if result.get("error") == "timeout":
            meta["timeout"] = True
        return {**result, "_meta": meta}

    def _capture_traffic(self, request: CaptureTraffic) -> dict[str, Any]:
        return self._orchestrate(
            intent="capture_traffic",
            target=request.target,
            investigation_context=request.investigation_context,
            parameters={
                "resource_group": request.resource_group,
                "storage_account": request.storage_account,
                "duration_seconds": request.duration_seconds,
                "size_limit_bytes": request.size_limit_bytes,
                "storage_auth_mode": request.storage_auth_mode,
            },
        )

    def _check_task(self, request: CheckTask) -> dict[str, Any]:
        return self._orchestrate(intent="check_task", task_id=request.task_id)

    def _cancel_task(self, request: CancelTask) -> dict[str, Any]:
        return self._orchestrate(intent="cancel_task", task_id=request.task_id, reason=request.reason)

    def _cleanup_task(self, request: CleanupTask) -> dict[str, Any]:
        return self._orchestrate(intent="cleanup_task", task_id=request.task_id)

    def _orchestrate(self, **request: Any) -> dict[str, Any]:
        result = self._orchestrator.orchestrate(request)
        task_id = result.get("task_id")
        if isinstance(task_id, str) and task_id and task_id not in self._session.active_task_ids:
            self._session.active_task_ids.append(task_id)
        return {**result, "_meta": CAPTURE.as_meta()}

    def _manage_hypotheses(self, request: ManageHypotheses) -> dict[str, Any]:
        log = self._session.hypotheses
        try:
            match request.action:
                case "register":
                    log.register(request.id, request.description, request.refuted_by, at=self._now())
                    self._session.denial_tracker.setdefault(request.id, 0)
                    self._session.consecutive_denial_counter.setdefault(request.id, 0)
                case "activate":
                    log.activate(request.id)
                case "confirm" | "refute":
                    self._check_evidence(request)
                    state = State.CONFIRMED if request.action == "confirm" else State.REFUTED
                    log.resolve(request.id, state, request.audit_ids, at=self._now())
                case "contradict":
                    self._check_evidence(request)
                    note = request.description or request.resolution or ""
                    log.contradict(request.id, request.audit_ids, request.higher_fidelity_source, note)
        except IllegalHypothesisChange as refused:
            return {"status": "error", "error": refused.error, "message": str(refused)}
        return {"status": "ok", "hypotheses": log.summary()}

    def _check_evidence(self, request: ManageHypotheses) -> None:
        problems = self._evidence().problems(request.audit_ids)
        if problems:
            raise IllegalHypothesisChange(
                "evidence_unusable", f"{request.action} {request.id!r}: {'; '.join(problems)}"
            )

    def _complete_investigation(self, request: CompleteInvestigation) -> dict[str, Any]:
        self._session.completion = request.model_dump(mode="json")
        return {"status": "ok", "message": "the report is being written from the records"}
