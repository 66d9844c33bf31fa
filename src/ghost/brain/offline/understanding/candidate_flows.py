"""From mentions with roles to candidate flows, each piece with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from ghost.brain.offline.complaint import Candidate, End, Kind, PortOrigin, StatedEnds
from ghost.brain.offline.understanding.appositions import are_one_by_name, is_name, is_name_of
from ghost.brain.offline.understanding.dns_complaints import name_expected, who_asks_what
from ghost.brain.offline.understanding.end_mentions import UNKNOWN, Mention, Mentioned, mentions_in
from ghost.brain.offline.understanding.equal_gates import likely_senders, one_of_each, port_by_rules
from ghost.brain.offline.understanding.failure_kinds import failure_kind
from ghost.brain.offline.understanding.name_matching import spoken
from ghost.brain.offline.understanding.named_hosts import address_of, port_of_scheme
from ghost.brain.offline.understanding.port_mentions import is_port, spoken_protocol
from ghost.brain.offline.understanding.roles import FIRST_EPHEMERAL, roles_in
from ghost.brain.offline.understanding.tenant_names import TenantNames, first_address
from ghost.brain.offline.understanding.word_lists import service_of
from ghost.net import (
    FIRST_PUBLIC,
    Flow,
    LoadBalancer,
    Network,
    Site,
    Unread,
    is_address,
    key,
    public_address_of,
)

MAX_FLOWS: Final = 6
MAX_MEANINGS: Final = 6
MAX_STATED: Final = 300
"""Characters of an option or an answer that are looked at."""
INTERNET: Final = End("the internet", FIRST_PUBLIC, origin="named in the symptom")

Service = tuple[str, int | None, PortOrigin]
"""Protocol, port, and where the port came from."""


@dataclass(frozen=True)
class Understood:
    """What a text says, before anything about the ways was read."""

    text: str
    kind: Kind
    sources: tuple[Mention, ...]
    destinations: tuple[Mention, ...]
    mentioned: Mentioned
    protocol: str = ""
    """Said by itself."""
    clause: str = ""
    """The sentences that name the ends."""
    pairs: tuple[tuple[Mention, Mention], ...] = ()
    """Source and destination that one clause names."""
    source_lost: bool = False
    """Whether the words of the source fit but the destination."""
    sure: bool = False
    """Whether the words, an option or an answer leave no other ends open."""

    @property
    def invalid_port(self) -> str:
        invalid = [port.invalid for port in self.mentioned.ports] + [m.invalid_port for m in self.destinations]
        return next((number for number in invalid if number), "")

    @property
    def unread(self) -> tuple[str, ...]:
        """Ids of resources whose addresses are needed."""
        return tuple(each for m in (*self.sources, *self.destinations) if not m.meanings for each in m.unread)

    def sources_of(self, destination: Mention) -> tuple[Mention, ...]:
        """Return who sends to a destination: as its own clause says, else as the whole text does."""
        own = tuple(source for source, to in self.pairs if to == destination and source not in self.sources)
        others = any(to != destination and source in self.sources for source, to in self.pairs)
        return own if own and others else self.sources

    @property
    def source_named(self) -> bool:
        return any(mention.meanings or mention.beyond for mention in self.sources)

    @property
    def same(self) -> str:
        """The machine that is said to be both ends, if so."""
        both = [
            (s, d)
            for s, d in self.pairs
            if s.labels and s.labels == d.labels and s.text.casefold() == d.text.casefold()
        ]
        return (
            next(iter(both[0][0].labels))
            if both and both[0][0] in self.sources and both[0][1] in self.destinations
            else ""
        )

    @property
    def missing(self) -> str:
        """What is not known, where there is no candidate."""
        for role, mentions in (("destination", self.destinations), ("source", self.sources)):
            if not any(mention.meanings or mention.beyond for mention in mentions):
                unknown = next((mention.text for mention in mentions), "")
                named = f"there is nothing named {unknown} in what was read" if unknown else "not named"
                return f"the {role} of the traffic ({named})"
        return "the address of an end of the traffic"

    @property
    def is_certain(self) -> bool:
        """Whether names of the tenant leave one meaning to both ends."""
        if any(mention.beyond == "site" for mention in (*self.destinations, *self.sources)):
            return False
        named = [mention for mention in (*self.destinations, *self.sources) if not mention.beyond]
        if self.source_lost or (not (self.sources and self.destinations) and self.mentioned.has_other_words):
            return False
        return bool(self.destinations) and all(len(m.meanings) == 1 and m.certainty > UNKNOWN for m in named)


def understood(text: str, options: StatedEnds, names: TenantNames) -> Understood:
    """Return what the words say, with what options state in place of them."""
    mentioned = mentions_in(text, names)
    roles = roles_in(mentioned)
    mentioned = replace(mentioned, ports=roles.ports)
    kind = failure_kind(roles.clause, roles.failing)
    sources, destinations, clause = roles.sources, roles.destinations, roles.clause or text
    if sources and destinations and all(map(_is_name, sources)) and not any(map(_is_name, destinations)):
        sources, destinations = destinations, sources  # a service's name is asked for: it sends nothing
    wrongly_resolved = name_expected(mentioned)
    if wrongly_resolved:
        kind, destinations = "dns", wrongly_resolved
    if kind == "dns":
        sources, destinations = who_asks_what(mentioned, sources, destinations, names)
    stated_source = stated_end(options.source, names) if options.source else ()
    stated = stated_end(options.destination, names) if options.destination else ()
    if stated_source:
        sources = stated_source
        destinations = tuple(each for each in destinations if not each.labels or each.labels != sources[0].labels)
    if stated:
        same = tuple(m for m in destinations if m.addresses & stated[0].addresses)
        if roles.destinations and not same:
            mentioned, clause = replace(mentioned, ports=()), ""  # of what the words were taken to mean
        destinations = tuple(replace(each, ports=each.ports or (same[0].ports if same else ())) for each in stated)
    if options.port is not None:
        destinations = tuple(
            replace(m, ports=(options.port,), protocol=options.protocol, invalid_port="") for m in destinations
        )
        mentioned = replace(mentioned, ports=())
    if not stated:
        destinations += tuple(_names_beside(mentioned, sources, destinations))
    named = {label for mention in destinations for label in mention.labels}
    if not any(s.text.casefold() == d.text.casefold() for s in sources for d in destinations):
        sources = tuple(mention for mention in sources if not mention.labels or not mention.labels <= named)
    lost = bool(roles.sources) and not sources
    protocol = options.protocol.capitalize() or spoken_protocol(clause)
    pairs = () if options.source else roles.pairs
    name_asked = kind == "dns" and bool(sources and destinations) and all(map(_is_name, destinations))
    found = [any(m.meanings or m.beyond or m.unread for m in ends) for ends in (stated_source, stated) if ends]
    sure = all(found) and (roles.sure or len(found) == 2 or (name_asked and not roles.is_long))
    return Understood(text, kind, sources, destinations, mentioned, protocol, clause, pairs, lost, sure)


def _names_beside(
    mentioned: Mentioned, sources: Sequence[Mention], destinations: Sequence[Mention]
) -> Iterator[Mention]:
    """Yield names in DNS of destinations that are told by the way: "search, also known as search.shop.internal".

    One with another port tells of other traffic: "from jump search.shop.internal:22 works".
    """
    known = {each.text.casefold() for each in (*sources, *destinations)}
    for mention in mentioned.mentions:
        of = next((each for each in destinations if is_name_of(mention, each) and not is_name(each)), None)
        if of is None or (mention.ports and of.ports and mention.ports != of.ports):
            continue
        if mention.text.casefold() not in known:
            known.add(mention.text.casefold())
            yield replace(mention, ports=mention.ports or of.ports, protocol=mention.protocol or of.protocol)


def _is_name(mention: Mention) -> bool:
    """Return whether a mention is a DNS name and nothing else, as that of a service."""
    ends = [end for meaning in mention.meanings for end in meaning]
    return bool(ends) and not any(is_address(end.address) or end.machine for end in ends)


def stated_end(text: str, names: TenantNames) -> tuple[Mention, ...]:
    """Return what an option names, one mention: as it stands a name that its source asks for, or without a meaning."""
    found = mentions_in(text[:MAX_STATED], names).mentions
    if found:
        return (max(found, key=lambda each: each.certainty),)
    meanings = ((End(text, text, origin="stated"),),) if "." in text else ()
    return (Mention(0, len(text), text, meanings, UNKNOWN),)


# Candidates


def candidates_of(told: Understood, network: Network) -> tuple[tuple[tuple[Candidate, ...], ...], bool]:
    """Return the candidates of each flow, and whether a source is known."""
    known = any(True for m in told.sources for _ in ways(m, network))
    # What fails by a machine or by its name in DNS is not looked for by the other too.
    flows: dict[tuple[Mention, Service], tuple[Candidate, ...]] = {}
    for mention in told.destinations:
        for service in services_of(told, mention, network):
            found = tuple(_candidates(told, mention, service, network, known=known))
            by_name = next((m for m, same in flows if same == service and are_one_by_name(m, mention)), mention)
            flows[by_name, service] = flows.get((by_name, service), ()) + found
    return tuple(dict.fromkeys(flow for flow in flows.values() if flow))[:MAX_FLOWS], known


def _candidates(
    told: Understood, mention: Mention, service: Service, network: Network, *, known: bool
) -> Iterator[Candidate]:
    protocol, port, origin = service
    meant = list(ways(mention, network))[:MAX_MEANINGS]
    named = told.sources_of(mention)
    senders = [way for source in named for way in list(ways(source, network))[:MAX_MEANINGS]]
    if len(named) > 1:
        senders = [[end for way in senders for end in way]]
    for number, destinations in enumerate(meant):
        choices = senders if known else [_senders(network, destinations[0], port)]
        for place, sources in enumerate(choices):
            meaning = number * max(len(choices), 1) + place
            for source, destination in product(sources, destinations):
                if (
                    is_address(source.address)
                    and destination.address not in ("", source.address)
                    and (not source.machine or source.machine != destination.machine)
                ):
                    address = _as_seen(network, source, destination)
                    if mention.address_told and not source.interface:  # Azure does not show what others resolve
                        address = mention.address_told
                    flow = Flow(protocol, source.address, None, address, port)
                    yield Candidate(flow, source, destination, origin, bool(mention.protocol or told.protocol), meaning)


def ways(mention: Mention, network: Network) -> Iterator[list[End]]:
    """Yield the meanings of a mention; those that only differ in machines behind the same gates are one."""
    if mention.beyond:
        if mention.beyond in ("internet", "laptop"):
            yield [replace(INTERNET, label=mention.text if mention.beyond == "laptop" else INTERNET.label)]
        for site in network.all(Site).values() if mention.beyond == "site" else ():
            address = next((first_address(prefix) for prefix in site.prefixes), "")
            yield [End(f"{mention.text} ({site.name})", address, origin="named in the symptom")]
        return
    single = [ends[0] for ends in mention.meanings if len(ends) == 1]
    merged = one_of_each(network, single)
    if len(single) == len(mention.meanings):
        yield from ([end] for end in merged)
        return
    for ends in mention.meanings:
        yield one_of_each(network, ends)


def _senders(network: Network, destination: End, port: int | None) -> list[End]:
    inside = likely_senders(network, destination, port)
    address = address_of(destination.address)
    public = address is not None and _as_seen(network, INTERNET, destination) != address
    return [*inside, replace(INTERNET, origin="it has a public address")] if public else inside


def _as_seen(network: Network, source: End, destination: End) -> str:
    """Return the address that a source sends to: from the internet the public one, if one was read."""
    if source.address == INTERNET.address and destination.machine:
        with suppress(Unread):
            return public_address_of(network, destination.address) or destination.address
    return destination.address


def services_of(told: Understood, mention: Mention, network: Network) -> list[Service]:
    """Return protocol and port of the flows to a destination: stated, else by its product or the rules before it."""
    free = [port for port in told.mentioned.ports if port.ports]
    beside_source = tuple(port for each in told.sources for port in each.ports if port < FIRST_EPHEMERAL)
    stated = mention.ports or tuple(port for each in free for port in each.ports) or beside_source
    said = mention.protocol or next((each.protocol for each in free if each.protocol), "")
    transport = said or (told.protocol if told.protocol in ("Tcp", "Udp") else "")
    if stated:
        return [(transport or _usual_protocol(told, port), port, "stated") for port in dict.fromkeys(stated)]
    ends = mention.meanings[0] if mention.meanings else ()
    by_host = _usual_of_host(ends[0].address) if ends else None
    usual = mention.usual or (_product(told) if told.kind != "dns" and by_host is None else None)
    if told.protocol == "Icmp" and usual is None:
        return [("Icmp", None, "")]
    if usual is not None:
        return [(transport or usual[0], usual[1], "usual")]
    taken = dict.fromkeys(each for end in ends for each in _ports_of_front_end(network, end))
    balanced: list[Service] = [(protocol, port, "balancer") for protocol, port in taken]
    if balanced:
        return balanced[:MAX_FLOWS]
    if by_host is not None or told.kind == "dns":
        return [(transport or "Tcp", by_host, "usual" if by_host else "")]
    senders = [end for source in told.sources_of(mention) for way in ways(source, network) for end in way]
    by_rule = port_by_rules(network, ends[0], senders[:1]) if ends else None
    if by_rule is not None:
        return [(transport or "Tcp", by_rule, "rule")]
    by_name = next((port for end in ends[:1] for word in spoken(end.label).split() if (port := service_of(word))), None)
    return [(transport or by_name[0], by_name[1], "usual") if by_name else (transport or "Tcp", None, "")]


def _ports_of_front_end(network: Network, end: End) -> list[tuple[str, int]]:
    """Return what the rules of the load balancer take whose front end this is, if it was read; not those for all."""
    found = []
    for balancer in network.all(LoadBalancer).values():
        fronts = {key(front.id) for front in balancer.front_ends if front.address == end.address}
        rules = [rule for rule in balancer.rules if key(rule.front_end) in fronts and rule.port]
        found += [(rule.protocol.capitalize(), rule.port) for rule in rules]
    return found


def _product(told: Understood) -> tuple[str, int] | None:
    """Return what a product or protocol in the sentence usually takes, but not one that the source is."""
    text = told.clause
    for source in told.sources:
        text = text.replace(source.text, " ")
    words = (word.strip(".,;:!?\"'()[]`") for word in text.casefold().split())
    return next((port for word in words if (port := port_of_scheme(word)) is not None), None)


def _usual_protocol(told: Understood, port: int) -> str:
    usual = _product(told)
    return usual[0] if usual is not None and usual[1] == port else "Tcp"


def _usual_of_host(host: str) -> int | None:
    suffixes: tuple[tuple[str, int], ...] = (
        (".database.windows.net", 1433),
        (".redis.cache.windows.net", 6380),
        (".core.windows.net", 443),
        (".vault.azure.net", 443),
    )
    return next((port for suffix, port in suffixes if host.casefold().endswith(suffix)), None)


def answered_port(answer: str) -> int | None:
    """Return the port that an answer gives."""
    numbers = [word for word in answer.replace("/", " ").split() if is_port(word)]
    return int(numbers[0]) if numbers else None
