"""Lines about load balancers, public addresses and translation in a described network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ghost.net.balancing import LoadBalancer, NatGateway, PublicAddress, PublicPrefix, ScaleSetInterfaces
from ghost.net.balancing.resources import BalancingRule, FrontEnd, InboundNatRule, Member, OutboundRule, Pool, Probe
from ghost.net.firewall import AzureFirewall
from ghost.net.guest import Ruleset, read_iptables, read_listeners
from ghost.net.network import Network
from ghost.net.resources import Guest, Interface, IpConfiguration, Machine, VirtualNetwork
from tests.net.small_network import PROVIDER, machine_id, nic, nic_id, nsg_id, subnet_id, vnet_id

Lines = Iterable[tuple[list[str], dict[str, str]]]
SCALE_SETS = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets"
HOST_DROPPED = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s {} -j DROP\nCOMMIT\n"


def lb_id(name: str) -> str:
    return f"{PROVIDER}/loadBalancers/{name}"


def public_id(name: str) -> str:
    return f"{PROVIDER}/publicIPAddresses/{name}"


def configuration_id(machine: str) -> str:
    """`app` for the interface of a machine, `set_0` for that of a scale set's instance."""
    scale_set, _, number = machine.rpartition("_")
    instance = f"{SCALE_SETS}/{scale_set}/virtualMachines/{number}/networkInterfaces/nic"
    return f"{instance if scale_set else nic_id(machine)}/ipConfigurations/main"


def with_balancing(network: Network, of: Mapping[str, Lines]) -> Network:
    """Add what these lines describe.

    lb NAME [sku=Basic] [tier=Global]
    front LB/NAME [address=ADDRESS subnet=SUBNET] [public=PUBLIC] [prefix=PREFIX] [chained=yes]
    pool LB/NAME [members=MACHINES] [addresses=ADDRESSES vnet=NETWORK] [down=MACHINES] [up=MACHINES]
    probe LB/NAME PROTOCOL PORT
    balance LB/NAME FRONT PROTOCOL PORT BACKEND-PORT POOL [probe=PROBE] [floating=yes] [snat=no]
    inbound LB/NAME FRONT PROTOCOL FIRST-LAST BACKEND-PORT [vm=MACHINE] [pool=POOL]
    outbound LB/NAME PROTOCOL POOL FRONTS [ports=NUMBER]
    public NAME [ADDRESS] [sku=Basic] [vm=MACHINE] [nat=GATEWAY] [of=ID]        range NAME PREFIX
    nat NAME SUBNETS [public=PUBLICS] [ranges=RANGES]       private SUBNET      leaving FIREWALL PUBLICS
    stopped MACHINE     flexible MACHINE SET        instance SET NUMBER ADDRESS SUBNET
    also NAME MACHINE ADDRESS SUBNET: a second interface        second MACHINE ADDRESS: a second address
    listens MACHINE SOCKETS     dropping MACHINE SOURCE: the guest's filter     forwarding MACHINE
    """
    balancers = [_balancer(names[0], settings, of) for names, settings in of.get("lb", ())]
    publics = [_public(names, settings, balancers) for names, settings in of.get("public", ())]
    network = _with_interfaces(network, of, balancers, publics)
    network = _with_subnets(network, of)
    for names, _ in of.get("leaving", ()):
        firewall = network.one(AzureFirewall, f"{PROVIDER}/azureFirewalls/{names[0]}")
        own = tuple(map(public_id, names[1].split(",")))
        network = network.with_resources(AzureFirewall, [replace(firewall, public_addresses=own)])
    gateways = [
        NatGateway(
            id=f"{PROVIDER}/natGateways/{names[0]}",
            reference="read-nat",
            public_addresses=tuple(public_id(each) for each in _words(settings, "public")),
            public_prefixes=tuple(f"{PROVIDER}/publicIPPrefixes/{each}" for each in _words(settings, "ranges")),
        )
        for names, settings in of.get("nat", ())
    ]
    ranges = [
        PublicPrefix(id=f"{PROVIDER}/publicIPPrefixes/{names[0]}", prefix=names[1]) for names, _ in of.get("range", ())
    ]
    if publics or balancers or gateways or of.get("private"):
        network = network.with_resources(PublicAddress, publics, complete=True)
    network = network.with_resources(LoadBalancer, balancers, complete=True)
    network = network.with_resources(NatGateway, gateways, complete=True)
    return _with_guests(network.with_resources(PublicPrefix, ranges, complete=True), of)


def _balancer(name: str, settings: dict[str, str], of: Mapping[str, Lines]) -> LoadBalancer:
    own = {
        kind: [(names[0].partition("/")[2], names[1:], more) for names, more in of.get(kind, ())
               if names[0].startswith(f"{name}/")]
        for kind in ("front", "pool", "probe", "balance", "inbound", "outbound")
    }  # fmt: skip
    front, pool, probe = (f"{lb_id(name)}/{part}/" for part in ("frontendIPConfigurations", "backendAddressPools", "p"))
    return LoadBalancer(
        id=lb_id(name),
        reference=f"read-{name}",
        sku=settings.get("sku", "Standard"),
        tier=settings.get("tier", "Regional"),
        front_ends=tuple(
            FrontEnd(
                front + called,
                more.get("address"),
                subnet_id(more["subnet"]) if "subnet" in more else None,
                public_id(more["public"]) if "public" in more else None,
                f"{PROVIDER}/publicIPPrefixes/{more['prefix']}" if "prefix" in more else None,
                lb_id("chained") if "chained" in more else None,
            )
            for called, _, more in own["front"]
        ),
        pools=tuple(Pool(pool + called, tuple(_members(more))) for called, _, more in own["pool"]),
        probes=tuple(Probe(probe + called, words[0], int(words[1]), "/") for called, words, _ in own["probe"]),
        rules=tuple(
            BalancingRule(
                called, front + words[0], words[1], int(words[2]), int(words[3]), (pool + words[4],),
                probe + more["probe"] if "probe" in more else None, more.get("floating") == "yes",
                outbound_snat=more.get("snat") != "no",
            )
            for called, words, more in own["balance"]
        ),
        nat_rules=tuple(
            InboundNatRule(
                called, front + words[0], words[1], _span(words[2]), int(words[3]),
                configuration_id(more["vm"]) if "vm" in more else None, pool + more["pool"] if "pool" in more else None,
            )
            for called, words, more in own["inbound"]
        ),
        outbound_rules=tuple(
            OutboundRule(called, words[0], tuple(front + each for each in words[2].split(",")), pool + words[1],
                         int(more.get("ports", "0")))
            for called, words, more in own["outbound"]
        ),
    )  # fmt: skip


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _members(more: dict[str, str]) -> Iterable[Member]:
    states = {each: state for state in ("up", "down") for each in _words(more, state)}
    for name in _words(more, "members"):
        yield Member(configuration_id(name), admin_state=states.get(name, "none"))
    for address in _words(more, "addresses"):
        yield Member(address=address, network=vnet_id(more["vnet"]))


def _public(names: list[str], settings: dict[str, str], balancers: Iterable[LoadBalancer]) -> PublicAddress:
    fronts = (front for balancer in balancers for front in balancer.front_ends)
    attached = next((front.id for front in fronts if front.public_address == public_id(names[0])), settings.get("of"))
    return PublicAddress(
        id=public_id(names[0]),
        reference="read-publics",
        address=names[1] if len(names) > 1 else None,
        sku=settings.get("sku", "Standard"),
        attached_to=configuration_id(settings["vm"]) if settings.get("vm") else attached,
        nat_gateway=f"{PROVIDER}/natGateways/{settings['nat']}" if "nat" in settings else None,
    )


def _with_interfaces(
    network: Network, of: Mapping[str, Lines], balancers: list[LoadBalancer], publics: list[PublicAddress]
) -> Network:
    """Name every configuration, and say of which pools, rules and public addresses it is."""
    made = list(network.all(Interface).values())
    for names, _ in of.get("also", ()):
        made.append(replace(nic(names[0], names[2], names[3]), machine=machine_id(names[1])))
    second = {nic_id(names[0]): names[1] for names, _ in of.get("second", ())}
    sets: dict[str, list[Interface]] = {}
    for (name, number, address, place), settings in of.get("instance", ()):
        where = configuration_id(f"{name}_{number}").partition("/networkInterfaces/")[0]
        group = nsg_id(settings["nsg"]) if settings.get("nsg") else None
        sets.setdefault(name, []).append(
            replace(nic(name, address, place), id=f"{where}/networkInterfaces/nic", machine=where, security_group=group)
        )
    everything = [
        _configured(each, second, balancers, publics) for each in (*made, *(i for s in sets.values() for i in s))
    ]
    marks = [ScaleSetInterfaces(id=f"{SCALE_SETS}/{name}", interfaces=tuple(found)) for name, found in sets.items()]
    stopped = {machine_id(names[0]) for names, _ in of.get("stopped", ())}
    flexible = {machine_id(names[0]): f"{SCALE_SETS}/{names[1]}" for names, _ in of.get("flexible", ())}
    machines = [
        Machine(
            id=each.machine,
            reference="read-vms",
            power="deallocated" if each.machine in stopped else "running",
            scale_set=flexible.get(each.machine),
        )
        for each in everything
        if each.machine is not None
    ]
    network = network.with_resources(Interface, everything).with_resources(ScaleSetInterfaces, marks)
    return network.with_resources(Machine, machines)


def _configured(
    interface: Interface, second: dict[str, str], balancers: list[LoadBalancer], publics: list[PublicAddress]
) -> Interface:
    own = f"{interface.id}/ipConfigurations/main"
    main = replace(
        interface.configurations[0],
        name="main",
        public_address=next((public.id for public in publics if public.attached_to == own), None),
        pools=tuple(
            pool.id for b in balancers for pool in b.pools if own in (member.configuration for member in pool.members)
        ),
        nat_rules=tuple(rule.name for b in balancers for rule in b.nat_rules if rule.configuration == own),
    )
    more = [IpConfiguration(second[interface.id], name="second", pools=main.pools)] if interface.id in second else []
    return replace(interface, configurations=(main, *more, *interface.configurations[1:]))


def _with_subnets(network: Network, of: Mapping[str, Lines]) -> Network:
    private = {subnet_id(names[0]) for names, _ in of.get("private", ())}
    gateways = {
        subnet_id(place): f"{PROVIDER}/natGateways/{names[0]}"
        for names, _ in of.get("nat", ())
        for place in names[1].split(",")
    }
    homes = []
    for home in network.all(VirtualNetwork).values():
        subnets = (
            replace(each, default_outbound=each.id not in private, nat_gateway=gateways.get(each.id))
            for each in home.subnets
        )
        homes.append(replace(home, subnets=tuple(subnets)))
    return network.with_resources(VirtualNetwork, homes)


def _with_guests(network: Network, of: Mapping[str, Lines]) -> Network:
    guests: dict[str, Guest] = {}
    for names, _ in of.get("listens", ()):
        sockets = "".join(f"LISTEN 0 128 {socket} 0.0.0.0:*\n" for socket in names[1:])
        listeners = tuple(("tcp", each) for each in read_listeners(sockets))
        guests[names[0]] = Guest(id=machine_id(names[0]), reference="inside", listeners=listeners)
    for names, _ in of.get("dropping", ()):
        known = guests.get(names[0], Guest(id=machine_id(names[0]), reference="inside"))
        guests[names[0]] = replace(known, packet_filter=read_iptables(HOST_DROPPED.format(names[1])))
    for names, _ in of.get("forwarding", ()):
        guests[names[0]] = Guest(id=machine_id(names[0]), reference="inside", packet_filter=Ruleset(), forwards=True)
    return network.with_resources(Guest, guests.values())


def _words(settings: dict[str, str], name: str) -> list[str]:
    return [word for word in settings.get(name, "").split(",") if word]
