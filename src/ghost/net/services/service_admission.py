"""Whether the public endpoint of a service lets a packet in.

https://learn.microsoft.com/azure/storage/common/storage-network-security-limitations
https://learn.microsoft.com/azure/azure-sql/database/vnet-service-endpoint-rule-overview
https://learn.microsoft.com/azure/azure-cache-for-redis/cache-network-isolation
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ghost.net.hops import Hop, Mend
from ghost.net.names.changes import ApproveEndpoint
from ghost.net.names.records import PrivateEndpoint
from ghost.net.network import Network, Unread
from ghost.net.resources import VirtualNetwork, key, name_of
from ghost.net.services.regions import paired
from ghost.net.services.service_changes import (
    AddAddressRule,
    AddSubnetRule,
    EnablePublicAccess,
    EnableServiceEndpoint,
)
from ghost.net.services.service_resources import (
    AZURE,
    AddressRange,
    FirewallRules,
    KeyVault,
    RedisAddressRules,
    RedisCache,
    Service,
    SqlAddressRules,
    SqlServer,
    SqlSubnetRules,
    StorageAccount,
    folded_region,
)

if TYPE_CHECKING:
    from ghost.net.departure import Origin

IN_FORCE: Final = {None, "succeeded", "ready"}
NOT_IN_FORCE: Final = {"failed", "networksourcedeleted", "deleted"}
"""States of virtual network rules; any other is on its way."""


def admits(network: Network, service: Service, origin: Origin | None, port: int | None) -> list[Hop]:
    """Return what the service's firewall decides about a packet that arrives as `origin`; None: not known as whom."""
    hop = Hop(service.hop_kind, service.id, "pass", "", references=(service.reference,))
    if isinstance(service, RedisCache) and service.subnet is not None:
        reason = f"{service.name} is in the subnet {name_of(service.subnet)} and has no public endpoint"
        return [replace(hop, verdict="unknown", reason=f"{reason}: its name resolves to an address there")]
    match service.public_access.casefold():
        case "enabled":
            pass
        case "disabled":
            return [_only_private(network, hop, service)]
        case _:
            reason = f"public access to {service.name} is {service.public_access}: other settings decide who has access"
            return [replace(hop, verdict="unknown", reason=reason)]
    if isinstance(service, RedisCache) and port in service.closed_ports:
        reason = f"{service.name} accepts only TLS: port {port} is off"
        return [replace(hop, verdict="reject", reason=reason, rule="enableNonSslPort", fault="not_listening")]
    try:
        rules, references = _rules_of(network, service)
    except Unread as unread:
        return [replace(hop, verdict="unknown", reason=unread.reason, missing=unread.missing)]
    hop = replace(hop, references=references)
    if rules.default_allows:
        return [replace(hop, reason=f"{service.name} allows everybody", rule="everybody")]
    if origin is None:
        reason = f"{service.name} allows only some sources, and the source address that it sees is not known"
        return [replace(hop, verdict="unknown", reason=reason)]
    if origin.subnet is not None:
        return [_by_service_endpoint(hop, service, rules, origin.subnet)]
    return [_by_public_address(network, hop, service, rules, origin)]


def _rules_of(network: Network, service: Service) -> tuple[FirewallRules, tuple[str, ...]]:
    """Return the rules of the firewall, and the references they rest on. Raises `Unread`."""
    match service:
        case StorageAccount() | KeyVault():
            return service.rules, (service.reference,)
        case SqlServer():
            subnets, addresses = network.one(SqlSubnetRules, service.id), network.one(SqlAddressRules, service.id)
            references = (service.reference, subnets.reference, addresses.reference)
            return FirewallRules(False, subnets.rules, addresses.ranges), references
        case RedisCache():
            known = network.one(RedisAddressRules, service.id)
            return FirewallRules(not known.ranges, (), known.ranges), (service.reference, known.reference)
    raise Unread(None, f"how {service.name} filters is not known")


def _by_service_endpoint(hop: Hop, service: Service, rules: FirewallRules, subnet: str) -> Hop:
    """Return the decision about a packet with its private address: rules for addresses do not hold for it."""
    rule, name = rules.of_subnet(subnet), name_of(subnet)
    mends = (AddSubnetRule(service.id, subnet),)
    if rule is not None:
        state = rule.state.casefold() if rule.state else None
        if state in IN_FORCE:
            return replace(hop, reason=f"{service.name} has a virtual network rule for {name}", rule=name)
        reason = f"the virtual network rule of {service.name} for {name} is {rule.state}"
        if state in NOT_IN_FORCE:
            return _drop(hop, reason, name, "service_firewall", mends, by_endpoint=True)
        return replace(hop, verdict="unknown", reason=reason)
    reason = f"{service.name} has no virtual network rule for {name}, from which a service endpoint leads to it"
    if _lets_azure_in(service, rules):
        reason += "; Azure's documentation does not say whether allowing all of Azure covers private addresses"
        return replace(hop, verdict="unknown", reason=reason)
    if rules.ranges:
        reason += ": with a private address, so its rules for public addresses do not apply"
    return _drop(hop, reason, None, "service_firewall", mends, by_endpoint=True)


def _only_private(network: Network, hop: Hop, service: Service) -> Hop:
    """Return the drop of a packet to a service that only private endpoints reach; one that waits is to be approved."""
    leading = [e for e in network.all(PrivateEndpoint).values() if key(service.id) in map(key, e.services)]
    waiting = [endpoint for endpoint in leading if not endpoint.is_approved]
    told = [f"{endpoint.name} to it is {', '.join(endpoint.statuses) or 'of no known state'}" for endpoint in waiting]
    told += [f"{name_of(each)} leads to it" for each in service.private_endpoints]
    reason = f"public access to {service.name} is disabled: {'; '.join(told) or 'no private endpoint leads to it'}"
    approving: tuple[Mend, ...] = tuple(ApproveEndpoint(endpoint.id) for endpoint in waiting)
    mends = (*approving, EnablePublicAccess(service.id))
    return _drop(hop, reason, "publicNetworkAccess", DISABLED, mends)


def _by_public_address(network: Network, hop: Hop, service: Service, rules: FirewallRules, origin: Origin) -> Hop:
    subnet, addresses = origin.left_from, origin.addresses
    azure = _lets_azure_in(service, rules)
    ranges = [each for each in rules.ranges if not (azure and each == AZURE)]
    if subnet is not None and azure:
        return replace(hop, reason=f"{service.name} allows all of Azure", rule="Azure services")
    whose = {address: _range_of(ranges, address) for address in addresses or ()}
    held = [each for each in whose.values() if each is not None]
    everything = next((each for each in ranges if each.is_everything), None)
    if everything or (whose and len(held) == len(whose)):
        near = subnet is not None and isinstance(service, StorageAccount) and _in_region(network, service, subnet)
        if near:
            return _refused(network, hop, service, rules, origin)
        if near is None:
            reason = f"rules of {service.name} for addresses have no effect on packets from its own region"
            return replace(hop, verdict="unknown", reason=f"{reason}, and whether this is one is not known")
        found = everything or held[0]
        return replace(hop, reason=f"{service.name} allows {found}", rule=str(found))
    if held or (addresses is None and ranges):
        reason = f"{service.name} allows some public addresses: the one with which the packet arrives is not known"
        return replace(hop, verdict="unknown", reason=reason)
    if subnet is None and (azure or (addresses is None and rules.subnets)):
        reason = f"{service.name} has further rules than addresses: whether they allow this packet is not known"
        return replace(hop, verdict="unknown", reason=reason)
    return _refused(network, hop, service, rules, origin)


def _refused(network: Network, hop: Hop, service: Service, rules: FirewallRules, origin: Origin) -> Hop:
    """Return the drop of a packet with a public address that no rule holds, with what mends it."""
    subnet, addresses = origin.left_from, origin.addresses or ()
    for_addresses: tuple[Mend, ...] = ()
    ineffective = isinstance(service, StorageAccount) and subnet and _in_region(network, service, subnet) is not False
    if addresses and not ineffective:
        for_addresses = (AddAddressRule(service.id, tuple(map(AddressRange.of, addresses))),)
    named = f" ({', '.join(addresses)})" if addresses else ""
    if subnet is not None and rules.of_subnet(subnet) is not None:
        endpoint = _endpoint_for(network, service, subnet)
        reason = f"{service.name} has a virtual network rule for {name_of(subnet)}, but no service endpoint leads there"
        mends = ((EnableServiceEndpoint(subnet, endpoint),) if endpoint else ()) + for_addresses
        return _drop(hop, f"{reason}: the packet arrives from a public address{named}", name_of(subnet), MISSING, mends)
    of_database = ", unless a rule of a single database does, which az does not show" * isinstance(service, SqlServer)
    reason = f"no rule of {service.name} allows the packet, which arrives from a public address{named}{of_database}"
    if ineffective and rules.ranges:
        reason += ": rules for addresses have no effect in its own region"
    mends = for_addresses
    if subnet is not None and service.service_endpoints:
        mends = (*mends, AddSubnetRule(service.id, subnet))
    return _drop(hop, reason, None, "service_firewall", mends)


MISSING: Final = "service_endpoint_missing"
DISABLED: Final = "service_public_access_disabled"
REFUSES_WITH: Final = "; the service accepts the connection and "
"""Where a reason tells how the service of the drop refuses."""


def _drop(
    hop: Hop, reason: str, rule: str | None, fault: str, mends: tuple[Mend, ...], *, by_endpoint: bool = False
) -> Hop:
    disabled = fault == DISABLED
    answers = {
        "storage": "answers 403 AuthorizationFailure",
        "key_vault": f"answers 403 ForbiddenBy{'Connection' if disabled else 'Firewall'}",
        "sql": f"answers error {47073 if disabled else 40914 if by_endpoint else 40615}",
        "redis": "closes it",
    }
    told = f"{reason}{REFUSES_WITH}{answers[hop.kind]}"
    return replace(hop, verdict="drop", reason=told, rule=rule, fault=fault, mends=mends)


def _lets_azure_in(service: Service, rules: FirewallRules) -> bool:
    return isinstance(service, SqlServer) and AZURE in rules.ranges


def _range_of(ranges: list[AddressRange], address: str) -> AddressRange | None:
    return next((each for each in ranges if each.holds(address)), None)


def _region_of(network: Network, subnet: str) -> str:
    home = network.get(VirtualNetwork, subnet.partition("/subnets/")[0])
    return folded_region(home.location) if home else ""


def _in_region(network: Network, account: StorageAccount, subnet: str) -> bool | None:
    """Return whether a subnet is in the account's own region; None if that is not known."""
    here, there = _region_of(network, subnet), folded_region(account.location)
    return here == there if here and there else None


def _endpoint_for(network: Network, service: Service, subnet: str) -> str | None:
    """Return the service endpoint that would lead from a subnet to the service; None if there is none."""
    here, there = _region_of(network, subnet), folded_region(service.location)
    if isinstance(service, SqlServer):
        return service.service_endpoints[0] if here == there else None
    if isinstance(service, StorageAccount) and not paired(here, there):
        return service.service_endpoints[1]
    return next(iter(service.service_endpoints), None)
