"""TCP connections that carry given bytes, and real TLS endpoints that talk in memory."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .wire import ACK, CLIENT, FIN, MS, PSH, RST, SERVER, SYN, Record, ethernet, ip, tcp, udp

START = 1_700_000_000 * 1_000_000_000


@dataclass
class Connection:
    """Writes down both sides of a connection; every send is acknowledged."""

    client: str = CLIENT
    server: str = SERVER
    client_port: int = 40_000
    server_port: int = 443
    now: int = START
    mss: int = 1400
    records: list[Record] = field(default_factory=list)
    sequences: dict[bool, int] = field(default_factory=lambda: {True: 1_000, False: 5_000})
    number: int = 1

    def _segment(self, from_client: bool, flags: int, payload: bytes = b"") -> None:
        self.now += MS
        ends = (self.client, self.server) if from_client else (self.server, self.client)
        ports = (self.client_port, self.server_port) if from_client else (self.server_port, self.client_port)
        ack = 0 if flags == SYN else self.sequences[not from_client]
        segment = tcp(*ports, self.sequences[from_client], ack, flags, payload)
        self.number += 1
        self.records.append((self.now, ethernet(ip(*ends, 6, segment, number=self.number))))
        self.sequences[from_client] += len(payload) + bool(flags & (SYN | FIN))

    def opened(self) -> Connection:
        self._segment(True, SYN)
        self._segment(False, SYN | ACK)
        self._segment(True, ACK)
        return self

    def send(self, from_client: bool, octets: bytes, *, acknowledged: bool = True) -> Connection:
        for at in range(0, len(octets), self.mss):
            self._segment(from_client, ACK | PSH, octets[at : at + self.mss])
        if acknowledged:
            self._segment(not from_client, ACK)
        return self

    def asks(self, octets: bytes) -> Connection:
        return self.send(True, octets)

    def answers(self, octets: bytes) -> Connection:
        return self.send(False, octets)

    def closes(self, from_client: bool = True) -> Connection:
        """This side, then the other."""
        for side in (from_client, not from_client):
            self._segment(side, FIN | ACK)
            self._segment(not side, ACK)
        return self

    def resets(self, from_client: bool = True) -> Connection:
        self._segment(from_client, RST | ACK)
        return self

    def waits(self, ms: float) -> Connection:
        self.now += int(ms * MS)
        return self


def later(ms: float, since: int = START) -> Record:
    """An unrelated packet that shows that the capture went on."""
    return since + int(ms * MS), ethernet(ip("10.9.9.9", "10.9.9.8", 17, udp(9, 9, b"later")))


@cache
def certificate(name: str = "service.example", *, days: int = 90, issued: int = START) -> Path:
    """A self-signed certificate with its key, valid from a day before `issued` for so many days after."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    at = datetime.datetime.fromtimestamp(issued / 1e9, datetime.UTC).replace(microsecond=0)
    alternatives = [x509.DNSName(name), x509.IPAddress(ipaddress.IPv4Address(SERVER))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(at - datetime.timedelta(days=1))
        .not_valid_after(at + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = Path(tempfile.mkdtemp()) / "server.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def server_context(days: int = 90) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(days=days))
    return context


def client_context(*, trusting: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trusting:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass
class TlsPair:
    """Two real endpoints; `flights` are what each of them writes, in turn, until neither has more to say."""

    client_context: ssl.SSLContext
    server_context: ssl.SSLContext
    name: str | None = "service.example"
    failures: list[ssl.SSLError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._buffers = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in range(2)]
        incoming, outgoing = self._buffers[0]
        self.client = self.client_context.wrap_bio(incoming, outgoing, server_hostname=self.name)
        incoming, outgoing = self._buffers[1]
        self.server = self.server_context.wrap_bio(incoming, outgoing, server_side=True)

    def flights(self, steps: list[tuple[bool, Callable[[ssl.SSLObject], object]]]) -> Iterator[tuple[bool, bytes]]:
        """Let each side take its step once, and wherever it can go on."""
        waiting = list(steps)
        for _ in range(20):
            moved = False
            for index in (0, 1):
                endpoint = self.client if index == 0 else self.server
                mine = next((step for step in waiting if step[0] == (index == 0)), None)
                if mine is not None:
                    try:
                        mine[1](endpoint)
                        waiting.remove(mine)
                    except (ssl.SSLWantReadError, ssl.SSLSyscallError):
                        pass
                    except ssl.SSLError as failure:
                        self.failures.append(failure)
                        waiting.remove(mine)
                octets = self._buffers[index][1].read()
                if octets:
                    moved = True
                    self._buffers[1 - index][0].write(octets)
                    yield index == 0, octets
            if not moved:
                return

    def handshake(self) -> Iterator[tuple[bool, bytes]]:
        return self.flights([(True, ssl.SSLObject.do_handshake), (False, ssl.SSLObject.do_handshake)])

    def exchange(self, request: bytes, answer: bytes) -> Iterator[tuple[bool, bytes]]:
        yield from self.flights([(True, _writes(request))])
        yield from self.flights([(False, lambda endpoint: endpoint.read(1 << 16))])
        for at in range(0, len(answer), 16_000):
            yield from self.flights([(False, _writes(answer[at : at + 16_000]))])


def _writes(octets: bytes) -> Callable[[ssl.SSLObject], object]:
    return lambda endpoint: endpoint.write(octets)


def tls(pair: TlsPair, connection: Connection | None = None) -> Connection:
    """The connection with the handshake of the pair."""
    connection = (connection or Connection()).opened()
    for from_client, octets in pair.handshake():
        connection.send(from_client, octets)
    return connection
