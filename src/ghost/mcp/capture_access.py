"""Which captures a client may name: those of the workspace, and what the command line allows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ghost.errors import UsageError

SUFFIX: Final = re.compile(r".*\.(?:pcap|pcapng|cap)(?:\.gz)?", re.IGNORECASE)
MAX_NAMED: Final = 12


class CaptureAccess:
    """`allowed`: files and directories beside `own`, the workspace's directory of captures. Links are resolved."""

    def __init__(self, own: Path, allowed: Sequence[Path]) -> None:
        missing = [str(path) for path in allowed if not path.exists()]
        if missing:
            raise UsageError(f"{', '.join(missing)} does not exist: allow captures that are there")
        self.own = Path(os.path.realpath(own))
        self.places = [self.own, *(Path(os.path.realpath(path)) for path in allowed)]

    def path_of(self, named: str) -> Path:
        """Return the real path of a capture; a relative one lies in the workspace's directory of captures.

        Raises `UsageError` for anything else, whether or not it exists.
        """
        real = Path(os.path.realpath(self.own / named.replace("\0", "\\0")))
        allowed = any(real == place or place in real.parents for place in self.places)
        if not allowed or SUFFIX.fullmatch(real.name) is None or not real.is_file():
            raise UsageError(f"{named[:200]!r} is not a capture that may be read here; there are: {self._known()}")
        return real

    def _known(self) -> str:
        found = [path for path in self.own.glob("*") if SUFFIX.fullmatch(path.name) and path.is_file()]
        names = sorted(path.name for path in found) + [str(place) for place in self.places[1:]]
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"{', '.join(names[:MAX_NAMED])}{more}" if names else f"none (captures lie in {self.own})"
