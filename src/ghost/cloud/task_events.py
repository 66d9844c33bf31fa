"""What can happen to a capture task: answers of the shell as they were understood, and requests of the brain."""

from __future__ import annotations

from dataclasses import dataclass

from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import BlobPlace


@dataclass(frozen=True)
class Registered:
    """The task is in the registry."""


@dataclass(frozen=True)
class TargetFound:
    resource_type: str
    location: str
    resource_id: str | None = None


@dataclass(frozen=True)
class TargetMissing:
    """Nothing of that short name is in the resource group; it may be in another."""

    detail: str


@dataclass(frozen=True)
class TargetUnusable:
    detail: str


@dataclass(frozen=True)
class Learned:
    """Facts that a preflight read gave beside its verdict; None where it gave none."""

    network_interface: str | None = None
    storage_account_id: str | None = None
    storage_location: str | None = None
    storage_endpoint: str | None = None
    storage_is_private: bool | None = None


@dataclass(frozen=True)
class Checked:
    """A preflight check was made. `passed` is None where that could not be done."""

    check: Check
    passed: bool | None
    detail: str = ""
    learned: Learned = Learned()


@dataclass(frozen=True)
class CaptureCreated:
    """`name` and `place` are what Azure reports; a person may have modified the command."""

    name: str | None = None
    place: BlobPlace | None = None


@dataclass(frozen=True)
class CreationFailed:
    detail: str
    cut_off: bool = False
    """The command was stopped before its end: Azure may still be at work on it."""
    taken: bool = False
    """Azure refused because a capture of that name was there before: it need not be this task's."""


@dataclass(frozen=True)
class LeftoverLookedFor:
    """After a failed creation: is a capture of that name there? None where that could not be found out."""

    exists: bool | None


@dataclass(frozen=True)
class Denied:
    """The shell did not run the command because it was not approved."""

    reason: str | None = None


@dataclass(frozen=True)
class Polled:
    status: str
    stop_reason: str | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True)
class PollFailed:
    detail: str
    absent: bool = False
    """Azure answered that it knows no such capture."""


@dataclass(frozen=True)
class BlobLocated:
    """Where the capture's blob is, by Azure's `storagePath`; None where Azure did not say."""

    place: BlobPlace | None


@dataclass(frozen=True)
class Downloaded:
    size_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class DownloadFailed:
    detail: str
    left_a_file: bool = False


@dataclass(frozen=True)
class Analysed:
    also_written: tuple[str, ...] = ()
    """Those of the engine's optional files that are there."""


@dataclass(frozen=True)
class AnalysisFailed:
    detail: str


@dataclass(frozen=True)
class PartnerReady:
    """The other end of a pair is captured and downloaded to `capture`."""

    capture: str


@dataclass(frozen=True)
class PartnerLost:
    """The other end of a pair ended without a capture."""


@dataclass(frozen=True)
class ComparedByPartner:
    """The other end of a pair ran the comparison of both."""

    capture: str


@dataclass(frozen=True)
class Resumed:
    """Go on where the task stands: a check, or the first one after a crash."""


@dataclass(frozen=True)
class CancelRequested:
    reason: str | None = None


@dataclass(frozen=True)
class SessionEnded:
    """The session that the task belonged to ended while it was active."""


@dataclass(frozen=True)
class CleanupRequested:
    include_artifacts: bool = False


@dataclass(frozen=True)
class StepCleaned:
    step: int


@dataclass(frozen=True)
class StepKept:
    step: int
    detail: str


Event = (
    Registered
    | TargetFound
    | TargetMissing
    | TargetUnusable
    | Checked
    | CaptureCreated
    | CreationFailed
    | LeftoverLookedFor
    | Denied
    | Polled
    | PollFailed
    | BlobLocated
    | Downloaded
    | DownloadFailed
    | Analysed
    | AnalysisFailed
    | PartnerReady
    | PartnerLost
    | ComparedByPartner
    | Resumed
    | CancelRequested
    | SessionEnded
    | CleanupRequested
    | StepCleaned
    | StepKept
)
