"""Which mention of a text is the source of the failing traffic and which the destination, by the words around them.

Mentions are masked by one character each, so that a rule sees only the words between them. Gaps are bounded: the time
grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

from ghost.brain.offline.understanding.appositions import is_name, with_appositions
from ghost.brain.offline.understanding.end_mentions import NAMED, UNKNOWN, Mention, Mentioned
from ghost.brain.offline.understanding.role_rules import FIRST_MASK, MASK, pattern, rules, words

Role = Literal["source", "destination"]
KINDS: Final[tuple[Role, ...]] = ("source", "destination")
FIRST_EPHEMERAL: Final = 32768
"""Ports from here on are those of clients."""


@dataclass(frozen=True)
class Roles:
    sources: tuple[Mention, ...]
    destinations: tuple[Mention, ...]
    pairs: tuple[tuple[Mention, Mention], ...]
    """Source and destination that one clause names."""
    failing: str
    """The text without what it says to work."""


def roles_in(mentioned: Mentioned) -> Roles:
    """Return who sends to whom. Several of one role are listed together, as in "neither A nor B"."""
    mentions = with_appositions(mentioned)[: 0xF8FF - FIRST_MASK]
    masked = _masked(mentioned, mentions)
    failing = _without_fine(masked)
    roles: dict[int, Role] = {}
    pairs: list[tuple[int, int]] = []
    sentences = [sentence for sentence in pattern("sentence").split(failing) if sentence.strip()]
    sentences.sort(key=lambda sentence: 0 if _tells_a_failure(sentence) else 1)
    for kind in KINDS:
        _byrules(f"{kind}_fields", kind, failing, mentions, roles)
    for sentence in sentences:
        pairs += _by_pairs(sentence, mentions, roles)
        if len({roles.get(place) for place in _places(sentence)} & {"source", "destination"}) == 2:
            break
    for sentence in sentences:
        _by_single_words(sentence, mentions, roles)
    _by_rest(failing, mentions, roles)
    unmasked = re.sub(MASK, lambda match: mentions[ord(match[0]) - FIRST_MASK].text, failing)
    mentions = [_with_port_elsewhere(each, mentions) for each in mentions]
    sources, destinations = (_chosen(mentions, roles, failing, kind) for kind in KINDS)
    return Roles(sources, destinations, tuple((mentions[s], mentions[d]) for s, d in pairs), unmasked)


def _with_port_elsewhere(mention: Mention, mentions: Sequence[Mention]) -> Mention:
    """Return the mention with the port that another one of the same end has."""
    others = (each for each in mentions if each.ports and each.addresses == mention.addresses)
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


def _without_fine(masked: str) -> str:
    """Return the text without the mentions of clauses that say that something works; all of it if that leaves none."""
    fine, only = pattern("fine"), pattern("but_only")
    failing = words("NEG|DOWN")
    kept = []
    place = 0
    for match in [*pattern("clause").finditer(masked), None]:
        clause = masked[place : match.start() if match else len(masked)]
        works = (fine.search(clause) and not failing.search(clause)) or only.search(clause)
        is_first = not re.search(MASK, masked[:place])
        kept.append(re.sub(MASK, " ", clause) if works and not (is_first and not fine.search(clause)) else clause)
        kept.append(match[0] if match else "")
        place = match.end() if match else place
    rest = "".join(kept)
    return rest if re.search(MASK, rest) else masked


def _tells_a_failure(sentence: str) -> bool:
    return words("NEG|DOWN|TOOLFAILS").search(sentence) is not None and re.search(MASK, sentence) is not None


def _by_pairs(sentence: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> list[tuple[int, int]]:
    pairs = []
    for rule in rules("pairs"):
        for match in rule.finditer(sentence):
            source, destination = (ord(match[name]) - FIRST_MASK for name in ("s", "d"))
            if roles.get(source, "source") == "source" and roles.get(destination, "destination") == "destination":
                if (source in roles and destination in roles) or mentions[destination].beyond == "laptop":
                    continue
                if is_name(mentions[source]):
                    continue
                roles.setdefault(source, "source")
                roles.setdefault(destination, "destination")
                pairs.append((source, destination))
        _listed_with(sentence, roles)
    return pairs


def _by_single_words(sentence: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> None:
    _byrules("served", "destination", sentence, mentions, roles)
    for kind in KINDS:
        _byrules(kind, kind, sentence, mentions, roles)
    _listed_with(sentence, roles)


def _byrules(table: str, role: Role, text: str, mentions: Sequence[Mention], roles: dict[int, Role]) -> None:
    for match in (match for rule in rules(table) for match in rule.finditer(text)):
        place = ord(match[role[0]]) - FIRST_MASK
        if role == "destination" or _may_send(mentions[place]):
            roles.setdefault(place, role)


def _may_send(mention: Mention) -> bool:
    """Return whether a mention can be a source: no name that clients ask for, nothing with a port of servers."""
    return not is_name(mention) and all(port >= FIRST_EPHEMERAL for port in mention.ports)


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


def _chosen(mentions: Sequence[Mention], roles: dict[int, Role], text: str, role: Role) -> tuple[Mention, ...]:
    """Return the mentions of a role: those listed with the best one, each end once."""
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
        if place == best or (role == "destination" and mentions[place].ports and mentions[best].ports)
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
