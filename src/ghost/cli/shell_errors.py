"""The shell's errors as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.azure import error_of
from ghost.text import one_line, visible


def failure_text(command: str, response: Mapping[str, Any]) -> str:
    """Why a command that ran az did not succeed, on one line: Azure's words, else the shell's."""
    error = error_of(command, response)
    return one_line(visible(str(error or (error_text(response) if response["error"] else "az failed"))), 300)


def error_text(response: Mapping[str, Any]) -> str:
    """The shell's error as text, with its reason."""
    words = str(response["error"]).replace("_", " ")
    return f"{words}: {visible(str(response['message']))}" if response["message"] else words
