"""Comparison of episodes by their words: cause, resources, and whether two have the same cause.

Purely textual. In doubt two causes are different: a wrong summary misleads, a missing one costs a second look.
`mechanisms.toml` lists the words that separate causes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ghost.mind.data_model import Memory
from ghost.mind.questions import FILLER, is_identifier, stem
from ghost.policy import load_policy

ALIKE_WORDS = 0.5
"""Minimum share of common words for two causes without a common resource to be the same."""

_TOWARDS = frozenset({"from", "to", "towards", "toward", "for", "between", "and", "into", "reaches", "reach"})
_TERM = re.compile(r"[^\W_]+(?:[._:/-]+[^\W_]+)*")
_STATED = re.compile(r"(?:^|\n|\.\s)\s{0,8}(?:root )?cause:\s{0,8}(?P<cause>[^\n]+)", re.IGNORECASE)
_SAID = re.compile(
    r"(?<!not )(?<!no )(?<!unknown )\b(?:caused by|because of|because|due to|root cause (?:is|was)"
    r"|(?:fault|cause) (?:is|was)(?: at [^:\n]{1,80}:)?)\s{1,8}(?P<cause>[^.;\n]{4,300})",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"\W*(?:(?:is|was|still|yet)\b\W*)*(?:(?:unknown|unclear|undetermined|under investigation|no cause"
    r"|not (?:yet )?(?:found|known|clear|established|determined))\b.*|none|nothing|n/a|tbd|open|)\W*",
    re.IGNORECASE,
)
_CONFIDENCE = re.compile(r"\s*\(confidence[^)]*\)\s*$", re.IGNORECASE)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[t_:/-]\d{2}(?::\d{2}){0,2}z?)?|\d{1,2}:\d{2}(?::\d{2})?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?::\d+)?|[0-9a-f]*:[0-9a-f:]+(?:/\d+)?")
_OF_THE_MIND = re.compile(r"(?:mem|doc|q|thought|stim|task|session|page):.+|sh_.+|.*/tcp|.*/udp", re.IGNORECASE)


@dataclass(frozen=True)
class Wording:
    """A text prepared for comparison."""

    identifiers: tuple[str, ...]
    """Names in order of first occurrence, lower case."""
    ends: frozenset[str]
    """Names after `from`, `to` and the like: the ends of traffic, which may differ for one cause."""
    addresses: frozenset[str]
    numbers: frozenset[str]
    """Bare numbers: ports, counts, codes."""
    words: frozenset[str]
    """Other words, without filler words and endings."""
    mechanisms: frozenset[str]
    axes: tuple[frozenset[str], ...]

    def contradicts(self, other: Wording) -> bool:
        """Return whether both make statements that exclude one cause."""
        return any(one and two and not one & two for one, two in zip(self.axes, other.axes, strict=True))


@dataclass(frozen=True)
class Episode:
    memory: Memory
    cause: str
    """Empty if not stated."""
    about_cause: Wording
    resources: frozenset[str]
    """All names and addresses in the text."""
    layers: frozenset[str]
    """Layers of the path that an investigation found at fault; empty if not stated."""

    def has_same_cause(self, other: Episode) -> bool:
        one, two = self.about_cause, other.about_cause
        if not self.cause or not other.cause or one.mechanisms != two.mechanisms or one.contradicts(two):
            return False
        if self.layers and other.layers and self.layers != other.layers:
            return False
        if one.numbers != two.numbers or _differ_in_kind(one, two):
            return False
        if one.mechanisms and _at_fault(one) & _at_fault(two):
            return True
        return _shared(one.words, two.words) >= ALIKE_WORDS


def episode(memory: Memory) -> Episode:
    cause = cause_of(memory)
    named = memory.metadata.get("resources")
    whole = wording(memory.content)
    listed = {name.casefold() for name in named if isinstance(name, str)} if isinstance(named, list) else set()
    layers = memory.metadata.get("layers_at_fault")
    return Episode(
        memory,
        cause,
        wording(cause),
        frozenset(whole.identifiers) | whole.addresses | listed,
        frozenset(map(str, layers)) if isinstance(layers, list) else frozenset(),
    )


def network_of(memory: Memory) -> frozenset[str]:
    """Return the tags of the network's kind: results from a lab do not apply to a tenant."""
    return frozenset(tag for tag in memory.tags if tag.startswith("network:"))


def cause_of(memory: Memory) -> str:
    """Return the cause from the metadata field `cause`, else from the text: `Cause: ...`, `because of ...`, `due to
    ...`.
    """
    stated = memory.metadata.get("cause")
    if not isinstance(stated, str) or not stated.strip():
        found = _STATED.search(memory.content) or _SAID.search(memory.content)
        stated = found["cause"] if found else ""
    cause = _CONFIDENCE.sub("", " ".join(stated.split())).rstrip(" .")
    return "" if _UNKNOWN.fullmatch(cause) else cause


def wording(text: str) -> Wording:
    folded = unicodedata.normalize("NFKC", text).casefold()
    identifiers: dict[str, None] = {}
    ends, addresses, numbers, words = set(), set(), set(), set()
    before = ""
    for term in _TERM.findall(folded):
        leads, before = before, term
        if _MOMENT.fullmatch(term) or _OF_THE_MIND.fullmatch(term):
            continue
        if _ADDRESS.fullmatch(term):
            addresses.add(term)
        elif term.isdigit():
            numbers.add(term)
        elif is_identifier(term):
            identifiers[term] = None
            if leads in _TOWARDS and _kind(term) == "end":
                ends.add(term)
        elif term not in FILLER:
            words.add(stem(term))
    mechanisms, axes = _vocabulary()
    return Wording(
        tuple(identifiers),
        frozenset(ends),
        frozenset(addresses),
        frozenset(numbers),
        frozenset(words),
        frozenset(name for name, pattern in mechanisms.items() if pattern.search(folded)),
        tuple(frozenset(name for name, pattern in axis.items() if pattern.search(folded)) for axis in axes),
    )


def is_duplicate(one: Memory, other: Memory, alike: float = 0.8) -> bool:
    """Return whether two texts are duplicates: same names in the same order, same numbers, times and mechanisms,
    nearly the same words.
    """
    first, second = wording(one.content), wording(other.content)
    return (
        first.identifiers == second.identifiers
        and first.addresses == second.addresses
        and first.numbers == second.numbers
        and first.mechanisms == second.mechanisms
        and first.axes == second.axes
        and _moments(one.content) == _moments(other.content)
        and _shared(first.words, second.words) >= alike
        and (cause_of(one) == cause_of(other) or episode(one).has_same_cause(episode(other)))
    )


def shared_cause(episodes: Sequence[Episode]) -> str:
    """Return the shortest wording of a shared cause, with `…` for names and addresses that not all contain."""
    stated = min((each.cause for each in episodes), key=len)
    common = set.intersection(
        *({*each.about_cause.identifiers, *each.about_cause.addresses, *each.about_cause.numbers} for each in episodes)
    )

    def kept(match: re.Match[str]) -> str:
        term = match[0].casefold()
        names = is_identifier(term) and _MOMENT.fullmatch(term) is None
        return match[0] if not names or term in common else "…"

    return _TERM.sub(kept, stated)


# --- steps ---


@cache
def _table() -> dict[str, Any]:
    return load_policy(__file__, "mechanisms.toml")


@cache
def _vocabulary() -> tuple[dict[str, re.Pattern[str]], list[dict[str, re.Pattern[str]]]]:
    table = _table()
    axes = [{name: re.compile(pattern) for name, pattern in axis.items()} for axis in table["axes"].values()]
    return {name: re.compile(pattern) for name, pattern in table["mechanisms"].items()}, axes


@cache
def _kinds() -> dict[str, str]:
    return {part: kind for kind, parts in _table()["kinds"].items() for part in parts.split()}


def _kind(identifier: str) -> str:
    """Return the kind of a name from its last descriptive part; empty without one."""
    parts = re.split(r"[._:/-]+|(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])", identifier)
    kinds = [_kinds()[part] for part in parts if part in _kinds()]
    return next((kind for kind in reversed(kinds) if kind != "end"), kinds[-1] if kinds else "")


def _at_fault(wording_of_text: Wording) -> set[str]:
    return set(wording_of_text.identifiers) - wording_of_text.ends


def _differ_in_kind(one: Wording, other: Wording) -> bool:
    """Return whether both name a faulty resource of one kind, and not the same one."""
    first, second = _by_kind(one), _by_kind(other)
    return any(not first[kind] & second[kind] for kind in first.keys() & second.keys())


def _by_kind(wording_of_text: Wording) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in _at_fault(wording_of_text):
        found.setdefault(_kind(name), set()).add(name)
    return found


def _moments(text: str) -> list[str]:
    return _MOMENT.findall(text.casefold())


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0
