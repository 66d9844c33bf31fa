"""Stage 2: a person decides what RISKY commands may run. Fails closed: whatever goes wrong here is a denial.

A modified command is a new command: it is classified again from Tier 0, and asks again when it is RISKY.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from ghost.shell.call_timeout import call_within
from ghost.shell.judge.decision import FORBIDDEN, SAFE, Decision
from ghost.text import visible

if TYPE_CHECKING:
    from ghost.shell.record.approval_book import ApprovalBook, Kind

Action = Literal["auto_approved", "user_approved", "user_denied", "user_modified", "user_abandoned"]
By = Literal["terminal", "dashboard", "scenario"]

CHANGED = "Your own command, instead of one that was asked for with this reason: {}"
READ_ONLY = "read_only"
MAX_LINES = 50  # of a plan: nobody reads more
MAX_PROMPTS = 10  # for one command: a person who modifies more often than that is a program in a loop


@dataclass(frozen=True)
class HitlDecision:
    """A person's answer: `approve`, `deny`, `modify` with `modified_command`, and where the request offers them
    `session`, which allows the command until the process ends, and `form`, which allows all of its form.
    """

    action: str
    modified_command: str | None = None
    reason: str | None = None
    by: By = "terminal"


HitlCallback = Callable[[str, str, str, int | None], HitlDecision]


@dataclass(frozen=True)
class ApprovalRequest:
    """A question to a person. Everything in it is shown as it is.

    A plan is answered by `approve`, `deny`, or `each`: then each of its commands asks when its turn comes.
    """

    kind: Literal["once", "plan"]
    lines: tuple[str, ...]
    """The commands; of a plan one or more."""
    reasoning: str
    risk: str
    tier: int | None
    session: bool = False
    """Whether `session` is an answer."""
    form: str | None = None
    """What `form` allows; None where it is no answer."""
    times: tuple[int, ...] = ()
    """How often each line of a plan may run."""


Approve = Callable[[ApprovalRequest], HitlDecision]


@dataclass(frozen=True)
class GateOutcome:
    """The outcome of the gate. `command` and `decision` are the last ones judged."""

    status: Literal["passed", "denied", "error"]
    command: str
    decision: Decision
    action: Action | None
    user_decision: str | None = None
    denial_reason: str | None = None
    modified_command: str | None = None
    error: str | None = None
    interrupted: KeyboardInterrupt | None = None
    approval_id: str | None = None
    """Of the answer that decided; None where nobody was asked."""
    for_session: bool = False
    """Whether it was allowed for the session."""


@dataclass(frozen=True)
class Gate:
    """Who is asked, and where it is kept.

    `callback` answers one question a command, `approve` also plans, and offers what is allowed for the session.
    """

    judge: Callable[[str], Decision]
    callback: HitlCallback | None = None
    timeout_seconds: float | None = None
    approve: Approve | None = None
    book: ApprovalBook | None = None
    read_only: bool = False
    """Nobody is asked: what would ask is refused."""

    def ask(self, command: str, decision: Decision, reasoning: str, *, asks: bool = False) -> GateOutcome:
        """Pass SAFE commands, ask about RISKY ones, refuse FORBIDDEN ones. Never raises.

        `asks`: also where an approval covers the command.
        """
        return self._unasked(command, decision, asks=asks) or self._asked(command, decision, reasoning)

    def _unasked(self, command: str, decision: Decision, *, asks: bool) -> GateOutcome | None:
        """The outcome where nobody need be asked, or nobody is there to ask."""
        if (refusal := _refusal(decision)) is not None:
            return GateOutcome("error", command, decision, None, error=refusal)
        if decision.classification == SAFE:
            return GateOutcome("passed", command, decision, "auto_approved")
        if self.read_only:
            return GateOutcome("error", command, decision, None, error=READ_ONLY)
        if self.book is not None and (denied := self.book.denied(decision)) is not None:
            return GateOutcome(
                "denied", command, decision, "user_denied", "deny", denied.reason, approval_id=denied.approval_id
            )
        if self.book is not None and not asks and (covered := self.book.covering(decision)) is not None:
            outcome = GateOutcome("passed", command, decision, "user_approved", "approve")
            return replace(outcome, approval_id=covered.approval_id, for_session=covered.kind == "session")
        if self.callback is None and self.approve is None:
            return GateOutcome("denied", command, decision, "user_abandoned")
        return None

    def _asked(self, command: str, decision: Decision, reasoning: str) -> GateOutcome:
        """The outcome of asking a person, again where she modifies the command to one that asks."""
        modified: str | None = None
        for _ in range(MAX_PROMPTS):
            question = self._question(command, decision, reasoning if modified is None else CHANGED.format(reasoning))
            abandoned = GateOutcome("denied", command, decision, "user_abandoned", modified_command=modified)
            try:
                answer = question.answer()
            except KeyboardInterrupt as interrupt:
                return replace(abandoned, interrupted=interrupt, approval_id=question.note("abandoned", [decision]))
            if answer is None:
                return replace(abandoned, approval_id=question.note("abandoned", [decision]))
            if answer.action == "deny":
                denied = GateOutcome("denied", command, decision, "user_denied", "deny", question.reason, modified)
                return replace(denied, approval_id=question.note("deny", [decision]))
            if answer.action != "modify":
                said: tuple[Action, str] = (
                    ("user_approved", "approve") if modified is None else ("user_modified", "modify")
                )
                passed = GateOutcome("passed", command, decision, *said, modified_command=modified)
                approval_id = question.note("approve", [decision])
                return replace(passed, approval_id=approval_id, for_session=answer.action != "approve")
            command = modified = str(answer.modified_command)
            decision = self.judge(command)
            runs, refusal = decision.classification == SAFE, _refusal(decision)
            approval_id = question.note("modify", [decision] if runs else [])
            if runs or refusal is not None:
                ended = GateOutcome("passed" if runs else "error", command, decision, "user_modified", "modify")
                return replace(ended, modified_command=modified, error=refusal, approval_id=approval_id)
        abandoned = GateOutcome("denied", command, decision, "user_abandoned", modified_command=modified)
        return replace(abandoned, approval_id=approval_id)

    def ask_for_plan(self, lines: Sequence[tuple[str, Decision]], reasoning: str) -> str | None:
        """Ask once about commands that shall run later. Returns the id of the plan; None where it is not approved.

        What an earlier plan still covers is not asked. Where it is denied, each of its commands is, without another
        question.
        """
        cannot_run = any(_refusal(decision) is not None for _, decision in lines)
        if self.read_only or self.approve is None or self.book is None or cannot_run or len(lines) > MAX_LINES:
            return None
        lines = self.book.uncovered(lines)
        if not lines:
            return None
        decisions = [decision for _, decision in lines]
        counts = Counter(visible(command) for command, _ in lines)
        risks = dict.fromkeys(d.explanation for d in decisions if d.classification != SAFE)
        request = ApprovalRequest(
            "plan",
            tuple(counts),
            visible(reasoning, "\n"),
            visible(" ".join(risks), "\n"),
            max((d.tier for d in decisions if d.tier is not None), default=None),
            times=tuple(counts.values()),
        )
        question = _Question(request, self.approve, self.timeout_seconds, self.book)
        try:
            answer = question.answer()
        except KeyboardInterrupt:
            question.note("abandoned", decisions)
            raise
        plan_id = question.note("abandoned" if answer is None else answer.action, decisions)
        return plan_id if answer is not None and answer.action == "approve" and question.is_written else None

    def _question(self, command: str, decision: Decision, reasoning: str) -> _Question:
        offers = self.approve is not None and self.book is not None and decision.reads
        request = ApprovalRequest(
            "once",
            (visible(command),),
            visible(reasoning, "\n"),
            visible(decision.explanation, "\n"),
            decision.tier,
            offers,
            visible(decision.form) if offers and decision.form is not None else None,
        )
        return _Question(request, self.approve or self._by_callback, self.timeout_seconds, self.book)

    def _by_callback(self, request: ApprovalRequest) -> HitlDecision:
        assert self.callback is not None
        return self.callback(request.lines[0], request.reasoning, request.risk, request.tier)


class _Question:
    """One question: asked once, answered at most once, and written down."""

    def __init__(
        self, request: ApprovalRequest, approve: Approve, timeout_seconds: float | None, book: ApprovalBook | None
    ) -> None:
        self._request = request
        self._approve = approve
        self._timeout_seconds = timeout_seconds
        self._book = book
        self._asked_at = book.now() if book is not None else ""
        self._answer: HitlDecision | None = None
        self.is_written = False

    @property
    def reason(self) -> str | None:
        reason = self._answer.reason if self._answer is not None else None
        return reason.strip() if isinstance(reason, str) and reason.strip() else None

    def answer(self) -> HitlDecision | None:
        """Prompt once. Returns None where this failed, timed out or returned nothing that was offered."""
        try:
            answer = call_within(self._timeout_seconds, lambda: self._approve(self._request))
        except KeyboardInterrupt:
            raise
        except (Exception, SystemExit, GeneratorExit):  # noqa: BLE001 - the boundary to a person: fail closed
            return None
        if isinstance(answer, HitlDecision) and answer.by in get_args(By) and self._is_offered(answer):
            self._answer = answer
        return self._answer

    def _is_offered(self, answer: HitlDecision) -> bool:
        request = self._request
        return (
            answer.action in ("approve", "deny")
            or (answer.action == "each" and request.kind == "plan")
            or (answer.action == "modify" and request.kind == "once" and _is_command(answer.modified_command))
            or (answer.action == "session" and request.session)
            or (answer.action == "form" and request.form is not None)
        )

    def note(self, answer: str, decisions: Sequence[Decision]) -> str | None:
        """Write the answer down. Returns the id of the approval; None where no approvals are kept."""
        if self._book is None:
            return None
        action = self._answer.action if self._answer is not None else ""
        kind: Kind = "plan" if self._request.kind == "plan" else "session" if action in ("session", "form") else "once"
        approval = self._book.note(
            kind,
            decisions,
            shown=self._request.lines,
            asked_at=self._asked_at,
            answer=answer,
            by=self._answer.by if self._answer is not None else None,
            reason=self.reason,
            form=decisions[0].form if action == "form" else None,
        )
        self.is_written = approval.is_written
        return approval.id


def _refusal(decision: Decision) -> str | None:
    """Why nobody is asked; None where it may pass or a person decides."""
    if decision.classification == FORBIDDEN:
        return "forbidden_command"
    return decision.problem


def _is_command(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())
