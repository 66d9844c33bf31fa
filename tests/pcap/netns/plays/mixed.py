"""Transfers of all kinds over a path drawn from the seed, to compare analyses of the same packets. Carries no label."""

from __future__ import annotations

import contextlib
import random
import socket
import time

from tests.pcap.netns.link import Impairment
from tests.pcap.netns.peers import abort, connect, converse, echo, fetch, serve, takes_uploads, upload, web
from tests.pcap.netns.scene import Ordinary, scene
from tests.pcap.netns.stage import Layout, Stage


def _way(dice: random.Random) -> Impairment:
    def perhaps(chance: float, low: float, high: float) -> float:
        return dice.uniform(low, high) if dice.random() < chance else 0.0

    return Impairment(
        delay_ms=dice.choice([0.0, 0.3, 2, 8, 25, 60]),
        jitter_ms=perhaps(0.3, 0.1, 6),
        loss=perhaps(0.5, 0.003, 0.06),
        burst=dice.choice([1, 1, 3]),
        reorder=perhaps(0.35, 0.005, 0.06),
        reorder_ms=dice.uniform(0.2, 12),
        duplicate=perhaps(0.25, 0.005, 0.05),
        corrupt=perhaps(0.15, 0.002, 0.02),
        rate_mbit=perhaps(0.3, 6, 30),
        queue_bytes=dice.choice([15_000, 60_000, 2_000_000]),
        spare=dice.choice([200, 60, 0]),
    )


def draw(dice: random.Random) -> Layout:
    return Layout(there=_way(dice), back=_way(dice), offload=dice.random() < 0.25)


@scene("none", "undecided", draw, at=("client", "server", "wan"))
def anything(stage: Stage) -> None:
    """Downloads, uploads, talk both ways at once, readers that pause, keep-alives, aborts."""
    dice, client, server = stage.dice, stage.client, stage.server_ip
    page, sink, talk, slow = (stage.port() for _ in range(4))
    serve(stage.server, server, page, web(dice.randrange(50_000, 260_000)))
    serve(stage.server, server, sink, takes_uploads())
    serve(stage.server, server, slow, takes_uploads(pause=dice.uniform(0.02, 0.12), chunk=6000), receive_buffer=4096)
    serve(stage.server, server, talk, echo)
    size = dice.randrange(40_000, 160_000)
    stage.beside(lambda: _willing(lambda: fetch(client, server, page)), times=2)
    stage.beside(lambda: _willing(lambda: upload(client, server, sink, size)))
    stage.beside(lambda: _willing(lambda: upload(client, server, slow, 50_000)), times=2)
    stage.beside(lambda: _willing(lambda: _both_ways(stage, talk, size)))
    stage.beside(lambda: _willing(lambda: converse(client, server, talk, 12)))
    stage.beside(lambda: _willing(lambda: _pausing_reader(stage, page)), times=4)
    stage.beside(lambda: _willing(lambda: _idle(stage, talk)), times=12)
    stage.beside(lambda: _willing(Ordinary(stage).some))
    time.sleep(4.0)  # a path may be so bad that parts never end; what was recorded by then counts
    stage.leave()


def _willing(work: object) -> None:
    """Any outcome is welcome: the path decides."""
    with contextlib.suppress(OSError, RuntimeError, AssertionError, ValueError):
        work()  # type: ignore[operator]


def _both_ways(stage: Stage, port: int, size: int) -> None:
    """The echo comes back while the rest is still on its way: each direction carries data and acknowledges some."""
    with connect(stage.client, stage.server_ip, port) as sock:
        stage.beside(lambda: _willing(lambda: sock.sendall(b"b" * size)))
        left = size
        while left > 0 and (piece := sock.recv(65536)):
            left -= len(piece)


def _pausing_reader(stage: Stage, port: int) -> None:
    with connect(stage.client, stage.server_ip, port, receive_buffer=4096) as sock:
        sock.sendall(b"GET /slow HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
        for _ in range(8):
            time.sleep(0.3)
            if not sock.recv(3000):
                return
        abort(sock)


def _idle(stage: Stage, port: int) -> None:
    with connect(stage.client, stage.server_ip, port) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        sock.sendall(b"hello")
        time.sleep(3.8)
