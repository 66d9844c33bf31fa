"""Reads of the network for a walk, through the shell: each one is a command on record."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ghost.azure import error_of
from ghost.errors import LoginError, RecordError
from ghost.net import Answer, Read
from ghost.shell import whole_output
from ghost.text import one_line, visible

NEEDS: Final = " needs: "
"""Between what is asked and what is read for it, in the reasoning of a read."""


class Shell(Protocol):
    def execute(self, request: Mapping[str, Any]) -> dict[str, Any]: ...


def reads_through(shell: Shell, question: str) -> Callable[[Read], Answer]:
    """Return what answers reads by commands of `shell`; `question`, the reason for all of them, is on record.

    It raises `LoginError` where Azure asks for a new login.
    """

    def execute(read: Read) -> Answer:
        command = shlex.join(read.argv)
        response = shell.execute({"command": command, "reasoning": f"{question}{NEEDS}{read.missing}."})
        audit_id = str(response["audit_id"])
        if response["status"] != "completed" or response["exit_code"] != 0:
            error = error_of(command, response)
            if error is not None and error.needs_login:
                raise LoginError(f"{error.meaning}: run az login, then this command again")
            said = error or response["message"] or response["error"] or response["status"]
            return Answer("", audit_id, one_line(visible(str(said)), 300))
        try:
            return Answer(whole_output(response), audit_id)
        except RecordError as part:
            return Answer("", audit_id, visible(str(part))[:300])

    return execute
