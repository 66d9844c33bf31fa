"""TLS: cleartext hellos, alerts and certificates, and failed handshakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ghost.pcap.model.shared_values import Side, Statistics

TlsStage = Literal["alert", "no_server_hello", "reset_in_handshake", "closed_in_handshake", "hung", "not_tls"]


@dataclass(frozen=True, slots=True)
class TlsFailure:
    """One handshake that did not complete."""

    stream_id: int
    client: str
    server: str
    port: int
    server_name: str | None
    stage: TlsStage
    """alert: a fatal alert in clear ended it. reset_in_handshake and closed_in_handshake: one side reset or closed the
    connection before the handshake was over (in TLS 1.3 a certificate alert is encrypted and shows as this).
    no_server_hello: the hello was acknowledged or not, and no hello came back though the connection stayed open.
    hung: both said hello, and then nothing more came although the capture went on. not_tls: the server answered the
    hello with something that is no TLS."""
    alert: str | None = None
    """Its name in RFC 8446, such as `handshake_failure`; `encrypted` where its record shows that there was one."""
    alert_from: Side | None = None
    offered_version: str | None = None
    """The highest the client offered."""
    chosen_version: str | None = None
    """None without a server hello."""
    ended_by: Side | None = None
    """Who reset or closed first; None where nobody did."""
    silent: Side | None = None
    """Who owed the next flight when it stopped."""
    waited_ms: float | None = None
    """From the last handshake record to the end of the connection or of the capture."""
    frames: tuple[int, ...] = ()
    certificate: Certificate | None = None
    """What the server had sent in clear."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A server's own certificate, as sent in clear (TLS 1.2 and older). Judge it by `seen_ns`, the capture's time."""

    server: str
    port: int
    subject: str
    issuer: str
    names: tuple[str, ...]
    """Subject alternative names; the common name where it has none."""
    not_before_ns: int
    not_after_ns: int
    self_signed: bool
    frame: int
    seen_ns: int = 0
    """When it was first sent."""
    count: int = 1
    issuer_sent: bool = True
    """With a certificate of its issuer, an intermediate or a root; False where it came without."""
    asked: tuple[str, ...] = ()
    """Server names that clients had asked for, up to twenty."""

    def is_for(self, server_name: str) -> bool:
        """Return whether a name or a wildcard of one label covers `server_name` (RFC 9525, 6.3)."""
        wanted = server_name.lower().rstrip(".")
        wildcard = "*." + wanted.partition(".")[2]
        return any(name.lower().rstrip(".") in (wanted, wildcard) for name in self.names)

    @property
    def expired(self) -> bool:
        return self.seen_ns > self.not_after_ns

    @property
    def not_yet_valid(self) -> bool:
        return self.seen_ns < self.not_before_ns

    @property
    def days_left(self) -> float:
        """From when it was seen; negative once expired."""
        return (self.not_after_ns - self.seen_ns) / 86_400e9


@dataclass(frozen=True, slots=True)
class TlsSection:
    client_hellos: int = 0
    server_hellos: int = 0
    """Hello retry requests not counted."""
    hello_retries: int = 0
    handshakes_completed: int = 0
    versions_offered: Mapping[str, int] = field(default_factory=dict)
    """The highest version of each client hello, e.g. `{"TLS 1.3": 4}`."""
    versions_chosen: Mapping[str, int] = field(default_factory=dict)
    server_names: Mapping[str, int] = field(default_factory=dict)
    """Most frequent first, up to twenty."""
    distinct_server_names: int = 0
    alerts: Mapping[str, int] = field(default_factory=dict)
    """In clear, with the side that sent it: `{"server: handshake_failure": 2}`; closures are not counted."""
    failures: tuple[TlsFailure, ...] = ()
    """Some thousands at most, and of each service as many as of any other."""
    failures_total: int = 0
    certificates: tuple[Certificate, ...] = ()
    """Each server's once, soonest to expire first, up to fifty."""
    handshake_ms: Statistics | None = None
    """From the client's hello to the last flight that starts encryption."""
