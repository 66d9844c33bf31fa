"""Each change to a network as the `az` commands that make it, in the order in which they are run.

Pure: nothing is run here. Every word is quoted; one that is read as something else gives no command.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from ipaddress import summarize_address_range
from typing import Final

from ghost.net.azure_json import UNSTATED
from ghost.net.balancing.changes import (
    AddBalancingRule,
    AddGroup,
    AddNatGateway,
    AttachPublicAddress,
    MakePrivate,
    SetProbePort,
)
from ghost.net.balancing.resources import LoadBalancer, NatGateway
from ghost.net.changes import (
    AddRoute,
    AddRule,
    AllowAccess,
    AllowForwarded,
    ConnectPeering,
    EnableForwarding,
    RemoveAdminRule,
    RemoveRoute,
    RemoveRule,
    StartMachine,
    SyncPeering,
    UseRemoteGateway,
)
from ghost.net.firewall import AzureFirewall
from ghost.net.firewall.hops import AllowAtFirewall
from ghost.net.hops import Mend
from ghost.net.names.changes import LinkZone, SetRecord
from ghost.net.names.records import ZoneRecords
from ghost.net.network import Network, Unread
from ghost.net.resources import (
    Interface,
    Peering,
    RuleSet,
    VirtualNetwork,
    key,
    name_of,
    segment_after,
    subscription_of,
)
from ghost.net.routes import Route
from ghost.net.security import SecurityRule
from ghost.net.services import (
    AddAddressRule,
    AddressRange,
    AddSubnetRule,
    EnablePublicAccess,
    EnableServiceEndpoint,
    KeyVault,
    RedisCache,
    SqlServer,
    StorageAccount,
)
from ghost.net.services.service_host_names import service_with_id

Words = tuple[str, ...]
PUBLIC_ACCESS: Final = {
    StorageAccount: ("storage account update", "--public-network-access Enabled"),
    KeyVault: ("keyvault update", "--public-network-access Enabled"),
    SqlServer: ("sql server update", "--enable-public-network true"),
    RedisCache: ("redis update", "--set publicNetworkAccess=Enabled"),
}
FLAGS: Final = {
    "--allow-vnet-access": "allow_access",
    "--allow-forwarded-traffic": "allow_forwarded",
    "--allow-gateway-transit": "allow_gateway_transit",
    "--use-remote-gateways": "use_remote_gateways",
}


def commands_for(mend: Mend, network: Network) -> tuple[str, ...]:
    """Return the commands; none where no command makes the change, or what it needs was not read.

    None approves a private endpoint: nothing that is read for a walk tells the connection's name at the service.
    """
    try:
        commands = [command_line(words) for words in command_words(mend, network)]
    except (Unread, ValueError):
        return ()
    return tuple(filter(None, commands)) if all(commands) else ()


def command_line(words: Words) -> str | None:
    """Return the command; None where az or a terminal would read a value as something else: a file's name (a word, or
    what follows its first `=`, that begins with `@`), an option, or text that is not shown."""
    command = shlex.join(("az", *words))
    names_file = any(text.startswith("@") and text != "@" for word in words for text in (word, word.partition("=")[2]))
    is_option = any(option.startswith("-") and value.startswith("-") for option, value in itertools.pairwise(words))
    return None if names_file or is_option or not command.isprintable() else command


def command_words(mend: Mend, network: Network) -> Iterator[Words]:
    """Yield the words behind `az` of each command. Raises `Unread` and `ValueError`."""

    def at(resource_id: str, option: str = "-n") -> Words:
        """Return the options that name a resource: its group, name, and a subscription that is not the login's own."""
        named = ("-g", _segment(resource_id, "resourcegroups"), option, name_of(resource_id))
        home = next((subscription_of(each.id) for each in network.all(Interface).values()), "")
        other = subscription_of(resource_id)
        return named if not home or key(other) == key(home) else (*named, "--subscription", other)

    def subnet(subnet_id: str, *change: str) -> Words:
        owner = subnet_id.partition("/subnets/")[0]
        return ("network", "vnet", "subnet", "update", *at(owner, "--vnet-name"), "-n", name_of(subnet_id), *change)

    def rule(group: str, rule: SecurityRule) -> Words:
        return ("network", "nsg", "rule", "create", *at(group, "--nsg-name"), "-n", rule.name, *rule_options(rule))

    def peering(verb: str, owner: str, side: Peering, *change: str) -> Words:
        return ("network", "vnet", "peering", verb, *at(owner, "--vnet-name"), "-n", side.name, *change)

    def public_address(name: str, gateway: str, location: str) -> Words:
        where = ("-l", location) if location else ()
        return (
            *("network", "public-ip", "create", *at(f"{_provider(gateway)}/publicIPAddresses/{name}"), *where),
            *("--sku", "Standard", "--allocation-method", "Static"),
        )

    match mend:
        case RemoveRule(group, name):
            yield ("network", "nsg", "rule", "delete", *at(group, "--nsg-name"), "-n", name)
        case AddRule(group, added):
            yield rule(group, added)
        case AddGroup(interface):
            group = mend.applied(network).one(Interface, interface).security_group or ""
            yield ("network", "nsg", "create", *at(group))
            yield rule(group, mend.applied(network).one(RuleSet, group).rules[0])
            yield ("network", "nic", "update", *at(interface), "--network-security-group", group)
        case RemoveAdminRule(admin_rule):
            manager = _owner(admin_rule, "securityAdminConfigurations")
            configuration = _owner(admin_rule, "ruleCollections")
            regions = sorted({each.location for each in network.all(VirtualNetwork).values() if each.location})
            yield ("resource", "delete", "--ids", admin_rule)
            yield (
                *("network", "manager", "post-commit", *at(manager, "--network-manager-name")),
                *("--commit-type", "SecurityAdmin", "--configuration-ids", configuration),
                *(("--target-locations", *regions) if regions else ()),
            )
        case AllowAtFirewall(firewall_id, flow):
            port = "*" if flow.destination_port is None else str(flow.destination_port)
            ends = ("--source-addresses", flow.source_address, "--destination-addresses", flow.destination_address)
            protocol = "ICMP" if flow.protocol.casefold() == "icmp" else flow.protocol.upper()
            firewall = network.one(AzureFirewall, firewall_id)
            if firewall.policy is None:
                taken = {each.priority for each in firewall.collections if each.kind == "network"}
                priority = next(each for each in range(100, 65001) if each not in taken)
                yield (
                    *("network", "firewall", "network-rule", "create", *at(firewall_id, "--firewall-name")),
                    *("--collection-name", "allow-flow", "--priority", str(priority), "--action", "Allow"),
                    *("-n", "allow-flow", "--protocols", protocol, *ends, "--destination-ports", port),
                )
                return
            groups = ("network", "firewall", "policy", "rule-collection-group")
            policy = at(firewall.policy, "--policy-name")
            yield (*groups, "create", *policy, "-n", "allow-flow", "--priority", "100")
            yield (
                *(*groups, "collection", "add-filter-collection", *policy, "--rcg-name", "allow-flow"),
                *("-n", "allow-flow", "--collection-priority", "100", "--action", "Allow"),
                *("--rule-name", "allow-flow", "--rule-type", "NetworkRule"),
                *("--ip-protocols", protocol, *ends, "--destination-ports", port),
            )
        case AddRoute(table, route):
            name = route.name or f"to-{route.prefix.replace('/', '-')}"
            where = (*at(table, "--route-table-name"), "-n", name)
            yield ("network", "route-table", "route", "create", *where, *route_options(route))
        case RemoveRoute(table, name):
            yield ("network", "route-table", "route", "delete", *at(table, "--route-table-name"), "-n", name)
        case ConnectPeering(ends):
            sides = [(owner, remote, _side(network, owner, remote)) for owner, remote in (ends, ends[::-1])]
            for owner, _, side in sides:
                if side is not None and side.state.casefold() == "disconnected":
                    yield peering("delete", owner, side)
            connected = mend.applied(network)
            made = [
                (owner, remote, _one_side(connected, owner, remote))
                for owner, remote, side in sides
                if side is None or side.state.casefold() == "disconnected"
            ]
            for owner, remote, side in sorted(made, key=lambda each: each[2].use_remote_gateways):
                flags = (text for option, field in FLAGS.items() for text in (option, _bool(getattr(side, field))))
                yield peering("create", owner, side, "--remote-vnet", remote, *flags)
        case AllowAccess(ends):
            for owner, remote in (ends, ends[::-1]):
                if not (side := _one_side(network, owner, remote)).allow_access:
                    yield peering("update", owner, side, "--allow-vnet-access", "true")
        case SyncPeering(owner, remote):
            yield peering("sync", owner, _one_side(network, owner, remote))
        case AllowForwarded(owner, remote):
            yield peering("update", owner, _one_side(network, owner, remote), "--allow-forwarded-traffic", "true")
        case UseRemoteGateway(owner, remote):
            yield peering("update", remote, _one_side(network, remote, owner), "--allow-gateway-transit", "true")
            yield peering("update", owner, _one_side(network, owner, remote), "--use-remote-gateways", "true")
        case EnableForwarding(interface):
            yield ("network", "nic", "update", *at(interface), "--ip-forwarding", "true")
        case StartMachine(machine):
            scale_set, _, instance = machine.partition("/virtualMachines/")
            if "/virtualmachinescalesets/" in key(machine):
                yield ("vmss", "start", *at(scale_set), "--instance-ids", instance)
            else:
                yield ("vm", "start", *at(machine))
        case LinkZone(zone, linked):
            yield (
                *("network", "private-dns", "link", "vnet", "create", *at(zone, "-z"), "-n", f"{name_of(linked)}-link"),
                *("-v", linked, "-e", "false"),
            )
        case SetRecord(zone, name, addresses):
            record_set = ("network", "private-dns", "record-set")
            there = [each for each in network.one(ZoneRecords, zone).records if each.name == name]
            held = {address for each in there for address in each.addresses}
            if any(each.alias for each in there):
                yield (*record_set, "cname", "delete", *at(zone, "-z"), "-n", name, "--yes")
            for address in addresses:
                if address not in held:
                    yield (*record_set, "a", "add-record", *at(zone, "-z"), "-n", name, "-a", address)
            for address in sorted(held.difference(addresses)):
                yield (*record_set, "a", "remove-record", *at(zone, "-z"), "-n", name, "-a", address)
        case AddBalancingRule(balancer_id, front_end):
            balancer = mend.applied(network).one(LoadBalancer, balancer_id)
            made_rule = balancer.rules[-1]
            probe = ("--probe-name", name_of(made_rule.probe)) if made_rule.probe else ()
            yield (
                *("network", "lb", "rule", "create", *at(balancer_id, "--lb-name"), "-n", made_rule.name),
                *("--protocol", made_rule.protocol, "--frontend-port", str(made_rule.port)),
                *("--backend-port", str(made_rule.backend_port), "--frontend-ip", name_of(front_end)),
                *("--backend-pool-name", name_of(made_rule.pools[0]), *probe),
            )
        case SetProbePort(balancer_id, probe_id, port):
            asked = ("-n", name_of(probe_id), "--port", str(port))
            yield ("network", "lb", "probe", "update", *at(balancer_id, "--lb-name"), *asked)
        case AddNatGateway(subnet_id):
            home = network.one(VirtualNetwork, subnet_id.partition("/subnets/")[0])
            name, where = f"{name_of(subnet_id)}-nat", ("-l", home.location) if home.location else ()
            gateway = f"{_provider(home.id)}/natGateways/{name}"
            yield public_address(f"{name}-address", gateway, home.location)
            address = f"{name}-address"
            yield ("network", "nat", "gateway", "create", *at(gateway), *where, "--public-ip-addresses", address)
            yield subnet(subnet_id, "--nat-gateway", gateway)
        case AttachPublicAddress(gateway):
            address = f"{name_of(gateway)}-address"
            known = network.one(NatGateway, gateway).public_addresses
            yield public_address(address, gateway, "")
            yield ("network", "nat", "gateway", "update", *at(gateway), "--public-ip-addresses", *known, address)
        case MakePrivate(subnet_id):
            yield subnet(subnet_id, "--default-outbound-access", "false")
        case EnableServiceEndpoint(subnet_id):
            changed = mend.applied(network).one(VirtualNetwork, subnet_id.partition("/subnets/")[0])
            yield subnet(subnet_id, "--service-endpoints", *changed.subnet_ids[key(subnet_id)].service_endpoints)
        case EnablePublicAccess(service):
            command, change = PUBLIC_ACCESS[type(service_with_id(network, service))]
            yield (*command.split(), *at(service), *change.split())
        case AddSubnetRule(service, subnet_id):
            match service_with_id(network, service):
                case StorageAccount():
                    yield (*("storage", "account", "network-rule", "add"), *at(service, "--account-name"),
                           "--subnet", subnet_id)  # fmt: skip
                case KeyVault():
                    yield ("keyvault", "network-rule", "add", *at(service), "--subnet", subnet_id)
                case SqlServer():
                    yield (*("sql", "server", "vnet-rule", "create", *at(service, "-s")), "-n", name_of(subnet_id),
                           "--subnet", subnet_id)  # fmt: skip
        case AddAddressRule(service, ranges):
            for each in ranges:
                first, last, called = str(each.first), str(each.last), f"allow_{each.first}".replace(".", "_")
                match service_with_id(network, service):
                    case StorageAccount():
                        yield (*("storage", "account", "network-rule", "add", *at(service, "--account-name")),
                               "--ip-address", *_prefixes(each))  # fmt: skip
                    case KeyVault():
                        yield ("keyvault", "network-rule", "add", *at(service), "--ip-address", *_prefixes(each))
                    case SqlServer():
                        yield (*("sql", "server", "firewall-rule", "create", *at(service, "-s"), "-n", called),
                               "--start-ip-address", first, "--end-ip-address", last)  # fmt: skip
                    case RedisCache():
                        yield (*("redis", "firewall-rules", "create", *at(service)),
                               "--rule-name", called, "--start-ip", first, "--end-ip", last)  # fmt: skip


def rule_options(rule: SecurityRule) -> Words:
    """Return what `nsg rule create` states of a rule beside its name. Raises `ValueError` if Azure did not tell it."""
    place = ("--priority", str(rule.priority), "--direction", rule.direction, "--access", rule.access)
    ends = (*_end("source", rule.source_prefixes), "--source-port-ranges", *rule.source_ports)
    ends += (*_end("destination", rule.destination_prefixes), "--destination-port-ranges", *rule.destination_ports)
    told = ("--description", rule.description) if rule.description else ()
    return (*place, "--protocol", rule.protocol.capitalize(), *ends, *told)


def _end(end: str, prefixes: Sequence[str]) -> Words:
    if UNSTATED in prefixes:
        raise ValueError(f"the {end} of a rule was not read")
    groups = any(prefix.startswith("/subscriptions/") for prefix in prefixes)
    return (f"--{end}-asgs" if groups else f"--{end}-address-prefixes", *prefixes)


def route_options(route: Route) -> Words:
    hop = ("--next-hop-ip-address", route.next_hop_ip) if route.next_hop_ip else ()
    return ("--address-prefix", route.prefix, "--next-hop-type", route.next_hop_type, *hop)


def _side(network: Network, owner: str, remote: str) -> Peering | None:
    home = network.one(VirtualNetwork, owner)
    return next((peering for peering in home.peerings if key(peering.remote) == key(remote)), None)


def _one_side(network: Network, owner: str, remote: str) -> Peering:
    side = _side(network, owner, remote)
    if side is None:
        raise ValueError(f"{name_of(owner)} has no peering with {name_of(remote)}")
    return side


def _bool(value: bool) -> str:
    return str(value).casefold()


def _prefixes(addresses: AddressRange) -> Iterator[str]:
    """Yield a range as storage accounts take it: single addresses in place of prefixes of one or two."""
    for prefix in summarize_address_range(addresses.first, addresses.last):
        yield from map(str, prefix if prefix.prefixlen > 30 else (prefix,))


def _segment(resource_id: str, name: str) -> str:
    found = segment_after(resource_id, name)
    if not found:
        raise ValueError(f"{resource_id!r} is not an Azure resource id")
    return found


def _provider(resource_id: str) -> str:
    """Return the id's part before the type, of Microsoft.Network in the same group."""
    subscription, group = _segment(resource_id, "subscriptions"), _segment(resource_id, "resourcegroups")
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network"


def _owner(resource_id: str, part: str) -> str:
    """Return the id up to a part: `ruleCollections` of a rule gives its configuration."""
    lowered = resource_id.casefold().find(f"/{part.casefold()}/")
    if lowered < 0:
        raise ValueError(f"{resource_id!r} has no {part}")
    return resource_id[:lowered]
