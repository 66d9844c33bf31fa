"""Parsing of the engineer's sentence: source, destination, protocol, port and kind of failure.

Words are data (`vocabulary.toml`); resource names are matched against the tenant later. All readings of an ambiguous
sentence are returned; the one whose phrases name existing resources is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from typing import Any, Literal

from ghost.policy import load_policy

Kind = Literal["unreachable", "degraded", "dns", "reset"]


@dataclass(frozen=True)
class Phrases:
    """One reading of the sentence. An empty phrase was not stated."""

    source: str
    destination: str


@dataclass(frozen=True)
class Symptom:
    text: str
    kind: Kind
    protocol: str
    """Tcp, Udp or Icmp."""
    port: int | None
    port_from: str
    """Source of the port: `stated`, `observed` in a capture, the service word that implies it, or empty."""
    ways: tuple[Phrases, ...]
    """Most likely first; never empty."""
    dns_names: tuple[str, ...]
    protocol_stated: bool = False
    invalid_port: str = ""
    """A number given as a port that is not valid."""

    @property
    def port_stated(self) -> bool:
        return self.port_from == "stated"

    @property
    def port_decides(self) -> bool:
        """True if only failures of this port explain the symptom: it was stated, or implied by a named protocol."""
        return self.port_stated or self.port_from in word_set("protocol_words")

    @property
    def flow_name(self) -> str:
        if self.port is None:
            return self.protocol.upper()
        implied = self.port_from not in ("stated", "observed", "")
        return f"{self.protocol.upper()} port {self.port}" + (f" (usual for {self.port_from})" if implied else "")


@cache
def vocabulary() -> dict[str, Any]:
    return load_policy(__file__, "vocabulary.toml")


@cache
def word_set(name: str) -> frozenset[str]:
    return frozenset(vocabulary()[name].split())


def parse_symptom(text: str) -> Symptom:
    sentence = " ".join(text.split())
    stated = _stated(sentence)
    ways = _ways(stated.rest)
    symptom = Symptom(
        text=sentence,
        kind=_kind(sentence),
        protocol=stated.protocol or "Tcp",
        port=stated.port,
        port_from="stated" if stated.port is not None else "",
        ways=ways,
        dns_names=_dns_names(stated.rest),
        protocol_stated=stated.protocol_stated,
        invalid_port=stated.invalid_port,
    )
    return symptom if stated.invalid_port else _with_implied(symptom, _without_source(sentence, ways[0].source))


def with_service(symptom: Symptom, text: str) -> Symptom:
    """Return the symptom with the protocol and port that `text` states or implies."""
    stated = _stated(text)
    port, protocol = stated.port, stated.protocol
    if port is None and text.strip().isdigit():
        port = int(text) if 1 <= int(text) <= 65535 else None
    if port is None:
        return _with_implied(symptom, text)
    return replace(
        symptom,
        protocol=protocol or (symptom.protocol if symptom.protocol != "Icmp" else "Tcp"),
        port=port,
        port_from="stated",
        protocol_stated=stated.protocol_stated or symptom.protocol_stated,
        invalid_port="",
    )


def _with_implied(symptom: Symptom, text: str) -> Symptom:
    """Return the usual port of a service that `text` names. Protocol names take precedence over products."""
    if symptom.port is not None or symptom.protocol == "Icmp":
        return symptom
    services = vocabulary()["services"]
    schemes = re.findall(r"\b([a-z]+)://", text.lower())
    service_words = [word for word in (*schemes, *words_of(text)) if word in services]
    protocols = [word for word in service_words if word in word_set("protocol_words")]
    word = next(iter((*protocols, *service_words)), None)
    if word is None:
        return symptom
    protocol, port = services[word]
    if symptom.protocol_stated:
        protocol = symptom.protocol
    return replace(symptom, protocol=protocol, port=int(port), port_from=word)


def _without_source(sentence: str, source: str) -> str:
    """Return the sentence without the source phrase, whose own services say nothing about the destination."""
    if not source or source not in sentence:
        return sentence
    used = re.findall(r"\b([\w-]+)\s+clients?\b", source, re.IGNORECASE)
    return " ".join([*used, sentence.replace(source, " ", 1)])


def words_of(text: str) -> list[str]:
    """Return lower-case words without the punctuation of sentences; punctuation inside names stays."""
    return [word.strip(".,;:!?\"'`()[]{}") for word in text.lower().split()]


def addresses_in(text: str) -> list[str]:
    found = []
    for word in re.findall(r"[0-9A-Fa-f:.]+", text):
        try:
            found.append(str(ip_address(word.strip("."))))
        except ValueError:
            continue
    return found


# Port and protocol

_PORT = re.compile(
    r"(?:\b(?:on|at|over|to|via|using)\s+)?\b(?:(?P<before>tcp|udp)[\s/]*)?\bports?\s*[:#]?\s*(?:(?P<inner>tcp|udp)[\s/]*)?"
    r"(?P<number>\d{1,9})\b(?:\s*/\s*(?P<after>tcp|udp)\b)?",
    re.IGNORECASE,
)
_SLASHED = re.compile(
    r"\b(?:(?P<before>tcp|udp)[/: ](?P<a>\d{1,9})|(?P<b>\d{1,9})/(?P<after>tcp|udp))\b", re.IGNORECASE
)
_COLON = re.compile(r"(?<=[\w.\-\]]):(?P<number>\d{1,9})\b(?![:.])")
_BARE = re.compile(r"\b(?:on|over|via)\s+(?P<number>\d{2,5})\b(?![.\-\w])", re.IGNORECASE)


_TOOL = re.compile(
    r"\b(?:telnet|nc|ncat|netcat)\s+(?:-\S+\s+)*[\w.\-]+\s+(?P<number>\d{1,9})\b(?![.\-\w])", re.IGNORECASE
)


@dataclass(frozen=True)
class Stated:
    """The stated service, and the sentence without it."""

    protocol: str | None
    port: int | None
    rest: str
    protocol_stated: bool = False
    invalid_port: str = ""


def _stated(sentence: str) -> Stated:
    spoken = _stated_protocol(sentence)
    transport = spoken if spoken != "Icmp" else None
    for pattern in (_PORT, _SLASHED, _COLON, _TOOL, _BARE):
        for match in pattern.finditer(sentence):
            groups = match.groupdict()
            group = next(name for name in ("number", "a", "b") if groups.get(name))
            if (
                pattern is _COLON
                and addresses_in(_word_around(sentence, match.start()))
                and _is_ipv6_tail(sentence, match)
            ):
                continue
            start = match.start(group) if pattern is _TOOL else match.start()
            rest, port = f"{sentence[:start]} {sentence[match.end() :]}", int(groups[group])
            if not 1 <= port <= 65535:
                return Stated(transport, None, rest, transport is not None, groups[group])
            service_words = groups.get("before") or groups.get("inner") or groups.get("after")
            protocol = service_words.capitalize() if service_words else transport
            return Stated(protocol or _usual_protocol(sentence, port), port, rest, protocol is not None)
    return Stated(spoken, None, sentence, spoken is not None)


def _stated_protocol(sentence: str) -> str | None:
    words = set(words_of(sentence))
    if words & {"udp"}:
        return "Udp"
    if words & {"tcp"}:
        return "Tcp"
    if words & {"ping", "pings", "pinging", "icmp", "echo"}:
        return "Icmp"
    return None


def _usual_protocol(sentence: str, port: int) -> str:
    """Return the protocol of the service word for this port; TCP for a bare number."""
    services = vocabulary()["services"]
    service_words = (services[word] for word in words_of(sentence) if word in services)
    return next((str(protocol) for protocol, number in service_words if number == port), "Tcp")


def _word_around(sentence: str, position: int) -> str:
    start = sentence.rfind(" ", 0, position) + 1
    end = sentence.find(" ", position)
    return sentence[start : end if end >= 0 else len(sentence)]


def _is_ipv6_tail(sentence: str, match: re.Match[str]) -> bool:
    return _word_around(sentence, match.start()).count(":") > 1 and "]" not in _word_around(sentence, match.start())


# Kind


def _kind(sentence: str) -> Kind:
    lowered = f"{sentence.lower()} "
    kinds: dict[str, list[str]] = vocabulary()["kinds"]
    if any(word in lowered for word in kinds["degraded"]):
        return "degraded"
    if any(word in lowered for word in kinds["dns"]):
        return "dns"
    if any(word in lowered for word in kinds["reset"]):
        return "reset"
    return "unreachable"


# Who and whom


@cache
def _clauses(source: str = r"(?P<source>.+?)") -> tuple[re.Pattern[str], ...]:
    words: dict[str, list[str]] = vocabulary()["clauses"]
    negation, reaching, state, receiving, fetching, answering, tools = (
        "|".join(words[kind])
        for kind in ("negations", "reaching", "states", "receiving", "fetching", "answering", "tools")
    )
    destination = r"(?P<destination>.+?)"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"\bbetween\s+{source}\s+and\s+(?P<destination>.+)",
            rf"\b(?:{tools})\s+(?:-\S+\s+)*(?P<destination>\S+)\b.*?\b(?:from|on)\s+(?P<source>.+)",
            rf"\bfrom\s+{source}\s+(?:when|while|whenever)\b.*?\b(?:on|to|at|with|against)\s+(?P<destination>.+)",
            rf"\bfrom\s+{source}\s+(?:to|towards|into|reaching|against)\s+(?P<destination>.+)",
            rf"\bby\s+{source}\s+(?:from|to|into|of|against)\s+(?P<destination>.+)",
            rf"{destination}\s+\b(?:{negation}|{state})\b.*?\b(?:{answering})\s+(?:to\s+)?(?P<source>.+)",
            rf"\b(?:{reaching}|to|into)\s+{destination}\s+from\s+(?P<source>.+)",
            rf"{source}\s*(?:->|→|=>)\s*(?P<destination>.+)",
            r"\b(?P<destination>[\w.\-]+)\s+clients?\s+(?:on|at|in|of)\s+(?P<source>[\w.\-]+)",
            rf"\b(?:when|while|whenever)\s+{source}\s+(?:{reaching})\b.*?\b(?:to|with|on|against)\s+(?P<destination>.+)",
            rf"\b(?:when|while|whenever)\s+{source}\s+(?:{reaching})\s+(?P<destination>.+)",
            rf"{source}\s+\b(?:{negation})\s+(?:{fetching})\b.*?\bfrom\s+(?P<destination>.+)",
            rf"{source}\s+\b(?:{receiving})\b.*?\b(?:{reaching})\s+(?P<destination>.+)",
            rf"{source}\s+\b(?:{receiving})\b.*?\bfrom\s+(?P<destination>.+)",
            rf"{destination}\s+\b(?:{state})\b.*?\b(?:from|for)\s+(?P<source>.+)",
            rf"{source}\s+\b(?:{negation})\b.*?\b(?:{reaching})\s+(?P<destination>.+)",
            rf"{source}\s+\b(?:{negation}|{receiving})\b.*?\b(?:to|towards|with)\s+(?P<destination>.+)",
            rf"{source}\s+to\s+(?P<destination>.+)",
            rf"\b(?:{negation})\b.*?\b(?:{reaching})\s+(?P<destination>.+)",
            rf"^{destination}\s+\b(?:{state})\b",
        )
    )


def _ways(sentence: str) -> tuple[Phrases, ...]:
    """Return each reading with the shortest source, then with the longest, whose name may be a word of the clause."""
    found: list[Phrases] = []
    for pattern in (*_clauses(), *_clauses(r"(?P<source>.+)")):
        match = pattern.search(sentence)
        if match:
            groups = match.groupdict()
            found.append(Phrases((groups.get("source") or "").strip(), groups["destination"].strip()))
    return tuple(dict.fromkeys([*found, Phrases("", sentence)]))


_NAME = re.compile(r"\b(?:https?://)?((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9])\b", re.IGNORECASE)


def _dns_names(sentence: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.group(1).lower() for match in _NAME.finditer(sentence)))
