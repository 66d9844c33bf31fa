"""Secrets known by the name next to them, in any notation.

JSON (also inside JSON strings), YAML, environment files, headers, command options, XML and statements. A value next to
a name that is only sometimes a secret's must look random.
"""

from __future__ import annotations

import re

from ghost.patterns import lazy
from ghost.redaction.fields import secret_in_field
from ghost.redaction.mentions import is_mention, is_public_number
from ghost.redaction.secret_names import Name, name_around, name_cores, secret_kind
from ghost.redaction.secret_values import (
    CONNECTION_STRING,
    MARKER,
    PRIVATE_KEY,
    Counts,
    Rule,
    before_escapes,
    is_count,
    is_guid,
    is_made_up,
    is_mixed,
    is_open,
    is_scrambled,
    looks_random,
)
from ghost.redaction.sentences import announced_secret, secret_in_sentence, typed_at_prompt
from ghost.redaction.shapes import is_connection_string
from ghost.redaction.statements import is_description, is_ordinary, is_prose, is_sentence, operand
from ghost.redaction.time_limit import check_time
from ghost.redaction.value_places import Found, end_of, extend_reach, is_reference, strings_of, value_group, value_of

_PROBE_REACH = 128  # how far a value is looked at to tell whether it is random
# Nothing is beside a name that something else follows.
_BEHIND_A_NAME = frozenset(" \t\"'`=:：＝.?+~[]%\\(>*→⇒⟶⟹➔➝➜▶▸»›•<-")
_BEHIND_AN_OPTION = _BEHIND_A_NAME | frozenset(",\n")
_DONE = lazy(
    r"(?:\\{0,15}[\"'])?[ \t]{0,4}(?P<mark>[:=])?[ \t]{0,4}(?:\\{0,15}[\"'])?\[REDACTED[A-Z_]{0,24}\]"
    r"(?:\\{0,15}[\"'])?(?:[\s,;&})\\]|$)"
)
_NESTED = lazy(r"[ \t]{0,4}=[A-Za-z_.-]{1,40}+=[^=\s]")  # `key=name=x`: the last of the names counts
_ITEM = lazy(r"(?m)^([ \t]*-[ ]+[\"']?)[^\s\"'][^\n\"']*")
_PATH_REACH = 200
_PATH = lazy(r"/?(?:[\w.-]{1,60}/){1,12}")
_ENTRY = lazy(  # and no line of a file, no tag of an image
    r":(?!\d{1,6}:|v?\d+(?:\.\d+){0,3}(?:[-+.][\w.+-]*)?(?:\s|$)|(?:latest|stable|edge|main|master|nightly|dev|prod)(?:[-.]|\s|$)"
    r"|[0-9a-f]{7,12}(?:\s|$)|ro(?:\s|$)|rw(?:\s|$)|/)[^\s:\[](?![^\n]*:)"
)
_ARN = lazy(r"\barn:[^\s\"]{1,110}:$")
_ASSIGNED = lazy(r"[ \t]{0,8}(?:=(?!=)|%3[dD])")
_JOINED_PASS = lazy(r"(?:[_.-](?:pass|PASS|Pass)|[a-z]Pass)$")  # `default_pass`, `userPass`
_LOGIN_BEFORE = lazy(  # on its line, or on the one above
    r"(?i)\b(?:user|login|uid|account|email)\w{0,8}[\"']?[ ]?[:=][^\n]{1,50}(?:\n[ \t]{0,40}[\"']?)?$"
)
_LOGIN_REACH = 96
_SAID_TO_BE = lazy(r"[\"']?[ \t]{0,8}[:=]")
_SECRET_VARIABLES = ("PASS", "TOKEN", "_AUTH", "_PW")
_PIN = ("PIN", "pin", "Pin", "PUK", "puk")
_OF_A_HEADER = lazy(r"[Xx]-(?:[A-Za-z0-9]{1,20}-){0,4}(?i:auth|verify|key)")
"""A header that somebody made up for it: `X-Origin-Verify`, `X-Auth`, `X-Probe-Key`."""
_BLOCK_MARKS = ("|", "|-", "|+", ">", ">-", ">+")
_FETCHED = lazy(  # `client.get_secret("sqlpw").value`: what a call gives is not in the text
    r"(?:await[ ])?(?:[A-Za-z_]\w{0,40}\.){0,4}"
    r"(?:get|read|load|fetch|generate|prompt|ask|input|lookup|retrieve)\w{0,40}"
    r"\([\w.: '\"/?-]{0,120}\)(?:\.[A-Za-z_]\w{0,30}(?:\(\))?){0,3}(?=[\s;,)\"]|$)"
)
_MACRO = lazy(r"\$\([A-Za-z_][\w.-]{0,80}\)(?=[\s;,\"']|$)")  # of a pipeline: `$(System.AccessToken)`
_ADVICE = lazy(r"[a-z]{2,12}[ ](?:a|an|the|your|them|their|our|its|any|all|every)[ ][a-z]")
_OF_ADVICE = lazy(r"(?i:\b(?:never|not|don't|always|avoid)\b)")
_HELP = lazy(r"[ \t]{1,40}:[ ](?P<said>[A-Z][a-z]{1,20}(?:[ ][A-Za-z][A-Za-z'/-]{0,30}){2,30}\.)(?=\s|$)")
_KINDS = ("secret", "configmap", "token", "password", "key")
_GROUPS = {length: re.compile(rf"(?:[ ][A-Za-z0-9]{{{length}}}){{2,7}}+(?![\w.:=/@-])") for length in (4, 5, 6)}
_THING = lazy(r"(?P<name>[a-z][a-z0-9]*(?:[.-][a-z0-9]+){1,8})[ ]\([a-z]{2,20}(?:ed|ing|able|ible)\)")
_PARTS = ("Pass", "pass", "Token", "token")  # as the last of a name's words: `Smtp:Pass`
_SHORT_NAMES = ("pass", "pw", "_auth", "PASS")


def redact_named_values(text: str, counts: Counts) -> str:
    """Return `text` without the values next to a secret's name."""
    pieces: list[str] = []
    done = 0
    for core in name_cores(text):
        if core.start() < done:
            continue
        check_time()
        name = name_around(text, core, done)
        if name is None or (found := _secret_of(name, done)) is None:
            continue
        rule, (start, end, replacement) = found
        end = before_escapes(text, start, _end_of_groups(text, start, end))
        pieces += [text[done:start], replacement]
        counts[Rule(name.meaning.category, rule)] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _end_of_groups(text: str, start: int, end: int) -> int:
    """Return the end of a secret written in groups of equal length: `7kcz 830y 5azi xxox`."""
    if not 4 <= end - start <= 6 or not text[start:end].isalnum():
        return end
    groups = _GROUPS[end - start].match(text, end)
    return end if groups is None or is_prose(groups[0].lower()) else groups.end()


def _secret_of(name: Name, done: int) -> tuple[str, Found] | None:
    """Return the rule id and the span and replacement of the secret that a name names, or None."""
    taken = _DONE.match(name.text, name.end)
    if taken is not None and taken["mark"] is not None:
        return None
    if name.certain and (typed := typed_at_prompt(name)) is not None:
        return "typed-at-prompt", (*typed, MARKER)
    if is_mention(name):
        return None
    if (beside := _secret_beside(name)) is not None:
        return "named-value", beside
    if name.meaning.is_keyword:
        return None
    in_field = secret_in_field(name, done, lambda value: name.certain or _shows_secret(name, value, in_field=True))
    if in_field is not None:
        return "named-field", in_field
    may_be_told = name.certain or name.meaning.category == "bearer_token"
    if may_be_told and (told := secret_in_sentence(name, done)) is not None:
        return "told-in-sentence", (*told, MARKER)
    if (announced := announced_secret(name)) is not None:
        return "announced", (*announced, MARKER)
    return None


def _secret_beside(name: Name) -> Found | None:
    behind = name.text[name.end : name.end + 1]
    expected = _BEHIND_AN_OPTION if name.meaning.is_option else _BEHIND_A_NAME
    if behind not in expected and not name.in_parentheses:
        return None
    if _DONE.match(name.text, name.end) is not None or is_reference(name) or is_public_number(name):
        return None
    certain = name.certain
    word = name.word
    if behind == " " and _MACRO.match(name.text, name.end + 1, name.end + 100) is not None:
        return None
    if behind == "(" and _FETCHED.match(name.text, word, word + 240) is not None:
        return None  # the name of what is fetched, as `sqlpw` of `get_secret("sqlpw")`
    if (span := operand(name.text, word, name.end, certain=certain, weak=name.meaning.is_weak)) is not None:
        return *span, MARKER
    if name.meaning.is_keyword:
        return None
    of_path = word > 0 and name.text.startswith("/", word - 1)
    if of_path and name.text[max(0, word - 2) : word - 1].strip(" \t\n/\"'") and not _is_entry(name):
        return None  # `/etc/ssl/app.key: Permission denied`
    if name.text.startswith(":", name.end) and _ARN.search(name.text, max(0, word - 120), word) is not None:
        return None  # `arn:aws:secretsmanager:eu-west-1:1:secret:name`
    if not certain:
        if _NESTED.match(name.text, name.end) is not None:
            return None
        probe = value_of(name, name.end + _PROBE_REACH)
        if probe is None or not any(_shows_secret(name, value) for value in strings_of(probe)):
            return None
    return extend_reach(name.end, len(name.text), lambda reach: _value_within(name, reach))


def _is_entry(name: Name) -> bool:
    """Whether the name is the key of a store entry, one per line: `prod/db/password:X`."""
    line = name.text.rfind("\n", max(0, name.word - _PATH_REACH), name.word) + 1
    return (
        name.certain
        and _PATH.fullmatch(name.text, line, name.word) is not None
        and _ENTRY.match(name.text, name.end) is not None
    )


def _value_within(name: Name, reach: int) -> Found | None:
    """Return the value next to a name, searched up to `reach`; None if it is no secret."""
    match = value_of(name, reach)
    if match is None:
        return None
    group = value_group(match)
    value = match[group]
    if all(map(is_open, strings_of(match))) and not (group == "list" and match.end() == reach < len(name.text)):
        return None  # of a longer list the rest may hold one
    if value.startswith("/") and name.meaning.may_be_path:
        return None
    if name.meaning.category == "connection_string" and CONNECTION_STRING in value and is_connection_string(value):
        return None  # its secrets went by their shape
    if is_sentence(value) or is_description(value) or value in _BLOCK_MARKS:
        return None  # what is said of passwords, or the head of a block that is not there
    if name.meaning.category == "api_key" and (thing := _THING.fullmatch(value)) and secret_kind(thing["name"]):
        return None  # the name of an object that holds it
    if name.text.endswith("s", 0, name.end) and ((value.isdigit() and len(value) <= 3) or is_count(value)):
        return None  # how many there are
    if name.meaning.is_option and _is_placeholder(value, name):
        return None
    start, end = match.span(group)
    if group == "bare" and _MACRO.match(name.text, start, start + 100):
        return None
    if group == "bare" and (_FETCHED.match(name.text, start, start + 240) or _is_advice(name, start)):
        return None
    if group == "bare" and value in _KINDS and name.text.startswith((' "', " '"), end):
        return None  # `volume "db-secret" : secret "db-password" not found`: the name of another one follows
    if name.in_parentheses and not (is_mixed(value) or group in ("double", "single")):
        return None  # `authentication (password): allowed`
    end = end_of(match, group)
    marker = PRIVATE_KEY if "PRIVATE KEY" in value else MARKER
    if group == "items" and name.meaning.category != "password" and not any(map(is_mixed, strings_of(match))):
        return None  # names of secrets, as in a file of services
    if group == "items":
        return start, end, _ITEM.sub(lambda item: f"{item[1]}{MARKER}", match[group])
    if match.groupdict().get("more"):
        end = match.end("more")
        return start, end, f"{MARKER}{name.text[end - 1]}"
    in_quotes = group == "list" or (group == "bare" and name.quoted)
    return start, end, f'"{marker}"' if in_quotes else marker


def _shows_secret(name: Name, value: str, *, in_field: bool = False) -> bool:
    """Whether a value shows that it is a secret, next to a name that is only sometimes a secret's.

    `in_field`: the name has a field of its own, as an environment variable does: `"name": "REDIS_PASS"`.
    """
    if in_field and name.meaning.is_variable and name.text.endswith(_SECRET_VARIABLES, name.start, name.end):
        return _may_be_chosen(value) and not is_guid(value) and not value.startswith("file:")
    if in_field and name.word_in(_PARTS) and is_made_up(value):
        return True
    if looks_random(value) or (name.meaning.category == "bearer_token" and is_guid(value)):
        return True
    if name.quoted and is_scrambled(value):
        return True
    if name.meaning.category == "password" and name.text[name.start : name.end].endswith(("pass", "Pass", "PASS")):
        joined = (
            name.quoted
            or _JOINED_PASS.search(name.text, name.word, name.end) is not None
            or _LOGIN_BEFORE.search(name.text[max(0, name.word - _LOGIN_REACH) : name.word]) is not None
        )
        joined = joined and _SAID_TO_BE.match(name.text, name.end) is not None
        if (is_mixed(value) and name.text.endswith("pass", 0, name.end)) or (joined and _may_be_chosen(value)):
            return True
    if name.meaning.category == "bearer_token" and len(value) >= 6 and is_mixed(value):
        return _SAID_TO_BE.match(name.text, name.end) is not None
    if _OF_A_HEADER.fullmatch(name.text, name.word, name.end) is not None and _may_be_shared(value):
        return True
    if name.word_in(_PIN) and value.isdigit() and 4 <= len(value) <= 10:
        return True
    assigned = _ASSIGNED.match(name.text, name.end) is not None
    if not assigned or is_guid(value) or value.startswith(("/", "http", "file:")) or value.isdigit():
        return False
    if name.text.endswith(_SECRET_VARIABLES, name.start, name.end) and name.meaning.is_variable:
        return True
    if name.word_in(_SHORT_NAMES):
        return True
    return len(value) >= 8 and is_mixed(value) and (name.meaning.category != "api_key" or name.is_parameter)


def _may_be_shared(value: str) -> bool:
    """Whether a header value may be a secret that both ends share."""
    return len(value) >= 8 and is_mixed(value) and not is_guid(value) and not value.startswith(("/", "http"))


def _may_be_chosen(value: str) -> bool:
    return len(value) >= 4 and not value.isdigit() and not is_ordinary(value) and not value.startswith(("/", "http"))


def _is_advice(name: Name, start: int) -> bool:
    """Whether a sentence follows the name: `Never commit secrets: use a vault`, or a line of az's help."""
    line = name.text.rfind("\n", max(0, name.start - 120), name.start) + 1 or max(0, name.start - 120)
    before = name.text[line : name.word]
    if _ADVICE.match(name.text, start, start + 40) is not None:
        return _OF_ADVICE.search(before) is not None
    told = _HELP.match(name.text, name.end, name.end + 400)
    return told is not None and told.start("said") == start and name.text[name.word : name.end].islower()


def _is_placeholder(value: str, name: Name) -> bool:
    """Whether a value is a placeholder from a program's help: `--password PASSWORD`."""
    word = value.strip("[]<>()")
    return word.isupper() and word.lower() in name.text[name.start : name.end].lower()
