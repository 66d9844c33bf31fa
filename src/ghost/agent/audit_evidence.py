"""The shell's audit as evidence: what each record says, where it was observed and how reliable it is.

Read only. Reliability, highest first: 1 a capture, 2 the Azure API, 3 an active probe, 4 a host's own state. Probes and
host state come from the engineer's machine ([LOCAL]) and never overrule [CLOUD] evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from ghost.agent.session import SessionPaths
from ghost.errors import RecordError
from ghost.policy import load_policy
from ghost.records import parse_record, read_json, read_lines
from ghost.shell import TopologyAnonymizer, printed_output, recorded_output

Context = Literal["[LOCAL]", "[CLOUD]"]

NEVER_RAN: Final = frozenset({126, 127})
"""Shell exit statuses for a program that could not be started or does not exist."""
_PROBES: Final = frozenset(
    {"ping", "traceroute", "tracepath", "mtr", "dig", "nslookup", "host", "curl", "whois", "nc", "nmap", "telnet"}
)
_CAPTURE_REPORT: Final = re.compile(r"_(?:executive_summary|forensic_report|comparison|semantic)\.\w+")
_ENGINE: Final = re.compile(r"(?:\S*/)?(?:pcap-forensics|python[\d.]*(?: -I)? -m (?:ghost\.pcap|pcap_forensics))(?!\S)")


@dataclass(frozen=True)
class Tag:
    context: Context
    tier: int

    def as_meta(self) -> dict[str, Any]:
        return {"context": self.context, "evidence_tier": self.tier}


CAPTURE: Final = Tag("[CLOUD]", 1)


def tag_of(record: Mapping[str, Any]) -> Tag:
    """Return the evidence rank of an audit record, or of a shell response with its `command` added."""
    command = str(record.get("modified_command") or record.get("command") or "")
    if record.get("environment") == "azure" or command.startswith("az "):
        return Tag("[CLOUD]", 2)
    program = command.split(maxsplit=1)[0] if command.strip() else ""
    if (program == "cat" and _CAPTURE_REPORT.search(command)) or _ENGINE.match(command):
        return CAPTURE
    return Tag("[LOCAL]", 3 if program in _PROBES else 4)


@dataclass(frozen=True)
class Ages:
    """Of records that stand for reads of a later session."""

    usable_days: float
    fresh_minutes: float


@cache
def ages() -> Ages:
    return load_policy(__file__, "record_ages.toml", Ages)


class Evidence(Mapping[str, dict[str, Any]]):
    """The audit records of one session by audit id, in the order they were written."""

    def __init__(self, path: Path, *, alone: bool = False) -> None:
        """`alone`: without the records of an earlier session."""
        self._path, self._is_alone = path, alone
        self.session_id = path.stem.removeprefix("shell_audit_")
        paths = SessionPaths(path.parent, self.session_id)
        self._mapping_path, self._earlier_path = paths.anonymization_map, paths.earlier_records
        self._mapping: TopologyAnonymizer | None = None
        self._read_to = self._lines = 0
        self._records: dict[str, dict[str, Any]] = {}
        self.earlier: Evidence | None = None
        """Of a session whose records stand for reads of this one: they can be cited, and are none of its own."""
        self.broken_lines: list[int] = []
        self.repeated: list[str] = []
        """Ids that occur more than once in the file. The shell writes each id once; the first record counts."""
        self.derived: dict[str, Any] = {}
        """What is taken from records, kept by those who took it: a record never changes."""
        self.refreshed()

    def refreshed(self) -> Evidence:
        """Return this evidence with the records that were written since."""
        for line in read_lines(self._path, self._read_to):
            self._lines += 1
            self._read_to += len(line) + 1
            record = parse_record(line)
            if record is None:
                self.broken_lines.append(self._lines)
                continue
            audit_id = str(record.get("audit_id"))
            if audit_id in self._records:
                self.repeated.append(audit_id)
            elif record.get("audit_id"):
                self._records[audit_id] = record
        if self.earlier is None and not self._is_alone and self._earlier_path.exists():
            with suppress(RecordError, KeyError, TypeError):
                earlier = SessionPaths(self._path.parent, str(read_json(self._earlier_path)["session_id"]))
                self.earlier = Evidence(earlier.shell_audit, alone=True)
        return self

    def __getitem__(self, audit_id: str) -> dict[str, Any]:
        """Return a record of the session, or of the earlier one that stands for it."""
        if audit_id in self._records or self.earlier is None:
            return self._records[audit_id]
        return self.earlier[audit_id]

    def since_earlier(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield all that can be cited, oldest first."""
        if self.earlier is not None:
            yield from self.earlier.items()
        yield from self._records.items()

    def dated(self, audit_ids: Iterable[str]) -> str:
        """Return ` (as of 2026-11-28, ghost_..._004)` for records of the earlier session; empty without one."""
        old = [each for each in audit_ids if each not in self._records and each in self]
        days = sorted({str(self[each]["timestamp"])[:10] for each in old})
        return f" (as of {' and '.join(days)}, {', '.join(old)})" if old else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def minutes_since_earlier(self) -> float:
        """Return the minutes between the last record of the earlier session and the last of this one; 0 without one."""
        last = [list(each.values())[-1:] for each in (self.earlier or {}, self._records)]
        then, now = (datetime.fromisoformat(record["timestamp"]) for records in last for record in records)
        return (now - then).total_seconds() / 60

    def whole_output(self, audit_id: str) -> str:
        """Return all that a command printed, of which its record may show a part.

        Raises `RecordError` with the reason if it is not on record or was changed.
        """
        return recorded_output(self[audit_id], self._path.parent)

    def real_output(self, audit_id: str) -> str | None:
        """Return all that a command printed, with the real values behind placeholders, for code of this process.

        None where it did not end by itself, or a part is not on record.
        """
        with suppress(KeyError, RecordError):
            return self.restored(printed_output(self[audit_id], self._path.parent))
        return None

    def restored(self, text: str) -> str:
        """Return `text` with the real values behind the placeholders of private mode."""
        known = self._placeholders()
        return known.restore(text) if known is not None else text

    def hidden(self, text: str) -> str:
        """Return `text` with the placeholders of private mode."""
        known = self._placeholders()
        return known.anonymize(text) if known is not None else text

    def _placeholders(self) -> TopologyAnonymizer | None:
        if not self._mapping_path.exists():
            return None
        self._mapping = self._mapping or TopologyAnonymizer(self._mapping_path)
        return self._mapping

    @property
    def is_masked(self) -> bool:
        """Whether records hold placeholders whose values are not there."""
        hidden = any(record.get("anonymization_applied") for record in self._records.values())
        return hidden and not self._mapping_path.exists()

    def problems(self, audit_ids: Iterable[str]) -> list[str]:
        """Return why these records cannot support a statement; empty if they can.

        A record supports a statement when it exists and its command ran to completion, whatever the exit status.
        """
        found = []
        for audit_id in audit_ids:
            record = self.get(audit_id)
            if record is None:
                found.append(f"{audit_id} is not an audit record of this session")
            elif record.get("status") == "denied":
                found.append(f"{audit_id} was denied: the command did not run")
            elif record.get("exit_code") in NEVER_RAN:
                found.append(f"{audit_id} did not run: the program was not found or could not be started")
            elif record.get("status") != "completed":
                found.append(f"{audit_id} ended in error ({record.get('error') or 'unknown'})")
        return found


def cited_ids(text: str, session_id: str) -> list[str]:
    """Return the audit ids of this session that a text names, in order, without duplicates."""
    return list(dict.fromkeys(re.findall(rf"{re.escape(session_id)}_\d{{3,}}", text)))
