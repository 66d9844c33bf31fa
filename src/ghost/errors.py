"""Every error Ghost raises on purpose. Each message says what failed, with what, and what to do.

    GhostError
    ├── UsageError            the caller's words are wrong                      (exit status 2)
    ├── ConfigurationError    a setting or a key is missing or malformed
    ├── RecordError           a file of records cannot be read or written
    │   └── ChainError        a hash chain is broken
    ├── WorkspaceError       another process works in this workspace
    ├── SessionError          a session is unknown or cannot be read
    ├── CaptureError          a file is no capture, or cannot be read
    ├── LabError              a scenario is unknown or its world is not sound
    └── BrainError            the brain cannot take its next turn

The command line prints the message as one line on standard error and exits with `exit_status`.
"""

from __future__ import annotations

from typing import ClassVar


class GhostError(Exception):
    exit_status: ClassVar[int] = 1


class UsageError(GhostError):
    exit_status = 2


class ConfigurationError(GhostError):
    pass


class RecordError(GhostError):
    pass


class ChainError(RecordError):
    pass


class WorkspaceError(GhostError):
    pass


class SessionError(GhostError):
    pass


class CaptureError(GhostError):
    pass


class LabError(GhostError):
    pass


class BrainError(GhostError):
    pass
