"""The loop of one investigation: query the brain, run its tools, record the results, save, until it concludes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from ghost.agent.denials import count_denial
from ghost.agent.resumption import reissue
from ghost.agent.session import Session, save_session
from ghost.agent.tools import Orchestrator, Tools
from ghost.agent.turns import TurnLog, recordable
from ghost.brain import Brain, MemoryNote, Message, ResumeNote, ToolCall, ToolResult, ToolResults, Turn, UserMessage
from ghost.records import Clock, Head, isoformat

NO_ONE_CAN_ANSWER: Final = (
    "No one can answer questions now. Go on with the tools, or conclude with what the records show."
)
AFTER_THE_END: Final = "Not run: complete_investigation ended the investigation, and its first conclusion is kept."
RESUMED: Final = (
    "This session was interrupted and is now resumed. Network state may have changed: run the most critical reads "
    "again and compare before you rely on earlier evidence."
)


class Console(Protocol):
    """The engineer's terminal. `ask` returns None if nobody can answer."""

    def said(self, turn: Turn) -> None: ...

    def calling(self, call: ToolCall) -> None: ...

    def returned(self, call: ToolCall, result: dict[str, Any]) -> None: ...

    def answer(self, question: str) -> str | None: ...

    def choose(self, question: str, choices: dict[str, str]) -> str | None: ...

    def choose_each(self, question: str, items: Sequence[str]) -> list[bool] | None: ...


class HasHead(Protocol):
    @property
    def audit_head(self) -> Head: ...

    @property
    def approvals_head(self) -> Head: ...


class HasRegistryHead(Orchestrator, Protocol):
    @property
    def registry_head(self) -> Head: ...


@dataclass
class Investigation:
    """One investigation. `conversation` and `unanswered` hold the state of a resumed session; empty in a new one."""

    brain: Brain
    tools: Tools
    session: Session
    session_file: Path
    turns: TurnLog
    shell: HasHead
    orchestrator: HasRegistryHead
    console: Console
    clock: Clock
    conversation: list[Message]
    unanswered: list[ToolCall]
    max_turns: int
    max_denials: int

    def run(self) -> None:
        """Run turns until the brain concludes, the engineer ends it, or the turn limit is reached.

        The session is always saved. Raises `BrainError` if the brain cannot continue, `LoginError` if Azure asks
        for a new login and `KeyboardInterrupt` if the engineer interrupts; it can be resumed after each.
        """
        try:
            if self.unanswered:
                made = [
                    reissue(call, self.turns.arguments(call), self.conversation, self.orchestrator)
                    for call in self.unanswered
                ]
                self._answer(self.unanswered, made, self._answered_before())
            while self.session.completion is None:
                if self.session.turn_count >= self.max_turns and not self._ask_for_extension():
                    break
                self._step()
        finally:
            self.save()

    def begin(self, symptom: str, memory: MemoryNote | None = None) -> None:
        """Start with the symptom and hints from memory, which the brain reads and no statement may cite."""
        self._add_message(UserMessage(symptom, self.session.stated))
        if memory is not None:
            self.turns.memory(memory)
            self.conversation.append(memory)
        self.save()

    def resume(self) -> None:
        note = ResumeNote(RESUMED)
        self.turns.resume(note)
        self.conversation.append(note)

    def _step(self) -> None:
        turn = recordable(self.brain.next_turn(self.conversation))
        self.session.turn_count += 1
        self.turns.turn(self.session.turn_count, turn)
        self.conversation.append(turn)
        self.console.said(turn)
        if turn.tool_calls:
            self._answer(turn.tool_calls, turn.tool_calls, [])
        else:
            self._ask_engineer(turn)
        self.save()

    def _answer(self, calls: Sequence[ToolCall], made: Sequence[ToolCall], results: list[ToolResult]) -> None:
        """Make each call and record its result.

        The session is saved before the result is recorded: after a kill in between, the call is repeated and nothing is
        lost.
        """
        place = 0
        while place < len(made):
            group = made[place : place + max(1, self.tools.reads_together(made[place:]))]
            for call in group:
                self.console.calling(call)
            for asked, call, called in zip(calls[place:], group, self._called(group), strict=False):
                result = replace(self._judged(call, called), call_id=asked.id, name=asked.name)
                self.save()
                self.turns.result(result)
                results.append(result)
                self.console.returned(call, result.result)
            place += len(group)
        self.conversation.append(ToolResults(tuple(results)))

    def _called(self, group: Sequence[ToolCall]) -> list[ToolResult]:
        if self.session.completion is not None:
            ended = {"status": "error", "error": "investigation_complete", "message": AFTER_THE_END}
            return [ToolResult(call.id, call.name, ended) for call in group]
        return self.tools.call_together(group) if len(group) > 1 else [self.tools.call(group[0])]

    def _judged(self, call: ToolCall, called: ToolResult) -> ToolResult:
        """Return the result with what the denials of the session come to."""
        result = called.result
        meta = count_denial(
            self.session,
            replace(call, arguments=self.turns.arguments(call)),
            result,
            turn=self.session.turn_count,
            limit=self.max_denials,
            at=isoformat(self.clock.now()),
        )
        return replace(called, result={**result, "_meta": {**result.get("_meta", {}), **meta}}) if meta else called

    def _answered_before(self) -> list[ToolResult]:
        """Return the results already recorded for the last turn, to be merged with those of the open calls."""
        if self.conversation and isinstance(self.conversation[-1], ToolResults):
            last = self.conversation.pop()
            return list(last.results) if isinstance(last, ToolResults) else []
        return []

    def _ask_engineer(self, turn: Turn) -> None:
        answer = self.console.answer(turn.text)
        if answer is not None and answer.strip().lower() in {"", "d", "done"}:
            self._conclude("The engineer ended the investigation before a conclusion was reached.")
        elif answer is not None:
            self._add_message(UserMessage(answer))
        elif self.conversation[-2:-1] == [UserMessage(NO_ONE_CAN_ANSWER)]:
            self._conclude(f"The investigation needs an answer that nobody gave: {turn.text}")
        else:
            self._add_message(UserMessage(NO_ONE_CAN_ANSWER))

    def _ask_for_extension(self) -> bool:
        choice = self.console.choose(
            f"Maximum investigation turns ({self.max_turns}) reached.",
            {"e": "Extend by 10 turns", "g": "Generate the report now"},
        )
        if choice == "e":
            self.max_turns += 10
            return True
        self._conclude(f"The investigation reached its limit of {self.max_turns} turns without a conclusion.")
        return False

    def _conclude(self, why: str) -> None:
        states = {h.id: h.state.value for h in self.session.hypothesis_log}
        self.session.completion = {
            "confidence": "low",
            "root_cause_summary": self.turns.written(why),
            "confirmed_hypotheses": [i for i, state in states.items() if state == "CONFIRMED"],
            "refuted_hypotheses": [i for i, state in states.items() if state == "REFUTED"],
            "unverifiable_hypotheses": [i for i, state in states.items() if state == "UNVERIFIABLE"],
            "contradicted_hypotheses": [i for i, state in states.items() if state == "CONTRADICTED"],
            "recommended_actions": [],
            "statements": [],
            "coverage": [],
        }

    def _add_message(self, message: UserMessage) -> None:
        self.turns.user(message)
        self.conversation.append(self.turns.as_resumed(message))

    def save(self) -> None:
        self.session.audit_head = {
            "shell": self.shell.audit_head.as_dict(),
            "approvals": self.shell.approvals_head.as_dict(),
            "tasks": self.orchestrator.registry_head.as_dict(),
            "turns": self.turns.head.as_dict(),
        }
        save_session(self.session_file, self.session)
