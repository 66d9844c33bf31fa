"""Validation of a model server's address.

Plain `http` exposes the key and all prompts, so it is accepted only for this machine, unless the address says
`http+insecure://`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback

_INSECURE = "http+insecure"


def server_url(variable: str, value: str) -> str:
    """Return the address without a final slash. Raises `ConfigurationError`, which repeats nothing secret."""
    try:
        parts = urlsplit(value.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(f"{variable} is not an address: use the form https://host:port/v1.") from None
    if parts.scheme not in ("https", "http", _INSECURE) or not host:
        raise ConfigurationError(f"{variable} is not a server address: use the form https://host:port/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{variable} holds a user, a query or a fragment: give the plain address, and a key in its own variable."
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigurationError(
            f"{variable} asks {host} without TLS, and anyone on the path can read it: use https://, or write"
            f" {_INSECURE}:// if that is meant."
        )
    scheme = "http" if parts.scheme == _INSECURE else parts.scheme
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"
