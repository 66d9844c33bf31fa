"""Ports and protocols that a sentence states: `port 443`, `tcp/5432`, `db-01:5432`, `sql-vm,1433`, `host(1414)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_UNITS: Final = (
    r"ms|s|sec\w*|min\w*|hours?|days?|times(?! out)|x|connections?|rows?|bytes|[kmg]b|people|users"
    r"|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*"
)
_NO_UNIT: Final = rf"(?![\w%.:/-]*\w)(?!\s*%)(?!\s*(?:{_UNITS})\b)"
_PROTOCOL: Final = r"(?:(?P<protocol>tcp|udp)\s*[/:]?\s*)?"
_SAID: Final = re.compile(
    rf"(?:\b(?:on|at|over|via|using)\s+)?\b{_PROTOCOL}\b"
    rf"(?:d(?:e?st(?:ination)?[ _-]?)?|remote[ _-]?)?(?:ports?|puertos?|portas?|poort)\b"
    r"[\"']?\s*(?:number\s*)?[=:#]?\s*(?:(?P<inner>tcp|udp)[\s/]*)?(?P<number>\d{1,9})\b(?!\.\d)"
    r"(?P<more>(?:\s?(?:,|/|and|or|&|\+)\s?\d{1,5}\b(?![.:]\d)){0,8})(?:\s*[/(]?\s*(?P<after>tcp|udp)\b\)?)?",
    re.IGNORECASE,
)
_SLASHED: Final = re.compile(
    r"\b(?:on\s+)?(?:(?P<protocol>tcp|udp)[/: ]\s?(?P<number>\d{1,9})|(?P<b>\d{1,9})/(?P<after>tcp|udp))\b(?!\.\d)",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(r"(?<=\s)\((?P<number>22|80|443|1433|1521|3306|3389|5432|6379|[89]\d{3})\)")
"""Other numbers in brackets are mostly codes of errors."""
_OPTION: Final = re.compile(r"(?<!\S)(?:-p|--port)[ =]?(?P<number>\d{1,9})\b", re.IGNORECASE)
_BARE: Final = re.compile(
    rf"\b(?:on|over|via)\s+(?P<number>[1-9]\d{{1,4}})(?P<more>(?:\s?(?:,|/|and|or|&)\s?\d{{2,5}}\b(?![.:]\d)){{0,8}})\b{_NO_UNIT}",
    re.IGNORECASE,
)
BESIDE: Final = re.compile(
    rf"(?:\s?[:,#]\s?|\s?\(\s?|\s)(?:(?P<protocol>tcp|udp)[\s/]?)?(?P<number>\d{{1,9}})\b(?:/(?P<after>tcp|udp)\b)?{_NO_UNIT}(?:\s?\))?",
    re.IGNORECASE,
)
"""Of a host's name or address, right behind it."""
COLON: Final = re.compile(r"(?<=[\w.\-\]]):(?P<number>\d{1,9})\b(?![:.]\d)")
_WORKS: Final = re.compile(r"\b(?:works?|fine|ok|okay|succeeds|alive)(?: fine| well)?\s*$", re.IGNORECASE)
"""Before a port that is not complained about."""
_WORDS: Final = re.compile(r"\b(tcp|udp|icmp|ping(?:s|ing|ed)?|icmp echo)\b", re.IGNORECASE)


@dataclass(frozen=True)
class PortMention:
    start: int
    end: int
    ports: tuple[int, ...]
    protocol: str = ""
    """Tcp, Udp or empty."""
    invalid: str = ""
    """A number that is no port."""


def stated_ports(sentence: str) -> list[PortMention]:
    """Return the ports said by themselves, in order."""
    found: list[PortMention] = []
    for pattern in (_SAID, _SLASHED, _OPTION, _BARE, _ALONE):
        for match in pattern.finditer(sentence):
            if not any(match.start() < each.end and each.start < match.end() for each in found):
                found.append(port_of(match))
    failing = [each for each in found if not _WORKS.search(sentence[max(each.start - 20, 0) : each.start])]
    return sorted(failing or found, key=lambda each: each.start)


def port_of(match: re.Match[str]) -> PortMention:
    groups = match.groupdict()
    number = groups.get("number") or groups.get("b") or ""
    protocol = (groups.get("protocol") or groups.get("inner") or groups.get("after") or "").capitalize()
    if not is_port(number):
        return PortMention(match.start(), match.end(), (), protocol, number)
    more = [int(each) for each in re.findall(r"\d+", groups.get("more") or "") if is_port(each)]
    return PortMention(match.start(), match.end(), (int(number), *more), protocol)


def is_port(number: str) -> bool:
    return number.isascii() and number.isdecimal() and len(number) <= 5 and 1 <= int(number) <= 65535


def spoken_protocol(sentence: str) -> str:
    """Return the protocol that a sentence names by itself: Tcp, Udp or Icmp; empty without one."""
    words = {match[1].casefold() for match in _WORDS.finditer(sentence)}
    return "Udp" if "udp" in words else "Tcp" if "tcp" in words else "Icmp" if words else ""
