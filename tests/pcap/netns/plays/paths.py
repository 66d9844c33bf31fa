"""Paths that lose, delay, reorder, copy, damage or cut what they carry."""

from __future__ import annotations

import socket
import time

from tests.pcap.netns.link import Impairment
from tests.pcap.netns.peers import converse, echo, fetch, serve, takes_uploads, upload, web
from tests.pcap.netns.scene import Ordinary, scene
from tests.pcap.netns.stage import Layout, Stage

_BOTH = ("client", "server")


def _downloads(stage: Stage, size: int, times: int = 2) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(size))
    ordinary = Ordinary(stage)
    ordinary.some(1)
    stage.beside(lambda: fetch(stage.client, stage.server_ip, port), times=times)
    stage.together()
    ordinary.some(1)


def _uploads(stage: Stage, size: int, times: int = 2) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, takes_uploads())
    ordinary = Ordinary(stage)
    ordinary.some(1)
    stage.beside(lambda: upload(stage.client, stage.server_ip, port, size), times=times)
    stage.together()
    ordinary.some(1)


@scene("loss", "network", Layout(back=Impairment(delay_ms=6, loss=0.03)), at=_BOTH)
def loss_towards_the_client(stage: Stage) -> None:
    _downloads(stage, 700_000)


@scene("loss", "network", Layout(there=Impairment(delay_ms=9, loss=0.03), back=Impairment(delay_ms=3)), at=_BOTH)
def loss_towards_the_server(stage: Stage) -> None:
    _uploads(stage, 700_000)


@scene("loss", "network", Layout(back=Impairment(delay_ms=4, corrupt=0.03)), at=_BOTH)
def bit_errors_towards_the_client(stage: Stage) -> None:
    _downloads(stage, 700_000)


@scene("loss", "network", at=("wan", "server", "client"))
def a_router_that_drops(stage: Stage) -> None:
    """Before its outer port: both captures beyond it see only that something is missing."""
    stage.router.filter("forward", f"ip daddr {stage.server_ip} meta length > 400 numgen random mod 30 == 0 drop")
    _uploads(stage, 700_000)


@scene("rto_loss", "network", Layout(there=Impairment(loss=0.3), back=Impairment(loss=0.1)), at=_BOTH)
def loss_that_only_timers_repair(stage: Stage) -> None:
    """Questions and answers of one segment: no duplicate ACK ever tells of a loss."""
    port = stage.port()
    serve(stage.server, stage.server_ip, port, echo)
    ordinary = Ordinary(stage)
    stage.beside(lambda: converse(stage.client, stage.server_ip, port, 12), times=4)
    ordinary.some(1)


@scene(
    "rto_loss", "network",
    Layout(back=Impairment(delay_ms=5, rate_mbit=8, outages=((0.25, 0.6), (1.2, 1.5), (2.0, 2.4)))), at=_BOTH,
)  # fmt: skip
def outages_of_the_link(stage: Stage) -> None:
    _downloads(stage, 800_000)


@scene("reordering", "network", Layout(back=Impairment(delay_ms=8, reorder=0.06, reorder_ms=1.5)), at=_BOTH)
def frames_overtake_each_other(stage: Stage) -> None:
    _downloads(stage, 600_000)


@scene("duplicate_packets", "network", Layout(back=Impairment(delay_ms=5, duplicate=0.12)), at=_BOTH)
def frames_come_twice(stage: Stage) -> None:
    _downloads(stage, 500_000)


@scene("delay", "network", Layout(there=Impairment(delay_ms=190, jitter_ms=10), back=Impairment(delay_ms=185)))
def a_long_way(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(6000))
    serve_ordinary = Ordinary(stage)
    stage.beside(lambda: fetch(stage.client, stage.server_ip, port), times=4)
    serve_ordinary.some(1)


@scene("bufferbloat", "network", Layout(back=Impairment(delay_ms=6, rate_mbit=6, queue_bytes=5_000_000)), at=_BOTH)
def a_queue_that_never_drops(stage: Stage) -> None:
    port, small = stage.port(), stage.port()
    stage.server.sysctl({"net.ipv4.tcp_congestion_control": "reno"})
    serve(stage.server, stage.server_ip, port, web(900_000))
    serve(stage.server, stage.server_ip, small, web(600))
    ordinary = Ordinary(stage)
    ordinary.some()
    stage.beside(lambda: fetch(stage.client, stage.server_ip, port), times=2)
    stage.beside(lambda: fetch(stage.client, stage.server_ip, small, requests=10, pause=0.05))
    stage.together()


@scene("throughput_limited", "network", Layout(back=Impairment(delay_ms=10)), at=("client", "server"))
def a_policer(stage: Stage) -> None:
    """The kernel's token bucket on the router: four megabits a second, and every burst above is cut off."""
    rate = "limit rate over 500 kbytes/second burst 50 kbytes"
    stage.router.filter("forward", f"ip saddr {stage.server_ip} {rate} drop")
    _downloads(stage, 1_300_000, times=1)


@scene("mtu_black_hole", "network", Layout(back=Impairment(delay_ms=4, mtu=1380)))
def large_packets_vanish_towards_the_client(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(40_000))
    ordinary = Ordinary(stage, page=900)
    ordinary.some(1)
    _reset_after_keepalives(stage, port, 2.2)


@scene("mtu_black_hole", "network", Layout(wan_mtu=1300), at=("client",))
def nobody_hears_that_packets_are_too_big(stage: Stage) -> None:
    """The router knows, and a filter on it eats the message."""
    port = stage.port()
    stage.server.ip("link set eth0 mtu 1500")
    serve(stage.server, stage.server_ip, port, takes_uploads())
    stage.router.filter("output", "icmp type destination-unreachable drop")
    ordinary = Ordinary(stage, page=900)
    ordinary.some(1)

    def hangs() -> None:
        with stage.client.socket() as sock:
            sock.settimeout(2.2)
            sock.connect((stage.server_ip, port))
            sock.sendall(b"POST /in HTTP/1.1\r\nHost: app.example.net\r\nContent-Length: 60000\r\n\r\n")
            time.sleep(0.05)
            sock.sendall(b"u" * 60_000)
            try:
                answer = sock.recv(100)
            except TimeoutError:
                return
            raise AssertionError(f"the upload was to hang, and was answered: {answer!r}")

    stage.beside(hangs, times=2)


def _reset_after_keepalives(stage: Stage, port: int, seconds: float) -> None:
    def hangs() -> None:
        with stage.client.socket() as sock:
            sock.settimeout(seconds)
            sock.connect((stage.server_ip, port))
            sock.sendall(b"GET /big HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
            try:
                answer = sock.recv(100, socket.MSG_WAITALL)
            except TimeoutError:
                return
            raise AssertionError(f"the download was to hang, and was answered: {answer!r}")

    stage.beside(hangs, times=2)
    stage.together()
