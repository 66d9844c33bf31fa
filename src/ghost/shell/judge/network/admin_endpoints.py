"""Admin endpoints: URLs, by port and path, of services that control a machine or hold secrets.

A port decides for every host, since a name may lead to this machine; only questions for health are let through, and
those not on this machine itself, where nothing but its owner stands before such a service.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import cache
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import unquote

from ghost.patterns import lazy
from ghost.shell.policy_tables import policy_table

_LOCAL_NAME = lazy(r"(?:.+\.)?(?:localhost|localdomain|loopback|localhost[46])\.?", re.IGNORECASE)

_PARAMETERS = lazy(r";[^/]*+")
_DECODINGS = 8
"""Nobody writes a path that is encoded so often; each pass reads all of it."""


class _Services(NamedTuple):
    ports: Mapping[int, str]
    harmless: re.Pattern[str]
    paths: tuple[tuple[re.Pattern[str], str], ...]


@cache
def _services() -> _Services:
    table = policy_table("admin_endpoints.toml")
    return _Services(
        ports={int(port): what for ports, what in table["ports"].items() for port in ports.split()},
        harmless=lazy(table["harmless"]["path"]),
        paths=tuple((lazy(row["path"]), row["why"]) for row in table["paths"]),
    )


def fault_of_service(host: str, port: int | None, rest: str) -> str | None:
    """Why this endpoint is not asked; `rest` is the part of the URL after the host."""
    services = _services()
    path = _path(rest)
    if path is None:
        return "has a path that is encoded again and again, so what it asks for cannot be seen"
    for pattern, why in services.paths:
        if pattern.search(path):
            return f"asks for {path[:80]}, which {why}"
    what = services.ports.get(port or 0)
    if what is None or (not is_this_machine(host) and services.harmless.fullmatch(rest)):
        return None
    return f"leads to {host}:{port}, the port of {what}"


def is_this_machine(host: str) -> bool:
    bare = host.strip("[]")
    if _LOCAL_NAME.fullmatch(bare):
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _path(rest: str) -> str | None:
    """The path as some server may see it: decoded until nothing is left to decode, without `;parameters`, `//` and
    dots, in lower case. None where decoding does not end."""
    path = rest.partition("?")[0].partition("#")[0]
    for _ in range(_DECODINGS):
        decoded = unquote(path)
        if decoded == path:
            break
        path = decoded
    else:
        return None
    if not path:
        return ""
    path = _PARAMETERS.sub("", path)
    return re.sub(r"^/+", "/", normpath(path)).lower() + ("/" if path.endswith("/") else "")
