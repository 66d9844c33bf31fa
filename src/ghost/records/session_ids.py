"""Session ids: `ghost_{YYYYMMDD}_{HHMMSS}`, with `_2`, `_3`, ... if the id is already in use."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from datetime import datetime

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def new_session_id(moment: datetime, taken: Callable[[str], bool] = lambda _: False) -> str:
    base = moment.strftime("ghost_%Y%m%d_%H%M%S")
    if not taken(base):
        return base
    number = 2
    while taken(f"{base}_{number}"):
        number += 1
    return f"{base}_{number}"


def new_command_id(beginning: str, moment: datetime) -> str:
    """Return the id of a session of single commands, which has no session file: `shell_20261129_101500_1f2e3d`."""
    return f"{beginning}{moment:%Y%m%d_%H%M%S}_{secrets.token_hex(3)}"  # two of one second differ


def valid_session_id(text: str) -> bool:
    """Return whether `text` is safe in a file name: letters, digits, `_`, `-`, `.`, at most 100, no `..`."""
    return _SESSION_ID.fullmatch(text) is not None and ".." not in text
