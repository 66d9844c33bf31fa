"""A shell response, reduced to the fields the orchestrator uses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ghost.azure import PROGRAM_MISSING, AzureError, ErrorKind, error_message, read_error
from ghost.text import one_line

_DETAIL_LIMIT = 500
_CUT = re.compile(r"\[truncated: showing \d+ of \d+ items\]")

_ABANDONED = "user_abandoned"
_NOBODY = "nobody answered; a terminal is needed for it"
_NO_FILE = "No such file"
"""Of rm."""


@dataclass(frozen=True)
class Reply:
    """The fields of a shell response that the orchestrator uses."""

    status: str
    output: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str | None = None
    action: str | None = None
    denial_reason: str | None = None
    audit_id: str | None = None
    cut: bool = False
    """The shell truncated the output: what is missing from it may still exist."""

    @classmethod
    def of(cls, response: dict[str, Any]) -> Reply:
        exit_code = response.get("exit_code")
        metadata = response.get("output_metadata")
        output = str(response.get("output") or "")
        action = text(response.get("action"))
        return cls(
            status=str(response.get("status") or "error"),
            output=output,
            stderr=str(response.get("stderr") or ""),
            exit_code=exit_code if isinstance(exit_code, int) else None,
            error=line(response.get("error")),
            action=action,
            denial_reason=line(response.get("denial_reason")) or (_NOBODY if action == _ABANDONED else None),
            audit_id=text(response.get("audit_id")),
            cut=(isinstance(metadata, dict) and metadata.get("truncation_applied") is True)
            or bool(_CUT.search(output)),
        )

    @property
    def succeeded(self) -> bool:
        return self.status == "completed" and self.exit_code == 0

    @property
    def denied(self) -> bool:
        return self.status == "denied"

    @property
    def user_denied(self) -> bool:
        """True if a person denied the command; an unanswered prompt is not a denial."""
        return self.denied and self.action != _ABANDONED

    @property
    def absent(self) -> bool:
        """True if the program ran and reported that the resource does not exist."""
        return self.azure_error is not None and (
            self.azure_error.kind is ErrorKind.NOT_FOUND or (self.azure_error.code is None and _NO_FILE in self.stderr)
        )

    @property
    def azure_error(self) -> AzureError | None:
        """Return the error of az; None if it did not run or succeeded."""
        ran = self.status == "completed" and self.exit_code not in (0, None, PROGRAM_MISSING)
        return read_error(self.stderr, self.exit_code) if ran else None

    @property
    def detail(self) -> str:
        """Return the reason of a failure in one line: the program's error, else the shell's."""
        stderr = one_line(error_message(self.stderr.strip() or self.output), _DETAIL_LIMIT)
        if self.error:
            return f"{self.error}: {stderr}" if stderr else self.error
        if self.denied:
            return "not approved" + (f": {self.denial_reason}" if self.denial_reason else "")
        return stderr or f"exit status {self.exit_code} and no message"

    @property
    def value(self) -> Any:
        """Return the JSON of a successful command; None without any."""
        return parse_json(self.output) if self.succeeded else None


def object_of(reply: Reply) -> dict[str, Any] | None:
    return reply.value if isinstance(reply.value, dict) else None


def list_of(reply: Reply) -> list[Any] | None:
    return reply.value if isinstance(reply.value, list) and not reply.cut else None


def why_not_listed(reply: Reply) -> str:
    return "the list was truncated" if reply.succeeded else reply.detail


def parse_json(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return None


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def line(value: object) -> str | None:
    return one_line(value, _DETAIL_LIMIT) or None if isinstance(value, str) else None
