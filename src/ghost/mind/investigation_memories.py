"""An investigation becomes memories, and memories become hints at the start of the next one.

A finished investigation leaves up to three: what happened (episodic), what it teaches (semantic) and the route that
found it (procedural). Each cites audit ids and holds conclusions only, never what a command printed. A hint is never
evidence: nothing here reaches a report, and an id of a memory cited there is no audit record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from ghost.mind.data_model import Memory, MemoryType, Tags
from ghost.mind.long_term_memory import Hit, LongTermMemory
from ghost.mind.questions import names_in
from ghost.mind.store import Filter

INVESTIGATION: Final = "investigation"
"""The tag of every memory that an investigation left."""
HINTS: Final = 3
NEAR_ENOUGH: Final = 0.2
"""Cosine similarity below which a memory that shares no name with the symptom is not worth a person's time."""
CANDIDATES: Final = 60
"""Memories looked at for hints: what came up often must not crowd out the rest."""
LONGEST_ROUTE: Final = 12
LONGEST_TEXT: Final = 600
_RECORDS: Final = re.compile(r"\s*\(records? [^()]{1,400}\)")


@dataclass(frozen=True)
class Finding:
    """A layer of the path that was cleared or found at fault, and the records that say so."""

    layer: str
    at_fault: bool
    note: str
    audit_ids: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A command that evidence came from."""

    command: str
    audit_id: str


@dataclass(frozen=True)
class Finished:
    """What is remembered of an investigation; `cause` is empty where none was found and supported by records."""

    session_id: str
    ended_at: float
    symptom: str
    network: str
    confidence: str
    conclusion: str
    cause: str
    audit_ids: tuple[str, ...]
    """The records that carry the cause, or the conclusion where there is no cause."""
    findings: tuple[Finding, ...] = ()
    route: tuple[Step, ...] = ()
    actions: tuple[str, ...] = ()

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
    """The command whose record carried the cause; empty where no cause was found."""
    layers: tuple[str, ...]
    """The layers of the path that were at fault."""
    times: int = 1
    """Investigations that came to this; the newest is the one that is told."""


def remember(memory: LongTermMemory, finished: Finished) -> list[Memory]:
    """Keeps it, in one transaction. An investigation that was remembered before replaces what it left then.

    Raises `StoreError` and `ProviderError`.
    """
    before = {kept.type: kept.id for kept in memory.store.memories(Filter(tags=frozenset({_session_tag(finished)})))}
    made = [
        _memory(memory, finished, before, MemoryType.EPISODIC, _what_happened(finished), 0.7 if finished.cause else 0.5)
    ]
    if finished.cause:
        made.append(_memory(memory, finished, before, MemoryType.SEMANTIC, _lesson(finished), 0.8))
        if finished.route:
            made.append(_memory(memory, finished, before, MemoryType.PROCEDURAL, _way_there(finished), 0.6))
    return memory.keep(made)


def recall(memory: LongTermMemory, symptom: str, network: str) -> list[Hint]:
    """The nearest memories of earlier investigations of the same kind of network, nearest first; those that came to the
    same are one hint.

    A lab's memories are no hints for a tenant, nor the reverse. Raises `StoreError` and `ProviderError`.
    """
    where = Filter(tags=frozenset({INVESTIGATION, _network_tag(network)}))
    names = names_in(symptom)
    alike: dict[tuple[str, ...], dict[str, Hint]] = {}
    for hit in memory.search(symptom, top_k=CANDIDATES, where=where):
        if _is_near(hit, names):
            session = str(hit.memory.metadata.get("session_id", ""))
            hint = _hint(hit.memory, session)
            alike.setdefault(_came_to(hint), {}).setdefault(session, hint)
    return [_newest(list(hints.values())) for hints in list(alike.values())[:HINTS]]


def _is_near(hit: Hit, names: frozenset[str]) -> bool:
    """By meaning, or by a name: that both texts say `port` or `cannot` is no nearness."""
    return (hit.similarity or 0.0) >= NEAR_ENOUGH or not names.isdisjoint(names_in(hit.memory.content))


def _came_to(hint: Hint) -> tuple[str, ...]:
    """The cause without the records that show it; where there was none, also what was asked."""
    conclusion = _RECORDS.sub("", hint.conclusion).rstrip(" .")
    return (conclusion, *hint.layers) if hint.layers else (conclusion, hint.symptom)


def _newest(hints: list[Hint]) -> Hint:
    """The newest investigation; where a summary of several is among them, that, told by the newest."""
    newest_first = sorted(hints, key=lambda hint: hint.created_at, reverse=True)
    investigated = [hint for hint in newest_first if hint.session_id]
    if not investigated:
        return newest_first[0]
    last = investigated[0]
    told = next((hint for hint in newest_first if not hint.session_id), last)
    return replace(last, memory_id=told.memory_id, text=told.text, times=len(investigated))


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
        tags=_tags(finished),
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
        "settled_by": next((s.command for s in finished.route if s.audit_id in finished.audit_ids), ""),
        "audit_ids": cited,
        "layers_at_fault": [finding.layer for finding in finished.faults],
    }


def _tags(finished: Finished) -> Tags:
    layers = sorted({finding.layer for finding in finished.faults})
    return (INVESTIGATION, _network_tag(finished.network), _session_tag(finished), *layers)


def _network_tag(network: str) -> str:
    return "network:lab" if network.startswith("lab ") else "network:azure"


def _session_tag(finished: Finished) -> str:
    return f"session:{finished.session_id}"


def _what_happened(finished: Finished) -> str:
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


def _way_there(finished: Finished) -> str:
    route = finished.route[-LONGEST_ROUTE:]
    steps = [f"{n}. {_cut(step.command)} [{step.audit_id}]" for n, step in enumerate(route, 1)]
    return _lines(f"What settled: {_cut(finished.symptom)}", *steps)


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_TEXT else f"{flat[: LONGEST_TEXT - 3].rstrip()}..."
