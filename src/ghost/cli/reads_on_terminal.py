"""What a walk needs, read through a shell, each command named on the terminal while it runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from rich.text import Text

from ghost.agent import reads_through
from ghost.cli.terminal import to_stderr
from ghost.net import Answer, Read
from ghost.shell import SafeExecShell
from ghost.text import visible


def shown_reads(shell: SafeExecShell, question: str) -> Callable[[Read], Answer]:
    """Return what answers reads for `question`; it raises `LoginError` where Azure asks for a new login."""
    execute, status = reads_through(shell, question), to_stderr()

    def shown(read: Read) -> Answer:
        if status.is_terminal:
            status.print(Text(f"reading: {visible(shlex.join(read.argv))[:100]}", style="dim"))
        return execute(read)

    return shown
