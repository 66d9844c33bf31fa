"""The conversation of an investigation, one record per message, from which an interrupted one is resumed.

Command output is not stored here: a shell result is stored as its audit id and read back from the audit. Results of the
orchestrator and the hypothesis log hold no output and are stored as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ghost.agent.audit_evidence import Evidence
from ghost.brain import (
    EarlierSession,
    MemoryNote,
    Message,
    ResumeNote,
    StatedEnds,
    ToolCall,
    ToolResult,
    ToolResults,
    Turn,
    Usage,
    UserMessage,
)
from ghost.records import ChainedLog, Head, read_valid_records
from ghost.shell import redact
from ghost.text import map_text

_FROM_AUDIT = (
    "status",
    "classification",
    "action",
    "output",
    "stderr",
    "exit_code",
    "error",
    "denial_reason",
    "message",
    "duration_seconds",
    "sandbox",
    "audit_id",
)


class TurnLog:
    """Writes the conversation. `hide` and `real` return a text with the placeholders of private mode, and without."""

    def __init__(self, path: Path, hide: Callable[[str], str] = str, real: Callable[[str], str] = str) -> None:
        self._log = ChainedLog(path)
        self._hide = hide
        self._real = real

    @property
    def head(self) -> Head:
        return self._log.head

    def user(self, message: UserMessage) -> None:
        stated = self.written(asdict(message.stated)) if message.stated != StatedEnds() else None
        self._log.append({"kind": "user", "text": self.written(message.text), **({"stated": stated} if stated else {})})

    def resume(self, note: ResumeNote) -> None:
        self._log.append({"kind": "resume", "text": note.text})

    def memory(self, note: MemoryNote) -> None:
        record = {"kind": "memory", "text": self.written(note.text), "layers": list(note.layers)}
        self._log.append(
            {**record, **({"earlier": [each.session_id for each in note.earlier]} if note.earlier else {})}
        )

    def turn(self, number: int, turn: Turn) -> None:
        calls = [{"id": call.id, "name": call.name, "arguments": self.arguments(call)} for call in turn.tool_calls]
        record = {
            "kind": "turn",
            "turn": number,
            "text": self.written(turn.text),
            "tool_calls": calls,
            "usage": asdict(turn.usage),
        }
        self._log.append({**record, "state": turn.state} if turn.state is not None else record)

    def result(self, result: ToolResult) -> None:
        record: dict[str, Any] = {"kind": "result", "call_id": result.call_id, "name": result.name}
        audit_id = result.result.get("audit_id")
        if result.name == "run_shell_cmd" and audit_id and result.result.get("error") != "empty_command":
            record["audit_id"] = audit_id
            record["kept"] = {key: result.result[key] for key in ("output_metadata", "_meta") if key in result.result}
        else:
            record["kept"] = result.result
        record["kept"] = record["kept"] if self._hide is str else map_text(record["kept"], self._hide, keys=False)
        self._log.append(record)

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """Return a call's arguments as they are recorded: without secrets, with placeholders in private mode."""
        return {name: self.written(value) for name, value in call.arguments.items()}

    def as_resumed(self, message: UserMessage) -> UserMessage:
        """Return what the engineer says as it is read back: with the real values, spelled as they were seen first."""
        said = map_text(asdict(message), lambda text: self._real(self._hide(text)))
        return _user(said)

    def written(self, value: Any) -> Any:
        """Return a text, or the texts of a value, as it is recorded."""
        return map_text(map_text(value, without_secrets), self._hide, keys=False)


def recordable(turn: Turn) -> Turn:
    """Return the turn without what a file cannot hold and no server accepts: lone surrogates, NaN and infinities."""
    calls = [(call.id, call.name, call.arguments) for call in turn.tool_calls]
    spoken = json.dumps([turn.text, turn.state, calls], ensure_ascii=False).encode("utf-8", "replace")
    text, state, calls = json.loads(spoken, parse_constant=lambda _: None)
    return replace(turn, text=text, state=state, tool_calls=tuple(ToolCall(*call) for call in calls))


def with_real_values(answer: dict[str, Any], real: Callable[[str], str]) -> str | None:
    """Return the answer of the orchestrator or the session as JSON with real values, for code; None if it has none."""
    text = json.dumps(answer, default=str)
    restored = real(text)
    return restored if restored != text else None


def without_secrets(text: str) -> str:
    return redact(text)[0]


def recorded_symptom(path: Path) -> UserMessage | None:
    """Return the first message of the engineer in `path`; None without one."""
    records, _ = read_valid_records(path)
    return next((_user(record) for record in records if record.get("kind") == "user"), None)


def _user(record: Mapping[str, Any]) -> UserMessage:
    return UserMessage(str(record.get("text", "")), StatedEnds(**record.get("stated", {})))


Earlier = Callable[[str], EarlierSession | None]
"""Return a session that memory named, if its records still hold."""


def read_conversation(
    path: Path, audit: Evidence, earlier: Earlier = lambda _: None
) -> tuple[list[Message], list[ToolCall], int]:
    """Return the conversation in `path`, the open calls of its last turn, and the number of turns.

    Outputs are those of the shell's records in `audit`, and what was said holds the real values behind placeholders of
    private mode. A result whose record is missing tells the brain so.
    """
    records, _ = read_valid_records(path)
    messages: list[Message] = []
    open_calls: list[ToolCall] = []
    results: list[ToolResult] = []
    turns = 0
    for message in _messages(records, audit, earlier):
        if isinstance(message, ToolResult):
            open_calls = [call for call in open_calls if call.id != message.call_id]
            results.append(message)
            continue
        if results:
            messages.append(ToolResults(tuple(results)))
            results = []
        messages.append(message)
        if isinstance(message, Turn):
            turns += 1
            open_calls = list(message.tool_calls)
    if results:
        messages.append(ToolResults(tuple(results)))
    return messages, open_calls, turns


def _messages(
    records: list[dict[str, Any]], audit: Evidence, earlier: Earlier
) -> Iterator[UserMessage | ResumeNote | MemoryNote | Turn | ToolResult]:
    def real(value: Any) -> Any:
        return map_text(value, audit.restored)

    for record in records:
        match record.get("kind"):
            case "user":
                yield _user(real(record))
            case "resume":
                yield ResumeNote(str(record.get("text", "")))
            case "memory":
                named = tuple(filter(None, map(earlier, record.get("earlier", []))))
                yield MemoryNote(str(record.get("text", "")), tuple(map(str, record.get("layers", []))), named)
            case "turn":
                calls = tuple(ToolCall(c["id"], c["name"], real(c["arguments"])) for c in record.get("tool_calls", []))
                yield Turn(real(record.get("text", "")), calls, Usage(**record.get("usage", {})), record.get("state"))
            case "result":
                audit_id, answer = record.get("audit_id"), _result(record, audit)
                whole = audit.real_output(audit_id) if audit_id else with_real_values(answer, audit.restored)
                yield ToolResult(str(record["call_id"]), str(record["name"]), answer, whole)
            case _:
                continue


def _result(record: dict[str, Any], audit: Evidence) -> dict[str, Any]:
    kept = dict(record.get("kept") or {})
    audit_id = record.get("audit_id")
    if audit_id is None:
        return kept
    evidence = audit.get(audit_id)
    if evidence is None:
        return {
            "status": "error",
            "error": "record_missing",
            "message": f"the audit record {audit_id} is missing: run the command again",
            **kept,
        }
    return {**recorded_result(evidence), **kept}


def recorded_result(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `run_shell_cmd` told of a command, from its audit record."""
    return {key: record.get(key) for key in _FROM_AUDIT}
