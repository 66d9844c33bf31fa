"""What every command shares: settings, the workspace a person means, and the session in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from pydantic import ValidationError
from rich.console import Console as Rich

from ghost.agent import Check, Session, SessionPaths, Workspace, load_session, verify_commands, verify_session
from ghost.config import Settings
from ghost.errors import ConfigurationError, SessionError
from ghost.lab import RunningLab
from ghost.records import valid_session_id
from ghost.shell import SafeExecShell
from ghost.text import visible


def load_settings() -> Settings:
    """The settings of the environment. Raises `ConfigurationError` naming the variable that is wrong."""
    try:
        return Settings()
    except ValidationError as invalid:
        first = invalid.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"the environment variable {name} is not usable: {first['msg']}") from invalid


def open_workspace(given: Path | None, settings: Settings) -> Workspace:
    return Workspace((given or settings.workspace).absolute())


def workspace_of(session_id: str, given: Path | None, settings: Settings) -> tuple[Workspace, Path]:
    """The workspace that holds a session, and the session's file.

    Where none was named and the current directory does not hold it, the directories in it are looked at, so that
    a session of `make demo` is found from the checkout. Raises `SessionError` where nothing holds it.
    """
    workspace = open_workspace(given, settings)
    try:
        return workspace, workspace.find(session_id)
    except SessionError:
        if given is not None:
            raise
        for candidate in sorted(workspace.root.glob("*/audit")):
            inner = Workspace(candidate.parent)
            if inner.taken(session_id):
                return inner, inner.find(session_id)
        raise


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
    except SessionError:
        paths = SessionPaths(open_workspace(given, settings).audit_dir, session_id)
        if not valid_session_id(session_id) or not (paths.shell_audit.is_file() or paths.intent.is_file()):
            raise
        return Recorded(paths)
    session, intact = load_session(path)
    return Recorded(session.paths(workspace.root), path, session, intact)


class ProgramsOfShell(TypedDict, total=False):
    """Which programs a shell runs, where they are not the system's."""

    program_dirs: Sequence[Path]
    own_az: bool
    environment: Mapping[str, str]
    resolver: Callable[[str], list[str]]


def programs_of(lab: RunningLab | None, *, own_az: bool = True) -> ProgramsOfShell:
    """All programs of a lab and nothing else, but for a person's own az that talks to it."""
    if lab is None:
        return {}
    return {
        "program_dirs": [lab.program_dir],
        "own_az": own_az,
        "environment": lab.environment,
        "resolver": lab.resolver,
    }


def why_not_run(command: str, error: str, roots: Sequence[Path]) -> str:
    """An error of the shell in words; where its rules refused, with what they say of the command."""
    words = error.replace("_", " ")
    if error not in {"forbidden_command", "unsupported_syntax", "command_too_long"}:
        return words
    return f"{words}: {visible(str(SafeExecShell.explain(command, roots)['explanation']))}"


def to_stdout() -> Rich:
    """Words are wrapped for a person; a pipe gets lines as they are."""
    return Rich(highlight=False, soft_wrap=not sys.stdout.isatty())


def to_stderr() -> Rich:
    return Rich(highlight=False, soft_wrap=not sys.stderr.isatty(), stderr=True)
