"""Where a model server is: what may be asked, and how.

Plain `http` carries a key and everything the mind thinks for anyone to read: it is taken for this machine only, unless
the address says `http+insecure://`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ghost.errors import ConfigurationError
from ghost.hosts import is_loopback

_INSECURE = "http+insecure"


def server_url(variable: str, value: str) -> str:
    """The address without a slash at its end. Raises `ConfigurationError`, which repeats nothing secret."""
    try:
        parts = urlsplit(value.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError(f"{variable} is no address: give one like https://host:port/v1.") from None
    if parts.scheme not in ("https", "http", _INSECURE) or not host:
        raise ConfigurationError(f"{variable} is no address of a server: give one like https://host:port/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            f"{variable} holds a user, a query or a fragment: give the plain address, and a key in its own variable."
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigurationError(
            f"{variable} asks {host} without TLS, and anyone on the way can read it: use https://, or write"
            f" {_INSECURE}:// if that is meant."
        )
    scheme = "http" if parts.scheme == _INSECURE else parts.scheme
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"
