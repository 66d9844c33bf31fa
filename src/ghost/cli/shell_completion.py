"""What the shell completes beside commands and options. Imports nothing heavy: a person waits for it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import typer

LAST: Final = "last"
"""Names the newest session of a workspace."""
LAB: Final = Path(__file__).parent.parent / "lab"
_RECORDS = re.compile(
    r"(?:shell_audit|ghost_turns|ghost_session|mcp_calls)_([A-Za-z0-9][A-Za-z0-9_.-]{0,99}?)\.(?:intent\.json|jsonl?)"
)
_MOMENT = re.compile(r"\d{8}_\d{6}.*")


def recorded_sessions(workspace: Path) -> list[str]:
    """The ids of all sessions that have records in a workspace, the newest last; none of `ghost doctor`."""
    matches = [_RECORDS.fullmatch(path.name) for path in (workspace / "audit").glob("*.json*")]
    ids = {match[1] for match in matches if match}
    return sorted((one for one in ids if not one.startswith("doctor_")), key=moment_of)


def moment_of(session_id: str) -> tuple[str, str]:
    found = _MOMENT.search(session_id)
    return (found[0] if found else "", session_id)


def scenarios(incomplete: str) -> list[str]:
    """The names for `--lab` and `ghost lab`."""
    names = (path.stem for folder in ("scenarios", "tapes/library") for path in (LAB / folder).glob("*.toml"))
    return sorted(name for name in names if name.startswith(incomplete))


def sessions(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the workspace that the line names."""
    workspace = Path(context.params.get("workspace") or os.environ.get("GHOST_WORKSPACE") or ".")
    return [one for one in (LAST, *recorded_sessions(workspace)) if one.startswith(incomplete)]


def investigations(context: typer.Context, incomplete: str) -> list[str]:
    """As `sessions`, of those that `--resume` takes."""
    return [one for one in sessions(context, incomplete) if one == LAST or one.startswith("ghost_")]
