"""Revalidation after an interruption: which reads to repeat, and what their new answers change."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ghost.brain.conversation import ToolCall
from ghost.brain.offline.azure_reads import Outcome, reading_of
from ghost.brain.offline.steps import Call, key_of
from ghost.text import one_line

MAX_READS = 3
"""Maximum number of reads to repeat."""

CRITICAL: tuple[tuple[str, ...], ...] = (
    ("list-effective-nsg",),
    ("show-effective-route-table",),
    ("nsg", "show"),
    ("vm", "show"),
    ("peering", "list"),
    ("nic", "show"),
    ("vm", "list"),
)
"""Words of az commands, most important first."""


@dataclass(frozen=True)
class Rerun:
    call: Call
    before: dict[str, Any]


@dataclass(frozen=True)
class Change:
    command: str
    before_id: str
    after_id: str
    replaces: bool
    """The new answer replaces the earlier one; a refused or failed call does not."""
    differences: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return self.replaces and bool(self.differences)


def critical_reads(recorded: Sequence[tuple[ToolCall, dict[str, Any]]]) -> list[Rerun]:
    """Return the successful reads that needed no approval: first those cited by a resolved hypothesis, then by
    importance, most recent first.
    """
    cited = {
        audit_id
        for call, _ in recorded
        if call.name == "manage_hypotheses" and call.arguments.get("action") in ("confirm", "refute")
        for audit_id in call.arguments.get("audit_ids", ())
    }
    latest: dict[str, tuple[int, ToolCall, dict[str, Any]]] = {}
    for position, (call, result) in enumerate(recorded):
        if _is_safe_read(call, result):
            latest[key_of(call.name, call.arguments)] = (position, call, result)
    ranked = sorted(
        latest.values(),
        key=lambda item: (_rank(item[1]), item[2].get("audit_id") not in cited, -item[0]),
    )
    chosen = sorted(ranked[:MAX_READS], key=lambda item: item[0])
    return [Rerun(Call(call.name, dict(call.arguments)), result) for _, call, result in chosen]


def compare(rerun: Rerun, after: dict[str, Any]) -> Change:
    before, now = reading_of(rerun.before), reading_of(after)
    command = " ".join(_command_words(rerun.call.arguments))
    answered = now.outcome in (Outcome.OK, Outcome.FAILED) and after.get("status") == "completed"
    differences: tuple[str, ...] = ()
    if answered:
        if before.exit_code != now.exit_code:
            differences = (f"exit code {before.exit_code} became {now.exit_code}",)
        else:
            differences = tuple(_differences(_leaves(before.value), _leaves(now.value)))
    return Change(command, before.audit_id or "", now.audit_id or "", answered, differences)


def describe(changes: Iterable[Change]) -> str:
    """Return one sentence for each repeated read."""
    sentences = []
    for change in changes:
        if not change.replaces:
            sentences.append(
                f"`{change.command}` could not be run again ({change.after_id or 'no record'}); "
                f"the answer of {change.before_id} stands, unconfirmed."
            )
        elif change.changed:
            sentences.append(
                f"`{change.command}` changed between {change.before_id} and {change.after_id}: "
                f"{'; '.join(change.differences[:4])}. I continue with the new answer."
            )
        else:
            sentences.append(f"`{change.command}` says in {change.after_id} what it said in {change.before_id}.")
    return " ".join(sentences)


def _is_safe_read(call: ToolCall, result: dict[str, Any]) -> bool:
    return (
        call.name == "run_shell_cmd"
        and str(call.arguments.get("command", "")).startswith("az ")
        and result.get("classification", "SAFE") == "SAFE"
        and reading_of(result).outcome is Outcome.OK
    )


def _rank(call: ToolCall) -> int:
    words = _words(str(call.arguments.get("command", "")))
    for rank, critical_words in enumerate(CRITICAL):
        if all(word in words for word in critical_words):
            return rank
    return len(CRITICAL)


def _command_words(arguments: Any) -> list[str]:
    """Return the command without query and output options, as an engineer recognises it."""
    cleaned: list[str] = []
    words = iter(_words(str(arguments.get("command", ""))))
    for word in words:
        if word in ("--query", "-o", "--output"):
            next(words, None)
        else:
            cleaned.append(word)
    return cleaned


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _leaves(value: Any) -> set[str]:
    """Return each row or scalar of an answer as one line; rows given as JSON text are parsed."""
    if isinstance(value, dict):
        return {f"{key}: {leaf}" if leaf else key for key, inner in value.items() for leaf in _leaves(inner)}
    if isinstance(value, list):
        return {
            leaf
            for inner in value
            for leaf in ({_row(inner)} if not isinstance(inner, dict | list) else _leaves(inner))
        }
    return {_row(value)}


def _row(value: Any) -> str:
    if isinstance(value, str) and value.startswith("{"):
        try:
            row = json.loads(value)
        except ValueError:
            return value
        return ", ".join(f"{key} {_short(inner)}" for key, inner in row.items() if inner not in (None, "", [], False))
    return _short(value)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _differences(before: set[str], now: set[str]) -> list[str]:
    removed = [f"gone: {one_line(leaf, 160)}" for leaf in sorted(before - now)]
    new = [f"new: {one_line(leaf, 160)}" for leaf in sorted(now - before)]
    return [*removed, *new]
