"""Services as types: their host names, and the rules of their firewalls."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import ClassVar, Final

from ghost.net.resources import Resource, key


@dataclass(frozen=True)
class AddressRange:
    """Addresses that a firewall lets in, the first and the last included."""

    first: IPv4Address
    last: IPv4Address

    @classmethod
    def of(cls, text: str) -> AddressRange:
        """Return the range in `192.0.2.1`, `192.0.2.0/24` or `192.0.2.1-192.0.2.9`. Raises `ValueError`."""
        first, dash, last = text.partition("-")
        if dash:
            return cls(IPv4Address(first), IPv4Address(last))
        prefix = IPv4Network(text, strict=False)
        return cls(prefix[0], prefix[-1])

    @property
    def is_everything(self) -> bool:
        return int(self.first) == 0 and int(self.last) == 2**32 - 1

    def holds(self, address: str) -> bool:
        return ":" not in address and self.first <= IPv4Address(address) <= self.last

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


AZURE: Final = AddressRange(IPv4Address(0), IPv4Address(0))
"""Of an SQL server: "Allow Azure services and resources to access this server"."""


@dataclass(frozen=True)
class SubnetRule:
    """Lets a subnet in, whose packets come by a service endpoint."""

    subnet: str
    """Id of the subnet."""
    state: str | None = None
    """`Succeeded` or `Ready` where it is in force, `Failed`, ...; None where the service tells none."""


@dataclass(frozen=True)
class FirewallRules:
    default_allows: bool
    subnets: tuple[SubnetRule, ...] = ()
    ranges: tuple[AddressRange, ...] = ()

    def of_subnet(self, subnet: str | None) -> SubnetRule | None:
        return next((rule for rule in self.subnets if subnet and key(rule.subnet) == key(subnet)), None)


@dataclass(frozen=True, kw_only=True)
class Service(Resource):
    hop_kind: ClassVar[str]
    service_endpoints: ClassVar[tuple[str, ...]] = ()
    """Of a subnet, that lead to it."""
    tag: ClassVar[str] = ""
    """The service tag that holds its public addresses."""

    hosts: tuple[str, ...]
    location: str = ""
    public_access: str = "Enabled"
    """Enabled, Disabled or SecuredByPerimeter."""
    private_endpoints: tuple[str, ...] = ()
    """Ids of the approved ones."""
    minimum_tls: str | None = None


@dataclass(frozen=True, kw_only=True)
class StorageAccount(Service):
    kind = "storage account"
    hop_kind = "storage"
    service_endpoints = ("Microsoft.Storage", "Microsoft.Storage.Global")
    tag = "Storage"

    rules: FirewallRules
    secondary_location: str = ""
    """Where host names with `-secondary` lead."""
    bypass: str = ""
    """Azure's own services that come in anyway; no machine of a network is one."""


@dataclass(frozen=True, kw_only=True)
class KeyVault(Service):
    kind = "key vault"
    hop_kind = "key_vault"
    service_endpoints = ("Microsoft.KeyVault",)
    tag = "AzureKeyVault"

    rules: FirewallRules


@dataclass(frozen=True, kw_only=True)
class KeyVaultName(Resource):
    """What the list of key vaults tells: not their rules."""

    kind = "key vault name"


@dataclass(frozen=True, kw_only=True)
class SqlServer(Service):
    kind = "SQL server"
    hop_kind = "sql"
    service_endpoints = ("Microsoft.Sql",)
    tag = "Sql"


@dataclass(frozen=True, kw_only=True)
class SqlSubnetRules(Resource):
    """`id` is the server's."""

    kind = "virtual network rules of the SQL server"

    rules: tuple[SubnetRule, ...]


@dataclass(frozen=True, kw_only=True)
class SqlAddressRules(Resource):
    """Those of the whole server; `id` is the server's. Rules of a single database only Transact-SQL tells."""

    kind = "firewall rules of the SQL server"

    ranges: tuple[AddressRange, ...]


@dataclass(frozen=True, kw_only=True)
class RedisCache(Service):
    kind = "Redis cache"
    hop_kind = "redis"

    subnet: str | None = None
    """Id of the subnet that it was put into: it then has no public endpoint."""
    closed_ports: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RedisAddressRules(Resource):
    """`id` is the cache's. Without one, everybody is let in."""

    kind = "firewall rules of the Redis cache"

    ranges: tuple[AddressRange, ...]


SERVICE_TYPES: Final[tuple[type[Service], ...]] = (StorageAccount, SqlServer, RedisCache, KeyVault)


@dataclass(frozen=True)
class PublicService:
    """The service that every public address stands for in a walk to it."""

    service: Service
    host: str | None
    """Its host name, where its public address is not known."""

    @property
    def location(self) -> str:
        """The region of the address, folded; empty if it is not known: a copy that can be read has its own address."""
        secondary = folded_region(getattr(self.service, "secondary_location", ""))
        if self.host is not None and secondary:
            is_secondary = self.host.partition(".")[0].casefold().endswith("-secondary")
            return secondary if is_secondary else folded_region(self.service.location)
        return "" if secondary else folded_region(self.service.location)


def folded_region(location: str) -> str:
    """Return `westeurope` for `West Europe`."""
    return location.replace(" ", "").casefold()
