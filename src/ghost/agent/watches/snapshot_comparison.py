"""A path as it was and as it is: only what changes a walk is drift; what else differs is noted.

A part that was not read makes the outcome not known, unless what was read shows a change for certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal

from ghost.agent.fixes import Sender, changed_hops, told
from ghost.agent.watches.path_snapshot import KeptPath
from ghost.net import Hop, Missing, Network, VirtualNetwork, name_of, needed

Outcome = Literal["started", "no_drift", "drift", "not_known"]
MAX_NOTED: Final = 20
NO_HOP: Final = "not on the path"


@dataclass(frozen=True)
class Change:
    flow: str
    before: str
    now: str


@dataclass(frozen=True)
class Comparison:
    outcome: Outcome
    changes: tuple[Change, ...] = ()
    noted: tuple[str, ...] = ()
    """Other differences of what was read."""
    not_known: tuple[str, ...] = ()
    """What a walk needs and was not read; of a walk that misses nothing, what no read tells."""
    is_whole: bool = True
    """Whether all was read that the walks need."""


def compared(before: KeptPath, now: KeptPath, senders: Sequence[Sender]) -> Comparison:
    """Return what differs; `started` where the earlier reads left a part open that is known now.

    Such a part is taken as it is now: what differs then was read both times.
    """
    was_unread, is_unread = (tuple(_unread(path.network, senders)) for path in (before, now))
    was = _with_unread(before.network, now.network) if was_unread else before.network
    changes = []
    for sender in senders:
        for old, new in changed_hops(was, now.network, sender):
            vanished = new is None or new.verdict == "unknown"
            appeared = old is not None and old.verdict == "unknown"
            stops = new is not None and new.stops
            if not (is_unread and vanished) and not (was_unread and appeared and not stops):
                changes.append(Change(str(sender[0]), told(old) or NO_HOP, told(new) or NO_HOP))
    noted = tuple(_noted(before.network, now.network, [each.before + each.now for each in changes]))[:MAX_NOTED]
    limits = is_unread or tuple(_unknown(now))
    is_whole = not is_unread and not _is_unseen(now)
    if changes:
        return Comparison("drift", tuple(dict.fromkeys(changes)), noted, limits, is_whole=is_whole)
    if not is_whole:
        return Comparison("not_known", noted=noted, not_known=limits, is_whole=False)
    return Comparison("started" if was_unread else "no_drift", noted=noted, not_known=limits)


def first_read(path: KeptPath, senders: Sequence[Sender]) -> Comparison:
    """Return what is not known of a path that is compared with none."""
    unread = tuple(_unread(path.network, senders))
    is_whole = not unread and not _is_unseen(path)
    return Comparison("started", not_known=unread or tuple(_unknown(path)), is_whole=is_whole)


def unread_lines(missing: Missing) -> Iterator[str]:
    """Yield a line for each resource that was not read."""
    yield from (f"{Missing(missing.of, each)} was not read" for each in (missing.resource, *missing.others))


def _with_unread(before: Network, now: Network) -> Network:
    """Return the earlier network, with what was not read of it as it is now."""
    resources = {
        kind: before.all(kind) if kind in before.complete else {**now.all(kind), **before.all(kind)}
        for kind in {**before.resources, **now.resources}
    }
    return replace(before, resources=resources, complete=before.complete | now.complete)


def _unread(network: Network, senders: Sequence[Sender]) -> Iterator[str]:
    for read in needed(replace(network, failed={}), [flow for flow, _ in senders]):
        yield from unread_lines(read.missing)


def _unknown(path: KeptPath) -> Iterator[str]:
    yield from dict.fromkeys(hop.reason for hop in _all_hops(path) if hop.verdict == "unknown")


def _is_unseen(path: KeptPath) -> bool:
    """Return whether of some traffic no hop is known, as where a reader may no longer list what is there."""
    return any(all(hop.verdict == "unknown" for hop in way.hops) for way in path.walks)


def _all_hops(path: KeptPath) -> Iterator[Hop]:
    ways = list(path.walks)
    for way in ways:
        yield from way.hops
        ways.extend(way.others)


def _noted(before: Network, now: Network, drifted: Sequence[str]) -> Iterator[str]:
    """Yield the resources that are not as they were, but those of which a change of the path tells."""
    for kind, known in before.resources.items():
        found = now.all(kind)
        is_whole = kind in now.complete or kind is VirtualNetwork
        gone = [each for name, each in known.items() if name not in found and is_whole]
        new = [each for name, each in found.items() if name not in known and kind in before.complete]
        other = [each for name, each in found.items() if name in known and _plain(each) != _plain(known[name])]
        for word, resources in (("gone", gone), ("new", new), ("changed", other)):
            names: Iterable[str] = dict.fromkeys(name_of(each.id) for each in resources)
            yield from (f"{kind.kind} {name}: {word}" for name in names if not any(name in text for text in drifted))


def _plain(value: Any) -> Any:
    """Return a resource as values, without the records that told it."""
    if is_dataclass(value) and not isinstance(value, type):
        return [
            (each.name, _plain(getattr(value, each.name)))
            for each in fields(value)
            if each.name not in ("reference", "references")
        ]
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
