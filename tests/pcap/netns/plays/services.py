"""Servers and clients at fault: slow, broken, closing, not reading, with the wrong certificate."""

from __future__ import annotations

import socket
import ssl
import time

from tests.pcap.netns.peers import abort, body, connect, fetch, http_head, read_head, serve, takes_uploads, upload, web
from tests.pcap.netns.scene import Ordinary, scene
from tests.pcap.netns.secure import certificate, fetch_securely, secure_web
from tests.pcap.netns.stage import Stage


def _cut(stage: Stage, port: int) -> None:
    """A download that ends before its promised length."""
    try:
        got = fetch(stage.client, stage.server_ip, port)
    except OSError:
        return
    assert got < 60_000, got


@scene("mid_session_reset", "server_application")
def server_crashes_in_the_middle(stage: Stage) -> None:
    def crash(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(http_head(60_000) + body(20_000))
        time.sleep(0.05)
        abort(sock)

    port = stage.port()
    serve(stage.server, stage.server_ip, port, crash)
    ordinary = Ordinary(stage)
    for _ in range(3):
        _cut(stage, port)
        ordinary.some(1)


@scene("mid_session_reset", "client")
def client_aborts_in_the_middle(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(3_000_000))
    ordinary = Ordinary(stage)
    for _ in range(3):
        sock = connect(stage.client, stage.server_ip, port)
        sock.sendall(b"GET /long HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
        sock.recv(4096)
        abort(sock)
        ordinary.some(1)


@scene("early_close", "server_application")
def server_closes_before_the_answer_is_complete(stage: Stage) -> None:
    def close_early(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(http_head(60_000) + body(25_000))

    port = stage.port()
    serve(stage.server, stage.server_ip, port, close_early)
    ordinary = Ordinary(stage)
    for _ in range(3):
        _cut(stage, port)
        ordinary.some(1)


@scene("early_close", "server_application")
def server_closes_without_any_answer(stage: Stage) -> None:
    def only_listen(sock: socket.socket) -> None:
        read_head(sock)

    port = stage.port()
    serve(stage.server, stage.server_ip, port, only_listen)
    ordinary = Ordinary(stage)
    for _ in range(3):
        with connect(stage.client, stage.server_ip, port) as sock:
            sock.sendall(b"GET /gone HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
            assert sock.recv(100) == b""
        ordinary.some(1)


@scene("zero_window", "client")
def client_does_not_read(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, web(200_000))
    ordinary = Ordinary(stage)

    def lazy() -> None:
        with connect(stage.client, stage.server_ip, port, receive_buffer=8192) as sock:
            sock.sendall(b"GET /feed HTTP/1.1\r\nHost: app.example.net\r\n\r\n")
            time.sleep(1.3)
            left = 200_000
            while left > 0 and (piece := sock.recv(65536)):
                left -= len(piece)

    stage.beside(lazy, times=2)
    ordinary.some()


@scene("zero_window", "server_application", at=("client", "server"))
def server_does_not_read(stage: Stage) -> None:
    port = stage.port()
    serve(stage.server, stage.server_ip, port, takes_uploads(pause=0.15, chunk=12_000), receive_buffer=8192)
    ordinary = Ordinary(stage)
    stage.beside(lambda: upload(stage.client, stage.server_ip, port, 100_000), times=2)
    ordinary.some()


@scene("slow_application", "server_application")
def server_thinks_for_long(stage: Stage) -> None:
    """The request is acknowledged at once. No protocol that names its answers."""

    def think(sock: socket.socket) -> None:
        while sock.recv(4096):
            time.sleep(1.1)
            sock.sendall(b"\x02" + b"r" * 700)

    port = stage.port()
    serve(stage.server, stage.server_ip, port, think)
    ordinary = Ordinary(stage)

    def ask() -> None:
        with connect(stage.client, stage.server_ip, port) as sock:
            sock.sendall(b"\x01" + b"q" * 200)
            assert sock.recv(4096)

    stage.beside(ask, times=4)
    ordinary.some()


@scene("http_5xx", "server_application")
def server_answers_with_errors(stage: Stage) -> None:
    port = stage.port(8000, 9000)
    status = stage.dice.choice(("500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"))
    serve(stage.server, stage.server_ip, port, web(300, status=status))
    ordinary = Ordinary(stage)
    for _ in range(3):
        fetch(stage.client, stage.server_ip, port, requests=3)
        ordinary.some(1)


@scene("http_slow", "server_application")
def pages_come_late(stage: Stage) -> None:
    port = stage.port(8000, 9000)
    serve(stage.server, stage.server_ip, port, web(3000, wait=1.6))
    ordinary = Ordinary(stage)
    stage.beside(lambda: fetch(stage.client, stage.server_ip, port, path="/report"), times=4)
    ordinary.some()


# ------------------------------------------------------------------------------------------------------------- TLS


def _fails(stage: Stage, port: int, name: str, *, authority: object = None, **more: object) -> None:
    try:
        fetch_securely(stage.client, stage.server_ip, port, name, authority, **more)  # type: ignore[arg-type]
    except (ssl.SSLError, ConnectionResetError):
        return
    raise AssertionError("the handshake was to fail")


@scene("tls_failure", "server_application")
def certificate_is_expired(stage: Stage) -> None:
    name, port, good = "shop.example.net", stage.port(), stage.port()
    expired = certificate(stage.directory, name, expired=True)
    fresh = certificate(stage.directory, name)
    serve(stage.server, stage.server_ip, port, secure_web(expired))
    serve(stage.server, stage.server_ip, good, secure_web(fresh))
    ordinary = Ordinary(stage)
    for _ in range(3):
        fetch_securely(stage.client, stage.server_ip, good, name, fresh[0])
        _fails(stage, port, name, authority=expired[0], most=ssl.TLSVersion.TLSv1_2)
    ordinary.some(1)


@scene("tls_failure", "server_application")
def server_speaks_only_a_newer_version(stage: Stage) -> None:
    name, port = "pay.example.net", stage.port()
    pair = certificate(stage.directory, name)
    serve(stage.server, stage.server_ip, port, secure_web(pair, least=ssl.TLSVersion.TLSv1_3))
    ordinary = Ordinary(stage)
    for _ in range(3):
        _fails(stage, port, name, authority=pair[0], most=ssl.TLSVersion.TLSv1_2)
        ordinary.some(1)


@scene("tls_failure", "client")
def client_shows_no_certificate(stage: Stage) -> None:
    name, port = "api.example.net", stage.port()
    pair, identity = certificate(stage.directory, name), certificate(stage.directory, "someone")
    serve(stage.server, stage.server_ip, port, secure_web(pair, client_authority=identity[0]))
    ordinary = Ordinary(stage)
    for _ in range(3):
        _fails(stage, port, name, authority=pair[0], most=ssl.TLSVersion.TLSv1_2)
        ordinary.some(1)


@scene("tls_failure", "server_application")
def tls_handshake_hangs(stage: Stage) -> None:
    """The server takes the hello, acknowledges it, and says nothing."""
    port = stage.port()
    serve(stage.server, stage.server_ip, port, lambda sock: time.sleep(3.0))
    ordinary = Ordinary(stage)

    def gives_up() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with connect(stage.client, stage.server_ip, port) as plain:
            plain.settimeout(2.2)
            try:
                context.wrap_socket(plain, server_hostname="mute.example.net")
            except TimeoutError:
                return
        raise AssertionError("the handshake was to hang")

    stage.beside(gives_up, times=3)
    ordinary.some()
