"""What the engineer complains about, as traffic: one or several flows, each with its candidates.

A candidate says for each of its pieces where it came from: the report tells what was stated and what guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ghost.brain.conversation import StatedEnds as StatedEnds
from ghost.net import Flow

Kind = Literal["unreachable", "slow", "intermittent", "reset", "refused", "dns"]
PortOrigin = Literal["stated", "listener", "balancer", "rule", "observed", "usual", ""]
"""`stated`: by words, a pasted error or an option; `usual`: guessed from the name of a product; empty: not known."""

GUESSED: Final = ("usual", "")


@dataclass(frozen=True)
class End:
    """One end of the traffic."""

    label: str
    """What a person calls it: a machine, a front end, a service, an address, "the internet"."""
    address: str
    """An address, or of a destination the DNS name that its source asks for."""
    machine: str = ""
    """Id of the virtual machine; empty if it is none that was read."""
    interface: str = ""
    """Id."""
    origin: str = ""
    """Where it came from, for the report: `named in the symptom`, `the only machine tagged redis`, ..."""
    stands_for: tuple[str, ...] = ()
    """Labels of others with the same gates, of which this one is the example."""


@dataclass(frozen=True)
class Candidate:
    flow: Flow
    """From the address of `source` to the address or name of `destination`."""
    source: End
    destination: End
    port_origin: PortOrigin = ""
    protocol_stated: bool = False
    meaning: int = 0
    """Candidates of one number are all meant; different numbers exclude each other, the likelier first."""

    @property
    def port_guessed(self) -> bool:
        """Whether the flow has ports and nobody stated or observed this one."""
        return self.flow.has_ports and self.port_origin in GUESSED

    @property
    def traffic(self) -> str:
        port = "" if self.flow.destination_port is None else f" port {self.flow.destination_port}"
        usual = " (its usual port, not stated)" if self.port_origin == "usual" else ""
        return f"{self.flow.protocol.upper()}{port}{usual}"

    def __str__(self) -> str:
        return f"{self.traffic} from {self.source.label} to {self.destination.label}"


@dataclass(frozen=True)
class Complaint:
    text: str
    kind: Kind
    flows: tuple[tuple[Candidate, ...], ...]
    """What fails, each flow with its candidates; empty if nothing could be made out."""
    source_known: bool = True
    """False: no source was named, and the candidates' sources stand for everybody who can reach the destination."""
    stated: StatedEnds = field(default_factory=StatedEnds)
    """What options and answers state beside the text."""
    ends_sure: bool = True
    """False: other traffic may be meant, and nobody could say."""
    missing: str = ""
    """What is not known, where `flows` is empty: `the destination ("the new thing")`."""
    same: str = ""
    """The machine that is both source and destination, where `flows` is empty for that reason."""
    invalid_port: str = ""
    """A number given as a port that is none, where `flows` is empty for that reason."""

    @property
    def port_stated(self) -> bool:
        """Whether each flow with ports has one that was stated or observed, or that its front end has."""
        return not any(c.flow.has_ports and c.port_origin in (*GUESSED, "rule") for c in self.candidates)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(candidate for flow in self.flows for candidate in flow)
