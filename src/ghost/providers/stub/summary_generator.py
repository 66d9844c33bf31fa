"""The stub's summary of similar memories: shared cause and resources, and each one's differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ghost.providers.prompt import Item
from ghost.providers.stub.store_decision import tags_of
from ghost.providers.stub.text_facts import Facts, facts_of, merged
from ghost.providers.stub.tokenizer import content_terms, same_words

MAX_WORDS = 120
MAX_NAMED = 12
MAX_MEMORIES = 64

_WITHOUT_NEWS = frozenset({"not", "cause", "root", "due"})


def summary_of(sections: Mapping[str, Sequence[Item]]) -> dict[str, Any]:
    memories = list(sections.get("Memories", []))[:MAX_MEMORIES]
    notes = [facts_of(memory.text) for memory in memories]
    cause = _shared_cause(notes)
    resources = _named_by_several([note.resources for note in notes])[:MAX_NAMED]
    ports = _named_by_several([note.ports for note in notes])[:3]
    own = _own_terms([memory.text for memory in memories])
    differences = [
        {"id": memory.id, "difference": difference}
        for memory, note, its_terms in zip(memories, notes, own, strict=True)
        if (difference := _difference(note, its_terms, cause, notes))
    ]
    return {
        "summary": _summary(memories, cause, resources, ports, differences),
        "cause": cause,
        "resources": resources,
        "tags": tags_of(merged(notes)) if notes else [],
        "importance": round(min(0.9, 0.4 + 0.05 * len(notes) + (0.2 if cause else 0.0)), 2),
        "differences": differences,
    }


def _shared_cause(notes: Sequence[Facts]) -> str:
    """Return the cause named by most notes, if by at least two and half of them."""
    counted = Counter(cause.text for note in notes for cause in note.causes)
    if counted:
        text, times = counted.most_common(1)[0]
        if times >= min(2, len(notes)) and 2 * times >= len(notes):
            return text
    stated_causes = [note.said_cause for note in notes if note.said_cause]
    for cause in sorted(stated_causes, key=len):
        alike = sum(_alike(cause, other) for other in stated_causes)
        if alike >= min(2, len(notes)) and 2 * alike >= len(notes):
            return cause
    return ""


def _alike(one: str, other: str) -> bool:
    first, second = _meanings(one), _meanings(other)
    return 2 * len(first & second) >= min(len(first), len(second)) > 0


def _meanings(text: str) -> set[str]:
    return {same_words().get(term, term) for term in content_terms(text)}


def _named_by_several(names_of_notes: Sequence[Sequence[str]]) -> list[str]:
    """Return shared names, most frequent first; for a single memory, all its names."""
    counted = Counter(name for names in names_of_notes for name in names)
    return [name for name, times in counted.most_common() if times >= min(2, len(names_of_notes))]


def _own_terms(texts: Sequence[str]) -> list[list[str]]:
    """Return for each text the terms whose meaning no other text has, in order."""
    meanings = [_meanings(text) for text in texts]
    counted = Counter(meaning for each in meanings for meaning in each)
    return [
        [term for term in dict.fromkeys(content_terms(text)) if counted[same_words().get(term, term)] == 1]
        for text in texts
    ]


def _difference(note: Facts, own_terms: Sequence[str], cause: str, notes: Sequence[Facts]) -> str:
    if len(notes) < 2:
        return ""
    resources = [name for name in note.resources if sum(name in other.resources for other in notes) == 1]
    ports = [port for port in note.ports if sum(port in other.ports for other in notes) == 1]
    its_causes = [each.text for each in note.causes if each.text != cause]
    stated_causes = [
        term for term in own_terms if len(term) > 2 and term not in (*note.resources, *note.ports, *_WITHOUT_NEWS)
    ]
    parts = [
        "names " + ", ".join(resources[:4]) if resources else "",
        "port " + ", ".join(ports[:3]) if ports else "",
        "also: " + its_causes[0] if its_causes else "",
        "says " + ", ".join(stated_causes[:6]) if stated_causes else "",
    ]
    return "; ".join(part for part in parts if part)


def _summary(
    memories: Sequence[Item],
    cause: str,
    resources: Sequence[str],
    ports: Sequence[str],
    differences: Sequence[Mapping[str, str]],
) -> str:
    count = f"{len(memories)} memories" if len(memories) != 1 else "1 memory"
    what = f"share one cause: {cause}" if cause else "share no cause that they name"
    if len(memories) == 1:
        what = f"names a cause: {cause}" if cause else "names no cause"
    sentences = [f"{count} {what}."]
    if resources or ports:
        common = [*resources, *(f"port {port}" for port in ports)]
        sentences.append(f"{'In common' if len(memories) != 1 else 'Named'}: {', '.join(common)}.")
    if differences:
        sentences.append("They differ: " + " | ".join(f"{each['id']} {each['difference']}" for each in differences))
    summary = " ".join(sentences).split()
    return " ".join(summary[:MAX_WORDS])
