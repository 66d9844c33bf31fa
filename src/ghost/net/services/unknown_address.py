"""A walk to a service whose public address is not known: what all addresses that it may have agree about is certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ghost.net.hops import Hop, Walk
from ghost.net.security import Flow

SHOWN: Final = 3
"""Rules of which one decides, depending on the address, that are named."""


def agreed(flow: Flow, tag: str, walks: Sequence[Walk]) -> Walk:
    """Return the walk that stands for `walks`, which differ in the destination's address alone.

    A hop is certain where all decide alike. Where the ways part, the walk ends. `tag`: the service tag that security
    rules can name in place of the address.
    """
    hops = tuple(_agreed(flow.destination_address, [_named(walked, flow, tag) for walked in walks]))
    others = zip(*(walked.others for walked in walks), strict=False)
    return Walk(flow, hops, tuple(agreed(flow, tag, ways) for ways in others))


def _agreed(host: str, ways: list[tuple[Hop, ...]]) -> Iterator[Hop]:
    place, is_open = 0, False
    while going := [way for way in ways if len(way) > place]:
        is_open |= any(len(way) == place and not any(hop.stops for hop in way) for way in ways)
        ways = going
        hops = [hop for hop, _ in Counter(way[place] for way in ways).most_common()]
        first = hops[0]
        if len({(hop.kind, hop.resource.casefold(), hop.leg, hop.direction) for hop in hops}) > 1:
            yield _depends(first, f"where packets go depends on the public address of {host}")
            return
        if is_open and first.stops:
            yield _depends(first, f"{first.reason}, unless {host} has an address to which the path is not known")
        elif len({hop.verdict for hop in hops}) == 1:
            rules = {hop.rule: None for hop in hops}
            either = _either([rule or "none" for rule in rules])
            told = replace(first, rule=either, reason=f"{either}, whichever address {host} has")
            yield first if len(rules) == 1 else told
        else:
            decisive = _either(list(dict.fromkeys(f"{hop.verdict} by {hop.rule or first.kind}" for hop in hops)))
            yield _depends(first, f"{decisive}: that depends on the public address of {host}")
            ways = [way for way in ways if not way[place].stops]
        place += 1


def _either(names: list[str]) -> str:
    return " or ".join([*names[:SHOWN], *([f"{len(names) - SHOWN} others"] if len(names) > SHOWN else [])])


def _depends(hop: Hop, reason: str) -> Hop:
    told = f"{reason}, which Azure's configuration does not show"
    return replace(hop, verdict="unknown", reason=told, rule=None, fault=None, mends=())


def _named(walked: Walk, flow: Flow, tag: str) -> tuple[Hop, ...]:
    """Return the hops with the host's name, and for groups the tag, in place of the address that stood for it."""
    address, name = walked.flow.destination_address, flow.destination_address
    met = [replace(hop.flow, destination_address=tag) if hop.flow is not None else None for hop in walked.hops]
    return tuple(
        replace(hop, reason=hop.reason.replace(address, name), flow=each)
        for hop, each in zip(walked.hops, met, strict=True)
    )
