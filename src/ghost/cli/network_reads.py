"""What a walk needs, read through a shell of a session of its own, with every command on record."""

from __future__ import annotations

import secrets
import shlex
from typing import Final

from rich.text import Text

from ghost.azure import error_of
from ghost.cli.terminal import to_stderr
from ghost.errors import LoginError, RecordError
from ghost.net import Answer, Read
from ghost.records import SystemClock, new_session_id
from ghost.shell import SafeExecShell, whole_output
from ghost.text import one_line, visible

NEEDS: Final = " needs: "
"""Between a walk's question and what is read for it, in the reasoning of its reads."""


def new_id(beginning: str) -> str:
    """Return the id of a session without a session file; two of one second differ."""
    moment = new_session_id(SystemClock().now()).removeprefix("ghost_")
    return f"{beginning}{moment}_{secrets.token_hex(3)}"


class NetworkReads:
    """Answers reads for one question."""

    def __init__(self, shell: SafeExecShell, question: str) -> None:
        self._shell = shell
        self._question = question
        self._status = to_stderr()

    def execute(self, read: Read) -> Answer:
        """Raises `LoginError` where Azure asks for a new login."""
        command = shlex.join(read.argv)
        if self._status.is_terminal:
            self._status.print(Text(f"reading: {visible(command)[:100]}", style="dim"))
        response = self._shell.execute({"command": command, "reasoning": f"{self._question}{NEEDS}{read.missing}."})
        if response["status"] != "completed" or response["exit_code"] != 0:
            error = error_of(command, response)
            if error is not None and error.needs_login:
                raise LoginError(f"{error.meaning}: run az login, then this command again")
            said = error or response["message"] or response["error"] or response["status"]
            return Answer("", str(response["audit_id"]), one_line(visible(str(said)), 300))
        try:
            return Answer(whole_output(response), str(response["audit_id"]))
        except RecordError as part:
            return Answer("", str(response["audit_id"]), visible(str(part))[:300])
