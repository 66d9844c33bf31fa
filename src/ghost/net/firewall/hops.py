"""A packet at an Azure Firewall: what its rules decide, and what it does with an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ghost.net.changes import RemoveRoute
from ghost.net.firewall.evaluation import decide
from ghost.net.firewall.resources import AzureFirewall, FirewallRule, RuleCollection
from ghost.net.hops import Hop
from ghost.net.network import Network, Unread
from ghost.net.resources import RouteTable, VirtualNetwork, key, name_of, owner_in, within
from ghost.net.security import Flow


@dataclass(frozen=True)
class AllowAtFirewall:
    """A network rule for exactly this flow, before all others."""

    firewall: str
    flow: Flow

    def __str__(self) -> str:
        return f"with a network rule of {name_of(self.firewall)} that allows {self.flow}"

    def applied(self, network: Network) -> Network:
        firewall = network.one(AzureFirewall, self.firewall)
        ports = ("*",) if self.flow.destination_port is None else (str(self.flow.destination_port),)
        rule = FirewallRule(
            "allow-flow",
            (self.flow.protocol,),
            sources=(self.flow.source_address,),
            destinations=(self.flow.destination_address,),
            destination_ports=ports,
        )
        first = RuleCollection("allow-flow", 0, "network", "Allow", (rule,))
        return network.with_resources(AzureFirewall, [replace(firewall, collections=(first, *firewall.collections))])


def firewall_at(network: Network, address: str, homes: Iterable[VirtualNetwork]) -> AzureFirewall | None:
    """Return the Azure Firewall that has a private address in one of `homes`. Raises `Unread`."""
    for home in homes:
        for subnet in home.subnets:
            if not within(subnet.prefixes, address):
                continue
            for occupant in subnet.occupants:
                firewall_id = owner_in(occupant, "azureFirewalls")
                firewall = network.one(AzureFirewall, firewall_id) if firewall_id else None
                if firewall is not None and firewall.address == address:
                    return firewall
    return None


def through_firewall(
    network: Network, firewall: AzureFirewall, flow: Flow, *, inbound: bool = False
) -> tuple[Hop, Flow]:
    """Return what the firewall does with the first packet of a flow, and the flow as it leaves.

    `inbound`: it came from the internet to a public address of the firewall.
    """
    hop = Hop("firewall", firewall.id, "unknown", "", references=(firewall.reference,))
    if flow.destination_address == firewall.address:
        return replace(hop, reason=f"what {firewall.name} itself serves, such as DNS, is not known"), flow
    try:
        decided = decide(network, firewall, flow, inbound=inbound)
    except Unread as unread:
        return replace(hop, reason=unread.reason, missing=unread.missing), flow
    references = tuple(dict.fromkeys(decided.references))
    hop = replace(hop, verdict=decided.verdict, reason=decided.reason, rule=decided.rule, references=references)
    if decided.verdict == "drop":
        mends = () if inbound else (AllowAtFirewall(firewall.id, flow),)
        hop = replace(hop, fault="azure_firewall", mends=mends)
    return hop, decided.flow


def back_through_firewall(
    network: Network, firewall: AzureFirewall, flow: Flow, seen: Mapping[str, Flow]
) -> tuple[Hop, Flow]:
    """Return what the firewall does with an answer: it knows flows that it let pass, and drops others.

    `seen`: of each firewall on the way forward, the flow as it came there.

    https://learn.microsoft.com/azure/firewall/integrate-lb#asymmetric-routing
    """
    hop = Hop("firewall", firewall.id, "pass", f"{firewall.name} tracks the flow", references=(firewall.reference,))
    known = seen.get(key(firewall.id))
    if known is not None:
        return hop, known.reversed()
    mends = tuple(
        RemoveRoute(table.id, route.name)
        for table in network.all(RouteTable).values()
        for route in table.routes
        if route.next_hop_ip == firewall.address and route.name
    )
    reason = (
        f"{firewall.name} sees the answer but not the packet: it drops packets that belong to no flow that it tracks"
    )
    return replace(hop, verdict="drop", reason=reason, fault="firewall_asymmetric", mends=mends), flow
