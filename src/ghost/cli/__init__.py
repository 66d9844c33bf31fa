"""Every command a person types. This room wires the others together and turns errors into one clear line.

Exit status: 0 done, 1 failed, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from ghost.errors import GhostError

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """The program `ghost`. Never shows a traceback for what a person can mend."""
    import click

    from ghost.cli.app import app
    from ghost.cli.words import plain

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        status = app(args=list(argv) if argv is not None else None, prog_name="ghost", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as wrong:
        wrong.show()
        return 2
    except click.ClickException as failed:
        failed.show()
        return failed.exit_code
    except GhostError as failed:
        print(f"ghost: {plain(str(failed))}", file=sys.stderr)
        return failed.exit_status
    except (KeyboardInterrupt, click.Abort, EOFError):
        print("ghost: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has gone: say nothing, and let nothing be flushed into the closed pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """A closed terminal or a polite kill ends like Ctrl-C: what was found is saved."""
    raise KeyboardInterrupt
