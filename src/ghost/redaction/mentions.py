"""Mentions: names of secrets without a secret next to them.

For example a request path, a package and its version, a metric label, a commit about passwords, a variable read from
another one. `[[mention]]` of `redaction.toml` holds the surroundings of such names; this module the rules that need
grammar or a comparison of names. Every search is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ghost.patterns import lazy
from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, any_of, is_made_up, looks_random
from ghost.redaction.statements import is_ordinary

_LINE_REACH = 320
_BEHIND_REACH = 640


@dataclass(frozen=True)
class Mention:
    """Surroundings of a mention: the last word of the name, the line before it, and the text after it."""

    name: re.Pattern[str] | None
    before: re.Pattern[str] | None
    behind: re.Pattern[str]
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def is_mention(name: Name) -> bool:
    """Whether there is no secret next to the name, whatever follows it."""
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
    return _is_read_elsewhere(name) or _is_label(name) or _is_prose_about(name)


@lru_cache(maxsize=4096)
def _mentions_of(word: str) -> tuple[re.Pattern[str], tuple[Mention, ...]]:
    """Return a pattern of what follows any mention ending in this word, and those mentions."""
    mentions = tuple(mention for mention in MENTIONS if mention.name is None or mention.name.fullmatch(word))
    return re.compile("|".join(f"(?:{mention.behind.pattern})" for mention in mentions)), mentions


def _line_before(name: Name) -> str:
    """Return the line up to the last word of a name; a line cut at the limit begins with an ellipsis."""
    first = max(0, name.word - _LINE_REACH)
    line = name.text.rfind("\n", first, name.word) + 1
    return name.text[line : name.word] if line or first == 0 else f"\u2026{name.text[first : name.word]}"


# Source code: a variable that is read from another of the same name (`password = request.form["password"]`), or made
# by a call that holds no string.

_READ = lazy(
    r"[\"']?\]?[ \t]{0,8}(?::=|=(?!=)|:)[ \t]{0,20}(?:await[ ]|new[ ])?\$?"
    r"(?P<path>[A-Za-z_][\w$]{0,40}(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]{0,40}){0,6})"
    r"(?:(?P<made>\((?:[^\"'\n()]|\([^\"'\n()]{0,80}\)){0,200}\))"
    r"|[\[(](?P<quote>[\"'])(?P<key>[A-Za-z][\w. -]{0,60})(?P=quote)[\])]|\[:(?P<symbol>[a-z_]{1,60})\])?"
    r"(?:\.(?:value|text|strip\(\)|trim\(\)|to_s|toString\(\)))?(?=[ \t]*(?:[;,)}]|#|//|\n|$))"
)
_LETTERS = lazy(r"[A-Za-z_$]+(?:(?:\.|->|::|\?\.)[A-Za-z_$]+)*")
_PARTS = lazy(r"\.|->|::|\?\.")


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
    """Whether a variable or key has the same name, such as `token` next to `access_token`."""
    own, read = (re.sub(r"[_.-]", "", word).lower() for word in (name.text[name.word : name.end], other))
    return bool(read) and (own.endswith(read) or read.startswith(own))


# Translations: `login.password=Password`.

_LABEL = lazy(
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

_COLON = lazy(
    r"(?:\*\*|`)?(?:[ ]\([a-z]{2,20}\))?:(?:\*\*)?[ ](?P<said>[A-Za-z][a-z-]{1,20}(?:[ ][^\n]{1,240})?)(?=\n|$)"
)
_NOTES = lazy(
    r"^[\s*|/\\_]{0,20}(?:(?:pick|squash|fixup|reword|edit|drop)[ ]|\[[\w./-]{1,60}[ ](?=[0-9a-f]{7,40}\]))?"
    r"(?=[0-9]{0,39}[a-f])[0-9a-f]{7,40}[\]:]?[ ]"
    r"|^(?:not[ ])?ok[ ]{1,3}\d{1,5}[ ]|^[ \t]{0,12}[\u2713\u2717\u2714\u2718\u00d7][ ]|\bRevert \"$"
)
"""How a line begins that tells in prose what was done, or tested."""
_OF_CHANGE = lazy(r"\(#\d{1,6}\)[ \t]*$")
_WORD = lazy(r"[A-Za-z][a-z'-]{0,20}[,.]?|\(?#?\d{1,5}\)?[,.]?")
_LINKING = frozenset(POLICY["sentence"]["linking"])
_ASPECTS = frozenset(POLICY["sentence"]["aspects"])
_FUNCTION = frozenset(POLICY["sentence"]["function"])
_FIRST_WORDS = 5


def _is_prose_about(name: Name) -> bool:
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
    """Whether words form a clause, not a passphrase or a password followed by the rest of a sentence."""
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
        name, before = (lazy(row[part]) if part in row else None for part in ("name", "before"))
        yield Mention(name, before, lazy(row["behind"]), tuple(row["must"]), tuple(row["must_not"]))


MENTIONS = tuple(_load_mentions(POLICY))


# Public numbers of protocols and messages of tools: `passwd: no changes`, `cookie=0x2b`. Cookies of DNS (RFC 7873) and
# IKE (RFC 2408, 2.5.3) are sent in clear with every packet; those of Open vSwitch and sockets are numbers of up to 64
# bits, not session cookies.

_COOKIE = lazy(r"(?i:[ir]?cookie)[ \t]?[:=]?[ \t]{0,4}(?P<value>0x[0-9a-fA-F]{1,16}|[0-9a-fA-F]{16,80})(?![\w/+=-])")
_OF_A_PROTOCOL = lazy(r"(?i:\b(?:dns|edns|client|server|initiator|responder|socket|syn)[ _-]|; |\bopt: ?)$")

_WELL_KNOWN = (
    r"(?i:no-export(?:-subconfed)?|no-advertise|no-peer|local-as|internet|blackhole|graceful-shutdown|accept-own)"
)
_OF_ROUTES = lazy(
    rf"(?i:communit(?:y|ies))[\"']?[ \t]{{0,4}}[:=]?[ \t]{{0,4}}[\[\"']?[ ]?"
    rf"(?:{_WELL_KNOWN}|\d{{1,10}}:\d{{1,10}}(?::\d{{1,10}})?)(?![\w.:@-])"
)
"""Communities of BGP routes, RFC 1997 and those registered since."""
_EXTENDED = lazy(
    r"(?i:(?:ext(?:ended)?[ _-]?)?communit(?:y|ies))[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}"
    r"(?i:(?:rt|soo|ro|et|rmac|target|origin|route-target|color|encapsulation|bandwidth):[\w.:-]{1,60}"
    r"|0x[0-9a-f]{1,16})(?![\w@:.-])"
)
"""Extended communities as routers write them (RFC 4360): `RT:65000:100`, `target:65000:100`, `0x8800`."""

_TOOL_WORD = r"(?:[A-Za-z][a-z'-]*|'[^'\n]{1,60}'|/[\w./-]{1,80})"
_TOLD = r"(?:no|not|changed|unchanged|updated|unlocking|locking|cannot|error|manipulation|permission|denied|does)"
_TOOL_MESSAGE = lazy(
    rf"(?:ch|g)?passwd: (?=[^\n]{{0,160}}\b{_TOLD}\b){_TOOL_WORD}(?:[ ,]+{_TOOL_WORD}){{1,20}}[.!]?(?=\n|$)"
)

_COUNTED_EVENT = lazy(
    rf"(?:.*[^A-Za-z])?(?:{any_of(POLICY['values']['events'])})(?:[ _.-]?(?:user|root|login|auth|ssh|client))?"
    r"[ _.-]?[A-Za-z]{3,16}(?:[_.-](?:total|count))?",
    re.IGNORECASE,
)
_COUNT = lazy(r"(?:\{[^{}\n]{0,120}\})?[\"']?[ \t]{0,4}[:=]?[ \t]{0,40}\"?\d{1,5}\"?(?![\w@:/+-]|\.\w)")
"""A counter, also as Prometheus writes one: `bad_password_total{realm="x"} 31`."""


_OF_TLS = lazy(
    r"Session-ID[ ]?: [0-9A-F]{32,64}[ \t]*\n[ \t]*(?:Session-ID-ctx|Cipher|Master-Key|Resumption PSK|Start Time)\b"
)
"""The id of a session of TLS as OpenSSL prints it: it is sent in clear, and resumes nothing without the master key."""

_OF_ADDRESSES = lazy(r"token (?=[0-9a-f]*:)[0-9a-f:]{2,45} dev [\w.@-]{1,32}(?=\s|$)")
"""The lower half of an address that a host gives itself, as `ip token list` prints it."""
_OF_RESOURCES = lazy(
    r"(?:\[[^\]\n]{1,80}\])?: (?:(?:Still )?(?i:refreshing|reading|creating|modifying|destroying|importing)\b"
    r"[^.\n]{0,20}\.\.\.|(?:Read|Creation|Modifications|Destruction|Import) (?:complete|prepared)\b)"
)
"""What Terraform does to a resource that is called so."""
_OF_A_KERNEL = lazy(r"(?i:\bx\.?509 cert(?:ificate)? ['\"][^'\"\n]{0,60})$")
_SERIAL = lazy(r"(?i:key): (?:[0-9a-f]{40}|[0-9a-f]{64})['\"]")
"""The id of a public key, by which a kernel calls its certificates."""
_CHALLENGE = lazy(r"(?i:(?:www|proxy)-authenticate[\"']?: ?[\"']?digest )[^\n]*$")
_CHALLENGE_REACH = 400
_COLUMN = lazy(
    r"(?i:(?:primary|secondary)[ _-]?key)[\"']?[ \t]?[:=][ \t]{0,4}[\"'\[]{0,2}"
    r"(?:[a-z]{1,20}_){0,4}id\b[\"'\]]{0,2}(?=[\s,]|$)"
)
"""The columns of a table, not a key of storage."""
_EXPIRY = lazy(
    r"[ \t]{0,20}: (?:(?:jamais |déjà )?expirée?(?: le)?|n'expire (?:jamais|pas)"
    r"|läuft (?:nie|nicht|bald|am|in|heute)|abgelaufen(?: am)?"
    r"|(?:no |nunca )?caduc(?:a|ada|ado)(?: el)?|scaduta(?: il)?|non scade(?: mai)?"
    r"|nunca expira|expirada(?: em)?|verlopen(?: op)?)"
    r"(?: [\d./:-]{1,19}){0,2}(?: (?:ab|mai|jamais|Tagen|Tage|Wochen)){0,2}[.]?[ \t]*(?=\r?\n|$)"
)
"""Until when a password holds, in words of other languages."""


_OF_A_WORD = lazy(
    "|".join(pattern.pattern for pattern in (_OF_ROUTES, _EXTENDED, _OF_TLS, _OF_ADDRESSES, _COLUMN, _SERIAL))
    + r"|(?i:[ir]?cookie)|nonce"
)
"""Whether one of these may begin with a name's last word: one look for nearly all names, which none of them has."""
_BEHIND = lazy("|".join(pattern.pattern for pattern in (_COUNT, _OF_RESOURCES, _EXPIRY)))


def is_public_number(name: Name) -> bool:
    """Whether the text after the name is a public protocol number or a tool's message."""
    if _OF_A_WORD.match(name.text, name.word) is not None and _is_protocol_number(name):
        return True
    if _BEHIND.match(name.text, name.end) is not None and _is_count_or_action(name):
        return True
    return _TOOL_MESSAGE.match(name.text, name.start) is not None and name.starts_line


def _is_protocol_number(name: Name) -> bool:
    """Whether the name's last word begins a public number of routes, sockets, challenges or certificates."""
    text, word = name.text, name.word
    if _OF_ROUTES.match(text, word) is not None or _EXTENDED.match(text, word) is not None:
        return "snmp" not in _before(name)
    if any(said.match(text, word) is not None for said in (_OF_TLS, _OF_ADDRESSES, _COLUMN)):
        return True
    if name.word_in(("nonce",)):
        return _CHALLENGE.search(text[max(0, word - _CHALLENGE_REACH) : word]) is not None
    if _SERIAL.match(text, word) is not None:
        return _OF_A_KERNEL.search(text[max(0, word - 80) : word]) is not None
    cookie = _COOKIE.match(text, word)
    if cookie is None:
        return False
    return cookie["value"].startswith("0x") or _OF_A_PROTOCOL.search(text[max(0, word - 16) : word]) is not None


def _is_count_or_action(name: Name) -> bool:
    """Whether the text after the name is an event count or reports an action on an object of that name."""
    if _COUNT.match(name.text, name.end) is not None and _COUNTED_EVENT.fullmatch(name.text, name.start, name.end):
        return True
    return any(said.match(name.text, name.end) is not None for said in (_OF_RESOURCES, _EXPIRY))


def _before(name: Name) -> str:
    """Return up to 64 characters of the line before the name, in lower case."""
    start = max(0, name.word - 64)
    return name.text[max(start, name.text.rfind("\n", start, name.word) + 1) : name.word].lower()
