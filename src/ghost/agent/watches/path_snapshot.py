"""A snapshot of a path: which of a session's records say what decides about its traffic.

Data over records, not a second store: the outputs lie where the shell put them, and are checked when they are read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ghost.agent.audit_evidence import Evidence
from ghost.agent.facts.recorded_facts import argv_in
from ghost.agent.facts.second_walk import flows_of
from ghost.agent.fixes import Sender
from ghost.agent.network_records import reads_since_change
from ghost.agent.session import Session, SessionPaths
from ghost.errors import RecordError, SessionError
from ghost.net import Answer, Network, Read, Walk, absorb, home_in, missing_of, walk
from ghost.records import Head, verify
from ghost.shell import SAFE, printed_output

MAX_FLOWS: Final = 16
"""Flows of one snapshot; a cause may name many senders."""


@dataclass(frozen=True)
class NetworkRead:
    """A SAFE read of the network on record."""

    audit_id: str
    read: Read
    at: str
    """When it was run, as its record says it."""


@dataclass(frozen=True)
class Snapshot:
    session_id: str
    senders: tuple[Sender, ...]
    """The traffic: flows, with the interface that sends where an address does not tell it."""
    reads: tuple[NetworkRead, ...]
    """In the order of the session, the last of each command; none from before a change that the session made."""

    left_out: int = 0
    """Flows beyond `MAX_FLOWS`."""

    @property
    def taken_at(self) -> str:
        """When its last read was made; empty without one."""
        return max((each.at for each in self.reads), default="")


@dataclass(frozen=True)
class KeptPath:
    """What a snapshot's records say, once they were checked."""

    network: Network
    walks: tuple[Walk, ...]
    """Of each sender."""


def snapshot_of(session: Session, paths: SessionPaths) -> Snapshot:
    """Return the snapshot of a finished investigation. Raises `SessionError` where it has none."""
    if session.completion is None:
        raise SessionError(
            f"{session.session_id} is not finished: end it (ghost investigate --resume {session.session_id}) and watch "
            "it then, or name the ends: ghost watch add SOURCE DESTINATION PORT"
        )
    evidence = Evidence(paths.shell_audit)
    if paths.anonymization_map.exists() or evidence.is_masked:
        raise SessionError(
            f"{session.session_id} is private, and a walk compares real addresses: name the ends instead"
        )
    reads = reads_on_record(evidence)
    network = network_of(evidence, paths, reads)
    senders = itertools.chain.from_iterable(flows_of(network, flow) for flow in _stated_flows(session))
    found = tuple(dict.fromkeys(senders))
    if not found:
        raise SessionError(
            f"the records of {session.session_id} show no traffic that could be walked: name it by its ends and port"
        )
    return Snapshot(session.session_id, found[:MAX_FLOWS], reads, left_out=len(found[MAX_FLOWS:]))


def snapshot_of_reads(session_id: str, paths: SessionPaths, senders: Sequence[Sender]) -> Snapshot:
    """Return the snapshot of a session that read the network for this traffic, and concluded nothing."""
    return Snapshot(session_id, tuple(senders), reads_on_record(Evidence(paths.shell_audit)))


def open_snapshot(snapshot: Snapshot, paths: SessionPaths, head: Head | None) -> KeptPath:
    """Check the records of a snapshot, and walk its traffic. `head`: of the shell's audit, as it was kept elsewhere.

    Raises `RecordError` where the chain of records or an output is not as it was written.
    """
    if broken := verify(paths.shell_audit, head).errors:
        raise RecordError(f"the records of {snapshot.session_id} do not hold: {broken[0]}")
    network = network_of(Evidence(paths.shell_audit), paths, snapshot.reads)
    return KeptPath(network, walks_of(network, snapshot.senders))


def walks_of(network: Network, senders: Iterable[Sender]) -> tuple[Walk, ...]:
    return tuple(walk(network, flow, source=source) for flow, source in senders)


def reads_on_record(evidence: Evidence) -> tuple[NetworkRead, ...]:
    """Return the SAFE reads of the network that succeeded."""
    found, home = [], ""
    for audit_id in reads_since_change(evidence).values():
        record = evidence[audit_id]
        if record["classification"] != SAFE or record["exit_code"] != 0:
            continue
        argv, home = tuple(argv_in(record)), home or home_in(evidence.real_output(audit_id) or "")
        if (missing := missing_of(argv, home)) is not None:
            found.append(NetworkRead(audit_id, Read(argv, missing), str(record["timestamp"])))
    return tuple(found)


def network_of(evidence: Evidence, paths: SessionPaths, reads: Iterable[NetworkRead]) -> Network:
    """Return what these reads tell together. Raises `RecordError` where an output is not as it was written."""
    network = Network()
    for each in reads:
        network = absorb(network, each.read, Answer(_output(evidence, each.audit_id, paths), each.audit_id))
    return network


def _output(evidence: Evidence, audit_id: str, paths: SessionPaths) -> str:
    if audit_id not in evidence:
        raise RecordError(f"{audit_id} is not on record")
    return printed_output(evidence[audit_id], paths.audit_dir)


def _stated_flows(session: Session) -> Iterable[dict[str, Any]]:
    """Return the traffic that a conclusion names: of its causes, then what else it examined."""
    completion = session.completion or {}
    causes = [cause["flow"] for cause in completion.get("causes") or () if cause.get("flow")]
    examined = list(completion.get("traffic") or ())
    meant = [asdict(flow) for flow in session.meant.flows] if session.meant else []
    return [*causes, *examined, *meant]
