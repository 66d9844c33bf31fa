"""Facts stated by a server certificate. No signature is verified.

The library that reads it is loaded when the first certificate is met.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from ghost.pcap import safe_text
from ghost.pcap.protocols.host_names import plausible

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_MOST_NAMES = 1_000
_LONGEST = 200
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    subject: str
    issuer: str
    names: tuple[str, ...]
    """Subject alternative names; the common name where it has none."""
    not_before_ns: int
    not_after_ns: int
    self_signed: bool
    """Issued by whom it is issued to."""


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


def _names(certificate: Certificate) -> tuple[str, ...]:
    from cryptography import x509

    names: list[str] = []
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += extension.get_values_for_type(x509.DNSName)
        names += map(str, extension.get_values_for_type(x509.IPAddress))
    except x509.ExtensionNotFound:
        common = [str(each.value) for each in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        names += (name for name in common if plausible(name.encode()))
    except (x509.UnsupportedGeneralNameType, x509.DuplicateExtension, ValueError):
        return ()
    return tuple(safe_text.name(each, _LONGEST_NAME) for each in names[:_MOST_NAMES])


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000
