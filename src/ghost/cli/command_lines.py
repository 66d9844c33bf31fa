"""A command that ended, on one line: `✓ effective routes: db-vm-01-nic   0.9 s  #018`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.text import Text

from ghost.azure import error_message
from ghost.text import one_line, plural, short_id, visible

CLASS_STYLE = {"SAFE": "green", "RISKY": "yellow", "FORBIDDEN": "bold red"}
LABEL_WIDTH, MIN_LABEL = 74, 30


@dataclass(frozen=True)
class RanCommand:
    """One line of a command: `✓ effective routes: db-vm-01-nic   0.9 s  #018`."""

    mark: str
    label: str
    seconds: float
    first: str
    last: str
    asked: str
    complaint: str
    times: int = 1

    @classmethod
    def of(cls, response: dict[str, Any], label: str, asked: str) -> RanCommand:
        succeeded = response.get("status") == "completed" and response.get("exit_code") == 0
        on_record = response.get("audit_written", True)
        number = short_id(str(response.get("audit_id")))
        complaint = "" if succeeded and on_record else outcome_of(response)
        mark = "✓" if succeeded else "!" if response.get("status") == "completed" else "✗"
        return cls(mark, label, response.get("duration_seconds") or 0.0, number, number, asked, complaint)

    def is_repeated_by(self, other: RanCommand) -> bool:
        return (self.label, self.mark, self.asked, other.mark) == (other.label, "✓", other.asked, "✓")

    def repeated(self, other: RanCommand) -> RanCommand:
        seconds = self.seconds + other.seconds
        return RanCommand(self.mark, self.label, seconds, self.first, other.last, self.asked, "", self.times + 1)

    def line(self, width: int) -> Text:
        ids = self.first if self.first == self.last else f"{self.first}–{self.last}"
        style = {"✓": "green", "!": "yellow"}.get(self.mark, "bold red")
        room = max(min(LABEL_WIDTH, width - 24 - (len(self.asked) + 2 if self.asked else 0)), MIN_LABEL)
        label = one_line(f"{self.label}, {self.times} times" if self.times > 1 else self.label, room)
        told = Text.assemble((f"  {self.mark} ", style), label.ljust(room), (f" {self.seconds:5.1f} s  {ids}", "dim"))
        return told.append(f"  {self.asked}", CLASS_STYLE.get(self.asked[:5])) if self.asked else told


def outcome_of(response: dict[str, Any]) -> str:
    status, exit_code = response.get("status"), response.get("exit_code")
    if status == "denied":
        reason = response.get("denial_reason")
        return f"denied{f': {reason}' if reason else ''}"
    if status == "error":
        why = visible(str(response.get("message") or ""))[:200]
        return f"error: {response.get('error')}{f': {why}' if why else ''}"
    lines = (response.get("output_metadata") or {}).get("total_lines")
    seconds = response.get("duration_seconds") or 0.0
    words = f"exit {exit_code}, {seconds:.1f} s" + (f", {plural(lines, 'line')}" if lines else "")
    if not response.get("audit_written", True):
        words = f"NOT ON RECORD (the audit could not be written): {words}"
    complaint = one_line(error_message(str(response.get("stderr") or "")), 160)
    return words + (f": {complaint}" if exit_code and complaint else "")
