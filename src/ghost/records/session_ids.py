"""Session ids: `ghost_{YYYYMMDD}_{HHMMSS}`, with `_2`, `_3`, ... if the id is already in use."""

from __future__ import annotations

import re
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


def valid_session_id(text: str) -> bool:
    """Return whether `text` is safe in a file name: letters, digits, `_`, `-`, `.`, at most 100, no `..`."""
    return _SESSION_ID.fullmatch(text) is not None and ".." not in text
