"""Hypotheses: registered with what would refute them, tested by commands, resolved by evidence or denials.

A hypothesis changes state only through `HypothesisLog`, which refuses transitions that are not in the table below. At
most three are active at a time; each denial counts against those the denied command was to test, and the third makes
them unverifiable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import BaseModel, Field

MAX_ACTIVE: Final = 3


class State(StrEnum):
    ACTIVE = "ACTIVE"
    DENIED_ONCE = "DENIED_ONCE"
    DENIED_TWICE = "DENIED_TWICE"
    CONTRADICTED = "CONTRADICTED"
    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    UNVERIFIABLE = "UNVERIFIABLE"


TERMINAL: Final = frozenset({State.CONFIRMED, State.REFUTED, State.UNVERIFIABLE})

_OPEN = {State.ACTIVE, State.DENIED_ONCE, State.DENIED_TWICE, State.CONTRADICTED, *TERMINAL}
TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.ACTIVE: frozenset(_OPEN - {State.ACTIVE}),
    State.DENIED_ONCE: frozenset(_OPEN - {State.DENIED_ONCE}),
    State.DENIED_TWICE: frozenset(_OPEN - {State.DENIED_TWICE, State.DENIED_ONCE}),
    State.CONTRADICTED: frozenset({State.CONFIRMED, State.REFUTED, State.UNVERIFIABLE}),
    # New evidence after an interruption may reopen what was resolved.
    State.CONFIRMED: frozenset({State.ACTIVE, State.CONTRADICTED}),
    State.REFUTED: frozenset({State.ACTIVE, State.CONTRADICTED}),
    State.UNVERIFIABLE: frozenset(),
}


class IllegalHypothesisChange(Exception):  # noqa: N818 - it is an answer to the brain, not a failure of Ghost
    """The requested change is not possible. The message says why; the brain reads it."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class DenialEvent(BaseModel):
    turn: int
    command: str
    denial_reason: str | None
    audit_id: str | None


class Hypothesis(BaseModel):
    id: str
    description: str
    refuted_by: str
    """The observation that would refute the hypothesis."""
    state: State = State.ACTIVE
    denial_count: int = 0
    created_at: str
    resolved_at: str | None = None
    resolving_audit_id: str | None = None
    audit_ids: list[str] = Field(default_factory=list)
    """The audit records that support the resolution."""
    denial_events: list[DenialEvent] = Field(default_factory=list)


class EvidenceConflict(BaseModel):
    hypothesis_id: str
    conflicting_audit_ids: list[str]
    higher_fidelity_source: str | None = None
    resolution: str | None = None
    description: str = ""


class HypothesisLog:
    """The hypotheses of one session. Works on the session's own lists, so saving the session saves them."""

    def __init__(self, log: list[Hypothesis], active: list[str], conflicts: list[EvidenceConflict]) -> None:
        self._log = log
        self._active = active
        self._conflicts = conflicts

    def get(self, hypothesis_id: str) -> Hypothesis:
        for hypothesis in self._log:
            if hypothesis.id == hypothesis_id:
                return hypothesis
        known = ", ".join(h.id for h in self._log) or "none"
        raise IllegalHypothesisChange("unknown_hypothesis", f"no hypothesis {hypothesis_id!r}; registered: {known}")

    def register(self, hypothesis_id: str, description: str, refuted_by: str, *, at: str) -> Hypothesis:
        """Add a hypothesis and activate it if fewer than three are active. Idempotent."""
        for existing in self._log:
            if existing.id == hypothesis_id:
                if existing.description == description:
                    return existing
                raise IllegalHypothesisChange(
                    "duplicate_id", f"{hypothesis_id!r} is already used by another hypothesis: {existing.description}"
                )
        if not description.strip() or not refuted_by.strip():
            raise IllegalHypothesisChange(
                "not_falsifiable", "register needs a description and refuted_by, the observation that would refute it"
            )
        hypothesis = Hypothesis(id=hypothesis_id, description=description, refuted_by=refuted_by, created_at=at)
        self._log.append(hypothesis)
        if len(self._active) < MAX_ACTIVE:
            self._active.append(hypothesis_id)
        return hypothesis

    def activate(self, hypothesis_id: str) -> Hypothesis:
        hypothesis = self.get(hypothesis_id)
        if hypothesis_id in self._active:
            return hypothesis
        if len(self._active) >= MAX_ACTIVE:
            raise IllegalHypothesisChange(
                "too_many_active",
                f"{', '.join(self._active)} are active, the maximum is three: resolve one before {hypothesis_id!r}",
            )
        if hypothesis.state in TERMINAL:
            self._move(hypothesis, State.ACTIVE)
            hypothesis.resolved_at = hypothesis.resolving_audit_id = None
            hypothesis.audit_ids = []
        self._active.append(hypothesis_id)
        return hypothesis

    def resolve(self, hypothesis_id: str, state: State, audit_ids: Sequence[str], *, at: str) -> Hypothesis:
        """Confirm or refute a hypothesis by the given records; the last record is the deciding one."""
        hypothesis = self.get(hypothesis_id)
        if not audit_ids:
            raise IllegalHypothesisChange(
                "evidence_missing", f"name the audit_ids that make {hypothesis_id!r} {state.value}"
            )
        if hypothesis.state != state:
            self._move(hypothesis, state)
            hypothesis.resolved_at = at
        hypothesis.audit_ids = list(dict.fromkeys(audit_ids))
        hypothesis.resolving_audit_id = audit_ids[-1]
        self._deactivate(hypothesis_id)
        for conflict in self._conflicts:
            if conflict.hypothesis_id == hypothesis_id and conflict.resolution is None:
                conflict.resolution = state.value
        return hypothesis

    def contradict(
        self, hypothesis_id: str, audit_ids: Sequence[str], source: str | None, description: str
    ) -> Hypothesis:
        """Record two results that contradict each other; open until the more reliable source decides."""
        hypothesis = self.get(hypothesis_id)
        if len(set(audit_ids)) < 2:
            raise IllegalHypothesisChange(
                "evidence_missing", f"a contradiction of {hypothesis_id!r} needs the two audit_ids that disagree"
            )
        if hypothesis.state != State.CONTRADICTED:
            self._move(hypothesis, State.CONTRADICTED)
        self._conflicts.append(
            EvidenceConflict(
                hypothesis_id=hypothesis_id,
                conflicting_audit_ids=list(dict.fromkeys(audit_ids)),
                higher_fidelity_source=source,
                description=description,
            )
        )
        return hypothesis

    def denied(self, hypothesis_id: str, event: DenialEvent, limit: int, *, at: str) -> Hypothesis | None:
        """Count a denial of a command that was to test this hypothesis. Returns None if it is already resolved, or has
        counted this denial before the session was interrupted."""
        hypothesis = self.get(hypothesis_id)
        counted = event.audit_id is not None and event.audit_id in {e.audit_id for e in hypothesis.denial_events}
        if counted or hypothesis.state in TERMINAL:
            return None
        hypothesis.denial_count += 1
        hypothesis.denial_events.append(event)
        if hypothesis.denial_count >= limit:
            self._move(hypothesis, State.UNVERIFIABLE)
            hypothesis.resolved_at = at
            self._deactivate(hypothesis_id)
        elif hypothesis.state != State.CONTRADICTED:
            state = State.DENIED_ONCE if hypothesis.denial_count == 1 else State.DENIED_TWICE
            if hypothesis.state != state:
                self._move(hypothesis, state)
        return hypothesis

    def succeeded(self, hypothesis_ids: Iterable[str]) -> None:
        """Reactivate hypotheses that were denied before, after a command that tests them ran."""
        for hypothesis in self._log:
            if hypothesis.id in set(hypothesis_ids) and hypothesis.state in (State.DENIED_ONCE, State.DENIED_TWICE):
                self._move(hypothesis, State.ACTIVE)

    def summary(self) -> list[dict[str, Any]]:
        """Return id, state and whether each is active, as the brain reads it."""
        return [{"id": h.id, "state": h.state.value, "active": h.id in self._active} for h in self._log]

    def _deactivate(self, hypothesis_id: str) -> None:
        if hypothesis_id in self._active:
            self._active.remove(hypothesis_id)

    @staticmethod
    def _move(hypothesis: Hypothesis, state: State) -> None:
        if state not in TRANSITIONS[hypothesis.state]:
            raise IllegalHypothesisChange(
                "illegal_transition", f"{hypothesis.id!r} is {hypothesis.state.value} and cannot become {state.value}"
            )
        hypothesis.state = state
