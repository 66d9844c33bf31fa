"""DNS answers that contradict a private endpoint, each other or where the client goes, and what looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..wire import RST, SYN
from . import messages
from .network import TCP_PROTOCOL, Host, Packet, Segment
from .office import Exchange, Office, talk, tls
from .scene import Scenes

SCENES = Scenes()
_HERE = ("client",)
_OUTSIDE, _INSIDE = ("20.50.7", "40.90.3"), ("10.60.1", "10.60.2")
_ZONES = ("blob.core.windows.net", "database.windows.net", "vault.azure.net")


def _host(office: Office, net: str) -> Host:
    host = office.new_host(net)
    office.new_path(office.client, host).link_at = 0.7
    return host


def _closed(office: Office, host: Host, since: float = 0.0) -> None:
    """A firewall drops what opens a connection to the host."""

    def opens(packet: Packet) -> bool:
        return packet.segment is not None and bool(packet.segment.flags & SYN) and office.world.now >= since

    office.world.paths[office.client.address, host.address].there.blocks = opens


def _answered(office: Office, name: str, hosts: Sequence[Host], aliases: Sequence[str] = ()) -> None:
    addresses = [host.address for host in hosts]
    office.lookups[name] = lambda asked: (0.002, messages.reply(asked, addresses=addresses, aliases=aliases))


def _visit(office: Office, host: Host, name: str, begins: Sequence[float]) -> None:
    for begin in begins:
        talk(office.client, host, 443, tls(office.dice, name, [900, 4000]), begin=begin)


def _private_link(office: Office, host: Host) -> str:
    """A name with a private endpoint, of which the resolver knows this address."""
    zone, account = office.dice.choice(_ZONES), f"app{office.dice.randrange(1000)}"
    name = f"{account}.{zone}"
    _answered(office, name, [host], [f"{account}.privatelink.{zone}", f"node{office.dice.randrange(9)}.{zone}"])
    office.background()
    for begin in (0.9, 6.0):
        office.lookup(name, begin)
    return name


def _two_servers(office: Office, name: str, first: Sequence[Host], second: Sequence[Host]) -> None:
    """The client asks two servers for a name."""
    other = office.new_host()
    office.new_path(office.client, other)
    for server, hosts in ((office.resolver, first), (other, second)):

        def take(packet: Packet, server: Host = server, hosts: Sequence[Host] = hosts) -> None:
            port = int.from_bytes(packet.body[:2], "big")
            said = messages.reply(packet.body[8:], addresses=[host.address for host in hosts])
            office.world.later(
                0.002, partial(server.send, messages.datagram(server.address, 53, packet.source, port, said))
            )

        server.datagrams[53] = take
        for begin in (0.5, 7.0):
            port = office.client.free_port()
            asked = messages.query(name, office.dice.randrange(1, 65536))
            query = messages.datagram(office.client.address, port, server.address, 53, asked)
            office.client.datagrams[port] = lambda _: None
            office.world.later(begin, partial(office.client.send, query))


# ------------------------------------------------------------------------------------------ private endpoints


@SCENES.add("dns_contradiction", "dns", points=_HERE)
def private_zone_not_linked(office: Office) -> None:
    """A firewall lets nobody go to the public address."""
    host = _host(office, _OUTSIDE[0])
    _closed(office, host)
    _visit(office, host, _private_link(office, host), [1.0, 4.0, 8.0])


@SCENES.add("dns_contradiction", "dns", points=_HERE)
def public_address_reset_by_a_firewall(office: Office) -> None:
    host = _host(office, _OUTSIDE[0])
    path = office.world.paths[office.client.address, host.address]

    def refuse(packet: Packet) -> bool:
        segment = packet.segment
        if segment is None or not segment.data:
            return False
        ports = segment.destination_port, segment.source_port
        reset = Segment(*ports, segment.ack, 0, RST, b"", 0, b"")
        forged = Packet(host.address, packet.source, TCP_PROTOCOL, reset, ttl=255)
        office.world.later(0.0004, lambda: office.world.capture(forged, 0))
        office.world.later(0.0004, lambda: office.client.receive(forged))
        return True

    path.there.blocks = refuse
    _visit(office, host, _private_link(office, host), [1.0, 4.0, 8.0])


@SCENES.add("none", "none", points=_HERE, low=(("dns_contradiction", "dns"),))
def client_outside_the_private_network(office: Office) -> None:
    host = _host(office, _OUTSIDE[0])
    _visit(office, host, _private_link(office, host), [1.0, 4.0, 8.0])


@SCENES.add("none", "none", points=_HERE, low=())
def private_endpoint(office: Office) -> None:
    host = _host(office, _INSIDE[0])
    _visit(office, host, _private_link(office, host), [1.0, 4.0, 8.0])


@SCENES.add("syn_unanswered", "network", points=_HERE)
def private_endpoint_that_is_gone(office: Office) -> None:
    """The answer is right."""
    host = _host(office, _INSIDE[0])
    _closed(office, host)
    _visit(office, host, _private_link(office, host), [1.0, 4.0, 8.0])


# -------------------------------------------------------------------------------------------- two DNS servers


@SCENES.add("dns_contradiction", "dns", points=_HERE)
def one_server_does_not_know_the_private_zone(office: Office) -> None:
    name, inner, outer = office.name("orders"), _host(office, _INSIDE[0]), _host(office, _OUTSIDE[0])
    _closed(office, outer)
    _two_servers(office, name, [inner], [outer])
    _visit(office, inner, name, [1.0, 5.0])
    _visit(office, outer, name, [3.0, 8.0])


@SCENES.add("none", "none", points=_HERE, low=(("dns_contradiction", "dns"),))
def split_horizon_that_works(office: Office) -> None:
    name, inner, outer = office.name("www"), _host(office, _INSIDE[0]), _host(office, _OUTSIDE[0])
    _two_servers(office, name, [inner], [outer])
    _visit(office, inner, name, [1.0, 5.0])
    _visit(office, outer, name, [3.0, 8.0])


@SCENES.add("none", "none", points=_HERE, low=())
def content_network_by_two_servers(office: Office) -> None:
    name, hosts = office.name("cdn"), [_host(office, net) for net in _OUTSIDE]
    _two_servers(office, name, hosts[:1], hosts[1:])
    for host in hosts:
        _visit(office, host, name, [1.0, 3.0])


@SCENES.add("none", "none", points=_HERE, low=())
def one_server_filters(office: Office) -> None:
    name, host = office.name("ads"), _host(office, _OUTSIDE[0])
    nowhere = Host(office.world, "0.0.0.0")
    _two_servers(office, name, [host], [nowhere])
    _visit(office, host, name, [1.0, 3.0])


# ------------------------------------------------------------------------------------------- another address


@SCENES.add("dns_contradiction", "client", points=_HERE, seconds=40.0)
def program_that_keeps_an_old_address(office: Office) -> None:
    """The service moves; a program of the client still goes where it was."""
    office.background()
    name, old, new = office.name("orders"), _host(office, _INSIDE[0]), _host(office, _INSIDE[1])
    _answered(office, name, [new])
    _closed(office, old, since=9.0)
    _visit(office, old, name, [1.0, 3.0, 5.0])
    office.lookup(name, 8.0)
    for begin in (10.0, 14.0, 18.0, 22.0):
        _visit(office, old, name, [begin])


@SCENES.add("none", "none", points=_HERE, seconds=420.0, low=(("dns_contradiction", "client"),))
def entry_in_the_hosts_file(office: Office) -> None:
    office.background()
    name, listed, answered = office.name("api"), _host(office, _INSIDE[0]), _host(office, _OUTSIDE[0])
    _answered(office, name, [answered])
    office.lookup(name, 2.0)
    _visit(office, listed, name, [3.0, 320.0, 350.0, 380.0])


@SCENES.add("none", "none", points=_HERE, low=())
def resolved_before_the_capture(office: Office) -> None:
    """A program still uses an answer that came before the capture; another one asks again and gets another."""
    office.background()
    name, before, now = office.name("cdn"), _host(office, _OUTSIDE[0]), _host(office, _OUTSIDE[1])
    _answered(office, name, [now])
    office.lookup(name, 2.0)
    _visit(office, before, name, [1.0, 3.0, 6.0, 9.0])


@SCENES.add("none", "none", points=_HERE, low=(), seconds=420.0)
def addresses_that_rotate(office: Office) -> None:
    office.background()
    name, hosts = office.name("cdn"), [_host(office, _OUTSIDE[n % 2]) for n in range(4)]
    turn = iter(range(100))
    office.lookups[name] = lambda asked: (0.002, messages.reply(asked, addresses=[hosts[next(turn) % 4].address]))
    for n in range(8):
        office.lookup(name, 2.0 + 50 * n)
    for n in range(3):
        _visit(office, hosts[3], name, [320.0 + 20 * n])


def _through_proxy(office: Office, names: Sequence[str], *, connect: bool) -> None:
    """The client resolves names to choose the proxy (PAC), and goes to the proxy."""
    office.background()
    proxy, site = _host(office, _INSIDE[0]), _host(office, _OUTSIDE[0])
    for n, name in enumerate(names):
        _answered(office, name, [site])
        office.lookup(name, 1.0 + n)
        ask = f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n".encode()
        opened = Exchange(ask, ((0.01, b"HTTP/1.1 200 Connection established\r\n\r\n"),))
        for begin in (2.0, 320.0, 350.0, 380.0):
            inside = tls(office.dice, name, [900, 4000])
            talk(office.client, proxy, 3128, [opened, *inside] if connect else inside, begin=begin + n)


@SCENES.add("none", "none", points=_HERE, seconds=420.0, low=())
def explicit_proxy(office: Office) -> None:
    _through_proxy(office, [office.name("www")], connect=True)


@SCENES.add("none", "none", points=_HERE, seconds=420.0, low=())
def proxy_of_several_names(office: Office) -> None:
    _through_proxy(office, [office.name("www"), office.name("mail"), "shop.example"], connect=False)


@SCENES.add("syn_unanswered", "network", points=_HERE, seconds=40.0)
def pod_behind_a_service_that_dies(office: Office) -> None:
    """The node sends what goes to the service's address to a pod; the answer names the service's."""
    office.background()
    name, pod, service = "orders.prod.svc.cluster.local", _host(office, _INSIDE[0]), _host(office, _INSIDE[1])
    _answered(office, name, [service])
    _closed(office, pod, since=9.0)
    office.lookup(name, 0.5)
    _visit(office, pod, name, [1.0, 3.0, 10.0, 14.0, 18.0])
