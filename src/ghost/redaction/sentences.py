"""Secrets in sentences: `password for bob was set to X`, `use X as password`, `Your password is:` above X.

Many words may follow a secret's name in a sentence. Only a word that is not of a natural language is a secret there,
unless the sentence marks its place: in quotes, or last after a colon or `is`. Below a line that announces a secret, or
after a prompt, it stands alone. Every search is bounded.
"""

from __future__ import annotations

import re

from ghost.patterns import lazy
from ghost.redaction.secret_names import Name
from ghost.redaction.secret_values import POLICY, is_guid, is_inflected, is_made_up, is_mixed, is_open, looks_random
from ghost.redaction.statements import Span, is_ordinary

_ASPECTS = frozenset(POLICY["sentence"]["aspects"])
_WORDS = 8  # so far behind its name a secret is looked for
_REACH = 120
_STEP = lazy(r"(?P<lead>[ \t]{0,4}[:=>-]{0,3}[ \t]{1,4})(?P<open>[\"'`(\[<]{0,2})(?P<word>[^\s\"'`]{1,200})[\"'`)\]>]?")
_BESIDE = lazy(r"[\"'`*)\]]{0,2}[ \t]{0,8}[:=]")  # a value: no sentence
_TELLS = lazy(
    r"\b(?:is|was|ist|lautet|now|becomes|est|es|(?:set|reset|changed?|updated?|rotated?)(?: back)? (?:to|from))$",
    re.IGNORECASE,
)
_OF_A_THING = lazy(
    r"\b(?:user|role|host|database|account|for|named|called|from|at|on|by|in|of|file|group)$", re.IGNORECASE
)
_AS_NAME = lazy(
    r"(?<![^\s\"'`(\[])(?P<secret>[^\s\"'`()\[\]]{5,200})[\"'`)\]]?[ ](?:as|is|was|for)[ ]"
    r"(?:(?:the|a|my|our|your|his|her|their|new|old|root|admin)[ ]){0,3}$",
    re.IGNORECASE,
)
_LAST = lazy(r"[\"'`)\]>]?[.!,;]?[ \t]{0,8}(?:\n|$)")
_DATE = lazy(r"\d{4}-\d\d-\d\d(?:[T_][\d:.,+Z-]{4,32})?")
_COMPOUND = lazy(r"[ ](?P<first>[a-z-]{3,20})(?![ ](?:to|from|for|by|of|on|in|at|back)\b)(?:[ ][a-z-]{2,20}){1,6}")
_LINKS = frozenset(POLICY["sentence"]["links"])


def secret_in_sentence(name: Name, done: int) -> Span | None:
    """Return the span of the secret that a sentence gives after or before its name; not before `done`."""
    text, position = name.text, name.end
    if _BESIDE.match(text, position) is not None or text.startswith(". ", position - 1):
        return None  # a value, or the end of the sentence
    limit = min(len(text), position + _REACH)
    spoken, of_aspect = 0, False
    for _ in range(_WORDS):
        step = _STEP.match(text, position, limit)
        if step is None:
            break
        if _is_given(text, step, spoken, name.end) and not (of_aspect and not is_made_up(step["word"])):
            start, end = step.span("word")
            return start, end - (len(step["word"]) - len(step["word"].rstrip(".,;:!?)]>")))
        if step["word"].endswith((".", ";", "!", "?", "|")) or "=" in step["word"]:
            break
        position, spoken = step.end(), spoken + 1
        of_aspect = step["word"].endswith((":", "=")) and step["word"][:-1].lower() in _ASPECTS
    return _secret_before(name, done) if name.certain else None


def _secret_before(name: Name, done: int) -> Span | None:
    """Return the span of a secret before its name: `use X as the root password`."""
    if not name.text.endswith(" ", done, name.word):
        return None
    before = _AS_NAME.search(name.text, max(done, name.word - _REACH), name.word)
    if before is None:
        return None
    literal = name.text[before.start("secret") - 1 : before.start("secret")] == "'"
    told = (literal or is_mixed(before["secret"])) and not is_plain(before["secret"])
    return before.span("secret") if told else None


def _is_given(text: str, step: re.Match[str], spoken: int, start: int) -> bool:
    word = step["word"].rstrip(".,;:!?)]>")
    if len(word) < 4 or is_guid(word):
        return False
    made_up = is_made_up(word)
    if (not made_up and is_plain(word)) or is_open(word) or is_ordinary(word):
        return False
    before = text[max(0, step.start() - 40) : step.start()]
    said = step["lead"].strip() != "" or before.endswith((":", "=")) or _TELLS.search(before) is not None
    quoted = step["open"] != "" and spoken <= 2 and _OF_A_THING.search(before) is None
    if not (made_up or said or quoted) or (not said and is_plain(word)):
        return False
    if made_up or is_mixed(word) or looks_random(word):
        return True
    if said and spoken > 0 and _is_scrambled(word):
        return True  # also where the sentence goes on
    chosen = len(word) >= 6 and word.isalnum() and not is_inflected(word)
    if _tells_of_other_thing(text[start : step.start()]):
        return False
    return said and chosen and spoken > 0 and _LAST.match(text, step.end()) is not None


def _tells_of_other_thing(between: str) -> bool:
    """Whether the words after a name form a compound about another thing: `secret store driver is`."""
    words = _COMPOUND.fullmatch(between)
    return words is not None and words["first"] not in _LINKS and not is_inflected(words["first"])


_PLAIN = lazy(
    r"[~.]{0,2}/.*|https?:.*|\w+://.*|[\w.-]+@[\w.-]+\.\w+|\d[\d.:/-]*\w{0,4}|v?\d+(?:\.\d+){1,4}\S{0,20}"
    r"|[\w.-]+\.[a-z]{2,6}(?::\d+)?|--?[a-z][\w-]*|[A-Z][a-z]{2}\d{1,2}|\w+\(\S*\)?|[\w.-]{1,40}=.*|[A-Za-z]+[_-][\w-]*[a-z]\d{0,3}|[a-z]+\d{1,2}"
    r"|[A-Z0-9]+(?:[_-][A-Z0-9]+)+|%\S*|\{\S*|\$\S*|<\S*|\d+[a-zA-Z]{1,3}"
)


_HUMP = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _is_scrambled(word: str) -> bool:
    """Whether letters look random: capitals closer together than in a camel-case name."""
    humps = len(_HUMP.findall(word))
    return 10 <= len(word) <= 64 and word.isascii() and word.isalpha() and humps >= 4 and len(word) / humps < 2.8


def is_plain(word: str) -> bool:
    """Whether a word is an address, path, date, version, option or another name."""
    return _PLAIN.fullmatch(word) is not None or _DATE.fullmatch(word) is not None


# Announced: `Please use the following password to proceed:` above the secret. A line that ends in a colon may introduce
# anything, so the word below must look random, or the line must say that the secret follows.

_ANNOUNCED_REACH = 160
_BELOW = lazy(
    r"(?P<rest>[^\n]{0,160}?):[ \t]{0,8}\n(?:[ \t]{0,8}\n){0,2}[ \t]{0,16}(?:[>*-][ ])?"
    r"(?P<secret>[^\s\[][^\s]{5,399})[ \t]{0,8}(?=\n|$)"
)
_OF_ANOTHER_THING = lazy(
    r"(?i:\b(?:fingerprints?|hash(?:es)?|checksums?|digests?|public|certificates?(?![ ]$)|expir\w+|invalid|fail\w*"
    r"|wrong|errors?|cannot|denied|not|no|unable|polic(?:y|ies)|users|accounts|names?|ids?|identifiers?|files?|paths?|hosts?|located"
    r"|found|stored|written|saved|rotat\w+|missing|usage|example|see|visit|url|command|run)\b)"
)
_ANNOUNCES = lazy(r"(?i:\b(?:following|your|generated|temporary|initial|one-time|use|copy|here is|here's)\b)")
_TOLD_BEHIND = lazy(
    r"(?i:[ ](?:is|are)|[ ]for[ ](?:the[ ]|user[ ])?['\"\[]?[\w.@-]{1,60}['\"\]]?(?:[ ]user)?"
    r"(?:[ ]\([^()\n]{1,100}\))?)?"
)


def announced_secret(name: Name) -> Span | None:
    """Return the span of the secret below the line that announces it by `name`, or None."""
    below = _BELOW.match(name.text, name.end)
    if below is None:
        return None
    start = name.text.rfind("\n", max(0, name.start - _ANNOUNCED_REACH), name.start) + 1
    before = name.text[max(start, name.start - _ANNOUNCED_REACH) : name.word]
    secret, rest = below["secret"], below["rest"]
    if _OF_ANOTHER_THING.search(before) or _OF_ANOTHER_THING.search(re.sub(r"\([^()]*\)", "", rest)):
        return None
    if is_open(secret) or is_ordinary(secret) or is_plain(secret) or secret.endswith((":", "{", "[", "(", ",", ";")):
        return None
    if looks_random(secret) and not is_guid(secret):
        return below.span("secret")
    if not name.certain or "/" in secret or "=" in secret[:-2]:
        return below.span("secret") if name.certain and is_made_up(secret) and "/" not in secret else None
    told = _ANNOUNCES.search(before) is not None or _TOLD_BEHIND.fullmatch(rest) is not None
    return below.span("secret") if is_made_up(secret) or (told and is_mixed(secret)) else None


# Typed at a prompt: `Enter password:` above what was typed, as recorded sessions, serial consoles and `expect` show it.
# The answer of the program is on that line too (`Login incorrect`), so only a single word counts that no program says.

_PROMPT_REACH = 80
_ASKS = lazy(
    r"(?:^|[\s\[(>])(?:enter|type|input|provide|supply|give|retype|re-?enter|re-?type|repeat|confirm|verify|new|old|current)\b"
    r"[^\n:=;|]{0,40}$",
    re.IGNORECASE,
)
_NAMES_WHOSE = lazy(r"(?:^|\n)(?:\[sudo\][ ]|\S{1,60}'s[ ]|[A-Za-z]{2,16}[ ]|\(current\)[ ]UNIX[ ])?$")
"""What may stand alone before the name: `[sudo] `, `bob@host's `, `Vault `, or nothing."""
_TYPED = lazy(
    r"(?:[ ](?:for|of)[ ][^\n:=]{1,60})?(?:[ ]?\([^()\n]{1,30}\))?[ \t]{0,2}[:?][ \t]{0,8}\r?\n"
    r"(?P<typed>[^\s\[-]\S{3,127})[ \t]{0,8}(?=\r?\n|$)"
)
_SAID = lazy(r".*[$#>%:]|.*\.\.\.|[A-Z][a-z]+[.!]*|https?:.*|[\w.@-]+:[~/].*|\|.*|\(.*", re.DOTALL)
"""A shell's prompt, a heading, a word with which a program answers, an address, a path."""


def typed_at_prompt(name: Name) -> Span | None:
    """Return the span of the word typed at a prompt for `name`, or None."""
    answer = _TYPED.match(name.text, name.end)
    if answer is None:
        return None
    start = name.text.rfind("\n", max(0, name.start - _PROMPT_REACH), name.start) + 1
    before = name.text[max(start - 1, name.start - _PROMPT_REACH, 0) : name.start] + name.text[name.start : name.word]
    typed = answer["typed"]
    if is_open(typed) or is_ordinary(typed) or _SAID.fullmatch(typed) is not None:
        return None
    first_of_name = name.text[name.start : name.end]
    asked = _ASKS.search(before) is not None or _ASKS.match(first_of_name) is not None
    if asked or (is_mixed(typed) and _NAMES_WHOSE.search(before) is not None):
        return answer.span("typed")
    return None
