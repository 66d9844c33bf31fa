"""Captures of the simulated world: the frames at a machine's interfaces in a time window.

`synthesize` depends only on world, window and seed. Every conversation starts at its own time with its own randomness,
so captures of both ends show the same packets, and one started in the middle shows the rest. As with Azure's agent,
captures are taken in the guest, inside all security groups.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import ip_network
from random import Random

from ghost.lab.passages import Passage
from ghost.lab.tenant.bodies import id_of
from ghost.lab.wire.conditions import OutsideHost, ServiceFault, Traffic
from ghost.lab.wire.conversation_simulation import (
    LIFETIME_SECONDS,
    LOOKUP_RETRY_SECONDS,
    HostPair,
    TcpConversation,
    UdpExchange,
)
from ghost.lab.wire.dialogues import Sizes, dialogue, http, tls
from ghost.lab.wire.frames import NXDOMAIN, SERVFAIL, dns_answer, dns_query, pcap
from ghost.lab.wire.network_paths import See, gateway_arp_exchange
from ghost.lab.wire.scene import FIRST_PORT, PORTS, Scene, host_pair, scene_of
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_segments import LINUX
from ghost.lab.world import World
from ghost.net import HOST_ADDRESS, is_address, name_of

PACKET_BUDGET = 8000
"""Approximate maximum of packets; beyond it only every second, third, ... connection is generated."""
GATEWAY_PERIOD_SECONDS = 10.0
RESOLVER_PERIOD_SECONDS = 6.0
HOST_PERIOD_SECONDS = 8.0
STORAGE_PERIOD_SECONDS = 12.0
STORAGE_DELAY_MS = 1.2
STORAGE_HOPS = 9
SNAT_EPOCH_SECONDS = 900.0
"""At multiples of it all ports are taken to be free, so that captures of any window agree."""
ROUND_TRIPS, THINKING_SECONDS = 4, 0.012
"""About how long a connection lasts that nothing holds up."""
DNS_PORT = 53


@dataclass
class Window:
    """The frames of one capture, from `start` in microseconds since the epoch."""

    start: int
    end: int
    frames: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, moment: int, frame: bytes) -> None:
        if self.start <= moment < self.end:
            self.frames.append((moment, frame))

    def watcher(self, moment: int) -> See:
        """Return what takes the frames of a conversation that begins at this moment."""
        return lambda at, frame: self.add(moment + round(at * 1e6), frame)

    def beginnings(self, period: float, lifetime: float, randomness: str) -> Iterator[tuple[int, int, Random]]:
        """Yield number, time and randomness of every occurrence in the window of an event with a `period`."""
        first = math.floor((self.start / 1e6 - lifetime) / period)
        for number in range(first, math.ceil(self.end / 1e6 / period) + 1):
            random = Random(f"{randomness}/{number}")  # noqa: S311 -- simulation, not secrecy
            moment = round((number + random.random()) * period * 1e6)
            if self.start - lifetime * 1e6 < moment < self.end:
                yield number, moment, random


def synthesize(world: World, vm_name: str, start: datetime, seconds: float, seed: int) -> bytes:
    """Return the capture of a machine of a world, as `drawn` does."""
    return drawn(scene_of(world), name_of(id_of(world, world.machine(vm_name))), start, seconds, seed)


def drawn(scene: Scene, machine: str, start: datetime, seconds: float, seed: int) -> bytes:
    """Return a classic pcap of `seconds` from `start` (timezone-aware) at the interfaces of `machine`, ordered by
    time.
    """
    begin = round(start.timestamp() * 1e6)
    window = Window(begin, begin + round(seconds * 1e6))
    randomness = f"{scene.seed}/{seed}"
    for index, traffic in enumerate(scene.traffic):
        _add_traffic(scene, traffic, machine, window, f"{randomness}/traffic/{index}")
    _add_background(scene, machine, window, f"{randomness}/background/{machine}")
    clock = scene.conditions.clock(machine)

    def shown(moment: int) -> int:
        return moment + round(clock.offset_ms * 1000 + clock.drift_ppm * (moment - begin) / 1e6)

    return pcap(sorted(((shown(moment), frame) for moment, frame in window.frames), key=lambda frame: frame[0]))


def _add_traffic(scene: Scene, traffic: Traffic, captured: str, window: Window, randomness: str) -> None:
    if traffic.connections_per_minute <= 0:
        return
    server = traffic.name or traffic.server
    ways = scene.ways(traffic.client, server, traffic.protocol, traffic.port)
    asked = None if is_address(scene.address(server)) else _lookup(scene, traffic, server, ways[0])
    if not any(way.seen_by(captured) for way in (*ways, *([asked.way] if asked else ()))):
        return
    first_port = Random(randomness).randrange(PORTS)  # noqa: S311
    lifetime = LIFETIME_SECONDS + traffic.idle_seconds
    period = 60 / traffic.connections_per_minute
    without_port = _without_port(scene, traffic, ways[0], window, randomness)
    stride = 1 if without_port else _stride(traffic, (window.end - window.start) / 1e6, len(scene.traffic))
    for number, moment, random in window.beginnings(period, lifetime, randomness):
        if number % stride:
            continue
        simulation, sees = Simulation(), {captured: window.watcher(moment)}
        way, port = ways[number // stride % len(ways)], FIRST_PORT + (first_port + number) % PORTS
        pair = host_pair(scene, simulation, random, way, sees, port, no_port=number in without_port)
        begin = _conversation(scene, traffic, way, pair, random).start
        if asked is not None:
            pair = host_pair(scene, simulation, random, asked.way, sees, port)
            is_all = traffic.port == DNS_PORT
            begin = _query(scene, asked, pair, random, (lambda: None) if is_all else begin).start
        begin()
        simulation.run(lifetime)


def _conversation(
    scene: Scene, traffic: Traffic, way: Passage, pair: HostPair, random: Random
) -> TcpConversation | UdpExchange:
    service = _service(scene, way, random)
    if traffic.protocol == "Tcp":
        sizes, name = Sizes(traffic.request_bytes, traffic.response_bytes), traffic.name or traffic.server
        idle = traffic.idle_seconds
        turns = dialogue(traffic.port, sizes, name, random, service=service, refusal=way.refusal, idle_seconds=idle)
        return TcpConversation(pair, turns, service)
    question = random.randbytes(min(traffic.request_bytes, 1400))
    answer = random.randbytes(min(traffic.response_bytes, 1400))
    late = service.answers_after_ms / 1000 if service is not None else 0.0
    return UdpExchange(pair, question, None if service is not None and service.ends else answer, 0.002 + late)


def _service(scene: Scene, way: Passage, random: Random) -> ServiceFault | None:
    """Return how the service behaves that a connection meets; None: as it should."""
    service = scene.conditions.of_service(way.host, way.port)
    return service if service is not None and random.random() < service.share else None


def _without_port(scene: Scene, traffic: Traffic, way: Passage, window: Window, randomness: str) -> frozenset[int]:
    """Return the numbers of the connections for which all ports of translation are held by others."""
    limits = (link for link in way.links(way.forward, scene.conditions) if link.snat_ports is not None)
    if (limit := next(limits, None)) is None:
        return frozenset()
    round_trip = 2 * way.far.delay_ms / 1000 if way.far is not None else scene.rtt_ms / 1000
    lasts = limit.snat_hold_seconds + traffic.idle_seconds + ROUND_TRIPS * round_trip + THINKING_SECONDS
    epoch = (window.start / 1e6 - LIFETIME_SECONDS - traffic.idle_seconds) // SNAT_EPOCH_SECONDS * SNAT_EPOCH_SECONDS
    freed: deque[int] = deque()
    failed = set()
    period = 60 / traffic.connections_per_minute
    since = replace(window, start=round(epoch * 1e6))
    for number, moment, _ in since.beginnings(period, 0.0, randomness):
        while freed and freed[0] <= moment:
            freed.popleft()
        if len(freed) >= (limit.snat_ports or 0):
            failed.add(number)
        else:
            freed.append(moment + round(lasts * 1e6))
    return frozenset(failed)


# ---------------------------------------------------------------------------------------------------------- names


@dataclass(frozen=True)
class _Lookup:
    name: str
    way: Passage
    """To the server that the client asks."""
    addresses: tuple[str, ...]


def _lookup(scene: Scene, traffic: Traffic, name: str, then: Passage) -> _Lookup:
    """Return how a client resolves a name before it connects; `then`: what becomes of the connection."""
    is_all = traffic.port == DNS_PORT
    server = traffic.server if is_all else scene.dns_server(traffic.client)
    if not is_all and then.hop is not None and then.hop.fault == "dns_server_unreachable":
        server = then.hop.rule or server
    known = dict(scene.names).get(name)
    addresses = {seen.flow.destination_address for seen in then.forward[:1]} or ({known} if known else set())
    return _Lookup(name, scene.ways(traffic.client, server, "Udp", DNS_PORT)[0], tuple(filter(is_address, addresses)))


def _query(
    scene: Scene, asked: _Lookup, pair: HostPair, random: Random, on_answered: Callable[[], None]
) -> UdpExchange:
    service = _service(scene, asked.way, random)
    identifier = random.getrandbits(16)
    failure = service.dns if service is not None else ""
    addresses = () if failure else asked.addresses
    code = SERVFAIL if failure == "servfail" else NXDOMAIN
    answer = dns_answer(identifier, asked.name, "A", addresses, failure=code)
    late = random.uniform(0.0006, 0.004) + (service.answers_after_ms / 1000 if service is not None else 0.0)
    return UdpExchange(
        pair,
        dns_query(identifier, asked.name, "A"),
        None if failure == "silent" else answer,
        late,
        retries=LOOKUP_RETRY_SECONDS,
        on_answered=on_answered if addresses else lambda: None,
    )


def _stride(traffic: Traffic, seconds: float, flows: int) -> int:
    octets = traffic.request_bytes + traffic.response_bytes
    packets_each = 14 + 1.6 * octets / LINUX.mss
    expected = packets_each * traffic.connections_per_minute * seconds / 60
    return max(1, math.ceil(expected * flows / PACKET_BUDGET))


# ----------------------------------------------------------------------------------------------------- background


def _add_background(scene: Scene, machine: str, window: Window, randomness: str) -> None:
    """Add Azure's background traffic: ARP, DNS queries, agent calls, HTTPS."""
    interface = scene.interface(machine)
    if interface is None:
        return
    gateway = str(ip_network(scene.network.subnet_of(interface)[1].prefixes[0])[1])
    for _, moment, random in window.beginnings(GATEWAY_PERIOD_SECONDS, 1.0, f"{randomness}/arp"):
        see, mac = window.watcher(moment), scene.mac(interface.id)
        gateway_arp_exchange(see, mac, interface.address, gateway, random.uniform(40e-6, 160e-6))

    to_resolver = scene.ways(machine, scene.dns_server(machine), "Udp", DNS_PORT)[0]
    for number, moment, random in window.beginnings(RESOLVER_PERIOD_SECONDS, 10.0, f"{randomness}/dns"):
        name, address = scene.names[number % len(scene.names)]
        pair = _pair(scene, to_resolver, machine, window, moment, random, number)
        _query(scene, _Lookup(name, to_resolver, (address,)), pair, random, lambda: None).start()
        pair.simulation.run(LIFETIME_SECONDS)

    name, address = scene.names[0]
    store = OutsideHost(address, name, (443,), hops=STORAGE_HOPS, delay_ms=STORAGE_DELAY_MS)
    known = replace(scene, conditions=replace(scene.conditions, outside=(*scene.conditions.outside, store)))
    for server, port, period, sizes, talk in (
        (HOST_ADDRESS, 80, HOST_PERIOD_SECONDS, Sizes(220, 1800), http),
        (address, 443, STORAGE_PERIOD_SECONDS, Sizes(900, 6000), tls),
    ):
        way = known.ways(machine, server, "Tcp", port)[0]
        if way.outcome == "accepted":
            for number, moment, random in window.beginnings(period, LIFETIME_SECONDS, f"{randomness}/{port}"):
                pair = _pair(known, way, machine, window, moment, random, number)
                TcpConversation(pair, talk(sizes, name if port == 443 else server, random)).start()
                pair.simulation.run(LIFETIME_SECONDS)


def _pair(
    scene: Scene, way: Passage, machine: str, window: Window, moment: int, random: Random, number: int
) -> HostPair:
    port = FIRST_PORT + (7919 * (way.flow.destination_port or 0) + number) % PORTS
    return host_pair(scene, Simulation(), random, way, {machine: window.watcher(moment)}, port)
