"""Every error Ghost raises on purpose. Each message says what failed, with what, and what to do.

    GhostError
    ├── UsageError            the caller's words are wrong                      (exit status 2)
    ├── ConfigurationError    a setting or a key is missing or malformed
    ├── LoginError            az is not logged in, or no longer               (exit status 5)
    ├── RecordError           a file of records cannot be read or written
    │   └── ChainError        a hash chain is broken
    ├── WorkspaceError       another process works in this workspace
    ├── SessionError          a session is unknown or cannot be read
    ├── CaptureError          a file is no capture, or cannot be read
    ├── LabError              a scenario is unknown or its world is not sound
    ├── BrainError            the brain cannot take its next turn
    ├── ProviderError         a language model or an embedding model did not answer usably
    │   └── UnusableAnswer    a model answered, but the answer is cut, empty or no JSON
    ├── StoreError            long-term memory cannot be opened, read or written
    └── ScrapeError           a plan to read pages cannot be carried out

The command line prints the message as one line on standard error and exits with `exit_status`.
"""

from __future__ import annotations

from collections import namedtuple
from typing import ClassVar


class GhostError(Exception):
    exit_status: ClassVar[int] = 1


class UsageError(GhostError):
    exit_status = 2


class ConfigurationError(GhostError):
    pass


class LoginError(GhostError):
    """The investigation pauses: with a new login it goes on where it stood."""

    exit_status = 5


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


class ProviderError(GhostError):
    """`transient`: asking again may help. `retry_after_seconds`: when the provider said how long to wait."""

    def __init__(self, message: str, *, transient: bool = False, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_seconds = retry_after_seconds


class UnusableAnswer(ProviderError):  # noqa: N818  what was answered, not a fault of the server
    pass


class StoreError(GhostError):
    pass


class ScrapeError(GhostError):
    pass


def settle_interrupt() -> None:
    """Lets a program that has dealt with an interrupt end with its own exit status.

    Python ends a process by SIGINT, whatever status it asks for, where the interrupt passed through code made from a
    string (`exec`; the standard library makes dataclasses and named tuples so): it keeps a mark, which the next such
    code takes away (CPython, `run_eval_code_obj`).
    """
    namedtuple("Settled", ())
