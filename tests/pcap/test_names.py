"""Names asked for in clear."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghost.pcap.analysis import analyse
from ghost.pcap.protocols.host_names import http_host, plausible

from .wire import ACK, CLIENT, PSH, SERVER, ethernet, ip, pcap, tcp


def hello(name: str) -> bytes:
    """The first record that a real TLS client sends."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("payload", "name"),
    [
        (hello("www.example.org"), "www.example.org"),
        (b"GET / HTTP/1.1\r\nAccept: */*\r\nHost: api.example.org:8080\r\n\r\n", "api.example.org:8080"),
        (b"POST /x HTTP/1.1\r\nhost:h\r\nContent-Length: 10\r\n\r\nHost: body", "h"),
        (b"GET / HTTP/1.1\r\nHost: <script>\r\n\r\n", None),
        (b"SSH-2.0-OpenSSH_9.2 and more", None),
    ],
    ids=["tls", "http", "host in the body", "no host name", "neither"],
)
def test_a_stream_knows_the_name_its_client_asked_for(tmp_path: Path, payload: bytes, name: str | None) -> None:
    path = tmp_path / "named.pcap"
    path.write_bytes(pcap([(1, ethernet(ip(CLIENT, SERVER, 6, tcp(40_000, 443, 1, 1, ACK | PSH, payload))))]))
    section = analyse(path).tcp
    assert section is not None
    assert section.streams[0].server_name == name


@given(st.binary(max_size=120))
def test_arbitrary_payloads_name_nothing_or_a_name(payload: bytes) -> None:
    for name in (http_host(b"GET / HTTP/1.1\r\nHost:" + payload), plausible(payload)):
        assert name is None or (name.isascii() and name.isprintable() and 0 < len(name) <= 255 and " " not in name)
