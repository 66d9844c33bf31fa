"""Changes that would mend what load balancers, public addresses and translation stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ghost.net.balancing.resources import BalancingRule, LoadBalancer, NatGateway, PublicAddress
from ghost.net.network import Network, Unread
from ghost.net.resources import EffectiveGroups, Interface, RuleSet, Subnet, VirtualNetwork, key, name_of
from ghost.net.security import Flow, SecurityRule


@dataclass(frozen=True)
class AddBalancingRule:
    """To the balancer's only pool, with the probe of its other rules."""

    balancer: str
    front_end: str
    protocol: str
    port: int
    backend_port: int = 0
    """0: the same."""

    def __str__(self) -> str:
        return f"with a rule of {name_of(self.balancer)} for {self.protocol.casefold()} port {self.port}"

    def applied(self, network: Network) -> Network:
        balancer = network.one(LoadBalancer, self.balancer)
        if len(balancer.pools) != 1:
            raise Unread(None, f"{balancer.name} has {len(balancer.pools)} pools: which is meant?")
        pool = balancer.pools[0].id
        probe = next((rule.probe for rule in balancer.rules if pool in rule.pools), None)
        port = self.backend_port or self.port
        made = BalancingRule(
            f"{self.protocol}-{self.port}".casefold(), self.front_end, self.protocol, self.port, port, (pool,), probe
        )
        return network.with_resources(LoadBalancer, [replace(balancer, rules=(*balancer.rules, made))])


@dataclass(frozen=True)
class SetProbePort:
    balancer: str
    probe: str
    port: int

    def __str__(self) -> str:
        return f"with the probe {name_of(self.probe)} of {name_of(self.balancer)} on port {self.port}"

    def applied(self, network: Network) -> Network:
        balancer = network.one(LoadBalancer, self.balancer)
        probes = [
            replace(each, port=self.port) if key(each.id) == key(self.probe) else each for each in balancer.probes
        ]
        return network.with_resources(LoadBalancer, [replace(balancer, probes=tuple(probes))])


@dataclass(frozen=True)
class AddNatGateway:
    """A new one with a new public address, which nobody knows before."""

    subnet: str

    def __str__(self) -> str:
        return f"with a NAT gateway at {name_of(self.subnet)}"

    def applied(self, network: Network) -> Network:
        provider = self.subnet.partition("/virtualNetworks/")[0]
        gateway = f"{provider}/natGateways/{name_of(self.subnet)}-nat"
        network = _with_subnet(network, self.subnet, lambda subnet: replace(subnet, nat_gateway=gateway))
        network = network.with_resources(NatGateway, [NatGateway(id=gateway)])
        return AttachPublicAddress(gateway).applied(network)


@dataclass(frozen=True)
class MakePrivate:
    """A subnet, which loses its default outbound access."""

    subnet: str

    def __str__(self) -> str:
        return f"with {name_of(self.subnet)} a private subnet"

    def applied(self, network: Network) -> Network:
        return _with_subnet(network, self.subnet, lambda subnet: replace(subnet, default_outbound=False))


@dataclass(frozen=True)
class AttachPublicAddress:
    """A new one, to a NAT gateway."""

    gateway: str

    def __str__(self) -> str:
        return f"with a public address at {name_of(self.gateway)}"

    def applied(self, network: Network) -> Network:
        gateway = network.one(NatGateway, self.gateway)
        address = PublicAddress(id=f"{gateway.id}-address", nat_gateway=gateway.id)
        network = network.with_resources(PublicAddress, [address])
        attached = replace(gateway, public_addresses=(*gateway.public_addresses, address.id))
        return network.with_resources(NatGateway, [attached])


@dataclass(frozen=True)
class AddGroup:
    """At an interface that has none, with a rule that lets the flow in."""

    interface: str
    flow: Flow

    def __str__(self) -> str:
        return f"with a security group at {name_of(self.interface)} that allows {self.flow}"

    def applied(self, network: Network) -> Network:
        interface = network.one(Interface, self.interface)
        allow = SecurityRule(
            "allow-flow",
            100,
            "Inbound",
            "Allow",
            self.flow.protocol,
            source_prefixes=(self.flow.source_address,),
            destination_ports=("*" if self.flow.destination_port is None else str(self.flow.destination_port),),
        )
        provider = interface.id.rpartition("/networkInterfaces/")[0]
        group = RuleSet(id=f"{provider}/networkSecurityGroups/{interface.name}-group", rules=(allow,))
        network = network.with_resources(RuleSet, [group]).without(EffectiveGroups)
        return network.with_resources(Interface, [replace(interface, security_group=group.id)])


def _with_subnet(network: Network, subnet: str, change: Callable[[Subnet], Subnet]) -> Network:
    home = network.one(VirtualNetwork, subnet.partition("/subnets/")[0])
    subnets = tuple(change(each) if key(each.id) == key(subnet) else each for each in home.subnets)
    return network.with_resources(VirtualNetwork, [replace(home, subnets=subnets)])
