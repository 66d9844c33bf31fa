"""Which paths and queries of a URL only read: `policy/http_get.toml`, by words in any spelling.

Everywhere: no verb that acts, no credential, no statement, no file of keys, nothing that looks like data carried out.
Where an address is written out, a name is private or a port unusual, a console or a device may answer, and what its
verbs are nobody knows: there only listed paths are asked, mostly about health.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from ghost.patterns import lazy
from ghost.shell.judge.network.exfiltration import (
    fault_of_length,
    hides_letters,
    holds_content,
    is_encoded,
    spells_text,
)
from ghost.shell.policy_tables import policy_table

_WORD = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
"""SysToolReboot, reboot.cgi and REBOOT_NOW, taken apart."""
_LETTERS = lazy(r"[^a-z0-9]")
_DECODINGS = 8


class _Query(NamedTuple):
    commands: frozenset[str]
    readers: frozenset[str]
    read: frozenset[str]
    statement: re.Pattern[str]
    credentials: frozenset[str]
    keys: frozenset[str]
    key_length: int


class _Private(NamedTuple):
    names: re.Pattern[str]
    ports: frozenset[int]
    health: frozenset[str]
    through: frozenset[str]
    plain: re.Pattern[str]
    keys: frozenset[str]
    value: re.Pattern[str]


class _Policy(NamedTuple):
    strong: frozenset[str]
    acts: frozenset[str]
    objects: frozenset[str]
    programs: frozenset[str]
    query: _Query
    secret_file: re.Pattern[str]
    public_pem: re.Pattern[str]
    private: _Private


@cache
def _policy() -> _Policy:
    table = policy_table("http_get.toml")
    acts, files = table["acts"], table["files"]
    return _Policy(
        strong=frozenset(acts["strong"].split()),
        acts=frozenset(f"{acts['strong']} {acts['weak']}".split()),
        objects=frozenset(acts["objects"].split()),
        programs=frozenset(acts["programs"].split()),
        query=_Query(**_parsed(table["query"], patterns=("statement",))),
        secret_file=lazy(files["secret"]),
        public_pem=lazy(files["public_pem"]),
        private=_Private(
            **{
                **_parsed(table["private"], patterns=("names", "plain", "value")),
                "ports": frozenset(map(int, table["private"]["ports"].split())),
            }
        ),
    )


def _parsed(rows: Mapping[str, Any], patterns: tuple[str, ...]) -> dict[str, Any]:
    return {
        name: lazy(row) if name in patterns else frozenset(row.split()) if isinstance(row, str) else row
        for name, row in rows.items()
    }


def fault_of_request(host: str, port: int | None, rest: str) -> str | None:
    """Why a GET of `rest`, the part of the URL after the host, may do more than read; None where it only reads."""
    if rest in ("", "/"):
        return None
    asked = rest.partition("#")[0]
    path, _, query = asked.partition("?")
    if fault := fault_of_length(rest, query):
        return fault
    if hides_letters(asked):
        return "writes letters as percent escapes, which none of them needs"
    decoded = fully_decoded(path)
    pairs = [(fully_decoded(name), fully_decoded(value.replace("+", " "))) for name, value in _pairs(query)]
    if decoded is None or any(name is None or value is None for name, value in pairs):
        return "is encoded again and again, so what it asks for cannot be seen"
    segments = [segment for segment in re.split("[/;]", decoded) if segment not in ("", ".", "..")]
    known = [(name or "", value or "") for name, value in pairs]
    return (
        _fault_of_content(decoded, segments, known)
        or _fault_of_path(segments)
        or next(filter(None, (_fault_of_pair(name, value) for name, value in known)), None)
        or (_fault_of_private(host, segments, known) if _is_private(host, port) else None)
    )


def fully_decoded(text: str) -> str | None:
    """The text percent-decoded until it no longer changes; None where that takes too many passes."""
    for _ in range(_DECODINGS):
        if "%" not in text or (decoded := unquote(text)) == text:
            return text
        text = decoded
    return None


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    for pair in re.split("[&;]", query):
        if pair:
            name, _, value = pair.partition("=")
            yield name, value


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _fault_of_content(path: str, segments: list[str], pairs: list[tuple[str, str]]) -> str | None:
    if (
        holds_content(path)
        or any(is_encoded(segment) for segment in segments)
        or any(holds_content(part) or is_encoded(part) for pair in pairs for part in pair)
        or spells_text(segments)
        or spells_text([name for name, _ in pairs])
        or spells_text([value for _, value in pairs])
    ):
        return "carries what looks like data to its server, or the path of a file"
    return None


def _fault_of_path(segments: list[str]) -> str | None:
    if not segments:
        return None
    plain = _policy()
    *above, last = segments
    for segment in above:
        if _acts(segment, plain.strong):
            return f"asks for {segment[:80]}, which acts"
    named = next((segment for segment in reversed(segments) if not segment.isdecimal()), last)
    if _acts(named, plain.acts) or _acts(last, plain.acts):
        return f"asks for {named[:80]}, which acts"
    if above and last[-1].isdecimal() and "." not in last and _LETTERS.sub("", above[-1].lower()) in plain.acts:
        return f"asks for {above[-1][:80]} of {last[:80]}, which acts"
    name = last.lower()
    if plain.secret_file.fullmatch(name) or (name.endswith(".pem") and not plain.public_pem.fullmatch(name)):
        return f"asks for {last[:80]}, a file of a type that holds keys, dumps or settings"
    return next((f"asks for {part[:80]} with settings" for part in above if part.lower() == "connectors"), None)


def _acts(segment: str, verbs: frozenset[str]) -> bool:
    """Whether a segment is a verb: alone, in what a server runs, or with none but its object beside it."""
    plain = _policy()
    name, dot, extension = segment.rpartition(".")
    is_run = bool(dot) and extension.lower() in plain.programs
    stem = name if is_run else segment
    if _LETTERS.sub("", stem.lower()) in verbs:
        return True
    words = _words(stem)
    found = [word for word in words if word in verbs]
    if found and all(word in verbs or word in plain.objects for word in words):
        return True
    if not any(word in plain.strong for word in found) and not (found and is_run and len(words) <= 2):
        return False
    joined_by_hyphens = "-" in stem and not is_run
    return not joined_by_hyphens or all(word in plain.acts or word in plain.objects for word in words)


def _fault_of_pair(name: str, value: str) -> str | None:
    plain, query = _policy(), _policy().query
    key = _LETTERS.sub("", name.lower())
    words = set(_words(name))
    if key in query.credentials or any(key.endswith(end) for end in ("token", "secret", "password", "apikey")):
        return f"carries a credential, {name[:40]}=..., which logs and histories keep"
    if key in query.keys and len(value) >= query.key_length:
        return f"carries what may be a credential, {name[:40]}=..., which logs and histories keep"
    if key in query.commands and not (key in query.readers and value.lower() in query.read):
        return f"carries a command, {name[:40]}={value[:40]}"
    if (words | {key}) & plain.strong:
        return f"carries a command, {name[:80]}"
    if query.statement.match(value + " "):
        return f"carries a statement, {name[:40]}={value[:40]}"
    spelled = {_LETTERS.sub("", value.lower()), *_words(value)}
    return f"carries a command, {name[:40]}={value[:40]}" if spelled & plain.acts else None


def _is_private(host: str, port: int | None) -> bool:
    private = _policy().private
    bare = host.strip("[]").removesuffix(".")
    if port is not None and port not in private.ports:
        return True
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        return private.names.fullmatch(bare) is not None
    return True


def _fault_of_private(host: str, segments: list[str], pairs: list[tuple[str, str]]) -> str | None:
    private = _policy().private
    lowered = [segment.lower() for segment in segments]
    listed = all(segment in private.through or segment in private.health for segment in lowered)
    ends_in_health = bool(lowered) and lowered[-1] in private.health and len(lowered) <= 5
    if not listed and not (ends_in_health and all(private.plain.fullmatch(segment) for segment in lowered)):
        return (
            f"asks {host} for /{'/'.join(segments)[:80]}; of an address, a private name or an unusual port "
            "only pages about health, versions and metrics are SAFE"
        )
    for name, value in pairs:
        if _LETTERS.sub("_", name.lower()) not in private.keys or not private.value.fullmatch(value):
            return f"asks {host} with {name[:40]}={value[:40]}, which is not known to be harmless there"
    return None
