"""The tools of Ghost for other agents: a server of the Model Context Protocol over stdio, read-only by construction.

Its shell has nobody to ask, so that what is not SAFE is refused; it approves nothing, takes no capture and changes
nothing in Azure. An investigation is a process of Ghost's own, read-only as well. Every call is on record with the
client's name, and what a client is sent is bounded and has placeholders for secrets. See `docs/mcp.md`.

Needs the extra `mcp`, which is imported only when it serves. https://modelcontextprotocol.io/specification
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ghost.config import Settings
from ghost.errors import ConfigurationError

MCP = "mcp_"
"""The beginning of the ids of sessions, each of one connection."""


def serve(settings: Settings, *, lab: str | None = None, captures: Sequence[Path] = ()) -> None:
    """Serve one client on standard input and output until it closes them.

    `lab`: the scenario that is asked in Azure's place. `captures`: files and directories of captures that may be read
    beside those of the workspace. Raises `ConfigurationError` where the extra is missing or a setting does not fit, and
    `KeyboardInterrupt` after a signal.
    """
    if find_spec("mcp") is None:
        raise ConfigurationError(
            "ghost mcp needs the package mcp: install the extra with pip install 'ghost-investigator[mcp]'"
        )
    if settings.private:
        raise ConfigurationError("walks compare addresses, which private mode hides: unset GHOST_PRIVATE for ghost mcp")
    from ghost.mcp.protocol_server import serve_stdio

    serve_stdio(settings, lab, captures)


__all__ = ["MCP", "serve"]
