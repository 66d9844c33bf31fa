"""The result of a rule: one cause, the hosts concerned, the frames that show it, and the commands to run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ghost.pcap.findings.phrasing import utc

SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW", "INFO")
"""Active threat; service down; degraded; worth knowing; no fault recognised."""
BLAMES = ("network", "policy", "server_application", "server_host", "client", "dns", "undecided", "none")
CONFIDENCES = ("high", "medium", "low")


@dataclass(frozen=True)
class Who:
    src: str
    dst: str
    port: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"src": self.src, "dst": self.dst, **({} if self.port is None else {"port": self.port})}


@dataclass(frozen=True)
class Remedy:
    command: str
    run_on: str


@dataclass(frozen=True)
class Finding:
    kind: str
    severity: str
    blame: str
    protocol: str
    title: str
    detail: str
    who: Who
    evidence: tuple[int, ...]
    """Frame numbers, at most a handful."""
    cause: str
    remediation: tuple[Remedy, ...]
    confidence: str
    weight: float = 0.0
    """Amount of traffic concerned; orders findings of one severity."""
    measured: Mapping[str, int | float] = field(default_factory=dict)
    other_targets: tuple[tuple[str, int | None], ...] = ()
    """Further targets (host, port) of the same fault; findings about them are explained by it."""
    other_pairs: tuple[Who, ...] = ()
    """Further host pairs of the same fault, in the same direction as `who`."""
    restrict: Callable[[Collection[Who]], Finding] | None = field(default=None, compare=False)
    """Restricts the finding to the given host pairs."""
    frames: tuple[int, int] | None = None
    """First and last frame that show it, of those that the rule looked at."""
    first_ns: int | None = None
    """When it was seen first, ns since 1970; None where no frame shows it."""
    last_ns: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of the hosts in `who`, as DNS answers, TLS and HTTP of the capture show them."""
    unusual: tuple[str, ...] = ()
    """Of kind `none`: what looks unusual in the capture, a sentence each."""
    name: str | None = None
    """The DNS name or server name that it is about, if it is about one."""
    id: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "blame": self.blame,
            "protocol": self.protocol,
            "title": self.title,
            "detail": self.detail,
            "who": self.who.as_dict(),
            **({"names": dict(self.names)} if self.names else {}),
            **({"first_utc": utc(self.first_ns)} if self.first_ns is not None else {}),
            **({"last_utc": utc(self.last_ns)} if self.last_ns is not None else {}),
            **({"measured": dict(self.measured)} if self.measured else {}),
            **({"name": self.name} if self.name else {}),
            **({"unusual": list(self.unusual)} if self.unusual else {}),
            "evidence": list(self.evidence),
            "cause": self.cause,
            "remediation": [{"command": remedy.command, "run_on": remedy.run_on} for remedy in self.remediation],
            "confidence": self.confidence,
        }
