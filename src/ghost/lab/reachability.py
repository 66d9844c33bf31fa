"""The outcome of a conversation between two machines of the world, and the gate that ends it.

`effective_configuration.py` covers configuration; this adds machine state (running, listening). Packet loss is not a
gate: a lossy path is still a path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ghost.lab.effective_configuration import Reach, effective_routes, gates, reach, service_tags
from ghost.lab.world import Machine, World
from ghost.net import Flow, evaluate_gates, select_route

Gate = Literal["source_power", "nsg_outbound", "route", "nsg_inbound", "destination_power", "listener", "return_route"]

Outcome = Literal["accepted", "refused", "dropped"]


@dataclass(frozen=True)
class Passage:
    """The outcome of a first packet and its answer.

    `accepted` is answered, `refused` is answered with a reset (datagrams: not at all), `dropped` is not answered.
    """

    outcome: Outcome
    gate: Gate | None
    """The gate that ends it; None if accepted."""
    reason: str

    @property
    def leaves(self) -> bool:
        """True if a capture at the source sees the packet: it runs in the guest, inside every security group."""
        return self.gate != "source_power"

    @property
    def arrives(self) -> bool:
        """True if a capture at the destination sees the packet."""
        return self.gate in (None, "listener", "return_route")


def passage(world: World, source: str, destination: str, protocol: str, port: int | None) -> Passage:
    """Return the outcome of a conversation from machine `source` to `port` of machine `destination`."""
    here, there = world.machine(source), world.machine(destination)
    config = reach(world, source, destination, protocol, port)
    if here.power != "running":
        return Passage("dropped", "source_power", f"{here.name} is {here.power}")
    if not config.outbound.allowed:
        return Passage("dropped", "nsg_outbound", config.outbound.reason)
    if not config.leaves:
        return Passage("dropped", "route", f"no route carries it: {config.source_route or 'none matches'}")
    if not config.inbound.allowed:
        return Passage("dropped", "nsg_inbound", config.inbound.reason)
    return _at_destination(there, protocol, port, config)


def _at_destination(there: Machine, protocol: str, port: int | None, config: Reach) -> Passage:
    if there.power != "running":
        return Passage("dropped", "destination_power", f"{there.name} is {there.power}")
    if not config.answers_return:
        return Passage(
            "dropped", "return_route", f"no route carries the answer: {config.return_route or 'none matches'}"
        )
    if not listens(there, protocol, port):
        return Passage("refused", "listener", f"nothing listens on {protocol} port {port} of {there.name}")
    return Passage("accepted", None, f"{protocol} port {port} of {there.name} answers")


def listens(machine: Machine, protocol: str, port: int | None) -> bool:
    """Return whether a packet from another machine finds a socket; every machine answers ICMP echo."""
    if protocol.casefold() == "icmp":
        return True
    return any(
        listener.port == port
        and listener.protocol.casefold() == protocol.casefold()
        and not listener.address.startswith("127.")
        for listener in machine.listeners
    )


def reaches_internet(world: World, source: str, address: str, protocol: str, port: int) -> bool:
    """Return whether a packet of machine `source` reaches a public address."""
    interface = world.interface_of(source)
    flow = Flow(protocol, interface.address, None, address, port)
    route = select_route(effective_routes(world, interface), address)
    allowed = evaluate_gates(gates(world, interface), flow, "Outbound", service_tags(world, interface)).allowed
    return allowed and route is not None and route.next_hop_type == "Internet"
