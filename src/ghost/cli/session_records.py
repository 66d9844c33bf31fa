"""Workspaces, and the records of a session in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ghost.agent import Check, Session, SessionPaths, Workspace, load_session, verify_commands, verify_session
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.records import valid_session_id

REACH: Final = "reach_"
"""The beginning of the ids of sessions of `ghost reach`."""
NEEDS: Final = " needs: "
"""Between a walk's question and what is read for it, in the reasoning of its reads."""


def open_workspace(given: Path | None, settings: Settings) -> Workspace:
    return Workspace((given or settings.workspace).absolute())


def workspace_of(session_id: str, given: Path | None, settings: Settings) -> tuple[Workspace, Path]:
    """The workspace that holds a session, and the session's file.

    Where none was named and the current directory does not hold it, the directories in it are looked at, so that
    a session of `make demo` is found from the checkout. Raises `SessionError` where nothing holds it.
    """
    workspace = open_workspace(given, settings)
    inner = () if given else (Workspace(audit.parent) for audit in sorted(workspace.root.glob("*/audit")))
    holder = next((one for one in (workspace, *inner) if one.taken(session_id)), workspace)
    return holder, holder.find(session_id)


@dataclass(frozen=True)
class Recorded:
    """The records of a session; `session` is None for single commands, and where the session's file is lost."""

    paths: SessionPaths
    file: Path | None = None
    session: Session | None = None
    intact: bool = True

    def checks(self) -> list[Check]:
        if self.session is None:
            return verify_commands(self.paths)
        return verify_session(self.session, self.paths, checksum_holds=self.intact)


def recorded(session_id: str, given: Path | None, settings: Settings) -> Recorded:
    """Raises `SessionError` where no record of that id exists."""
    try:
        workspace, path = workspace_of(session_id, given, settings)
        session, intact = load_session(path)
    except SessionError:
        paths = SessionPaths(open_workspace(given, settings).audit_dir, session_id)
        if not valid_session_id(session_id) or not (paths.shell_audit.is_file() or paths.intent.is_file()):
            raise
        return Recorded(paths)
    return Recorded(session.paths(workspace.root), path, session, intact)
