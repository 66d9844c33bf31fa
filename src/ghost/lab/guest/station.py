"""A machine of the tenant as the simulated programs see the machine they run on.

Names are resolved as `ghost.net` tells for the machine, connections meet what the walk and the world's conditions say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from ipaddress import ip_address, ip_network
from random import Random

from ghost.lab.directory import LabClock
from ghost.lab.local_machine import DnsName, LocalMachine, RemoteHost, Socket
from ghost.lab.passages import PORT_UNREACHABLE, Passage, public_address, ways_of
from ghost.lab.programs.laptop import LOOPBACK_RTT_MS, ConnectionOutcome, Failure, Laptop, Served, Speech, parse_address
from ghost.lab.tenant import interface_id
from ghost.lab.wire.conditions import Conditions, WireFault
from ghost.lab.world import Machine, World
from ghost.net import HOST_ADDRESS, Flow, Interface, VirtualNetwork, is_address, resolution_of

SPEAKS_HTTP, SPEAKS_OTHERWISE = {80, 8000, 8080, 32526}, {22, 25, 53, 1433, 3306, 5432, 6379}
MACHINE_NAMES = ".internal.cloudapp.net"
LONGEST_SECONDS = 90 * 60.0
"""https://learn.microsoft.com/azure/virtual-machines/linux/run-command"""
MOST_WAITS = 10_000
FIRST_RETRY_SECONDS, LAST_RETRY = 1.0, 6
"""Linux sends a SYN again after 1, 3, 7, ... seconds, six times."""
SMALLEST_HANDSHAKE_MTU = 1400
"""A server's certificates fill segments of full size."""


class TimeUpError(Exception):
    """The limit of `timeout` is reached."""


@dataclass(frozen=True)
class ScriptClock(LabClock):
    """Time inside a script: it passes only where a command waits."""

    began: datetime = field(kw_only=True)
    spent: list[float] = field(default_factory=lambda: [0.0])
    ends: list[float] = field(default_factory=lambda: [LONGEST_SECONDS])
    """That of the script, and limits of `timeout`, the innermost last."""
    waits: list[None] = field(default_factory=list)

    def now(self) -> datetime:
        return self.began + timedelta(seconds=self.spent[0])

    def monotonic(self) -> float:
        return self.spent[0]

    def sleep(self, seconds: float) -> None:
        self.spent[0] += seconds
        self.waits.append(None)
        if self.spent[0] > min(self.ends) or len(self.waits) > MOST_WAITS:
            self.spent[0] = min(self.ends)
            raise TimeUpError


@dataclass(frozen=True)
class Station(Laptop):
    world: World
    vm: Machine

    @classmethod
    def of(cls, world: World, vm: Machine, now: datetime) -> Station:
        nic = world.network.one(Interface, interface_id(world, vm))
        _, subnet = world.network.subnet_of(nic)
        network = next(p for p in map(ip_network, subnet.prefixes) if ip_address(nic.address) in p)
        home, _ = world.network.subnet_of(nic)
        servers = nic.dns_servers or home.dns_servers or (HOST_ADDRESS,)
        mac = world.interface_of(vm.name).mac.replace("-", ":").lower()
        address, gateway = f"{nic.address}/{network.prefixlen}", str(network[1])
        machine = LocalMachine(vm.name, address, gateway, servers[0], mac=mac, sockets=tuple(_sockets(vm)))
        random = Random(f"{world.seed}/{vm.name}/{now.timestamp():.0f}")  # noqa: S311 -- simulation, not secrecy
        return cls(machine, ScriptClock(0.0, 1.0, began=now), random, world, vm)

    @cached_property
    def nic(self) -> Interface:
        return self.world.network.one(Interface, interface_id(self.world, self.vm))

    @property
    def servers(self) -> tuple[str, ...]:
        home, _ = self.world.network.subnet_of(self.nic)
        return self.nic.dns_servers or home.dns_servers or (HOST_ADDRESS,)

    @property
    def conditions(self) -> Conditions:
        return self.world.conditions

    # ------------------------------------------------------------------------------------------------- connections

    def passage(self, address: str, port: int | None, protocol: str = "Tcp") -> Passage:
        """Return what becomes of a connection now; of several members of a pool, one is chosen."""
        ways = ways_of(
            self.world.network,
            Flow(protocol, self.address, None, self._known_as.get(address, address), port),
            self.conditions,
            source=self.nic.id,
        )
        return self.random.choice(ways)

    @cached_property
    def _known_as(self) -> dict[str, str]:
        """The names of public services by the address that they have here: a service is reached by its name."""
        return {}

    def is_own(self, address: str) -> bool:
        return ip_address(address).is_loopback or address == self.address

    def is_neighbour(self, address: str) -> bool:  # noqa: ARG002 -- Azure answers every ARP request
        return False

    def way(self, address: str, port: int) -> ConnectionOutcome:
        return self.outcome(address, port, "Tcp")

    def outcome(self, address: str, port: int, protocol: str) -> ConnectionOutcome:
        if self.is_own(address):
            return "answers" if self._listens(address, port, protocol) else "refused"
        passage = self.passage(address, port, protocol)
        if passage.outcome == "refused" or passage.answers_with in ("tcp reset", PORT_UNREACHABLE):
            return "refused"
        if passage.outcome == "rejected":
            return "unreachable"
        if passage.outcome != "accepted" or self._is_out_of_ports(passage):
            return "silent"
        return "answers"

    def _listens(self, address: str, port: int, protocol: str) -> bool:
        known = {address, "0.0.0.0", "::", "*"}  # noqa: S104 -- what sockets of the simulation are bound to
        return any((x.port, x.protocol) == (port, protocol) and x.address in known for x in self.vm.listeners)

    def _is_out_of_ports(self, passage: Passage) -> bool:
        """Return whether this connection finds all ports of its translation held by others."""
        names = passage.parties(passage.forward)
        for link in passage.links(passage.forward, self.conditions):
            if link.snat_ports is not None:
                rate = sum(t.connections_per_minute for t in self.world.traffic if t.client in names) / 60
                held = rate * link.snat_hold_seconds
                if held > link.snat_ports and self.random.random() < 1 - link.snat_ports / held:
                    return True
        return False

    def host(self, address: str) -> RemoteHost | None:
        if self.is_own(address):
            return RemoteHost(address, LOOPBACK_RTT_MS)
        passage = self.passage(address, None)
        return RemoteHost(address, self.rtt_of(passage)) if passage.forward else None

    def rtt_of(self, passage: Passage) -> float:
        base = 2 * passage.far.delay_ms if passage.far is not None else self.world.rtt_ms
        return base + sum(
            link.delay_ms + self.random.random() * link.jitter_ms for way in self._links(passage) for link in way
        )

    def echoes(self, address: str) -> RemoteHost | None:
        if self.is_own(address):
            return RemoteHost(address, LOOPBACK_RTT_MS)
        passage = self.passage(address, None, "Icmp")
        if passage.outcome != "accepted" or self._lost(self._links(passage)):
            return None
        return RemoteHost(address, self.rtt_of(passage))

    def path(self, address: str) -> tuple[str, ...]:
        far = self.conditions.outside_host(address)
        return ("",) * far.hops if far is not None else ()

    def served(self, host: str, address: str, port: int) -> Served:
        speaks: Speech = "http" if port in SPEAKS_HTTP else "other" if port in SPEAKS_OTHERWISE else "tls"
        if self.is_own(address):
            return Served(speaks)
        passage = self.passage(address, port)
        forward, backward = self._links(passage)
        lost = 0
        while lost < LAST_RETRY and self._lost((forward, backward)):
            lost += 1
        served = Served(speaks, connect_stall=FIRST_RETRY_SECONDS * (2**lost - 1))
        if any(link.resets_on and link.resets_on in host for link in (*forward, *backward)):
            return replace(served, failure="resets")
        if any(link.mtu is not None and link.mtu < SMALLEST_HANDSHAKE_MTU and not link.mtu_told for link in backward):
            return replace(served, failure="hangs" if speaks == "tls" or self._is_long(address, port) else "")
        if (refusal := passage.refusal) is not None:
            closes: Failure = "" if refusal.http_status else "closes"
            return replace(served, failure=closes, http_status=refusal.http_status, body=refusal.body)
        there = passage.parties(passage.forward)[-1] if passage.forward else address
        fault = self.conditions.of_service(there, port)
        if fault is None or self.random.random() >= fault.share:
            return served
        hangs = fault.reads_bytes is not None and fault.reads_bytes < SMALLEST_HANDSHAKE_MTU
        failure = {"close": "closes", "reset": "resets"}.get(fault.ends) or (f"tls_{fault.tls}" if fault.tls else "")
        names = {"tls_wrong_name": "tls_name", "": "hangs" if hangs else ""}
        stall = fault.answers_after_ms / 1000 + ((fault.reads_again_after_seconds or 0.0) if hangs else 0.0)
        if hangs and fault.reads_again_after_seconds is not None:
            names[""] = ""
        return replace(
            served,
            failure=names.get(failure, failure),  # type: ignore[arg-type]  # one of `Failure`
            stall=stall,
            http_status=fault.http_status,
        )

    def _is_long(self, address: str, port: int) -> bool:
        longest = (t.response_bytes for t in self.world.traffic if t.port == port and self._is(t.server, address))
        return max(longest, default=0) > SMALLEST_HANDSHAKE_MTU

    def _is(self, server: str, address: str) -> bool:
        machines = {vm.name: self.world.address_of(vm.name) for vm in self.world.machines}
        return address in (server, machines.get(server))

    def _links(self, passage: Passage) -> tuple[tuple[WireFault, ...], tuple[WireFault, ...]]:
        return passage.links(passage.forward, self.conditions), passage.links(passage.backward, self.conditions)

    def _lost(self, links: tuple[tuple[WireFault, ...], ...]) -> bool:
        return any(self.random.random() < link.loss for way in links for link in way)

    # ------------------------------------------------------------------------------------------------------- names

    def resolve(self, name: str) -> list[str]:
        literal = parse_address(name)
        if literal is not None:
            return [str(literal)]
        folded = name.rstrip(".").casefold()
        if folded in ("localhost", self.vm.name.casefold()):
            return ["127.0.0.1"]
        for server in self.servers:
            if self.dns_way(server, 53) == "answers":
                return [entry.address for entry in self.dns_entries(server, folded) or ()]
            self.clock.sleep(5.0)
        return []

    def dns_way(self, server: str, port: int) -> ConnectionOutcome:
        fault = self._dns_fault(server)
        way = self.outcome(server, port, "Udp")
        return "silent" if way == "answers" and fault == "silent" else way

    def dns_entries(self, server: str, name: str) -> list[DnsName] | None:
        match self._dns_fault(server):
            case "servfail":
                return None
            case "nxdomain":
                return []
        network = self.world.network
        asked = self.nic if server == HOST_ADDRESS else network.interface_at(server, self._networks())
        if asked is None:
            return self._public(name)
        # A server of one's own asks Azure's DNS for what it does not know.
        of_azure = replace(asked, dns_servers=(HOST_ADDRESS,))
        if "." not in name or name.endswith(MACHINE_NAMES):
            return self._machines_named(asked, name)
        resolution = resolution_of(network, of_azure, name)
        if resolution.public is not None:
            return self._public(resolution.public, name)
        return [DnsName(name, address, 10) for address in resolution.addresses]

    def _networks(self) -> list[VirtualNetwork]:
        return list(self.world.network.all(VirtualNetwork).values())

    def _dns_fault(self, server: str) -> str:
        found = self.world.network.interface_at(server, self._networks())
        names = {vm.name for vm in self.world.machines if found and interface_id(self.world, vm) == found.id}
        faults = (self.conditions.of_service(each, 53) for each in (*names, server))
        return next((fault.dns for fault in faults if fault is not None), "")

    def _machines_named(self, asked: Interface, name: str) -> list[DnsName]:
        home, _ = self.world.network.subnet_of(asked)
        label = name.partition(".")[0]
        return [
            DnsName(name, self.world.address_of(vm.name), 10)
            for vm in self.world.machines
            if vm.name.casefold() == label
            and self.world.interface_of(vm.name).network.casefold() == home.name.casefold()
        ]

    def _public(self, public: str, asked: str | None = None) -> list[DnsName]:
        """Return the public addresses of a name: of Azure's public addresses, of hosts outside, of Azure's services."""
        name = asked or public
        for body in self.world.documents.of_type("Microsoft.Network/publicIPAddresses"):
            properties = body["properties"]
            fqdn = str(properties.get("dnsSettings", {}).get("fqdn", ""))
            if fqdn.casefold() == public and "ipAddress" in properties:
                return [DnsName(name, properties["ipAddress"])]
        far = self.conditions.outside_host(public)
        if far is not None:
            return [DnsName(name, far.address)]
        ways = ways_of(
            self.world.network, Flow("Tcp", self.address, None, public, 443), self.conditions, source=self.nic.id
        )
        seen = ways[0].forward
        if seen and not public.startswith("privatelink."):
            shown = seen[-1].flow.destination_address
            address = shown if is_address(shown) else public_address(public)
            self._known_as[address] = public
            return [DnsName(name, address)]
        return [DnsName(name, each) for each in self.world.local.resolve(public)]


def _sockets(vm: Machine) -> list[Socket]:
    """Return the sockets that listen."""
    found = []
    for each in vm.listeners:
        six = ":" in each.address
        local = f"[{each.address}]:{each.port}" if six else f"{each.address}:{each.port}"
        state, peer = "LISTEN" if each.protocol == "Tcp" else "UNCONN", "[::]:*" if six else "0.0.0.0:*"
        found.append(Socket(state, local, peer, "tcp" if each.protocol == "Tcp" else "udp", each.process))  # type: ignore[arg-type]
    return found
