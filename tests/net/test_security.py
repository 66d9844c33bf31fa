"""NSG evaluation against an oracle that knows no strings and no `ipaddress`, and against Azure's own documentation."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ghost.net import (
    Flow,
    SecurityGroup,
    SecurityRule,
    ServiceTags,
    default_rules,
    evaluate_gates,
    evaluate_group,
)
from tests.exhaustive import examples

# --- the oracle: prefixes and addresses are integers, rules are tried one after the other ---

WIDTH = {4: 32, 6: 128}
BASES = {4: [0x0A000000, 0x0A010000, 0x0A010180, 0xC0A80100, 0x08080800], 6: [0xFD00 << 112, 0x2603 << 112]}
VNET = {4: (0x0A010000, 16), 6: (0xFD00 << 112, 48)}


@dataclass(frozen=True)
class Span:
    version: int
    base: int
    bits: int

    def text(self) -> str:
        network = self.base >> (WIDTH[self.version] - self.bits) << (WIDTH[self.version] - self.bits)
        address = IPv4Address(network) if self.version == 4 else IPv6Address(network)
        return str(address) if self.bits == WIDTH[self.version] else f"{address}/{self.bits}"

    def covers(self, version: int, address: int) -> bool:
        shift = WIDTH[self.version] - self.bits
        return version == self.version and address >> shift == self.base >> shift


@dataclass(frozen=True)
class PlainRule:
    priority: int
    inbound: bool
    allow: bool
    protocol: str
    sources: tuple[Span | str, ...]
    destinations: tuple[Span | str, ...]
    source_ports: tuple[tuple[int, int], ...]
    ports: tuple[tuple[int, int], ...]

    def as_rule(self) -> SecurityRule:
        return SecurityRule(
            f"r{self.priority}{'i' if self.inbound else 'o'}",
            self.priority,
            "Inbound" if self.inbound else "Outbound",
            "Allow" if self.allow else "Deny",
            self.protocol,
            tuple(s if isinstance(s, str) else s.text() for s in self.sources),
            tuple(_ports_text(p) for p in self.source_ports),
            tuple(d if isinstance(d, str) else d.text() for d in self.destinations),
            tuple(_ports_text(p) for p in self.ports),
        )


def _ports_text(span: tuple[int, int]) -> str:
    low, high = span
    if span == (0, 65535):
        return "*"
    return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True)
class PlainFlow:
    version: int
    protocol: str
    source: int
    source_port: int
    destination: int
    port: int

    def as_flow(self) -> Flow:
        kind = IPv4Address if self.version == 4 else IPv6Address
        return Flow(self.protocol, str(kind(self.source)), self.source_port, str(kind(self.destination)), self.port)


def oracle(rules: list[PlainRule], flow: PlainFlow, inbound: bool) -> bool:
    """Plainest reading: strike out what does not fit; of what is left, the lowest number decides."""
    fitting = []
    for rule in rules:
        if rule.inbound is not inbound:
            continue
        if rule.protocol not in ("*", flow.protocol):
            continue
        if not any(_hit(span, flow.version, flow.source) for span in rule.sources):
            continue
        if not any(_hit(span, flow.version, flow.destination) for span in rule.destinations):
            continue
        if not any(low <= flow.source_port <= high for low, high in rule.source_ports):
            continue
        if not any(low <= flow.port <= high for low, high in rule.ports):
            continue
        fitting.append((rule.priority, rule.allow))
    if fitting:
        return min(fitting)[1]
    in_vnet = _in_vnet(flow.version, flow.source) and _in_vnet(flow.version, flow.destination)
    if in_vnet:
        return True
    return not inbound and _public(flow.version, flow.destination)


def _hit(span: Span | str, version: int, address: int) -> bool:
    if isinstance(span, Span):
        return span.covers(version, address)
    return span == "*" or _in_vnet(version, address)


def _in_vnet(version: int, address: int) -> bool:
    base, bits = VNET[version]
    return Span(version, base, bits).covers(version, address)


def _public(version: int, address: int) -> bool:
    """Of the addresses drawn here."""
    return (address >> 24 == 8) if version == 4 else (address >> 112 == 0x2603)


ports = st.integers(0, 65535) | st.sampled_from([22, 80, 443, 6379])
versions = st.sampled_from([4, 6])


@st.composite
def addresses(draw: st.DrawFn, version: int) -> int:
    return draw(st.sampled_from(BASES[version])) + draw(st.integers(0, 300))


@st.composite
def spans(draw: st.DrawFn, version: int) -> Span | str:
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(["*", "VirtualNetwork"]))
    bits = draw(st.sampled_from([0, 8, 16, 24, 25, 28, 31, 32] if version == 4 else [0, 16, 48, 64, 120, 128]))
    return Span(version, draw(addresses(version)), bits)


@st.composite
def port_spans(draw: st.DrawFn) -> tuple[int, int]:
    low, high = sorted((draw(ports), draw(ports)))
    return draw(st.sampled_from([(0, 65535), (low, high), (low, low)]))


@st.composite
def plain_rules(draw: st.DrawFn) -> list[PlainRule]:
    priorities = draw(st.lists(st.integers(100, 4096), unique=True, max_size=6))
    return [
        PlainRule(
            priority,
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.sampled_from(["*", "Tcp", "Udp"])),
            tuple(draw(st.lists(versions.flatmap(spans), min_size=1, max_size=3))),
            tuple(draw(st.lists(versions.flatmap(spans), min_size=1, max_size=3))),
            tuple(draw(st.lists(port_spans(), min_size=1, max_size=2))),
            tuple(draw(st.lists(port_spans(), min_size=1, max_size=3))),
        )
        for priority in priorities
    ]


@st.composite
def plain_flows(draw: st.DrawFn) -> PlainFlow:
    version = draw(versions)
    return PlainFlow(
        version,
        draw(st.sampled_from(["Tcp", "Udp"])),
        draw(addresses(version)),
        draw(ports),
        draw(addresses(version)),
        draw(ports),
    )


TAGS = ServiceTags(tuple(Span(version, *VNET[version]).text() for version in (4, 6)))


@settings(max_examples=examples(200))
@given(plain_rules(), plain_flows(), st.booleans())
def test_a_group_decides_as_the_plainest_reading_of_its_rules(
    rules: list[PlainRule], flow: PlainFlow, inbound: bool
) -> None:
    group = SecurityGroup("nsg", "subnet", tuple(rule.as_rule() for rule in rules))

    verdict = evaluate_group(group, flow.as_flow(), "Inbound" if inbound else "Outbound", TAGS)

    assert verdict.allowed is oracle(rules, flow, inbound)
    assert verdict.certain
    assert verdict.rule is not None
    assert verdict.allowed is (verdict.rule.access == "Allow")


@settings(max_examples=examples(120))
@given(plain_rules(), plain_rules(), plain_flows(), st.booleans())
def test_a_flow_passes_two_gates_only_where_each_allows_it(
    at_subnet: list[PlainRule], at_nic: list[PlainRule], flow: PlainFlow, inbound: bool
) -> None:
    groups = [
        SecurityGroup("nic-nsg", "nic", tuple(rule.as_rule() for rule in at_nic)),
        SecurityGroup("subnet-nsg", "subnet", tuple(rule.as_rule() for rule in at_subnet)),
    ]
    subnet_allows, nic_allows = oracle(at_subnet, flow, inbound), oracle(at_nic, flow, inbound)

    verdict = evaluate_gates(groups, flow.as_flow(), "Inbound" if inbound else "Outbound", TAGS)

    assert verdict.allowed is (subnet_allows and nic_allows)
    if not subnet_allows and not nic_allows:
        assert verdict.gate == ("subnet" if inbound else "nic"), "the first gate on the way decides"
    elif not verdict.allowed:
        assert verdict.gate == ("nic" if subnet_allows else "subnet")


# --- tables after Azure's documentation ---


def _flow(source: str, destination: str, port: int | None = 443, protocol: str = "Tcp") -> Flow:
    return Flow(protocol, source, 50000 if port is not None else None, destination, port)


VNET_TAGS = ServiceTags(("10.0.0.0/16",))


@pytest.mark.parametrize(
    ("source", "destination", "direction", "rule"),
    [
        ("10.0.0.4", "10.0.1.4", "Inbound", "AllowVnetInBound"),
        # The tag VirtualNetwork holds the address of the host too, so that the first rule lets probes in.
        ("168.63.129.16", "10.0.1.4", "Inbound", "AllowVnetInBound"),
        ("168.63.129.16", "20.0.1.4", "Inbound", "AllowAzureLoadBalancerInBound"),
        ("203.0.113.9", "10.0.1.4", "Inbound", "DenyAllInBound"),
        ("192.168.4.4", "10.0.1.4", "Inbound", "DenyAllInBound"),
        ("10.0.0.4", "10.0.1.4", "Outbound", "AllowVnetOutBound"),
        ("10.0.0.4", "8.8.8.8", "Outbound", "AllowInternetOutBound"),
        ("10.0.0.4", "192.168.4.4", "Outbound", "DenyAllOutBound"),
        ("10.0.0.4", "10.9.0.4", "Outbound", "DenyAllOutBound"),
    ],
)
def test_a_group_without_rules_of_its_own_decides_by_the_default_rules(
    source: str, destination: str, direction: str, rule: str
) -> None:
    verdict = evaluate_group(SecurityGroup("nsg", "subnet"), _flow(source, destination), direction, VNET_TAGS)  # type: ignore[arg-type]

    assert verdict.rule is not None
    assert verdict.rule.name == rule
    assert verdict.allowed is rule.startswith("Allow")


def test_the_default_rules_are_those_of_the_documentation() -> None:
    assert [(r.name, r.priority, r.direction, r.access, r.protocol) for r in default_rules()] == [
        ("AllowVnetInBound", 65000, "Inbound", "Allow", "*"),
        ("AllowAzureLoadBalancerInBound", 65001, "Inbound", "Allow", "*"),
        ("DenyAllInBound", 65500, "Inbound", "Deny", "*"),
        ("AllowVnetOutBound", 65000, "Outbound", "Allow", "*"),
        ("AllowInternetOutBound", 65001, "Outbound", "Allow", "*"),
        ("DenyAllOutBound", 65500, "Outbound", "Deny", "*"),
    ]


# The example of "How network security groups filter network traffic": VM1 has a group at the subnet and one at the
# interface, VM2 at the subnet only, VM3 at the interface only, VM4 none.
PORT_80 = SecurityRule("allow-80", 100, "Inbound", "Allow", "Tcp", destination_ports=("80",))
NSG1, NSG2 = SecurityGroup("NSG1", "subnet", (PORT_80,)), SecurityGroup("NSG2", "nic", (PORT_80,))


@pytest.mark.parametrize(
    ("groups", "port", "allowed", "gate"),
    [
        ([NSG1, NSG2], 80, True, "nic"),
        ([SecurityGroup("NSG1", "subnet"), NSG2], 80, False, "subnet"),
        ([NSG1, SecurityGroup("NSG2", "nic")], 80, False, "nic"),
        ([NSG1], 80, True, "subnet"),
        ([NSG2], 80, True, "nic"),
        ([NSG2], 81, False, "nic"),
        ([], 81, True, None),
    ],
)
def test_inbound_traffic_from_the_internet_as_in_azures_example(
    groups: list[SecurityGroup], port: int, allowed: bool, gate: str | None
) -> None:
    verdict = evaluate_gates(groups, _flow("203.0.113.9", "10.0.0.4", port), "Inbound", VNET_TAGS)

    assert (verdict.allowed, verdict.gate) == (allowed, gate)


def test_a_missing_group_allows_and_says_so() -> None:
    verdict = evaluate_gates([], _flow("10.0.0.4", "10.0.1.4"), "Outbound", VNET_TAGS)

    assert verdict.allowed
    assert verdict.rule is None
    assert "no network security group" in verdict.reason


def test_gates_are_met_subnet_first_inbound_and_interface_first_outbound() -> None:
    groups = [SecurityGroup("a", "nic"), SecurityGroup("b", "subnet")]
    flow = _flow("10.0.0.4", "10.0.1.4")

    assert [g.gate for g in evaluate_gates(groups, flow, "Inbound", VNET_TAGS).gates] == ["subnet", "nic"]
    assert [g.gate for g in evaluate_gates(groups, flow, "Outbound", VNET_TAGS).gates] == ["nic", "subnet"]


AUGMENTED = SecurityRule(
    "augmented",
    200,
    "Inbound",
    "Deny",
    "Tcp",
    ("10.0.4.0/24", "10.0.6.7", "Internet"),
    ("*",),
    ("10.0.0.4", "10.0.0.8/30"),
    ("22", "1433-1440", "6379"),
)


@pytest.mark.parametrize(
    ("source", "destination", "port", "denied"),
    [
        ("10.0.4.200", "10.0.0.4", 22, True),
        ("10.0.6.7", "10.0.0.9", 1440, True),
        ("10.0.6.8", "10.0.0.9", 1440, False),
        ("10.0.4.200", "10.0.0.12", 22, False),
        ("10.0.4.200", "10.0.0.4", 1441, False),
        ("10.0.4.200", "10.0.0.4", 6379, True),
    ],
)
def test_an_augmented_rule_matches_any_of_its_prefixes_with_any_of_its_ports(
    source: str, destination: str, port: int, denied: bool
) -> None:
    verdict = evaluate_group(
        SecurityGroup("nsg", "subnet", (AUGMENTED,)), _flow(source, destination, port), "Inbound", VNET_TAGS
    )

    assert verdict.allowed is not denied


@pytest.mark.parametrize(
    ("protocol", "ports", "flow_protocol", "denied"),
    [
        ("Icmp", ("*",), "Icmp", True),
        ("ICMP", ("*",), "icmp", True),
        ("*", ("*",), "Icmp", True),
        ("*", ("80",), "Icmp", False),
        ("Tcp", ("*",), "Icmp", False),
        ("Esp", ("*",), "Esp", True),
        ("Ah", ("*",), "Esp", False),
        ("All", ("0-65535",), "Icmp", True),
    ],
)
def test_a_protocol_without_ports_is_matched_by_rules_for_all_ports_only(
    protocol: str, ports: tuple[str, ...], flow_protocol: str, denied: bool
) -> None:
    rule = SecurityRule("r", 100, "Inbound", "Deny", protocol, destination_ports=ports)
    flow = _flow("10.0.0.4", "10.0.1.4", None, flow_protocol)

    assert evaluate_group(SecurityGroup("nsg", "subnet", (rule,)), flow, "Inbound", VNET_TAGS).allowed is not denied


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_lower_number_decides_in_whatever_order_rules_are_listed(order: tuple[int, int]) -> None:
    rules = (
        SecurityRule("deny", 200, "Inbound", "Deny", "Tcp", destination_ports=("6000-6500",)),
        SecurityRule("allow", 300, "Inbound", "Allow", "Tcp", destination_ports=("6379",)),
    )
    group = SecurityGroup("nsg", "subnet", tuple(rules[i] for i in order))

    verdict = evaluate_group(group, _flow("10.0.0.4", "10.0.1.4", 6379), "Inbound", VNET_TAGS)

    assert verdict.rule == rules[0]
    assert "deny" in verdict.reason
    assert "nsg" in verdict.reason


def test_a_peered_network_belongs_to_the_tag_virtual_network() -> None:
    flow, group = _flow("10.7.0.4", "10.0.1.4"), SecurityGroup("nsg", "subnet")

    assert not evaluate_group(group, flow, "Inbound", ServiceTags(("10.0.0.0/16",))).allowed
    assert evaluate_group(group, flow, "Inbound", ServiceTags(("10.0.0.0/16", "10.7.0.0/16"))).allowed


def test_public_addresses_used_inside_the_network_are_not_the_internet() -> None:
    tags = ServiceTags(("20.30.0.0/16",))
    deny = SecurityRule("deny", 100, "Outbound", "Deny", destination_prefixes=("Internet",))
    group = SecurityGroup("nsg", "nic", (deny,))

    assert evaluate_group(group, _flow("20.30.0.4", "20.30.0.5"), "Outbound", tags).allowed
    assert not evaluate_group(group, _flow("20.30.0.4", "20.31.0.5"), "Outbound", tags).allowed


def test_a_tag_that_is_not_known_leaves_the_verdict_uncertain_where_it_would_turn_it() -> None:
    deny = SecurityRule("deny-sql", 100, "Inbound", "Deny", source_prefixes=("Sql",))
    allow = SecurityRule("allow-sql", 90 + 10, "Inbound", "Allow", source_prefixes=("Sql",))
    flow = _flow("10.0.0.4", "10.0.1.4")

    doubtful = evaluate_group(SecurityGroup("nsg", "subnet", (deny,)), flow, "Inbound", VNET_TAGS)
    harmless = evaluate_group(SecurityGroup("nsg", "subnet", (allow,)), flow, "Inbound", VNET_TAGS)
    known = ServiceTags(("10.0.0.0/16",), {"Sql": ("20.0.0.0/8",)})
    settled = evaluate_group(SecurityGroup("nsg", "subnet", (deny,)), flow, "Inbound", known)

    assert (doubtful.allowed, doubtful.certain, doubtful.undecided) == (True, False, (deny,))
    assert (harmless.allowed, harmless.certain) == (True, True)
    assert (settled.allowed, settled.certain) == (True, True)


def test_a_rule_for_certain_source_ports_is_undecided_where_the_source_port_is_not_known() -> None:
    deny = SecurityRule("deny-53", 100, "Inbound", "Deny", source_ports=("53",))
    flow = Flow("Tcp", "10.0.0.4", None, "10.0.1.4", 443)

    verdict = evaluate_gates([SecurityGroup("nsg", "subnet", (deny,))], flow, "Inbound", VNET_TAGS)

    assert verdict.allowed
    assert not verdict.certain
