"""Watches of paths: a snapshot of what decides about traffic, read again at times and compared."""

from ghost.agent.watches.path_snapshot import (
    KeptPath,
    NetworkRead,
    Snapshot,
    open_snapshot,
    snapshot_of,
    snapshot_of_reads,
    walks_of,
)

__all__ = [
    "KeptPath",
    "NetworkRead",
    "Snapshot",
    "open_snapshot",
    "snapshot_of",
    "snapshot_of_reads",
    "walks_of",
]
