"""Security groups on the way of a packet, and services of the host, before which only rules for their tag stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ghost.net.address_matching import HOST_ADDRESS, METADATA_ADDRESS, parse_address
from ghost.net.admin_rules import decide
from ghost.net.effective import groups_of, missing_groups
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, name_of
from ghost.net.security import FIRST_DEFAULT_PRIORITY, Direction, Flow, SecurityGroup, SecurityRule, evaluate_gates

PLATFORM_TAGS: Final = {
    (HOST_ADDRESS, 53): "AzurePlatformDNS",
    (HOST_ADDRESS, 67): None,
    (HOST_ADDRESS, 80): None,
    (HOST_ADDRESS, 32526): None,
    (METADATA_ADDRESS, 80): "AzurePlatformIMDS",
}
"""Services of the host, and the tag by which alone a security rule can deny one."""


def platform(network: Network, here: Interface, flow: Flow, *, is_answer: bool) -> Iterator[Hop]:
    """Yield what stands before a service of the host: no route, and of the groups only rules for the service's tag."""
    served = is_answer or (flow.destination_address, flow.destination_port) in PLATFORM_TAGS
    tag = PLATFORM_TAGS.get((flow.destination_address, flow.destination_port or 0))
    if tag is not None and not is_answer:
        yield from gates(network, here, flow, "Outbound", platform_tag=tag)
    if served:
        reason = f"{flow.destination_address} is the Azure host, to which neither routes nor other rules apply"
        yield Hop("platform", here.id, "pass", reason)
    else:
        yield Hop("platform", here.id, "unknown", f"Azure documents no service of the host at {flow}")


def _targeting(groups: Iterable[SecurityGroup], tag: str) -> Iterator[SecurityGroup]:
    """Yield the groups with rules for a tag of the platform, with these rules alone; what they do not match passes."""
    for group in groups:
        named = [r for r in group.rules if tag.casefold() in map(str.casefold, r.destination_prefixes)]
        if named:
            passing = SecurityRule("no rule of the tag", FIRST_DEFAULT_PRIORITY - 1, "Outbound", "Allow")
            yield replace(group, rules=(*named, passing))


def _has_public_end(flow: Flow) -> bool:
    return any(parse_address(end).is_global for end in (flow.source_address, flow.destination_address))


def gates(
    network: Network,
    interface: Interface,
    flow: Flow,
    direction: Direction,
    *,
    platform_tag: str | None = None,
    any_source_port: bool = False,
) -> Iterator[Hop]:
    """Yield a hop for each group that a packet meets; a fresh flow only, since groups let answers pass.

    `any_source_port`: the source ports of rules do not count, as before a private endpoint.
    """
    try:
        effective = groups_of(network, interface, as_configured=platform_tag is not None)
    except Unread as unread:
        yield Hop("security_group", interface.id, "unknown", unread.reason, direction=direction, missing=unread.missing)
        return
    groups, tags = effective.groups, effective.tags
    may_skip = False
    if platform_tag is None:
        decision = decide(network, interface, flow, direction, tags)
        if decision.hop is not None:
            yield decision.hop
        if decision.skips_groups:
            return
        may_skip = decision.may_skip_groups
    if any_source_port:
        groups = tuple(replace(g, rules=tuple(replace(r, source_ports=("*",)) for r in g.rules)) for g in groups)
    if platform_tag is not None:
        groups = tuple(_targeting(groups, platform_tag))
        tags = replace(tags, others={**tags.others, platform_tag: (flow.destination_address,)})
    for gate in evaluate_gates(groups, flow, direction, tags).gates:
        hop = Hop(
            "security_group",
            gate.group.name,
            "pass" if gate.allowed else "drop",
            f"{gate.rule or 'no rule'} of {name_of(gate.group.name)} at the {gate.gate}, {direction.lower()}",
            gate.rule.name if gate.rule else None,
            None if gate.allowed else "security_rule",
            direction,
            gate.rule.priority if gate.rule else None,
            effective.references,
            flow=flow,
        )
        if not gate.certain:
            unclear = ", ".join(rule.name for rule in gate.undecided)
            missing = missing_groups(interface)
            ask = not effective.computed and missing not in network.failed
            by_port = flow.source_port is None and any(rule.source_ports != ("*",) for rule in gate.undecided)
            what = "the source port is" if by_port else "the prefixes of a tag are"
            reason = f"{unclear} of {name_of(gate.group.name)} may match too: {what} not known"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None, missing=missing if ask else None)
        elif hop.stops and effective.doubt and hop.is_default_rule and not _has_public_end(flow):
            doubt = f"a peering or a gateway may be missing, whose networks the default rules allow: {effective.doubt}"
            hop = replace(hop, doubt=doubt)
        if hop.stops and may_skip:
            reason = f"{hop.reason}, unless a security admin rule always allows it"
            hop = replace(hop, verdict="unknown", reason=reason, fault=None)
        yield hop
