"""Resolution of the symptom's phrases to two ends: machines of the tenant, or addresses outside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ghost.brain.offline.case import Case, ask
from ghost.brain.offline.resource_matching import (
    Described,
    clear_winners,
    is_plural,
    mentions,
    rank,
    similar,
    spoken,
    tokens,
    unknown_names,
)
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.symptom import Phrases, Symptom, addresses_in, vocabulary, word_set
from ghost.brain.offline.tenant import Machine, Subnet, Tenant

MAX_LISTED = 10
MAX_QUESTIONS = 3


@dataclass(frozen=True)
class EndpointMatch:
    """Possible meanings of a phrase. One machine or address: resolved. Several machines: the engineer is asked."""

    phrase: str
    machines: tuple[Machine, ...] = ()
    address: str | None = None
    """Addresses of no known machine."""
    one_of: tuple[Machine, ...] = ()
    """The group represented by `machines[0]`."""
    certainty: int = 0
    """0 nothing, 1 by words, 2 by an exact name or address."""
    unknown: str = ""
    """A word that looks like a machine name and is not one; `machines` then have similar names."""

    @property
    def resolved(self) -> bool:
        if self.unknown:
            return False
        return len(self.machines) == 1 or (not self.machines and self.address is not None)

    @property
    def label(self) -> str:
        return self.machines[0].name if self.machines else self.address or self.phrase


@dataclass(frozen=True)
class Ends:
    source: EndpointMatch
    destination: EndpointMatch
    missing: str = ""
    """The missing information; empty if both ends are known."""
    same: str = ""
    """The machine that both phrases name."""


def find_ends(case: Case, symptom: Symptom, tenant: Tenant) -> Steps[Ends]:
    """Return both ends, asking the engineer if the tenant does not decide."""
    readings = [*symptom.ways, *_in_order_of_mention(symptom, tenant)]
    read_as = [_ends(reading, tenant) for reading in readings]
    best = max(read_as, key=_certainty)
    if not (best.source.resolved and best.destination.resolved):
        same = next((ends for ends in read_as if _names_one_twice(ends)), None)
        if same is not None:
            best = yield from _ask_for_other_machine(case, same, tenant)
            if best.same:
                return best
    source = yield from _ask_until_resolved(case, best.source, "source", "From which machine", tenant, best.destination)
    if not source.resolved:
        return Ends(source, best.destination, missing=_missing(source, "source"))
    destination = yield from _ask_until_resolved(
        case, best.destination, "destination", "To which machine", tenant, source
    )
    missing = "" if destination.resolved else _missing(destination, "destination")
    if not missing and source.label == destination.label:
        return Ends(source, destination, same=source.label)
    if not missing:
        _explain(case, source, "source")
        _explain(case, destination, "destination")
    return Ends(source, destination, missing)


def _missing(match: EndpointMatch, role: str) -> str:
    if not match.unknown:
        return f"the {role} of the traffic ({_quoted(match.phrase)})"
    names = ", ".join(machine.name for machine in match.machines)
    resembling = f"similar: {names}" if names else "and none with a similar name"
    return f"the {role} of the traffic (there is no machine named {match.unknown}; {resembling})"


def _names_one_twice(ends: Ends) -> bool:
    both = (ends.source, ends.destination)
    return all(m.resolved and m.certainty == 2 for m in both) and ends.source.label == ends.destination.label


def _ask_for_other_machine(case: Case, ends: Ends, tenant: Tenant) -> Steps[Ends]:
    """Handle a machine named as both ends: ask for another, since traffic to itself crosses no network."""
    label = ends.source.label
    answer = yield from ask(
        case,
        f"The symptom names {label} as both the source and the destination. To which other machine does the failing "
        "traffic go? Please answer with a name or an address.",
    )
    other = meaning(answer, tenant) if not nobody(answer) else EndpointMatch("")
    if other.resolved and other.label != label:
        return Ends(ends.source, other)
    return Ends(ends.source, ends.destination, same=label)


def _in_order_of_mention(symptom: Symptom, tenant: Tenant) -> list[Phrases]:
    """Take two machines in a sentence of unknown form as source and destination, in that order."""
    lowered = symptom.text.lower()
    mentioned = {m.name for m in tenant.machines if mentions(symptom.text, m.name)}
    return [Phrases(*sorted(mentioned, key=lambda name: lowered.index(name.lower())))] if len(mentioned) == 2 else []


def meaning(phrase: str, tenant: Tenant) -> EndpointMatch:
    """Return the matches of a phrase: exact addresses and names first, then words."""
    if not phrase:
        return EndpointMatch(phrase)
    for address in addresses_in(phrase):
        at = tenant.machines_at(address)
        if at:
            return EndpointMatch(phrase, tuple(at), certainty=2)
        return EndpointMatch(phrase, address=address, certainty=2)
    group = [m for m in tenant.machines if mentions(phrase, m.group)]
    mentioned = [m for m in tenant.machines if mentions(phrase, m.name)]
    if mentioned:
        narrowed = [m for m in mentioned if m in group] or mentioned
        longest = [m for m in narrowed if len(m.name) == max(len(n.name) for n in narrowed)]
        if len({m.name.casefold() for m in narrowed}) > 1 and len(longest) == 1:
            return EndpointMatch(phrase, (longest[0],), one_of=tuple(narrowed), certainty=2)
        return EndpointMatch(phrase, tuple(longest), certainty=2)
    for members in _machines_of_networks(phrase, tenant):
        narrowed = [m for m in members if m in group] or members
        return _representative(phrase, narrowed, tenant, certainty=2)
    if group:
        return _representative(phrase, group, tenant, certainty=2)
    described = _described(tenant.machines, tenant)
    exact = {text.casefold() for machine in tenant.machines for text in machine.tags}
    unknown = [name for name in unknown_names(phrase, described) if name not in exact]
    if unknown:
        candidates = tuple(tenant.machines[item.key] for item in similar(unknown[0], described))
        return EndpointMatch(phrase, candidates, unknown=unknown[0])
    return _by_words(phrase, tenant)


def _machines_of_networks(phrase: str, tenant: Tenant) -> Iterable[list[Machine]]:
    """Return the machines of each subnet or network that the phrase names."""
    subnets = [s for s in tenant.subnets if mentions(phrase, s.name)]
    of_named_network = [s for s in subnets if mentions(phrase, s.network)]
    if subnets:
        yield _in_subnets(of_named_network or subnets, tenant)
    networks = [n for n in tenant.networks if mentions(phrase, n.name)]
    if networks and not subnets:
        yield _in_subnets([s for n in networks for s in n.subnets], tenant)


def _in_subnets(subnets: Sequence[Subnet], tenant: Tenant) -> list[Machine]:
    return [m for m in tenant.machines if any(s.holds(address) for s in subnets for address in m.addresses)]


def _representative(phrase: str, members: list[Machine], tenant: Tenant, certainty: int) -> EndpointMatch:
    """Return one member to represent a group, chosen by words of the phrase and by power state."""
    if not members:
        return EndpointMatch(phrase)
    ranked = clear_winners(rank(phrase, _described(members, tenant)))
    chosen = [members[item.key] for item in ranked] or members
    chosen.sort(key=lambda m: (not m.power.lower().endswith("running"), m.name))
    return EndpointMatch(phrase, (chosen[0],), one_of=tuple(members), certainty=certainty)


def _by_words(phrase: str, tenant: Tenant) -> EndpointMatch:
    if word_set("subnet_words") & set(re.findall(r"\w+", phrase.lower())):
        described = [Described(i, s.name, tokens(s.name), tokens(s.network)) for i, s in enumerate(tenant.subnets)]
        winners = clear_winners(rank(phrase, described))
        if len(winners) == 1:
            members = _in_subnets([tenant.subnets[winners[0].key]], tenant)
            if members:
                return _representative(phrase, members, tenant, certainty=1)
    winners = clear_winners(rank(phrase, _described(tenant.machines, tenant)))
    machines = tuple(tenant.machines[item.key] for item in winners)
    if len(machines) > 1 and is_plural(phrase):
        return _representative(phrase, list(machines), tenant, certainty=1)
    return EndpointMatch(phrase, machines, certainty=1 if machines else 0)


def _described(machines: Sequence[Machine], tenant: Tenant) -> list[Described]:
    described = []
    for key, machine in enumerate(machines):
        subnet = tenant.subnet_of(machine)
        around = " ".join([*machine.tags, machine.group, *((subnet.name, subnet.network) if subnet else ())])
        spoken_names = tuple(spoken(text) for text in (machine.name, *machine.tags))
        described.append(Described(key, machine.name, tokens(machine.name), tokens(around), spoken_names))
    return described


def _ends(reading: Phrases, tenant: Tenant) -> Ends:
    """Return both ends; if one end is certain, it is excluded from the other."""
    source, destination = meaning(reading.source, tenant), meaning(reading.destination, tenant)
    if source.resolved:
        destination = _without(destination, source)
    if destination.resolved:
        source = _without(source, destination)
    return Ends(source, destination)


def _without(match: EndpointMatch, other: EndpointMatch) -> EndpointMatch:
    if len(match.machines) < 2 or not other.machines:
        return match
    rest = tuple(m for m in match.machines if m != other.machines[0])
    if match.unknown or (len(rest) == 1 and match.certainty < 2):
        return match  # words that fit the other end as well do not say which machine is meant
    return EndpointMatch(match.phrase, rest, match.address, match.one_of, match.certainty)


def _certainty(ends: Ends) -> tuple[int, int, int]:
    both = (ends.source, ends.destination)
    same = ends.source.resolved and ends.destination.resolved and ends.source.label == ends.destination.label
    return (
        sum(match.resolved for match in both) - 2 * same,
        sum(match.certainty for match in both),
        sum(bool(match.machines or match.address or match.unknown) for match in both),
    )


# Asking


def _ask_until_resolved(
    case: Case, match: EndpointMatch, role: str, asking: str, tenant: Tenant, other: EndpointMatch
) -> Steps[EndpointMatch]:
    """Ask until one machine or address is left, nobody answers, or the question limit is reached."""
    while not match.resolved and case.asked < MAX_QUESTIONS:
        candidates = [m for m in (match.machines or tenant.machines) if (m,) != other.machines]
        answer = yield from ask(case, _question(match, role, asking, candidates))
        if nobody(answer):
            case.asked = MAX_QUESTIONS
            return match
        match = _answered(answer, candidates[:MAX_LISTED], match, tenant)
    return match


def _question(match: EndpointMatch, role: str, asking: str, candidates: Sequence[Machine]) -> str:
    if match.unknown:
        opening = f"There is no machine named {_quoted(match.unknown)} visible to me that could be the {role}."
    elif match.machines:
        opening = f"{_quoted(match.phrase)} as the {role} fits {len(candidates)} machines."
    elif match.phrase:
        opening = f"Nothing visible in the subscription matches {_quoted(match.phrase)} as the {role}."
    else:
        opening = f"The symptom does not say what the {role} of the traffic is."
    listed = "\n".join(f"  {place}. {_line(machine)}" for place, machine in enumerate(candidates[:MAX_LISTED], 1))
    more = f"\n  and {len(candidates) - MAX_LISTED} more" if len(candidates) > MAX_LISTED else ""
    choices = f"\n{listed}{more}\n" if listed else " "
    return f"{opening} {asking} does the failing traffic go?{choices}Please answer with a number, a name or an address."


def _answered(answer: str, candidates: Sequence[Machine], match: EndpointMatch, tenant: Tenant) -> EndpointMatch:
    number = re.fullmatch(r"\D{0,12}(\d{1,2})\D{0,3}", answer.strip())
    exact = meaning(answer, tenant)
    if exact.certainty < 2 and number and 1 <= int(number[1]) <= len(candidates):
        return EndpointMatch(match.phrase, (candidates[int(number[1]) - 1],), certainty=2)
    among = [m for m in exact.machines if m in candidates]
    if len(among) >= 1 and len(exact.machines) > 1:
        return EndpointMatch(answer, tuple(among), certainty=exact.certainty)
    return exact if exact.machines or exact.address else match


def nobody(answer: str) -> bool:
    phrases: list[str] = vocabulary()["nobody_answers"]
    return any(phrase in answer.lower() for phrase in phrases)


def _explain(case: Case, match: EndpointMatch, role: str) -> None:
    if not match.machines:
        case.say(f"The {role} {match.label} belongs to no visible machine.")
        return
    others = len(match.one_of) - 1
    standing = f", representing {others} more of the group" if others > 0 else ""
    case.say(f"The {role} is {_line(match.machines[0])}{standing}.")


def _line(machine: Machine) -> str:
    return f"{machine.name} ({', '.join(machine.addresses) or 'address unknown'}, resource group {machine.group})"


def _quoted(phrase: str) -> str:
    return f"“{phrase}”" if phrase else "not named"
