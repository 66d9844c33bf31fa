"""Requests of the brain, validated before a task is created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ghost.cloud.resource_names import (
    check_resource_group,
    check_storage_account,
    check_target,
    resource_group_of,
    shown,
)
from ghost.cloud.traffic_filters import CaptureFilter, capture_filters
from ghost.errors import UsageError

DEFAULT_DURATION_SECONDS = 60
MAX_DURATION_SECONDS = 300
MIN_SIZE_BYTES, MAX_SIZE_BYTES = 65_536, 1_073_741_824
ANY_ACCOUNT = "*"
"""As `storage_account`: one of the target's region."""
AuthMode = Literal["login", "key"]
AUTH_MODES = get_args(AuthMode)


class RequestRefused(UsageError):  # noqa: N818  the caller's words are wrong; `code` says how
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Wishes:
    """What the person set, which wins over the request."""

    storage_account: str | None = None
    storage_auth_mode: AuthMode | None = None
    duration_seconds: int | None = None
    filters: str | None = None


NO_WISHES = Wishes()


@dataclass(frozen=True)
class CaptureRequest:
    targets: tuple[str, ...]
    """One target, or the source and the destination of a path."""
    resource_group: str
    storage_account: str
    """Empty: the accounts of the target's region are tried."""
    storage_auth_mode: AuthMode
    duration_seconds: int
    size_limit_bytes: int | None
    investigation_context: str
    filters: tuple[CaptureFilter, ...] = ()
    """Seen from the only target, or from the source of a path."""

    @property
    def parameters(self) -> dict[str, Any]:
        fields = {
            "duration_seconds": self.duration_seconds,
            "storage_account": self.storage_account or ANY_ACCOUNT,
            "resource_group": self.resource_group,
            "storage_auth_mode": self.storage_auth_mode,
        }
        optional = {
            "storage_account": self.storage_account or None,
            "size_limit_bytes": self.size_limit_bytes,
            "filters": [f.fields for f in self.filters] or None,
        }
        return fields | {name: value for name, value in optional.items() if value is not None}

    def group_of(self, target: str) -> str:
        """Return the target's resource group: from its full id, else that of the request."""
        return resource_group_of(target) or self.resource_group


def capture_request(request: dict[str, Any], default_auth_mode: AuthMode, wishes: Wishes = NO_WISHES) -> CaptureRequest:
    """Return the validated request. Raises `RequestRefused`."""
    parameters = request.get("parameters")
    if parameters is None:
        parameters = {}
    if not isinstance(parameters, dict):
        raise RequestRefused("invalid_parameter", "parameters must be an object")
    targets = tuple(part.strip() for part in required_text(request, "target").split(" to "))
    if len(targets) > 2:
        raise RequestRefused("invalid_parameter", "target names more than two ends: give 'A' or 'A to B'")
    if len(targets) == 2 and targets[0].lower() == targets[1].lower():
        raise RequestRefused("invalid_parameter", "target names the same end twice: give 'A' or two different ends")
    mode = (
        wishes.storage_auth_mode
        or request.get("storage_auth_mode")
        or parameters.get("storage_auth_mode")
        or default_auth_mode
    )
    if mode not in AUTH_MODES:
        raise RequestRefused("invalid_parameter", f"storage_auth_mode {shown(str(mode))} is neither 'login' nor 'key'")
    account = wishes.storage_account or required_text(parameters, "storage_account")
    group = required_text(parameters, "resource_group")
    try:
        return CaptureRequest(
            targets=tuple(check_target(target) for target in targets),
            resource_group=check_resource_group(group),
            storage_account="" if account == ANY_ACCOUNT else check_storage_account(account),
            storage_auth_mode=mode,
            duration_seconds=_duration(wishes.duration_seconds or parameters.get("duration_seconds")),
            size_limit_bytes=_size(parameters.get("size_limit_bytes")),
            investigation_context=_context(request.get("investigation_context")),
            filters=capture_filters(wishes.filters or parameters.get("filters")),
        )
    except RequestRefused:
        raise
    except UsageError as error:
        raise RequestRefused("invalid_parameter", str(error)) from error


def required_text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None or value == "":
        raise RequestRefused("missing_parameter", f"{name} is required")
    if not isinstance(value, str):
        raise RequestRefused("invalid_parameter", f"{name} must be text, not {type(value).__name__}")
    if not value.strip():
        raise RequestRefused("missing_parameter", f"{name} is required")
    return value


def _duration(value: object) -> int:
    if value is None:
        return DEFAULT_DURATION_SECONDS
    value = _whole("duration_seconds", value, "seconds")
    if not 1 <= value <= MAX_DURATION_SECONDS:
        raise RequestRefused(
            "invalid_parameter",
            f"duration_seconds is {value}: a capture lasts 1 to {MAX_DURATION_SECONDS} seconds. "
            "Ask for a shorter one, or take several",
        )
    return value


def _size(value: object) -> int | None:
    if value is None:
        return None
    value = _whole("size_limit_bytes", value, "bytes")
    if not MIN_SIZE_BYTES <= value <= MAX_SIZE_BYTES:
        raise RequestRefused(
            "invalid_parameter",
            f"size_limit_bytes is {value}: a capture may hold {MIN_SIZE_BYTES} to {MAX_SIZE_BYTES} bytes. "
            "Ask within that, or leave it out for the largest",
        )
    return value


def _whole(name: str, value: object, unit: str) -> int:
    if isinstance(value, float) and value.is_integer():  # models write 60.0 for an integer
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestRefused("invalid_parameter", f"{name} must be a whole number of {unit}")
    return value


def _context(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RequestRefused("invalid_parameter", "investigation_context must be text")
    return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate could not be written down
