"""The listening socket, bound before anything else is opened, so that errors are reported at once."""

from __future__ import annotations

import errno
import ipaddress
import socket

from ghost.config import Settings
from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback

BACKLOG = 512
TOKEN_CHARACTERS = 16
"""Shorter ones can be guessed."""


def bound_socket(settings: Settings) -> socket.socket:
    """Return the bound socket. Raises `ConfigurationError` if it is reachable by other machines without a token, or
    cannot be bound.
    """
    host, port = settings.api_host.strip(), settings.api_port
    token = settings.api_token.get_secret_value().strip() if settings.api_token is not None else None
    if token == "":
        raise ConfigurationError("GHOST_API_TOKEN is blank: set one, `openssl rand -hex 32` makes it, or unset it")
    if token is not None and len(token) < TOKEN_CHARACTERS:
        raise ConfigurationError(
            f"GHOST_API_TOKEN has fewer than {TOKEN_CHARACTERS} characters: `openssl rand -hex 32` makes one"
        )
    if not is_loopback(host) and token is None:
        raise ConfigurationError(
            f"{host!r} is reachable by other machines, and no token is set: set GHOST_API_TOKEN "
            "(`openssl rand -hex 32` "
            "makes one), or bind 127.0.0.1 (GHOST_API_HOST)"
        )
    family, address = _address(host, port)
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ConfigurationError(_why_not(host, port, error)) from error
    return listening


def url_of(listening: socket.socket, settings: Settings) -> str:
    """Return the server's URL for a browser on this machine."""
    address, port = listening.getsockname()[:2]
    host = ipaddress.ip_address(address)
    if host.is_unspecified:
        return f"http://localhost:{port}"
    if settings.api_host.lower() == "localhost":
        return f"http://localhost:{port}"
    return f"http://[{address}]:{port}" if host.version == 6 else f"http://{address}:{port}"


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Resolve the host; localhost is 127.0.0.1, whatever the hosts file says."""
    bare = host.removeprefix("[").removesuffix("]")
    if bare.lower() == "localhost":
        bare = "127.0.0.1"
    try:
        found = socket.getaddrinfo(bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"{host!r} is not an address of this machine ({error}): set GHOST_API_HOST") from error
    family, _, _, _, address = found[0]
    return family, (str(address[0]), port)


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use, perhaps by another ghost serve: end that one (`ss -ltnp` names it), or "
            f"choose another port (GHOST_API_PORT={port + 1 if port < 65535 else 8000})"
        )
    if error.errno == errno.EACCES:
        return f"port {port} of {host} may be bound by root only: choose one above 1023 (GHOST_API_PORT)"
    return f"cannot listen on {host} port {port} ({error.strerror}): set GHOST_API_HOST to an address of this machine"
