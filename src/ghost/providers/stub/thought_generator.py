"""The stub's micro-thought: what follows from two texts of the prompt, or what one report of a failure leaves open.

Extractive: names, numbers and excerpts are of the texts, whose
ids are stated at the end. New failures come first: a missing fact becomes a question, a known flow a check, led by a
change or a cause on the same resource. Then causes and changes that meet earlier ones, news by itself, and the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from ghost.policy import load_policy
from ghost.providers.prompt import Item
from ghost.providers.stub.text_facts import Cause, Facts, causes, facts_of, merged
from ghost.providers.stub.tokenizer import words

Sections = Mapping[str, Sequence[Item]]

MAX_READ = 16
"""Maximum items read per section, newest first."""
NOTHING = "#insight Nothing new: no stimulus, task or memory asks for attention."
_EXCERPT_WORDS = 16


@dataclass(frozen=True)
class _Candidate:
    text: str
    sources: tuple[str, ...]

    def line(self, max_words: int) -> str:
        ids = [name for name in self.sources if re.fullmatch(r"[^\s,]{1,200}", name)]
        ending = f" Sources: {', '.join(ids)}" if ids and max_words > len(ids) + 8 else ""
        return _within(self.text, max_words - len(ending.split())) + ending


def thought_on(sections: Sections, max_words: int) -> str:
    """Return `#plan`, `#question` or `#insight` and a sentence, on one line, at most `max_words` words."""
    recent = {_compared(item.text) for item in sections.get("Recent thoughts", [])}
    for candidate in _candidates(sections):
        line = candidate.line(max_words)
        if _compared(line) not in recent:
            return line
    return _within(NOTHING, max_words)


def _candidates(sections: Sections) -> Iterator[_Candidate]:
    stimuli, recent, memories, tasks = (
        list(sections.get(name, []))[:MAX_READ] for name in ("Stimuli", "Recent thoughts", "Memories", "Task")
    )
    told = {item.text for item in stimuli}
    memories = [memory for memory in memories if not memory.text.startswith("#") and memory.text not in told]
    for item in [*stimuli, *tasks]:
        yield from _on_a_failure(item, [*stimuli, *tasks, *recent], [*stimuli, *memories], recent)
    for item in stimuli:
        yield from _on_news(item, [other for other in [*stimuli, *memories] if other != item])
    for item in stimuli:
        yield from _alone(item)
    for task in tasks:
        yield _Candidate(f"#plan Go on with {_excerpt(task.text, 40)}", (task.id,))
    for one, other in combinations(memories, 2):
        if one.id.partition("_")[0] != other.id.partition("_")[0]:  # what one investigation left shares of course
            yield from _on_news(one, [other])


# --- failures ---


def _on_a_failure(
    item: Item, texts: Sequence[Item], known: Sequence[Item], recent: Sequence[Item]
) -> Iterator[_Candidate]:
    facts = facts_of(item.text)
    if not facts.failing or facts.causes or facts.said_cause or _matches("over", item.text):
        return
    completed = merged([facts, *(facts_of(other.text) for other in texts if _completes(other, item))])
    if question := _question(item.text, facts, completed):
        yield _Candidate(question, (item.id,))
        return  # where to look follows from the answer
    flow = _flow(facts)
    if not flow:
        return
    others = [(other, facts_of(other.text)) for other in known if other.id != item.id]
    for other, theirs in others:
        shared = _shared(facts, theirs)
        if shared and (theirs.causes or theirs.said_cause):
            check = theirs.causes[0].check if theirs.causes else "that"
            yield _Candidate(f"#plan {flow}: check {check} first, as in: {_excerpt(other.text)}", (item.id, other.id))
    for other, theirs in others:
        if _shared(facts, theirs) and _matches("changed", other.text) and not theirs.failing:
            yield _Candidate(f"#plan {flow}: check first what was changed: {_excerpt(other.text)}", (item.id, other.id))
    for other, theirs in others:
        if theirs.failing and not _matches("over", other.text) and (shared := _shared(facts, theirs)):
            both = f"{_excerpt(item.text)} | {_excerpt(other.text)}"
            yield _Candidate(f"#insight More than one failure at {shared}: {both}", (item.id, other.id))
    check = _first_suspect(item.text).check
    if facts.source and facts.destination and not any(check in thought.text for thought in recent):
        yield _Candidate(f"#plan {flow}: check {check}.", (item.id,))


def _completes(other: Item, item: Item) -> bool:
    """Return whether a text may supply a fact missing in a failure report: same subject, or no flow of its own. Two
    reports of one batch are two failures.
    """
    theirs, its = facts_of(other.text), facts_of(item.text)
    if set(theirs.resources) & set(its.resources):
        return True
    return not (theirs.resources or theirs.failing or theirs.causes or other.text.startswith("#"))


def _question(text: str, facts: Facts, completed: Facts) -> str:
    """Ask for the one thing that a report of unreached traffic does not say; nothing where it says so in words."""
    if not _matches("unreached", text):
        return ""
    port_is_known = bool(completed.ports) or _matches("portless", text)
    on_port = f" on port {facts.ports[0]}" if facts.ports else ""
    source, destination = facts.source, facts.destination
    if source and destination:
        return (
            "" if port_is_known else f"#question On which port does {source} fail to reach {destination}? Needed: port."
        )
    if _matches("everybody", text) or not port_is_known:
        return ""
    if destination and not completed.source:
        return f"#question Which machine fails to reach {destination}{on_port}? Needed: source."
    if source and not completed.destination and _matches("open_end", text):
        return f"#question What does {source} fail to reach{on_port}? Needed: destination."
    return ""


def _flow(facts: Facts) -> str:
    port = f" on port {facts.ports[0]}" if facts.ports else ""
    if facts.source and facts.destination:
        return f"{facts.source} to {facts.destination}{port}"
    return f"{facts.source or facts.destination}{port}" if facts.source or facts.destination else ""


@cache
def _suspects() -> tuple[tuple[re.Pattern[str], Cause], ...]:
    by_tag = {cause.tag: cause for cause in causes()}
    return tuple((re.compile(pattern, re.IGNORECASE), by_tag[tag]) for tag, pattern in words()["suspects"].items())


def _first_suspect(text: str) -> Cause:
    """Return the usual cause of such a symptom; filtering if it says only that nothing arrives."""
    return next((cause for pattern, cause in _suspects() if pattern.search(text)), causes()[0])


# --- two texts that meet ---


def _on_news(item: Item, others: Sequence[Item]) -> Iterator[_Candidate]:
    """Compare a text with others: a cause found again, a change before a failure, two changes of one resource."""
    facts = facts_of(item.text)
    for other in others:
        theirs = facts_of(other.text)
        if not (shared := _shared(facts, theirs)):
            continue
        pair, both = (item.id, other.id), f"{_excerpt(item.text)} | before: {_excerpt(other.text)}"
        if (facts.causes or facts.said_cause) and (theirs.causes or theirs.said_cause):
            yield _Candidate(f"#insight {shared} again: {both}", pair)
        elif _matches("changed", item.text) and theirs.failing and not facts.failing:
            yield _Candidate(f"#insight A change at {shared} after a failure: {both}", pair)
        elif _matches("changed", item.text) and _matches("changed", other.text):
            yield _Candidate(f"#insight {shared} was changed more than once: {both}", pair)


def _alone(item: Item) -> Iterator[_Candidate]:
    """Say what kind of news a text is, at which resource; nothing of a text without one."""
    facts = facts_of(item.text)
    if not facts.resources:
        return
    is_cause = facts.causes or facts.said_cause
    kind = (
        "cause" if is_cause else "change" if _matches("changed", item.text) else "failure" if facts.failing else "fact"
    )
    yield _Candidate(f"#insight A {kind} at {facts.resources[0]}: {_excerpt(item.text, 40)}", (item.id,))


def _shared(one: Facts, other: Facts) -> str:
    return ", ".join([name for name in one.resources if name in other.resources][:3])


# --- wording ---


@cache
def _reports() -> dict[str, re.Pattern[str]]:
    table = load_policy(__file__, "reports.toml", dict[str, tuple[str, ...]])
    return {name: re.compile("|".join(listed), re.IGNORECASE | re.DOTALL) for name, listed in table.items()}


def _matches(name: str, text: str) -> bool:
    return _reports()[name].search(text[:4000]) is not None


def _excerpt(text: str, max_words: int = _EXCERPT_WORDS) -> str:
    """Return the beginning, without characters that have a meaning in a thought."""
    excerpt_words = re.sub(r"[#`]|\b(?:Needed|Sources?):", "", text).split()
    return " ".join(excerpt_words[:max_words]).rstrip(".?!,;: ") + ("" if len(excerpt_words) <= max_words else " ...")


def _within(thought: str, max_words: int) -> str:
    excerpt_words = [word[:80] for word in thought.split()]
    if len(excerpt_words) <= max_words:
        return " ".join(excerpt_words)
    return " ".join(excerpt_words[: max(max_words, 1)]).rstrip(",;: ")


def _compared(text: str) -> str:
    return " ".join(text.partition(" Sources: ")[0].casefold().split())
