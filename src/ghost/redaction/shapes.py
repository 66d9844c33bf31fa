"""Secrets known by their shape: private keys, connection strings, tokens of providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ghost.patterns import lazy
from ghost.redaction.bigram_filter import present, sieve
from ghost.redaction.secret_values import (
    CONNECTION_STRING,
    MARKER,
    POLICY,
    PRIVATE_KEY,
    Counts,
    Rule,
    before_escapes,
    is_open,
)
from ghost.redaction.time_limit import check_time


def redact_shapes(text: str, counts: Counts) -> str:
    """Return `text` without what has the shape of a secret, whatever is next to it."""
    return _shapes(_connection_strings(_private_keys(text, counts), counts), counts)


# Private keys: whole blocks, and blocks whose beginning or end was cut.

_PEM_EDGE = lazy(
    r"-----(BEGIN|END) (?:(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-{1,5}"
    r"|PuTTY-User-Key-File-\d[^\n]{0,80}"
)
_PEM_BODY = lazy(
    r"(?:\\[nrt]|\s|[A-Za-z0-9+/=_-]{16,}+|[A-Za-z0-9+/]{1,76}={1,2}"
    r"|(?<=\n)[^\n]{1,80}?(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,}+={0,2}(?=[ \t\r]{0,4}(?:\n|$))"  # behind a log's prefix
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Private-Lines|Public-Lines|Private-MAC|Encryption|Key-Derivation)\b[^\n]{0,200})*+"
)
_PEM_REACH = 32_768
_INDENTED = lazy(r"\n[ \t]{1,40}\Z")


def _private_keys(text: str, counts: Counts) -> str:
    if not present(text, ("PRIVATE KEY", "PuTTY-User-Key", "OpenVPN Static key")):
        return text
    pieces: list[str] = []
    done = 0
    for edge in _PEM_EDGE.finditer(text):
        if edge.start() < done:
            continue
        if edge[1] == "END":
            start = _body_before(text, done, edge.start())
            end = edge.end()
        else:
            start, end = edge.start(), _end_of_block(text, edge.end())
        pieces += [text[done:start], PRIVATE_KEY]
        counts[Rule("private_key", "pem-block")] += 1
        done = end
    return "".join([*pieces, text[done:]])


def _end_of_block(text: str, start: int) -> int:
    """Return the end of the block that begins before `start`: after its END line, or where its base64 stops."""
    closing = _PEM_EDGE.search(text, start, start + _PEM_REACH)
    if closing is not None and closing[1] == "END":
        return closing.end()
    body = _PEM_BODY.match(text, start, start + _PEM_REACH)
    assert body is not None
    end = body.end()
    last = re.compile(r"[A-Za-z0-9+/=]+").match(text, end)  # the last line of a cut block may be short
    begun = text[end - 1 : end] in ("\n", "n") or _INDENTED.search(text, max(start, end - 80), end) is not None
    if last is None or not begun:
        return end
    return last.end() if end > start + 60 or last.end() == len(text) else end


_PREFIX_OF_LINE = lazy(r"(?<=\n)[ \t>|\"']{1,40}\Z")


def _body_before(text: str, earliest: int, end: int) -> int:
    """Return the start of the base64 lines before an END line without BEGIN."""
    prefix = _PREFIX_OF_LINE.search(text, max(earliest, end - 80), end)
    start = end if prefix is None else prefix.start()
    while start > earliest:
        line_end = start - 1 if text[start - 1] == "\n" else start
        line_start = text.rfind("\n", max(earliest, line_end - 4096), line_end) + 1
        line = text[max(line_start, earliest) : line_end]
        if not re.fullmatch(r"[ \t>|\"']*(?:[A-Za-z0-9+/=]|\\[nr])*[ \t]*", line) or not line.strip():
            break
        start = max(line_start, earliest)
        if line_start <= earliest or end - start > _PEM_REACH:
            break
    return start


# Connection strings: a run of `key=value;` with a secret among the keys.

# A password may be quoted as ADO writes it, or stand in braces as ODBC does: then it may hold a `;`.
_EQUALS = r"[ ]?(?:=|\\u003[dD])"
_QUOTED_PASSWORD = (
    rf"(?i:password|pwd){_EQUALS}[ ]?(?:\\{{0,3}}\"(?:[^\"\r\n]|\"\"){{0,400}}+\""
    r"|\\{0,3}\"(?=[^\s\",;)\]}>])[^\"\r\n]{1,400}+(?=[\r\n]|\Z)"  # one that was cut
    r"|'(?:[^'\r\n]|''){0,400}+'|'(?=[^\s',;)\]}>])[^'\r\n]{1,400}+(?=[\r\n]|\Z)|\{(?:[^}\r\n]|\}\}){0,400}+\})"
)
# A mark in the middle of a value: no more of the same before the `;` that ends it.
_QUOTE_INSIDE = r"(?<=[^=\s;])[\"'<>](?=[^\s\"'<>;,)\]}][^\"'\r\n<>;]{0,80};)"
_ENTITY = r"&(?:amp|lt|gt|quot|apos);"
_CONNECTION_RUN = lazy(
    rf"(?<![A-Za-z0-9])(?:(?:{_QUOTED_PASSWORD}|(?!{_QUOTED_PASSWORD})"
    rf"[A-Za-z]{{1,40}}+(?:[ ][A-Za-z]{{1,20}}+){{0,3}}{_EQUALS}"
    rf"(?:{_ENTITY}|[^;\"'\r\n<>]|{_QUOTE_INSIDE}){{0,1000}}+);[ ]?){{1,40}}+"
    rf"(?:{_QUOTED_PASSWORD}|[A-Za-z][A-Za-z ]{{0,40}}+(?:=|\\u003[dD])[^;\"'\s<>]{{0,1000}}+)?"
    # Folded: the rest of the last value, behind an indentation or a log's prefix, and what follows it.
    r"(?P<folded>(?<=[^;\s])(?:\r?\n(?:[^\n;=\"']{1,80}[ \t])?[ \t]{0,40}"
    r"(?:[^\s;=\"'<>]{1,200}={0,2}(?=;[ ]?[A-Za-z][A-Za-z ]{0,40}=)"
    r"|[A-Za-z0-9+/]{8,88}={1,2}(?=[\s\"';,]|$)|(?<=\n)[ \t]{0,40}[A-Za-z0-9+/]{60,88}(?=\n))){1,3}+"
    r"(?:;[ ]?[A-Za-z][A-Za-z ]{0,40}=[^;\"'\s<>]{0,1000}){0,40}+;?"
    r"|(?<=[A-Za-z0-9+/]{20})\r?\n[ \t]{1,40}"
    r"(?:[A-Za-z0-9+/]{1,88}\Z|(?=[A-Za-z+/]*[0-9])(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])[A-Za-z0-9+/]{1,88}(?=\n)))?"
)
_CONNECTION_SEGMENT = lazy(
    rf"(?:^|;)[ ]?(?P<name>[A-Za-z][A-Za-z ]{{0,40}}?){_EQUALS}[ ]?(?P<value>\\{{0,3}}\"(?:[^\"]|\"\")*+(?:\"|\Z)"
    rf"|'(?:[^']|'')*+(?:'|\Z)|\{{(?:[^}}]|\}}\}})*+(?:\}}|\Z)|(?:{_ENTITY}|[^;])*+)"
)
_CONNECTION_SECRETS = {
    *("accountkey", "sharedaccesskey", "sharedaccesssignature", "password", "pwd", "sharedsecretvalue", "secret"),
}
_WORKING_DIRECTORY = lazy(r"(?:^|[; ])PWD=[\"']?/")  # as sudo logs it
_PLACEHOLDER = lazy(r"<[A-Za-z][\w .-]{0,60}>(?=[;\s\"',]|$)")
_REDIS_RUN = lazy(
    r"(?<![\w.-])[\w.-]{1,253}+:\d{1,5},(?:(?!password=)[\w-]{1,40}+=[^,\s\"']{0,400}+,){0,10}+"
    r"password=(?P<secret>[^,\s\"'\[](?:[^\s\"',]|,(?!\s|[A-Za-z]{1,40}=))*+)",
    re.IGNORECASE,
)


def _connection_strings(text: str, counts: Counts) -> str:
    """Return `text` without the secrets in connection strings. Server, port, database and user stay as evidence."""
    if ";" in text:
        text = _CONNECTION_RUN.sub(lambda match: _without_secret_segments(match, counts), text)
    if ",password=" in text.lower():
        text = _REDIS_RUN.sub(lambda match: _without_redis_password(match, counts), text)
    return text


def is_connection_string(value: str) -> bool:
    """Whether a value is one whole connection string, so that every secret in it is found."""
    return _CONNECTION_RUN.fullmatch(value) is not None


def _without_secret_segments(match: re.Match[str], counts: Counts) -> str:
    end = before_escapes(match.string, match.start(), match.end())
    run = match.string[match.start() : end]
    segments = list(_CONNECTION_SEGMENT.finditer(run))
    if run.endswith("=") and _PLACEHOLDER.match(match.string, match.end()) is not None:
        segments = segments[:-1]
    secrets = {name for segment in segments if (name := _plain_name(segment["name"])) in _CONNECTION_SECRETS}
    if _WORKING_DIRECTORY.search(run):
        secrets.discard("pwd")
    if len({_plain_name(segment["name"]) for segment in segments}) < 2:
        return match[0]
    pieces: list[str] = []
    done = 0
    for segment in segments:
        value = segment["value"].strip("\\\"'{} ")
        if _plain_name(segment["name"]) in secrets and value and not is_open(value):
            counts[Rule("connection_string", "connection-string")] += 1
            pieces += [run[done : segment.start("value")], CONNECTION_STRING]
            done = segment.end("value")
    return "".join([*pieces, run[done:], match.string[end : match.end()]])


def _without_redis_password(match: re.Match[str], counts: Counts) -> str:
    counts[Rule("connection_string", "redis-connection")] += 1
    start = match.start("secret") - match.start()
    return match[0][:start] + CONNECTION_STRING + match[0][match.end("secret") - match.start() :]


def _plain_name(segment: str) -> str:
    return segment.replace(" ", "").lower()


# Shapes of the policy


@dataclass(frozen=True)
class Shape:
    rule: Rule
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]
    ignore_case: bool
    probe: re.Pattern[str] | None
    """Found wherever the pattern is, and sooner: it begins with a letter, where the pattern begins with any of many."""
    marker: str
    unless: re.Pattern[str] | None
    must: tuple[str, ...]
    must_not: tuple[str, ...]


def _shapes(text: str, counts: Counts) -> str:
    lowered = text.lower()
    may_hold = {False: sieve(text), True: sieve(lowered)}
    for shape in SHAPES:
        check_time()
        searched = lowered if shape.ignore_case else text
        if not any(anchor in searched for anchor in shape.anchors if may_hold[shape.ignore_case](anchor)):
            continue
        if shape.probe is None or shape.probe.search(text) is not None:
            text = shape.pattern.sub(_replacement(shape, counts), text)
    return text


def _replacement(shape: Shape, counts: Counts) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        name = match.lastgroup or 0  # whichever group took part
        start, end = match.span(name)
        end = before_escapes(match.string, start, end)
        if start == end or is_open(match[name]) or _excused(shape, match):
            return match[0]
        counts[shape.rule] += 1
        whole = match[0]
        if match[0][:6].lower() == "bearer":
            return f"Bearer {MARKER}"
        return whole[: start - match.start()] + shape.marker + whole[end - match.start() :]

    return replace


def _excused(shape: Shape, match: re.Match[str]) -> bool:
    if shape.unless is None:
        return False
    earliest = max(0, match.start() - _LINE_REACH)
    line = match.string.rfind("\n", earliest, match.start()) + 1 or earliest
    return shape.unless.search(match.string[line : match.start()]) is not None


_LINE_REACH = 400


def _load_shapes(policy: dict[str, Any]) -> Iterator[Shape]:
    for row in policy["shape"]:
        ignore_case = row.get("ignore_case", False)
        yield Shape(
            rule=Rule(row["category"], row["id"]),
            pattern=lazy(row["pattern"], re.IGNORECASE if ignore_case else 0),
            anchors=tuple(row["anchors"]),
            ignore_case=ignore_case,
            probe=lazy(row["probe"]) if "probe" in row else None,
            marker=row.get("marker", MARKER),
            unless=lazy(row["unless"]) if "unless" in row else None,
            must=tuple(row["must"]),
            must_not=tuple(row["must_not"]),
        )


SHAPES = tuple(_load_shapes(POLICY))
_ANCHORS = tuple(
    {
        anchor.lower()
        for shape in SHAPES
        for anchor in shape.anchors
        if sum(map(str.isalpha, anchor)) > 1 or anchor == "C=" or (len(anchor) > 2 and anchor != "://")
    }
)


def has_anchor(text: str) -> bool:
    """Whether a short text contains an anchor of a shape: a cheap test."""
    lowered = text.lower()
    return any(anchor in lowered for anchor in _ANCHORS)
