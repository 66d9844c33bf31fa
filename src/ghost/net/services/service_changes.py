"""Changes to services and to the subnets that reach them, as data; each gives the changed network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ghost.net.network import Network
from ghost.net.resources import EffectiveRoutes, Subnet, VirtualNetwork, key, name_of
from ghost.net.services.service_host_names import service_with_id
from ghost.net.services.service_resources import (
    AddressRange,
    KeyVault,
    RedisAddressRules,
    Service,
    SqlAddressRules,
    SqlServer,
    SqlSubnetRules,
    StorageAccount,
    SubnetRule,
)


@dataclass(frozen=True)
class EnablePublicAccess:
    service: str

    def __str__(self) -> str:
        return f"with public access to {name_of(self.service)}"

    def applied(self, network: Network) -> Network:
        return _with(network, replace(service_with_id(network, self.service), public_access="Enabled"))


@dataclass(frozen=True)
class AddSubnetRule:
    service: str
    subnet: str

    def __str__(self) -> str:
        return f"with a virtual network rule of {name_of(self.service)} for {name_of(self.subnet)}"

    def applied(self, network: Network) -> Network:
        """Raises `ValueError` if the service has no such rules."""
        service, added = service_with_id(network, self.service), SubnetRule(self.subnet)

        def kept(rules: tuple[SubnetRule, ...]) -> tuple[SubnetRule, ...]:
            return (*(rule for rule in rules if key(rule.subnet) != key(self.subnet)), added)

        match service:
            case StorageAccount() | KeyVault():
                return _with(
                    network, replace(service, rules=replace(service.rules, subnets=kept(service.rules.subnets)))
                )
            case SqlServer():
                known = network.one(SqlSubnetRules, service.id)
                return network.with_resources(SqlSubnetRules, [replace(known, rules=kept(known.rules))])
        raise ValueError(f"a {service.kind} has no virtual network rules")


@dataclass(frozen=True)
class AddAddressRule:
    service: str
    addresses: tuple[AddressRange, ...]

    def __str__(self) -> str:
        return f"with {', '.join(map(str, self.addresses))} let in by {name_of(self.service)}"

    def applied(self, network: Network) -> Network:
        service = service_with_id(network, self.service)
        match service:
            case StorageAccount() | KeyVault():
                rules = replace(service.rules, ranges=(*service.rules.ranges, *self.addresses))
                return _with(network, replace(service, rules=rules))
            case SqlServer():
                known = network.one(SqlAddressRules, service.id)
                changed = replace(known, ranges=(*known.ranges, *self.addresses))
                return network.with_resources(SqlAddressRules, [changed])
        cache = network.one(RedisAddressRules, service.id)
        return network.with_resources(RedisAddressRules, [replace(cache, ranges=(*cache.ranges, *self.addresses))])


@dataclass(frozen=True)
class EnableServiceEndpoint:
    subnet: str
    endpoint: str

    def __str__(self) -> str:
        return f"with the service endpoint {self.endpoint} of {name_of(self.subnet)}"

    def applied(self, network: Network) -> Network:
        """Storage has two endpoints, of which a subnet has one. Routes that Azure computed are derived anew."""
        home = network.one(VirtualNetwork, self.subnet.partition("/subnets/")[0])
        family = self.endpoint.removesuffix(".Global")

        def changed(subnet: Subnet) -> Subnet:
            others = (name for name in subnet.service_endpoints if name.removesuffix(".Global") != family)
            return replace(subnet, service_endpoints=(*others, self.endpoint))

        subnets = tuple(changed(each) if key(each.id) == key(self.subnet) else each for each in home.subnets)
        return network.with_resources(VirtualNetwork, [replace(home, subnets=subnets)]).without(EffectiveRoutes)


ServiceChange = EnablePublicAccess | AddSubnetRule | AddAddressRule | EnableServiceEndpoint


def _with(network: Network, service: Service) -> Network:
    return network.with_resources(type(service), [service])
