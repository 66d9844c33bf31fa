"""Every command a person types. This room wires the others together and turns errors into one clear line.

Exit status: 0 done, 1 failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from ghost.errors import GhostError, UsageError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """The program `ghost`. Never shows a traceback for what a person can mend."""
    import typer

    from ghost.cli.app import app
    from ghost.cli.words import plain

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        status = app(args=list(argv) if argv is not None else None, prog_name="ghost", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except GhostError as failed:
        print(f"ghost: {plain(str(failed))}", file=sys.stderr)
        return failed.exit_status
    except (KeyboardInterrupt, typer.Abort):
        print("ghost: interrupted", file=sys.stderr)
        return INTERRUPTED
    except typer.TyperException as wrong:
        print(f"ghost: {plain(_usage(wrong))}", file=sys.stderr)
        return UsageError.exit_status
    except BrokenPipeError:
        # The reader of a pipe has gone: say nothing, and let nothing be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GhostError.exit_status


def _usage(wrong: Exception) -> str:
    """What is wrong with the words of a command, and where its help is."""
    message = getattr(wrong, "format_message", lambda: str(wrong))()
    context = getattr(wrong, "ctx", None)
    return f"{message} See: {context.command_path if context else 'ghost'} --help"


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """A closed terminal or a polite kill ends like Ctrl-C: what was found is saved."""
    raise KeyboardInterrupt
