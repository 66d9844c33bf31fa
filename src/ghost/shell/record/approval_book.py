"""Approvals of one session: what a person was shown and answered, in `approvals_{sid}.jsonl`, and what still covers.

A session approval lasts as long as this process. A plan covers each of its commands once, after a resume those that
have not begun: the audit says which have. Where one of the two files does not verify, nothing is covered.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ghost.errors import RecordError
from ghost.records import ChainedLog, Head, head_path, read_json, read_valid_records, verify
from ghost.shell.judge.command_line import TO_READER
from ghost.shell.judge.decision import Decision
from ghost.shell.record.audit import ShellAudit, save_head
from ghost.shell.record.intent import to_disk

Kind = Literal["once", "session", "plan"]


@dataclass(frozen=True)
class Approval:
    """One question and its answer, in the order of its line in the file."""

    id: str
    kind: Kind
    argv_sha256: tuple[str, ...]
    """Of the commands that it is about, as `argv_sha256` counts it."""
    form: str | None
    """The form that was allowed, in place of one command."""
    shown: tuple[str, ...]
    asked_at: str
    answered_at: str
    answer: str
    """`approve`, `deny`, `modify`, of a plan also `each`, or `abandoned`."""
    by: str | None
    """`terminal`, `dashboard` or `scenario`; None where nobody answered."""
    reason: str | None = None


@dataclass(frozen=True)
class Noted:
    id: str
    is_written: bool


@dataclass
class Covered:
    """What one approval still covers: commands by their words, each as often as counted, or a form."""

    approval_id: str
    kind: Kind
    argv: Counter[str] = field(default_factory=Counter)
    form: str | None = None


@dataclass(frozen=True)
class Denied:
    approval_id: str
    reason: str | None


class ApprovalBook:
    """Writes the approvals of a session, and tells which covers a command.

    `hide` and `restore`: the placeholders of private mode. `written`: a text as records hold it.
    """

    def __init__(
        self,
        audit: ShellAudit,
        hide: Callable[[str], str],
        restore: Callable[[str], str],
        written: Callable[[str | None], str | None],
        now: Callable[[], str],
    ) -> None:
        self.path = approvals_path(audit.path.parent, audit.session_id)
        self._audit = audit
        self._hide = hide
        self._restore = restore
        self._written = written
        self.now = now
        self._denied: dict[str, Denied] = {}
        """Of plans that were denied, by what their commands are."""
        if audit.covered is None:
            audit.covered = self._plans()

    @property
    def head(self) -> Head:
        return ChainedLog(self.path).head

    def argv_sha256(self, decision: Decision) -> str:
        """SHA-256 of the JSON list of the words that run, with the placeholders of private mode in them.

        Behind them stands what else was shown (`_around`). Of a pipeline: of the list of its stages' lists.
        """
        hidden = [[*map(self._hide, one.arguments or ()), *_around(one)] for one in decision.commands]
        return hashlib.sha256(json.dumps(hidden if decision.stages else hidden[0]).encode()).hexdigest()

    def denied(self, decision: Decision) -> Denied | None:
        """The denial of the plan that a command was part of, said once of each."""
        return self._denied.pop(self.argv_sha256(decision), None) if self._denied else None

    def covering(self, decision: Decision) -> Covered | None:
        """The approval that covers a command; from a plan it is taken out."""
        if decision.problem is not None or decision.arguments is None or not self._is_exact(decision):
            return None
        argv = self.argv_sha256(decision)
        one: Covered
        for one in self._audit.covered or []:
            if one.kind == "plan" and one.argv[argv] > 0:
                one.argv[argv] -= 1
                return one
            of_form = one.form is not None and one.form == decision.form
            if one.kind == "session" and decision.reads and (of_form or one.argv[argv]):
                return one
        return None

    def uncovered(self, lines: Sequence[tuple[str, Decision]]) -> list[tuple[str, Decision]]:
        """Return the lines of a plan that no earlier plan covers; what is covered twice may stand there twice."""
        left = Counter[str]()
        for one in self._audit.covered or []:
            left.update(one.argv if one.kind == "plan" else ())
        rest = []
        for line, decision in lines:
            argv = self.argv_sha256(decision)
            if left[argv] > 0 and self._is_exact(decision):
                left[argv] -= 1
            else:
                rest.append((line, decision))
        return rest

    def note(
        self,
        kind: Kind,
        decisions: Sequence[Decision],
        *,
        shown: Sequence[str],
        asked_at: str,
        answer: str,
        by: str | None,
        reason: str | None = None,
        form: str | None = None,
    ) -> Noted:
        """Write an approval to the disk, and remember what it covers.

        Where it cannot be written it covers this one command only, and the audit that names it does not verify.
        """
        shas = () if form is not None else tuple(map(self.argv_sha256, decisions))
        log = ChainedLog(self.path)
        head = log.head
        approval = Approval(
            id=f"{self._audit.session_id}_a{head.count + 1:03d}",
            kind=kind,
            argv_sha256=shas,
            form=self._written(form),
            shown=tuple(self._written(line) or "" for line in shown),
            asked_at=asked_at,
            answered_at=self.now(),
            answer=answer,
            by=by,
            reason=self._written(reason),
        )
        try:
            log.append(asdict(approval))
            to_disk(self.path)
            save_head(log)
        except (RecordError, OSError) as error:
            self._audit.warn(f"the approval {approval.id} is not on record: {error}")
            return Noted(approval.id, False)
        if approval.answer == "deny" and kind == "plan":
            self._denied.update(dict.fromkeys(shas, Denied(approval.id, reason)))
        if approval.answer == "approve" and kind != "once":
            exact = [sha for sha, one in zip(shas, decisions, strict=False) if self._is_exact(one)]
            self._audit.covered = [*(self._audit.covered or []), Covered(approval.id, kind, Counter(exact), form)]
        return Noted(approval.id, True)

    def _is_exact(self, decision: Decision) -> bool:
        """Whether the words with placeholders stand for these words alone."""
        return all(self._restore(self._hide(word)) == word for one in decision.commands for word in one.arguments or ())

    def _plans(self) -> list[Covered]:
        """Plans of earlier processes, without the commands that have begun."""
        if not self.path.exists():
            return []
        try:
            plans = [r for r in _verified(self.path) if (r["kind"], r["answer"]) == ("plan", "approve")]
            has_runs = self._audit.path.exists() or self._audit.head_path.exists()
            runs = _verified(self._audit.path) if has_runs else []
            begun = Counter((r.get("approval_id"), r.get("argv_sha256")) for r in runs)
            covered = [Covered(str(plan["id"]), "plan", Counter(map(str, plan["argv_sha256"]))) for plan in plans]
        except (RecordError, FileNotFoundError, KeyError, TypeError) as error:
            self._audit.warn(f"{self.path} approves nothing: {error}")
            return []
        for one in covered:
            one.argv.subtract({argv: begun[one.approval_id, argv] for argv in one.argv})
        return covered


def _verified(path: Path) -> list[dict[str, Any]]:
    """Return the records of a chain. Raises `RecordError`, or `FileNotFoundError`, where it does not verify."""
    result = verify(path, Head.from_dict(read_json(head_path(path))))
    if not result.ok:
        raise RecordError("; ".join(result.errors))
    return read_valid_records(path)[0]


def approvals_path(directory: Path, session_id: str) -> Path:
    return directory / f"approvals_{session_id}.jsonl"


def _around(command: Decision) -> list[dict[str, object]]:
    """What else an approval covers of a command: its time limit, its variables, where its streams go."""
    around: dict[str, object] = {
        "time_limit": command.time_limit,
        "variables": dict(command.variables),
        "output": command.sinks.output,
        "errors": command.sinks.errors,
    }
    return [around] if command.time_limit or command.variables or command.sinks != TO_READER else []
