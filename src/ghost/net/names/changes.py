"""Changes to names and private endpoints: each gives the changed network."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ghost.net.names.records import PrivateEndpoint, RecordSet, ZoneLink, ZoneLinks, ZoneRecords
from ghost.net.network import Network
from ghost.net.resources import name_of


@dataclass(frozen=True)
class LinkZone:
    zone: str
    network: str

    def __str__(self) -> str:
        return f"with zone {name_of(self.zone)} linked to {name_of(self.network)}"

    def applied(self, network: Network) -> Network:
        known = network.one(ZoneLinks, self.zone)
        return network.with_resources(ZoneLinks, [replace(known, links=(*known.links, ZoneLink(self.network)))])


@dataclass(frozen=True)
class SetRecord:
    """In place of the record sets with this name."""

    zone: str
    name: str
    """Relative to the zone."""
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        return f"with record {self.name} of {name_of(self.zone)} = {', '.join(self.addresses)}"

    def applied(self, network: Network) -> Network:
        known = network.one(ZoneRecords, self.zone)
        kept = tuple(each for each in known.records if each.name != self.name)
        records = (*kept, RecordSet(self.name, self.addresses))
        return network.with_resources(ZoneRecords, [replace(known, records=records)])


@dataclass(frozen=True)
class ApproveEndpoint:
    endpoint: str

    def __str__(self) -> str:
        return f"with private endpoint {name_of(self.endpoint)} approved"

    def applied(self, network: Network) -> Network:
        endpoint = network.one(PrivateEndpoint, self.endpoint)
        approved = tuple("Approved" for _ in endpoint.statuses)
        return network.with_resources(PrivateEndpoint, [replace(endpoint, statuses=approved)])
