"""`ghost shell run` and `ghost shell explain`."""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from pathlib import Path

from ghost.cli.gates import Gate, PlainGate, TerminalGate
from ghost.cli.narration import terminal
from ghost.cli.wiring import load_settings, open_workspace, to_stderr
from ghost.cli.words import plain, plain_lines
from ghost.records import SystemClock, new_session_id
from ghost.shell import SafeExecShell

_FAILED = 1


def run(command: str, reason: str, workspace_option: Path | None, *, as_json: bool) -> int:
    """Exit status: the command's own where it ran, 1 where it did not."""
    settings = load_settings()
    workspace = open_workspace(workspace_option, settings)
    gate = _gate()
    moment = new_session_id(SystemClock().now()).removeprefix("ghost_")
    session_id = f"shell_{moment}_{secrets.token_hex(3)}"  # two commands of one second are two sessions
    shell = SafeExecShell(
        session_id,
        hitl_callback=gate,
        audit_dir=str(workspace.audit_dir),
        timeout_seconds=settings.command_timeout_seconds,
        roots=[Path.cwd(), workspace.root, workspace.capture_dir],
    )
    response = shell.execute({"command": command, "reasoning": reason.encode("utf-8", "replace").decode()})
    if as_json:
        print(json.dumps(response, ensure_ascii=False, indent=2))
    else:
        sys.stdout.write(_ending(plain_lines(str(response["output"]))))
        sys.stderr.write(_ending(plain_lines(str(response["stderr"]))))
        sys.stdout.flush()
        sys.stderr.write(
            f"[Shell] {response['classification']} — {response['action'] or response['error']}"
            f"  (audit: {response['audit_id']})\n"
        )
        if not response.get("audit_written", True):
            sys.stderr.write(f"ghost: NOT ON RECORD: the audit in {workspace.audit_dir} could not be written\n")
        if response["status"] == "error":
            sys.stderr.write(f"ghost: not run to its end: {_reason(command, str(response['error']))}\n")
    exit_code = response["exit_code"]
    if response["status"] != "completed" or exit_code is None:
        return _FAILED
    return exit_code if 0 <= exit_code <= 255 else _FAILED


def _gate() -> Gate:
    """A question must not go where nobody looks, as to a file of errors: only a letter would be asked for."""
    if terminal() and sys.stderr.isatty():
        return TerminalGate(to_stderr())
    return PlainGate(sys.stdout if terminal() else sys.stderr, sys.stdin)


def _reason(command: str, error: str) -> str:
    words = error.replace("_", " ")
    if error not in {"forbidden_command", "unsupported_syntax", "command_too_long"}:
        return words
    return f"{words}: {plain(str(SafeExecShell.explain(command, [Path.cwd()])['explanation']))}"


def explain(command: str, *, as_json: bool) -> None:
    settings = load_settings()
    verdict = SafeExecShell.explain(command, [Path.cwd(), settings.workspace, settings.capture_dir])
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
    _line("would run", shlex.join(verdict["arguments"] or ()))
    _line("with", "  ".join(f"{name}={value}" for name, value in verdict["variables"].items()))
    _line("resolves first", "  ".join(verdict["hosts"]))
    _line("how to be SAFE", verdict["fix"] or "")


def _line(name: str, text: str) -> None:
    if text:
        print(f"{name + ':':<16}{plain(text)}")


def _word(text: str) -> str:
    return shlex.quote(text) if text else "''"


def _ending(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
