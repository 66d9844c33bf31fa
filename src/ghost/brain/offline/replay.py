"""The offline brain: replays the investigation against the conversation and requests what is missing.

The investigation is a generator. Each turn runs it from the start; recorded results answer its calls, matched by call
and occurrence, and the first calls without a result are the next turn. The brain holds no state: the same conversation
gives the same turn, and an interrupted investigation needs only its conversation.

After an interruption the network may have changed: the two or three most important reads run again first, and their new
results replace the old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ghost.brain.conversation import MemoryNote, Message, ResumeNote, ToolCall, ToolResults, Turn, UserMessage
from ghost.brain.offline.investigation import investigate
from ghost.brain.offline.revalidation import Change, Rerun, compare, critical_reads, describe
from ghost.brain.offline.steps import Call, Question, Step, Steps, key_of
from ghost.errors import BrainError

_RESOLUTIONS = {"confirm", "refute", "contradict"}


class OfflineBrain:
    name = "offline"
    prompt_hash = None

    def __init__(self, investigation: Callable[[str, Sequence[str]], Steps[None]] = investigate) -> None:
        self._investigation = investigation

    def next_turn(self, conversation: Sequence[Message]) -> Turn:
        """Return the next turn. Raises `BrainError` if the conversation has no symptom or is already concluded."""
        history = read_history(conversation)
        number = sum(isinstance(message, Turn) for message in conversation) + 1
        if history.due:
            return _turn(number, _REVALIDATION, [rerun.call for rerun in history.due])
        preface = describe(history.fresh_changes) if history.just_compared else ""
        if history.reopened:
            return _turn(number, preface, history.reopened)
        step = self._advance(history)
        if isinstance(step, Question):
            return Turn(_joined(preface, step.text))
        open_captures_turn = [Call("cleanup_task", {"task_id": task}) for task in history.open_captures_turn(step)]
        if open_captures_turn:
            return _turn(number, _joined(preface, _OPEN_CAPTURES), open_captures_turn)
        return _turn(number, _joined(preface, step.text), step.calls)

    def _advance(self, history: History) -> Step | Question:
        """Return the first step without a full record; of its calls only those without a result."""
        investigation = self._investigation(history.symptom, history.suspected)
        answers = iter(history.answers)
        made: Counter[str] = Counter()
        reply: Any = None
        while True:
            try:
                step = investigation.send(reply)
            except StopIteration:
                raise BrainError(
                    "the offline brain has concluded this investigation: start a new one for another symptom"
                ) from None
            if isinstance(step, Question):
                reply = next(answers, None)
                if reply is None:
                    return step
                continue
            results = []
            for call in step.calls:
                recorded = history.memo.get(call.key, [])
                results.append(recorded[made[call.key]] if made[call.key] < len(recorded) else None)
                made[call.key] += 1
            missing = tuple(call for call, result in zip(step.calls, results, strict=True) if result is None)
            if missing:
                return Step(step.text, missing)
            reply = results


_REVALIDATION = (
    "The investigation was interrupted, and the network may have changed since. Before I rely on earlier evidence I "
    "run the reads it rests on again and compare."
)
_OPEN_CAPTURES = (
    "A capture that was started has not been cleaned up yet and is no longer needed. I clean it up before I conclude."
)


@dataclass
class Record:
    position: int
    """Index of the message that holds the result."""
    call: ToolCall
    result: dict[str, Any]
    """With `real_output`, where there is one."""


@dataclass
class History:
    """The content of a conversation, indexed for the replay."""

    symptom: str
    suspected: tuple[str, ...]
    """Layers named by memory. They change the order of the stages, never the findings."""
    answers: list[str]
    memo: dict[str, list[dict[str, Any]]]
    due: list[Rerun]
    """Reads to repeat after an interruption."""
    fresh_changes: list[Change]
    just_compared: bool
    """True if the repeated reads are the last message."""
    reopened: list[Call]
    """Hypotheses that rest on evidence that has changed, to be tested again."""
    captures: list[str]
    """Tasks that were started and not cleaned up."""

    def open_captures_turn(self, step: Step) -> list[str]:
        concluding = any(call.name == "complete_investigation" for call in step.calls)
        return self.captures if concluding else []


def read_history(conversation: Sequence[Message]) -> History:
    """Index a conversation. Raises `BrainError` if it does not begin with a symptom."""
    symptom = next((message.text for message in conversation if isinstance(message, UserMessage)), "")
    if not symptom.strip():
        raise BrainError("the conversation holds no symptom: begin it with the engineer's description of the failure")
    records = _records(conversation)
    suspected = next((message.layers for message in conversation if isinstance(message, MemoryNote)), ())
    history = History(symptom, suspected, _answers(conversation), {}, [], [], False, [], _open_captures(records))
    reruns: dict[str, Rerun] = {}
    compared: list[Rerun] = []
    remaining = iter(records)
    upcoming = next(remaining, None)
    for position, message in enumerate(conversation):
        while upcoming is not None and upcoming.position < position:
            _remember(history, upcoming, reruns)
            upcoming = next(remaining, None)
        if isinstance(message, ResumeNote):
            _forget_conclusion(history)
            history.due = critical_reads([(r.call, r.result) for r in records if r.position < position])
        elif isinstance(message, Turn) and history.due:
            reruns |= {call.id: rerun for call, rerun in zip(message.tool_calls, history.due, strict=False)}
            compared, history.due = history.due, []
        elif isinstance(message, ToolResults) and compared:
            _compare(history, message, records, reruns, last=position == len(conversation) - 1)
            compared = []
    while upcoming is not None:
        _remember(history, upcoming, reruns)
        upcoming = next(remaining, None)
    return history


def _records(conversation: Sequence[Message]) -> list[Record]:
    calls: dict[str, ToolCall] = {}
    records: list[Record] = []
    for position, message in enumerate(conversation):
        if isinstance(message, Turn):
            calls |= {call.id: call for call in message.tool_calls}
        elif isinstance(message, ToolResults):
            for result in message.results:
                if result.call_id in calls:
                    whole = {"real_output": result.real_output} if result.real_output is not None else {}
                    records.append(Record(position, calls[result.call_id], {**result.result, **whole}))
    return records


def _answers(conversation: Sequence[Message]) -> list[str]:
    """Return what the engineer said after each question, i.e. after each turn without calls."""
    answers: list[str] = []
    asked = False
    for message in conversation:
        if isinstance(message, Turn):
            asked = not message.tool_calls
        elif isinstance(message, UserMessage) and asked:
            answers.append(message.text)
            asked = False
    return answers


def _open_captures(records: Sequence[Record]) -> list[str]:
    started = [
        str(r.result["task_id"])
        for r in records
        if r.call.name == "capture_traffic"
        and r.result.get("task_id")
        and r.result.get("status") not in ("error", "task_cancelled")
    ]
    # A task that was cancelled has removed what it made, or made nothing.
    cancelled = {str(r.result.get("task_id")) for r in records if r.result.get("status") == "task_cancelled"}
    ended = {str(r.call.arguments.get("task_id")) for r in records if r.call.name in ("cleanup_task", "cancel_task")}
    return [task for task in dict.fromkeys(started) if task not in ended | cancelled]


def _remember(history: History, record: Record, reruns: dict[str, Rerun]) -> None:
    key = key_of(record.call.name, record.call.arguments)
    memoised = history.memo.setdefault(key, [])
    rerun = reruns.get(record.call.id)
    if rerun is None or not memoised:
        memoised.append(record.result)
    elif compare(rerun, record.result).replaces:
        memoised[-1] = record.result


def _forget_conclusion(history: History) -> None:
    history.memo.pop(key_of("complete_investigation", {}), None)


def _compare(
    history: History,
    results: ToolResults,
    records: Sequence[Record],
    reruns: dict[str, Rerun],
    *,
    last: bool,
) -> None:
    """Compare fresh results with earlier ones; hypotheses that rest on a changed one are tested again."""
    changes = [compare(reruns[r.call_id], r.result) for r in results.results if r.call_id in reruns]
    changed_ids = {change.before_id for change in changes if change.changed}
    position_of = {r.call.id: r.position for r in records}
    here = max((position_of.get(r.call_id, 0) for r in results.results), default=0)
    if last:
        history.just_compared, history.fresh_changes = True, changes
    if not changed_ids:
        return
    for key in [key for key in history.memo if _is_resolution(key)]:
        del history.memo[key]
    resolved = {
        str(r.call.arguments["id"]): [*r.call.arguments.get("audit_ids", ())]
        for r in records
        if r.position < here
        and r.call.name == "manage_hypotheses"
        and r.call.arguments.get("action") in ("confirm", "refute")
        and r.result.get("status") == "ok"
    }
    if last:
        history.reopened = [
            Call("manage_hypotheses", {"action": "activate", "id": hypothesis})
            for hypothesis, cited in resolved.items()
            if changed_ids & set(cited)
        ]


def _is_resolution(key: str) -> bool:
    return any(f'"action": "{action}"' in key for action in _RESOLUTIONS) and key.startswith('["manage_hypotheses"')


def _turn(number: int, text: str, calls: Sequence[Call]) -> Turn:
    return Turn(
        text,
        tuple(ToolCall(f"t{number}.{place}", call.name, dict(call.arguments)) for place, call in enumerate(calls, 1)),
    )


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
