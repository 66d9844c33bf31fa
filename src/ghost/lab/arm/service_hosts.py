"""The names under which the emulator is reached. `invalid` resolves nowhere, now or ever: without the lab's proxy,
which alone knows them, a client reaches nothing. https://www.rfc-editor.org/rfc/rfc6761#section-6.4
"""

from __future__ import annotations

import re

DOMAIN = "lab.invalid"
MANAGEMENT = f"management.{DOMAIN}"
LOGIN = f"login.{DOMAIN}"
STORAGE_SUFFIX = f"core.{DOMAIN}"
BLOB_SUFFIX = f".blob.{STORAGE_SUFFIX}"
MANAGEMENT_AUDIENCE = f"https://{MANAGEMENT}"
STORAGE_AUDIENCE = "https://storage.azure.com"
CERTIFIED = (MANAGEMENT, LOGIN, f"*{BLOB_SUFFIX}", f"*.{DOMAIN}", "127.0.0.1")


_HOST = re.compile(rf"(?:[a-z0-9-]+\.)+{re.escape(DOMAIN)}")


def within_lab(host: str) -> bool:
    """Return whether a host is a plain DNS name of the lab: no other spelling, port, path or user."""
    return _HOST.fullmatch(host.lower()) is not None


def account_of(host: str) -> str | None:
    """Return the storage account of a blob endpoint's host; None if it is not one."""
    name = host.casefold().partition(":")[0]
    return name.removesuffix(BLOB_SUFFIX) if name.endswith(BLOB_SUFFIX) else None
