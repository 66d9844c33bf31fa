"""Cleartext server names from packets: only valid host names of bounded length pass."""

from __future__ import annotations

import re
from functools import lru_cache

_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*)", re.IGNORECASE)
_NAME = re.compile(rb"[A-Za-z0-9._:\[\]-]{1,255}")


def http_host(request: bytes) -> str | None:
    """Return the Host of an HTTP request (RFC 9112); None if it has none or the segment ends before it."""
    head = request.partition(b"\r\n\r\n")[0]
    found = _HOST.search(head)
    return plausible(found[1].strip()) if found else None


@lru_cache(maxsize=16_384)
def plausible(name: bytes) -> str | None:
    """Return `name` as text if it is a valid host name, else None."""
    return name.decode("ascii") if _NAME.fullmatch(name) else None
