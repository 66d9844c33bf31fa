"""Watches of paths: a snapshot of what decides about traffic, read again at times and compared."""

from ghost.agent.watches.drift_tasks import DriftTasks
from ghost.agent.watches.path_snapshot import (
    KeptPath,
    NetworkRead,
    Snapshot,
    network_of,
    open_snapshot,
    reads_on_record,
    snapshot_of,
)
from ghost.agent.watches.watch_file import WATCH, Watch, Watches
from ghost.agent.watches.watch_results import WatchResult, result_problems
from ghost.agent.watches.watch_runs import OpenShell, WatchRuns

__all__ = [
    "WATCH",
    "DriftTasks",
    "KeptPath",
    "NetworkRead",
    "OpenShell",
    "Snapshot",
    "Watch",
    "WatchResult",
    "WatchRuns",
    "Watches",
    "network_of",
    "open_snapshot",
    "reads_on_record",
    "result_problems",
    "snapshot_of",
]
