"""Private endpoints, and private DNS zones with their links and records, as types.

https://learn.microsoft.com/azure/private-link/private-endpoint-overview
https://learn.microsoft.com/azure/dns/dns-private-zones-records
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ghost.net.resources import Resource

_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
APEX: Final = "@"


@dataclass(frozen=True, kw_only=True)
class PrivateEndpoint(Resource):
    kind = "private endpoint"

    interfaces: tuple[str, ...]
    statuses: tuple[str, ...] = ()
    """Of its connections: Approved, Pending, Rejected, Disconnected."""
    services: tuple[str, ...] = ()
    """Ids of what it connects to."""
    groups: tuple[str, ...] = ()
    """Subresources: `blob`, `sqlServer`."""
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names that should lead to it, each with its addresses; none where a group of zones holds them."""

    @property
    def is_approved(self) -> bool:
        return bool(self.statuses) and all(status.casefold() == "approved" for status in self.statuses)


@dataclass(frozen=True, kw_only=True)
class PrivateZones(Resource):
    """The private DNS zones of a subscription; `id` is the subscription's."""

    kind = "list of private DNS zones of subscription"

    zones: tuple[str, ...]
    """Ids; the last segment of each is the zone's name."""


@dataclass(frozen=True, kw_only=True)
class ZoneGroups(Resource):
    """The zones in which Azure keeps the records of a private endpoint; `id` is the endpoint's."""

    kind = "DNS zone groups of private endpoint"

    zones: tuple[str, ...]
    """Ids; in any subscription."""


@dataclass(frozen=True)
class ZoneLink:
    network: str
    """Id of the network."""
    registers: bool = False
    """Whether its machines are registered in the zone."""
    falls_back: bool = False
    """Whether public DNS is asked for what the zone of a private link lacks (NxDomainRedirect)."""
    state: str = "Completed"


@dataclass(frozen=True, kw_only=True)
class ZoneLinks(Resource):
    """Of one private zone; `id` is the zone's."""

    kind = "links of private DNS zone"

    links: tuple[ZoneLink, ...]


@dataclass(frozen=True)
class RecordSet:
    name: str
    """Relative to the zone, `@` for the zone itself, `*` in the first place for every name."""
    addresses: tuple[str, ...] = ()
    alias: str | None = None
    """The name that a CNAME gives. Other types of record have neither."""


@dataclass(frozen=True, kw_only=True)
class ZoneRecords(Resource):
    """Of one private zone; `id` is the zone's."""

    kind = "records of private DNS zone"

    records: tuple[RecordSet, ...]

    def find(self, relative: str) -> tuple[list[RecordSet], str | None]:
        """Return the record sets that answer for a name, and a wildcard of which Azure does not show if it does.

        A wildcard answers for names that no closer record set matches.
        """
        held = {each.name for each in self.records}
        known = {above for name in held for above in _and_above(name)} | {APEX}
        if relative in held:
            return [each for each in self.records if each.name == relative], None
        above = [*list(_and_above(relative))[1:], APEX]
        wildcards = ["*" if parent == APEX else f"*.{parent}" for parent in above]
        matching = [wildcard for wildcard in wildcards if wildcard in held]
        if not matching or relative == APEX:
            return [], None
        closest = wildcards[next(i for i, parent in enumerate(above) if parent in known)]
        if relative in known or matching[0] != closest:
            return [], matching[0]
        return [each for each in self.records if each.name == closest], None


@dataclass(frozen=True, kw_only=True)
class ForwardingRulesets(Resource):
    """The DNS forwarding rulesets of a subscription by name; `id` is the subscription's."""

    kind = "list of DNS forwarding rulesets of subscription"

    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PublicName(Resource):
    """What public DNS answers for a name to who asks from here; `id` is the name."""

    kind = "answer of public DNS for"

    addresses: tuple[str, ...]


def dns_name(text: str) -> str:
    """Return a DNS name as it is compared: in lower case, without the last dot. Raises `ValueError`."""
    name = text.casefold().removesuffix(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{text[:80]!r} is not a DNS name")
    return name


def is_within(name: str, zone: str) -> bool:
    return name == zone or name.endswith(f".{zone}")


def relative_to(name: str, zone: str) -> str:
    """Return the part of a name in a zone before the zone's own."""
    return name[: -len(zone) - 1] or APEX


def without_private_link(name: str) -> str:
    """Return a name without the label that public DNS adds for a private endpoint."""
    return ".".join(label for label in name.split(".") if label != "privatelink")


def _and_above(name: str) -> Iterator[str]:
    """Yield a relative name and the ones that contain it, without the zone itself."""
    while name and name != APEX:
        yield name
        name = name.partition(".")[2]
