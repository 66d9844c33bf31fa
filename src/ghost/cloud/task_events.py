"""Events of a capture task: interpreted shell answers, and requests of the brain."""

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
    """No resource of that short name is in the resource group; it may be in another."""

    detail: str


@dataclass(frozen=True)
class TargetUnusable:
    detail: str


@dataclass(frozen=True)
class Learned:
    """Facts from a preflight read beside its verdict; None if unknown."""

    network_interface: str | None = None
    storage_account_id: str | None = None
    storage_location: str | None = None
    storage_endpoint: str | None = None
    storage_is_private: bool | None = None
    storage_is_closed: bool | None = None
    admitted_subnets: tuple[str, ...] | None = None
    principal: str | None = None


@dataclass(frozen=True)
class Checked:
    """A preflight check was made; `passed` is None if that was not possible."""

    check: Check
    passed: bool | None
    detail: str = ""
    learned: Learned = Learned()
    container_missing: bool = False
    """All that is wrong is that the container does not exist."""


@dataclass(frozen=True)
class AccountsListed:
    """The storage accounts that may take the capture, the likeliest first."""

    names: tuple[str, ...]
    detail: str = ""
    """Why they are not known."""


@dataclass(frozen=True)
class ContainerCreated:
    """The container of the capture was created."""


@dataclass(frozen=True)
class ContainerFailed:
    detail: str


@dataclass(frozen=True)
class CaptureCreated:
    """The capture exists. `name` and `place` are Azure's, since a person may have modified the command."""

    name: str | None = None
    place: BlobPlace | None = None


@dataclass(frozen=True)
class CreationFailed:
    detail: str
    refused: bool = False
    """Azure refused it. Otherwise the answer may be lost, and Azure may still be creating the capture."""


@dataclass(frozen=True)
class CaptureIdentified:
    """What has the capture's name in Azure, after a creation that was not confirmed."""

    exists: bool | None
    """None if unknown."""
    ours: bool | None = None
    """Whether target and storage path are the task's; None if Azure does not show both."""
    usable: bool = True
    """False if Azure failed to create it."""
    described: str = ""
    place: BlobPlace | None = None


@dataclass(frozen=True)
class CaptureListed:
    """Whether the capture is in Azure's list; None if unknown."""

    exists: bool | None


@dataclass(frozen=True)
class Denied:
    """The command was not approved and did not run."""

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
    """Azure answered that there is no such capture."""


@dataclass(frozen=True)
class BlobLocated:
    """The location of the capture's blob from `storagePath`; None if Azure did not report it."""

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
    """The optional files of the engine that exist."""


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
    """Continue from the current state: a check, or the first one after a crash."""


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
    absent: bool = False
    """It was not there."""


@dataclass(frozen=True)
class StepBusy:
    """Another operation on the resource is in progress."""

    step: int
    detail: str


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
    | AccountsListed
    | ContainerCreated
    | ContainerFailed
    | CaptureCreated
    | CreationFailed
    | CaptureIdentified
    | CaptureListed
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
    | StepBusy
    | StepKept
)
