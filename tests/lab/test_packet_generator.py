"""Captures of the simulated world, read back plainly, octet by octet."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ghost.lab import World, load_scenario
from ghost.lab.wire.conditions import Traffic, WireFault
from ghost.lab.wire.dialogues import PROTOCOLS, Sizes, Turn, dialogue
from ghost.lab.wire.frames import ACK, FIN, RST, SYN, checksum
from ghost.lab.wire.packet_generator import synthesize
from ghost.lab.wire.simulation import Simulation
from ghost.lab.wire.tcp_endpoint import Endpoint
from ghost.lab.wire.tcp_segments import LINUX, WINDOWS, Segment, Stack
from ghost.lab.world import Listener, Machine
from tests.exhaustive import examples

START = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
SECONDS = 30.0
CLIENT, SERVER, PORT = "web-vm-01", "redis-cache-01", 6379


@dataclass(frozen=True)
class Packet:
    moment: int
    frame: bytes
    source: str = ""
    destination: str = ""
    ttl: int = 0
    protocol: int = 0
    ports: tuple[int, int] = (0, 0)
    sequence: int = 0
    acknowledgement: int = 0
    flags: int = 0
    payload: bytes = b""


def packets(capture: bytes) -> Iterator[Packet]:
    """The packets of a capture, read without any code of the lab; every checksum is checked on the way."""
    assert struct.unpack("<IHHiIII", capture[:24]) == (0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    at = 24
    while at < len(capture):
        second, micro, stored, length = struct.unpack("<IIII", capture[at : at + 16])
        frame = capture[at + 16 : at + 16 + stored]
        assert stored == length == len(frame)
        at += 16 + stored
        yield packet(second * 1_000_000 + micro, frame)


def number_of_packets(capture: bytes) -> int:
    at, count = 24, 0
    while at < len(capture):
        at += 16 + int.from_bytes(capture[at + 8 : at + 12], "little")
        count += 1
    return count


def packet(moment: int, frame: bytes) -> Packet:
    if frame[12:14] != b"\x08\x00":
        return Packet(moment, frame)
    datagram = frame[14:]
    assert datagram[0] == 0x45
    assert int.from_bytes(datagram[2:4], "big") == len(datagram)
    assert folded(datagram[:20]) == 0xFFFF
    protocol, segment = datagram[9], datagram[20:]
    pseudo = datagram[12:20] + bytes([0, protocol]) + len(segment).to_bytes(2, "big")
    pseudo = b"" if protocol == 1 else pseudo
    assert folded(pseudo + segment) == 0xFFFF
    here, there = (".".join(map(str, datagram[a : a + 4])) for a in (12, 16))
    ports = struct.unpack(">HH", segment[:4])
    if protocol != 6:
        ports = (0, 0) if protocol == 1 else ports
        return Packet(moment, frame, here, there, datagram[8], protocol, ports, payload=segment[8:])
    sequence, acknowledgement, offset, flags = struct.unpack(">IIBB", segment[4:14])
    return Packet(
        moment,
        frame,
        here,
        there,
        datagram[8],
        protocol,
        ports,
        sequence,
        acknowledgement,
        flags,
        segment[offset // 16 * 4 :],
    )


def folded(octets: bytes) -> int:
    total = sum(struct.unpack(f">{(len(octets) + 1) // 2}H", octets + b"\0" * (len(octets) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.fixture
def blocked() -> World:
    return load_scenario("blocked-port").world


@pytest.fixture
def healthy(blocked: World) -> World:
    return replace(blocked, security_groups=tuple(replace(group, rules=()) for group in blocked.security_groups))


@pytest.fixture
def lossy(healthy: World) -> World:
    """Bulk both ways, and loss from the server to the client alone."""
    traffic = Traffic(CLIENT, SERVER, PORT, connections_per_minute=12, request_bytes=60_000, response_bytes=60_000)
    return replace(healthy, traffic=(traffic,), faults=(WireFault(SERVER, CLIENT, 0.04),))


def of_flow(capture: bytes, port: int = PORT) -> list[Packet]:
    return [found for found in packets(capture) if found.protocol == 6 and port in found.ports]


def changed(world: World, name: str, **changes: object) -> World:
    def change(machine: Machine) -> Machine:
        return replace(machine, **changes) if machine.name == name else machine

    return replace(world, machines=tuple(change(machine) for machine in world.machines))


def test_the_same_seed_gives_the_same_octets_and_another_seed_others(blocked: World) -> None:
    first = synthesize(blocked, CLIENT, START, 10, 7)
    assert synthesize(blocked, CLIENT, START, 10, 7) == first
    assert synthesize(blocked, CLIENT, START, 10, 8) != first


def test_packets_lie_in_the_window_in_order_with_correct_checksums(lossy: World) -> None:
    moments = [found.moment for found in packets(synthesize(lossy, CLIENT, START, SECONDS, 1))]
    assert moments == sorted(moments)
    assert moments[0] >= START.timestamp() * 1e6
    assert moments[-1] < (START + timedelta(seconds=SECONDS)).timestamp() * 1e6


def test_a_denied_syn_is_repeated_after_1_2_and_4_seconds_and_nobody_answers(blocked: World) -> None:
    flow = of_flow(synthesize(blocked, CLIENT, START, SECONDS, 1))
    assert flow
    assert {found.flags for found in flow} == {SYN}
    assert {found.source for found in flow} == {blocked.address_of(CLIENT)}
    attempts: dict[tuple[int, int], list[int]] = {}
    for found in flow:
        attempts.setdefault((found.ports[0], found.sequence), []).append(found.moment)
    whole = [moments for moments in attempts.values() if len(moments) == 4]
    assert whole
    for moments in whole:
        gaps = [(later - earlier) / 1e6 for earlier, later in pairwise(moments)]
        assert gaps == pytest.approx([1, 2, 4], abs=0.01)


def test_what_the_destination_group_denies_is_never_seen_at_the_destination(blocked: World) -> None:
    assert of_flow(synthesize(blocked, SERVER, START, SECONDS, 1)) == []


def test_a_port_without_a_listener_answers_each_syn_with_a_reset(healthy: World) -> None:
    flow = of_flow(synthesize(changed(healthy, SERVER, listeners=()), CLIENT, START, SECONDS, 1))
    count = Counter(found.flags for found in flow)
    assert set(count) == {SYN, RST | ACK}
    assert abs(count[SYN] - count[RST | ACK]) <= 1


def test_a_stopped_server_answers_nothing(healthy: World) -> None:
    flow = of_flow(synthesize(changed(healthy, SERVER, power="deallocated"), CLIENT, START, SECONDS, 1))
    assert {found.flags for found in flow} == {SYN}


def test_a_healthy_flow_repeats_nothing_and_delivers_what_was_sent(healthy: World) -> None:
    flow = of_flow(synthesize(healthy, CLIENT, START, SECONDS, 1))
    sent = [(found.source, found.ports, found.sequence, found.flags & (SYN | FIN)) for found in flow if found.payload]
    assert sent
    assert len(set(sent)) == len(sent)
    assert any(found.payload.startswith(b"*1\r\n$4\r\nPING") for found in flow)
    assert any(found.flags & FIN for found in flow)


def test_loss_shows_twice_at_the_sender_and_once_at_the_receiver(lossy: World) -> None:
    server, client = lossy.address_of(SERVER), lossy.address_of(CLIENT)

    def repeated(machine: str, source: str) -> int:
        flow = of_flow(synthesize(lossy, machine, START, SECONDS, 1))
        seen = Counter((f.ports, f.sequence) for f in flow if f.source == source and f.payload)
        return sum(count - 1 for count in seen.values())

    at_sender, at_receiver = repeated(SERVER, server), repeated(CLIENT, server)
    assert at_sender > 5
    # Only a segment whose repetition was not needed arrives twice.
    assert at_receiver < at_sender / 4
    assert repeated(SERVER, client) <= 2


def test_the_receiver_answers_a_gap_with_duplicate_acknowledgements(lossy: World) -> None:
    client = lossy.address_of(CLIENT)
    flow = of_flow(synthesize(lossy, CLIENT, START, SECONDS, 1))
    bare = [f for f in flow if f.source == client and not f.payload and not f.flags & (SYN | FIN)]
    acknowledged = Counter((f.ports[0], f.acknowledgement) for f in bare)
    assert max(acknowledged.values()) >= 4


def test_frames_carry_the_machine_and_the_gateway_as_addresses(healthy: World) -> None:
    own = bytes.fromhex(healthy.interface_of(CLIENT).mac.replace("-", ""))
    gateway = bytes.fromhex("123456789abc")
    for found in packets(synthesize(healthy, CLIENT, START, SECONDS, 1)):
        if found.source:
            outward = found.source == healthy.address_of(CLIENT)
            assert found.frame[:12] == (gateway + own if outward else own + gateway)
            assert found.ttl == 64 if outward or found.destination == found.source else found.ttl in (55, 64)


def test_the_background_has_arp_names_the_platform_agent_and_https(blocked: World) -> None:
    found = list(packets(synthesize(blocked, SERVER, START, SECONDS, 1)))
    arp = Counter(p.frame[20:22] for p in found if p.frame[12:14] == b"\x08\x06")
    assert arp[b"\0\1"] == arp[b"\0\2"] > 0
    ports = {port for p in found for port in p.ports}
    assert {53, 80, 443} <= ports


def test_a_busy_world_stays_within_the_budget_of_packets(healthy: World) -> None:
    busy = replace(healthy.traffic[0], connections_per_minute=600.0, request_bytes=50_000, response_bytes=50_000)
    world = replace(healthy, traffic=(busy,))
    assert 4000 < number_of_packets(synthesize(world, CLIENT, START, 60, 1)) < 12_000


def test_windows_and_linux_agree_on_what_both_understand(healthy: World) -> None:
    world = changed(healthy, CLIENT, os="Windows")
    flow = of_flow(synthesize(world, CLIENT, START, SECONDS, 1))
    assert {f.ttl for f in flow if f.source == world.address_of(CLIENT)} == {128}
    assert all(f.frame[46] >> 4 == 5 for f in flow if not f.flags & SYN), "no timestamps: the client offered none"


def test_datagrams_are_asked_again_where_nobody_answers(healthy: World) -> None:
    traffic = Traffic(CLIENT, SERVER, 9999, protocol="Udp", connections_per_minute=6)
    silent = replace(healthy, traffic=(traffic,))
    heard = changed(silent, SERVER, listeners=(Listener(9999, "collector", protocol="Udp"),))

    def directions(world: World) -> Counter[str]:
        found = packets(synthesize(world, CLIENT, START, SECONDS, 1))
        return Counter(p.source for p in found if p.protocol == 17 and 9999 in p.ports)

    client, server = healthy.address_of(CLIENT), healthy.address_of(SERVER)
    assert directions(silent)[server] == 0
    assert directions(heard)[server] == directions(heard)[client] > 0
    assert directions(silent)[client] > directions(heard)[client]


@given(st.binary(max_size=64).filter(lambda octets: len(octets) % 2 == 0))
def test_a_checksum_makes_its_octets_sum_to_all_ones(octets: bytes) -> None:
    assert folded(octets + checksum(octets).to_bytes(2, "big")) == 0xFFFF


class Line:
    """A pair of endpoints joined by a line that loses what `lost` says, by the number of the segment sent."""

    def __init__(self, lost: set[int], stacks: tuple[Stack, Stack]) -> None:
        self.simulation, self.sent, self.lost = Simulation(), 0, lost
        self.heard = 0
        random = Random(1)
        self.client = Endpoint(self.simulation, random, stacks[0], lambda s: self.carry(s, self.server))
        self.server = Endpoint(
            self.simulation, random, stacks[1], lambda s: self.carry(s, self.client), on_octets=self.hear
        )

    def hear(self, count: int) -> None:
        self.heard += count

    def carry(self, segment: Segment, to: Endpoint) -> None:
        self.sent += 1
        if self.sent not in self.lost:
            self.simulation.after(0.001, lambda: to.receive(segment))


@settings(max_examples=examples(60))
@given(
    st.integers(1, 60_000),
    st.sets(st.integers(1, 80), max_size=20),
    st.sampled_from([(LINUX, LINUX), (WINDOWS, LINUX), (LINUX, WINDOWS)]),
)
def test_whatever_is_lost_everything_arrives_exactly_once(
    size: int, lost: set[int], stacks: tuple[Stack, Stack]
) -> None:
    assume(not lost >= {1, 2, 3, 4})  # So unlucky a SYN may be given up.
    line = Line(lost, stacks)
    line.server.listen()
    line.client.connect()
    line.client.send(b"x" * size)
    line.client.close()
    line.simulation.run(until=4000)
    assert line.heard == size


@given(st.sampled_from([*PROTOCOLS, 443, 9000]), st.integers(0, 50_000), st.integers(0, 50_000), st.integers())
@settings(max_examples=examples(40))
def test_a_dialogue_is_about_as_long_as_asked(port: int, request: int, response: int, seed: int) -> None:
    turns: list[Turn] = dialogue(port, Sizes(request, response), "server-01", Random(seed))
    assert turns[0].side == "client"
    assert all(turn.octets for turn in turns)
    for side, size in (("client", request), ("server", response)):
        said = sum(len(turn.octets) for turn in turns if turn.side == side)
        assert size <= said + 60
        assert said <= size + 3500
