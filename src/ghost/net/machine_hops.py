"""What a machine does with a packet on its way: whether it runs, forwards, and what its guest decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ghost.net.address_matching import parse_address
from ghost.net.guest import Hook, State
from ghost.net.guest_hops import FORWARD, INPUT, OUTPUT, guest_decisions, guest_of
from ghost.net.hops import Hop, Sight
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, Machine, ScaleSetMachines, key, name_of, owner_in
from ghost.net.security import Flow


def forwarding(network: Network, appliance: Interface, flow: Flow, state: State) -> Iterator[Hop]:
    """Yield what an appliance does with a packet that is not for it."""
    yield from machine(network, appliance, flow)
    hop = Hop("appliance", appliance.id, "pass", f"{appliance.name} forwards", references=(appliance.reference,))
    if not appliance.ip_forwarding:
        reason = f"IP forwarding is off at {appliance.name}: Azure drops packets that are not addressed to it"
        yield replace(hop, verdict="drop", reason=reason, rule="enableIPForwarding", fault="ip_forwarding_off")
        return
    inside = guest_of(network, appliance)
    if inside is None or inside.forwards is None:
        yield replace(hop, verdict="unknown", reason=f"Azure does not show what {appliance.name} forwards")
    elif not inside.forwards:
        reason = f"{inside.name} forwards nothing (net.ipv4.ip_forward is 0)"
        hop = replace(hop, references=(inside.reference,))
        yield replace(hop, verdict="drop", reason=reason, rule="net.ipv4.ip_forward", fault="guest_not_forwarding")
    else:
        yield hop
        yield from guest(network, appliance, flow, FORWARD, state)


def interfaces_of_machine(network: Network, interface: Interface) -> int:
    """Return how many interfaces the machine of an interface has."""
    place = ("interfaces of machine", key(interface.machine or interface.id))
    if place not in network.derived:
        known = network.all(Interface).values()
        network.derived[place] = sum(key(each.machine or each.id) == place[1] for each in known)
    number: int = network.derived[place]
    return number


def is_itself(network: Network, here: Interface, address: str) -> bool:
    """Return whether an address is of the same machine, which then sends the packet to itself."""
    others = network.interfaces_with(address) if here.machine is not None else []
    return (
        here.has(address)
        or parse_address(address).is_loopback
        or any(key(other.machine or "") == key(here.machine or "") for other in others)
    )


def to_itself(network: Network, here: Interface, flow: Flow) -> Iterator[Hop]:
    """Yield what a machine's packet to itself meets: nothing of Azure's, since it does not leave the guest."""
    yield from machine(network, here)
    yield Hop(
        "guest", here.machine or here.id, "pass", f"{flow.destination_address} is its own address: no packet leaves it"
    )
    yield from guest(network, here, flow, OUTPUT, loopback=True)
    yield from guest(network, here, flow, INPUT, loopback=True)
    for hooks in (OUTPUT, INPUT):
        for hop in guest(network, here, flow.reversed(), hooks, "ESTABLISHED", loopback=True):
            yield replace(hop, leg="return")


def guest(
    network: Network,
    interface: Interface,
    flow: Flow,
    hooks: Sequence[Hook],
    state: State = "NEW",
    *,
    loopback: bool = False,
) -> Iterator[Hop]:
    """Yield what the guest decides, where it was read."""
    inside = guest_of(network, interface)
    own = interface.address if interface.configurations else "0.0.0.0"  # noqa: S104 - a gateway's, which has no guest
    decisions = guest_decisions(inside, flow, hooks, state, own=own, loopback=loopback) if inside is not None else ()
    for decided in decisions:
        yield Hop(
            "guest",
            interface.machine or interface.id,
            decided.verdict,
            decided.reason,
            decided.rule,
            decided.fault,
            references=(decided.reference,),
            flow=decided.flow,
        )


def machine(network: Network, interface: Interface, flow: Flow | None = None) -> Iterator[Hop]:
    """Yield whether the machine runs that meets the packet; None: the packet does not come to its interface."""
    if interface.machine is None:
        return
    sight = Sight(interface.id, flow) if flow is not None else None
    hop = Hop("machine", interface.machine, "pass", f"{name_of(interface.machine)} runs", sight=sight)
    try:
        found = _machine(network, interface.machine)
    except Unread as unread:
        yield replace(hop, verdict="unknown", reason=unread.reason, missing=unread.missing)
        return
    hop = replace(hop, references=(found.reference,))
    if found.power is None:
        yield replace(hop, verdict="unknown", reason=f"the power state of {found.name} was not read")
    elif found.power != "running":
        yield replace(hop, verdict="drop", reason=f"{found.name} is {found.power}", fault="machine_stopped")
    else:
        yield hop


def _machine(network: Network, machine_id: str) -> Machine:
    """Return the machine; an instance of a scale set is read with the others. Raises `Unread`."""
    scale_set = owner_in(machine_id, "virtualMachineScaleSets")
    if scale_set is not None and network.get(Machine, machine_id) is None:
        network.one(ScaleSetMachines, scale_set)
    return network.one(Machine, machine_id)
