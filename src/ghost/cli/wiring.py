"""What every command shares: settings, the workspace a person means, and the session in it."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console as Rich

from ghost.agent import Workspace
from ghost.config import Settings
from ghost.errors import ConfigurationError, SessionError


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


def to_stdout() -> Rich:
    """Words are wrapped for a person; a pipe gets lines as they are."""
    return Rich(highlight=False, soft_wrap=not sys.stdout.isatty())


def to_stderr() -> Rich:
    return Rich(highlight=False, soft_wrap=not sys.stderr.isatty(), stderr=True)
