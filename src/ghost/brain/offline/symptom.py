"""What the engineer's sentence says: who cannot reach whom, by which protocol and port, and in what manner it fails.

Words are data (`vocabulary.toml`); the names of resources are not, they are matched against the tenant later. A
sentence can be read in several ways, and all of them are kept: the one whose phrases name something real wins.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal

Kind = Literal["unreachable", "degraded", "dns", "reset"]


@dataclass(frozen=True)
class Phrases:
    """One way to read the sentence. An empty phrase was not said."""

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
    """Where the port comes from: `stated`, the service word that implies it, or empty."""
    ways: tuple[Phrases, ...]
    """Most likely first; never empty."""
    dns_names: tuple[str, ...]

    @property
    def flow_name(self) -> str:
        return f"{self.protocol.upper()} port {self.port}" if self.port else self.protocol.upper()


@cache
def vocabulary() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "vocabulary.toml").read_text(encoding="utf-8"))


@cache
def word_set(name: str) -> frozenset[str]:
    return frozenset(vocabulary()[name].split())


def parse_symptom(text: str) -> Symptom:
    sentence = " ".join(text.split())
    protocol, port, port_from, rest = _service(sentence)
    return Symptom(
        text=sentence,
        kind=_kind(sentence),
        protocol=protocol,
        port=port,
        port_from=port_from,
        ways=_ways(rest),
        dns_names=_dns_names(rest),
    )


def with_service(symptom: Symptom, text: str) -> Symptom:
    """The symptom with the protocol and port that `text` states or implies by a service word."""
    protocol, port, port_from, _ = _service(text)
    if port is None and text.strip().isdigit() and 1 <= int(text) <= 65535:
        protocol, port, port_from = symptom.protocol, int(text), "stated"
    if port is None:
        return symptom
    return replace(symptom, protocol=protocol, port=port, port_from=port_from)


def words_of(text: str) -> list[str]:
    """Lower-case words, punctuation of sentences removed, that of names kept."""
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
    r"(?P<number>\d{1,5})\b(?:\s*/\s*(?P<after>tcp|udp)\b)?",
    re.IGNORECASE,
)
_SLASHED = re.compile(
    r"\b(?:(?P<before>tcp|udp)[/: ](?P<a>\d{1,5})|(?P<b>\d{1,5})/(?P<after>tcp|udp))\b", re.IGNORECASE
)
_COLON = re.compile(r"(?<=[\w.\-\]]):(?P<number>\d{1,5})\b(?![:.])")
_BARE = re.compile(r"\b(?:on|over|via)\s+(?P<number>\d{2,5})\b(?![.\-\w])", re.IGNORECASE)


def _service(sentence: str) -> tuple[str, int | None, str, str]:
    """Protocol, port, where the port is from, and the sentence without them."""
    stated = _stated_protocol(sentence)
    for pattern in (_PORT, _SLASHED, _COLON, _BARE):
        for match in pattern.finditer(sentence):
            groups = match.groupdict()
            port = int(groups.get("number") or groups.get("a") or groups.get("b") or 0)
            if (
                pattern is _COLON
                and addresses_in(_word_around(sentence, match.start()))
                and _is_ipv6_tail(sentence, match)
            ):
                continue
            if 1 <= port <= 65535:
                named = groups.get("before") or groups.get("inner") or groups.get("after")
                protocol = named.capitalize() if named else stated or _usual_protocol(sentence, port)
                return protocol, port, "stated", f"{sentence[: match.start()]} {sentence[match.end() :]}"
    services = vocabulary()["services"]
    for word in words_of(sentence):
        if word in services and not (word == "dns" and stated == "Icmp"):
            protocol, port = services[word]
            return protocol, int(port), word, sentence
    return stated or "Tcp", None, "", sentence


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
    """Of the service word that goes with the port; TCP where there is none, for a number alone proves nothing."""
    services = vocabulary()["services"]
    named = (services[word] for word in words_of(sentence) if word in services)
    return next((str(protocol) for protocol, number in named if number == port), "Tcp")


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
def _clauses() -> tuple[re.Pattern[str], ...]:
    words: dict[str, list[str]] = vocabulary()["clauses"]
    negation, reaching, state, receiving = (
        "|".join(words[kind]) for kind in ("negations", "reaching", "states", "receiving")
    )
    source, destination = r"(?P<source>.+?)", r"(?P<destination>.+?)"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            rf"\bbetween\s+{source}\s+and\s+(?P<destination>.+)",
            rf"\bfrom\s+{source}\s+(?:to|towards|into|reaching)\s+(?P<destination>.+)",
            rf"\bby\s+{source}\s+(?:from|to|into|of|against)\s+(?P<destination>.+)",
            rf"\b(?:{reaching}|to|into)\s+{destination}\s+from\s+(?P<source>.+)",
            rf"{source}\s*(?:->|→|=>)\s*(?P<destination>.+)",
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
    found: list[Phrases] = []
    for pattern in _clauses():
        match = pattern.search(sentence)
        if match:
            groups = match.groupdict()
            found.append(Phrases((groups.get("source") or "").strip(), groups["destination"].strip()))
    return tuple(dict.fromkeys([*found, Phrases("", sentence)]))


_NAME = re.compile(r"\b(?:https?://)?((?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9])\b", re.IGNORECASE)


def _dns_names(sentence: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.group(1).lower() for match in _NAME.finditer(sentence)))
