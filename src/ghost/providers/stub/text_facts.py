"""Facts named in a text: resources, addresses, ports, causes, the failure, and its ends.

Word patterns only. Everything found is in the text, except the usual port of a named service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from ipaddress import ip_interface

from ghost.policy import load_policy
from ghost.providers.stub.tokenizer import IPV4, terms, words

_PORT = re.compile(
    r"\b(?:port|tcp|udp)[ /:]{1,2}(\d{1,5})\b"
    r"|\b(\d{1,5})/(?:tcp|udp)\b"
    r"|(?<![\w.-])\w{1,64}(?:[.-]\w{1,64}){1,16}:(\d{2,5})\b"
    # "on 443", but neither "on 22 November" nor "on 10 machines": a port ends its clause, or a time follows it.
    r"|\bon (\d{2,5})\b(?=\s*(?:$|[;,!?)\n]|\.(?:\s|$)|(?:since|after|from|to|with|and|but|at|while|when|because)\b))",
    re.IGNORECASE,
)
_SAID_CAUSE = re.compile(
    r"\b(?:root cause|cause|caused by|due to|because(?: of)?)\b(?: (?:is|was))?:? +([^.;\n]{8,160})", re.IGNORECASE
)
_PIECES = re.compile(r"[:/]+")
_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)+")
_HOST = re.compile(
    r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|net|org|io|local|internal|invalid|test|example|[a-z0-9-]+\.[a-z]{2,24})"
)
_OWN_ID = re.compile(r"(?:ghost|shell)_\d{8}_\d{6}(?:_\w+)?")
"""Sessions and audit records: two texts of one session share no thing of the network by that."""
_COMMAND_WORD = re.compile(r"(?:show|list|get)-[a-z-]+|packet-capture|run-command")
_UNREACHED = re.compile(
    r"(\S{1,80}) (?:is|was|became|went) (?:unreachable|not reachable|not responding|down|offline)\b"
)
_CLOCK_OR_DATE = re.compile(r"\d{2,4}[-:]\d{2}(?:[-:]\d{2})?")


MAX_CHARS = 4000


@dataclass(frozen=True)
class Cause:
    tag: str
    text: str
    """A clause: `a network security group denies the traffic`."""
    check: str
    """What to check: `the effective rules of both network security groups`."""
    words: tuple[str, ...]
    """Regular expressions, any case."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self.words), re.IGNORECASE)


@dataclass(frozen=True)
class Facts:
    resources: tuple[str, ...]
    """Hyphenated names, host names and addresses, as terms, in order."""
    ports: tuple[str, ...]
    """Digits: stated, or the usual port of a named service."""
    services: tuple[str, ...]
    causes: tuple[Cause, ...]
    said_cause: str
    """The text after `because`, `due to`, `root cause:`; empty without any."""
    failing: bool
    source: str
    destination: str

    @property
    def named(self) -> bool:
        return bool(self.resources or self.ports or self.causes)


@cache
def causes() -> tuple[Cause, ...]:
    return load_policy(__file__, "causes.toml", dict[str, tuple[Cause, ...]])["causes"]


@lru_cache(maxsize=512)
def facts_of(text: str) -> Facts:
    """Return the facts of the first `MAX_CHARS` characters."""
    text = text[:MAX_CHARS]
    found = terms(text)
    resources = tuple(dict.fromkeys(name for term in found for name in _resources(term)))
    services = tuple(dict.fromkeys(term for term in found if term in words()["ports"]))
    stated = [next(filter(None, groups)) for groups in _PORT.findall(text)]
    ports = [port for port in stated if int(port) <= 65535] or [str(words()["ports"][name]) for name in services]
    said = _SAID_CAUSE.search(text)
    source, destination = _ends(found, resources)
    unreached = _UNREACHED.search(text.casefold())
    if unreached and not destination and unreached[1] == source:  # who is unreachable is asked, and asks nobody
        source, destination = "", source
    return Facts(
        resources=resources,
        ports=tuple(dict.fromkeys(ports)),
        services=services,
        causes=tuple(cause for cause in causes() if cause.pattern.search(text)),
        said_cause=" ".join(said[1].split()) if said else "",
        failing=any(term in _failing() for term in found) or _failing_phrases().search(text) is not None,
        source=source,
        destination=destination,
    )


def merged(all_facts: Iterable[Facts]) -> Facts:
    """Merge the facts of several texts; the first source, destination or cause is used."""
    listed = list(all_facts)
    return Facts(
        resources=tuple(dict.fromkeys(name for facts in listed for name in facts.resources)),
        ports=tuple(dict.fromkeys(port for facts in listed for port in facts.ports)),
        services=tuple(dict.fromkeys(name for facts in listed for name in facts.services)),
        causes=tuple(dict.fromkeys(cause for facts in listed for cause in facts.causes)),
        said_cause=next((facts.said_cause for facts in listed if facts.said_cause), ""),
        failing=any(facts.failing for facts in listed),
        source=next((facts.source for facts in listed if facts.source), ""),
        destination=next((facts.destination for facts in listed if facts.destination), ""),
    )


@cache
def _failing() -> frozenset[str]:
    return frozenset(words()["failing"].split())


@cache
def _failing_phrases() -> re.Pattern[str]:
    return re.compile(words()["failing_phrases"], re.IGNORECASE)


@cache
def _ordinary() -> frozenset[str]:
    return frozenset(words()["ordinary"].split())


@cache
def _end_words() -> dict[str, frozenset[str]]:
    return {end: frozenset(listed.split()) for end, listed in words()["ends"].items()}


@lru_cache(maxsize=4096)
def _resources(term: str) -> tuple[str, ...]:
    """Return the addresses and names in a term; `10.0.1.4:6379` and `networkInterfaces/web-nic` contain one each."""
    if _is_address(term):
        return (term,)
    return tuple(piece for piece in _PIECES.split(term) if _is_address(piece) or _is_name(piece))


def _is_address(text: str) -> bool:
    if not IPV4.fullmatch(text) and text.count(":") < 2:
        return False
    try:
        ip_interface(text)
    except ValueError:
        return False
    return True


def _is_name(text: str) -> bool:
    if _HOST.fullmatch(text):
        return True
    return (
        _NAME.fullmatch(text) is not None
        and text not in _ordinary()
        and not any(other.fullmatch(text) for other in (_CLOCK_OR_DATE, _OWN_ID, _COMMAND_WORD))
        and any(character.isalpha() for character in text)
    )


def _ends(found: list[str], resources: tuple[str, ...]) -> tuple[str, str]:
    """Return source and destination: by the word before each name, else by order."""
    names = set(resources)
    ends = _end_words()
    source = destination = first = ""
    before = ""
    for term in found:
        contained = [name for name in _resources(term) if name in names]
        if contained:
            name = contained[0]
            if before in ends["source"]:
                source = source or name
            elif before in ends["destination"] and name != source:
                destination = destination or name
            elif not first and name != destination:
                first = name
        elif term in ends["source"] or term in ends["destination"]:
            before = term
            continue
        elif term in ends["between"] or term in words()["ports"]:  # from the VM web-vm
            continue
        before = ""
    if not source and first != destination:
        source = first
    return source, destination
