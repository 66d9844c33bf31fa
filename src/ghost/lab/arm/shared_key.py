"""Signatures of storage requests with an account key.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qsl, unquote, urlsplit

_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


def signature(account: str, key: str, method: str, target: str, headers: Mapping[str, str]) -> str:
    """Return the text after `SharedKey ACCOUNT:` in the authorization. Names of `headers` are in lower case."""
    values = [headers.get(name, "") for name in _SIGNED_HEADERS]
    values[2] = "" if values[2] == "0" else values[2]
    if "x-ms-date" in headers:
        values[5] = ""
    own = "".join(f"{name}:{headers[name].strip()}\n" for name in sorted(headers) if name.startswith("x-ms-"))
    text = "\n".join([method, *values]) + "\n" + own + _resource(account, target)
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), sha256).digest()).decode()


def _resource(account: str, target: str) -> str:
    split = urlsplit(target)
    lines = [f"/{account}{split.path or '/'}"]
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(split.query, keep_blank_values=True):
        query.setdefault(unquote(name).lower(), []).append(value)
    return "\n".join([*lines, *(f"{name}:{','.join(sorted(query[name]))}" for name in sorted(query))])
