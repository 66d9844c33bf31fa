"""The fix of a finished session: recommended commands with which a walk of its failing traffic passes.

A command is offered if two agree: the report recommends it, and the walk, made again from the session's records, makes
it and passes with it. What is run is the walk's own command, never the text of a brain.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ghost.agent.audit_evidence import Evidence
from ghost.agent.completion import classified_actions, judged_causes
from ghost.agent.facts import proofs_of
from ghost.agent.facts.second_walk import flows_of, is_cause
from ghost.agent.session import Session
from ghost.errors import SessionError
from ghost.net import (
    Flow,
    Hop,
    Mend,
    Network,
    Unread,
    Walk,
    commands_for,
    explain,
    name_of,
    undo_for,
    walk,
    words_and_options,
)
from ghost.shell import RISKY
from ghost.text import map_text

Sender = tuple[Flow, str | None]
"""A flow, with the id of the interface that sends where an address does not tell it."""


@dataclass(frozen=True)
class Step:
    command: str
    undo: str | None
    """None where no command undoes it."""
    change: str
    """What it changes, in words."""


@dataclass(frozen=True)
class Fix:
    senders: tuple[Sender, ...]
    steps: tuple[Step, ...]
    mends: tuple[Mend, ...]
    """The changes that the steps make."""
    network: Network
    """As it was recorded."""
    besides: tuple[str, ...] = ()
    """Causes of the report that these commands do not mend."""


def fix_of(session: Session, evidence: Evidence) -> Fix:
    """Return the fix of a session. Raises `SessionError` with the reason where there is none."""
    completion, walked = map_text(session.completion or {}, evidence.restored), failing_traffic(session, evidence)
    recommended = [row["command"] for row in classified_actions(completion.get("recommended_actions") or [])
                   if row["classification"] == RISKY]  # fmt: skip
    try:
        steps, mends = steps_for(walked.network, walked.senders)
        known = [_parsed(command) for command in recommended]
        if others := [step.command for step in steps if _parsed(step.command) not in known]:
            raise ValueError(f"its report does not recommend {others[0]}, which the walk takes to pass")
    except ValueError as why:
        raise _no_fix(session, str(why)) from None
    return replace(walked, steps=steps, mends=mends)


def failing_traffic(session: Session, evidence: Evidence) -> Fix:
    """Return the traffic that the session's causes stop, without steps. Raises `SessionError` where none was walked."""
    completion = map_text(session.completion or {}, evidence.restored)
    network = proofs_of(evidence, session.session_id).network
    causes = [cause for cause in judged_causes(completion, session, evidence) if cause["supported"]]
    met = [list(_senders(network, cause)) for cause in causes]
    senders = tuple(dict.fromkeys(itertools.chain(*met)))
    if not senders:
        raise _no_fix(session, "no cause of its report was walked")
    besides = tuple(_named(cause) for cause, flows in zip(causes, met, strict=True) if not flows)
    return Fix(senders, (), (), network, besides)


def _no_fix(session: Session, why: str) -> SessionError:
    of = session.session_id
    return SessionError(f"{of} has no walked fix: {why}; ghost report {of} says what to do by hand")


def steps_for(network: Network, senders: Sequence[Sender]) -> tuple[tuple[Step, ...], tuple[Mend, ...]]:
    """Return the commands with which every flow passes, in order, and the changes that they make.

    Raises `ValueError` where a walk does not show that it passes.
    """
    steps: dict[str, Step] = {}
    mends: list[Mend] = []
    changed = network
    for flow, source in senders:
        for fault in explain(changed, flow, source=source):
            commands = commands_for(fault.mend, changed) if fault.mend is not None else ()
            if fault.mend is None or not commands:
                raise ValueError(f"no command is known against {fault.hop.reason}")
            for command, undo in zip(commands, undo_for(fault.mend, changed), strict=True):
                steps.setdefault(command, Step(command, undo, str(fault.mend)))
            mends.append(fault.mend)
            changed = fault.mend.applied(changed)
    for flow, source in senders:
        outcome, why = judged(walk(changed, flow, source=source))
        if outcome != "passes":
            raise ValueError(f"with the changes {flow} is {outcome}: {why}")
    return tuple(steps.values()), tuple(mends)


def with_changes(network: Network, mends: Sequence[Mend]) -> Network:
    """Return the network with changes, as far as what they change was read."""
    for mend in mends:
        try:
            network = mend.applied(network)
        except Unread:
            break
    return network


def judged(walked: Walk) -> tuple[str, str]:
    """Return the outcome of a walk and why; blocked too where a member of a pool does not get the packet."""
    if walked.first_stop is not None:
        return "blocked", walked.first_stop.reason
    unknown = [hop.reason for hop in _hops(walked) if hop.verdict == "unknown"]
    return ("unknown", "; ".join(dict.fromkeys(unknown))) if unknown else ("passes", "")


def drift(before: Network, now: Network, senders: Sequence[Sender]) -> list[tuple[str, str]]:
    """Return what decides about the flows and is not as it was, as (before, now); empty text where there was none."""
    pairs = (pair for sender in senders for pair in changed_hops(before, now, sender))
    return list(dict.fromkeys((told(old), told(new)) for old, new in pairs))


def changed_hops(before: Network, now: Network, sender: Sender) -> list[tuple[Hop | None, Hop | None]]:
    """Return the hops of a flow that are not as they were, each with the one in its place; None where there is none.

    What follows from a stop is left out: behind it no answer is walked.
    """
    flow, source = sender
    old, new = (list(_hops(walk(each, flow, source=source))) for each in (before, now))
    gone, come = ([hop for hop in ours if told(hop) not in set(map(told, theirs))]
                  for ours, theirs in ((old, new), (new, old)))  # fmt: skip
    pairs: list[tuple[Hop | None, Hop | None]] = []
    for hop in gone:
        instead = next((each for each in come if _place(each) == _place(hop)), None)
        come = [each for each in come if each is not instead]
        pairs.append((hop, instead))
    pairs += [(None, hop) for hop in come]
    if not pairs and list(map(told, old)) != list(map(told, new)):  # the same hops in another order
        pairs = [pair for pair in itertools.zip_longest(old, new) if told(pair[0]) != told(pair[1])][:1]
    stopped = [any(hop.stops for hop in hops) for hops in (old, new)]
    direct = [(was, now) for was, now in pairs if not (was is None and stopped[0]) and not (now is None and stopped[1])]
    return direct or pairs


def _place(hop: Hop) -> tuple[str | None, ...]:
    return hop.leg, hop.kind, hop.direction


def _hops(walked: Walk) -> Iterator[Hop]:
    yield from walked.hops
    for other in walked.others:
        yield from _hops(other)


def told(hop: Hop | None) -> str:
    """Return a hop in words; empty for none."""
    if hop is None:
        return ""
    return f"{hop.kind.replace('_', ' ')} {name_of(hop.resource)}, {hop.verdict}: {hop.reason}"


def _senders(network: Network, cause: Mapping[str, Any]) -> Iterator[Sender]:
    """Yield the flows of a cause whose walk meets it."""
    for flow, source in flows_of(network, cause.get("flow") or {}):
        if any(is_cause(fault, cause) for fault in explain(network, flow, source=source)):
            yield flow, source


def _named(cause: Mapping[str, Any]) -> str:
    return f"{str(cause['kind']).replace('_', ' ')} at {name_of(str(cause['resource']))}"


def _parsed(command: str) -> tuple[list[str], dict[str, str]]:
    return words_and_options(shlex.split(command))
