"""The shell's errors as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ghost.text import visible


def error_text(response: Mapping[str, Any]) -> str:
    """The shell's error as text, with its reason."""
    words = str(response["error"]).replace("_", " ")
    return f"{words}: {visible(str(response['message']))}" if response["message"] else words
