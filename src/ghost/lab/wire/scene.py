"""What the wire needs of a world, and the paths of one conversation in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ghost.lab.passages import Passage, Sighting, dns_server, public_address, ways_of
from ghost.lab.tenant.bodies import id_of, interface_id
from ghost.lab.wire.conditions import Conditions, OutsideHost, Traffic
from ghost.lab.wire.conversation_simulation import HostPair
from ghost.lab.wire.frames import mac_bytes
from ghost.lab.wire.network_paths import Ends, Host, Link, Middlebox, Path, See, Station
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_segments import LINUX, WINDOWS, Stack
from ghost.lab.world import World
from ghost.net import HOST_ADDRESS, Flow, Interface, Network, name_of

FIRST_PORT, PORTS = 32_768, 28_000
"""Of clients."""
JITTER = 1 / 20
"""Of the delay."""


@dataclass(frozen=True)
class Scene:
    network: Network
    interfaces: Mapping[str, str]
    """Ids, by name of the machine."""
    macs: Mapping[str, str] = field(default_factory=dict)
    """By folded id of the interface."""
    windows: frozenset[str] = frozenset()
    """Names of the machines that run Windows."""
    traffic: tuple[Traffic, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    names: tuple[tuple[str, str], ...] = ()
    """What machines resolve all the time, with the addresses."""
    rtt_ms: float = 1.2
    seed: int = 1

    def interface(self, machine: str) -> Interface | None:
        return self.network.get(Interface, self.interfaces.get(machine))

    def address(self, host: str) -> str:
        """Return the address of a machine; that of another host is its name here."""
        interface = self.interface(host)
        return interface.address if interface is not None else host

    def mac(self, interface: str) -> bytes:
        known = self.macs.get(interface.casefold())
        return mac_bytes(known) if known else b"\x00\x0d\x3a" + Random(interface.casefold()).randbytes(3)  # noqa: S311

    def ways(self, client: str, destination: str, protocol: str, port: int) -> tuple[Passage, ...]:
        """Return what becomes of connections of a machine or outside host to an address, a machine or a name."""
        source = self.interfaces.get(client)
        flow = Flow(protocol, self.address(client), FIRST_PORT, self.address(destination), port)
        return ways_of(self.network, flow, self.conditions, source=source)

    def stack(self, machine: str) -> Stack:
        return WINDOWS if machine in self.windows else LINUX

    def dns_server(self, machine: str) -> str:
        interface = self.interface(machine)
        return HOST_ADDRESS if interface is None else dns_server(self.network, interface)


def scene_of(world: World) -> Scene:
    """Return the scene of a world, in which machines are called as in their ids."""
    called = {vm.name.casefold(): name_of(id_of(world, vm)) for vm in world.machines}

    def known(host: str) -> str:
        return called.get(host.casefold(), host)

    machines = [(known(vm.name), interface_id(world, vm), vm) for vm in world.machines]
    local = {entry.name: entry.address for entry in world.local.names}
    names = [*(f"{account.name}.blob.core.windows.net" for account in world.storage_accounts), "management.azure.com"]
    return Scene(
        network=world.network,
        interfaces={name: nic for name, nic, _ in machines},
        macs={nic.casefold(): world.interface(vm.interface).mac for _, nic, vm in machines},
        windows=frozenset(name for name, _, vm in machines if vm.os == "Windows"),
        traffic=tuple(replace(each, client=known(each.client), server=known(each.server)) for each in world.traffic),
        conditions=Conditions(
            tuple(
                replace(each, source=known(each.source), destination=known(each.destination)) for each in world.faults
            ),
            tuple(replace(each, machine=known(each.machine)) for each in world.services),
            world.outside,
            tuple(replace(each, machine=known(each.machine)) for each in world.clocks),
        ),
        names=tuple((name, local.get(name) or public_address(name)) for name in names),
        rtt_ms=world.rtt_ms,
        seed=world.seed,
    )


def host_pair(
    scene: Scene,
    simulation: Simulation,
    random: Random,
    way: Passage,
    sees: Mapping[str, See],
    client_port: int,
    *,
    no_port: bool = False,
) -> HostPair:
    """Return the hosts of a conversation with the paths between them.

    `sees`: of each captured machine, by name. `no_port`: what translates the connection has no port left for it.
    """
    source, destination = (
        _outside(scene, way, address) for address in (way.flow.source_address, way.flow.destination_address)
    )
    is_ours = bool(way.forward) and way.forward[0].outgoing, bool(way.forward) and not way.forward[-1].outgoing
    client = scene.stack(way.forward[0].name) if is_ours[0] else replace(LINUX, ttl=source.ttl)
    server = scene.stack(way.forward[-1].name) if is_ours[1] else replace(LINUX, ttl=destination.ttl)
    answered = way.outcome in ("accepted", "refused", "rejected")
    forward = Path(
        simulation,
        random,
        Host(client, random.getrandbits(16)),
        tuple(_station(scene, each, _ends(each.flow, way.flow, client_port), sees) for each in way.forward),
        _links(scene, way, way.forward, source, destination, no_port=no_port),
        delivers=answered or way.outcome == "answer lost",
        hops=0 if is_ours[0] else source.hops,
    )
    backward = Path(
        simulation,
        random,
        Host(server, random.getrandbits(16)),
        tuple(
            _station(scene, each, _ends(each.flow.reversed(), way.flow, client_port).reversed(), sees)
            for each in way.backward
        ),
        _links(scene, way, way.backward, destination, source),
        delivers=answered,
        hops=0 if is_ours[1] else destination.hops,
    )
    forward.opposite, backward.opposite = backward, forward
    _join_middleboxes(forward.links, backward.links)
    return HostPair(simulation, random, forward, backward, way.answers_with or None, _refuser(scene, way))


def _outside(scene: Scene, way: Passage, address: str) -> OutsideHost:
    """Return the host of an address, if it is outside."""
    at_the_end = way.far if address == way.flow.destination_address else None
    return at_the_end or scene.conditions.outside_host(address) or OutsideHost(address)


def _refuser(scene: Scene, way: Passage) -> str:
    """Return the address of a device that rejects packets for others; empty if the destination does itself."""
    last = way.forward[-1] if way.forward and way.outcome == "rejected" else None
    interface = scene.network.get(Interface, last.interface) if last is not None else None
    if interface is None or last is None or interface.has(last.flow.destination_address):
        return ""
    return interface.address


def _ends(flow: Flow, asked: Flow, client_port: int) -> Ends:
    """Return addresses and ports of a packet toward the server; what translates the client takes another port."""
    translated = flow.source_address != asked.source_address
    port = 1024 + (client_port * 7919) % 64_000 if translated else client_port
    return Ends(
        flow.source_address, flow.destination_address, port, flow.destination_port or asked.destination_port or 0
    )


def _station(scene: Scene, sighting: Sighting, ends: Ends, sees: Mapping[str, See]) -> Station:
    return Station(ends, scene.mac(sighting.interface), sighting.outgoing, sees.get(sighting.name))


def _links(
    scene: Scene,
    way: Passage,
    sightings: Sequence[Sighting],
    begins: OutsideHost,
    ends: OutsideHost,
    *,
    no_port: bool = False,
) -> tuple[Link, ...]:
    """Return the links of a direction; the first comes from `begins`, the last leads to `ends`, where these are met."""
    faults = way.links(sightings, scene.conditions)
    delays = [scene.rtt_ms / 2000] * len(faults)
    if sightings and not sightings[0].outgoing:
        delays[0] = begins.delay_ms / 1000
    if sightings and sightings[-1].outgoing:
        delays[-1] = ends.delay_ms / 1000
    if no_port:
        faults = tuple(replace(each, loss=1.0) if each.snat_ports is not None else each for each in faults)
    return tuple(Link(delay, delay * JITTER, fault) for delay, fault in zip(delays, faults, strict=True))


def _join_middleboxes(forward: Sequence[Link], backward: Sequence[Link]) -> None:
    """Let a device on a link see both directions of the connection."""
    for here, there in ((forward, backward), (backward, forward)):
        for number, link in enumerate(here):
            if link.fault.idle_seconds is not None or link.fault.resets_on:
                link.middlebox = Middlebox(link.fault)
                there[max(-1 - number, -len(there))].middlebox = link.middlebox
