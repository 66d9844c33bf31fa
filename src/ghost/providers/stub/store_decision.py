"""The store decision of the stub: keep a thought that names a resource, a cause or a diagnostic step and is new."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ghost.providers.prompt import Item
from ghost.providers.stub.text_facts import Facts, facts_of
from ghost.providers.stub.tokenizer import content_terms, inner_terms

MAX_TAGS = 8
SAME = 0.75
"""Minimum share of common terms for a memory to contain the thought."""

_TAG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_GUESS = re.compile(r"^#plan [^:]{1,200}: check ")
"""A plan derived from a symptom or a memory, not yet carried out."""
_DRAWN = re.compile(r"^#insight (?:A \w+ at \S+: |[^|]{1,600} \| )")
"""An excerpt of texts that memory keeps as they are."""
_CHANGE = re.compile(
    r"\b(?:chang(?:e|es|ed)|chg\d+|deploy(?:ed|ment)?|roll(?:ed|out)|upgrad(?:e|ed)|updat(?:e|ed)|patched|reboot(?:ed)?"
    r"|restart(?:ed)?|migrat(?:ed|ion)|moved|replaced|renewed|maintenance|failover|failed over|switched)\b",
    re.IGNORECASE,
)
"""What engineers ask for first: what was done just before."""
_GENERAL = re.compile(r"\b(?:always|usually|never|whenever|every time|in general|means that|lesson)\b", re.IGNORECASE)
_STEP = re.compile(r"\b(?:check|then|first|compare|capture|look at|run|verify|test)\b", re.IGNORECASE)
_GRAVE = re.compile(r"\b(?:outage|production|prod|down|all|every|expired?|data loss|security)\b", re.IGNORECASE)


def decision_on(sections: Mapping[str, Sequence[Item]]) -> dict[str, Any]:
    text = " ".join(item.text for item in sections.get("Thought", []))
    facts = facts_of(text)
    kind = _kind(text, facts)
    should_store, reason = _verdict(text, facts, kind, sections.get("Memories", []))
    return {
        "should_store": should_store,
        "type": kind,
        "importance": _importance(text, facts) if should_store else 0.1,
        "tags": tags_of(facts),
        "reason": reason,
    }


def tags_of(facts: Facts) -> list[str]:
    """Return the tags of a memory: causes, services, then resources."""
    tags = [cause.tag for cause in facts.causes] + list(facts.services) + list(facts.resources)
    return [tag for tag in dict.fromkeys(tags) if _TAG.fullmatch(tag)][:MAX_TAGS]


def _verdict(text: str, facts: Facts, kind: str, memories: Sequence[Item]) -> tuple[bool, str]:
    if (known := _contained_in(text, memories)) is not None:
        return False, f"{known.id or 'A memory'} already contains this."
    if text.startswith("#question"):
        return False, "A question is not knowledge; its answer may be."
    if _GUESS.search(text):
        return False, "It is a guess; the result of the check may be stored."
    if _DRAWN.search(text):
        return False, "It is derived from stored memories."
    if _CHANGE.search(text) and not text.startswith("#plan"):
        return True, "It describes a change."
    if not facts.named:
        return False, "It names no resource, port or cause."
    if text.startswith("#plan") and kind != "procedural":
        return False, "It is a plan without a repeatable step."
    if facts.causes or facts.said_cause:
        return True, "It names a cause."
    return True, "It describes how to check." if kind == "procedural" else "It names an observation."


def _kind(text: str, facts: Facts) -> str:
    if text.startswith("#plan") and _STEP.search(text):
        return "procedural"
    if _CHANGE.search(text):
        return "episodic"
    if _GENERAL.search(text) or not (facts.resources or facts.failing):
        return "semantic"
    return "episodic"


def _importance(text: str, facts: Facts) -> float:
    grounds = (
        (0.25, facts.causes or facts.said_cause),
        (0.1, facts.resources),
        (0.1, facts.ports),
        (0.1, facts.failing),
        (0.1, _CHANGE.search(text)),
        (0.15, _GRAVE.search(text)),
    )
    return round(0.3 + sum(weight for weight, found in grounds if found), 2)


def _contained_in(text: str, memories: Sequence[Item]) -> Item | None:
    mine = _compared(text)
    for memory in memories:
        theirs = _compared(memory.text)
        if mine and len(mine & theirs) / len(mine | theirs) >= SAME:
            return memory
    return None


def _compared(text: str) -> set[str]:
    return {part for term in content_terms(text) for part in (term, *inner_terms(term))} - {"plan", "insight"}
