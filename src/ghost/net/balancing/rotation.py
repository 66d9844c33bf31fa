"""What a front end does with a packet: its rule, the members whose probe passes, and to which the packet may go.

A member is taken out only for certain: it does not run, or something drops the probe's own packet. What an HTTP probe
is answered, Azure's metrics tell alone: where its packets pass, it counts as passed.

https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Final, Literal

from ghost.net.address_matching import HOST_ADDRESS
from ghost.net.balancing.changes import AddBalancingRule, SetProbePort
from ghost.net.balancing.front_ends import Backend, Entrance, backends_of, members_of, rule_for
from ghost.net.balancing.resources import BalancingRule, InboundNatRule, LoadBalancer, Probe
from ghost.net.gate_hops import gates
from ghost.net.guest_hops import INPUT, OUTPUT, guest_of
from ghost.net.hops import Hop, Walk
from ghost.net.machine_hops import guest, machine
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, VirtualNetwork, key
from ghost.net.security import Flow

Rule = BalancingRule | InboundNatRule
Health = Literal["in", "out", "unknown"]
MAX_NAMED: Final = 3


@dataclass(frozen=True)
class Target:
    """A member that the packet may go to, and the packet as it arrives there."""

    interface: Interface
    flow: Flow
    member: str = ""
    needs_group: bool = False
    """Whether nothing is let in where no security group is: from the internet to the Standard SKU."""


@dataclass(frozen=True)
class Balanced:
    """What an entrance does with a packet, and where the packet may go: nowhere, to one, or to one of several."""

    hops: tuple[Hop, ...]
    targets: tuple[Target, ...] = ()
    choice: str = ""
    """What is hashed: packets that meet the same choice, in either direction, go to the same target."""


@dataclass(frozen=True)
class MemberHealth:
    """What the probe of a rule says of a member."""

    front_end: str
    """The id."""
    port: int
    probe_port: int
    address: str
    health: Health


def health_of(network: Network, balancer: LoadBalancer) -> Iterator[MemberHealth]:
    """Yield the health of each member of each rule that has a probe."""
    for rule in balancer.rules:
        probe = next((probe for probe in balancer.probes if key(rule.probe or "") == key(probe.id)), None)
        for backend in backends_of(network, members_of(balancer, rule))[0] if probe is not None else ():
            judged = _judged(network, backend, probe)
            yield MemberHealth(rule.front_end, rule.port, probe.port if probe else 0, backend.address, judged.health)


@dataclass(frozen=True)
class _Judged:
    backend: Backend
    health: Health
    cause: Hop | None = None
    """What drops the probe, or is not known of its way."""

    def __str__(self) -> str:
        why = self.cause.reason if self.cause else "its administrative state is down"
        return f"{self.backend.name} is {self.health}: {why}"


def balance(network: Network, entrance: Entrance, flow: Flow, sender: Interface | None = None) -> Balanced:
    """Return the hops of a front end and the members that may take the flow.

    `flow`: to the front end; or to anything else, where a route leads to it. `sender`: the interface that sent it.
    """
    balancer, front_end = entrance.balancer, entrance.front_end
    hop = Hop("load_balancer", balancer.id, "unknown", "", references=(balancer.reference,))
    if unclear := _unclear(entrance, flow) or _too_far(network, entrance, sender):
        return Balanced((replace(hop, reason=f"{balancer.name}: {unclear}"),))
    at = f"{flow.protocol.casefold()} port {flow.destination_port}"
    rule = rule_for(entrance, flow)
    if rule is None:
        reason = f"no rule of {balancer.name} accepts {at} at this front end"
        mends = (AddBalancingRule(balancer.id, front_end.id, flow.protocol, flow.destination_port or 0),)
        return Balanced((replace(hop, verdict="drop", reason=reason, fault="balancer_no_rule", mends=mends),))
    hop = replace(hop, rule=rule.name)
    if isinstance(rule, InboundNatRule) and not (rule.configuration or rule.pool):
        return Balanced(
            (replace(hop, reason=f"the instance to which {rule.name} of {balancer.name} sends {at} is not known"),)
        )
    members = members_of(balancer, rule)
    if not members:
        reason = f"the pool of {rule.name} of {balancer.name} is empty"
        return Balanced((replace(hop, verdict="drop", reason=reason, fault="balancer_pool_empty"),))
    try:
        backends, unfound = backends_of(network, members)
    except Unread as unread:
        return Balanced((replace(hop, reason=f"members of {balancer.name}: {unread.reason}", missing=unread.missing),))
    probe = next(
        (p for p in balancer.probes if isinstance(rule, BalancingRule) and key(rule.probe or "") == key(p.id)), None
    )
    judged = [_judged(network, backend, probe) for backend in backends]
    taking = [each for each in judged if each.health != "out"]
    if not taking and not unfound:
        if probe is None or not probe.all_up_if_none:
            in_vain = len(judged) > 1 and all(_serves(network, each, rule) for each in judged)
            nobody = _none_healthy(hop, judged)
            if in_vain and probe is not None:
                nobody = replace(nobody, mends=(SetProbePort(balancer.id, probe.id, rule.backend_port),))
            return Balanced((*_causes(() if in_vain else judged), nobody))
        taking = judged
    hops = [_rewritten(hop, judged, taking, probe, len(unfound))]
    addressed = front_end.address in (None, flow.destination_address)
    if (
        addressed
        and rule.floating_ip
        and (doubt := _floating(network, front_end.address or flow.destination_address, taking))
    ):
        hops.append(replace(hop, reason=doubt))
    if unfound:
        return Balanced(tuple(hops))
    targets = [_target(entrance, rule, flow, each.backend, addressed) for each in taking]
    if addressed and sender is not None:
        targets, hairpin = _without_itself(hop, rule.floating_ip or front_end.is_public, targets, sender)
        hops += hairpin
    return Balanced(tuple(hops), tuple(targets), f"{front_end.id} {rule.name}")


def _unclear(entrance: Entrance, flow: Flow) -> str | None:
    """Return what of a front end the model does not know."""
    if entrance.front_end.gateway_balancer is not None:
        return "a gateway load balancer sends its packets through appliances first"
    if entrance.balancer.tier.casefold() == "global":
        return "it sends packets to the load balancers of regions"
    if not flow.has_ports:
        return f"rules are for TCP and UDP; how they treat {flow.protocol.upper()} is not known"
    if flow.destination_port is None and rule_for(entrance, flow) is None:
        return "the destination port of the packet is not known"
    return None


def _too_far(network: Network, entrance: Entrance, sender: Interface | None) -> str | None:
    """Return that a peering between regions does not carry packets to a front end of the Basic SKU."""
    subnet = entrance.front_end.subnet
    if sender is None or subnet is None or entrance.balancer.is_standard:
        return None
    home = network.one(VirtualNetwork, subnet.partition("/subnets/")[0])
    regions = {each.location for each in (home, network.subnet_of(sender)[0])} - {""}
    return "a front end of the Basic SKU is not reached from another region" if len(regions) > 1 else None


def _judged(network: Network, backend: Backend, probe: Probe | None) -> _Judged:
    """Return whether a member is in rotation. An administrative state counts only where there is a probe."""
    if probe is None or backend.admin_state == "up":
        return _Judged(backend, "in")
    if backend.admin_state == "down":
        return _Judged(backend, "out")
    place = ("probe", f"{key(backend.interface.id)} {backend.address} {probe.port}")
    if place not in network.derived:
        met = list(_probed(network, backend, probe.port))
        stop = next((hop for hop in met if hop.stops), None)
        unknown = next((hop for hop in met if hop.verdict == "unknown"), None)
        network.derived[place] = ("out" if stop else "unknown" if unknown else "in", stop or unknown)
    return _Judged(backend, *network.derived[place])


def _probed(network: Network, backend: Backend, port: int) -> Iterator[Hop]:
    """Yield what a probe's packet and its answer meet: the host sends it, so that no route leads to the member."""
    flow = Flow("Tcp", HOST_ADDRESS, None, backend.address, port)
    interface = backend.interface
    yield from machine(network, interface)
    for hop in (
        *gates(network, interface, flow, "Inbound"),
        *guest(network, interface, flow, INPUT),
        *guest(network, interface, flow.reversed(), OUTPUT, "ESTABLISHED"),
    ):
        yield replace(hop, reason=f"the probe of {backend.name}, tcp port {port} from {HOST_ADDRESS}: {hop.reason}")


def _serves(network: Network, member: _Judged, rule: Rule) -> bool:
    """Return whether a member takes what the rule sends it, though nothing listens where the probe asks."""
    inside = guest_of(network, member.backend.interface)
    if member.cause is None or member.cause.fault != "not_listening" or inside is None:
        return False
    return any(name == "tcp" and socket.port == rule.backend_port for name, socket in inside.listeners or ())


def _causes(judged: Iterable[_Judged]) -> list[Hop]:
    """Return what drops the probes, each cause once. Who sent the packet gets no answer of a probe's refusal."""
    causes = [replace(each.cause, verdict="drop") for each in judged if each.cause is not None]
    return list({(cause.kind, cause.resource, cause.rule): cause for cause in reversed(causes)}.values())[::-1]


def _none_healthy(hop: Hop, judged: Sequence[_Judged]) -> Hop:
    reason = f"no member for {hop.rule} is healthy: {'; '.join(map(str, judged[:MAX_NAMED]))}"
    told = dict.fromkeys((*hop.references, *(each for m in judged if m.cause for each in m.cause.references)))
    return replace(hop, verdict="drop", reason=reason, fault="balancer_no_healthy_member", references=tuple(told))


def _rewritten(
    hop: Hop, judged: Sequence[_Judged], taking: Sequence[_Judged], probe: Probe | None, unfound: int
) -> Hop:
    """Return the hop that says to whom the packet may go, and who is out; unknown if nobody is in for certain."""
    out = [each for each in judged if each.health == "out"]
    reason = f"{hop.rule}: to {', '.join(each.backend.name for each in taking[:MAX_NAMED]) or 'no known member'}"
    reason += f", {len(taking)} of {len(judged) + unfound} members" if len(judged) + unfound > 1 else ""
    reason += f", probe {probe.protocol.casefold()} port {probe.port}{probe.path or ''}" if probe is not None else ""
    reason += "".join(f"; {each}" for each in out[:MAX_NAMED])
    if probe is not None and probe.protocol.casefold() != "tcp" and taking:
        reason += f"; the packets of the {probe.protocol.upper()} probe pass; only Azure's metrics show its answer"
    if unfound:
        return replace(hop, reason=f"{reason}; the interface of {unfound} was not found")
    if all(each.health == "unknown" for each in taking):
        missing = next((each.cause.missing for each in taking if each.cause and each.cause.missing), None)
        return replace(hop, reason=f"{reason}; {taking[0].cause.reason if taking[0].cause else ''}", missing=missing)
    return replace(hop, verdict="rewrite", reason=reason)


def _target(entrance: Entrance, rule: Rule, flow: Flow, backend: Backend, addressed: bool) -> Target:
    """Return a member and the packet as it arrives there; unchanged where a route led it to the front end."""
    if addressed:
        address = flow.destination_address if rule.floating_ip else backend.address
        flow = replace(flow, destination_address=address, destination_port=rule.backend_port or flow.destination_port)
    member = f"{key(backend.interface.id)} {backend.address}"
    return Target(backend.interface, flow, member, entrance.front_end.is_public and entrance.balancer.is_standard)


def _floating(network: Network, front: str, taking: Iterable[_Judged]) -> str | None:
    """Return a doubt about floating IP: the guest needs the front end's address, which only its sockets show."""
    for each in taking:
        inside = guest_of(network, each.backend.interface)
        sockets = inside.listeners if inside is not None and inside.listeners is not None else ()
        if not any(listener.address == ip_address(front) for _, listener in sockets):
            return f"floating IP: whether the guest of {each.backend.name} has {front} on a loopback is not known"
    return None


def _without_itself(
    hop: Hop, unclear: bool, targets: list[Target], sender: Interface
) -> tuple[list[Target], list[Hop]]:
    """Return the targets that are not the sender, and the hop of a packet that comes back to it."""
    others = [each for each in targets if key(each.interface.id) != key(sender.id)]
    if len(others) == len(targets):
        return targets, []
    what = f"{hop.rule} sends the packet back to {sender.name}, whose guest does not recognise it as its own"
    if unclear or others:
        return others, [replace(hop, reason=f"1 of {len(targets)} times {what}" if others else f"perhaps {what}")]
    return [], [replace(hop, verdict="drop", reason=what, fault="balancer_hairpin")]


def of_each(balanced: Balanced, walks: Sequence[Walk]) -> Walk:
    """Return the walk of a packet that any of the members may take: passes or is blocked only if it does at each."""
    blocked = [each for each in walks if each.outcome == "blocked"]
    if not blocked or len(blocked) == len(walks):
        shown = next((each for each in walks if each.outcome == "unknown"), walks[0])
        return replace(shown, others=(*shown.others, *(each for each in walks if each is not shown)))
    shown = next(each for each in walks if each.outcome != "blocked")
    stop = blocked[0].blocker
    doubt = f"; intermittent, at {len(blocked)} of {len(walks)}: {stop.reason if stop else ''}"
    place = balanced.hops[0].kind, balanced.hops[0].resource, balanced.hops[0].rule
    hops = list(shown.hops)
    at = next(n for n, hop in enumerate(hops) if (hop.kind, hop.resource, hop.rule) == place)
    hops[at] = replace(hops[at], verdict="unknown", reason=hops[at].reason + doubt)
    others = (*shown.others, *(each for each in walks if each is not shown))
    return replace(shown, hops=tuple(hops), others=others)
