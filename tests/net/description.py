"""A small network described by lines of text, as the vectors give it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from ghost.net.guest import Ruleset
from ghost.net.network import Network
from ghost.net.resources import EffectiveRoutes, Guest, IpConfiguration, VirtualNetwork
from ghost.net.routes import Route
from tests.net.described_admin_rules import add_admin_rules
from tests.net.described_balancing import with_balancing
from tests.net.described_firewalls import add_firewalls
from tests.net.described_gateways import add_gateways
from tests.net.described_names import with_names
from tests.net.described_services import add_services
from tests.net.small_network import network, nic, nic_id, peering, rules, subnet, table, vnet_id

Described = Mapping[str, list[tuple[list[str], dict[str, str]]]]
"""Of each kind of line: names and settings of each resource."""
ADDED: Final[tuple[Callable[[Network, Described], Network], ...]] = (
    add_admin_rules,
    add_firewalls,
    add_gateways,
    with_names,
    add_services,
    with_balancing,
)
"""Layers with kinds of lines of their own: each adds its resources."""
NAME_WORDS: Final = {"peering": 2, "link": 2, "record": 2, "admin": 4, "connection": 2, "fwrule": 5, "instance": 2}
"""How many words name a resource, where it is not one."""


def described(lines: Iterable[str]) -> Network:
    """Return a completely read network from lines; a later line of the same resource changes what it gives.

        vnet NAME PREFIXES                  subnet NETWORK/NAME PREFIX [nsg=G] [table=T] [endpoints=SERVICES]
        vm NAME ADDRESS SUBNET [nsg=G] [asg=GROUPS] [forwards=yes: without translating addresses]
        peering OWNER REMOTE [state=Initiated] [access=no] [forwarded=yes] [transit=yes] [gateway=yes]
        nsg NAME       rule GROUP RULE      table NAME [bgp=no]     route TABLE ROUTE
        effective VM PREFIX TYPE SOURCE [state=Invalid] [hop=ADDRESS] [name=ROUTE]

    An empty setting (`nsg=`) takes it away, a line `no KIND NAME` the resource; lists with commas.
    """
    places: dict[tuple[str, ...], tuple[list[str], dict[str, str]]] = {}
    texts: dict[str, list[str]] = {}
    for line in lines:
        kind, *words = line.split()
        if kind in ("rule", "route"):
            texts.setdefault(f"{kind} {words[0]}", []).append(" ".join(words[1:]))
            continue
        if kind == "no":
            del places[tuple(words)]
            continue
        names = [word for word in words if "=" not in word]
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        place = (kind, *(names if kind == "effective" else names[: NAME_WORDS.get(kind, 1)]))
        known_names, known_settings = places.get(place, ([], {}))
        places[place] = (names if len(names) >= len(known_names) else known_names, {**known_settings, **settings})
    of: dict[str, list[tuple[list[str], dict[str, str]]]] = {}
    for (kind, *_), described_as in places.items():
        of.setdefault(kind, []).append(described_as)
    prefixes = {names[0]: tuple(names[1].split(",")) for names, _ in of["vnet"]}
    subnets = [
        replace(
            subnet(names[0], names[1], nsg=settings.get("nsg") or None, table=settings.get("table") or None),
            service_endpoints=tuple(filter(None, settings.get("endpoints", "").split(","))),
        )
        for names, settings in of["subnet"]
    ]
    peerings = {
        owner: tuple(
            peering(
                names[1],
                *prefixes[names[1]],
                state=settings.get("state", "Connected"),
                allow_access=settings.get("access") != "no",
                allow_forwarded=settings.get("forwarded") == "yes",
                allow_gateway_transit=settings.get("transit") == "yes",
                use_remote_gateways=settings.get("gateway") == "yes",
            )
            for names, settings in of.get("peering", ())
            if names[0] == owner
        )
        for owner in prefixes
    }
    networks = [
        VirtualNetwork(
            id=vnet_id(name),
            reference=f"read-{name}",
            prefixes=prefixes[name],
            subnets=tuple(each for each in subnets if each.id.startswith(f"{vnet_id(name)}/")),
            peerings=peerings[name],
        )
        for name in prefixes
    ]
    nics = []
    for names, settings in of["vm"]:
        made = nic(*names, nsg=settings.get("nsg") or None, forwards=settings.get("forwards") == "yes")
        groups = tuple(settings["asg"].split(",")) if settings.get("asg") else ()
        nics.append(replace(made, configurations=(IpConfiguration(made.address, application_groups=groups),)))
    effective: dict[str, tuple[Route, ...]] = {}
    for (vm, prefix, hop, source), settings in of.get("effective", ()):
        route = Route(
            prefix, hop, settings.get("hop"), source, settings.get("state", "Active"), name=settings.get("name")
        )
        effective[vm] = (*effective.get(vm, ()), route)
    made = network(
        *networks,
        *nics,
        *(Guest(id=nic.machine or "", packet_filter=Ruleset()) for nic in nics if nic.ip_forwarding),
        *(rules(names[0], *texts.get(f"rule {names[0]}", ())) for names, _ in of.get("nsg", ())),
        *(
            table(names[0], *texts.get(f"route {names[0]}", ()), bgp=settings.get("bgp") != "no")
            for names, settings in of.get("table", ())
        ),
    )
    routes = [
        EffectiveRoutes(id=nic_id(vm), routes=computed, reference="read-routes") for vm, computed in effective.items()
    ]
    made = made.with_resources(EffectiveRoutes, routes)
    for add in ADDED:
        made = add(made, of)
    return made
