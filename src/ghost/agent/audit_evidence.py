"""The shell's audit as evidence: which record says what, where it was seen, and how far it can be trusted.

Read only. The hierarchy, most faithful first: 1 what a capture shows, 2 what the Azure API says, 3 what an active
probe saw, 4 what a host says of itself. Probes and host state come from the engineer's machine ([LOCAL]) and
never overrule [CLOUD] evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ghost.records import read_valid_records

Context = Literal["[LOCAL]", "[CLOUD]"]

NEVER_RAN: Final = frozenset({126, 127})
"""Exit statuses of the shell for a program that could not start, or does not exist."""
_PROBES: Final = frozenset(
    {"ping", "traceroute", "tracepath", "mtr", "dig", "nslookup", "host", "curl", "whois", "nc", "nmap", "telnet"}
)
_ENGINE: Final = ("pcap-forensics", "pcap_forensics", "ghost.pcap")


@dataclass(frozen=True)
class Tag:
    context: Context
    tier: int

    def as_meta(self) -> dict[str, Any]:
        return {"context": self.context, "evidence_tier": self.tier}


CAPTURE: Final = Tag("[CLOUD]", 1)


def tag_of(record: Mapping[str, Any]) -> Tag:
    """How a record of the shell's audit (or a response, with its `command` added) ranks as evidence."""
    command = str(record.get("modified_command") or record.get("command") or "")
    if record.get("environment") == "azure" or command.startswith("az "):
        return Tag("[CLOUD]", 2)
    program = command.split(maxsplit=1)[0] if command.strip() else ""
    if program == "cat" or any(name in command.split(" --")[0] for name in _ENGINE):
        return CAPTURE
    return Tag("[LOCAL]", 3 if program in _PROBES else 4)


class Evidence(Mapping[str, dict[str, Any]]):
    """The records of one session's shell audit by audit id, in the order they were written."""

    def __init__(self, path: Path) -> None:
        records, self.broken_lines = read_valid_records(path)
        self._records: dict[str, dict[str, Any]] = {}
        self.repeated: list[str] = []
        """Ids that stand in the file more than once: the shell writes each once. The first record counts."""
        for record in records:
            audit_id = str(record.get("audit_id"))
            if audit_id in self._records:
                self.repeated.append(audit_id)
            elif record.get("audit_id"):
                self._records[audit_id] = record

    def __getitem__(self, audit_id: str) -> dict[str, Any]:
        return self._records[audit_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def problems(self, audit_ids: Iterable[str]) -> list[str]:
        """Why these ids cannot carry a statement, in words; nothing where they can.

        A record carries a statement when it exists and its command ran to an end; a non-zero exit status is
        evidence like any other.
        """
        found = []
        for audit_id in audit_ids:
            record = self._records.get(audit_id)
            if record is None:
                found.append(f"{audit_id} is no audit record of this session")
            elif record.get("status") == "denied":
                found.append(f"{audit_id} was denied: the command did not run")
            elif record.get("exit_code") in NEVER_RAN:
                found.append(f"{audit_id} never ran: the program was not found or could not start")
            elif record.get("status") != "completed":
                found.append(f"{audit_id} ended in error ({record.get('error') or 'unknown'})")
        return found


def cited_ids(text: str, session_id: str) -> list[str]:
    """The audit ids of this session that a text names, in order, each once."""
    return list(dict.fromkeys(re.findall(rf"{re.escape(session_id)}_\d{{3,}}", text)))
