"""Facts stated by a server certificate.

Nothing is verified: no chain, no signature, no name. The library that reads it is loaded when the first certificate is
met; without it certificates are not read.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ghost.pcap import safe_text

_MOST_NAMES = 10
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before_ns: int
    not_after_ns: int
    self_signed: bool
    """Issued by whom it is issued to."""


def available() -> bool:
    try:
        import cryptography.x509  # noqa: F401
    except ImportError:
        return False
    return True


@lru_cache(maxsize=256)
def read_certificate(der: bytes) -> CertificateFacts | None:
    """Return the facts of a certificate; None if it cannot be read."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    unreadable = (ValueError, TypeError, x509.InvalidVersion, x509.DuplicateExtension, UnsupportedAlgorithm)
    # The library warns of certificates that break the standard; here they are data like others.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            certificate = x509.load_der_x509_certificate(der)
            return CertificateFacts(
                subject=safe_text.name(certificate.subject.rfc4514_string(), _LONGEST),
                issuer=safe_text.name(certificate.issuer.rfc4514_string(), _LONGEST),
                names=_names(certificate),
                not_before_ns=_nanoseconds(certificate.not_valid_before_utc),
                not_after_ns=_nanoseconds(certificate.not_valid_after_utc),
                self_signed=certificate.issuer == certificate.subject,
            )
        except unreadable:
            return None


def _names(certificate: object) -> tuple[str, ...]:
    from cryptography import x509

    assert isinstance(certificate, x509.Certificate)
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.UnsupportedGeneralNameType, x509.DuplicateExtension, ValueError):
        return ()
    names = [*extension.get_values_for_type(x509.DNSName)]
    names += map(str, extension.get_values_for_type(x509.IPAddress))
    return tuple(safe_text.name(each) for each in names[:_MOST_NAMES])


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000
