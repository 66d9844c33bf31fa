"""The command line. Connects the other rooms and turns errors into one clear line.

Exit statuses: docs/architecture.md.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ghost.cli.stop_signals import Interrupts
from ghost.errors import GhostError, UsageError, settle_interrupt

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """The program `ghost`. Errors that a user can fix show one line, no traceback."""
    interrupts = Interrupts()
    try:
        interrupts.take()
        return _run(argv)
    except KeyboardInterrupt:
        settle_interrupt()
        return _end(INTERRUPTED, "interrupted.")
    finally:
        interrupts.hold()


def _run(argv: Sequence[str] | None) -> int:
    import typer

    from ghost.cli.typer_app import app
    from ghost.text import sentence, visible

    _open_closed_streams()
    try:
        status = app(args=list(argv) if argv is not None else None, prog_name="ghost", standalone_mode=False)
        if status == INTERRUPTED:  # what Typer makes of an interrupt
            raise KeyboardInterrupt
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except GhostError as failed:
        return _end(failed.exit_status, sentence(visible(str(failed))))
    except typer.Abort:
        raise KeyboardInterrupt from None
    except typer.TyperException as wrong:
        return _end(UsageError.exit_status, visible(_usage(wrong)))
    except BrokenPipeError:
        return _end(GhostError.exit_status, None)
    except OSError as failed:
        return _end(GhostError.exit_status, sentence(visible(_failure(failed))))
    except Exception as defect:
        if os.environ.get("GHOST_TRACEBACK"):
            raise
        what = visible(f"{type(defect).__name__}: {defect}")[:300]
        return _end(GhostError.exit_status, f"this should not happen ({what}): GHOST_TRACEBACK=1 shows where.")


def _open_closed_streams() -> None:
    """Replace closed standard streams by /dev/null."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def _end(status: int, message: str | None) -> int:
    """Print the message on standard error if it is still open, and flush without failing."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        if message is not None:
            print(f"ghost: {message}", file=sys.stderr)
        return status
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    with contextlib.suppress(OSError):
        if message is not None:
            print(f"ghost: {message}", file=sys.stderr)
        return status
    os.dup2(nowhere, sys.stderr.fileno())
    return status


def _failure(failed: OSError) -> str:
    """The system's error and the way out."""
    what = f"{failed.strerror or failed}{f': {failed.filename}' if failed.filename else ''}"
    way = {
        errno.ENOSPC: "make room on the disk",
        errno.EACCES: "check its owner and mode",
        errno.ENOENT: "check its name",
    }
    return f"{what}: {way.get(failed.errno or 0, 'check the path and its permissions')}"


def _usage(wrong: Exception) -> str:
    """The usage error and where to find help."""
    from ghost.text import sentence

    message = " ".join(getattr(wrong, "format_message", lambda: str(wrong))().split())
    if near := getattr(wrong, "possibilities", None):
        message = f"{wrong.args[0]}. Did you mean {' or '.join(sorted(near))}?"
    context = getattr(wrong, "ctx", None)
    return f"{sentence(message)} See: {context.command_path if context else 'ghost'} --help."
