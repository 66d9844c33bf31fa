"""The certificate authority of one lab. Its key stays in the process; only the certificate is written."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

from ghost.lab.arm.service_hosts import CERTIFIED
from ghost.records import write_text


class LabAuthority:
    def __init__(self) -> None:
        self._authority = trustme.CA(organization_name="SIMULATED Azure of a Ghost lab")

    def write(self, path: Path) -> None:
        """Write the authority's certificate, for clients to trust."""
        write_text(path, self._authority.cert_pem.bytes().decode())

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*CERTIFIED).configure_cert(context)
        return context

    def write_server_pair(self, certificate: Path, key: Path, *names: str) -> None:
        """Write certificate and key for a separate server, such as another storage emulator."""
        issued = self._authority.issue_cert(*names)
        write_text(certificate, "".join(blob.bytes().decode() for blob in issued.cert_chain_pems))
        write_text(key, issued.private_key_pem.bytes().decode())
