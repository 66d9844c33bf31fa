"""One capture task as stored in the registry."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, field_serializer

from ghost.cloud.preflight import Check
from ghost.cloud.resource_names import (
    ScaleSetInstance,
    is_blob_name,
    is_capture_name,
    is_container,
    is_local_path,
    is_location,
    is_placeholder,
    is_principal,
    is_resource_group,
    is_resource_id,
    is_storage_account,
    is_storage_endpoint,
    scale_set_instance,
    short_name,
    subscription_of,
)
from ghost.cloud.traffic_filters import CaptureFilter
from ghost.records import isoformat, valid_session_id


class State(StrEnum):
    CREATED = "CREATED"
    DETECTING = "DETECTING"
    APPROVED = "APPROVED"
    PROVISIONING = "PROVISIONING"
    WAITING = "WAITING"
    DOWNLOADING = "DOWNLOADING"
    ANALYZING = "ANALYZING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    CLEANING_UP = "CLEANING_UP"
    DONE = "DONE"
    ABANDONED = "ABANDONED"


class Outcome(StrEnum):
    """How the capture ended. Kept after cleanup, so that DONE does not hide a failure."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class CleanupStatus(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    PARTIAL = "partial"
    SKIPPED = "skipped"


class Mode(StrEnum):
    SINGLE_END = "single_end"
    COMPARISON = "comparison"
    SINGLE_END_FALLBACK = "single_end_fallback"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    def having(self, **changes: Any) -> Self:
        return self.model_copy(update=changes)


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("the time is outside the supported range") from error


def _matching(holds: Callable[[str], bool]) -> AfterValidator:
    def check(text: str) -> str:
        if not holds(text):
            raise ValueError("this is not safe in a command")
        return text

    return AfterValidator(check)


def _is_cleanup_command(command: str) -> bool:
    """Return whether the command removes a capture, a blob or one file, as plans do. Others may write to a registry
    file.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if words[:1] == ["rm"]:
        return len(words) == 2 and is_local_path(words[1])
    return any(tuple(words[: len(verb)]) == verb for verb in _DELETIONS)


_DELETIONS = (("az", "network", "watcher", "packet-capture", "delete"), ("az", "storage", "blob", "delete"))

Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
CaptureName = Annotated[str, _matching(is_capture_name)]
Location = Annotated[str, _matching(is_location)]
ResourceId = Annotated[str, _matching(lambda text: is_resource_id(text) or is_placeholder(text))]
Endpoint = Annotated[str, _matching(is_storage_endpoint)]
# An empty text stands for what a record of another tool leaves out.
ResourceGroup = Annotated[str, _matching(lambda text: not text or is_resource_group(text))]
StorageAccount = Annotated[str, _matching(lambda text: not text or is_storage_account(text))]
Container = Annotated[str, _matching(lambda text: not text or is_container(text))]
BlobName = Annotated[str, _matching(lambda text: not text or is_blob_name(text))]
Principal = Annotated[str, _matching(is_principal)]
LocalPath = Annotated[str, _matching(lambda text: not text or is_local_path(text))]


class CleanupStep(_Record):
    """One resource to remove and the command that removes it."""

    command: Annotated[str, _matching(_is_cleanup_command)]
    executed: bool = False
    resource: str = ""
    kept_because: str | None = None
    not_needed: str | None = None
    """Why there is nothing to remove."""
    attempts: int = 0
    """How often Azure was busy, in one clean-up."""

    @property
    def name(self) -> str:
        return self.resource or self.command

    @property
    def in_cloud(self) -> bool:
        return self.command.startswith("az ")


class CheckResult(_Record):
    """The result of a preflight check; `passed` is None if it could not be made."""

    check: Check
    passed: bool | None
    detail: str = ""


class Denial(_Record):
    """A command of the task that a person refused, which ended the task."""

    audit_id: str | None
    reason: str | None


class Timestamps(_Record):
    created: Moment | None = None
    approved: Moment | None = None
    provisioned: Moment | None = None
    first_poll: Moment | None = None
    last_poll: Moment | None = None
    completed: Moment | None = None
    cleanup_started: Moment | None = None
    cleanup_completed: Moment | None = None

    @field_serializer("*")
    def _iso(self, moment: datetime | None) -> str | None:
        return None if moment is None else isoformat(moment)


class CaptureTask(_Record):
    task_id: CaptureName
    session_id: Annotated[str, _matching(valid_session_id)]
    network: str | None = None
    """In which it is; None in records that do not tell."""
    intent: str = "capture_traffic"
    target: str = ""
    target_type: str | None = None
    state: State
    outcome: Outcome | None = None
    """None until the capture, or the analysis of a pair, is finished."""
    mode: Mode = Mode.SINGLE_END
    investigation_context: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    resource_group: ResourceGroup = ""
    target_id: ResourceId | None = None
    """The target's resource id; `target` is the requested name."""
    network_interface: ResourceId | None = None
    location: Location | None = None
    """The target's region, used by every later packet-capture command."""
    azure_operation_id: CaptureName | None = None
    storage_account: StorageAccount = ""
    storage_account_id: ResourceId | None = None
    storage_location: Location | None = None
    """The account's region, which may differ from the target's."""
    storage_endpoint: Endpoint | None = None
    storage_is_private: bool = False
    """The account has a private endpoint."""
    storage_is_closed: bool = False
    """Its firewall admits certain subnets only: `admitted_subnets`."""
    admitted_subnets: tuple[ResourceId, ...] = ()
    chooses_account: bool = False
    """Nobody named the account: those of the region are tried."""
    other_accounts: tuple[StorageAccount, ...] = ()
    """To be tried after `storage_account`."""
    unfit_accounts: tuple[str, ...] = ()
    """Accounts that failed a check, with the reason."""
    accounts_without_container: tuple[StorageAccount, ...] = ()
    creates_container: bool = False
    principal: Principal | None = None
    """Who is signed in."""
    storage_container: Container = "captures"
    storage_blob_name: BlobName = ""
    blob_located: bool = False
    """True if container and blob come from the capture's `storagePath` in Azure."""
    storage_auth_mode: Literal["login", "key"] = "login"
    duration_limit_seconds: int = 60
    size_limit_bytes: int | None = None
    """None is Azure's own limit, 1 GiB."""
    filters: tuple[CaptureFilter, ...] = ()
    keeps_local_capture: bool = False
    """The download is not part of the clean-up."""
    preflight: tuple[CheckResult, ...] = ()
    capture_dir: LocalPath = ""
    local_pcap_path: LocalPath | None = None
    local_pcap_bytes: int | None = None
    local_pcap_sha256: str | None = None
    semantic_json_path: str | None = None
    report_path: str | None = None
    executive_summary_path: str | None = None
    artifact_paths: tuple[LocalPath, ...] = ()
    """Every file the analysis writes: what `include_artifacts` removes."""
    paired_task_id: str | None = None
    pair_role: str | None = None
    compare_with: LocalPath | None = None
    """The other end's capture file, during and after the comparison."""
    cleanup_plan: tuple[CleanupStep, ...] = ()
    cleanup_status: CleanupStatus | None = None
    creation_refused: bool = False
    """Azure refused the creation: it is not making the capture."""
    absent_at: Moment | None = None
    """When Azure first did not have a capture whose creation was not answered."""
    denial: Denial | None = None
    poll_count: int = 0
    max_polls: int = 20
    absent_polls: int = 0
    """Polls in a row for which Azure had no such capture."""
    poll_error: str | None = None
    """Why the last poll failed; None if it succeeded."""
    capture_status: str | None = None
    stop_reason: str | None = None
    capture_errors: tuple[str, ...] = ()
    download_errors: tuple[str, ...] = ()
    cancel_reason: str | None = None
    shell_audit_ids: tuple[str, ...] = ()
    timestamps: Timestamps = Timestamps()
    error_detail: str | None = None
    duration_seconds: float | None = None
    revision: int = 0
    """Increases with every saved record, to find the newest across the files of several sessions."""

    @property
    def active(self) -> bool:
        return self.outcome is None

    @property
    def subscription(self) -> str | None:
        """The subscription of a target named by its full id; None is az's current one."""
        return subscription_of(self.target)

    @property
    def target_name(self) -> str:
        return short_name(self.target)

    @property
    def instance(self) -> ScaleSetInstance | None:
        return scale_set_instance(self.target_id or self.target)

    @property
    def capture_name(self) -> str:
        return self.azure_operation_id or self.task_id

    @property
    def download_path(self) -> str:
        """Return the planned path of the download; `local_pcap_path` is set once it exists."""
        return f"{self.capture_dir}/{self.task_id}.cap"

    @property
    def remaining(self) -> tuple[CleanupStep, ...]:
        return tuple(step for step in self.cleanup_plan if not step.executed and step.not_needed is None)

    @property
    def creation_unanswered(self) -> bool:
        """True if Azure may have made the capture, or be making it, without this task knowing."""
        return self.timestamps.provisioned is None and any(step.in_cloud for step in self.remaining)

    @property
    def settled(self) -> bool:
        """True if none of its resources are left; a record of another tool may be DONE after an incomplete cleanup."""
        return self.state is State.DONE and self.cleanup_status is not CleanupStatus.PARTIAL and not self.remaining

    def stamped(self, **moments: datetime) -> CaptureTask:
        return self.having(timestamps=self.timestamps.having(**moments))

    def seconds_since_creation(self, now: datetime) -> float | None:
        created = self.timestamps.created
        return None if created is None else round(max(0.0, (now - created).total_seconds()), 3)
