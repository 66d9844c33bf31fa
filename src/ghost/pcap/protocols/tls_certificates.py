"""Certificates of servers and the facts that they state. No signature is verified.

The library that reads it is loaded when the first certificate is met.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from ghost.pcap import safe_text
from ghost.pcap.model import Certificate
from ghost.pcap.protocols.host_names import plausible
from ghost.pcap.protocols.tls_messages import read_certificates

if TYPE_CHECKING:
    from cryptography import x509

_MOST = 4_096
_MOST_ASKED = 20
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


@dataclass(slots=True, eq=False)
class SentCertificate:
    """A certificate message of a server, and who asked."""

    endpoint: int
    message: bytes
    frame: int
    seen_ns: int
    count: int = 0
    asked: set[str] = field(default_factory=set)


class ServerCertificates:
    """At most some thousands of them."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, bytes], SentCertificate] = {}

    def add(self, endpoint: int, message: bytes, frame: int, now: int, asked: str | None) -> SentCertificate | None:
        """Count a certificate message; return None if there is no room for another."""
        sent = self._sent.get((endpoint, message))
        if sent is None:
            if len(self._sent) >= _MOST:
                return None
            sent = self._sent[endpoint, message] = SentCertificate(endpoint, message, frame, now)
        sent.count += 1
        sent.frame, sent.seen_ns = min((sent.frame, sent.seen_ns), (frame, now))
        if asked and len(sent.asked) < _MOST_ASKED:
            sent.asked.add(asked.lower())
        return sent

    def read(self, address: Callable[[int], str]) -> dict[SentCertificate, Certificate]:
        """Return those that can be read."""
        known = {}
        for sent in self._sent.values():
            own, *others = [read_certificate(each) for each in read_certificates(sent.message)] or [None]
            if own is not None:
                known[sent] = Certificate(
                    server=address(sent.endpoint >> 16), port=sent.endpoint & 0xFFFF, subject=own.subject,
                    issuer=own.issuer, names=own.names, not_before_ns=own.not_before_ns,
                    not_after_ns=own.not_after_ns, self_signed=own.self_signed, frame=sent.frame,
                    seen_ns=sent.seen_ns, count=sent.count, asked=tuple(sorted(sent.asked)),
                    issuer_sent=any(other is None or other.subject == own.issuer for other in others),
                )  # fmt: skip
        return known


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


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
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
