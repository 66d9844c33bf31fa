"""Reads of the Azure API: building the commands and rating their results.

Every word of a command is quoted. Names from the tenant are data; one that Azure could not have issued is refused
before it becomes part of a command. A truncated answer is not used.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from ghost.azure import PROGRAM_MISSING, read_error
from ghost.policy import load_policy
from ghost.text import one_line

NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.()\-]{0,88}[A-Za-z0-9_()\-])?")
"""What Azure allows in names of groups and network resources.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
"""
ID = re.compile(r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/(?P<path>.+)", re.I)


class Outcome(Enum):
    OK = "ok"
    DENIED = "denied"
    FAILED = "failed"
    TRUNCATED = "truncated"


@dataclass(frozen=True)
class Reading:
    """The result of one `run_shell_cmd`."""

    outcome: Outcome
    audit_ids: tuple[str, ...]
    """Citable records; excludes refused commands and those that did not run."""
    value: Any = None
    """The output as JSON, or as text if it is not JSON."""
    exit_code: int | None = None
    why: str = ""
    """Why there is no answer, as a clause."""
    record: str | None = None
    text: str = field(default="", repr=False)
    """All that was printed, with real values."""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def audit_id(self) -> str | None:
        return self.record

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of a list of objects, or of objects as JSON text."""
        items = self.value if isinstance(self.value, list) else []
        return [row for row in map(_object, items) if row is not None]

    def row(self) -> dict[str, Any]:
        return self.value if self.ok and isinstance(self.value, dict) else {}


def reading_of(result: dict[str, Any]) -> Reading:
    audit_id = result.get("audit_id")
    record = str(audit_id) if audit_id else None
    cited = (record,) if record else ()
    status, error = result.get("status"), result.get("error")
    if status == "denied":
        reason = result.get("denial_reason") or (result.get("_meta") or {}).get("denial_reason")
        because = f' ("{one_line(str(reason), 120)}")' if reason else ""
        return Reading(Outcome.DENIED, (), why=f"the command was denied{because}", record=record)
    if status != "completed":
        hint = result.get("suggestion") or result.get("message") or ""
        why = f"the command did not run: {one_line(str(hint or error).removeprefix('Not run: '), 160)}"
        return Reading(Outcome.FAILED, (), why=why, record=record)
    exit_code = result.get("exit_code")
    whole = result.get("real_output")
    output = str(result.get("output") or "") if whole is None else str(whole)
    if exit_code != 0:
        return Reading(Outcome.FAILED, cited, output, exit_code, _why_failed(result, output, exit_code), record)
    if whole is None and (result.get("output_metadata") or {}).get("truncation_applied"):
        return Reading(
            Outcome.TRUNCATED, cited, None, 0, f"the answer exceeded the output limit, record {record}", record
        )
    return Reading(Outcome.OK, cited, _json_or_text(output), 0, record=record, text=output)


def _why_failed(result: dict[str, Any], output: str, exit_code: Any) -> str:
    if exit_code == PROGRAM_MISSING:
        return f"the program is not installed (exit {exit_code})"
    error = read_error(str(result.get("stderr") or output), exit_code)
    return one_line(f"{error} (exit {exit_code})", 300)


def _json_or_text(output: str) -> Any:
    try:
        return json.loads(output)
    except ValueError:
        return output


def _object(item: Any) -> dict[str, Any] | None:
    if isinstance(item, str):
        try:
            item = json.loads(item)
        except ValueError:
            return None
    return item if isinstance(item, dict) else None


@dataclass(frozen=True)
class Read:
    """A command, with why it is run."""

    words: tuple[str, ...]
    reasoning: str
    tests: tuple[str, ...] = ()
    """The hypotheses that the command tests."""

    @property
    def command(self) -> str:
        return shlex.join(self.words)


def az(*words: str, query: str | None = None) -> tuple[str, ...]:
    return ("az", *words, *(("--query", query) if query else ()), "-o", "json")


@cache
def _templates() -> dict[str, str]:
    return load_policy(__file__, "queries.toml", dict[str, str])


def query(name: str) -> str:
    return _templates()[name]


@dataclass(frozen=True)
class ResourceId:
    text: str
    subscription: str
    group: str
    names: tuple[str, ...]
    """Names of the resource and its parts: (`vnet-a`, `subnet-1`)."""

    @property
    def name(self) -> str:
        return self.names[-1]

    def same(self, other: ResourceId | None) -> bool:
        return other is not None and self.text.casefold() == other.text.casefold()


def resource_id(text: Any) -> ResourceId | None:
    """Parse a resource id; None if it is not one or holds a name that Azure does not issue."""
    match = ID.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    names = tuple(match["path"].split("/")[2::2])
    if not names or not all(is_name(name) for name in (match["group"], *names)):
        return None
    return ResourceId(match[0], match["subscription"], match["group"], names)


def is_name(text: Any) -> bool:
    return isinstance(text, str) and NAME.fullmatch(text) is not None
