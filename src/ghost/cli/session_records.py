"""Workspaces, and the records of a session in them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ghost.agent import (
    CHECK,
    WATCH,
    Check,
    Session,
    SessionPaths,
    Workspace,
    load_session,
    verify_commands,
    verify_session,
)
from ghost.cli.shell_completion import LAST, moment_of, recorded_sessions
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.records import valid_session_id

REACH: Final = "reach_"
"""The beginning of the ids of sessions of `ghost reach`."""
MAX_SHOWN: Final = 3
"""Of sessions that fit a part of an id."""


def shortened(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def option_of(root: Path) -> str:
    """How a command names a workspace; empty for the current directory."""
    return "" if root == Path.cwd() else f" --workspace {shlex.quote(str(shortened(root)))}"


def open_workspace(given: Path | None, settings: Settings) -> Workspace:
    return Workspace((given or settings.workspace).absolute())


def workspace_of(named: str, given: Path | None, settings: Settings) -> tuple[Workspace, Path]:
    """The workspace that holds an investigation, and the session's file. `named` as in `session_named`.

    Raises `SessionError` where nothing holds it.
    """
    workspace, session_id = session_named(named, given, settings, investigations=True)
    return workspace, workspace.find(session_id)


def session_named(
    named: str, given: Path | None, settings: Settings, *, investigations: bool = False
) -> tuple[Workspace, str]:
    """The workspace and the id of a session; what names none stays as it is.

    A session is named by its id, a unique beginning or end of it, or `last`: the newest that no schedule made, with
    `investigations` the newest of those. Where no workspace was given and the current directory does not hold it, the
    directories in it are looked at, so that a session of `make demo` is found from the checkout. Raises `SessionError`
    where several fit.
    """
    workspace = open_workspace(given, settings)
    inner = () if given else (Workspace(audit.parent) for audit in sorted(workspace.root.glob("*/audit")))
    own = _known(workspace, investigations)
    places = (
        {workspace: own}
        if named in own or (own and named == LAST)
        else {p: _known(p, investigations) for p in (workspace, *inner)}
    )
    known = sorted(((i, place) for place, ids in places.items() for i in ids), key=lambda each: moment_of(each[0]))
    if named == LAST:
        fitting = [each for each in known if not each[0].startswith((WATCH, CHECK))][-1:]
    else:
        fitting = [each for each in known if each[0] == named] or [
            each for each in known if named and (each[0].startswith(named) or each[0].endswith(named))
        ]
    if len(fitting) > 1:
        shown = ", ".join(f"{i}{option_of(place.root)}" for i, place in fitting[-MAX_SHOWN:])
        raise SessionError(f"{named!r} fits {len(fitting)} sessions: give more of the id, or --workspace: {shown}")
    return (fitting[0][1], fitting[0][0]) if fitting else (workspace, named)


def _known(workspace: Workspace, investigations: bool) -> list[str]:
    """The ids of a workspace, the newest last."""
    ids = recorded_sessions(workspace.root)
    current = workspace.current_id()
    if current is not None and current not in ids:
        ids.append(current)
    return [one for one in ids if one.startswith("ghost_") or not investigations]


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


def recorded(named: str, given: Path | None, settings: Settings, *, investigations: bool = False) -> Recorded:
    """The records of a session, named as in `session_named`. Raises `SessionError` where there are none."""
    workspace, session_id = session_named(named, given, settings, investigations=investigations)
    try:
        path = workspace.find(session_id)
        session, intact = load_session(path)
    except SessionError:
        paths = SessionPaths(workspace.audit_dir, session_id)
        files = (paths.shell_audit, paths.intent, paths.calls)
        if not valid_session_id(session_id) or not any(file.is_file() for file in files):
            raise
        return Recorded(paths)
    return Recorded(session.paths(workspace.root), path, session, intact)
