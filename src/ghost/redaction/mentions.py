"""Where a secret's name stands and no secret beside it: it is mentioned only.

The path of a request, a package with its version, a label of a metric, a commit about passwords, a variable that is
read from another. What surrounds such a name is `[[mention]]` of `redaction.toml`; what grammar and comparison
of names tell stands here. Every look is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, is_made_up, looks_random
from ghost.redaction.secrets_in_statements import is_ordinary

_LINE_REACH = 320
_BEHIND_REACH = 640


@dataclass(frozen=True)
class Mention:
    """What surrounds a name that is mentioned only: the last word of it, what is before it on its line, and behind."""

    name: re.Pattern[str] | None
    before: re.Pattern[str] | None
    behind: re.Pattern[str]
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def is_mention(name: Name) -> bool:
    """Whether no value stands beside the name, whatever follows it."""
    text, end = name.text, name.end
    any_behind, mentions = _mentions_of(text[name.word : end])
    if any_behind.match(text, end, end + _BEHIND_REACH) is not None:
        before: str | None = None
        for mention in mentions:
            if mention.behind.match(text, end, end + _BEHIND_REACH) is None:
                continue
            if mention.before is None:
                return True
            before = _line_before(name) if before is None else before
            if mention.before.search(before) is not None:
                return True
    return _is_read_elsewhere(name) or _is_label(name) or _is_told_of(name)


@lru_cache(maxsize=4096)
def _mentions_of(word: str) -> tuple[re.Pattern[str], tuple[Mention, ...]]:
    """The mentions that a name may have which ends in this word, and what stands behind it in any of them."""
    mentions = tuple(mention for mention in MENTIONS if mention.name is None or mention.name.fullmatch(word))
    return re.compile("|".join(f"(?:{mention.behind.pattern})" for mention in mentions)), mentions


def _line_before(name: Name) -> str:
    """The line before the last word of a name; one that begins further away than is looked begins with a mark."""
    first = max(0, name.word - _LINE_REACH)
    line = name.text.rfind("\n", first, name.word) + 1
    return name.text[line : name.word] if line or first == 0 else f"\u2026{name.text[first : name.word]}"


# Source code: a variable that is read from another of the same name (`password = request.form["password"]`), or made
# by a call that holds no string.

_READ = re.compile(
    r"[\"']?\]?[ \t]{0,8}(?::=|=(?!=)|:)[ \t]{0,20}(?:await[ ]|new[ ])?\$?"
    r"(?P<path>[A-Za-z_][\w$]{0,40}(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]{0,40}){0,6})"
    r"(?:(?P<made>\((?:[^\"'\n()]|\([^\"'\n()]{0,80}\)){0,200}\))"
    r"|[\[(](?P<quote>[\"'])(?P<key>[A-Za-z][\w. -]{0,60})(?P=quote)[\])]|\[:(?P<symbol>[a-z_]{1,60})\])?"
    r"(?:\.(?:value|text|strip\(\)|trim\(\)|to_s|toString\(\)))?(?=[ \t]*(?:[;,)}]|#|//|\n|$))"
)
_LETTERS = re.compile(r"[A-Za-z_$]+(?:(?:\.|->|::|\?\.)[A-Za-z_$]+)*")
_PARTS = re.compile(r"\.|->|::|\?\.")


def _is_read_elsewhere(name: Name) -> bool:
    read = _READ.match(name.text, name.end, name.end + _BEHIND_REACH)
    if read is None:
        return False
    key = read["key"] or read["symbol"]
    if key is not None:
        return _is_same(name, re.split(r"[._ -]", key)[-1])
    path = _PARTS.split(read["path"])
    if read["made"] is not None:
        return _LETTERS.fullmatch(read["path"]) is not None and (
            len(path) > 1 or "=" in read["made"] or read["made"] == "()"
        )
    return len(path) > 1 and _is_same(name, path[-1])


def _is_same(name: Name, other: str) -> bool:
    """Whether a variable, or the key of one, is called as the name is: `token` beside `access_token`."""
    own, read = (re.sub(r"[_.-]", "", word).lower() for word in (name.text[name.word : name.end], other))
    return bool(read) and (own.endswith(read) or read.startswith(own))


# Translations: `login.password=Password`.

_LABEL = re.compile(
    r"[\"']?[ ]?[:=][ ]?[\"']?(?:(?:Enter|Confirm|Repeat)[ ])?(?:(?i:your|the)[ ])?(?:(?i:new|old|current)[ ])?"
    r"(?P<label>[A-Za-z]{4,20})[\"']?,?[ \t]*(?=\n|$)"
)


def _is_label(name: Name) -> bool:
    label = _LABEL.match(name.text, name.end, name.end + 80)
    if label is None:
        return False
    words = name.text[label.start() : label.end()].lstrip("\"' :=")
    own = re.split(r"[._-]", name.text[name.word : name.end])[-1]
    return words[:1].isupper() and own.islower() and own == label["label"].lower()


# Prose: what a commit, a test or a message says of passwords behind a colon.

_COLON = re.compile(
    r"(?:\*\*|`)?(?:[ ]\([a-z]{2,20}\))?:(?:\*\*)?[ ](?P<said>[A-Za-z][a-z-]{1,20}(?:[ ][^\n]{1,240})?)(?=\n|$)"
)
_NOTES = re.compile(
    r"^[\s*|/\\_]{0,20}(?:(?:pick|squash|fixup|reword|edit|drop)[ ]|\[[\w./-]{1,60}[ ](?=[0-9a-f]{7,40}\]))?"
    r"(?=[0-9]{0,39}[a-f])[0-9a-f]{7,40}[\]:]?[ ]"
    r"|^(?:not[ ])?ok[ ]{1,3}\d{1,5}[ ]|^[ \t]{0,12}[\u2713\u2717\u2714\u2718\u00d7][ ]|\bRevert \"$"
)
"""How a line begins that tells in prose what was done, or tested."""
_OF_CHANGE = re.compile(r"\(#\d{1,6}\)[ \t]*$")
_WORD = re.compile(r"[A-Za-z][a-z'-]{0,20}[,.]?|\(?#?\d{1,5}\)?[,.]?")
_LINKING = frozenset(POLICY["sentence"]["linking"])
_ASPECTS = frozenset(POLICY["sentence"]["aspects"])
_FUNCTION = frozenset(POLICY["sentence"]["function"])
_FIRST_WORDS = 5


def _is_told_of(name: Name) -> bool:
    told = _COLON.match(name.text, name.end, name.end + _BEHIND_REACH)
    if told is None:
        return False
    words = told["said"].split()
    if len(words) < 2 or any(is_made_up(word.strip(".,;)(")) or looks_random(word) for word in words):
        return False
    if _NOTES.search(_line_before(name)) is not None or _OF_CHANGE.search(told["said"]) is not None:
        return True
    return _is_clause(words, name.text[name.word : name.end])


def _is_clause(words: list[str], name: str) -> bool:
    """Whether words are of a sentence, not of a passphrase, nor a password with a sentence's rest behind it."""
    first = words[:_FIRST_WORDS]
    if _WORD.fullmatch(words[1]) is not None and words[1] not in _LINKING and all(map(is_ordinary, words[:2])):
        return True  # `password: invalid value`
    if len(words) < 3 or not all(map(_WORD.fullmatch, first[:3])):
        return False
    second = words[1].rstrip(",.")
    if words[0].lower() == name.lower() or (words[0] in _ASPECTS and second in ("is", "was", "not")):
        return True  # `password (string): Password of the account`, `credential: helper is missing`
    if words[0][0].isupper() or words[0].endswith((",", ".")) or words[1].endswith((",", ".")) or second in _LINKING:
        return False
    return any(word.rstrip(",.") in _FUNCTION for word in first[1:])


def _load_mentions(policy: dict[str, Any]) -> Iterator[Mention]:
    for row in policy["mention"]:
        name, before = (re.compile(row[part]) if part in row else None for part in ("name", "before"))
        yield Mention(name, before, re.compile(row["behind"]), tuple(row["must"]), tuple(row["must_not"]))


MENTIONS = tuple(_load_mentions(POLICY))
