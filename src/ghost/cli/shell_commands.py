"""`ghost shell run` and `ghost shell explain`."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ghost.cli.shell_errors import error_text
from ghost.config import Settings
from ghost.records import SystemClock, new_command_id
from ghost.shell import HitlCallback, HitlDecision, missing_sandbox
from ghost.shell import explain as explained
from ghost.text import visible

if TYPE_CHECKING:
    from ghost.lab import ShellPrograms
    from ghost.shell import SafeExecShell

_FAILED = 1


def run(
    command: str,
    reason: str,
    workspace_option: Path | None,
    *,
    as_json: bool,
    timeout_seconds: float | None = None,
    private: bool = False,
    read_only: bool = False,
) -> int:
    """Run one command. Returns its exit status, or 1 where it did not run."""
    from ghost.shell import SafeExecShell

    settings = Settings()
    settings = replace(settings, workspace=(workspace_option or settings.workspace).absolute())
    roots = [Path.cwd(), settings.workspace, settings.capture_dir]
    session_id = new_command_id("shell_", SystemClock().now())
    notice = RunningNotice(sys.stderr)
    gate = RecordingGate(_ask, notice.quiet, command)
    shell = SafeExecShell(
        session_id,
        hitl_callback=gate,
        audit_dir=settings.audit_dir,
        timeout_seconds=timeout_seconds or settings.command_timeout_seconds,
        anonymization_enabled=private or settings.private,
        roots=roots,
        read_only=read_only,
        **_programs_of_lab_in_environment(),
    )
    try:
        with notice:
            response = shell.execute({"command": command, "reasoning": reason.encode("utf-8", "replace").decode()})
    except KeyboardInterrupt:
        sys.stderr.write(f"[Shell] interrupted: {visible(gate.command)}  (audit: {session_id}_001)\n")
        raise
    head = _head_of(shell) if response.get("audit_written", True) else None
    if as_json:
        print(json.dumps({**response, "audit_head": head}, ensure_ascii=False, indent=2))
    else:
        sys.stdout.write(_ending(visible(str(response["output"]), keep="\n\t")))
        sys.stderr.write(_ending(visible(str(response["stderr"]), keep="\n\t")))
        sys.stdout.flush()
        sys.stderr.writelines(f"[Shell] {visible(context)}\n" for context in shell.contexts())
        is_on_record = response["error"] != "empty_command"
        sys.stderr.write(
            f"[Shell] {response['classification']} — {response['action'] or response['error']}"
            f"{'  (audit: ' + response['audit_id'] + ')' if is_on_record else ''}\n"
        )
        if head:
            from ghost.cli.terminal import to_stderr

            to_stderr().print(f"[Shell] audit head {head} of {session_id}", style="dim", markup=False, soft_wrap=True)
        told = response["output_metadata"]
        if "full_output" in told:
            sys.stderr.write(f"[Shell] shown in part; all of it: ghost audit show {session_id} 1\n")
        elif "full_output_missing" in told:
            sys.stderr.write(f"[Shell] shown and kept in part: {told['full_output_missing']}\n")
        if not response.get("audit_written", True):
            sys.stderr.write(f"ghost: NOT ON RECORD: the audit in {settings.audit_dir} could not be written\n")
        if response["status"] == "error":
            why = error_text(response)
            sys.stderr.write(f"ghost: not completed: {why}\n")
    exit_code = response["exit_code"]
    if response["status"] != "completed" or exit_code is None:
        return _FAILED
    return exit_code if 0 <= exit_code <= 255 else _FAILED


def _head_of(shell: SafeExecShell) -> str | None:
    head = shell.audit_head
    return f"{head.count}:{head.sha256}" if head.count else None


def _ask(command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
    from ghost.cli.approvals import interactive_gate
    from ghost.cli.terminal import to_stderr

    return interactive_gate(to_stderr())(command, reasoning, risk, tier)


def _programs_of_lab_in_environment() -> ShellPrograms:
    """Programs of the lab that AZURE_CONFIG_DIR points to; empty without a lab."""
    if "AZURE_CONFIG_DIR" not in os.environ:
        return {}
    from ghost.lab import lab_behind_az, lab_programs

    return lab_programs(lab_behind_az())


class RecordingGate:
    """A gate that remembers the last command, as modified by the person who was asked."""

    def __init__(self, gate: HitlCallback, quiet: Callable[[], AbstractContextManager[None]], command: str) -> None:
        self.command = command
        self._gate = gate
        self._quiet = quiet

    def __call__(self, command: str, reasoning: str, risk: str, tier: int | None) -> HitlDecision:
        with self._quiet():
            decision = self._gate(command, reasoning, risk, tier)
        if decision.action == "modify" and decision.modified_command:
            self.command = decision.modified_command
        return decision


class RunningNotice:
    """Show on a terminal that a command is still running, once it took `after_seconds`."""

    def __init__(self, out: TextIO, after_seconds: float = 2.0) -> None:
        self._out = out
        self._after_seconds = after_seconds
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._since: float | None = None
        self._shown = False

    def __enter__(self) -> None:
        if self._out.isatty():
            self._since = time.monotonic()
            threading.Thread(target=self._show_while_running, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._lock:
            self._since = None
            self._wipe()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While a person is gate nothing runs; the time counts from their answer."""
        with self._lock:
            was_telling, self._since = self._since is not None, None
            self._wipe()
        try:
            yield
        finally:
            with self._lock:
                self._since = time.monotonic() if was_telling else None

    def _show_while_running(self) -> None:
        while not self._ended.wait(0.5):
            with self._lock:
                seconds = time.monotonic() - self._since if self._since is not None else 0.0
                if self._since is not None and seconds >= self._after_seconds:
                    self._out.write(f"\r[Shell] running, {seconds:.0f} s (Ctrl-C ends it)")
                    self._out.flush()
                    self._shown = True

    def _wipe(self) -> None:
        if self._shown:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._shown = False


def explain(command: str, *, as_json: bool) -> None:
    settings = Settings()
    verdict = explained(command, [Path.cwd(), settings.workspace, settings.capture_dir])
    if as_json:
        print(json.dumps(verdict, ensure_ascii=False, indent=2))
        return
    tier, parsed = verdict["tier"], verdict["parse"]
    options = [
        option["option"] if option["value"] is None else f"{option['option']} {_word(option['value'])}"
        for option in parsed["options"]
    ]
    _line("command", command)
    _line("program", parsed["program"])
    _line("options", "  ".join(options))
    _line("operands", "  ".join(map(_word, parsed["operands"])))
    _line("operators", "  ".join(parsed["operators"]))
    _line("then", "  ".join(parsed["other_commands"]))
    _line("classification", verdict["classification"])
    _line("tier", "passes all" if tier is None else str(tier))
    _line("rule", verdict["rule"])
    _line("why", verdict["explanation"])
    stages = [stage["arguments"] for stage in verdict["stages"]] or [verdict["arguments"] or ()]
    _line("would run", " | ".join(map(shlex.join, stages)))
    _line("with", "  ".join(f"{name}={value}" for name, value in verdict["variables"].items()))
    _line("resolves first", "  ".join(verdict["hosts"]))
    _line("how to be SAFE", verdict["fix"] or "")
    _line("sandbox", missing_sandbox() or "")


def _line(name: str, text: str) -> None:
    if text:
        print(f"{name + ':':<16}{visible(text)}")


def _word(text: str) -> str:
    return shlex.quote(text) if text else "''"


def _ending(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
