"""Network services beside machines: load balancers, public addresses, private endpoints, private DNS zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PublicAddress:
    name: str
    resource_group: str
    address: str
    interface: str | None = None
    """The network interface it belongs to."""
    fqdn: str | None = None


@dataclass(frozen=True)
class BalancingRule:
    name: str
    port: int
    target_port: int
    protocol: Literal["Tcp", "Udp"] = "Tcp"


@dataclass(frozen=True)
class Probe:
    port: int
    protocol: Literal["Tcp", "Http", "Https"] = "Tcp"
    path: str | None = None


@dataclass(frozen=True)
class LoadBalancer:
    """An internal load balancer with one frontend, one pool, and at most one probe for all its rules."""

    name: str
    resource_group: str
    network: str
    subnet: str
    address: str
    members: tuple[str, ...] = ()
    """Network interfaces behind it."""
    rules: tuple[BalancingRule, ...] = ()
    probe: Probe | None = None


@dataclass(frozen=True)
class PrivateEndpoint:
    """A private endpoint of a storage account's blobs; its interface is one of the world's."""

    name: str
    resource_group: str
    interface: str
    storage_account: str


@dataclass(frozen=True)
class AddressRecord:
    name: str
    """Within the zone."""
    addresses: tuple[str, ...]
    ttl: int = 300


@dataclass(frozen=True)
class PrivateZone:
    name: str
    resource_group: str
    records: tuple[AddressRecord, ...] = ()
    networks: tuple[str, ...] = ()
    """Virtual networks linked with it."""
