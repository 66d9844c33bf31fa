"""Traffic of this very test on the loopback interface, recorded by tcpdump and judged by the real program."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rrset
import pytest

pytestmark = [pytest.mark.needs("tcpdump")]

LOOPBACK = "127.0.0.1"
PAGE = b"x" * 200_000


class _Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def web_server() -> Iterator[int]:
    with http.server.ThreadingHTTPServer((LOOPBACK, 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def answer(wire: bytes) -> bytes | None:
    """`missing...` does not exist, `lost...` is never answered, everything else is at 127.0.0.1."""
    query = dns.message.from_wire(wire)
    name = query.question[0].name
    response = dns.message.make_response(query)
    response.flags |= dns.flags.RA
    if name.labels[0].startswith(b"lost"):
        return None
    if name.labels[0].startswith(b"missing"):
        response.set_rcode(dns.rcode.NXDOMAIN)
    else:
        response.answer.append(dns.rrset.from_text(name, 60, "IN", "A", LOOPBACK))
    return response.to_wire()


@contextmanager
def name_server() -> Iterator[str]:
    """Port 53 of a loopback address that is free; yields the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        address = next(address for address in (LOOPBACK, "127.0.0.77", "127.0.0.78") if _bound(server, address))
        server.settimeout(0.1)
        stopping = threading.Event()

        def serve() -> None:
            while not stopping.is_set():
                try:
                    wire, client = server.recvfrom(4096)
                except TimeoutError:
                    continue
                response = answer(wire)
                if response is not None:
                    server.sendto(response, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield address
        finally:
            stopping.set()
            thread.join()


def _bound(server: socket.socket, address: str) -> bool:
    try:
        server.bind((address, 53))
    except OSError:
        return False
    return True


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def recorded(file: Path, capture_filter: str) -> Iterator[None]:
    """Everything on the loopback interface that the filter lets through, written to `file`.

    A datagram marks the beginning and another the end: what lies between them is whole, however busy the machine.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as marker:
        marker.bind((LOOPBACK, 0))
        wanted = f"{capture_filter} or (udp port {marker.getsockname()[1]} and host {LOOPBACK})"
        buffer = ["-s", "65535", "-B", "32768"]  # KiB: loopback frames are large, and come in bursts
        command = ["tcpdump", "-i", "lo", "-n", "-U", "--immediate-mode", *buffer, "-w", str(file), wanted]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tcpdump:
            try:
                _wait_until_listening(tcpdump)
                _mark(marker, b"the recording begins", file)
                yield
                _mark(marker, b"the recording ends", file)
            finally:
                tcpdump.terminate()


def _wait_until_listening(tcpdump: subprocess.Popen[str]) -> None:
    assert tcpdump.stderr is not None
    for said in tcpdump.stderr:
        if "listening on" in said:
            return
        if "permi" in said.lower():
            pytest.skip(f"capturing is not permitted here: {said.strip()}")
    pytest.fail("tcpdump ended before it listened")


def _mark(marker: socket.socket, words: bytes, file: Path) -> None:
    marker.sendto(words, marker.getsockname())
    deadline = time.monotonic() + 20
    while not (file.exists() and words in file.read_bytes()):
        assert time.monotonic() < deadline, f"tcpdump did not write the datagram {words!r}"
        time.sleep(0.02)


def fetch(port: int) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    connection.request("GET", "/")
    assert connection.getresponse().read() == PAGE
    connection.close()


def lookup(server: str, name: str, timeout: float = 5.0) -> None:
    dns.query.udp(dns.message.make_query(name, "A"), server, timeout=timeout)


@dataclass(frozen=True)
class Investigated:
    findings: list[dict[str, Any]]
    semantic: dict[str, Any]
    summary: str
    server: str
    web: int
    closed: int

    def kinds(self) -> list[str]:
        return sorted(finding["kind"] for finding in self.findings)


def investigate(directory: Path, traffic: Callable[[str, int, int], None]) -> Investigated:
    """Records `traffic(name server, web port, closed port)` and runs the program on the capture."""
    capture = directory / "loopback.pcap"
    closed = closed_port()
    with web_server() as web, name_server() as server:
        wanted = f"tcp port {web} or tcp port {closed} or (udp port 53 and host {server})"
        with recorded(capture, wanted):
            traffic(server, web, closed)
    run = [sys.executable, "-I", "-m", "ghost.pcap", str(capture)]
    printed = subprocess.run([*run, "--findings"], capture_output=True, text=True, check=True, timeout=60)
    written = [*run, "--semantic-dir", str(directory), "--report-dir", str(directory)]
    subprocess.run(written, capture_output=True, check=True, timeout=60)
    return Investigated(
        json.loads(printed.stdout)["findings"],
        json.loads((directory / "loopback_semantic.json").read_text()),
        (directory / "loopback_executive_summary.md").read_text(),
        server,
        web,
        closed,
    )


def test_a_refused_port_and_a_lost_query_are_found_beside_healthy_traffic_and_nothing_else(tmp_path: Path) -> None:
    def traffic(server: str, web: int, closed: int) -> None:
        for number in range(3):
            lookup(server, f"host{number}.ghost.test")
            fetch(web)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, closed), timeout=5)
        with pytest.raises(dns.exception.Timeout):
            lookup(server, "lost.ghost.test", timeout=1.2)

    seen = investigate(tmp_path, traffic)

    assert seen.kinds() == ["dns_timeout", "refused"]
    by_kind = {finding["kind"]: finding for finding in seen.findings}
    refused, lost = by_kind["refused"], by_kind["dns_timeout"]
    assert refused["who"] == {"src": LOOPBACK, "dst": LOOPBACK, "port": seen.closed}
    assert (refused["blame"], refused["measured"]["refused"]) == ("server_application", 1)
    assert lost["who"]["dst"] == seen.server
    assert (lost["blame"], lost["measured"]) == ("dns", {"unanswered": 1, "queries": 4})
    assert "lost.ghost.test" in lost["detail"]

    dns_section, tcp = seen.semantic["dns"], seen.semantic["tcp"]
    assert (dns_section["queries_total"], dns_section["responses_total"], dns_section["unanswered_queries"]) == (
        4,
        3,
        1,
    )
    assert dns_section["rcode_distribution"] == {"NOERROR": 3}
    assert tcp["streams_total"] == 4
    assert tcp["connection_stats"]["handshakes_completed"] == 3
    assert tcp["connection_stats"]["refused"] == 1
    assert seen.semantic["findings"][0]["kind"] == "refused"
    assert str(seen.closed) in seen.summary.splitlines()[0]


def test_healthy_traffic_is_called_healthy_with_numbers(tmp_path: Path) -> None:
    def traffic(server: str, web: int, closed: int) -> None:
        for number in range(4):
            lookup(server, f"host{number}.ghost.test")
            fetch(web)

    seen = investigate(tmp_path, traffic)

    assert seen.kinds() == ["none"]
    assert "4 of 4 handshakes completed, 0 segments lost" in seen.findings[0]["detail"]
    assert "4 queries, 0 unanswered" in seen.findings[0]["detail"]
    assert seen.summary.startswith("# Info: No fault recognised")


def test_a_name_that_does_not_exist_is_found_in_real_traffic(tmp_path: Path) -> None:
    def traffic(server: str, web: int, closed: int) -> None:
        lookup(server, "missing.ghost.test")
        fetch(web)

    seen = investigate(tmp_path, traffic)

    assert seen.kinds() == ["dns_nxdomain"]
    assert "missing.ghost.test" in seen.findings[0]["title"]


def test_a_client_that_stops_reading_closes_its_window(tmp_path: Path) -> None:
    def traffic(server: str, web: int, closed: int) -> None:
        with socket.socket() as lazy:
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.connect((LOOPBACK, web))
            lazy.sendall(b"GET / HTTP/1.1\r\nHost: ghost.test\r\nConnection: close\r\n\r\n")
            threading.Event().wait(1.5)
            received = 0
            while chunk := lazy.recv(65536):
                received += len(chunk)
            assert received > len(PAGE)

    seen = investigate(tmp_path, traffic)

    assert seen.kinds() == ["zero_window"]
    assert (seen.findings[0]["blame"], seen.findings[0]["who"]["port"]) == ("client", seen.web)
