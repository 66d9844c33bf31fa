"""Azure Firewall as data: the firewall, its policies, their rules, and IP groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ghost.net.resources import Interface, IpConfiguration, Resource

Action = Literal["Allow", "Deny", "Dnat"]
RuleKind = Literal["network", "application", "nat"]


@dataclass(frozen=True)
class FirewallRule:
    """One rule; what a kind of rule does not have is empty."""

    name: str
    protocols: tuple[str, ...]
    """TCP, UDP, ICMP or Any; of an application rule Http:80, Https:443, Mssql:1433."""
    sources: tuple[str, ...] = ()
    """Addresses, prefixes, ranges `10.0.0.1-10.0.0.9`, or `*`."""
    source_groups: tuple[str, ...] = ()
    """Ids of IP groups."""
    destinations: tuple[str, ...] = ()
    """As `sources`, or service tags."""
    destination_groups: tuple[str, ...] = ()
    destination_ports: tuple[str, ...] = ()
    host_names: tuple[str, ...] = ()
    """Destinations by name; of an application rule also tags and categories."""
    translated_address: str = ""
    translated_port: str = ""


@dataclass(frozen=True)
class RuleCollection:
    name: str
    priority: int
    kind: RuleKind
    action: Action
    rules: tuple[FirewallRule, ...]


@dataclass(frozen=True, kw_only=True)
class RuleCollectionGroup(Resource):
    kind = "rule collection group"

    priority: int
    collections: tuple[RuleCollection, ...]


@dataclass(frozen=True, kw_only=True)
class FirewallPolicy(Resource):
    kind = "firewall policy"

    base: str | None = None
    """Id of the policy whose rules come first."""
    groups: tuple[str, ...] = ()
    private_ranges: tuple[str, ...] = ()
    """Destinations to which the source is not translated; empty: IANA's private space."""


@dataclass(frozen=True, kw_only=True)
class IpGroup(Resource):
    kind = "IP group"

    addresses: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class AzureFirewall(Resource):
    kind = "Azure Firewall"

    address: str
    """Its private address: the next hop of routes."""
    subnet: str
    public_addresses: tuple[str, ...] = ()
    """Ids."""
    policy: str | None = None
    collections: tuple[RuleCollection, ...] = ()
    """Classic rules, of a firewall without a policy; they would come first."""

    @property
    def interface(self) -> Interface:
        """Where packets come in and leave: no network interface that could be read."""
        configuration = IpConfiguration(self.address)
        return Interface(
            id=self.id,
            reference=self.reference,
            subnet=self.subnet,
            configurations=(configuration,),
            ip_forwarding=True,
        )
