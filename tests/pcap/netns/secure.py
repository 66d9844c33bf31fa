"""TLS servers with certificates made on the spot, and clients that check them."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.pcap.netns.peers import Handler, connect, http_head, read_head
from tests.pcap.netns.space import Space

_DAY = datetime.timedelta(days=1)


def certificate(directory: Path, name: str, *, expired: bool = False) -> tuple[Path, Path]:
    """A self-signed certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    begin, end = (now - 400 * _DAY, now - 3 * _DAY) if expired else (now - _DAY, now + 300 * _DAY)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    stem = f"{name}-{made.serial_number:x}"
    files = directory / f"{stem}.pem", directory / f"{stem}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def secure_web(
    certificate_and_key: tuple[Path, Path], *, size: int = 5000, client_authority: Path | None = None,
    least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> Handler:  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate_and_key)
    context.minimum_version, context.maximum_version = least, most
    if client_authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_authority)

    def handle(sock: object) -> None:
        try:
            with context.wrap_socket(sock, server_side=True) as secured:  # type: ignore[arg-type]
                while read_head(secured):
                    secured.sendall(http_head(size) + b"s" * size)
        except ssl.SSLError:
            return  # the alert is in the capture

    return handle


def fetch_securely(
    space: Space, address: str, port: int, name: str, authority: Path | None, *,
    identity: tuple[Path, Path] | None = None, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
) -> int:  # fmt: skip
    """Bytes received; an `ssl.SSLError` where the handshake fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.maximum_version = most
    if authority:
        context.load_verify_locations(authority)
    if identity:
        context.load_cert_chain(*identity)
    got = 0
    with connect(space, address, port) as plain, context.wrap_socket(plain, server_hostname=name) as secured:
        secured.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        head = secured.recv(65536)
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        got = len(head.partition(b"\r\n\r\n")[2])
        while got < length:
            chunk = secured.recv(65536)
            if not chunk:
                break
            got += len(chunk)
    return got
