"""What a flow of a scenario is like in a world: what `walk` decides, and what people say about its connections."""

from __future__ import annotations

from dataclasses import dataclass

from ghost.lab.passages import UNTOLD, dns_server, experience, ways_of
from ghost.lab.tenant import interface_id
from ghost.lab.truth import FlowEnds
from ghost.lab.world import World
from ghost.net import Flow, Interface, explain, is_address, walk

UNKNOWN = "unknown"


@dataclass(frozen=True)
class FlowSight:
    experience: str
    """As `NamedFlow.expect`, or `unknown`."""
    verdict: str
    """Of the walk: pass, drop, reject or unknown."""
    rule: str | None = None
    """What decides a drop or reject."""
    faults: tuple[dict[str, str], ...] = ()
    """Kind and resource of what stops it."""
    why: str = ""


def look(world: World, flow: FlowEnds) -> FlowSight:
    """Return what a flow is like. Raises `LabError` where the world is none of Azure's."""
    network = world.network
    machines = {machine.name.casefold(): machine.name for machine in world.machines}
    ends = [machines.get(end.casefold()) for end in (flow.source, flow.destination)]
    source, destination = (
        world.address_of(machine) if machine else end
        for machine, end in zip(ends, (flow.source, flow.destination), strict=True)
    )
    sender = interface_id(world, world.machine(ends[0])) if ends[0] else None
    asked = Flow(flow.protocol, source, None, destination, flow.port)
    walked = walk(network, asked, source=sender)
    ways = ways_of(network, asked, world.conditions, source=sender)
    lookup = []
    if sender and not is_address(destination):
        server = dns_server(network, network.one(Interface, sender))
        lookup = [*ways_of(network, Flow("Udp", source, None, server, 53), world.conditions, source=sender)]
    stop = walked.first_stop
    split = {"load_balancer"} if walked.others else set()  # Each way that it may take is in `ways`.
    untold = [hop for hop in walked.hops if hop.verdict == UNKNOWN and hop.kind not in UNTOLD | split]
    if stop is None and untold:
        return FlowSight(UNKNOWN, UNKNOWN, why=untold[0].reason)
    verdict = {"passes": "pass", "unknown": UNKNOWN}.get(walked.outcome) or (stop.verdict if stop else "drop")
    stops = [fault.hop for fault in explain(network, asked, source=sender)]
    stops += [hop for each in (walked, *walked.others) for hop in each.hops if hop.stops and hop not in stops]
    found = tuple({"kind": hop.fault or hop.kind, "resource": hop.resource} for hop in stops)
    why = stop.reason if stop else "; ".join(way.reason for way in ways)
    return FlowSight(experience(ways, world.conditions, lookup), verdict, stop.rule if stop else None, found, why)
