"""Memories of investigations, and hints from them at the start of the next one.

A finished investigation leaves up to three: what happened (episodic), the lesson (semantic) and the route that found it
(procedural). Each cites audit ids and holds conclusions only, never command output. A hint is not evidence: memories do
not appear in reports, and a memory id is not an audit record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from ghost.mind.change_timeline import CHANGES, ResourceChange, network_tag
from ghost.mind.data_model import Memory, MemoryType, Tags
from ghost.mind.long_term_memory import LongTermMemory
from ghost.mind.questions import names_in
from ghost.mind.store import Filter
from ghost.mind.told_facts import CHANGE

INVESTIGATION: Final = "investigation"
"""The tag of every memory that an investigation left."""
HINTS: Final = 3
CANDIDATES: Final = 60
"""Memories considered for hints; large enough that frequent results do not displace the rest."""
LONGEST_ROUTE: Final = 12
LONGEST_TEXT: Final = 600
_RECORDS: Final = re.compile(r"\s*\(records? [^()]{1,400}\)")


@dataclass(frozen=True)
class Finding:
    """A layer that was cleared or found at fault, with its records."""

    layer: str
    at_fault: bool
    note: str
    audit_ids: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A command that produced evidence."""

    command: str
    audit_id: str


@dataclass(frozen=True)
class Finished:
    """What is remembered of an investigation; `cause` is empty if none was supported by records."""

    session_id: str
    ended_at: float
    symptom: str
    network: str
    confidence: str
    conclusion: str
    cause: str
    audit_ids: tuple[str, ...]
    """Records that support the cause, or the conclusion if there is no cause."""
    findings: tuple[Finding, ...] = ()
    route: tuple[Step, ...] = ()
    actions: tuple[str, ...] = ()
    changes: tuple[ResourceChange, ...] = ()
    """What was changed on the path before, as the activity log told."""

    @property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.at_fault)


@dataclass(frozen=True)
class Hint:
    memory_id: str
    session_id: str
    created_at: float
    text: str
    symptom: str
    conclusion: str
    settled_by: str
    """The command whose record supports the cause; empty if no cause was found."""
    layers: tuple[str, ...]
    """Layers of the path that were at fault."""
    times: int = 1
    """Number of investigations with this result; the newest is described."""


def remember(memory: LongTermMemory, finished: Finished) -> list[Memory]:
    """Store the memories in one transaction, replacing those of the same investigation.

    Raises `StoreError` and `ProviderError`.
    """
    before = {kept.type: kept.id for kept in memory.store.memories(Filter(tags=frozenset({_session_tag(finished)})))}
    made = [
        _memory(memory, finished, before, MemoryType.EPISODIC, _episode_text(finished), 0.7 if finished.cause else 0.5)
    ]
    if finished.cause:
        made.append(_memory(memory, finished, before, MemoryType.SEMANTIC, _lesson(finished), 0.8))
        if finished.route:
            made.append(_memory(memory, finished, before, MemoryType.PROCEDURAL, _route_text(finished), 0.6))
    return memory.keep(made)


def recall(memory: LongTermMemory, symptom: str, network: str) -> list[Hint]:
    """Return the most similar investigations of the same kind of network, best first, with equal results merged into
    one hint. A memory counts if it is similar by meaning or shares a name; common words such as `port` do not.

    Memories of a lab are not hints for a tenant, nor the reverse. Raises `StoreError` and `ProviderError`.
    """
    memory.catch_up()
    where = Filter(tags=frozenset({INVESTIGATION, network_tag(network)}))
    names = names_in(symptom)
    alike: dict[tuple[str, ...], dict[str, Hint]] = {}
    for hit in memory.search(symptom, top_k=CANDIDATES, where=where):
        if (hit.similarity or 0.0) > memory.floor or not names.isdisjoint(names_in(hit.memory.content)):
            session = str(hit.memory.metadata.get("session_id", ""))
            hint = _hint(hit.memory, session)
            alike.setdefault(_result_key(hint), {}).setdefault(session, hint)
    return [_newest(list(hints.values())) for hints in list(alike.values())[:HINTS]]


def _result_key(hint: Hint) -> tuple[str, ...]:
    """Return the cause without its records; without a cause, also the symptom."""
    conclusion = _RECORDS.sub("", hint.conclusion).rstrip(" .")
    return (conclusion, *hint.layers) if hint.layers else (conclusion, hint.symptom)


def _newest(hints: list[Hint]) -> Hint:
    """Return the newest investigation; if a summary of several is among them, that one with the newest's text."""
    newest_first = sorted(hints, key=lambda hint: hint.created_at, reverse=True)
    investigated = [hint for hint in newest_first if hint.session_id]
    if not investigated:
        return newest_first[0]
    last = investigated[0]
    described = next((hint for hint in newest_first if not hint.session_id), last)
    return replace(last, memory_id=described.memory_id, text=described.text, times=len(investigated))


def _hint(memory: Memory, session: str) -> Hint:
    known = memory.metadata
    return Hint(
        memory_id=memory.id,
        session_id=session,
        created_at=memory.created_at,
        text=memory.content,
        symptom=str(known.get("symptom") or memory.content.partition(". ")[0]),  # a summary: how often, and when
        conclusion=str(known.get("conclusion") or known.get("cause") or ""),
        settled_by=str(known.get("settled_by", "")),
        layers=tuple(map(str, layers)) if isinstance(layers := known.get("layers_at_fault"), list) else (),
    )


# --- what is kept ---


def _memory(
    memory: LongTermMemory,
    finished: Finished,
    before: dict[MemoryType, str],
    kind: MemoryType,
    content: str,
    importance: float,
) -> Memory:
    return Memory(
        id=before.get(kind) or memory.new_id("mem", finished.ended_at),
        type=kind,
        content=content,
        tags=(*_tags(finished), *([CHANGE] if _has_changes(finished, kind) else [])),
        importance=importance,
        created_at=finished.ended_at,
        last_access=finished.ended_at,
        metadata=_metadata(finished, kind),
    )


def _metadata(finished: Finished, kind: MemoryType) -> dict[str, Any]:
    cited = [step.audit_id for step in finished.route] if kind is MemoryType.PROCEDURAL else list(finished.audit_ids)
    return {
        "session_id": finished.session_id,
        "network": finished.network,
        "symptom": _cut(finished.symptom),
        "conclusion": _cut(finished.cause or finished.conclusion),
        "settled_by": _settled_by(finished),
        "audit_ids": cited,
        "layers_at_fault": [finding.layer for finding in finished.faults],
        **({CHANGES: [change.as_row() for change in finished.changes]} if _has_changes(finished, kind) else {}),
    }


def _has_changes(finished: Finished, kind: MemoryType) -> bool:
    return kind is MemoryType.EPISODIC and bool(finished.changes)


def _settled_by(finished: Finished) -> str:
    """Return the command that the cause rests on: the first that no cleared layer rests on as well, else the last."""
    cleared = {each for finding in finished.findings if not finding.at_fault for each in finding.audit_ids}
    cited = [step for step in finished.route if step.audit_id in finished.audit_ids]
    return next((step.command for step in cited if step.audit_id not in cleared), cited[-1].command if cited else "")


def _tags(finished: Finished) -> Tags:
    layers = sorted({finding.layer for finding in finished.faults})
    return (INVESTIGATION, network_tag(finished.network), _session_tag(finished), *layers)


def _session_tag(finished: Finished) -> str:
    return f"session:{finished.session_id}"


def _episode_text(finished: Finished) -> str:
    day = datetime.fromtimestamp(finished.ended_at, UTC).date().isoformat()
    cleared = ", ".join(finding.layer for finding in finished.findings if not finding.at_fault)
    came_to = f"Cause: {_cut(finished.cause)}" if finished.cause else f"No cause was found. {_cut(finished.conclusion)}"
    return _lines(
        f"{day}, {finished.network}: {_cut(finished.symptom)}",
        f"{came_to} (confidence {finished.confidence})",
        f"Cleared: {cleared}." if cleared else "",
    )


def _lesson(finished: Finished) -> str:
    layers = " and ".join(dict.fromkeys(finding.layer for finding in finished.faults)) or "the path"
    return _lines(
        f"Where the symptom was: {_cut(finished.symptom)}",
        f"the fault was at {layers}: {_cut(finished.cause)}",
        f"Advised then: {_cut(finished.actions[0])}" if finished.actions else "",
    )


def _route_text(finished: Finished) -> str:
    route = finished.route[-LONGEST_ROUTE:]
    steps = [f"{n}. {_cut(step.command)} [{step.audit_id}]" for n, step in enumerate(route, 1)]
    return _lines(f"What settled: {_cut(finished.symptom)}", *steps)


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_TEXT else f"{flat[: LONGEST_TEXT - 3].rstrip()}..."
