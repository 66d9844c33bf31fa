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
from ghost.config import Settings
from ghost.errors import RecordError, SessionError, UsageError
from ghost.records import SystemClock, read_json, write_text
from ghost.report import as_markdown, as_page, as_text, content_of, drawn
from ghost.text import map_text

Format = Literal["md", "html", "json", "text"]
FORMATS: Final = ("md", "html", "json", "text")


def report(session_id: str, form: Format, output: Path | None, workspace: Path | None) -> None:
    """Print a report, or write it to a file. Raises `SessionError` where there is none."""
    if output is not None and output.is_dir():
        raise UsageError(f"{output} is a directory: name a file, for example {output / 'report.html'}.")
    found = recorded(session_id, workspace, Settings())
    if found.session is None:
        raise SessionError(f"{session_id} is no investigation: ghost audit show {session_id} lists its records.")
    written = rendered(content(found.session, found.paths), form, found.paths)
    if output is None:
        sys.stdout.write(written)
        return
    write_text(output.absolute(), written)
    print(f"Written: {output}", file=sys.stderr)


def content(session: Session, paths: SessionPaths) -> dict[str, Any]:
    """Return the report's JSON from the records, as of the time at which it was first written."""
    now = SystemClock().now()
    if paths.report_json.exists():
        with suppress(RecordError, ValueError, AttributeError):
            now = datetime.fromisoformat(str(read_json(paths.report_json).get("generated")))
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
    return as_page(told, drawn)
