"""The tools of a brain: typed calls to checks, the shell, the orchestrator or the session.

A brain can reach nothing else. Arguments are validated first; a wrong call is returned as an error the brain can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import ValidationError

from ghost.agent.audit_evidence import CAPTURE, Evidence, tag_of
from ghost.agent.az_preflight import preflight
from ghost.agent.completion import MAX_RETURNS, bounded_confidence, problems, settled_outcome
from ghost.agent.conflicts import possible_conflicts
from ghost.agent.denials import pivot_of, was_denied
from ghost.agent.earlier_sessions import relied_on
from ghost.agent.facts import CHANGES_NO_NETWORK, proofs_of
from ghost.agent.hypotheses import IllegalHypothesisChange, State
from ghost.agent.session import MeantTraffic, Session, SessionPaths
from ghost.agent.tool_arguments import (
    ARGUMENTS,
    CancelTask,
    CaptureTraffic,
    Check,
    CheckTask,
    CleanupTask,
    CompleteInvestigation,
    FindEnds,
    ManageHypotheses,
    RunShellCmd,
    UseEarlierRecords,
)
from ghost.agent.turns import with_real_values
from ghost.brain import CHECKS, Checks, ToolCall, ToolResult
from ghost.errors import RecordError, SessionError
from ghost.records import Clock, write_json
from ghost.shell import READ_ONLY, printed_output
from ghost.text import map_text


class Shell(Protocol):
    def execute(self, request: dict[str, Any]) -> dict[str, Any]: ...

    def execute_all(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]: ...

    def runs_unasked(self, command: str) -> bool: ...


class Orchestrator(Protocol):
    def orchestrate(self, request: dict[str, Any]) -> dict[str, Any]: ...


SHELL: Final = "run_shell_cmd"
REPEATED_WITHIN_SECONDS: Final = 60
MAX_FACTS: Final = 12
"""Facts that one check tells."""
NO_CAPTURE: Final = "The investigation is read-only, and a capture is created with an approval only."


@dataclass(frozen=True)
class _Read:
    turn: int
    at: float
    result: dict[str, Any]


class Tools:
    """The tools of one session. `call` does not raise for invalid requests of a brain."""

    def __init__(
        self,
        shell: Shell,
        orchestrator: Orchestrator,
        session: Session,
        evidence: Callable[[], Evidence],
        now: Callable[[], str],
        clock: Clock,
        hide: Callable[[str], str] = str,
        real: Callable[[str], str] = str,
    ) -> None:
        """`clock`: that of the network, which may be a lab's. `hide` and `real` return a text with the placeholders of
        private mode, and with the values behind them."""
        self._shell = shell
        self._orchestrator = orchestrator
        self._session = session
        self._evidence = evidence
        self._now = now
        self._clock = clock
        self._hide = hide
        self._real = real
        self._reads: dict[str, _Read] = {}
        """Reads of Azure since the last command that may have changed something; none in a new process."""
        self._other_ends: dict[str, dict[str, str]] = {}
        """Of the file of a capture of a pair: file and machine of the capture at the other end."""
        self._checks = Checks()
        self._tools: dict[str, Callable[[Any], dict[str, Any]]] = {
            **{name: partial(self._check, name) for name in CHECKS},
            SHELL: self._run_shell_cmd,
            "capture_traffic": self._capture_traffic,
            "check_task": self._check_task,
            "cancel_task": self._cancel_task,
            "cleanup_task": self._cleanup_task,
            "manage_hypotheses": self._manage_hypotheses,
            "complete_investigation": self._complete_investigation,
            "use_earlier_records": self._use_earlier_records,
        }

    def reads_together(self, calls: Sequence[ToolCall]) -> int:
        """Return how many of the first calls are commands that nobody is asked about, each made for the first time."""
        commands: set[str] = set()
        for call in calls:
            command = str(call.arguments.get("command", "")).strip()
            known = command in commands or command in self._reads
            if call.name != SHELL or known or not self._is_right(call) or not self._shell.runs_unasked(command):
                break
            commands.add(command)
        return len(commands)

    def call_together(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Make calls of which `reads_together` said that they may run beside each other."""
        requests = [RunShellCmd.model_validate(call.arguments) for call in calls]
        return [
            ToolResult(call.id, call.name, result, self._real_output(result))
            for call, result in zip(calls, self._run_all(requests), strict=True)
        ]

    def _is_right(self, call: ToolCall) -> bool:
        """Return whether the shell would be asked. Printing the error would lose an interrupt that comes meanwhile."""
        try:
            return preflight(RunShellCmd.model_validate(call.arguments).command) is None
        except ValidationError:
            return False

    def call(self, call: ToolCall) -> ToolResult:
        result = self._called(call)
        whole = self._real_output(result) if call.name == SHELL else with_real_values(result, self._real)
        return ToolResult(call.id, call.name, result, whole)

    def _real_output(self, response: dict[str, Any]) -> str | None:
        """Return all that a command printed, with real values; None where it did not end, or a part is not kept."""
        if response.get("status") == "completed":
            with suppress(RecordError):
                return self._real(printed_output(response))
        return None

    def _called(self, call: ToolCall) -> dict[str, Any]:
        if call.name not in self._tools:
            return {
                "status": "error",
                "error": "unknown_tool",
                "tool": call.name,
                "message": f"unknown tool {call.name!r}; known tools: {', '.join(self._tools)}",
            }
        try:
            return self._tools[call.name](ARGUMENTS[call.name].model_validate(call.arguments))
        except ValidationError as invalid:
            if "INVALID_JSON" in call.arguments:  # of `ghost.brain.model`: the arguments were no JSON object
                message = f"{call.name}: its arguments were not a JSON object: call it again with valid JSON"
                return {"status": "error", "error": "invalid_arguments", "message": message}
            mistakes = "; ".join(f"{'.'.join(map(str, e['loc']))[:80]}: {e['msg'][:200]}" for e in invalid.errors()[:5])
            return {"status": "error", "error": "invalid_arguments", "message": f"{call.name}: {mistakes}"}

    def _check(self, name: str, request: Check) -> dict[str, Any]:
        """Make a check: each of its commands is run and put on record as if the brain had asked for it."""
        if request.again:
            self._reads.clear()
            self._checks.forget()
        stated = request.model_dump(exclude={"again"})
        stated |= self._other_ends.get(stated.get("path", ""), {})
        steps, made = self._checks.check(name, map_text(stated, self._real, keys=False)), list[ToolResult]()
        try:
            calls = next(steps)
            while True:
                results = self._results_of(calls)
                made += results
                calls = steps.send(results)
        except StopIteration as ended:
            told = ended.value
        audit_ids = [str(each.result["audit_id"]) for each in made if each.result.get("audit_id")]
        denied = next((each.result for each in made if was_denied(each.result)), None)
        meta = CAPTURE.as_meta() if name == "read_capture" else tag_of({"command": "az "}).as_meta()
        answer = {"status": "error" if "error" in told else "completed", **told, "shell_audit_ids": audit_ids}
        if told.get("causes"):
            proofs = proofs_of(self._evidence(), self._session.session_id)
            answer["facts"] = [fact for cause in told["causes"] for fact in proofs.facts_about(cause)][:MAX_FACTS]
        if denied is not None:
            answer |= {"user_denied": True, "denial_reason": denied.get("denial_reason")}
            meta["pivot_instruction"] = pivot_of(str(denied.get("command") or ""))
        answer["_meta"] = meta | self._conflicts(audit_ids)
        hidden: dict[str, Any] = map_text(answer, self._hide, keys=False)
        return hidden

    def _meant(self) -> MeantTraffic:
        """Return the traffic that the symptom means, to which a model's conclusion is held."""
        stated = asdict(self._session.stated) | {"text": (self._session.symptom or "?")[:4000]}
        return MeantTraffic.of_check(self._check("find_ends", FindEnds.model_validate(stated)))

    def _results_of(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        results: list[ToolResult] = []
        while len(results) < len(calls):
            rest = calls[len(results) :]
            together = self.reads_together(rest)
            results += self.call_together(rest[:together]) if together > 1 else [self.call(rest[0])]
        return results

    def _run_shell_cmd(self, request: RunShellCmd) -> dict[str, Any]:
        """Run a command. A repeated read of Azure is answered from its record while nothing can have changed it."""
        mistake = preflight(request.command)
        if mistake is not None:
            return {"status": "error", "error": "preflight", "suggestion": mistake}
        command, now = request.command.strip(), self._clock.monotonic()
        if (before := self._reads.get(command)) is not None:
            age = now - before.at
            if before.turn == self._session.turn_count or 0 <= age <= REPEATED_WITHIN_SECONDS:
                repeated = {"audit_id": before.result["audit_id"], "age_seconds": round(age)}
                return {**before.result, "_meta": {**before.result["_meta"], "answered_from_record": repeated}}
        return self._run_all([request])[0]

    def _run_all(self, requests: Sequence[RunShellCmd]) -> list[dict[str, Any]]:
        responses = self._shell.execute_all([{"command": r.command, "reasoning": r.reasoning} for r in requests])
        return [self._remembered(r.command, response) for r, response in zip(requests, responses, strict=True)]

    def _remembered(self, command: str, response: dict[str, Any]) -> dict[str, Any]:
        meta = tag_of({"command": command}).as_meta()
        command = command.strip()
        if response.get("error") == "timeout":
            meta["timeout"] = True
        if was_denied(response):
            meta["pivot_instruction"] = pivot_of(command)
        elif response.get("classification") == "RISKY":
            self._reads.clear()
            if not command.startswith(CHANGES_NO_NETWORK):
                self._checks.forget()
        elif command.startswith("az ") and response.get("status") == "completed" and response.get("exit_code") == 0:
            read = _Read(self._session.turn_count, self._clock.monotonic(), {**response, "_meta": meta})
            self._reads[command] = read
        return {**response, "_meta": meta | self._conflicts([str(response.get("audit_id"))])}

    def _capture_traffic(self, request: CaptureTraffic) -> dict[str, Any]:
        if self._session.read_only:
            return {"status": "error", "error": READ_ONLY, "message": NO_CAPTURE}
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
                "filters": request.filters,
            },
        )

    def _check_task(self, request: CheckTask) -> dict[str, Any]:
        return self._orchestrate(intent="check_task", task_id=request.task_id)

    def _cancel_task(self, request: CancelTask) -> dict[str, Any]:
        return self._orchestrate(intent="cancel_task", task_id=request.task_id, reason=request.reason)

    def _cleanup_task(self, request: CleanupTask) -> dict[str, Any]:
        return self._orchestrate(intent="cleanup_task", task_id=request.task_id)

    def _orchestrate(self, **request: Any) -> dict[str, Any]:
        result = self._orchestrator.orchestrate(map_text(request, self._hide, keys=False))
        task_id = result.get("task_id")
        if isinstance(task_id, str) and task_id and task_id not in self._session.active_task_ids:
            self._session.active_task_ids.append(task_id)
        self._note_pair(result)
        self._reads.clear()
        meta, audit_ids = CAPTURE.as_meta(), list(map(str, result.get("shell_audit_ids") or []))
        if was_denied(result):
            records = self._evidence()
            denied = [records[i] for i in audit_ids if records.get(i, {}).get("status") == "denied"]
            meta["pivot_instruction"] = pivot_of(str(denied[-1]["command"]) if denied else "")
        if result.get("status") == "task_completed":
            meta |= self._conflicts(audit_ids)
        return {**result, "_meta": meta}

    def _note_pair(self, task: dict[str, Any]) -> None:
        """Keep which two files are of the ends of one path, once both captures are complete."""
        paired = task.get("paired_task") or {}
        here, there = (task.get("result") or {}).get("local_pcap_path"), paired.get("local_pcap_path")
        if here and there:
            self._other_ends[here] = {"other_path": there, "other_machine": paired["target"]}
            self._other_ends[there] = {"other_path": here, "other_machine": task["target"]}

    def _conflicts(self, audit_ids: Sequence[str]) -> dict[str, Any]:
        if not any(h.resolving_audit_id for h in self._session.hypothesis_log):
            return {}
        return possible_conflicts(self._session.hypothesis_log, self._evidence(), audit_ids)

    def _manage_hypotheses(self, request: ManageHypotheses) -> dict[str, Any]:
        log = self._session.hypotheses
        try:
            match request.action:
                case "register":
                    log.register(
                        request.id, self._hide(request.description), self._hide(request.refuted_by), at=self._now()
                    )
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
                    note = self._hide(request.description or request.resolution or "")
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

    def _use_earlier_records(self, request: UseEarlierRecords) -> dict[str, Any]:
        """Put on record which session's records stand for reads. A model reads all by itself."""
        is_first = self._session.prompt_sha256 is None and self._session.earlier_records is None
        paths = SessionPaths(Path(self._session.audit_dir), self._session.session_id)
        try:
            head = relied_on(paths.audit_dir, request.session_id, self._session.network) if is_first else None
        except (RecordError, SessionError, OSError):
            head = None
        if head is None:
            return {"status": "error", "error": "not_allowed", "message": "records of earlier sessions cannot be used"}
        used = {"session_id": request.session_id, "head": head.as_dict()}
        self._session.earlier_records = used
        write_json(paths.earlier_records, used)
        return {"status": "ok", **used}

    def _complete_investigation(self, request: CompleteInvestigation) -> dict[str, Any]:
        if self._session.prompt_sha256 is not None:
            self._session.meant = self._meant()
        completion, session, evidence = request.model_dump(mode="json"), self._session, self._evidence()
        found = problems(completion, session, evidence)
        if found and session.returned_conclusions < MAX_RETURNS:
            session.returned_conclusions += 1
            return {
                "status": "error",
                "error": "conclusion_incomplete",
                "problems": found,
                "message": "The conclusion is not accepted: correct each problem (cite records that ran, settle the "
                f"hypotheses, or lower the confidence) and conclude again. Returned {session.returned_conclusions} of "
                f"{MAX_RETURNS} times; after that it stands, with what is unsupported printed as such.",
            }
        completion["confidence"], completion["confidence_bounds"] = bounded_confidence(completion, session, evidence)
        completion["outcome"] = settled_outcome(completion, session, evidence)
        session.completion = map_text(completion, self._hide, keys=False)
        return {
            "status": "ok",
            "message": "the report is being written from the records",
            "outcome": completion["outcome"],
            "confidence": completion["confidence"],
            "confidence_bounds": completion["confidence_bounds"],
            "problems": found,
        }
