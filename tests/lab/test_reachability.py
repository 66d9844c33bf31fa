"""What becomes of a conversation in the world, gate by gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ghost.lab import World, load_scenario
from ghost.lab.reachability import listens, passage, reaches_internet
from ghost.lab.world import Listener, UserRoute

CLIENT, SERVER, PORT = "web-vm-01", "redis-cache-01", 6379


@pytest.fixture
def blocked() -> World:
    return load_scenario("blocked-port").world


@pytest.fixture
def healthy(blocked: World) -> World:
    return replace(blocked, security_groups=tuple(replace(group, rules=()) for group in blocked.security_groups))


def with_machine(world: World, name: str, **changes: object) -> World:
    machines = tuple(replace(m, **changes) if m.name == name else m for m in world.machines)
    return replace(world, machines=machines)


def test_a_rule_at_the_destination_stops_the_packet_before_its_interface(blocked: World) -> None:
    fate = passage(blocked, CLIENT, SERVER, "Tcp", PORT)
    assert (fate.outcome, fate.gate, fate.leaves, fate.arrives) == ("dropped", "nsg_inbound", True, False)
    assert "close-legacy-ports" in fate.reason


def test_without_the_rule_the_conversation_is_accepted(healthy: World) -> None:
    fate = passage(healthy, CLIENT, SERVER, "Tcp", PORT)
    assert (fate.outcome, fate.gate, fate.arrives) == ("accepted", None, True)


def test_a_port_without_a_listener_refuses(healthy: World) -> None:
    fate = passage(healthy, CLIENT, SERVER, "Tcp", 6380)
    assert (fate.outcome, fate.gate, fate.arrives) == ("refused", "listener", True)


@pytest.mark.parametrize(("name", "gate"), [(CLIENT, "source_power"), (SERVER, "destination_power")])
def test_a_stopped_machine_ends_the_conversation(healthy: World, name: str, gate: str) -> None:
    fate = passage(with_machine(healthy, name, power="deallocated"), CLIENT, SERVER, "Tcp", PORT)
    assert (fate.outcome, fate.gate) == ("dropped", gate)
    assert fate.leaves is (name == SERVER)


def test_a_route_to_nowhere_drops_behind_the_source_and_one_at_the_far_end_drops_the_answer(healthy: World) -> None:
    near, far = healthy.address_of(CLIENT), healthy.address_of(SERVER)
    table = healthy.route_tables[0]

    def routed(prefix: str, subnet_of: str) -> World:
        nowhere = replace(table, name="nowhere", routes=(UserRoute("hole", prefix, "None"),))
        subnet = healthy.subnet_of(healthy.interface_of(subnet_of)).name
        networks = tuple(
            replace(
                network,
                subnets=tuple(replace(s, route_table="nowhere") if s.name == subnet else s for s in network.subnets),
            )
            for network in healthy.networks
        )
        return replace(healthy, route_tables=(*healthy.route_tables, nowhere), networks=networks)

    outward = passage(routed(f"{far}/32", CLIENT), CLIENT, SERVER, "Tcp", PORT)
    homeward = passage(routed(f"{near}/32", SERVER), CLIENT, SERVER, "Tcp", PORT)
    assert (outward.gate, outward.arrives) == ("route", False)
    assert (homeward.gate, homeward.arrives) == ("return_route", True)


def test_loss_on_the_wire_is_no_gate() -> None:
    scenario = load_scenario("wire-loss")
    flow = scenario.flows[0]
    assert passage(scenario.world, flow.source, flow.destination, "Tcp", flow.port).outcome == "accepted"


def test_a_socket_of_the_loopback_is_not_heard_from_outside(healthy: World) -> None:
    world = with_machine(healthy, SERVER, listeners=(Listener(PORT, "redis-server", address="127.0.0.1"),))
    assert not listens(world.machine(SERVER), "Tcp", PORT)
    assert passage(world, CLIENT, SERVER, "Tcp", PORT).outcome == "refused"


def test_every_machine_answers_an_echo_request(healthy: World) -> None:
    assert passage(healthy, CLIENT, SERVER, "Icmp", None).outcome == "accepted"


def test_mail_to_the_internet_is_denied_where_the_web_is_not(blocked: World) -> None:
    assert reaches_internet(blocked, CLIENT, "20.42.65.92", "Tcp", 443)
    assert not reaches_internet(blocked, CLIENT, "20.42.65.92", "Tcp", 25)
