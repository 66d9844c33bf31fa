"""How packets of a subnet get to a service: by a service endpoint or not, and which service tags hold its addresses.

https://learn.microsoft.com/azure/virtual-network/virtual-network-service-endpoints-overview
https://learn.microsoft.com/azure/virtual-network/service-tags-overview
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

from ghost.net.address_matching import ServiceTags, parse_network
from ghost.net.address_sets import public_spans
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import Interface, Subnet, VirtualNetwork, name_of
from ghost.net.routes import Route
from ghost.net.security import SecurityRule
from ghost.net.services.regions import REGIONS, paired
from ghost.net.services.service_resources import PublicService, SqlServer, StorageAccount, folded_region

CLOUD_TAG: Final = "azurecloud"
OTHER_TAGS: Final = (
    "apimanagement appservice azureactivedirectory azurecontainerregistry azurecosmosdb azurekeyvault azuremonitor "
    "azureplatformdns azureplatformimds azureplatformlkm eventhub gatewaymanager servicebus sql storage"
)
"""Tags of services with addresses of their own; any other tag may hold the same ones."""
ENDPOINT_HOP: Final = "virtualnetworkserviceendpoint"


def endpoint_leads_to(toward: PublicService, subnet: Subnet, location: str) -> bool | None:
    """Return whether a service endpoint of the subnet, in region `location`, leads to the service; None: not known.

    That for storage leads to the region and its pair, that for SQL to the region, others anywhere.
    """
    own = {name.casefold() for name in toward.service.service_endpoints}
    here, there = folded_region(location), toward.location
    answer: bool | None = False
    for name in map(str.casefold, subnet.service_endpoints):
        leads: bool | None = False
        if name in own:
            match toward.service:
                case StorageAccount() if name == "microsoft.storage":
                    leads = paired(here, there)
                case SqlServer():
                    leads = here == there if here and there else None
                case _:
                    leads = True
        if leads:
            return True
        answer = None if leads is None else answer
    return answer


def direct_route(toward: PublicService, here: Interface, home: VirtualNetwork, subnet: Subnet) -> Hop | None:
    """Return the route of a service endpoint that leads to the service: it wins over all others; None if none does.

    Raises `Unread`.
    """
    leads = endpoint_leads_to(toward, subnet, home.location)
    if leads is None:
        service = toward.service
        reason = f"whether the service endpoints of {subnet.name} lead to the region of {service.name} is not known"
        raise Unread(None, reason)
    route = f"{toward.service.tag} -> VirtualNetworkServiceEndpoint, Default route"
    reason = f"{toward.host or toward.service.name} follows {route}"
    return Hop("route", here.id, "pass", reason, route, references=(home.reference,)) if leads else None


def endpoint_hop(network: Network, here: Interface) -> Hop:
    """Return what the service endpoint of a subnet does with a packet to the service."""
    _, subnet = network.subnet_of(here)
    toward = network.toward
    name = toward.service.name if toward is not None else "its service"
    hop = Hop("service", subnet.id, "pass", f"a service endpoint of {subnet.name} leads to {name}")
    if toward is not None and isinstance(toward.service, StorageAccount) and subnet.endpoint_policies:
        policies = ", ".join(map(name_of, subnet.endpoint_policies))
        reason = f"the service endpoint of {subnet.name} leads to the accounts that {policies} names: it is not read"
        return replace(hop, verdict="unknown", reason=reason)
    return hop


def in_tag(toward: PublicService, tag: str) -> bool | None:
    """Return whether a service tag holds the service's public address; None if that is not known."""
    name, _, region = tag.casefold().partition(".")
    if name not in (CLOUD_TAG, toward.service.tag.casefold()):
        return False if name in OTHER_TAGS.split() else None
    if not region:
        return True
    if toward.location and region == toward.location:
        return True
    return False if region in REGIONS and toward.location in REGIONS else None


def with_tags(tags: ServiceTags, toward: PublicService, rules: Iterable[SecurityRule]) -> ServiceTags:
    """Return the tags with those of the rules that are known to hold the service's address, or not to."""
    named = {prefix for rule in rules for prefix in rule.destination_prefixes if parse_network(prefix) is None}
    known = {tag: in_tag(toward, tag) for tag in named}
    held = {tag: public_space() if holds else () for tag, holds in known.items() if holds is not None}
    return replace(tags, others={**tags.others, **held})


def without_tags(toward: PublicService | None, prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return destinations without the tags that do not hold the service's address; `*` for one that does."""
    if toward is None:
        return prefixes
    held = {prefix: None if is_prefix(prefix) else in_tag(toward, prefix) for prefix in prefixes}
    return tuple("*" if holds else prefix for prefix, holds in held.items() if holds is not False)


def is_prefix(text: str) -> bool:
    """Return whether a destination is `*`, an address, a prefix or a range, and no tag."""
    return text == "*" or text[:1].isdigit() or ":" in text


def without_other_services(
    routes: Iterable[Route], tags: Iterable[str], toward: PublicService
) -> tuple[tuple[Route, ...], tuple[str, ...]]:
    """Return the routes that may lead to the service, and the tags of which that is not known.

    Routes of service endpoints lead to other services: one that leads to this wins over all others.
    """
    if toward.host is not None:
        routes = [route for route in routes if route.next_hop_type.casefold() != ENDPOINT_HOP]
    known = {tag: in_tag(toward, tag) for tag in tags}
    of_tag = [route for route in routes if toward.host is not None and known.get(route.prefix)]
    spread = [replace(route, prefix=prefix, tag=route.prefix) for route in of_tag for prefix in public_space()]
    kept = [route for route in routes if route not in of_tag]
    doubtful = [tag for tag, holds in known.items() if holds is None or (holds and toward.host is None)]
    return (*kept, *spread), tuple(doubtful)


@cache
def public_space() -> tuple[str, ...]:
    return tuple(prefix for span in public_spans(()) for prefix in span.prefixes())
