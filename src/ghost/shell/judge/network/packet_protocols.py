"""The protocols of all packets that a filter of pcap-filter(7) lets through: TCP, UDP, ICMP, ARP, or a port's.

A reader of captures prints some protocols with their payload, and may print more of those packets that cannot be one of
them. What is not understood here limits nothing, so that the reader shows least.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from ghost.patterns import lazy

Kinds = frozenset[str]
Alternatives = tuple[Kinds, ...]
"""For each way to pass the filter, all that holds of a packet that passes so."""

ANYTHING: Alternatives = (frozenset(),)
_MOST_ALTERNATIVES = 32
_DEPTH = 8

_TOKEN = lazy(
    r" +|(?P<token>\[[^\[\]]*+\]|[()]|&&|\|\||!=|[<>]=|<<|>>|==|[=<>&|+*^!-]|[A-Za-z0-9_.:/\\][A-Za-z0-9_.:/\\-]*+)"
)
_AND, _OR, _NOT = frozenset(("and", "&&")), frozenset(("or", "||")), frozenset(("not", "!"))
_LOGIC = _AND | _OR | _NOT
_OPENS, _CLOSES = "(", ")"
_RELATIONS = frozenset(("=", "==", "!=", "<", ">", "<=", ">="))
_ARITHMETIC = _RELATIONS | {"&", "|", "+", "-", "*", "/", "^", "<<", ">>"}
_PROTOCOLS = frozenset(("tcp", "udp", "icmp", "icmp6", "arp"))
_MOVES_THE_BASE = lazy(r"\b(?:pppoe[ds]|vlan|mpls|geneve|vxlan)\b", re.ASCII)
_IN_A_VLAN = lazy(r"vlan(?: [0-9]{1,4})? (?:and|&&) ")
_PORT = lazy(r"(?:(?P<protocol>tcp|udp) )?(?:(?:src|dst) )?(?P<what>port|portrange)")
_NUMBER = lazy(r"[0-9]{1,5}|[a-z][a-z0-9-]{0,15}")


@dataclass(frozen=True)
class Showing:
    """With which options a reader shows nothing of the payload of packets of these kinds."""

    kinds: Kinds | None
    """None for whatever a filter lets through."""
    without: Kinds
    """Options with which it would show some all the same."""
    harden: tuple[str, ...]

    def fits(self, alternatives: Alternatives, options: Set[str]) -> bool:
        return self.without.isdisjoint(options) and (
            self.kinds is None or all(not self.kinds.isdisjoint(holds) for holds in alternatives)
        )


@dataclass(frozen=True)
class PayloadRules:
    """The first row that fits decides; where none does, `why` says what to write instead."""

    rows: tuple[Showing, ...]
    ports: Mapping[str, str]
    why: str

    def hardening(self, filter_text: str, options: Set[str]) -> tuple[str, ...] | None:
        """The hardening options of the run; None where payload would be shown with any of them."""
        alternatives = alternatives_of(filter_text, self.ports)
        return next((row.harden for row in self.rows if row.fits(alternatives, options)), None)


def parse_payload_rules(table: Mapping[str, Any]) -> PayloadRules:
    """`[payload]` of a table: `why`, `ports` with their kind, and rows of `kinds`, `without` and `harden`."""
    return PayloadRules(
        rows=tuple(
            Showing(
                kinds=frozenset(row["kinds"].split()) if "kinds" in row else None,
                without=frozenset(row.get("without", "").split()),
                harden=tuple(row.get("harden", "").split()),
            )
            for row in table["rows"]
        ),
        ports={port: kind for kind, ports in table["ports"].items() for port in ports.split()},
        why=table["why"],
    )


def alternatives_of(text: str, ports: Mapping[str, str]) -> Alternatives:
    """`ports` gives a kind to ports, by number or name: with `{"53": "names"}` the packets of `udp port 53` are `udp`,
    `names` and `udp-names`."""
    rest = text.strip(" ")
    if inside := _IN_A_VLAN.match(rest):
        rest = rest[inside.end() :]
    if not rest or _MOVES_THE_BASE.search(rest):
        return ANYTHING
    tokens = _tokens(rest)
    if tokens is None or (inside and not _AND.issuperset(_LOGIC.intersection(tokens))):
        return ANYTHING
    reader = _Reader(tokens, ports)
    alternatives = reader.expression(_DEPTH)
    return alternatives if alternatives is not None and reader.position == len(tokens) else ANYTHING


def _tokens(text: str) -> list[str] | None:
    tokens: list[str] = []
    end = 0
    while match := _TOKEN.match(text, end):
        end = match.end()
        if match["token"]:
            tokens.append(match["token"])
    return tokens if end == len(text) else None


@dataclass
class _Reader:
    """Alternation and concatenation bind alike and to the left, negation binds tighter; None where it is no filter."""

    tokens: Sequence[str]
    ports: Mapping[str, str]
    position: int = 0
    _before: list[str] = field(default_factory=list)
    """The words that a number standing alone takes over: `tcp port 80 or 443`."""

    def expression(self, depth: int) -> Alternatives | None:
        so_far = self._term(depth)
        while so_far is not None and self._next() in _AND | _OR:
            joins = self._take()
            following = self._term(depth)
            if following is None:
                return None
            if joins in _OR:
                so_far = (*so_far, *following)
            else:
                so_far = tuple(dict.fromkeys(one | other for one in so_far for other in following))
            if len(so_far) > _MOST_ALTERNATIVES:
                return None
        return so_far

    def _term(self, depth: int) -> Alternatives | None:
        if depth == 0:
            return None
        if self._next() in _NOT:
            self._take()
            negated = self._term(depth - 1)
            self._before = []
            return None if negated is None else ANYTHING
        if self._next() == "(" and self._is_group():
            self._take()
            self._before = []
            inside = self.expression(depth - 1)
            self._before = []
            return inside if inside is not None and self._take() == ")" else None
        return self._primitive()

    def _is_group(self) -> bool:
        """Whether the bracket holds conditions; else it holds numbers, as in `(tcp[12] & 0xf0) >> 2`."""
        end = self._closing(self.position)
        if end is None:
            return True
        inside = self.tokens[self.position + 1 : end]
        follows = self.tokens[end + 1] if end + 1 < len(self.tokens) else ""
        return follows not in _ARITHMETIC and (
            bool((_LOGIC | _RELATIONS).intersection(inside)) or _ARITHMETIC.isdisjoint(inside)
        )

    def _closing(self, opening: int) -> int | None:
        open_brackets = 0
        for at in range(opening, len(self.tokens)):
            open_brackets += (self.tokens[at] == "(") - (self.tokens[at] == ")")
            if open_brackets == 0:
                return at
        return None

    def _primitive(self) -> Alternatives | None:
        start = self.position
        while (token := self._next()) and token not in _LOGIC and token != _CLOSES:
            if token == _OPENS:
                end = self._closing(self.position)
                if end is None or _LOGIC.intersection(self.tokens[self.position : end]):
                    return None
                self.position = end
            self.position += 1
        words = list(self.tokens[start : self.position])
        return (self._kinds(words),) if words else None

    def _kinds(self, words: list[str]) -> Kinds:
        if any(word.startswith("[") for word in words):
            self._before = []
            # libpcap keeps the check of the protocol for the first number of a sum alone.
            first, index, *_ = [*(word for word in words if word != _OPENS), ""]
            is_checked = index.startswith("[") and not _RELATIONS.isdisjoint(words)
            return _PROTOCOLS.intersection([first]) if is_checked else frozenset()
        if len(words) == 1 and words[0] in _PROTOCOLS:
            self._before = []
            return frozenset(words)
        if len(words) == 1 and words[0].isdigit() and self._before:
            words = [*self._before, *words]
        *head, last = words
        port = _PORT.fullmatch(" ".join(head))
        self._before = head if port else []
        if port is None or (port["what"] == "port" and not _NUMBER.fullmatch(last)):
            return frozenset()
        kinds = {port["protocol"]} if port["protocol"] else set()
        if port["what"] == "port" and (kind := self.ports.get(last)):
            kinds |= {kind, f"{port['protocol']}-{kind}"}
        return frozenset(kinds)

    def _next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._next()
        self.position += 1
        return token
