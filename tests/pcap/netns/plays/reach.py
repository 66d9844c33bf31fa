"""Hosts and ports that cannot be reached, and who says so."""

from __future__ import annotations

import random
import socket
import struct
import time

from tests.pcap.netns.peers import connect, fails_to_connect, fetch, serve, takes_uploads, upload, web
from tests.pcap.netns.scene import Ordinary, scene
from tests.pcap.netns.space import Space
from tests.pcap.netns.stage import Layout, Stage

_TWO_SYNS = 1.4  # seconds: the second SYN leaves after one


@scene("syn_unanswered", "network")
def black_holed(stage: Stage) -> None:
    stage.router.ip(f"route add blackhole {stage.free_far_ip}/32")
    ordinary, port = Ordinary(stage), stage.port()
    ordinary.some()
    stage.beside(lambda: fails_to_connect(stage.client, stage.free_far_ip, port, _TWO_SYNS), times=2)
    ordinary.some()


@scene("syn_unanswered", "policy")
def filtered(stage: Stage) -> None:
    open_port, closed = stage.port(), stage.port()
    serve(stage.server, stage.server_ip, open_port, web())
    serve(stage.server, stage.server_ip, closed, web())
    stage.server.filter("input", f"tcp dport {closed} drop")
    ordinary = Ordinary(stage)
    fetch(stage.client, stage.server_ip, open_port)
    stage.beside(lambda: fails_to_connect(stage.client, stage.server_ip, closed, _TWO_SYNS), times=2)
    ordinary.some()
    fetch(stage.client, stage.server_ip, open_port)


@scene("refused", "server_application")
def stopped_listener(stage: Stage) -> None:
    ordinary, port = Ordinary(stage), stage.port()
    for _ in range(3):
        fails_to_connect(stage.client, stage.server_ip, port, 3.0)
        ordinary.some(1)


def _rejecting(stage: Stage, port: int, what: str, ttl: int) -> None:
    stage.router.sysctl({"net.ipv4.ip_default_ttl": ttl})
    stage.router.filter("forward", f"ip daddr {stage.server_ip} tcp dport {port} reject with {what}")


@scene("third_party_reset", "policy")
def reset_by_a_device_at_the_syn(stage: Stage) -> None:
    port, other = stage.port(), stage.port()
    for each in (port, other):
        serve(stage.server, stage.server_ip, each, web())
    _rejecting(stage, port, "tcp reset", 255)
    ordinary = Ordinary(stage)
    for _ in range(3):
        fetch(stage.client, stage.server_ip, other)
        fails_to_connect(stage.client, stage.server_ip, port, 3.0)
    ordinary.some()


@scene("third_party_reset", "policy")
def reset_by_a_device_in_mid_session(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, takes_uploads(pause=0.01, chunk=8192))
    ordinary = Ordinary(stage)
    ordinary.some()

    def cut_off() -> None:
        try:
            upload(stage.client, stage.server_ip, port, 3_000_000)
        except OSError:
            return
        raise AssertionError("the upload was to be reset")

    stage.beside(cut_off, times=2)
    time.sleep(0.4)
    _rejecting(stage, port, "tcp reset", 128)
    ordinary.some()


@scene("admin_prohibited", "policy")
def prohibited_by_a_filter(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web())
    _rejecting(stage, port, "icmp type admin-prohibited", 64)
    ordinary = Ordinary(stage)
    for _ in range(2):
        fails_to_connect(stage.client, stage.server_ip, port, 0.7)
        ordinary.some()


@scene("port_unreachable", "server_application")
def no_program_on_a_udp_port(stage: Stage) -> None:
    ordinary, port = Ordinary(stage), stage.port()
    ordinary.some()
    with stage.client.socket(socket.SOCK_DGRAM) as sender:
        for n in range(6):
            sender.sendto(b"<34>a line of a log %d" % n, (stage.server_ip, port))
            time.sleep(0.05)
    ordinary.some()


@scene("host_down", "server_host")
def nobody_has_the_far_address(stage: Stage) -> None:
    """The router asks in vain and says so."""
    ordinary, port = Ordinary(stage), stage.port()
    stage.beside(lambda: fails_to_connect(stage.client, stage.free_far_ip, port, 2.5), times=2)
    ordinary.some()


@scene("host_down", "server_host")
def nobody_has_the_near_address(stage: Stage) -> None:
    ordinary, port = Ordinary(stage), stage.port()
    for _ in range(2):
        fails_to_connect(stage.client, stage.free_lan_ip, port, 2.5)
    ordinary.some()


@scene("routing_loop", "network")
def two_routers_point_at_each_other(stage: Stage) -> None:
    beyond = Space("beyond")
    transit = f"10.254.{stage.dice.randrange(250)}"
    stage.router.cable("beyond", "02:aa:00:00:00:01", beyond, "back", "02:aa:00:00:00:02")
    lost = f"10.253.{stage.dice.randrange(250)}"
    stage.router.ip(f"address add {transit}.1/30 dev beyond", f"route add {lost}.0/24 via {transit}.2")
    beyond.ip(f"address add {transit}.2/30 dev back", f"route add default via {transit}.1")
    beyond.sysctl({"net.ipv4.ip_forward": 1, "net.ipv4.icmp_ratelimit": 0})
    ordinary, port = Ordinary(stage), stage.port()
    ordinary.some()
    stage.beside(lambda: fails_to_connect(stage.client, f"{lost}.7", port, _TWO_SYNS), times=2)
    stage.client.run("sh", "-c", f"ping -n -q -c 4 -i 0.1 -W 1 {lost}.9 || true")
    ordinary.some()


@scene("icmp_redirect", "network", Layout(neighbours=1))
def a_nearer_router_on_the_segment(stage: Stage) -> None:
    """The default router sends packets back out of the port they came in by, and says who is nearer."""
    nearer, near_ip = stage.neighbours[0], stage.neighbour_ips[0]
    net = f"10.252.{stage.dice.randrange(250)}"
    nearer.ip("link add inner type bridge", f"address add {net}.1/24 dev inner", "link set inner up")
    nearer.sysctl({"net.ipv4.ip_forward": 1})
    stage.router.ip(f"route add {net}.0/24 via {near_ip}")
    stage.client.sysctl({"net.ipv4.conf.all.accept_redirects": 0, "net.ipv4.conf.eth0.accept_redirects": 0})
    port = stage.port()
    serve(nearer, f"{net}.1", port, web())
    ordinary = Ordinary(stage)
    for _ in range(4):
        fetch(stage.client, f"{net}.1", port)
        ordinary.some(1)


@scene("arp_conflict", "server_host", Layout(neighbours=2))
def one_address_on_two_machines(stage: Stage) -> None:
    contested = stage.free_lan_ip
    for host in stage.neighbours:
        host.ip(f"address add {contested}/24 dev eth0")
    ordinary = Ordinary(stage)
    for n in range(6):
        stage.client.ip("neigh flush dev eth0")
        stage.client.run("sh", "-c", f"ping -n -q -c 1 -W 1 {contested} || true")
        _claim(stage.neighbours[n % 2], contested)
    ordinary.some()


def _claim(host: Space, address: str) -> None:
    """A gratuitous ARP reply, as hosts send when they take an address."""
    with host.socket(socket.SOCK_RAW, socket.AF_PACKET, socket.htons(0x0806)) as raw:
        raw.bind(("eth0", 0x0806))
        mac, everyone, ip = raw.getsockname()[4], b"\xff" * 6, socket.inet_aton(address)
        raw.send(everyone + mac + b"\x08\x06\0\1\x08\0\6\4\0\2" + mac + ip + everyone + ip)


@scene("asymmetric", "network", at=("wan",))
def answers_take_another_way(stage: Stage) -> None:
    """The capture point on the way there never sees the way back."""
    back = f"10.251.{stage.dice.randrange(250)}"
    stage.server.cable("eth1", "02:bb:00:00:00:01", stage.router, "side", "02:bb:00:00:00:02")
    stage.server.ip(f"address add {back}.2/30 dev eth1")
    stage.router.ip(f"address add {back}.1/30 dev side")
    stage.server.ip(f"route replace {stage.lan} via {back}.1")
    for host, device in ((stage.router, "side"), (stage.router, "wan"), (stage.server, "eth0")):
        host.sysctl({f"net.ipv4.conf.{device}.rp_filter": 0, "net.ipv4.conf.all.rp_filter": 0})
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(60_000))
    for _ in range(4):
        fetch(stage.client, stage.server_ip, port, requests=2)


# --------------------------------------------------------------------------------------------------------- threats


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def _syn(source: str, destination: str, source_port: int, port: int, sequence: int) -> bytes:
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    head = struct.pack(">HHIIBBHHH", source_port, port, sequence, 0, 5 << 4, 2, 64240, 0, 0)
    summed = _checksum(ends + struct.pack(">HH", 6, len(head)) + head)
    segment = head[:16] + struct.pack(">H", summed) + head[18:]
    return struct.pack(">BBHHHBBH", 0x45, 0, 40, sequence & 0xFFFF, 0, 64, 6, 0) + ends + segment


@scene("syn_flood", "client", at=("server",))
def flood_of_syns(stage: Stage) -> None:
    """From made-up sources that never answer the SYN-ACK."""
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web())
    stage.server.sysctl({"net.ipv4.tcp_syncookies": 0, "net.ipv4.tcp_max_syn_backlog": 64})
    stage.router.ip("route add blackhole 100.64.0.0/10")
    stage.router.sysctl({"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.lan.rp_filter": 0})
    ordinary, dice = Ordinary(stage), random.Random(stage.dice.random())
    ordinary.some()
    with stage.client.socket(socket.SOCK_RAW, protocol=socket.IPPROTO_RAW) as raw:
        for _ in range(600):
            source = f"100.{dice.randrange(64, 128)}.{dice.randrange(256)}.{dice.randrange(1, 255)}"
            sequence = dice.randrange(1 << 32)
            raw.sendto(_syn(source, stage.server_ip, dice.randrange(1024, 65000), port, sequence), (stage.server_ip, 0))
            time.sleep(0.001)
    ordinary.some()


@scene("port_scan", "client", at=("server",))
def scan_of_ports(stage: Stage) -> None:
    serve(stage.server, stage.server_ip, stage.port(), web())
    ordinary = Ordinary(stage)
    ordinary.some()
    for port in sorted({stage.dice.randrange(1, 10_000) for _ in range(120)}):
        try:
            connect(stage.client, stage.server_ip, port, timeout=2).close()
        except OSError:
            continue
    ordinary.some()


@scene("snat_exhaustion", "network")
def no_port_left_to_translate_to(stage: Stage) -> None:
    """The router has a dozen ports for outward connections; the thirteenth gets no answer."""
    port, low = stage.port(), stage.port(30_000, 50_000)
    serve(stage.server, stage.server_ip, port, web())
    stage.router.translate(f'oifname "wan" meta l4proto tcp snat to {stage.far_gateway}:{low}-{low + 15}')
    kept: list[socket.socket] = []
    for _ in range(40):
        try:
            kept.append(connect(stage.client, stage.server_ip, port, timeout=1.3 if len(kept) < 1 else 0.05))
        except OSError:
            break
    stage.beside(lambda: fails_to_connect(stage.client, stage.server_ip, port, _TWO_SYNS), times=12)
    stage.together()
    for sock in kept:
        sock.close()
