"""Which entries of Azure's activity log change what a packet meets on its way.

https://learn.microsoft.com/azure/azure-monitor/platform/activity-log
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any, Final

from ghost.net.balancing import LoadBalancer
from ghost.net.hops import Walk
from ghost.net.network import Network
from ghost.net.resources import Interface, VirtualNetwork, key

CHANGING_ACTIONS: Final = frozenset(
    ["start", "deallocate", "poweroff", "restart", "redeploy", "reapply", "reimage", "runcommand"]
)
"""Other actions join, list or diagnose: they change nothing."""
NOT_OF_TRAFFIC: Final = frozenset(["packetcaptures", "tags", "locks", "roleassignments", "diagnosticsettings"])


def met(network: Network, walked: Walk) -> Iterator[str]:
    """Yield the ids of what a walk meets, with what it lies in; some are names or empty."""
    for hop in (hop for each in (walked, *walked.others) for hop in each.hops):
        yield hop.resource
        interface = network.get(Interface, hop.resource)
        if interface is not None:
            yield from filter(None, (interface.machine, interface.security_group, interface.subnet))
            home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
            subnet = home.subnet_ids.get(key(interface.subnet)) if home is not None else None
            yield interface.subnet.partition("/subnets/")[0]
            if subnet is not None:
                yield from filter(None, (subnet.security_group, subnet.route_table, subnet.nat_gateway))
        balancer = network.get(LoadBalancer, hop.resource)
        if balancer is not None:
            yield from (front_end.public_address or "" for front_end in balancer.front_ends)


def is_change(row: Mapping[str, Any], path: Set[str]) -> bool:
    """Return whether an entry, with its `operation` and `resource`, changes something of `path`, of folded ids."""
    resource, operation = key(str(row.get("resource") or "")), str(row.get("operation") or "").casefold()
    *kinds, verb = operation.split("/")
    if verb == "action":
        changes = bool(kinds) and kinds[-1] in CHANGING_ACTIONS
    else:
        changes = verb in ("write", "delete") and NOT_OF_TRAFFIC.isdisjoint(kinds)
    if not changes or "/providers/" not in resource:
        return False
    if "/subnets/" in resource:  # a network on the way has subnets that are not
        return resource in path
    return any(resource == each or resource.startswith(f"{each}/") or each.startswith(f"{resource}/") for each in path)
