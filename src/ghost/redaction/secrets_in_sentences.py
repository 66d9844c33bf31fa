"""Secrets that a sentence tells: `password for bob was set to X`, `Temporary password: X`, `use X as password`.

A sentence says many words behind a secret's name, so only what no word of a language looks like is a secret there,
unless it stands at the place that the sentence makes for it: in quotes, or last, behind a colon or `is`.
"""

from __future__ import annotations

import re

from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, is_guid, is_inflected, is_made_up, is_mixed, is_open, looks_random
from ghost.redaction.secrets_in_statements import Span, is_ordinary

_ASPECTS = frozenset(POLICY["sentence"]["aspects"])
_WORDS = 8  # so far behind its name a secret is looked for
_REACH = 120
_STEP = re.compile(
    r"(?P<lead>[ \t]{0,4}[:=>-]{0,3}[ \t]{1,4})(?P<open>[\"'`(\[<]{0,2})(?P<word>[^\s\"'`]{1,200})[\"'`)\]>]?"
)
_BESIDE = re.compile(r"[\"'`*)\]]{0,2}[ \t]{0,8}[:=]")  # a value: no sentence
_TELLS = re.compile(
    r"\b(?:is|was|ist|lautet|now|becomes|est|es|(?:set|reset|changed?|updated?|rotated?)(?: back)? (?:to|from))$",
    re.IGNORECASE,
)
_OF_A_THING = re.compile(
    r"\b(?:user|role|host|database|account|for|named|called|from|at|on|by|in|of|file|group)$", re.IGNORECASE
)
_AS_NAME = re.compile(
    r"(?<![^\s\"'`(\[])(?P<secret>[^\s\"'`()\[\]]{5,200})[\"'`)\]]?[ ](?:as|is|was|for)[ ]"
    r"(?:(?:the|a|my|our|your|his|her|their|new|old|root|admin)[ ]){0,3}$",
    re.IGNORECASE,
)
_LAST = re.compile(r"[\"'`)\]>]?[.!,;]?[ \t]{0,8}(?:\n|$)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T_][\d:.,+Z-]{4,32})?")
_COMPOUND = re.compile(
    r"[ ](?P<first>[a-z-]{3,20})(?![ ](?:to|from|for|by|of|on|in|at|back)\b)(?:[ ][a-z-]{2,20}){1,6}"
)
_LINKS = frozenset(POLICY["sentence"]["links"])


def secret_told(name: Name, done: int) -> Span | None:
    """Where the secret stands that a sentence tells behind, or before, its name; nothing before `done`."""
    text, position = name.text, name.end
    if _BESIDE.match(text, position) is not None:
        return None
    limit = min(len(text), position + _REACH)
    spoken, of_aspect = 0, False
    for _ in range(_WORDS):
        step = _STEP.match(text, position, limit)
        if step is None:
            break
        if _is_told(text, step, spoken, name.end) and not (of_aspect and not is_made_up(step["word"])):
            start, end = step.span("word")
            return start, end - (len(step["word"]) - len(step["word"].rstrip(".,;:!?)]>")))
        if step["word"].endswith((".", ";", "!", "?", "|")) or "=" in step["word"]:
            break
        position, spoken = step.end(), spoken + 1
        of_aspect = step["word"].endswith((":", "=")) and step["word"][:-1].lower() in _ASPECTS
    return _told_before(name, done) if name.certain else None


def _told_before(name: Name, done: int) -> Span | None:
    """Where the secret stands that a sentence tells before its name: `use X as the root password`."""
    if not name.text.endswith(" ", done, name.word):
        return None
    before = _AS_NAME.search(name.text, max(done, name.word - _REACH), name.word)
    if before is None:
        return None
    literal = name.text[before.start("secret") - 1 : before.start("secret")] == "'"
    told = (literal or is_mixed(before["secret"])) and not is_plain(before["secret"])
    return before.span("secret") if told else None


def _is_told(text: str, step: re.Match[str], spoken: int, start: int) -> bool:
    word = step["word"].rstrip(".,;:!?)]>")
    if len(word) < 4:
        return False
    made_up = is_made_up(word)
    if (not made_up and is_plain(word)) or is_open(word) or is_ordinary(word):
        return False
    before = text[max(0, step.start() - 40) : step.start()]
    said = step["lead"].strip() != "" or before.endswith((":", "=")) or _TELLS.search(before) is not None
    quoted = step["open"] != "" and spoken <= 2 and _OF_A_THING.search(before) is None
    if not (made_up or said or quoted) or (not said and is_plain(word)):
        return False
    if made_up or is_mixed(word) or (looks_random(word) and not is_guid(word)):
        return True
    if said and spoken > 0 and _is_scrambled(word):
        return True  # also where the sentence goes on
    chosen = len(word) >= 6 and word.isalnum() and not is_inflected(word)
    if _tells_of_other_thing(text[start : step.start()]):
        return False
    return said and chosen and spoken > 0 and _LAST.match(text, step.end()) is not None


def _tells_of_other_thing(between: str) -> bool:
    """Whether the words behind a name go on to another thing, of which something is said: `secret store driver is`."""
    words = _COMPOUND.fullmatch(between)
    return words is not None and words["first"] not in _LINKS and not is_inflected(words["first"])


_PLAIN = re.compile(
    r"[~.]{0,2}/.*|https?:.*|\w+://.*|[\w.-]+@[\w.-]+\.\w+|\d[\d.:/-]*\w{0,4}|v?\d+(?:\.\d+){1,4}\S{0,20}"
    r"|[\w.-]+\.[a-z]{2,6}(?::\d+)?|--?[a-z][\w-]*|[A-Z][a-z]{2}\d{1,2}|\w+\(\S*\)?|[\w.-]{1,40}=.*|[A-Za-z]+[_-][\w-]*[a-z]\d{0,3}|[a-z]+\d{1,2}"
    r"|[A-Z0-9]+(?:[_-][A-Z0-9]+)+|%\S*|\{\S*|\$\S*|<\S*|\d+[a-zA-Z]{1,3}"
)


_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _is_scrambled(word: str) -> bool:
    """Whether letters alone look random: capitals among them closer than the words of a name in camel case are."""
    humps = len(_HUMP.findall(word))
    return 10 <= len(word) <= 64 and word.isascii() and word.isalpha() and humps >= 4 and len(word) / humps < 2.8


def is_plain(word: str) -> bool:
    """Whether a word is an address, a path, a date, a version, an option or another name of a thing."""
    return _PLAIN.fullmatch(word) is not None or _DATE.fullmatch(word) is not None
