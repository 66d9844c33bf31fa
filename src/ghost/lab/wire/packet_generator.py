"""Captures of the simulated world: the frames at a machine's interface in a time window.

`synthesize` depends only on world, window and seed. Every conversation starts at its own time with its own randomness,
so captures of both ends show the same packets, and one started in the middle shows the rest. As with Azure's agent,
captures are taken in the guest, inside all security groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from ipaddress import ip_network
from random import Random

from ghost.lab.reachability import listens, passage, reaches_internet
from ghost.lab.wire.conditions import Traffic
from ghost.lab.wire.conversation_simulation import LIFETIME_SECONDS, HostPair, TcpConversation, UdpExchange
from ghost.lab.wire.dialogues import Sizes, dialogue, http, tls
from ghost.lab.wire.frames import dns_answer, dns_query, mac_bytes, pcap
from ghost.lab.wire.network_paths import AZURE_GATEWAY_MAC, Host, Path, gateway_arp_exchange
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_endpoint import LINUX, WINDOWS
from ghost.lab.world import World
from ghost.net import HOST_ADDRESS

PACKET_BUDGET = 8000
"""Approximate maximum of packets; beyond it only every second, third, ... connection is generated."""
GATEWAY_PERIOD_SECONDS = 10.0
RESOLVER_PERIOD_SECONDS = 6.0
HOST_PERIOD_SECONDS = 8.0
STORAGE_PERIOD_SECONDS = 12.0
HOST_DELAY_SECONDS = 0.00025
STORAGE_DELAY_SECONDS = 0.0012
STORAGE_HOPS = 9


@dataclass
class Window:
    """The frames of one capture, from `start` in microseconds since the epoch."""

    start: int
    end: int
    frames: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, moment: int, frame: bytes) -> None:
        if self.start <= moment < self.end:
            self.frames.append((moment, frame))

    def beginnings(self, period: float, lifetime: float, randomness: str) -> Iterator[tuple[int, int, Random]]:
        """Yield number, time and randomness of every occurrence in the window of an event with a `period`."""
        first = math.floor((self.start / 1e6 - lifetime) / period)
        for number in range(first, math.ceil(self.end / 1e6 / period) + 1):
            random = Random(f"{randomness}/{number}")  # noqa: S311 -- simulation, not secrecy
            moment = round((number + random.random()) * period * 1e6)
            if self.start - lifetime * 1e6 < moment < self.end:
                yield number, moment, random


def synthesize(world: World, vm_name: str, start: datetime, seconds: float, seed: int) -> bytes:
    """Return a classic pcap of `seconds` from `start` (timezone-aware) at the interface of `vm_name`, ordered by
    time.
    """
    begin = round(start.timestamp() * 1e6)
    window = Window(begin, begin + round(seconds * 1e6))
    name = world.machine(vm_name).name
    randomness = f"{world.seed}/{seed}"
    for index, traffic in enumerate(world.traffic):
        if name in (world.machine(traffic.client).name, world.machine(traffic.server).name):
            _add_traffic(world, traffic, name, window, f"{randomness}/traffic/{index}")
    _add_background(world, name, window, f"{randomness}/background/{name}")
    return pcap(sorted(window.frames, key=lambda frame: frame[0]))


def _add_traffic(world: World, traffic: Traffic, captured: str, window: Window, randomness: str) -> None:
    client, server = world.machine(traffic.client), world.machine(traffic.server)
    fate = passage(world, client.name, server.name, traffic.protocol, traffic.port)
    if not fate.leaves or traffic.connections_per_minute <= 0:
        return
    delay = world.rtt_ms / 2000
    lost_forward, lost_backward = world.loss(client.name, server.name), world.loss(server.name, client.name)
    answers_pass = fate.gate != "return_route"
    stride = _stride(traffic, (window.end - window.start) / 1e6, len(world.traffic))
    first_port = Random(randomness).randrange(28_000)  # noqa: S311
    for number, moment, random in window.beginnings(60 / traffic.connections_per_minute, LIFETIME_SECONDS, randomness):
        if number % stride:
            continue
        simulation = Simulation()
        here = _host(world, client.name, random, captured, window, moment)
        there = _host(world, server.name, random, captured, window, moment)
        meeting = HostPair(
            simulation,
            random,
            here,
            there,
            client_port=32_768 + (first_port + number) % 28_000,
            server_port=traffic.port,
            forward=Path(simulation, random, here, there, delay, delay / 20, lost_forward, open=fate.arrives),
            backward=Path(simulation, random, there, here, delay, delay / 20, lost_backward, open=answers_pass),
            listening=listens(server, traffic.protocol, traffic.port),
        )
        if traffic.protocol == "Tcp":
            sizes = Sizes(traffic.request_bytes, traffic.response_bytes)
            TcpConversation(meeting, dialogue(traffic.port, sizes, server.name, random)).run()
        else:
            question = random.randbytes(min(traffic.request_bytes, 1400))
            answer = random.randbytes(min(traffic.response_bytes, 1400))
            UdpExchange(meeting, question, answer, 0.002).run()


def _stride(traffic: Traffic, seconds: float, flows: int) -> int:
    octets = traffic.request_bytes + traffic.response_bytes
    packets_each = 14 + 1.6 * octets / LINUX.mss
    expected = packets_each * traffic.connections_per_minute * seconds / 60
    return max(1, math.ceil(expected * flows / PACKET_BUDGET))


def _host(world: World, machine: str, random: Random, captured: str, window: Window, moment: int) -> Host:
    interface = world.interface_of(machine)
    stack = WINDOWS if world.machine(machine).os == "Windows" else LINUX
    host = Host(interface.address, mac_bytes(interface.mac), stack, identification=random.getrandbits(16))
    if machine == captured:
        host.sees = lambda at, frame: window.add(moment + round(at * 1e6), frame)
    return host


def _add_background(world: World, machine: str, window: Window, randomness: str) -> None:
    """Add Azure's background traffic: ARP, DNS queries, agent calls, HTTPS."""
    network = ip_network(world.subnet_of(world.interface_of(machine)).prefix)
    gateway = str(network[1])
    for _, moment, random in window.beginnings(GATEWAY_PERIOD_SECONDS, 1.0, f"{randomness}/arp"):
        host = _host(world, machine, random, machine, window, moment)
        gateway_arp_exchange(Simulation(), host, gateway, random.uniform(40e-6, 160e-6))

    names = _names(world)
    for number, moment, random in window.beginnings(RESOLVER_PERIOD_SECONDS, 10.0, f"{randomness}/dns"):
        name, address = names[number % len(names)]
        meeting = _outside(world, machine, random, window, moment, number, HOST_ADDRESS, 53, HOST_DELAY_SECONDS, 0)
        identifier = random.getrandbits(16)
        question, answer = dns_query(identifier, name, "A"), dns_answer(identifier, name, "A", [address])
        UdpExchange(meeting, question, answer, random.uniform(0.0006, 0.004)).run()

    for number, moment, random in window.beginnings(HOST_PERIOD_SECONDS, LIFETIME_SECONDS, f"{randomness}/agent"):
        meeting = _outside(world, machine, random, window, moment, number, HOST_ADDRESS, 80, HOST_DELAY_SECONDS, 0)
        TcpConversation(meeting, http(Sizes(220, 1800), HOST_ADDRESS, random)).run()

    name, address = names[0]
    if reaches_internet(world, machine, address, "Tcp", 443):
        for number, moment, random in window.beginnings(
            STORAGE_PERIOD_SECONDS, LIFETIME_SECONDS, f"{randomness}/https"
        ):
            delay = STORAGE_DELAY_SECONDS
            meeting = _outside(world, machine, random, window, moment, number, address, 443, delay, STORAGE_HOPS)
            TcpConversation(meeting, tls(Sizes(900, 6000), name, random)).run()


def _outside(
    world: World,
    machine: str,
    random: Random,
    window: Window,
    moment: int,
    number: int,
    address: str,
    port: int,
    delay: float,
    hops: int,
) -> HostPair:
    """Add a machine's conversation with a healthy platform service."""
    simulation = Simulation()
    here = _host(world, machine, random, machine, window, moment)
    there = Host(address, AZURE_GATEWAY_MAC, LINUX, identification=random.getrandbits(16))
    return HostPair(
        simulation,
        random,
        here,
        there,
        client_port=32_768 + (7919 * port + number) % 28_000,
        server_port=port,
        forward=Path(simulation, random, here, there, delay, delay / 20, hops=hops),
        backward=Path(simulation, random, there, here, delay, delay / 20, hops=hops),
        listening=True,
    )


def _names(world: World) -> list[tuple[str, str]]:
    """Return names that machines resolve; those unknown to the local machine get a derived address."""
    known = {entry.name: entry.address for entry in world.local.names}
    names = [f"{account.name}.blob.core.windows.net" for account in world.storage_accounts]
    return [(name, known.get(name) or _public_address(name)) for name in (*names, "management.azure.com")]


def _public_address(name: str) -> str:
    third, fourth = sha256(name.encode()).digest()[:2]
    return f"20.60.{third}.{max(fourth, 1) % 255}"
