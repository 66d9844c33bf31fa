"""What looks odd and is in order."""

from __future__ import annotations

import socket
import time

from tests.pcap.netns.link import Impairment
from tests.pcap.netns.peers import (
    abort,
    connect,
    converse,
    echo,
    fetch,
    http_head,
    read_head,
    serve,
    takes_uploads,
    upload,
    web,
)
from tests.pcap.netns.resolver import lookup, serve_names
from tests.pcap.netns.scene import Ordinary, healthy, record
from tests.pcap.netns.stage import Layout, Stage


@healthy(Layout(offload=True))
def segmentation_offload(stage: Stage) -> None:
    """Segments far beyond the MTU, checksums not yet filled in."""
    port, other = stage.port(), stage.port()
    serve(stage.server, stage.server_ip, port, takes_uploads())
    serve(stage.server, stage.server_ip, other, web(800_000))
    ordinary = Ordinary(stage)
    stage.beside(lambda: upload(stage.client, stage.server_ip, port, 800_000), times=2)
    stage.beside(lambda: fetch(stage.client, stage.server_ip, other))
    ordinary.some()


@healthy()
def keep_alives(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, echo)
    ordinary = Ordinary(stage)
    kept = []
    for _ in range(4):
        sock = connect(stage.client, stage.server_ip, port)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        sock.sendall(b"subscribe")
        assert sock.recv(100)
        kept.append(sock)
    ordinary.some()
    time.sleep(2.4)
    for sock in kept:
        sock.close()


@healthy()
def delayed_acks(stage: Stage) -> None:
    """Each answer of an interactive session comes after the 40 ms for which Linux holds an ACK back."""

    def slow_echo(sock: socket.socket) -> None:
        while data := sock.recv(4096):
            time.sleep(0.06)
            sock.sendall(data)

    port = stage.port()
    serve(stage.server, stage.server_ip, port, slow_echo)
    ordinary = Ordinary(stage)
    stage.beside(lambda: converse(stage.client, stage.server_ip, port, 12, size=40, pause=0.03), times=2)
    ordinary.some()


@healthy(Layout(wan_mtu=1400, back=Impairment(delay_ms=5)))
def path_mtu_discovery_that_works(stage: Stage) -> None:
    port = stage.port()
    stage.server.ip("link set eth0 mtu 1500")
    serve(stage.server, stage.server_ip, port, takes_uploads())
    ordinary = Ordinary(stage)
    ordinary.some()
    for _ in range(3):
        upload(stage.client, stage.server_ip, port, 120_000)


@healthy()
def event_stream(stage: Stage) -> None:
    """The answer never ends and comes in drops; the client leaves in the middle of it."""

    def events(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\n")
        for n in range(40):
            sock.sendall(b"data: tick %d\n\n" % n)
            time.sleep(0.25)

    port = stage.port()
    serve(stage.server, stage.server_ip, port, events)
    ordinary = Ordinary(stage)

    def listen() -> None:
        with connect(stage.client, stage.server_ip, port) as sock:
            sock.sendall(b"GET /events HTTP/1.1\r\nHost: app.example.net\r\nAccept: text/event-stream\r\n\r\n")
            ends = time.monotonic() + 2.2
            while time.monotonic() < ends:
                assert sock.recv(4096)

    stage.beside(listen, times=3)
    ordinary.some()


@healthy()
def reset_after_a_complete_exchange(stage: Stage) -> None:
    """Clients that have all they asked for close with a reset to save the waiting."""
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(15_000))
    ordinary = Ordinary(stage)
    for _ in range(4):
        sock = connect(stage.client, stage.server_ip, port)
        sock.sendall(b"GET /all HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
        left = 15_000 + len(http_head(15_000))
        while left:
            left -= len(sock.recv(65536))
        time.sleep(0.03)
        abort(sock)
        ordinary.some(1)


@healthy(recorded=False)
def capture_begins_in_mid_stream(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, echo)
    serve(stage.server, stage.other_ip, port, web(900_000))
    ordinary = Ordinary(stage)
    with connect(stage.client, stage.server_ip, port) as sock:
        sock.sendall(b"before")
        sock.recv(100)
        stage.beside(lambda: fetch(stage.client, stage.other_ip, port))
        time.sleep(0.03)
        record(stage, "client")
        for _ in range(10):
            sock.sendall(b"after")
            assert sock.recv(100)
        ordinary.some()


@healthy()
def search_list(stage: Stage) -> None:
    """A short name is tried under each suffix; all but the last do not exist."""
    suffixes = ("prod.example.net", "svc.cluster.local", "example.net")
    good = {f"{host}.example.net" for host in ("db", "cache", "queue", "www")}
    serve_names(stage.server, stage.dns_ip, lambda name: ("NOERROR" if name in good else "NXDOMAIN", 0.001))
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(2000))
    for host in ("db", "cache", "queue", "www"):
        for suffix in suffixes:
            if lookup(stage.client, stage.dns_ip, f"{host}.{suffix}") == "NOERROR":
                break
        fetch(stage.client, stage.server_ip, port)


@healthy(Layout(ipv6=True))
def both_versions_of_ip(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip6, port, web(30_000))
    ordinary = Ordinary(stage)
    for _ in range(3):
        fetch(stage.client, stage.server_ip6, port, requests=2)
        ordinary.some(1)


@healthy(at=("wan", "client", "server"))
def address_translation(stage: Stage) -> None:
    """Everything the capture sees comes from the router's address."""
    stage.router.translate('oifname "wan" masquerade')
    ordinary = Ordinary(stage)
    ordinary.some(5)
