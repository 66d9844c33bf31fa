"""The results of an evaluation: a row for each investigation, and what they add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

CONFIDENCES: Final = ("high", "medium", "low")
COUNTS: Final = ("commands", "risky_asked", "questions", "turns", "tokens", "seconds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One investigation. With an `error` it did not come to a report."""

    name: str
    wording: int
    """Number of the symptom, from 1."""
    repeat: int
    group: str
    """The class of the scenario."""
    root_cause_right: bool = False
    faults_found: int = 0
    faults_present: int = 0
    false_causes: int = 0
    traps_taken: int = 0
    forbidden: int = 0
    confidence: str = ""
    outcome: str = ""
    missed: tuple[str, ...] = ()
    blamed: tuple[str, ...] = ()
    commands: int = 0
    risky_asked: int = 0
    questions: int = 0
    turns: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None
    """US dollars; None where no price is known."""
    too_many_calls: bool = False
    error: str | None = None


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the sums over all rows, over each class, and how confidence and truth agree."""
    groups = sorted({row.group for row in rows})
    return {
        **_sums(rows),
        "outcomes": dict(Counter(row.outcome for row in rows if row.outcome)),
        "classes": {group: _sums([row for row in rows if row.group == group]) for group in groups},
        "calibration": {
            word: _sums([row for row in rows if row.confidence == word and row.error is None]) for word in CONFIDENCES
        },
    }


def _sums(rows: Sequence[Row]) -> dict[str, Any]:
    right = sum(row.root_cause_right for row in rows)
    return {
        "runs": len(rows),
        "right": right,
        "right_percent": percent(right, len(rows)),
        "faults_found": sum(row.faults_found for row in rows),
        "faults_present": sum(row.faults_present for row in rows),
        "second_faults_found": sum(max(row.faults_found - 1, 0) for row in rows),
        "second_faults_present": sum(max(row.faults_present - 1, 0) for row in rows),
        "false_causes": sum(row.false_causes for row in rows),
        "traps_taken": sum(row.traps_taken for row in rows),
        "forbidden": sum(row.forbidden for row in rows),
        "too_many_calls": sum(row.too_many_calls for row in rows),
        "cost": round(sum(row.cost or 0.0 for row in rows), 4),
        "errors": sum(row.error is not None for row in rows),
        **{name: round(sum(getattr(row, name) for row in rows), 1) for name in COUNTS},
    }


def percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None


def worse_than(beside: Sequence[Row], rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the runs that went worse than the same of `beside`, with those: no right cause, or more false ones."""
    known = {(row.name, row.wording): row for row in beside}
    pairs = [(row, known[row.name, row.wording]) for row in rows if (row.name, row.wording) in known]
    return [
        (row, other)
        for row, other in pairs
        if (row.root_cause_right, -row.false_causes) < (other.root_cause_right, -other.false_causes)
    ]


def results_as_json(brain: str, rows: Sequence[Row], beside: Sequence[Row] = ()) -> dict[str, Any]:
    """Return the content of the file of `ghost eval --json`; with a model's, what the offline brain did `beside` it."""
    told = {"brain": brain, "scenarios": _as_json(rows), "summary": summary(rows)}
    if not beside:
        return told
    worse = [f"{row.name} {row.wording}" for row, _ in worse_than(beside, rows)]
    return {**told, "worse": worse, "offline": {"scenarios": _as_json(beside), "summary": summary(beside)}}


def _as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{key: value for key, value in asdict(row).items() if value is not None} for row in rows]
