"""What is asked where the words leave the ends open; without an answer the likeliest meanings stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ghost.brain.offline.case import Case, ask
from ghost.brain.offline.complaint import End, StatedEnds
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.understanding.candidate_flows import (
    MAX_STATED,
    Understood,
    answered_port,
    stated_end,
    understood,
    ways,
)
from ghost.brain.offline.understanding.end_mentions import EXACT, NAMED, Mention, mentions_in
from ghost.brain.offline.understanding.role_rules import words
from ghost.brain.offline.understanding.roles import roles_in
from ghost.brain.offline.understanding.tenant_names import TenantNames
from ghost.brain.offline.understanding.word_lists import vocabulary

MAX_LISTED: Final = 10
MAX_QUESTIONS: Final = 3


def confirmed(
    case: Case, told: Understood, names: TenantNames, options: StatedEnds
) -> Steps[tuple[Understood, StatedEnds]]:
    """Return what was understood and stated, after asking for the traffic where the words leave it open."""
    nothing_read = not (told.sources or told.destinations)
    if told.sure or nothing_read or case.ends_confirmed or case.asked >= MAX_QUESTIONS:
        return told, options
    answer = yield from ask(
        case,
        f"I read the symptom as: {_reading(told)}, but am not sure. Answer yes if that is the failing traffic; "
        "otherwise name its source (the machine or address that connects) or both ends, for example: web-01 to db-01 "
        "port 5432.",
    )
    stated = _ends_in(answer, names, options, is_source=True)
    told = told if stated is None else understood(told.text, stated, names)
    if stated is not None and not stated.destination:
        answer = yield from ask(
            case,
            f"And where does it connect to, the destination? I would take: {_listed(told.destinations)}. Answer yes, "
            "or a name or an address.",
        )
        more = _ends_in(answer, names, stated, is_source=False)
        stated, told = more or stated, told if more is None else understood(told.text, more, names)
    case.ends_confirmed = told.sure or (_is_yes(answer) and bool(told.destinations))
    if not case.ends_confirmed:
        case.asked = MAX_QUESTIONS
        if not nobody(answer):
            case.say("The answer names no end that I can identify, so I continue with my reading of the symptom.")
    return told, stated or options


def _ends_in(answer: str, names: TenantNames, options: StatedEnds, *, is_source: bool) -> StatedEnds | None:
    """Return the options with the ends that an answer names: both, or the one that was asked for; None if unsure."""
    if nobody(answer) or _is_yes(answer) or words("NEG|no|not|wrong").search(answer):
        return None
    said = mentions_in(answer[:MAX_STATED], names)
    known = [each for each in said.mentions if each.certainty >= NAMED]
    both = roles_in(said)
    ports = [
        *(port for each in both.destinations for port in each.ports),
        *(p for each in said.ports for p in each.ports),
    ]
    port = next(iter(ports), options.port)
    if len(known) == 2 and both.sure and both.sources and both.destinations:
        return replace(options, source=both.sources[0].text, destination=both.destinations[0].text, port=port)
    if len(known) != 1 or len(said.mentions) != 1:
        return None
    if is_source:
        return replace(options, source=known[0].text)
    return replace(options, destination=known[0].text, port=port)


def _may_connect(mention: Mention) -> bool:
    """Return whether a mention can be a source: a front end, a service and a name cannot."""
    return any(end.interface or end.label == end.address for ends in mention.meanings for end in ends)


def _is_yes(answer: str) -> bool:
    return re.fullmatch(r"\W*(?:yes|y|yep|right|correct|ok)\W*", answer, re.IGNORECASE) is not None


def _reading(told: Understood) -> str:
    return f"{_listed(told.sources)} to {_listed(told.destinations)}"


def _listed(mentions: Sequence[Mention]) -> str:
    ports = [f" port {mention.ports[0]}" if mention.ports else "" for mention in mentions]
    ends = [mention.text.partition(":")[0] + port for mention, port in zip(mentions, ports, strict=True)]
    return ", ".join(dict.fromkeys(ends)) or "not named"


def settled(case: Case, told: Understood, names: TenantNames, options: StatedEnds) -> Steps[Understood]:
    """Return what was understood, with what the engineer answered about it."""
    if told.invalid_port and options.port is None and not any(each.ports for each in told.destinations):
        told = yield from _with_port(case, told)
    if told.same and not case.ends_confirmed:
        case.asked = min(case.asked, MAX_QUESTIONS - 1)
        question = (
            f"The symptom names {told.same} as both the source and the destination. To which other machine does the "
            "failing traffic go? Please answer with a name or an address."
        )
        return (yield from _with_destination(case, told, names, question, []))
    if not any(mention.meanings or mention.beyond for mention in told.destinations):
        fronts = tuple(each for each in told.sources if each.meanings and not _may_connect(each))
        if fronts:
            return replace(told, sources=(), destinations=fronts)
        return (yield from _with_destination(case, told, names, _which(told), list(names.machines.values())))
    for mention in told.destinations:
        choices = [way[0] for way in ways(mention, case.network)]
        if len(choices) > 1 and not any(end.origin.startswith("the nearest") for end in choices[:1]):
            question = (
                f"“{mention.text}” as the destination fits {len(choices)} machines or services. Which one is meant?"
            )
            told = yield from _with_destination(case, told, names, question, choices, mention)
    return told


def nobody(answer: str | None) -> bool:
    """Return whether an answer means that nobody can say."""
    phrases: list[str] = vocabulary()["nobody_answers"]
    return not answer or not answer.strip() or any(phrase in answer.casefold() for phrase in phrases)


def _which(told: Understood) -> str:
    unknown = next((m.text for m in told.destinations), "")
    said = (
        f"I find nothing named “{unknown}” that could be the destination"
        if unknown
        else "The symptom does not say what the destination of the failing traffic is"
    )
    return f"{said}. To which machine, name or address does it go?"


def _with_port(case: Case, told: Understood) -> Steps[Understood]:
    answer = yield from ask(
        case, f"{told.invalid_port} is not a port: ports are 1 to 65535. Which port is meant? For example: 443."
    )
    port = None if nobody(answer) else answered_port(answer)
    if port is None:
        return told
    destinations = tuple(replace(each, ports=(port,), invalid_port="") for each in told.destinations)
    return replace(told, destinations=destinations, mentioned=replace(told.mentioned, ports=()))


def _with_destination(
    case: Case, told: Understood, names: TenantNames, question: str, choices: list[End], which: Mention | None = None
) -> Steps[Understood]:
    if case.asked >= MAX_QUESTIONS:
        return told
    listed = "\n".join(f"  {place}. {_line(end)}" for place, end in enumerate(choices[:MAX_LISTED], 1))
    more = f"\n  and {len(choices) - MAX_LISTED} more" if len(choices) > MAX_LISTED else ""
    answer = yield from ask(
        case, f"{question}\n{listed}{more}\nPlease answer with a number, a name or an address.".replace("\n\n", "\n")
    )
    if nobody(answer):
        case.asked = MAX_QUESTIONS
        return told
    answer = answer[:MAX_STATED]
    number = re.fullmatch(r"\D{0,12}(\d{1,2})\D{0,3}", answer.strip())
    found = tuple(each for each in stated_end(answer, names) if each.meanings and each.certainty >= NAMED)
    if not found and number and 1 <= int(number[1]) <= len(choices[:MAX_LISTED]):
        chosen = choices[int(number[1]) - 1]
        found = (Mention(0, 0, chosen.label, ((chosen,),), EXACT),)
    if not found:
        return told
    before = which or (told.destinations[0] if told.destinations else None)
    new = replace(
        found[0], ports=found[0].ports or (before.ports if before else ()), usual=before.usual if before else None
    )
    rest = tuple(new if each is which else each for each in told.destinations) if which else (new,)
    return replace(told, destinations=rest)


def _line(end: End) -> str:
    label, address = end.label, end.address
    return label if label == address else f"{label} ({address or 'address unknown'})"
