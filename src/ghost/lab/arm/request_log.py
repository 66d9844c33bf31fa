"""A log of requests to the emulator and its proxy: one JSON object per line, without headers, bodies or keys."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from ghost.records import SystemClock, isoformat


@dataclass
class RequestLog:
    path: Path
    _lock: Lock = field(default_factory=Lock)

    def add(self, **entry: Any) -> None:
        line = json.dumps({"at": isoformat(SystemClock().now()), **entry}, ensure_ascii=False) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._lock:
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the entries so far."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines]
