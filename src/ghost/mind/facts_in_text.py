"""What a text mentions: names, addresses, numbers and times, changes, and values of resources.

Purely textual, with the words of `facts_in_text.toml`. Everything found is in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import ip_interface
from typing import Any

from ghost.mind.keywords import stop_words
from ghost.mind.questions import is_identifier
from ghost.policy import load_policy

MAX_CHARS = 4000
"""Maximum characters read of a text."""

_TERM = re.compile(r"[^\W_]+(?:['’._:/-]+[^\W_]+)*")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[t_:/-]\d{2}(?::\d{2}){0,2}z?)?|\d{1,2}:\d{2}(?::\d{2})?z?")
_QUANTITY = re.compile(r"(?:p)?(\d+(?:[.,]\d+)*)(?:ms|s|m|h|d|gb|mb|kb|tb|%|st|nd|rd|th|x|k|am|pm|utc)?")
_OF_THE_MIND = re.compile(r"(?:mem|doc|q|thought|stim|task|session|page|answer|read|self):.+|(?:ghost|shell)_\d{8}_.+")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n]\s{0,8}|[\"'“(#*-]\s{0,2}|#\w{1,20}\s)$")
_RESOURCE = (
    r"(?<![\w.-])(?:the |our )?(?P<resource>(?<![\w.-])[a-z0-9]{1,40}(?:[-_.][a-z0-9]{1,40}){1,8}"
    r"|(?<=the )[a-z]{1,40}(?: [a-z]{1,40})?)"
)
_ADDRESS = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?![\w.]\d)"
_PORT = r"\d{2,5}\b(?![.:/-]\d)"


@dataclass(frozen=True)
class Mentions:
    """Each in lower case."""

    identifiers: frozenset[str]
    """Names with a digit or a joint: resources, hosts, rules, tickets."""
    proper: frozenset[str]
    """Capitalised words inside a sentence."""
    addresses: frozenset[str]
    numbers: frozenset[str]
    times: frozenset[str]
    words: frozenset[str]
    """All words and names, with the parts of names joined by `:` or `/`."""

    @property
    def resources(self) -> frozenset[str]:
        return self.identifiers | self.addresses

    @property
    def exact(self) -> frozenset[str]:
        """Return what a text may not say unless its sources do."""
        return self.resources | self.numbers | frozenset(time for time in self.times if time[0].isdigit())

    def shared_with(self, other: Mentions) -> frozenset[str]:
        """Return the names, numbers and addresses that both texts contain."""
        return (self.named & other.words) | (other.named & self.words)

    @property
    def named(self) -> frozenset[str]:
        return self.resources | self.numbers | self.proper


@lru_cache(maxsize=2048)
def mentions(text: str) -> Mentions:
    """Return what the first `MAX_CHARS` characters mention."""
    text = unicodedata.normalize("NFKC", text[:MAX_CHARS])
    found: dict[str, set[str]] = {
        kind: set() for kind in ("identifiers", "proper", "addresses", "numbers", "times", "words")
    }
    for match in _TERM.finditer(text):
        for piece in _pieces(match[0]):
            term = piece.casefold().removesuffix("'s").removesuffix("’s")
            found["words"].add(term)
            kind = _kind(term) or (
                "proper" if _is_proper(piece, term, text[max(0, match.start() - 24) : match.start()]) else ""
            )
            if kind == "numbers":
                term = _digits(term)
                found["words"].add(term)
            if kind:
                found[kind].add(term)
    return Mentions(**{kind: frozenset(terms) for kind, terms in found.items()})


def is_fact(text: str) -> bool:
    """Return whether a text names something, or tells a change or a fact of a network."""
    found = mentions(text)
    if found.exact or found.proper or found.times or tells_change(text):
        return True
    begins = re.match(r"\W*([A-Z]\w+) \w+ \w+", text)
    if begins and begins[1].casefold() not in stop_words() | _listed("ordinary"):
        return True  # a name at the beginning: `Lena looks after the backups`
    return _matches("subjects", text)


def tells_change(text: str) -> bool:
    return _matches("changes", text[:MAX_CHARS])


def is_routine(source: str, text: str) -> bool:
    """Return whether a stimulus is a success that the audit log holds anyway."""
    routine = _table()["routine"]
    return source == routine["source"] and any(pattern.search(text) for pattern in _patterns("routine", "patterns"))


def statements(text: str) -> dict[str, str]:
    """Return the values of resources that a text states, by `resource|field`."""
    stated: dict[str, str] = {}
    for field in _table()["statements"]:
        for pattern in _statement_patterns(field):
            for match in pattern.finditer(text[:MAX_CHARS]):
                stated.setdefault(
                    f"{match['resource'].casefold()}|{field}", match["value"].casefold().removeprefix("the ")
                )
    return stated


# --- steps ---


def _pieces(term: str) -> Iterator[str]:
    """Yield a term, and the parts of a path, or of an address with a port."""
    yield term
    if _is_address(term) or _MOMENT.fullmatch(term.casefold()) or _OF_THE_MIND.fullmatch(term.casefold()):
        return
    parts = re.split(r"[:/]+", term)
    if len(parts) > 1:
        yield from filter(None, parts)


def _kind(term: str) -> str:
    if _OF_THE_MIND.fullmatch(term):
        return ""
    if _MOMENT.fullmatch(term) or term in _listed("times"):
        return "times"
    if _is_address(term):
        return "addresses"
    if _QUANTITY.fullmatch(term):
        return "numbers"
    if not is_identifier(term) or term in _listed("ordinary") or re.search(r"[:/]", term):
        return ""
    return "identifiers"


def _digits(term: str) -> str:
    found = _QUANTITY.fullmatch(term)
    return found[1] if found else term


def _is_proper(piece: str, term: str, before: str) -> bool:
    if not piece[0].isupper() or not piece.isalpha() or len(piece) < 2 or _SENTENCE_START.search(before):
        return False
    return term not in _listed("ordinary") and term not in stop_words()


def _is_address(term: str) -> bool:
    if term.count(".") != 3 and term.count(":") < 2:
        return False
    try:
        ip_interface(term)
    except ValueError:
        return False
    return True


@cache
def _table() -> dict[str, Any]:
    return load_policy(__file__, "facts_in_text.toml")


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(_table()[name].split())


@cache
def _patterns(*path: str) -> tuple[re.Pattern[str], ...]:
    found: Any = _table()
    for name in path:
        found = found[name]
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


def _matches(name: str, text: str) -> bool:
    return any(pattern.search(text) for pattern in _patterns(name))


@cache
def _statement_patterns(field: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_filled(pattern), re.IGNORECASE) for pattern in _table()["statements"][field])


def _filled(pattern: str) -> str:
    """Return the pattern with the parts that it names in braces."""
    for name, part in {**_table()["parts"], "resource": _RESOURCE, "address": _ADDRESS, "port": _PORT}.items():
        pattern = pattern.replace(f"{{{name}}}", part)
    return pattern
