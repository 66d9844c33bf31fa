"""The life cycle of packet captures by the lab's clock, and their blobs.

A created capture starts a moment later, runs until its time or size limit or a stop, and leaves a blob in the storage
account. Nothing runs in between: each request derives the state from the clock. Blob bytes are generated on request.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ghost.lab.arm.capture_filters import Limits, moment_full, recorded
from ghost.lab.directory import LabDirectory
from ghost.lab.world import World

START_DELAY = timedelta(seconds=2)
"""Between the creation of a capture and its first packet."""
LONGEST_SECONDS = 18000
LARGEST_BYTES = 1073741824
DEFAULT_CONTAINER = "network-watcher-logs"

Capture = dict[str, Any]
Blob = dict[str, Any]


def settle(state: dict[str, Any], now: datetime) -> None:
    """Apply what happened by now: the blob of an ended capture is recorded once."""
    for capture in state.get("captures", []):
        if not capture["uploaded"] and status(capture, now) == "Stopped":
            capture["uploaded"] = True
            if capture["container"] is not None:
                _upload(state, capture)


def settled(lab: LabDirectory) -> dict[str, Any]:
    """Return the current state for reading, without writing it."""
    state = lab.state()
    settle(state, lab.clock.now())
    return state


def status(capture: Capture, now: datetime) -> str:
    if capture["error"] is not None:
        return "Error"
    if now >= ends(capture):
        return "Stopped"
    return "Running" if now >= starts(capture) else "NotStarted"


def stop_reason(capture: Capture) -> str:
    """Return the stop reason of a stopped capture."""
    if capture["stopped"] is not None:
        return "Manual"
    return "MaxSizeExceeded" if capture["full_after"] is not None else "TimeExceeded"


def starts(capture: Capture) -> datetime:
    return datetime.fromisoformat(capture["starts"])


def ends(capture: Capture) -> datetime:
    if capture["stopped"] is not None:
        return datetime.fromisoformat(capture["stopped"])
    seconds = capture["time_limit"] if capture["full_after"] is None else capture["full_after"]
    return starts(capture) + timedelta(seconds=seconds)


def stop(capture: Capture, now: datetime) -> None:
    """Stop a capture; one that has ended stays unchanged, one that has not started ends empty."""
    if status(capture, now) == "NotStarted":
        capture["starts"] = now.isoformat()
    if status(capture, now) == "Running":
        capture["stopped"] = now.isoformat()


def seconds_until_full(world: World, capture: Capture) -> float | None:
    """Return the seconds until the size limit; None if the time limit comes first."""
    return moment_full(world, capture["machine"], starts(capture), capture["time_limit"], limits(capture))


def limits(capture: Capture | Blob) -> Limits:
    return Limits(capture["session_bytes"], capture["packet_bytes"], tuple(map(tuple, capture["filters"])))


def content(world: World, blob: Blob) -> bytes:
    """Return the pcap of a capture."""
    start = datetime.fromisoformat(blob["starts"])
    return recorded(world, blob["machine"], start, blob["seconds"], limits(blob))


def _upload(state: dict[str, Any], capture: Capture) -> None:
    blob = {
        "account": capture["account"],
        "container": capture["container"],
        "name": capture["blob"],
        "created": ends(capture).isoformat(),
        "machine": capture["machine"],
        "starts": capture["starts"],
        "seconds": (ends(capture) - starts(capture)).total_seconds(),
        **{name: capture[name] for name in ("session_bytes", "packet_bytes", "filters")},
    }
    state["blobs"] = [*(other for other in state.get("blobs", []) if place(other) != place(blob)), blob]


def place(blob: Blob) -> tuple[str, str, str]:
    """Return account, container and name; a later blob replaces an earlier one."""
    return blob["account"], blob["container"], blob["name"]
