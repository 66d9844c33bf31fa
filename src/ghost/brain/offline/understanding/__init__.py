"""From the engineer's words to what is complained about: candidate flows, each piece with where it came from.

    complaint = yield from understand(case, text, options)

Reads the interfaces and the virtual networks, and where these do not tell what the words mean, what else there is.
Words are data: they reach `az` only as ids that were read. Without an answer the likeliest meanings stay.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Complaint, StatedEnds
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.tenant_reads import read_missing
from ghost.brain.offline.understanding.candidate_flows import Understood, candidates_of, services_of, understood
from ghost.brain.offline.understanding.equal_gates import groups_before
from ghost.brain.offline.understanding.open_points import confirmed, nobody, settled
from ghost.brain.offline.understanding.tenant_names import TenantNames
from ghost.net import (
    Interface,
    ListedResource,
    LoadBalancer,
    Missing,
    PublicAddress,
    Resource,
    RuleSet,
    Site,
    VirtualNetwork,
    key,
)

__all__ = ["nobody", "understand"]

MAX_LENGTH = 4000
"""Characters of a symptom that are looked at."""
_ADDRESSED: dict[str, type[Resource]] = {
    "/loadbalancers/": LoadBalancer,
    "/publicipaddresses/": PublicAddress,
    "/localnetworkgateways/": Site,
}


_TUPLE: Final = re.compile(
    r"(?:\b\d{10},)?\b(?P<a>\d+\.\d+\.\d+\.\d+)(?:,(?P<b>\d+\.\d+\.\d+\.\d+),\d{1,5},(?P<port>\d{1,5}),[TU],[IO],[AD]\b"
    r"| \d{5} (?P<d>\d+\.\d+\.\d+\.\d+) (?P<e>\d{1,5})\b)"
)
"""A record of a flow log: of Azure's security groups (time, ends, ports, protocol, direction, decision), or in words.

https://learn.microsoft.com/azure/network-watcher/nsg-flow-logs-overview#log-format
"""


def understand(case: Case, text: str, options: StatedEnds | None = None) -> Steps[Complaint]:
    options = options or StatedEnds()
    text = "".join(
        character if character.isprintable() or character == "\n" else " " for character in text[:MAX_LENGTH]
    )
    text = _TUPLE.sub(lambda m: f"{m['a']} -> {m['b'] or m['d']}:{m['port'] or m['e']} fails", text)
    first = (Missing(Interface), Missing(VirtualNetwork))
    yield from read_missing(
        case, first, "I read the network interfaces and virtual networks to resolve the names in the symptom."
    )
    for each in first:
        if each in case.network.failed:
            case.say(f"The list of {each.of.kind}s could not be read: {case.network.failed[each]}.")
    names = TenantNames(case.network)
    told = understood(text, options, names)
    if not told.is_certain:
        purpose = "The symptom matches no known name yet, so I list all resources."
        yield from read_missing(case, [Missing(ListedResource)], purpose)
        rows = [{"id": each.id, "tags": each.tags} for each in case.network.all(ListedResource).values()]
        names = replace(names, network=case.network, listed=rows)
        told = understood(text, options, names)
    told, options = yield from confirmed(case, told, names, options)
    sites = [
        key_of for key_of in names.sites if any(each.beyond == "site" for each in (*told.sources, *told.destinations))
    ]
    yield from read_missing(
        case, [Missing(Site, each) for each in sites[:4]], "The symptom may mean a site behind a gateway."
    )
    names, told = yield from _with_addresses(case, names, told, text, options)
    told = yield from settled(case, told, names, options)
    complaint = yield from _complaint(case, told)
    return replace(complaint, stated=options, ends_sure=told.sure or case.ends_confirmed)


def _with_addresses(
    case: Case, names: TenantNames, told: Understood, text: str, options: StatedEnds
) -> Steps[tuple[TenantNames, Understood]]:
    """Read the addresses of front ends that are named."""
    wanted = [Missing(of, each) for each in told.unread for part, of in _ADDRESSED.items() if part in key(each)]
    if not wanted:
        return names, told
    yield from read_missing(case, wanted[:3], "I read the address of the resource that the symptom names.")
    names = replace(names, network=case.network)
    return names, understood(text, options, names)


def _complaint(case: Case, told: Understood) -> Steps[Complaint]:
    ends = [end for mention in told.destinations for ends in mention.meanings[:2] for end in ends[:2]]
    wanted = []
    if not told.source_named or any(
        not port for m in told.destinations for _, port, _ in services_of(told, m, case.network)
    ):
        wanted += [Missing(RuleSet, each) for end in ends for each in groups_before(case.network, end)]
    if not told.source_named or any(mention.beyond for mention in told.sources):
        wanted += [Missing(PublicAddress, each) for end in ends for each in _public_addresses(case, end.interface)]
    purpose = "The symptom leaves the source or the port open: the rules before the destination show what they allow."
    yield from read_missing(case, dict.fromkeys(wanted), purpose)
    flows, source_known = candidates_of(told, case.network)
    invalid = told.invalid_port if not any(mention.ports for mention in told.destinations) else ""
    complaint = Complaint(told.text, told.kind, () if invalid else flows, source_known, invalid_port=invalid)
    if complaint.flows or invalid:
        return complaint
    if told.same:
        return replace(complaint, same=told.same)
    return replace(complaint, missing=told.missing)


def _public_addresses(case: Case, interface: str) -> list[str]:
    there = case.network.get(Interface, interface)
    return [each.public_address for each in there.configurations if each.public_address] if there else []
