"""The name a client asked for in clear: server name of a TLS hello (RFC 6066), Host of an HTTP request (RFC 9112)."""

from __future__ import annotations

import re

_HOST = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


def http_host(request: bytes) -> str | None:
    head = request.partition(b"\r\n\r\n")[0]
    found = _HOST.search(head)
    return _plausible(found[1].strip()) if found else None


def tls_server_name(record: bytes) -> str | None:
    """From the first record of a connection; None where it has none, or the segment ends before it."""
    # Record header 5, handshake header 4, version 2, random 32.
    at = 43
    at += 1 + _number(record, at, 1)  # session id
    at += 2 + _number(record, at, 2)  # cipher suites
    at += 1 + _number(record, at, 1)  # compression methods
    stop = min(at + 2 + _number(record, at, 2), len(record))
    at += 2
    while at + 4 <= stop:
        kind, size = _number(record, at, 2), _number(record, at + 2, 2)
        if kind == 0:
            # List length 2, name type 1, name length 2.
            return _plausible(record[at + 9 : at + 9 + _number(record, at + 7, 2)])
        at += 4 + size
    return None


def _number(record: bytes, at: int, size: int) -> int:
    return int.from_bytes(record[at : at + size], "big")


def _plausible(name: bytes) -> str | None:
    text = name.decode("ascii", "replace")
    return text if _NAME.fullmatch(text) else None
