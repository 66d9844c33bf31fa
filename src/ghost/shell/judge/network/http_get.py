"""Which paths and queries of a URL only read: `policy/http_get.toml`, a closed list for every host.

A GET should change nothing; devices, consoles and badly built services act on one, and no list of their verbs is
complete. So what is not on the list asks, and so does anything that looks like data carried out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple
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

_DECODINGS = 8
_WEB_PORTS = (None, 80, 443)


class _Policy(NamedTuple):
    reads: re.Pattern[str]
    sites: frozenset[str]
    site_path: re.Pattern[str]
    query: Mapping[str, re.Pattern[str]]
    """The values of each key."""


@cache
def _policy() -> _Policy:
    table = policy_table("http_get.toml")
    return _Policy(
        reads=lazy(table["path"]["reads"]),
        sites=frozenset(table["sites"]["names"].split()),
        site_path=lazy(table["sites"]["path"]),
        query={key: lazy(values, re.I) for keys, values in table["query"].items() for key in keys.split()},
    )


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
    segments = [segment for segment in re.split("[/;]", decoded) if segment not in ("", ".")]
    known = [(name or "", value or "") for name, value in pairs]
    return (
        _fault_of_content(decoded, segments, known)
        or _fault_of_path(host, port, "/".join(part for part in decoded.split("/") if part not in ("", ".")))
        or _fault_of_query(known)
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


def _fault_of_path(host: str, port: int | None, path: str) -> str | None:
    plain = _policy()
    is_site = host.lower().removesuffix(".") in plain.sites and port in _WEB_PORTS
    if not path or plain.reads.fullmatch(path) or (is_site and plain.site_path.fullmatch(path)):
        return None
    return (
        f"asks for /{path[:80]}, and a GET may act: only listed paths about health, versions and metrics, "
        "and static files, are SAFE"
    )


def _fault_of_query(pairs: list[tuple[str, str]]) -> str | None:
    keys = [name.lower() for name, _ in pairs]
    for key, (name, value) in zip(keys, pairs, strict=True):
        values = _policy().query.get(key)
        if values is None or not values.fullmatch(value) or keys.count(key) > 1:
            return f"has a query with {name[:40]}={value[:40]}, which is not known to be harmless, and a GET may act"
    return None
