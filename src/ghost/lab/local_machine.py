"""The engineer's own machine, outside Azure: its connections, and what it can resolve and reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Socket:
    """A row of the local machine's socket table."""

    state: Literal["LISTEN", "ESTAB", "TIME-WAIT", "UNCONN", "SYN-SENT"]
    local: str
    """Address and port."""
    peer: str = "0.0.0.0:*"
    protocol: Literal["tcp", "udp"] = "tcp"
    process: str | None = None


@dataclass(frozen=True)
class DnsName:
    name: str
    address: str
    ttl: int = 300


@dataclass(frozen=True)
class RemoteHost:
    """A host on the internet that the local machine can reach."""

    address: str
    rtt_ms: float
    hops: tuple[str, ...] = ()
    """Routers behind the local gateway, nearest first."""
    ports: tuple[int, ...] = (443,)


@dataclass(frozen=True)
class LocalMachine:
    """The engineer's laptop, outside Azure: private addresses of the tenant do not answer it."""

    hostname: str
    address: str
    """With the length of its prefix: 192.168.1.23/24."""
    gateway: str
    dns_server: str
    public_address: str = "198.51.100.23"
    """From which Azure sees it."""
    interface: str = "eth0"
    mac: str = "3c:22:fb:4a:90:1e"
    sockets: tuple[Socket, ...] = ()
    names: tuple[DnsName, ...] = ()
    hosts: tuple[RemoteHost, ...] = ()

    def resolve(self, name: str) -> list[str]:
        """Return the addresses of a name from this machine's resolver; none if it does not exist."""
        host_name = name.rstrip(".").casefold()
        found = [entry.address for entry in self.names if entry.name.rstrip(".").casefold() == host_name]
        return found or (["127.0.0.1"] if host_name in ("localhost", self.hostname.casefold()) else [])
