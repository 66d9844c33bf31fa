"""The engineer's machine as seen by the probing programs: outside Azure, behind its own gateway.

Hosts declared reachable answer; private addresses of the tenant do not, whatever its configuration. No real network is
used.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from random import Random
from types import FrameType
from typing import Literal, NoReturn

from ghost.errors import LabError
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.local_machine import DnsName, LocalMachine, RemoteHost
from ghost.policy import load_policy

LOOPBACK_RTT_MS = 0.04
GATEWAY_RTT_MS = 1.3
GATEWAY_PORTS = (53, 80)

ConnectionOutcome = Literal["answers", "refused", "silent", "unreachable"]


Speech = Literal["", "http", "tls", "other"]
Failure = Literal["", "hangs", "closes", "resets", "tls_version", "tls_expired", "tls_name"]


@dataclass(frozen=True)
class Served:
    """What a connection meets at a service that accepted it."""

    speaks: Speech = ""
    """Empty: whatever it is asked."""
    failure: Failure = ""
    connect_stall: float = 0.0
    """Seconds by which lost packets delay the connection; `stall`: that the answer takes."""
    stall: float = 0.0
    http_status: int | None = None
    body: str = ""
    """With that status; empty: its phrase."""


class InterruptError(Exception):
    """The terminal's interrupt key."""


@dataclass(frozen=True)
class Laptop:
    machine: LocalMachine
    clock: LabClock
    random: Random

    @classmethod
    def here(cls, program: str, argv: Sequence[str]) -> Laptop:
        """Return the machine of this process's lab. Raises `LabError` outside a lab."""
        lab = LabDirectory.from_environment()
        moment = int(lab.clock.monotonic())
        return cls(lab.world.local, lab.clock, Random(f"{lab.world.seed}/{moment}/{program}/{argv}"))  # noqa: S311

    @property
    def address(self) -> str:
        return str(ip_interface(self.machine.address).ip)

    def resolve(self, name: str) -> list[str]:
        """Return the addresses of a name; a literal address is its own."""
        literal = parse_address(name)
        return [str(literal)] if literal is not None else self.machine.resolve(name)

    def name_of(self, address: str) -> str | None:
        """Return the reverse lookup; internet addresses have none here."""
        return "localhost" if ip_address(address).is_loopback else None

    def host(self, address: str) -> RemoteHost | None:
        """Return the host at an address, if any."""
        target = ip_address(address)
        if target.is_loopback or address == self.address:
            return RemoteHost(address, LOOPBACK_RTT_MS, (), self._listening_ports())
        if address in (self.machine.gateway, self.machine.dns_server) and self.is_neighbour(address):
            return RemoteHost(address, GATEWAY_RTT_MS, (), GATEWAY_PORTS)
        return next((host for host in self.machine.hosts if host.address == address), None)

    def is_neighbour(self, address: str) -> bool:
        """Return whether an address is on the machine's own network, reached by ARP."""
        return ip_address(address) in ip_interface(self.machine.address).network

    def way(self, address: str, port: int) -> ConnectionOutcome:
        """Return the outcome of a TCP connection to a port of an address."""
        host = self.host(address)
        if host is None:
            return "unreachable" if self.is_neighbour(address) else "silent"
        if port in host.ports:
            return "answers"
        return "refused" if self.is_near(address) else "silent"

    def echoes(self, address: str) -> RemoteHost | None:
        """Return the host that answers an echo request, if one does."""
        return self.host(address)

    def served(self, _host: str, _address: str, _port: int) -> Served:
        """Return what a connection meets at a service that accepted it."""
        return Served()

    def dns_way(self, server: str, port: int) -> ConnectionOutcome:
        """Return the outcome of a query to a DNS server."""
        host = self.host(server)
        answers = host is not None and port == 53 and (server == self.machine.dns_server or 53 in host.ports)
        return "answers" if answers else self.way(server, port)

    def dns_entries(self, _server: str, name: str) -> list[DnsName] | None:
        """Return what a DNS server has of a name, in lower case; None if it fails."""
        return [entry for entry in self.machine.names if entry.name.rstrip(".").casefold() == name]

    def is_near(self, address: str) -> bool:
        return ip_address(address).is_loopback or self.is_neighbour(address)

    def path(self, address: str) -> tuple[str, ...]:
        """Return the known routers to a host, nearest first, without the host."""
        if self.is_near(address):
            return ()
        host = self.host(address)
        return (self.machine.gateway, *(host.hops if host else ()))

    def rtt_ms(self, base: float) -> float:
        """Return a round-trip time: the path's minimum plus jitter."""
        return base * (1 + abs(self.random.gauss(0.0, 0.04))) + abs(self.random.gauss(0.0, 0.015))

    def _listening_ports(self) -> tuple[int, ...]:
        rows = (socket for socket in self.machine.sockets if socket.state == "LISTEN" and socket.protocol == "tcp")
        return tuple(int(socket.local.rpartition(":")[2]) for socket in rows)


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def run(program: str, body: Callable[[Laptop, Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Run a program's body on this process's machine, with the interrupt key as an exception."""
    words = list(sys.argv[1:] if argv is None else argv)

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise InterruptError

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        return body(Laptop.here(program, words), words)
    except LabError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except InterruptError:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    finally:
        signal.signal(signal.SIGINT, previous)


def options_of(program: str) -> dict[str, str]:
    """Return a program's option tables from `options.toml`: words separated by blanks."""
    return load_policy(__file__, "options.toml", dict[str, dict[str, str]])[program]


def complain(text: str) -> None:
    print(text, file=sys.stderr)
