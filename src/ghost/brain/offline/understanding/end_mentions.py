"""What a text mentions: hosts, names of the tenant and words for them, ends outside Azure, and their ports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from ghost.brain.offline.complaint import End
from ghost.brain.offline.understanding.name_matching import is_generic, spoken, words_in
from ghost.brain.offline.understanding.named_hosts import HostMention, code_in, hosts_in, port_of_scheme
from ghost.brain.offline.understanding.port_mentions import BESIDE, COLON, PortMention, port_of, stated_ports
from ghost.brain.offline.understanding.tenant_names import Named, TenantNames
from ghost.brain.offline.understanding.word_lists import any_of, service_of, vocabulary, word_set

EXACT: Final = 3
NAMED: Final = 2
BY_WORDS: Final = 1
UNKNOWN: Final = 0

CALLED_ALONE: Final = ("machine", "service", "balancer")
"""What may be meant where its name is an ordinary word; of a subnet or group the sentence must say that it is one."""
_PLAIN_WORD: Final = re.compile(r"[a-z]+", re.IGNORECASE)
_LIKE_A_NAME: Final = re.compile(r"(?<![\w.:/#$@=-])[a-z]{2,}(?:-[a-z0-9]+)*-?\d{1,4}(?![\w.:%/-]*\w)")
_NO_NAMES: Final = re.compile(
    r"ipv?[46]|https?\d|tlsv?\d+|utf-?\d+|sha-?\d+|base-?\d+|md5|p\d+|rfc-?\d+|log4|oauth2?|line-?\d+|level-?\d+|release-?\d+|v\d+|error-?\d+"
)


@dataclass(frozen=True)
class Mention:
    start: int
    end: int
    text: str
    meanings: tuple[tuple[End, ...], ...]
    """What it may mean, likeliest first; all ends of one meaning are meant. Empty: nothing that is known."""
    certainty: int
    ports: tuple[int, ...] = ()
    protocol: str = ""
    owns_port: bool = False
    """Whether the port is written as part of it, `db-01:5432`, not only behind it."""
    usual: tuple[str, int] | None = None
    """Protocol and port of the product that it names."""
    beyond: str = ""
    """internet, laptop or site: an end outside Azure."""
    unread: tuple[str, ...] = ()
    """Ids of resources whose addresses must be read."""
    invalid_port: str = ""
    address_told: str = ""
    """Of a name: the address that it is said to have."""

    @property
    def addresses(self) -> frozenset[str]:
        return frozenset(end.address for ends in self.meanings for end in ends)

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(end.label for ends in self.meanings for end in ends)


@dataclass(frozen=True)
class Mentioned:
    text: str
    mentions: tuple[Mention, ...]
    ports: tuple[PortMention, ...]
    """Those that are not beside a mention."""

    @property
    def has_other_words(self) -> bool:
        """Whether there are words that may describe something, and nothing that was read fits them."""
        taken = [*((each.start, each.end) for each in self.mentions), *code_in(self.text)]
        words = (w for w in words_in(self.text) if not any(w.start() < end and start < w.end() for start, end in taken))
        return any(len(word[0]) > 2 and not _is_stop(word[0]) and not is_generic(word[0].casefold()) for word in words)


def mentions_in(text: str, names: TenantNames) -> Mentioned:
    """Return what a text mentions, in order, without overlaps."""
    said = stated_ports(text)
    found: list[Mention] = []
    taken: list[tuple[int, int]] = [(each.start, each.end) for each in said]
    for step in (_hosts, _exact, _beyond, _misspelt, _described, _unknown):
        for each in step(text, names, found):
            if not any(each.start < end and start < each.end for start, end in taken):
                each = each if each.ports else _with_port_beside(text, each)
                found.append(each)
                taken.append((each.start, each.end))
    found.sort(key=lambda each: each.start)
    return _with_ports(text, found, said)


def _hosts(text: str, names: TenantNames, _: Sequence[Mention]) -> Iterator[Mention]:
    for host in hosts_in(text):
        if host.is_address:
            end = names.at(host.host) or End(host.host, host.host)
            mention = Mention(host.start, host.end, host.host, ((_named(end),),), EXACT)
        else:
            known = names.by_name.get(host.host) if host.host.count(".") == 0 or host.host in names.by_name else None
            ends = known[0].ends if known else (End(host.host, host.host),)
            mention = Mention(host.start, host.end, host.host, (tuple(map(_named, ends)),), EXACT if known else NAMED)
        yield _with_scheme(text, mention, host)


def _with_scheme(text: str, mention: Mention, host: HostMention) -> Mention:
    usual = port_of_scheme(host.scheme)
    stated = COLON.match(text, mention.end)
    if usual is None or stated is not None:
        return mention
    return replace(mention, ports=(usual[1],), protocol=usual[0], owns_port=True)


def _exact(text: str, names: TenantNames, _: Sequence[Mention]) -> Iterator[Mention]:
    """Yield names that are no ordinary word, longest first."""
    wanted = sorted((n for n in names.by_name if not _PLAIN_WORD.fullmatch(n)), key=len, reverse=True)
    if not wanted:
        return
    pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, wanted))})(?![\w-]|\.\w)", re.IGNORECASE)
    for match in pattern.finditer(text):
        yield _of_names(match.start(), match.end(), match[0], names.by_name[match[0].casefold()])


def _of_names(start: int, end: int, text: str, named: Sequence[Named]) -> Mention:
    kinds = ("machine", "balancer", "public address", "service", "site", "interface", "group")
    first = min(named, key=lambda each: kinds.index(each.kind))
    same = [each for each in named if each.kind == first.kind]
    meanings = tuple(tuple(map(_named, each.ends)) for each in same if each.ends)
    return Mention(start, end, text, meanings, EXACT, unread=tuple(n.resource for n in same if not n.ends))


def _beyond(text: str, _names: TenantNames, _: Sequence[Mention]) -> Iterator[Mention]:
    for kind in vocabulary()["beyond"]:
        for match in any_of("beyond", kind).finditer(text):
            yield Mention(match.start(), match.end(), match[0], (), NAMED, beyond=kind)


def _described(text: str, names: TenantNames, found: Sequence[Mention]) -> Iterator[Mention]:
    """Yield runs of words that tell something of the tenant apart, or name a product."""
    run: list[re.Match[str]] = []
    taken = [*((each.start, each.end) for each in found), *code_in(text)]
    for word in words_in(text):
        inside = any(word.start() < end and start < word.end() for start, end in taken)
        joined = bool(run) and text[run[-1].end() : word.start()] == " " and not run[-1][0].endswith(("'s", "’s"))
        if run and not joined:
            yield from _run(text, run, names)
            run = []
        meant = not _is_stop(word[0]) or _is_kind_of_machine(word[0]) or _is_named(word[0], names)
        if not inside and meant:
            run.append(word)
        elif run:
            yield from _run(text, run, names)
            run = []
    if run:
        yield from _run(text, run, names)


def _run(text: str, run: list[re.Match[str]], names: TenantNames) -> Iterator[Mention]:
    group = _group_in(run, names)
    if group is not None:
        yield group
        return
    while run and not _tells(run[0][0], names):
        run = run[1:]
    if not run:
        return
    telling = max(place for place, word in enumerate(run) if _tells(word[0], names))
    ending = [
        place for place, word in enumerate(run) if place >= telling and word[0].casefold() not in ("client", "clients")
    ]
    last = min(ending[-1], telling + 2) if ending else telling
    start, end = run[0].start(), run[last].end()
    phrase = text[start:end].removesuffix("'s").removesuffix("’s")
    usual = next((port for word in run[: last + 1] if (port := service_of(word[0])) is not None), None)
    own = [word[0] for word in run[: last + 1] if not _is_kind_of_machine(word[0])]
    exact = [n for n in names.by_name.get(own[0].casefold(), ()) if n.kind in CALLED_ALONE] if len(own) == 1 else []
    if exact:
        yield replace(_of_names(start, end, phrase, exact), certainty=NAMED)
        return
    winners = [names.described[place] for place in names.index.best(phrase)]
    words = set(re.findall(r"\w+", phrase.casefold()))
    ends = [tuple(replace(end, origin=f"“{phrase}”") for end in each.ends) for each in winners if each.ends]
    if len(ends) > 1 and (word_set("plural_words") & words or word_set("group_words") & words):
        ends = [tuple(end for each in ends for end in each)]
    unread = tuple(each.resource for each in winners if not each.ends)
    if ends or unread or usual:
        yield Mention(start, end, phrase, tuple(ends), BY_WORDS, usual=usual, unread=unread)


def _misspelt(text: str, names: TenantNames, _: Sequence[Mention]) -> Iterator[Mention]:
    """Yield what looks like a machine's name and is none, with the machines that have nearly this name."""
    for match in _LIKE_A_NAME.finditer(text):
        near = [names.described[place] for place in names.index.similar(match[0])]
        origin = f"the nearest name to {match[0]}, which does not exist"
        ends = tuple(tuple(replace(end, origin=origin) for end in each.ends) for each in near if each.ends)
        if ends:
            yield Mention(match.start(), match.end(), match[0], ends, BY_WORDS)


def _unknown(text: str, _names: TenantNames, _: Sequence[Mention]) -> Iterator[Mention]:
    for match in _LIKE_A_NAME.finditer(text):
        if _NO_NAMES.fullmatch(match[0]) is None:
            yield Mention(match.start(), match.end(), match[0], (), UNKNOWN)


def _is_stop(word: str) -> bool:
    folded = word.casefold().removesuffix("'s").removesuffix("’s")
    return folded in word_set("stop_words") or "'" in folded or "’" in folded


def _group_in(run: Sequence[re.Match[str]], names: TenantNames) -> Mention | None:
    """Return the group of machines that a run calls one: "the data subnet", "network shop"."""
    for name, kind in [*pairwise(run), *((second, first) for first, second in pairwise(run))]:
        groups = [each for each in names.by_name.get(name[0].casefold(), ()) if each.kind == "group"]
        if groups and kind[0].casefold() in word_set("group_words"):
            start, end = min(name.start(), kind.start()), max(name.end(), kind.end())
            return _of_names(start, end, name.string[start:end], groups)
    return None


def _is_named(word: str, names: TenantNames) -> bool:
    return any(each.kind in ("machine", "group") for each in names.by_name.get(word.casefold(), ()))


def _is_kind_of_machine(word: str) -> bool:
    return word.casefold() in word_set("machine_words") | word_set("group_words") | word_set("balancer_words")


def _tells(word: str, names: TenantNames) -> bool:
    folded = word.casefold().removesuffix("'s").removesuffix("’s")
    if service_of(folded) is not None or any(n.kind in CALLED_ALONE for n in names.by_name.get(folded, ())):
        return True
    return any(not is_generic(part) and bool(names.index.likeness(part)) for part in spoken(folded).split())


def _named(end: End) -> End:
    return replace(end, origin=end.origin or "named in the symptom")


def _with_port_beside(text: str, mention: Mention) -> Mention:
    match = COLON.match(text, mention.end) or BESIDE.match(text, mention.end)
    if match is None or mention.beyond or (mention.certainty < NAMED and match.re is BESIDE and "(" not in match[0]):
        return mention
    if match.re is BESIDE and len(match["number"]) < 2:
        return mention
    port = port_of(match)
    mention = replace(mention, end=port.end, owns_port=True, invalid_port=port.invalid)
    return replace(mention, ports=port.ports, protocol=port.protocol)


_BEFORE: Final = re.compile(r"[\s,(:;/\[]{0,4}(?:(?:on|at|over|via|using|its|and)\s)?[\s(]{0,2}")
_AFTER: Final = re.compile(r"\s(?:on|of|at|to)\s(?:the\s)?")


def _with_ports(text: str, found: list[Mention], said: Sequence[PortMention]) -> Mentioned:
    """Give a port to the mention that it stands right behind, or right before."""
    free: list[PortMention] = []
    for port in said:
        before = max((i for i, m in enumerate(found) if m.end <= port.start), default=None)
        after = min((i for i, m in enumerate(found) if m.start >= port.end), default=None)
        if before is not None and not found[before].beyond and _BEFORE.fullmatch(text[found[before].end : port.start]):
            owner = before
        elif after is not None and not found[after].beyond and _AFTER.fullmatch(text[port.end : found[after].start]):
            owner = after
        else:
            free.append(port)
            continue
        mention = found[owner]
        found[owner] = replace(
            mention,
            start=min(mention.start, port.start),
            end=max(mention.end, port.end),
            ports=(*mention.ports, *port.ports),
            protocol=mention.protocol or port.protocol,
            invalid_port=mention.invalid_port or port.invalid,
        )
    return Mentioned(text, tuple(found), tuple(free))
