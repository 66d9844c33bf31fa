"""Which mention of a text is the source of the failing traffic and which the destination, by the words around them.

Mentions are masked by one character each, so that a rule sees only the words between them. Gaps are bounded: the time
grows with the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, Literal

from ghost.brain.offline.understanding.appositions import are_one_by_name, is_name, is_name_of, with_appositions
from ghost.brain.offline.understanding.end_mentions import NAMED, UNKNOWN, Mention, Mentioned
from ghost.brain.offline.understanding.port_mentions import PortMention
from ghost.brain.offline.understanding.role_rules import FIRST_MASK, MASK, pattern, rules, words

Role = Literal["source", "destination"]
KINDS: Final[tuple[Role, ...]] = ("source", "destination")
FIRST_EPHEMERAL: Final = 32768
"""Ports from here on are those of clients."""
MAX_COMPLAINTS: Final = 3
"""In a text of more sentences, one is the complaint and the rest its story: ends of two sentences are no pair."""
COMPLAINT: Final = 13
"""What a sentence is worth that says by names and port which traffic fails."""


@dataclass(frozen=True)
class Roles:
    sources: tuple[Mention, ...] = ()
    destinations: tuple[Mention, ...] = ()
    pairs: tuple[tuple[Mention, Mention], ...] = ()
    """Source and destination that one clause names."""
    clause: str = ""
    """The sentences that name them, without what they say to work."""
    failing: str = ""
    """The whole text without what it says to work."""
    sure: bool = False
    """Whether the words leave no other ends open."""
    is_long: bool = False
    """Whether the text has more sentences than a complaint needs, so that the rest is its story."""
    ports: tuple[PortMention, ...] = ()
    """Those beside no mention, without those of sentences about other things."""


@dataclass
class _Reading:
    """What one sentence says."""

    sentence: str
    roles: dict[int, Role] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)

    def has(self, role: Role) -> bool:
        return role in self.roles.values()

    def worth(self, mentions: Sequence[Mention]) -> int:
        """Return how much the sentence is a complaint about traffic between two ends that it names."""
        named = {
            role: max((mentions[p].certainty for p, r in self.roles.items() if r == role), default=-1) for role in KINDS
        }
        ports = any(mentions[place].ports for place, role in self.roles.items() if role == "destination")
        both = 6 * (min(named.values()) >= 0)
        guessed = 5 * (pattern("guess").search(self.sentence) is not None)
        return (
            both
            - guessed
            + 3 * _tells_a_failure(self.sentence)
            + 2 * ports
            + sum(min(each, NAMED) for each in named.values())
        )


def roles_in(mentioned: Mentioned) -> Roles:
    """Return who sends to whom, by the sentence that tells most of it. Several of one role are listed together."""
    mentions = with_appositions(mentioned)[: 0xF8FF - FIRST_MASK]
    failing = _without_fine(_masked(mentioned, mentions), mentions)
    mentions = [_with_port_elsewhere(each, mentions) for each in mentions]
    sentences = [sentence for sentence in pattern("sentence").split(failing) if re.search(MASK, sentence)]
    readings = [_reading(sentence, mentions) for sentence in sentences]
    readings.sort(key=lambda reading: -reading.worth(mentions))
    used: list[_Reading] = []
    roles: dict[int, Role] = {}
    for reading in readings:
        lacking = any(not any(each.has(role) for each in used) and reading.has(role) for role in KINDS)
        another = len(readings) <= MAX_COMPLAINTS and reading.worth(mentions) >= COMPLAINT
        if lacking or another:
            used.append(reading)
            meant = {mentions[place].labels for place in roles}
            new = {
                place: role for place, role in reading.roles.items() if another or mentions[place].labels not in meant
            }
            roles |= {place: role for place, role in new.items() if place not in roles}
    if len(set(roles.values())) < 2:
        _by_rest(failing, mentions, roles)
    said = [(s, d) for reading in used for s, d in reading.pairs]
    sure = {
        d for s, d in said if min(mentions[s].certainty, mentions[d].certainty) >= NAMED and roles.get(d) != "source"
    }
    told_together = any(all(reading.has(role) for role in KINDS) for reading in used)
    is_story = len(readings) > MAX_COMPLAINTS and not told_together
    sources = () if is_story else _chosen(mentions, roles, failing, "source", set())
    destinations = _chosen(mentions, roles, failing, "destination", sure)
    pairs = tuple((mentions[s], mentions[d]) for s, d in said)
    clause = " ".join(_unmasked(reading.sentence, mentions) for reading in used)
    is_sure = _is_sure(readings, used, mentioned, mentions, (sources, destinations))
    is_long = len(readings) > MAX_COMPLAINTS
    ports = _ports_said(mentioned, mentions, used)
    return Roles(sources, destinations, pairs, clause, _unmasked(failing, mentions), is_sure, is_long, ports)


def _ports_said(mentioned: Mentioned, mentions: Sequence[Mention], used: Sequence[_Reading]) -> tuple[PortMention, ...]:
    """Return the ports of sentences that name the ends, or nothing; not those with which something is said to work."""
    spoken_of = [mentions[place] for reading in used for place in _places(reading.sentence)]
    text = mentioned.text
    parts = {what: [0, *(m.end() for m in pattern(what).finditer(text)), len(text)] for what in ("clause", "sentence")}

    def around(port: PortMention, what: str) -> tuple[int, int]:
        place = bisect_right(parts[what], port.start, hi=len(parts[what]) - 1)
        return parts[what][place - 1], parts[what][place]

    fine = {span for span in {around(port, "clause") for port in mentioned.ports} if _works(text[slice(*span)])}

    def is_said(port: PortMention) -> bool:
        if around(port, "clause") in fine:
            return False
        start, end = around(port, "sentence")
        beside = [mention for mention in mentions if start <= mention.start < end]
        return not beside or not spoken_of or any(_is_among(mention, spoken_of) for mention in beside)

    return tuple(port for port in mentioned.ports if is_said(port))


def _is_sure(
    readings: Sequence[_Reading],
    used: Sequence[_Reading],
    mentioned: Mentioned,
    mentions: Sequence[Mention],
    ends: tuple[Sequence[Mention], Sequence[Mention]],
) -> bool:
    """Return whether one sentence names both ends and no other sentence names other ones.

    Of a long story that sentence must tell a failure and a port. Without a source, a short text must name the port.
    """
    sources, destinations = ends
    if any(pattern("unsure").search(reading.sentence) for reading in used):
        return False
    is_story, has_port = len(readings) > MAX_COMPLAINTS, bool(mentioned.ports)
    if not sources:
        return not is_story and any((each.ports or has_port) and each.certainty >= NAMED for each in destinations)
    asked_for = {(each.labels or each.text): bool(each.ports or is_name(each)) for each in mentions if _is_told(each)}
    one_asks = len(asked_for) == 2 and sum(asked_for.values()) == 1 and not is_story
    one_asks = one_asks and (len(readings) == 1 or any(_tells_a_failure(reading.sentence) for reading in used))
    if one_asks and any(each.ports or is_name(each) for each in destinations):
        return True

    def told(reading: _Reading) -> list[tuple[Mention, Mention]]:
        of = {role: [mentions[place] for place, each in reading.roles.items() if each == role] for role in KINDS}
        said = [(mentions[s], mentions[d]) for s, d in reading.pairs] if len(readings) == 1 else []
        return [
            (s, d)
            for s in of["source"]
            for d in of["destination"]
            if (_is_told(s) and _is_told(d) and not is_story)
            or (
                len(s.meanings) == len(d.meanings) == 1
                and _tells_a_failure(reading.sentence)
                and (d.ports or (not is_story and has_port) or ((s, d) in said and (_is_told(s) or _is_told(d))))
            )
        ]

    def meant(source: Mention, destination: Mention) -> bool:
        return _is_among(source, sources) and _is_among(destination, destinations)

    unused = [each for each in readings if each not in used and (is_story or _tells_a_failure(each.sentence))]
    others = [(mentions[s], mentions[d]) for reading in unused for s, d in reading.pairs]
    return any(meant(*pair) for reading in used for pair in told(reading)) and all(
        meant(*pair) or not all(map(_is_told, pair)) for pair in others
    )


def _is_told(mention: Mention) -> bool:
    """Return whether a mention means one thing by more than a likeness of words."""
    return mention.certainty >= NAMED or bool(mention.beyond)


def _is_among(mention: Mention, chosen: Sequence[Mention]) -> bool:
    return any(mention.text == each.text or (mention.labels and mention.labels == each.labels) for each in chosen)


def _reading(sentence: str, mentions: Sequence[Mention]) -> _Reading:
    reading = _Reading(sentence)
    for kind in KINDS:
        _by_rules(f"{kind}_fields", kind, sentence, mentions, reading.roles)
    reading.pairs += _by_pairs(sentence, mentions, reading.roles)
    _by_rules("served", "destination", sentence, mentions, reading.roles)
    for kind in KINDS:
        _by_rules(kind, kind, sentence, mentions, reading.roles)
    _listed_with(sentence, reading.roles)
    _who_suffers(sentence, mentions, reading.roles)
    return reading


def _who_suffers(sentence: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> None:
    """Of two that are said to be down apart from each other, the first suffers from the second: it is the source."""
    places = _places(sentence)
    if len(places) == 2 and all(roles.get(place) == "destination" for place in places):
        gap = sentence.partition(chr(FIRST_MASK + places[0]))[2].partition(chr(FIRST_MASK + places[1]))[0]
        if _may_send(mentions[places[0]]) and pattern("listed").fullmatch(gap) is None:
            roles[places[0]] = "source"


def _unmasked(text: str, mentions: Sequence[Mention]) -> str:
    return re.sub(MASK, lambda match: mentions[ord(match[0]) - FIRST_MASK].text, text)


def _with_port_elsewhere(mention: Mention, mentions: Sequence[Mention]) -> Mention:
    """Return the mention with the port that another one of the same end has, or one by its name in DNS."""
    others = (
        each
        for each in mentions
        if each.ports and (each.addresses == mention.addresses or are_one_by_name(each, mention))
    )
    other = next(others, None) if mention.addresses and not mention.ports else None
    return replace(mention, ports=other.ports, protocol=other.protocol) if other else mention


def _masked(mentioned: Mentioned, mentions: Sequence[Mention]) -> str:
    pieces, place = [], 0
    spans = [(m.start, m.end, chr(FIRST_MASK + i)) for i, m in enumerate(mentions)]
    spans += [(port.start, port.end, " ") for port in mentioned.ports]
    for start, end, mask in sorted(spans):
        pieces += [mentioned.text[place:start], mask]
        place = max(place, end)
    return re.sub(r"[ \t]+", " ", "".join([*pieces, mentioned.text[place:]])).strip()


def _without_fine(masked: str, mentions: Sequence[Mention]) -> str:
    """Return the text without the mentions of clauses that say that something works; all of it if that leaves none."""
    only, compared = pattern("but_only"), pattern("compared")
    kept = []
    place = 0
    for match in [*pattern("clause").finditer(masked), None]:
        clause = masked[place : match.start() if match else len(masked)]
        aside = only.search(clause) or compared.search(clause)
        is_first = not re.search(MASK, masked[:place])
        kept.append(re.sub(MASK, " ", clause) if _works(clause) or (aside and not is_first) else clause)
        kept.append(match[0] if match else "")
        place = match.end() if match else place

    def on_the_way(match: re.Match[str]) -> str:  # what has a port is the end: "through db-lb (10.0.0.9:5432)"
        return match[0] if mentions[ord(match[0][-1]) - FIRST_MASK].owns_port else " "

    rest = pattern("aside").sub(on_the_way, "".join(kept))
    return rest if re.search(MASK, rest) else masked


def _works(clause: str) -> bool:
    """Return whether a clause says that something works."""
    fine, failing = pattern("fine").search(clause), words("NEG|DOWN").search(clause)
    return pattern("surely_fine").search(clause) is not None or (fine is not None and failing is None)


def _tells_a_failure(sentence: str) -> bool:
    return words("NEG|DOWN|TOOLFAILS").search(sentence) is not None and re.search(MASK, sentence) is not None


def _by_pairs(sentence: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> list[tuple[int, int]]:
    pairs = []
    for rule in rules("pairs"):
        for match in rule.finditer(sentence):
            source, destination = (ord(match[name]) - FIRST_MASK for name in ("s", "d"))
            if roles.get(source, "source") == "source" and roles.get(destination, "destination") == "destination":
                both_one = mentions[source].owns_port and mentions[source].labels == mentions[destination].labels
                both_one = both_one or is_name_of(mentions[destination], mentions[source])
                if both_one or (source in roles and destination in roles) or mentions[destination].beyond == "laptop":
                    continue
                if is_name(mentions[source]) or not (_may_send(mentions[source]) or mentions[destination].ports):
                    continue
                roles.setdefault(source, "source")
                roles.setdefault(destination, "destination")
                pairs.append((source, destination))
        _listed_with(sentence, roles)
    return pairs


def _by_rules(table: str, role: Role, text: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> None:
    for match in (match for rule in rules(table) for match in rule.finditer(text)):
        place = ord(match[role[0]]) - FIRST_MASK
        if mentions[place].beyond != "laptop" if role == "destination" else _may_send(mentions[place]):
            roles.setdefault(place, role)


def _may_send(mention: Mention) -> bool:
    """Return whether a mention can be a source: no name that clients ask for, nothing with a port of servers."""
    return not is_name(mention) and (not mention.owns_port or all(port >= FIRST_EPHEMERAL for port in mention.ports))


def _by_rest(text: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> None:
    """Give mentions without a role the missing one: what has a port is a destination, else the order decides."""
    rest = [place for place in _places(text) if place not in roles and mentions[place].certainty > UNKNOWN]
    for place in rest:
        if mentions[place].ports and not mentions[place].beyond:
            roles[place] = "destination"
    rest = [place for place in rest if place not in roles]
    for place in sorted(rest, key=lambda place: (-mentions[place].certainty, place)):
        if "destination" not in roles.values() and (len(rest) == 1 or "source" in roles.values()):
            roles[place] = "destination"
        elif (
            "source" not in roles.values()
            and _may_send(mentions[place])
            and ("destination" in roles.values() or len(rest) > 1)
        ):
            roles[place] = "source"


def _listed_with(sentence: str, roles: dict[int, Role]) -> None:
    """Give the role of a mention to those that are listed with it."""
    masks = list(re.finditer(MASK, sentence))
    for _ in range(2):
        for before, after in pairwise(masks):
            first, second = ord(before[0]) - FIRST_MASK, ord(after[0]) - FIRST_MASK
            gap = sentence[before.end() : after.start()]
            if gap.strip() and len(gap) < 25 and pattern("listed").fullmatch(gap):
                role = roles.get(first) or roles.get(second)
                if role is not None:
                    roles.setdefault(first, role)
                    roles.setdefault(second, role)


def _chosen(
    mentions: Sequence[Mention], roles: dict[int, Role], text: str, role: Role, sure: set[int]
) -> tuple[Mention, ...]:
    """Return the mentions of a role: those listed with the best one, and the sure ones, each end once."""
    other: Role = "destination" if role == "source" else "source"
    order = list(roles)
    able = [place for place in order if roles[place] == role]
    taken = {
        label
        for place in order
        if roles[place] == other
        for label in mentions[place].labels
        if order.index(place) < (order.index(able[0]) if able else 0)
    }
    able = [place for place in able if not (mentions[place].labels and mentions[place].labels <= taken)] or able
    if not able:
        return ()
    best = max(able, key=lambda place: (min(mentions[place].certainty, NAMED), -order.index(place)))
    together = [
        place
        for place in able
        if place == best or place in sure or (role == "destination" and mentions[place].ports and mentions[best].ports)
    ]
    together += _beside(text, best, able)
    unique: dict[tuple[frozenset[str], tuple[int, ...]], Mention] = {}
    for place in sorted(set(together)):
        mention = mentions[place]
        unique.setdefault((mention.addresses or frozenset([mention.text]), mention.ports), mention)
    kept = list(unique.values())
    return tuple(
        m for m in kept if m.ports or not any(o is not m and o.addresses == m.addresses and o.ports for o in kept)
    )


def _beside(text: str, best: int, able: Sequence[int]) -> list[int]:
    masks = [(ord(m[0]) - FIRST_MASK, m.start(), m.end()) for m in re.finditer(MASK, text)]
    found, reached = [], True
    at = next((i for i, each in enumerate(masks) if each[0] == best), 0)
    for step in (1, -1):
        place, reached = at, True
        while reached and 0 <= place + step < len(masks):
            first, second = sorted((masks[place], masks[place + step]), key=lambda each: each[1])
            gap = text[first[2] : second[1]]
            reached = masks[place + step][0] in able and len(gap) < 25 and pattern("listed").fullmatch(gap) is not None
            place += step
            if reached:
                found.append(masks[place][0])
    return found


def _places(text: str) -> list[int]:
    return [ord(mask) - FIRST_MASK for mask in re.findall(MASK, text)]
