"""The stub's micro-thought: the most important statement about the prompt that was not made recently.

New failures come first: missing facts become a question, known ones a check. Then findings, recurrences, the task, and
common points of memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from ghost.providers.prompt import Item
from ghost.providers.stub.text_facts import Cause, Facts, causes, facts_of, merged
from ghost.providers.stub.tokenizer import words

Sections = Mapping[str, Sequence[Item]]

MAX_READ = 12
"""Maximum items read per section, newest first."""

_NO_PORT = re.compile(r"\b(?:ping|icmp|traceroute|dns|resolve[sd]?|resolution|nxdomain|servfail)\b", re.IGNORECASE)


def thought_on(sections: Sections, max_words: int) -> str:
    """Return `#plan`, `#question` or `#insight` and a sentence, on one line, at most `max_words` words."""
    recent = {_compared(item.text) for item in sections.get("Recent thoughts", [])}
    thought = ""
    for candidate in _candidates(sections):
        thought = _within(candidate, max_words)
        if _compared(thought) not in recent:
            return thought
    return thought


def _candidates(sections: Sections) -> Iterator[str]:
    stimuli, recent, memories, tasks = (
        list(sections.get(name, []))[:MAX_READ] for name in ("Stimuli", "Recent thoughts", "Memories", "Task")
    )
    memories = [memory for memory in memories if not memory.text.startswith(("#plan", "#question"))]  # no findings
    texts = [*stimuli, *tasks, *recent]
    for item in stimuli:
        yield from _on_a_failure(item, _completed(item, texts), memories)
    for item in stimuli:
        yield from _on_news(item, memories)
    for task in tasks:
        yield from _on_a_failure(task, _completed(task, texts), memories)
        yield f"#plan Go on with {_excerpt(task.text, 40)}"
    for one, other in combinations([memory for memory in memories if not memory.text.startswith("#")], 2):
        if one.id.partition("_")[0] == other.id.partition("_")[0]:
            continue  # what one investigation left: of course they share
        if shared := _shared(facts_of(one.text), facts_of(other.text)):
            yield f"#insight {one.id} and {other.id} share {shared}."
    yield "#insight Nothing new: no stimulus, task or memory asks for attention."


def _completed(item: Item, texts: Sequence[Item]) -> Facts:
    return merged(facts_of(other.text) for other in texts if _completes(other, item))


def _completes(other: Item, item: Item) -> bool:
    """Return whether a text may supply a fact missing in a failure report: same subject, or no flow of its own. Two
    reports of one batch are two failures.
    """
    theirs, its = facts_of(other.text), facts_of(item.text)
    if set(theirs.resources) & set(its.resources):
        return True
    return not (theirs.failing or theirs.causes or other.text.startswith("#"))


def _on_a_failure(item: Item, known: Facts, memories: Sequence[Item]) -> Iterator[str]:
    facts = facts_of(item.text)
    if not facts.failing or facts.causes or facts.said_cause:
        return
    question = _question(item.text, facts, known)
    if question:
        yield question
    flow = _flow(merged([facts, known]))
    for memory in memories:
        remembered = facts_of(memory.text)
        if remembered.causes and (shared := _shared(facts, remembered)):
            cause = remembered.causes[0]
            yield f"#plan Check {cause.check} for {flow}: {memory.id} shares {shared}, and there {cause.text}."
    if question:
        return  # where to look follows from the answer
    cause = _first_suspect(item.text)
    yield f"#plan Check {cause.check} for {flow}, to see whether {cause.text}."


def _question(text: str, facts: Facts, known: Facts) -> str:
    source, destination = facts.source or known.source, facts.destination or known.destination
    port = next(iter(facts.ports or known.ports), "")
    port_matters = not _NO_PORT.search(text)
    missing = [
        name
        for name, absent in (
            ("source", not source),
            ("destination", not destination),
            ("port", port_matters and not port),
        )
        if absent
    ]
    if not missing:
        return ""
    on_port = f" on port {port}" if port else ""
    question = {
        ("port",): f"On which port does {source} fail to reach {destination}?",
        ("source",): f"Which machine fails to reach {destination}{on_port}?",
        ("destination",): f"What does {source} fail to reach{on_port}?",
        ("destination", "port"): f"What does {source} fail to reach, and on which port?",
        ("source", "port"): f"Which machine fails to reach {destination}, and on which port?",
    }.get(tuple(missing), f"Who fails to reach whom, where the report says: {_excerpt(text, 30)}?")
    return f"#question {question} Needed: {', '.join(missing)}."


def _on_news(item: Item, memories: Sequence[Item]) -> Iterator[str]:
    facts = facts_of(item.text)
    cause = facts.said_cause or (facts.causes[0].text if facts.causes else "")
    excerpt = _excerpt(item.text, 30)
    for memory in memories:
        remembered = facts_of(memory.text)
        if shared := _shared(facts, remembered):
            recurs = (cause or facts.failing) and (remembered.causes or remembered.said_cause)
            yield f"#insight {excerpt}: {memory.id} shares {shared}{', so it may recur' if recurs else ''}."
    if cause and cause not in excerpt:
        yield f"#insight {excerpt}: {cause}."
    yield f"#insight New: {_excerpt(item.text, 40)}"


def _shared(one: Facts, other: Facts) -> str:
    shared = [name for name in one.resources if name in other.resources][:3]
    shared += [f"port {port}" for port in one.ports if port in other.ports][:1]
    both = [cause.text for cause in one.causes if cause in other.causes][:1]
    return ", ".join(shared) + ((" and the cause that " if shared else "the cause that ") + both[0] if both else "")


def _flow(facts: Facts) -> str:
    source = facts.source if facts.source != facts.destination else ""  # two texts put it at either end
    ends = f"{source or 'the source'} to {facts.destination or 'the destination'}"
    return ends + (f" port {facts.ports[0]}" if facts.ports else "")


@cache
def _suspects() -> tuple[tuple[re.Pattern[str], Cause], ...]:
    by_tag = {cause.tag: cause for cause in causes()}
    return tuple((re.compile(pattern, re.IGNORECASE), by_tag[tag]) for tag, pattern in words()["suspects"].items())


def _first_suspect(text: str) -> Cause:
    """Return the usual cause of such a symptom; filtering if it says only that nothing arrives."""
    return next((cause for pattern, cause in _suspects() if pattern.search(text)), causes()[0])


def _excerpt(text: str, max_words: int) -> str:
    """Return the beginning, without characters that have a meaning in a thought."""
    excerpt_words = re.sub(r"[#`]|\bNeeded:", "", text).split()
    return " ".join(excerpt_words[:max_words]).rstrip(".?!,;: ") + ("" if len(excerpt_words) <= max_words else " ...")


def _within(thought: str, max_words: int) -> str:
    excerpt_words = [word[:80] for word in thought.split()]
    return (
        " ".join(excerpt_words)
        if len(excerpt_words) <= max_words
        else " ".join(excerpt_words[:max_words]).rstrip(",;: ")
    )


def _compared(text: str) -> str:
    return " ".join(text.casefold().split())
