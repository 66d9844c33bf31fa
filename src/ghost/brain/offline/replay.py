"""The offline brain: replays the investigation against the conversation and requests what is missing.

The investigation is a generator. Recorded results answer its calls, matched by call and occurrence, and the first calls
without a result are the next turn. The same conversation gives the same turn, and an interrupted investigation needs
only its conversation: the generator that waits for the next results is kept, but only as a cache. A conversation that
does not continue the last one is replayed from its start.

After an interruption the network may have changed: the two or three most important reads run again first, and their new
results replace the old ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ghost.brain.conversation import (
    MemoryNote,
    Message,
    ResumeNote,
    StatedEnds,
    ToolCall,
    ToolResult,
    ToolResults,
    Turn,
    UserMessage,
)
from ghost.brain.offline.investigation import investigate
from ghost.brain.offline.revalidation import Change, Rerun, compare, critical_reads, describe
from ghost.brain.offline.steps import Call, Question, Step, Steps, key_of
from ghost.errors import BrainError

Investigate = Callable[[str, MemoryNote, StatedEnds], Steps[None]]

_RESOLUTIONS = {"confirm", "refute", "contradict"}
_REVALIDATION = (
    "The investigation was interrupted, and the network may have changed since. Before I rely on earlier evidence I "
    "run the reads it rests on again and compare."
)
_OPEN_CAPTURES = (
    "A capture that was started has not been cleaned up yet and is no longer needed. I clean it up before I conclude."
)


class OfflineBrain:
    name = "offline"
    prompt_hash = None

    def __init__(self, investigation: Investigate = investigate) -> None:
        self._investigation = investigation
        self._replay: _Replay | None = None

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        """Return the next turn. Raises `BrainError` if the conversation has no symptom or is already concluded."""
        before, self._replay = self._replay, None  # after an exception the next turn replays
        replay = before if before is not None and before.is_continued_by(conversation) else _Replay(self._investigation)
        for message in conversation[len(replay.conversation) :]:
            replay.add(message)
        turn = replay.turn()
        self._replay = replay
        return turn


@dataclass(frozen=True)
class _Record:
    call: ToolCall
    result: dict[str, Any]
    """With `real_output`, where there is one."""


class _Replay:
    """A conversation, indexed message by message, and the investigation up to the step that waits for its results."""

    def __init__(self, investigation: Investigate) -> None:
        self.conversation: list[Message] = []
        self._investigation = investigation
        self._progress: _Progress | None = None
        self._symptom = UserMessage("")
        self._memory: MemoryNote | None = None
        self._calls: dict[str, ToolCall] = {}
        self._records: list[_Record] = []
        self._memo: dict[str, list[dict[str, Any]]] = {}
        self._answers: list[str] = []
        """What the engineer said after each question, i.e. after each turn without calls."""
        self._is_asked = False
        self._due: list[Rerun] = []
        """Reads to repeat after an interruption."""
        self._compared: list[Rerun] = []
        """Repeated reads whose results come next."""
        self._reruns: dict[str, Rerun] = {}
        self._fresh_changes: list[Change] = []
        """What the repeated reads told, if their results are the last message."""
        self._reopened: list[Call] = []
        """Hypotheses that rest on evidence that has changed, to be tested again; likewise."""

    def is_continued_by(self, conversation: Sequence[Message]) -> bool:
        return len(self.conversation) <= len(conversation) and all(
            known is message for known, message in zip(self.conversation, conversation, strict=False)
        )

    def add(self, message: Message) -> None:
        self._fresh_changes, self._reopened = [], []
        match message:
            case UserMessage() if not self._symptom.text.strip():
                self._symptom = message
            case UserMessage(text) if self._is_asked:
                self._answers.append(text)
                self._is_asked = False
            case MemoryNote() if self._memory is None:
                self._memory, self._progress = message, None
            case ResumeNote():
                self._memo.pop(key_of("complete_investigation", {}), None)
                self._due = critical_reads([(r.call, r.result) for r in self._records])
                self._progress = None
            case Turn():
                self._calls |= {call.id: call for call in message.tool_calls}
                self._is_asked = not message.tool_calls
                if self._due:
                    self._reruns |= {c.id: rerun for c, rerun in zip(message.tool_calls, self._due, strict=False)}
                    self._compared, self._due = self._due, []
            case ToolResults():
                self._add_results(message)
        self.conversation.append(message)

    def turn(self) -> Turn:
        if not self._symptom.text.strip():
            raise BrainError("the conversation holds no symptom: begin it with the engineer's description")
        number = sum(isinstance(message, Turn) for message in self.conversation) + 1
        if self._due:
            return _turn(number, _REVALIDATION, [rerun.call for rerun in self._due])
        preface = describe(self._fresh_changes)
        if self._reopened:
            return _turn(number, preface, self._reopened)
        if self._progress is None:
            memory = self._memory or MemoryNote("")
            begun = self._investigation(self._symptom.text, memory, self._symptom.stated)
            self._progress = _Progress(begun)
        step = self._progress.advance(self._memo, self._answers)
        if isinstance(step, Question):
            return Turn(_joined(preface, step.text))
        if any(call.name == "complete_investigation" for call in step.calls) and (tasks := self._open_captures()):
            cleanups = [Call("cleanup_task", {"task_id": task}) for task in tasks]
            return _turn(number, _joined(preface, _OPEN_CAPTURES), cleanups)
        return _turn(number, _joined(preface, step.text), step.calls)

    def _add_results(self, message: ToolResults) -> None:
        records = [
            _Record(self._calls[result.call_id], with_real_values(result))
            for result in message.results
            if result.call_id in self._calls
        ]
        if self._compared:
            self._compare([record for record in records if record.call.id in self._reruns])
            self._compared, self._progress = [], None
        for record in records:
            results = self._memo.setdefault(key_of(record.call.name, record.call.arguments), [])
            rerun = self._reruns.get(record.call.id)
            if rerun is not None and results:
                if not compare(rerun, record.result).changed:
                    continue  # the record that hypotheses cite stands
                results[-1] = record.result
            elif record.result.get("error") != "conclusion_incomplete":  # concluded again, until it stands
                results.append(record.result)
            self._records.append(record)

    def _compare(self, repeated: Sequence[_Record]) -> None:
        """Compare fresh results with earlier ones; hypotheses that rest on a changed one are tested again."""
        self._fresh_changes = [compare(self._reruns[record.call.id], record.result) for record in repeated]
        changed_ids = {change.before_id for change in self._fresh_changes if change.changed}
        if not changed_ids:
            return
        for key in [key for key in self._memo if _is_resolution(key)]:
            del self._memo[key]
        resolved = {
            str(r.call.arguments["id"]): [*r.call.arguments.get("audit_ids", ())]
            for r in self._records
            if r.call.name == "manage_hypotheses"
            and r.call.arguments.get("action") in ("confirm", "refute")
            and r.result.get("status") == "ok"
        }
        self._reopened = [
            Call("manage_hypotheses", {"action": "activate", "id": hypothesis})
            for hypothesis, cited in resolved.items()
            if changed_ids & set(cited)
        ]

    def _open_captures(self) -> list[str]:
        """Return the tasks that were started and not cleaned up."""
        started = [
            str(r.result["task_id"])
            for r in self._records
            if r.call.name == "capture_traffic"
            and r.result.get("task_id")
            and r.result.get("status") not in ("error", "task_cancelled")
        ]
        # A task that was cancelled has removed what it made, or made nothing.
        cancelled = {str(r.result.get("task_id")) for r in self._records if r.result.get("status") == "task_cancelled"}
        ended = {
            str(r.call.arguments.get("task_id"))
            for r in self._records
            if r.call.name in ("cleanup_task", "cancel_task")
        }
        return [task for task in dict.fromkeys(started) if task not in ended | cancelled]


@dataclass
class _Progress:
    """The investigation, answered as far as results are known."""

    steps: Steps[None]
    waiting: Step | Question | None = None
    made: Counter[str] = field(default_factory=Counter)
    """How often each call was made before the step that waits."""
    asked: int = 0

    def advance(self, memo: dict[str, list[dict[str, Any]]], answers: Sequence[str]) -> Step | Question:
        """Return the first step without a full record; of its calls only those without a result."""
        if self.waiting is None:
            self.waiting = self._next(None)
        while True:
            if isinstance(self.waiting, Question):
                if self.asked == len(answers):
                    return self.waiting
                self.asked += 1
                self.waiting = self._next(answers[self.asked - 1])
                continue
            made = self.made.copy()
            results: list[dict[str, Any] | None] = []
            for call in self.waiting.calls:
                recorded = memo.get(call.key, [])
                results.append(recorded[made[call.key]] if made[call.key] < len(recorded) else None)
                made[call.key] += 1
            missing = tuple(c for c, result in zip(self.waiting.calls, results, strict=True) if result is None)
            if missing:
                return Step(self.waiting.text, missing)
            self.made = made
            self.waiting = self._next(results)

    def _next(self, reply: Any) -> Step | Question:
        try:
            return self.steps.send(reply)
        except StopIteration:
            raise BrainError(
                "the offline brain has concluded this investigation: start a new one for another symptom"
            ) from None


def with_real_values(result: ToolResult) -> dict[str, Any]:
    if result.real_output is None:
        return result.result
    if result.name == "run_shell_cmd":
        return {**result.result, "real_output": result.real_output}
    answer: dict[str, Any] = json.loads(result.real_output)
    return answer


def _is_resolution(key: str) -> bool:
    return any(f'"action": "{action}"' in key for action in _RESOLUTIONS) and key.startswith('["manage_hypotheses"')


def _turn(number: int, text: str, calls: Sequence[Call]) -> Turn:
    return Turn(
        text,
        tuple(ToolCall(f"t{number}.{place}", call.name, dict(call.arguments)) for place, call in enumerate(calls, 1)),
    )


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
