"""Certificates of the scenes."""

from __future__ import annotations

import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .office import Office

_KEY = cache(lambda: ec.generate_private_key(ec.SECP256R1()))
_DAY = datetime.timedelta(days=1)


def issued(office: Office, *names: str, days: float = 90, since: float = -400, issuer: str | None = None) -> bytes:
    """A certificate for `names`, valid between two days told from the capture's; self-signed without an `issuer`."""
    subject, signer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (names[0], issuer or names[0])
    )
    now = datetime.datetime.fromtimestamp(1_700_000_000 + office.world.seed % 1000, datetime.UTC)
    built = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(signer).public_key(_KEY().public_key())
        .serial_number(1 + office.world.seed).not_valid_before(now + since * _DAY).not_valid_after(now + days * _DAY)
        .add_extension(x509.SubjectAlternativeName(list(map(x509.DNSName, names))), critical=False)
    )  # fmt: skip
    return built.sign(_KEY(), hashes.SHA256()).public_bytes(serialization.Encoding.DER)
