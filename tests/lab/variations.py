"""Variations of a scenario: other names, other addresses, the fault elsewhere or gone.

Pure functions `Scenario -> Scenario`. Symptom and expected cause change with the world, so that a test that an
investigation answers all of them cannot be passed by knowing the scenarios.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, ip_network
from random import Random
from typing import Any

from ghost.lab import Fault, Scenario, Symptom
from ghost.lab.truth import Edit
from ghost.lab.world import SecurityGroup, World
from ghost.net import SecurityRule, name_of, parse_ports

WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "iris",
    "juniper",
    "krypton",
    "larch",
    "meadow",
    "nimbus",
    "onyx",
    "pearl",
    "quartz",
    "raven",
    "sierra",
    "tundra",
    "umber",
    "vertex",
    "willow",
    "xenon",
    "yarrow",
    "zephyr",
]
CONVENTIONAL_GROUP = "NetworkWatcherRG"
"""Azure makes it and the watchers in it; their names are the same everywhere."""


def renamed(scenario: Scenario, seed: int) -> Scenario:
    """Another name for every resource, rule and tag's value, other address space, another port at fault."""
    random = Random(seed)
    names = _new_names(scenario.world, random)
    tags = _new_tags(scenario.world, random)
    addresses = _AddressMap(scenario.world, random)
    old_port, new_port = scenario.flows[0].port, _new_port(scenario, random)

    def string(text: str, key: str) -> str:
        if key.endswith("_ports"):
            return _moved_range(text, old_port, new_port)
        if (moved := addresses.moved(text)) is not None:
            return moved
        if key in ("text", "title"):
            for value, new in sorted(tags.items(), key=lambda item: -len(item[0])):
                spoken, new_spoken = value.replace("-", " "), new.replace("-", " ")
                text = re.sub(rf"\b{re.escape(spoken)}\b", new_spoken, text, flags=re.IGNORECASE)
            text = re.sub(rf"\b{old_port}\b", str(new_port), text)
        return _substituted(text, names)

    def walk(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            if key == "tags":
                return {tag: tags[content] for tag, content in value.items()}
            return {inner: walk(content, inner) for inner, content in value.items()}
        if isinstance(value, list):
            return [walk(item, key) for item in value]
        if key == "port" and value == old_port:
            return new_port
        return string(value, key) if isinstance(value, str) else value

    tree = scenario.to_dict()
    moving = {key: tree[key] for key in ("title", "symptoms", "flows", "world", "truth", "verdicts")}
    moving["symptoms"] = [{"text": scenario.symptom}]
    moving["world"]["seed"] = random.randrange(1, 2**31)
    return Scenario.from_dict({**tree, **walk(moving, "")})


def with_deny_at_other_end(scenario: Scenario) -> Scenario:
    """The denying rule stands at the other machine's subnet, and looks at the flow from there."""
    flow, (fault,), world = scenario.flows[0], scenario.truth.faults, scenario.world
    group, outbound = name_of(fault.resource), fault.direction == "Inbound"
    at_machine = flow.source if outbound else flow.destination
    target = world.subnet_of(world.interface_of(at_machine)).security_group
    assert target is not None, f"the subnet of {at_machine} has no group to move the rule to"
    rule = next(r for r in world.security_group(group).rules if r.name == fault.rule)
    taken = {r.priority for r in world.security_group(target).rules}
    near, far = (world.subnet_of(world.interface_of(name)) for name in (flow.source, flow.destination))
    moved = replace(
        rule,
        direction="Outbound" if outbound else "Inbound",
        priority=next(priority for priority in range(101, 4097) if priority not in taken),
        source_prefixes=(near.prefix,),
        destination_prefixes=(far.prefix,),
    )
    without = _with_rules(world, group, lambda rules: tuple(r for r in rules if r != rule))
    resource = f"networkSecurityGroups/{target}"
    mend = Edit(delete=f"{resource}/securityRules/{rule.name}")
    cause = Fault("security_rule", resource, rule.name, moved.direction, mend=(mend,))
    world = _with_rules(without, target, lambda rules: (*rules, moved))
    return replace(scenario, world=world, truth=replace(scenario.truth, faults=(cause,)))


def with_loss_in_other_direction(scenario: Scenario) -> Scenario:
    """What is lost are the server's packets; it now sends most of the data, so that this is felt."""
    flow, (cause,), world = scenario.flows[0], scenario.truth.faults, scenario.world
    faults = tuple(replace(fault, source=fault.destination, destination=fault.source) for fault in world.faults)
    traffic = tuple(
        replace(item, request_bytes=item.response_bytes, response_bytes=item.request_bytes) for item in world.traffic
    )
    lossy = name_of(str(cause.resource))
    sender = flow.destination if lossy == flow.source else flow.source
    mend = Edit(wire={"source": sender, "destination": lossy})
    symptom = f"Reads by {flow.source} from {flow.destination} on port {flow.port} stall and are slow"
    return replace(
        scenario,
        symptoms=(Symptom(symptom),),
        world=replace(world, faults=faults, traffic=traffic),
        truth=replace(scenario.truth, faults=(replace(cause, resource=sender, mend=(mend,)),)),
    )


def without_fault(scenario: Scenario) -> Scenario:
    """The same complaint about a world in which nothing is wrong."""
    (fault,), world = scenario.truth.faults, replace(scenario.world, faults=())
    if fault.rule is not None:
        rest = [r for r in world.security_group(name_of(fault.resource)).rules if r.name != fault.rule]
        world = _with_rules(world, name_of(fault.resource), lambda _: tuple(rest))
    flows = tuple(replace(flow, expect="works") for flow in scenario.flows)
    return replace(scenario, world=world, flows=flows, truth=replace(scenario.truth, faults=()), verdicts=())


# --- steps ---


def _with_rules(
    world: World, group: str, change: Callable[[tuple[SecurityRule, ...]], tuple[SecurityRule, ...]]
) -> World:
    def changed(item: SecurityGroup) -> SecurityGroup:
        return replace(item, rules=change(item.rules)) if item.name == group else item

    return replace(world, security_groups=tuple(map(changed, world.security_groups)))


def _named_things(world: World) -> Iterator[tuple[str, str]]:
    """Kind and name of all that has one. A storage account takes letters and digits only."""
    yield from (("group", group.name) for group in world.groups if group.name != CONVENTIONAL_GROUP)
    for network in world.networks:
        yield "network", network.name
        yield from (("subnet", subnet.name) for subnet in network.subnets)
        yield from (("peering", peering.name) for peering in network.peerings)
    for group in world.security_groups:
        yield "security group", group.name
        yield from (("rule", rule.name) for rule in group.rules)
    for table in world.route_tables:
        yield "route table", table.name
        yield from (("route", route.name) for route in table.routes)
    yield from (("interface", interface.name) for interface in world.interfaces)
    yield from (("machine", machine.name) for machine in world.machines)
    yield from (("storage", account.name) for account in world.storage_accounts)


SHAPES = {
    "group": ("{a}-{b}-rg", "rg-{a}{n}", "{a}.{b}"),
    "network": ("vnet-{a}-{n}", "{a}-net{n}", "{a}_{b}"),
    "subnet": ("{a}-snet-{n}", "snet{n}-{b}", "{a}-{b}-tier"),
    "security group": ("{a}-nsg{n}", "nsg-{a}-{b}", "{a}-filter-{n}"),
    "machine": ("{a}{n}-{b}", "vm{n}{a}", "{a}-{b}-{n}"),
    "storage": ("{a}{b}{n}", "st{a}{n}"),
}


def _new_names(world: World, random: Random) -> dict[str, str]:
    names: dict[str, str] = {}
    for kind, name in _named_things(world):
        while name not in names or list(names.values()).count(names[name]) > 1:
            shape = random.choice(SHAPES.get(kind, ("{a}-{b}-{n}", "{a}{n}")))
            first, second = random.sample(WORDS, 2)
            names[name] = shape.format(a=first, b=second, n=random.randrange(10, 1000))
    return names


def _new_tags(world: World, random: Random) -> dict[str, str]:
    values = sorted({value for machine in world.machines for value in machine.tags.values()})
    return dict(zip(values, random.sample([f"{word}-unit" for word in WORDS], len(values)), strict=True))


def _substituted(text: str, names: dict[str, str]) -> str:
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w-])({pattern})(?![\w-])", lambda match: names[match[1]], text)


def _ranges(world: World) -> set[str]:
    return {text for group in world.security_groups for rule in group.rules for text in rule.destination_ports}


def _new_port(scenario: Scenario, random: Random) -> int:
    """A port that no rule but those about the old one will cover, and that nothing else uses."""
    world, old = scenario.world, scenario.flows[0].port
    spans = [parse_ports(text) for text in _ranges(world)]
    about = [(low, high) for low, high in spans if low <= old <= high and (low, high) != (0, 65535)]
    below, above = max(old - low for low, _ in about), max(high - old for _, high in about)
    used = {listener.port for machine in world.machines for listener in machine.listeners} - {old}
    used |= {edge for span in spans if span not in about for edge in span}
    while True:
        port = random.randrange(1100 + below, 60000 - above)
        clear = not any(port - below <= other <= port + above for other in used)
        if port != old and clear and not any(low <= port <= high for low, high in spans if (low, high) != (0, 65535)):
            return port


def _moved_range(text: str, old: int, new: int) -> str:
    low, high = parse_ports(text)
    if (low, high) == (0, 65535) or not low <= old <= high:
        return text
    return str(new) if low == high else f"{new - (old - low)}-{new + (high - old)}"


class _AddressMap:
    """Each network's /16 goes to another, each of its subnets to another /24 there, each host to another number."""

    def __init__(self, world: World, random: Random) -> None:
        self.random = random
        self.networks: dict[IPv4Network, IPv4Network] = {}
        self.hosts: dict[IPv4Address, IPv4Address] = {}
        elsewhere = [
            *(IPv4Network(route.prefix) for table in world.route_tables for route in table.routes),
            IPv4Network(world.local.address, strict=False),
        ]
        for network in world.networks:
            (prefix,) = map(IPv4Network, network.prefixes)
            target = self._unused_16(elsewhere)
            elsewhere.append(target)
            self.networks[prefix] = target
            thirds = random.sample(range(1, 250), len(network.subnets))
            for subnet, third in zip(network.subnets, thirds, strict=True):
                self.networks[IPv4Network(subnet.prefix)] = IPv4Network((int(target[0]) + third * 256, 24))

    def _unused_16(self, taken: list[IPv4Network]) -> IPv4Network:
        while True:
            second = self.random.randrange(256)
            first, second = self.random.choice([(10, second), (172, 16 + second % 16)])
            candidate = IPv4Network(f"{first}.{second}.0.0/16")
            if not any(candidate.overlaps(other) for other in (*taken, *self.networks)):
                return candidate

    def moved(self, text: str) -> str | None:
        """None for what is no address or prefix of one of the networks."""
        try:
            network = ip_network(text)
        except ValueError:
            return None
        if not isinstance(network, IPv4Network):
            return None
        if network in self.networks:
            return str(self.networks[network])
        subnets = [known for known in self.networks if known.prefixlen == 24 and network.subnet_of(known)]
        if not subnets:
            return None
        assert "/" not in text, f"{text} is a part of a subnet: teach this map to move it"
        return str(self._host(network.network_address, self.networks[subnets[0]]))

    def _host(self, address: IPv4Address, subnet: IPv4Network) -> IPv4Address:
        while address not in self.hosts or list(self.hosts.values()).count(self.hosts[address]) > 1:
            self.hosts[address] = subnet[self.random.randrange(4, 250)]
        return self.hosts[address]
