"""Whether a host is this machine."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether `host` is a loopback address, with or without brackets, or `localhost`. No other name is looked up."""
    bare = host.lower().removeprefix("[").removesuffix("]")
    try:
        return ip_address(bare).is_loopback
    except ValueError:
        return bare == "localhost"
