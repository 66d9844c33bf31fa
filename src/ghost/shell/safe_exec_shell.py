"""The Safe-Exec Shell: classify, gate, execute, process the output, and write the record. No stage can be skipped.

It knows nothing of who asks or why, keeps no raw output, retries nothing, and never passes a command through a shell.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ghost.config import Settings
from ghost.errors import UsageError
from ghost.records import Clock, Head, SystemClock, isoformat, valid_session_id
from ghost.redaction import Placeholders, redact
from ghost.shell.gate import READ_ONLY, Approve, Gate, GateOutcome, HitlCallback
from ghost.shell.judge.classification import TEXT_ONLY, decide
from ghost.shell.judge.command_line import parse
from ghost.shell.judge.decision import FORBIDDEN, RISKY, SAFE, Decision, of_line
from ghost.shell.judge.explanation import explain
from ghost.shell.judge.forbidden_commands import foreign_file
from ghost.shell.judge.network.host_pinning import COULD_NOT_RESOLVE, Resolver, pin_hosts, resolve_by_system
from ghost.shell.judge.value_types import Roots
from ghost.shell.record.approval_book import ApprovalBook
from ghost.shell.record.audit import AuditRecord, ShellAudit, record_interrupted
from ghost.shell.record.command_output import Output, PipeError, no_output, passed_on, process_output
from ghost.shell.record.kept_output import TOO_LONG, KeptOutput, keep
from ghost.shell.run.execution import TIMED_OUT, Programs, Run, Runner, child_environment, failed_run, joined, run
from ghost.shell.run.kubeconfig import CREDENTIAL_PROGRAM, PROGRAMS, Kubeconfigs
from ghost.shell.run.sandbox import NO_SANDBOX, Sandbox, SandboxUnavailableError, ask_by_form, ask_without_sandbox
from ghost.shell.run.warm_az import WarmAz

if TYPE_CHECKING:
    from ghost.shell.record.anonymization import TopologyAnonymizer

MAX_TIMEOUT_SECONDS = 1800.0
MAX_AUDITED_CHARACTERS = 16_384
MOST_TOGETHER = 4
_UNKNOWN_PLACEHOLDER = "syntax: placeholder"
_NEVER = "Nobody can approve it: test the same with a command that only reads the network."
_REASONS = {
    "empty_command": "A command and a reasoning are needed; neither may be blank.",
    "forbidden_address": "The host name resolves to a service that hands out credentials or controls a machine. Name "
    "another host.",
    "sandbox_unavailable": "There is no sandbox on this machine, and commands without an approval must run in one.",
    "timeout": "It timed out and was stopped. Its output until then is shown. Limit it (a count, a timeout, a "
    "--query), or leave it out.",
    "pipe": "What stands before a pipe is passed on with its secrets taken out, and this printed more than 16 MiB, or "
    "text that is none. Ask for less of it, or run it on its own.",
    "redaction_failure": "Its output could not be redacted, so none of it is shown. Ask for less.",
}
_PRIVATE_PIPE = "private mode: pipe"
_MAY_REVEAL = "A filter may cut an address or a name so that no placeholder takes its place. Approve it if it does not."
_READ_ONLY = (
    "Not run: a person would have to approve it, and this session only reads (--read-only, GHOST_READ_ONLY, ghost mcp)."
)
_RESTORED_TOKEN = "placeholder: restored token"  # noqa: S105 - the name of a rule
CAPTURES = Path("/tmp/captures")  # noqa: S108 - the orchestrator's default place for captures; read only


class SafeExecShell:
    """Runs one command at a time for one session; every one of them leaves a record.

    `program_dirs`: where programs are looked for; default the system directories and the configured az. `own_az`: az
    is the configured one, or the system's, also where `program_dirs` are others; theirs where there is neither.
    `environment`: further variables of child processes. `sandbox`: `auto` applies to SAFE commands the layers there
    are and asks about those that rely on a missing one, `required` runs none of them without, `off` applies none.
    `runner` has the calling convention of `subprocess.run`; what it starts is not in a sandbox. `resolver` tells the
    addresses of a host name. `placeholders`: tokens that a model knows by a placeholder only; a command that has one is
    RISKY once the token stands there.
    `reads_only`: directories; commands read files there and this session's in the audit directory, and nobody is asked
    about others. Default: a person decides.
    `approve` is asked in place of `hitl_callback`, also about plans, and may allow a read for the session.
    `read_only`, or GHOST_READ_ONLY: nobody is asked, and what would ask is refused.
    `cancelled`: a descriptor for who runs this shell in a thread, which no signal interrupts. While it can be read,
    commands end with `KeyboardInterrupt`; one runs at a time.

    One process at a time runs the commands of a session: in a second one this raises `WorkspaceError`.
    """

    def __init__(
        self,
        session_id: str,
        hitl_callback: HitlCallback | None = None,
        audit_dir: str | Path = "./audit/",
        timeout_seconds: float = 120,
        anonymization_enabled: bool = False,
        *,
        roots: Sequence[str | Path] | None = None,
        program_dirs: Sequence[str | Path] | None = None,
        own_az: bool = False,
        environment: Mapping[str, str] | None = None,
        sandbox: str = "auto",
        hitl_timeout_seconds: float | None = None,
        runner: Runner | None = None,
        resolver: Resolver | None = None,
        placeholders: Placeholders | None = None,
        reads_only: Sequence[str | Path] | None = None,
        approve: Approve | None = None,
        read_only: bool = False,
        cancelled: int | None = None,
    ) -> None:
        if not valid_session_id(session_id):
            raise UsageError(f"{session_id!r} is not a session id: use letters, digits, '_', '-' and '.', 100 at most")
        if sandbox not in ("auto", "required", "off"):
            raise UsageError(f"sandbox is {sandbox!r}: use 'auto', 'required' or 'off'")
        settings = Settings()
        directory = Path(audit_dir)
        self.session_id = session_id
        self._timeout_seconds = _timeout(timeout_seconds, 120.0)
        self._roots = tuple(map(Path, roots)) if roots is not None else default_roots(directory, settings)
        self._programs = (
            Programs.of_system(settings.az)
            if program_dirs is None
            else Programs(
                tuple(Path(d).absolute() for d in program_dirs),
                (settings.az or Programs.of_system().find("az")) if own_az else None,
            )
        )
        self._environment = dict(environment or {})
        self._sandbox = Sandbox(
            sandbox, tuple(map(os.path.realpath, self._roots)), self._programs.search_path, directory
        )
        self._warm_az = WarmAz()
        self._runner = runner
        self._cancelled = cancelled
        self._resolver = resolver if resolver is not None else resolve_by_system
        self._placeholders = placeholders
        self._reads_only = tuple(map(Path, reads_only)) if reads_only is not None else None
        self._clock: Clock = SystemClock()
        self._audit = ShellAudit(directory, session_id)
        self._one_at_a_time = self._audit.one_at_a_time
        self._anonymizer = _anonymizer(directory, session_id) if anonymization_enabled else None
        shell = weakref.proxy(self)  # the warm az ends with the last reference to the shell
        self._kubeconfigs = Kubeconfigs(
            lambda words: shell._view_kubeconfig(words), self._programs.find, lambda one: shell._variables_for(one)
        )
        self._approvals = ApprovalBook(
            self._audit,
            lambda text: shell.anonymized(text),
            lambda text: shell.real(text),
            lambda text: shell._written(text),
            lambda: shell._now(),
        )
        self._gate = Gate(
            lambda command: shell._judge(command),
            hitl_callback,
            hitl_timeout_seconds,
            approve,
            self._approvals,
            read_only or settings.read_only,
        )

    @property
    def audit_path(self) -> Path:
        return self._audit.path

    @property
    def audit_head(self) -> Head:
        return self._audit.head

    @property
    def approvals_head(self) -> Head:
        return self._approvals.head

    @property
    def is_read_only(self) -> bool:
        return self._gate.read_only

    def anonymized(self, text: str) -> str:
        """`text` with the placeholders of private mode; unchanged without it."""
        return self._anonymizer.anonymize(text) if self._anonymizer is not None else text

    def real(self, text: str) -> str:
        """`text` with the values behind the placeholders of private mode: for code of this process and the terminal."""
        return self._anonymizer.restore(text) if self._anonymizer is not None else text

    def notes(self) -> list[str]:
        """What was not as expected since the last call and kept no command from running, a sentence each."""
        return self._warm_az.notes()

    def contexts(self) -> list[str]:
        """The clusters that were asked for the first time since the last call, a sentence each."""
        return self._kubeconfigs.contexts()

    @staticmethod
    def explain(command: str, roots: Sequence[str | Path] | None = None) -> dict[str, Any]:
        """How a command is taken apart and judged, by which rule, and the nearest SAFE one; nothing runs."""
        return explain(command, roots)

    @staticmethod
    def record_interrupted(audit_dir: str | Path) -> list[str]:
        """Record the commands of a directory whose process ended before them. Returns their audit ids."""
        return record_interrupted(Path(audit_dir))

    def execute(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run one command through the four stages. Returns the fields of the response.

        Raises nothing for a fault of the command; re-raises `KeyboardInterrupt` after the record is written.
        """
        return self.execute_all([request])[0]

    def execute_all(self, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Run commands as `execute` does; those that nobody is asked about run together, four at most.

        Ids and records are in the order of the requests, and nothing runs beside a command that was asked about.
        """
        with self._one_at_a_time:
            return list(self._execute_all(requests))

    def approve_plan(self, commands: Sequence[str], reasoning: str) -> str | None:
        """Ask once about commands that `execute` shall run later, each as often as it stands here.

        Those that an earlier plan of this session still covers are left out. Returns the id of the approval; None where
        it is not given, nothing is left to ask, or one of them is FORBIDDEN or cannot run.
        """
        with self._one_at_a_time:
            lines = [(self._restored(command.strip()), self._judge(command.strip())) for command in commands]
            return self._gate.ask_for_plan(lines, self._restored(reasoning))

    def runs_unasked(self, command: str) -> bool:
        return self._judge(command).classification == SAFE

    def _execute_all(self, requests: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        together: list[_Judged] = []
        most = MOST_TOGETHER if self._runner is None and self._cancelled is None else 1
        for request in requests:
            # Stage 1: classify
            judged = self._judged(request)
            if together and (len(together) == most or not (judged.unasked and together[-1].unasked)):
                yield from self._carried_out(together)
                together = []
            together.append(judged)
        yield from self._carried_out(together)

    def _judged(self, request: Mapping[str, Any]) -> _Judged:
        command, reasoning = _text(request, "command"), _text(request, "reasoning")
        if not command or not reasoning:
            return _Judged(command, reasoning, None, self._timeout_seconds)
        decision = self._judge(command)
        timeout_seconds = _timeout(request.get("timeout_seconds"), self._timeout_seconds)
        asks = request.get("asks") is True
        return _Judged(self._restored(command), self._restored(reasoning), decision, timeout_seconds, asks)

    def _carried_out(self, together: Sequence[_Judged]) -> list[dict[str, Any]]:
        """Carry out one command, or several that nobody is asked about."""
        begun = [self._begin(each) for each in together]
        responses = iter(self._finish([each for each in begun if isinstance(each, _Begun)]))
        return [next(responses) if isinstance(each, _Begun) else each for each in begun]

    def _begin(self, judged: _Judged) -> _Begun | dict[str, Any]:
        """Take a command up to its start; the response where it does not come to that."""
        command, reasoning, decision = judged.command, judged.reasoning, judged.decision
        sequence, audit_id = self._audit.next_id()
        if decision is None or decision.problem == "empty_command":
            return self._empty(audit_id, decision.classification if decision is not None else "RISKY")

        # Stage 2: gate
        outcome = self._gate.ask(command, decision, reasoning, asks=judged.asks)
        record = self._record(sequence, audit_id, command, reasoning, outcome)
        if outcome.status != "passed":
            record = replace(record, message=self._written(self._refusal(outcome)))
            written = self._audit.write(record)
            if outcome.interrupted is not None:
                raise outcome.interrupted
            return self._answer(record, self._no_output(), written)

        if outcome.user_decision is not None:
            for each in outcome.decision.commands:
                self._kubeconfigs.approve(each)
        self._audit.begin(record)
        return _Begun(record, outcome, judged.timeout_seconds)

    def _finish(self, begun: Sequence[_Begun]) -> list[dict[str, Any]]:
        """Run what was begun, and record it in this order. Raises what interrupted it, with each of them on record."""
        responses: list[dict[str, Any]] = []
        interrupted: BaseException | None
        # Stage 3: execute
        results, interrupted = self._run_together(begun)
        for each, finished in zip(begun, results, strict=True):
            try:
                if isinstance(finished, BaseException):
                    raise finished
                record, output = self._settled(each, finished)
            except BaseException as error:  # noqa: BLE001 - whatever takes this process out of here, it was begun
                self._audit.write(replace(each.record, status="error", error="interrupted"))
                interrupted = interrupted or error
            else:
                responses.append(self._answer(record, output, self._audit.write(record)))
        if interrupted is not None:
            raise interrupted
        return responses

    def _run_together(
        self, begun: Sequence[_Begun]
    ) -> tuple[list[_Finished | BaseException], KeyboardInterrupt | None]:
        """Run commands beside each other. An interrupt ends all of them; it is returned, since all may have ended."""
        if len(begun) < 2:
            return [
                _caught(partial(self._run, each.outcome, each.timeout_seconds, self._cancelled)) for each in begun
            ], None
        interrupted = None
        results: list[_Finished | BaseException] = [KeyboardInterrupt()] * len(begun)
        cancelled, cancel = os.pipe()
        # Not `join`: of a thread whose join was interrupted Python 3.11 says that it has ended (bpo-45274).
        ended = [threading.Event() for _ in begun]

        def work(place: int) -> None:
            each = begun[place]
            results[place] = _caught(partial(self._run, each.outcome, each.timeout_seconds, cancelled))
            ended[place].set()

        threads = [threading.Thread(target=work, args=(place,)) for place in range(len(begun))]
        try:
            for thread in threads:
                thread.start()
            for each in ended:
                each.wait()
        except KeyboardInterrupt as interrupt:
            interrupted = interrupt
            os.write(cancel, b"x")
        finally:
            for thread, each in zip(threads, ended, strict=True):
                if thread.ident is not None:
                    each.wait()
            os.close(cancelled)
            os.close(cancel)
        return results, interrupted

    def _settled(self, begun: _Begun, finished: _Finished) -> tuple[AuditRecord, Output]:
        """Return the record and the processed output of a command that ran."""
        # Stage 4: process the output
        output = self._processed(finished.run, begun.outcome.decision.commands[0].arguments or ())
        kept = self._kept(begun.record.audit_id, output) if output is not None else None
        record = replace(
            begun.record,
            status="completed" if finished.error is None else "error",
            error=finished.error,
            stages=self._described(begun.outcome.decision.commands, finished.runs),
            sandbox=finished.run.layers if finished.run else (),
            exit_code=finished.run.exit_code if finished.run else None,
            duration_seconds=round(finished.run.duration_seconds, 3) if finished.run else None,
        )
        if output is None:
            record, output = replace(record, status="error", error="redaction_failure"), self._no_output()
        if kept is not None:
            output.metadata.update(kept.as_metadata())
            record = replace(
                record, output_sha256=kept.sha256, output_bytes=kept.size, output_missing=self._written(kept.missing)
            )
        record = _with_output(record, output)
        return replace(record, message=self._written(self._failure(record.error, begun.outcome))), output

    def _judge(self, written: str) -> Decision:
        """The decision on a command, as it reads once its placeholders are restored."""
        command = self._programs.unqualified(self._restored(written))
        decision = self._named_by_path(decide(command, self._roots))
        if decision.classification == FORBIDDEN or decision.problem is not None:
            return decision
        if (foreign := self._foreign_file(command, decision)) is not None:
            rule = "forbidden: other files"
            return replace(decision, classification=FORBIDDEN, tier=0, rule=rule, explanation=foreign)
        unknown = next(filter(None, (each.unknown(command) for each in self._restorers())), None)
        if unknown is None:
            decision = self._asked_for_token(decision, command)
            if self._anonymizer is not None and decision.stages and decision.classification == SAFE:
                return replace(decision, classification=RISKY, tier=3, rule=_PRIVATE_PIPE, explanation=_MAY_REVEAL)
            applied = self._sandbox.mode == "auto" and self._runner is None
            if self._sandbox.mode != "required" or self._runner is not None:
                decision = ask_without_sandbox(decision, applied=applied)
            if decision.classification == SAFE:
                decision = of_line(tuple(map(self._kubeconfigs.judged, decision.commands)))
            return ask_by_form(decision) if applied else replace(decision, form=None)
        why = f"{unknown} is unknown in this session. Use a placeholder from its output, or the name itself."
        return replace(
            decision,
            classification=RISKY,
            tier=3,
            rule=_UNKNOWN_PLACEHOLDER,
            explanation=why,
            arguments=None,
            problem="unsupported_syntax",
        )

    def _named_by_path(self, decision: Decision) -> Decision:
        """Name the program that would run where a command names another one by its path."""
        name = decision.program.rpartition("/")[2]
        found = self._programs.find(name) if decision.program.startswith("/") and decision.problem else None
        if found is None:
            return decision
        why = (
            f"{decision.program[:80]} is not the {name} that would run, which is {found}. Write {name} if you mean it."
        )
        return replace(decision, explanation=why)

    def _foreign_file(self, command: str, decision: Decision) -> str | None:
        """Why a command may read a file outside those of this investigation."""
        if self._reads_only is None or decide(command, self._reads_only).classification == SAFE:
            return None
        opens_none = [stage.profile == TEXT_ONLY for stage in decision.stages]
        segments = [words for words, none in zip_longest(parse(command).segments, opens_none) if not none]
        why = foreign_file(segments, self._is_own_file)
        places = ", ".join(map(str, self._reads_only))
        return why and (
            f"Refused: {why} An investigation reads files only in {places}, and this session's in "
            f"{self._audit.path.parent}."
        )

    def _is_own_file(self, real: str) -> bool:
        """Whether a real path is a capture, a report or a record of this session; not the mapping of private mode."""
        audit = os.path.realpath(self._audit.path.parent) + "/"
        if real.startswith(audit):
            # Not those of SESSION_2, which began in the same second; audit ids have three digits and more.
            named = re.search(rf"{re.escape(self.session_id)}(?!_?\d{{1,2}}(?!\d)|\d)", real.removeprefix(audit))
            return named is not None and not real.startswith(f"{audit}anonymization_map_")
        return Roots(self._reads_only or ()).hold(real)

    def _asked_for_token(self, decision: Decision, command: str) -> Decision:
        """RISKY with a token that has a placeholder: no URL, header or name may take a secret out unasked."""
        has_token = self._placeholders is not None and self._placeholders.hide(command) != command
        if not has_token:
            return decision
        if decision.classification != SAFE:
            return replace(decision, form=None, reads=False)
        why = "It holds a token that looked like a secret, restored from its placeholder: check where it is sent."
        return replace(decision, classification=RISKY, tier=3, rule=_RESTORED_TOKEN, explanation=why)

    def _run(self, outcome: GateOutcome, timeout_seconds: float, cancelled: int | None = None) -> _Finished:
        """Run the commands of a line one after the other, each on the redacted output of the one before."""
        decision = outcome.decision
        by_form = outcome.for_session and decision.form is not None
        deadline = time.monotonic() + timeout_seconds
        given: bytes | None = None
        runs: list[Run] = []
        for at, command in enumerate(decision.commands, start=1):
            left = timeout_seconds if at == 1 else max(0.0, deadline - time.monotonic())
            finished = self._run_command(command, min(left, command.time_limit or left), cancelled, given, by_form)
            if finished.run is not None and finished.run.timed_out and (command.time_limit or left) < left:
                finished = _Finished(replace(finished.run, exit_code=TIMED_OUT, timed_out=False), None)
            if finished.run is None:
                return replace(finished, runs=tuple(runs))
            runs.append(finished.run)
            if finished.error is not None or at == len(decision.commands):
                break
            try:
                given = passed_on(finished.run.stdout, command.arguments or ())
            except Exception as error:  # noqa: BLE001 - whatever went wrong, raw output must not pass
                return _Finished(None, "pipe" if isinstance(error, PipeError) else "redaction_failure", tuple(runs))
        return _Finished(joined(runs), finished.error, tuple(runs))

    def _run_command(
        self, decision: Decision, timeout_seconds: float, cancelled: int | None, given: bytes | None, by_form: bool
    ) -> _Finished:
        """Runs what was judged, or says why it cannot run."""
        shown = decision.rule.endswith((NO_SANDBOX, CREDENTIAL_PROGRAM))  # else it would have run unasked
        confined = decision.classification == SAFE or shown or by_form
        if decision.arguments is None or decision.problem is not None:
            return _Finished(None, decision.problem or "unsupported_syntax")
        arguments = decision.arguments
        if decision.hosts or arguments[0].rpartition("/")[2] == "curl":
            pinned = pin_hosts(arguments, decision.hosts, self._resolver)
            if pinned.forbidden is not None:
                return _Finished(None, "forbidden_address")
            if pinned.unresolved is not None:
                message = f"curl: ({COULD_NOT_RESOLVE}) Could not resolve host: {pinned.unresolved}"
                return _Finished(failed_run(COULD_NOT_RESOLVE, message), None)
            arguments = pinned.arguments
        sandbox = self._sandbox if confined else None
        if sandbox is not None and (cluster := self._kubeconfigs.cluster_of(decision)):
            program = cluster.program[0] if cluster.program in self._kubeconfigs.approved else None
            sandbox = replace(sandbox, cluster_files=cluster.files, credential_program=program)
        try:
            result = run(
                arguments,
                programs=self._programs if decision.profile is None else Programs.of_system(),
                environment=self._variables_for(decision),
                timeout_seconds=timeout_seconds,
                runner=self._runner,
                sandbox=sandbox,
                profile=decision.profile,
                warm_az=self._warm_az,
                cancelled=cancelled,
                given=given,
                sinks=decision.sinks,
            )
        except SandboxUnavailableError:
            return _Finished(None, "sandbox_unavailable")
        return _Finished(result, "timeout" if result.timed_out else None)

    def _variables_for(self, decision: Decision) -> dict[str, str]:
        extra = {**self._environment, **dict(decision.variables)}
        target = "kubernetes" if decision.program in PROGRAMS else decision.environment
        return child_environment(self._programs, target, extra)

    def _view_kubeconfig(self, words: Sequence[str]) -> tuple[int | None, str]:
        environment = child_environment(self._programs, "kubernetes", self._environment)
        try:
            seen = run(
                words,
                programs=self._programs,
                environment=environment,
                timeout_seconds=10,
                runner=self._runner,
                sandbox=self._sandbox,
            )
        except SandboxUnavailableError:
            return None, ""
        return seen.exit_code, seen.stdout.head.decode("utf-8", "replace") if seen.stdout.complete else ""

    def _described(self, commands: Sequence[Decision], runs: Sequence[Run]) -> tuple[dict[str, Any], ...]:
        """What is on record of each command of a line that began."""
        return tuple(
            {
                "argv": [self._written(word) for word in command.arguments or ()],
                "class": command.classification,
                "sandbox": list(run.layers),
                "exit_code": run.exit_code,
            }
            for command, run in zip(commands, runs, strict=False)
        )

    def _processed(self, run: Run | None, ran: Sequence[str]) -> Output | None:
        """The output of a run; None where it may not be shown."""
        if run is None:
            return self._no_output()
        try:
            return process_output(run.stdout, run.stderr, self._anonymizer, ran)
        except Exception:  # noqa: BLE001 - whatever went wrong, raw output must not pass
            return None

    def _kept(self, audit_id: str, output: Output) -> KeptOutput | None:
        """Keep all of an output of which a part is shown; None where nothing is missing."""
        if output.full is None:
            return KeptOutput(missing=output.missing) if output.missing else None
        kept = keep(self._audit.path.parent, audit_id, output.full)
        if kept.missing not in (None, TOO_LONG):
            self._audit.warn(f"the full output of {audit_id} is not kept: {kept.missing}")
        return kept

    # What is written down and answered: redacted, and with placeholders where the topology is hidden.

    def _record(self, sequence: int, audit_id: str, command: str, reasoning: str, outcome: GateOutcome) -> AuditRecord:
        runs_approved = outcome.approval_id is not None and outcome.status == "passed"
        return AuditRecord(
            timestamp=self._now(),
            session_id=self.session_id,
            sequence=sequence,
            audit_id=audit_id,
            command=self._written(command) or "",
            reasoning=self._written(reasoning) or "",
            status=outcome.status,
            classification=outcome.decision.classification,
            tier_triggered=outcome.decision.tier,
            error=outcome.error,
            action=outcome.action,
            user_decision=outcome.user_decision,
            denial_reason=self._written(outcome.denial_reason),
            modified_command=self._written(outcome.modified_command),
            environment=outcome.decision.environment,
            approval_id=outcome.approval_id,
            argv_sha256=self._approvals.argv_sha256(outcome.decision) if runs_approved else None,
            anonymization_applied=self._anonymizer is not None,
        )

    def _now(self) -> str:
        return isoformat(self._clock.now())

    def _written(self, text: str | None) -> str | None:
        """`text` for the record: redacted, bounded, with placeholders in private mode."""
        if text is None:
            return None
        try:
            text = self._placeholders.hide(text) if self._placeholders is not None else text
            clean, _ = redact(text[: 4 * MAX_AUDITED_CHARACTERS])
            if len(clean) > MAX_AUDITED_CHARACTERS:
                clean = f"{clean[:MAX_AUDITED_CHARACTERS]}[truncated: {len(text)} characters in total]"
            return self._anonymizer.anonymize(clean) if self._anonymizer is not None else clean
        except Exception:  # noqa: BLE001 - the same boundary as for output: nothing unprocessed is written
            return "[REDACTED]"

    def _restorers(self) -> list[TopologyAnonymizer | Placeholders]:
        return [each for each in (self._anonymizer, self._placeholders) if each is not None]

    def _restored(self, text: str) -> str:
        for each in self._restorers():
            text = each.restore(text)
        return text

    def _no_output(self) -> Output:
        return no_output(self._anonymizer)

    def _empty(self, audit_id: str, classification: str) -> dict[str, Any]:
        output, message = self._no_output(), _REASONS["empty_command"]
        told = {"status": "error", "classification": classification, "error": "empty_command", "message": message}
        return _response({**told, "audit_id": audit_id}, output)

    def _refusal(self, outcome: GateOutcome) -> str:
        """Why a command was not run and what to do instead, for whoever proposed it."""
        decision = outcome.decision
        if decision.classification == FORBIDDEN:
            return f"{decision.explanation} ({decision.rule}) {_NEVER}"
        said = ""
        if outcome.status == "denied":
            said = "A person denied it. " if outcome.action == "user_denied" else "Nobody approved it. "
        elif outcome.error == READ_ONLY:
            said = f"{_READ_ONLY} "
        return f"{said}{self._instead(outcome)}"

    def _failure(self, error: str | None, outcome: GateOutcome) -> str | None:
        if error is None or error not in _REASONS:
            return error and self._instead(outcome)
        return f"{_REASONS[error]} {outcome.decision.explanation}"

    def _instead(self, outcome: GateOutcome) -> str:
        """The explanation of the verdict, with the nearest SAFE command or what makes the line run at all."""
        explained = explain(outcome.command, self._roots)
        fix = explained["fix"] if explained["safe_form"] or outcome.decision.problem else None
        return " ".join(filter(None, (outcome.decision.explanation, fix)))

    def _answer(self, record: AuditRecord, output: Output, audit_written: bool) -> dict[str, Any]:
        """The response; `audit_written` is in it where it is false: the command is not on record."""
        answer = _response(record.as_dict(), output)
        return answer if audit_written else {**answer, "audit_written": False}


@dataclass(frozen=True)
class _Finished:
    run: Run | None
    error: str | None
    runs: tuple[Run, ...] = ()
    """Of each command of the line that ran."""


@dataclass(frozen=True)
class _Judged:
    command: str
    reasoning: str
    decision: Decision | None
    """None without a command or its reasoning."""
    timeout_seconds: float
    asks: bool = False
    """Whether it asks although an approval covers it."""

    @property
    def unasked(self) -> bool:
        return self.decision is not None and self.decision.classification == SAFE


@dataclass(frozen=True)
class _Begun:
    """A command that passed the gate and whose intent is written."""

    record: AuditRecord
    outcome: GateOutcome
    timeout_seconds: float


def _caught(run: Callable[[], _Finished]) -> _Finished | BaseException:
    try:
        return run()
    except BaseException as error:  # noqa: BLE001 - it is raised again once the record is written
        return error


def _anonymizer(directory: Path, session_id: str) -> TopologyAnonymizer:
    from ghost.shell.record.anonymization import TopologyAnonymizer

    return TopologyAnonymizer(directory / f"anonymization_map_{session_id}.json")


def default_roots(audit_dir: Path, settings: Settings) -> tuple[Path, ...]:
    """Default roots of captures and reports: working directory, workspace and capture directories."""
    return (Path.cwd(), audit_dir.absolute().parent, settings.capture_dir.absolute(), CAPTURES)


def _response(told: Mapping[str, Any], output: Output) -> dict[str, Any]:
    return {
        **{name: told.get(name) for name in ("status", "classification", "action")},
        "output": output.text,
        "stderr": output.stderr,
        **{name: told.get(name) for name in ("exit_code", "error", "denial_reason", "message", "duration_seconds")},
        "sandbox": told.get("sandbox", []),
        "output_metadata": output.metadata,
        "audit_id": told["audit_id"],
    }


def _with_output(record: AuditRecord, output: Output) -> AuditRecord:
    return replace(
        record,
        output=output.text,
        stderr=output.stderr,
        output_truncated=output.metadata["truncation_applied"],
        redactions_applied=output.metadata["redactions_applied"],
        redaction_categories=tuple(output.metadata["redaction_categories"]),
        redaction_rules=output.metadata["redaction_rules"],
    )


def _text(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name) if isinstance(request, Mapping) else None
    return value.strip() if isinstance(value, str) else ""


def _timeout(value: object, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return default
    return min(float(value), MAX_TIMEOUT_SECONDS)
