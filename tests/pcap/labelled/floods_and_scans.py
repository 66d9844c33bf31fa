"""Scenes with masses of failed connections: floods and scans, and outages that look like them."""

from __future__ import annotations

from dataclasses import replace

from ..wire import ACK, RST, SYN
from .faults.usual import other_port
from .network import TCP_PROTOCOL, Host, Packet, Segment, unreachable
from .office import Office, attempt, chatter, talk
from .scene import Scenes

SCENES = Scenes()
_MSS = b"\2\4\5\xb4"


def _syn(
    office: Office, source: str, target: str, port: int, at: float, *, source_port: int = 0, options: bytes = _MSS,
    ttl: int = 64, answer: bytes = b"",
) -> None:  # fmt: skip
    """One SYN as the capture point sees it, and where `answer` has flags what comes back."""
    world, dice = office.world, office.dice
    own = source_port or dice.randrange(32768, 60999)
    syn = Segment(own, port, dice.randrange(1 << 32), 0, SYN, b"", 64240, options)
    packet = Packet(source, target, TCP_PROTOCOL, syn, ttl=ttl, number=dice.randrange(65536))
    world.later(at, lambda: world.capture(packet, 0))
    if answer:
        back = Segment(port, own, dice.randrange(1 << 32), syn.seq + 1 & 0xFFFFFFFF, answer[0], b"", 64240, _MSS)
        world.later(at + 0.003, lambda: world.capture(Packet(target, source, TCP_PROTOCOL, back), 0))


def _gives_up(office: Office, client: Host, port: int, at: float, after: float) -> None:
    """An attempt with a time-out that is shorter than the stack's own."""
    one = attempt(client, office.server.address, port, at)
    office.world.later(at + after, one._forget)


def _dies(office: Office) -> None:
    office.background(to_server=False)
    office.server.silent = True


# ------------------------------------------------------------------------------------------------------- floods


@SCENES.add("syn_unanswered", "network", points=("server", "between"))
def a_fleet_with_short_time_outs(office: Office) -> None:
    """A dozen pods try a dead backend for a quarter of a second, again and again."""
    _dies(office)
    net = office._net()
    for n in range(12):
        pod = office.new_host(net)
        office.new_path(pod, office.server)
        pause = office.dice.uniform(0.25, 0.45)
        for k in range(int(14 / pause)):
            _gives_up(office, pod, office.port, 1.0 + 0.02 * n + k * pause, 0.25)


@SCENES.add("syn_unanswered", "network", points=("client", "server", "between"))
def a_proxy_before_a_dead_backend(office: Office) -> None:
    """As many attempts as it has requests, each given up before its stack would repeat it."""
    _dies(office)
    for n in range(800):
        _gives_up(office, office.client, office.port, 2.0 + n / 120, 0.25)


@SCENES.add("syn_unanswered", "network", points=("server", "between"))
def a_busy_site_dies_as_the_capture_ends(office: Office) -> None:
    """Hundreds of clients, each with its first SYN: there was no time to repeat one."""
    _dies(office)
    for n in range(300):
        source = f"{office.dice.randrange(11, 200)}.{n % 250}.{office.dice.randrange(256)}.{n % 200 + 1}"
        _syn(office, source, office.server.address, office.port, office.world.seconds - 0.9 + n * 0.003, ttl=52)


@SCENES.add("syn_flood", "client", points=("server", "between"), severity="CRITICAL")
def a_flood_in_the_last_second(office: Office) -> None:
    """No time to repeat here either; but no stack sends such SYNs."""
    office.background(to_server=False)
    for n in range(300):
        source = f"{office.dice.randrange(11, 200)}.{n % 250}.{office.dice.randrange(256)}.{n % 200 + 1}"
        at = office.world.seconds - 0.9 + n * 0.003
        _syn(office, source, office.server.address, office.port, at, options=b"", ttl=52)


@SCENES.add("syn_flood", "client", points=("server", "between"), severity="CRITICAL")
def a_flood_from_one_address(office: Office) -> None:
    """From all the ports there are, and nothing of what the server answers is acknowledged."""
    office.background(to_server=False)
    for n in range(900):
        port = office.dice.randrange(1024, 65000)
        _syn(office, "198.51.100.9", office.server.address, office.port, 2 + n / 150, source_port=port,
             answer=bytes([SYN | ACK]) if n % 3 else b"")  # fmt: skip


@SCENES.add("syn_flood", "client", points=("server",), severity="CRITICAL")
def a_flood_from_a_pool_of_addresses(office: Office) -> None:
    """Each comes again and again; all together are more than a crowd."""
    office.background(to_server=False)
    for n in range(5000):
        source = f"198.51.100.{office.dice.randrange(1, 255)}"
        _syn(office, source, office.server.address, office.port, 5 + n / 2500, ttl=50 + n % 9)


@SCENES.add("syn_flood", "client", points=("server",), severity="CRITICAL")
def a_flood_from_few_addresses_that_is_answered(office: Office) -> None:
    """Each comes back at no great pace; but none acknowledges the answer, and none is known."""
    office.background(server_port=other_port(office))
    for n in range(600):
        _syn(office, f"198.51.100.{n % 60 + 1}", office.server.address, office.port, 2 + n / 50, ttl=50 + n % 9,
             answer=bytes([SYN | ACK]))  # fmt: skip


# -------------------------------------------------------------------------------------------------------- scans


def _targets(office: Office, number: int, *, silent: bool) -> list[Host]:
    net = office._net()
    hosts = [Host(office.world, f"{net}.{n + 4}") for n in range(number)]
    for host in hosts:
        host.silent = silent
        office.new_path(office.client, host)
    return hosts


def _dropped(port: int, host: Host) -> None:
    """Its packet filter drops what comes for a port."""
    receive = host.receive

    def filtered(packet: Packet) -> None:
        if packet.segment is None or packet.segment.destination_port != port:
            receive(packet)

    host.receive = filtered  # type: ignore[method-assign]


@SCENES.add("syn_unanswered", "policy", points=("client",), seconds=60.0)
def a_monitor_that_a_filter_keeps_out(office: Office) -> None:
    """It comes back to all its targets; some of them are known to live."""
    office.background(server_port=other_port(office))
    hosts = _targets(office, 40, silent=False)
    for n, host in enumerate(hosts):
        _dropped(9100, host)
        for visit in range(3):
            attempt(office.client, host.address, 9100, 1.0 + 0.1 * n + 15 * visit)
        if n < 6:
            talk(office.client, host, 8443, chatter(office.dice, 2), begin=2.0 + n)


@SCENES.add("refused", "server_application", points=("client",), seconds=40.0)
def a_monitor_whose_agents_are_stopped(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n, host in enumerate(_targets(office, 40, silent=False)):
        for visit in range(3):
            attempt(office.client, host.address, 10250, 1.0 + 0.1 * n + 10 * visit)


@SCENES.add("syn_unanswered", "network", points=("client",), seconds=60.0)
def all_services_of_a_dead_host(office: Office) -> None:
    office.background(to_server=False)
    (gone,) = _targets(office, 1, silent=True)
    for n in range(30):
        for visit in range(3):
            attempt(office.client, gone.address, 8000 + 3 * n, 1.0 + 0.2 * n + 16 * visit)


@SCENES.add("refused", "server_application", points=("client",), seconds=30.0)
def all_services_of_a_host_are_stopped(office: Office) -> None:
    office.background(to_server=False)
    (host,) = _targets(office, 1, silent=False)
    for n in range(30):
        for visit in range(4):
            attempt(office.client, host.address, 30000 + 7 * n, 1.0 + 0.1 * n + 6 * visit)


@SCENES.add("port_scan", "client", points=("client", "between"))
def a_scan_that_asks_twice(office: Office) -> None:
    """What was not answered is asked again after a second, from another port."""
    office.background(server_port=other_port(office))
    (host,) = _targets(office, 1, silent=True)
    for n, port in enumerate(office.dice.sample(range(1, 9000), 60)):
        for again in range(2):
            _syn(office, office.client.address, host.address, port, 1 + 0.05 * n + 1.2 * again)


@SCENES.add("port_scan", "client", points=("client",), seconds=1300.0)
def a_scan_that_takes_its_time(office: Office) -> None:
    """Fifteen seconds between probes, each port twice."""
    office.background(server_port=other_port(office))
    (host,) = _targets(office, 1, silent=True)
    for n, port in enumerate(office.dice.sample(range(1, 9000), 40)):
        for again in range(2):
            _syn(office, office.client.address, host.address, port, 1 + 30 * n + 15 * again)


@SCENES.add("port_scan", "client", points=("client",), seconds=40.0)
def a_scan_in_a_loop(office: Office) -> None:
    office.background(server_port=other_port(office))
    (host,) = _targets(office, 1, silent=False)
    for visit in range(3):
        for n, port in enumerate(range(100, 250)):
            attempt(office.client, host.address, port, 1 + 10 * visit + 0.01 * n)


@SCENES.add("port_scan", "client", points=("client",))
def a_sweep_for_one_port(office: Office) -> None:
    office.background(server_port=other_port(office))
    for n, host in enumerate(_targets(office, 45, silent=False)):
        attempt(office.client, host.address, 3389, 1.0 + 0.03 * n)


# -------------------------------------------------------------------------------------------------- traceroutes


def _traced(office: Office, target: Host, port: int, *, hops: int, reached: bool) -> None:
    """Three probes a hop; the first routers answer, others do not, and the end does where it is reached."""
    source, world = office.client.address, office.world
    for hop in range(1, hops + 1):
        for n in range(3):
            at, own = 2.0 + 0.3 * hop + 0.05 * n, 50_000 + 3 * hop + n
            syn = Segment(own, port, office.dice.randrange(1 << 32), 0, SYN, b"", 5840, _MSS)
            probe = Packet(source, target.address, TCP_PROTOCOL, syn, ttl=hop, number=own)
            world.later(at, lambda probe=probe: world.capture(probe, 0))  # type: ignore[misc]
            if hop < 3:
                said = unreachable(f"10.254.{hop}.1", replace(probe, ttl=1), 0, kind=11)
                world.later(at + 0.004, lambda said=said: world.capture(said, 0))  # type: ignore[misc]
            elif hop == hops and reached:
                told = Segment(port, own, 77, syn.seq + 1 & 0xFFFFFFFF, SYN | ACK, b"", 5840, _MSS)
                over = Segment(own, port, syn.seq + 1 & 0xFFFFFFFF, 0, RST, b"", 0, b"")
                back = Packet(target.address, source, TCP_PROTOCOL, told, ttl=64 - hop)
                end = Packet(source, target.address, TCP_PROTOCOL, over)
                world.later(at + 0.02, lambda back=back: world.capture(back, 0))  # type: ignore[misc]
                world.later(at + 0.0201, lambda end=end: world.capture(end, 0))  # type: ignore[misc]


@SCENES.add("none", "none", points=("client",))
def a_traceroute_by_tcp(office: Office) -> None:
    office.background(server_port=office.port)
    _traced(office, office.server, office.port, hops=office.dice.randrange(4, 12), reached=True)


@SCENES.add("syn_unanswered", "network", points=("client",))
def a_traceroute_by_tcp_because_nobody_answers(office: Office) -> None:
    office.background(to_server=False)
    (gone,) = _targets(office, 1, silent=True)
    _traced(office, gone, 443, hops=12, reached=False)
    for n in range(2):
        attempt(office.client, gone.address, 443, 1.0 + 8 * n)


# ------------------------------------------------------------------------------------------ who refuses, by its TTL


def _refusals(office: Office, refuses_with: int, others: int) -> None:
    office.background(to_server=False)
    source, vip = office.client.address, office.new_host()
    world = office.world
    for n in range(4):
        for port, flags, ttl in ((3389, RST | ACK, refuses_with), (80, SYN | ACK, others)):
            own = office.client.free_port()
            syn = Segment(own, port, 1000 + n, 0, SYN, b"", 64240, _MSS)
            back = Segment(
                port, own, 5, 1001 + n, flags, b"", 0 if flags & RST else 64240, b"" if flags & RST else _MSS
            )
            ack = Segment(own, port, 1001 + n, 6, ACK, b"", 502, b"")
            at = 1.0 + n + (port == 80) * 0.3
            there = Packet(source, vip.address, TCP_PROTOCOL, syn)
            answer = Packet(vip.address, source, TCP_PROTOCOL, back, ttl=ttl)
            world.later(at, lambda there=there: world.capture(there, 0))  # type: ignore[misc]
            world.later(at + 0.02, lambda answer=answer: world.capture(answer, 0))  # type: ignore[misc]
            if not flags & RST:
                done = Packet(source, vip.address, TCP_PROTOCOL, ack)
                over = Packet(source, vip.address, TCP_PROTOCOL, replace(ack, flags=RST | ACK))
                world.later(at + 0.0201, lambda done=done: world.capture(done, 0))  # type: ignore[misc]
                world.later(at + 0.1, lambda over=over: world.capture(over, 0))  # type: ignore[misc]


@SCENES.add("refused", "server_application", points=("client",))
def a_virtual_address_with_machines_of_two_systems(office: Office) -> None:
    hops = office.dice.randrange(0, 9)
    _refusals(office, 128 - hops, 64 - hops)


@SCENES.add("third_party_reset", "policy", points=("client",))
def a_device_of_another_system_that_is_nearer(office: Office) -> None:
    _refusals(office, 128 - 2, 64 - office.dice.randrange(4, 9))
