"""Lines of a described network for Azure Firewall.

firewall NAME ADDRESS NETWORK [public=PUBLICS]      in the network's AzureFirewallSubnet
fwrule FIREWALL [base/]GROUP-PRIORITY/COLLECTION-PRIORITY KIND ACTION NAME PROTOCOLS SOURCES TO [PORTS] [to=A:PORT]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ghost.net.firewall import AzureFirewall, FirewallPolicy, FirewallRule, RuleCollection, RuleCollectionGroup
from ghost.net.network import Network
from ghost.net.resources import VirtualNetwork
from tests.net.small_network import PROVIDER, subnet_id, vnet_id


def add_firewalls(network: Network, of: Mapping[str, list[tuple[list[str], dict[str, str]]]]) -> Network:
    firewalls, policies = [], []
    groups: dict[tuple[str, str], list[RuleCollection]] = {}
    for (name, place, kind, action, rule, protocols, sources, to, *ports), settings in of.get("fwrule", ()):
        group, _, priority = place.rpartition("/")
        made = FirewallRule(
            rule,
            tuple(protocols.split(",")),
            sources=tuple(sources.split(",")),
            destinations=tuple(to.split(",")) if kind != "application" else (),
            destination_ports=tuple(ports[0].split(",")) if ports else (),
            translated_address=settings.get("to", "").partition(":")[0],
            translated_port=settings.get("to", "").partition(":")[2],
            host_names=tuple(to.split(",")) if kind == "application" else (),
        )
        collection = RuleCollection(f"c{priority}", int(priority), kind, action, (made,))  # type: ignore[arg-type]
        groups.setdefault((name, group), []).append(collection)
    for (name, address, home), settings in of.get("firewall", ()):
        own, base = f"{PROVIDER}/firewallPolicies/{name}", f"{PROVIDER}/firewallPolicies/{name}-base"
        fw = f"{PROVIDER}/azureFirewalls/{name}"
        subnet = subnet_id(f"{home}/AzureFirewallSubnet")
        firewalls.append(
            AzureFirewall(
                id=fw,
                address=address,
                subnet=subnet,
                policy=own,
                reference="read-fw",
                public_addresses=tuple(
                    f"{PROVIDER}/publicIPAddresses/{p}" for p in settings.get("public", "").split(",") if p
                ),
            )
        )
        ids: dict[bool, list[str]] = {True: [], False: []}
        for (_, group), collections in ((key, known) for key, known in groups.items() if key[0] == name):
            is_base = group.startswith("base/")
            group_id = f"{base if is_base else own}/ruleCollectionGroups/{group.removeprefix('base/')}"
            ids[is_base].append(group_id)
            priority = int(group.removeprefix("base/"))
            made_group = RuleCollectionGroup(id=group_id, priority=priority, collections=tuple(collections))
            network = network.with_resources(RuleCollectionGroup, [made_group])
        policies += [FirewallPolicy(id=base, groups=tuple(ids[True]))]
        policies += [FirewallPolicy(id=own, base=base, groups=tuple(ids[False]))]
        hub = network.one(VirtualNetwork, vnet_id(home))
        occupied = [
            replace(s, occupants=(f"{fw}/azureFirewallIpConfigurations/one",)) if s.id == subnet else s
            for s in hub.subnets
        ]
        network = network.with_resources(VirtualNetwork, [replace(hub, subnets=tuple(occupied))])
    network = network.with_resources(AzureFirewall, firewalls)
    return network.with_resources(FirewallPolicy, policies)
