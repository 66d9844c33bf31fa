"""`ghost report`: the root-cause report of a session, written again from its records."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, cast

from ghost.agent import Evidence, Session, SessionPaths, files_of, report_of_records
from ghost.cli.session_records import recorded
from ghost.cli.shell_completion import LAST
from ghost.config import Settings
from ghost.errors import RecordError, SessionError, UsageError
from ghost.records import SystemClock, read_json, write_text
from ghost.report import as_markdown, as_page, as_text, content_of, drawn
from ghost.text import map_text

Format = Literal["md", "html", "json", "text"]
FIRST_YEAR: Final = 2000


def report(session_id: str, form: Format, output: Path | None, workspace: Path | None) -> int:
    """Print a report, or write it to a file. Returns 1 where the records do not hold.

    Raises `SessionError` where there is none.
    """
    if output is not None and output.is_dir():
        raise UsageError(f"{output} is a directory: name a file, for example {output / 'report.html'}.")
    found = recorded(session_id, workspace, Settings(), investigations=session_id == LAST)
    if found.session is None:
        raise SessionError(f"{session_id} is not an investigation: ghost audit show {session_id} lists its records.")
    if output is not None and output.resolve().is_relative_to(found.paths.audit_dir.resolve()):
        raise UsageError(f"{output} lies among the records of the workspace: write the report elsewhere.")
    made = content(found.session, found.paths)
    if broken := [check.name for check in found.checks() if not check.ok]:
        told = f"The records do not hold ({', '.join(broken)}): see ghost audit verify {found.paths.session_id}."
        made["advisories"].insert(0, told)
        print(f"ghost: {told}", file=sys.stderr)
    written = rendered(made, form, found.paths)
    if output is None:
        sys.stdout.write(written)
    else:
        write_text(output.absolute(), written)
        print(f"Written: {output}", file=sys.stderr)
    return 1 if broken else 0


def content(session: Session, paths: SessionPaths) -> dict[str, Any]:
    """Return the report's JSON from the records, as of the time at which it was first written."""
    now = SystemClock().now()
    if paths.report_json.exists():
        with suppress(RecordError, ValueError, AttributeError):
            written = datetime.fromisoformat(str(read_json(paths.report_json).get("generated")))
            now = written if written.tzinfo is not None and written.year > FIRST_YEAR else now
    made = report_of_records(session, paths, now)
    return cast("dict[str, Any]", map_text(made, Evidence(paths.shell_audit).hidden, keys=False))


def rendered(made: dict[str, Any], form: Format, paths: SessionPaths) -> str:
    if form == "json":
        return json.dumps(made, indent=2) + "\n"
    told = content_of(made, files_of(paths))
    if form == "md":
        return as_markdown(told)
    if form == "text":
        return as_text(told)
    captures = Settings(workspace=paths.audit_dir.parent).capture_dir
    return as_page(told, lambda report_path: drawn(report_path, captures))
