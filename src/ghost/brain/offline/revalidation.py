"""Revalidation after an interruption: which reads to repeat, and what their new answers change."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ghost.brain.conversation import ToolCall
from ghost.brain.offline.azure_reads import Outcome, reading_of
from ghost.brain.offline.steps import Call, key_of
from ghost.text import one_line

MAX_READS = 3
"""Maximum number of reads to repeat."""
MAX_DIFFERENCES = 4
"""Of one kind in the difference of two answers."""

CRITICAL: tuple[tuple[str, ...], ...] = (
    ("list-effective-nsg",),
    ("show-effective-route-table",),
    ("nsg",),
    ("vnet",),
    ("route-table",),
    ("private-dns",),
    ("get-instance-view",),
    ("nic",),
    ("vm",),
    ("test-ip-flow",),
    ("show-next-hop",),
)
"""Words of az commands, most important first."""
UNTOLD = frozenset({"etag", "id", "time", "timeCreated", "provisioningState", "resourceGuid", "type", "vmAgent"})
"""Fields that change by themselves, or that say what the path of a field says."""


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
        key=lambda item: (item[2].get("audit_id") not in cited, _rank(item[1]), -item[0]),
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
            differences = tuple(_differences(dict(_leaves(before.value)), dict(_leaves(now.value))))
    return Change(command, before.audit_id or "", now.audit_id or "", answered, differences)


def describe(changes: Iterable[Change]) -> str:
    """Return one sentence for each repeated read."""
    sentences = []
    for change in changes:
        if not change.replaces:
            sentences.append(
                f"`{change.command}` could not be run again ({change.after_id or 'no record'}); "
                f"the answer of {change.before_id} remains in use, unconfirmed."
            )
        elif change.changed:
            sentences.append(
                f"`{change.command}` changed between {change.before_id} and {change.after_id}: "
                f"{'; '.join(change.differences[:MAX_DIFFERENCES])}. I continue with the new answer."
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


_Path = tuple[str, ...]


def _leaves(value: Any, path: _Path = ()) -> Iterator[tuple[_Path, str]]:
    """Yield the fields of an answer that say something, each by its way there: names of objects and fields.

    An object of a list that has no name is known by its content. Rows given as JSON text are parsed.
    """
    value = _parsed(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in UNTOLD and inner not in (None, "", [], {}, False):
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for item in map(_parsed, value):
            name = item.get("name") or str(item.get("id") or "").rpartition("/")[2] if isinstance(item, dict) else ""
            if name and isinstance(item, dict):
                yield (*path, str(name)), ""
                yield from _leaves({key: inner for key, inner in item.items() if key != "name"}, (*path, str(name)))
            else:
                yield (*path, ", ".join(_said(way, told) for way, told in _leaves(item))), ""
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _parsed(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            return json.loads(value)
    return value


def _differences(before: dict[_Path, str], now: dict[_Path, str]) -> list[str]:
    """Return what is gone, new and other, an object and all in it as one."""
    gone = [f"gone: {_told(before, path)}" for path in _outermost(before, now)]
    new = [f"new: {_told(now, path)}" for path in _outermost(now, before)]
    other = [
        one_line(f"{_said(path, told)} became {now[path]}", 160)
        for path, told in before.items()
        if path in now and now[path] != told
    ]
    return [*gone, *new, *other]


def _outermost(these: dict[_Path, str], others: dict[_Path, str]) -> list[_Path]:
    known = {path[:end] for path in others for end in range(len(path) + 1)}
    outermost = {
        next((path[:end] for end in range(1, len(path)) if path[:end] not in known), path)
        for path in these
        if path not in others
    }
    return sorted(outermost)[:MAX_DIFFERENCES]


def _told(leaves: dict[_Path, str], path: _Path) -> str:
    inside = ", ".join(filter(None, (_said(at[len(path) :], told) for at, told in _within(leaves, path))))
    return one_line(f"{' '.join(path)} ({inside})" if path and inside else _said(path, inside), 160)


def _within(leaves: dict[_Path, str], path: _Path) -> Iterator[tuple[_Path, str]]:
    return ((at, told) for at, told in leaves.items() if at[: len(path)] == path)


def _said(path: _Path, told: str) -> str:
    return " ".join(filter(None, (*path, told)))
