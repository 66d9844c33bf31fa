"""Azure's decisions about packets, as pure functions over what the Azure API returns.

Starts nothing and reads nothing. `walk` takes a packet through a `Network` and back, `explain`
tells the faults with what mends them, and `needed`, `absorb` and `collect` say what to read for it. `evaluate_gates`
decides for network security groups, `select_route` for routes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ghost.net.address_matching import HOST_ADDRESS, Prefix, ServiceTags, covers_address, is_address, parse_ports
from ghost.net.azure_json import (
    group_from_arm,
    groups_from_effective_nsg,
    routes_from_effective_table,
    security_rules_in,
)
from ghost.net.azure_shapes import folded, lifted
from ghost.net.routes import Route, select_route
from ghost.net.security import (
    Direction,
    Flow,
    GateVerdict,
    SecurityGroup,
    SecurityRule,
    Verdict,
    default_rules,
    evaluate_gates,
    evaluate_group,
)

if TYPE_CHECKING:
    from ghost.net.admin_rules import AdminRules
    from ghost.net.az_changes import commands_for
    from ghost.net.az_undo import undo_for
    from ghost.net.balancing import LoadBalancer, PublicAddress
    from ghost.net.change_log import ACTIVITY_LOG, MAX_EVENTS, described_change, is_change, met, newest_changes
    from ghost.net.effective import InterfaceRoutes, groups_of, routes_of, tags_of
    from ghost.net.fault_kinds import FaultKind, kinds_seen_as, known_kinds
    from ghost.net.faults import Fault, explain
    from ghost.net.firewall import AzureFirewall
    from ghost.net.gate_hops import gates
    from ghost.net.gateways import Gateway, GatewayConnections, Site
    from ghost.net.guest_reading import read_guest
    from ghost.net.guest_script import GUEST_SCRIPT, read_inside
    from ghost.net.hops import Hop, Mend, Walk
    from ghost.net.listed_resources import ListedResource
    from ghost.net.names import PrivateZones, PublicName, ZoneRecords, dns_name, without_private_link
    from ghost.net.network import Missing, Network, Unread
    from ghost.net.proposals import CHANGE_FORMS, check_form, proposal_of, proposed
    from ghost.net.reachability import NOT_SHOWN, Reach, ReachQuestion, reach_of
    from ghost.net.recorded_reads import home_in, missing_of, words_and_options
    from ghost.net.resources import (
        EffectiveGroups,
        EffectiveRoutes,
        Guest,
        Interface,
        Machine,
        Resource,
        RouteTable,
        RuleSet,
        VirtualNetwork,
        key,
        name_of,
        owner_in,
        within,
    )
    from ghost.net.services import REFUSES_WITH
    from ghost.net.snapshot import Answer, Read, absorb, collect, look_up, needed, read_interfaces, read_of
    from ghost.net.tenant_bodies import network_of
    from ghost.net.walk_sets import FIRST_PUBLIC, Part, ports_to, public_address_of, sources_of
    from ghost.net.walks import resolution_of, walk

__all__ = [
    "ACTIVITY_LOG",
    "CHANGE_FORMS",
    "FIRST_PUBLIC",
    "GUEST_SCRIPT",
    "HOST_ADDRESS",
    "MAX_EVENTS",
    "NOT_SHOWN",
    "REFUSES_WITH",
    "AdminRules",
    "Answer",
    "AzureFirewall",
    "Direction",
    "EffectiveGroups",
    "EffectiveRoutes",
    "Fault",
    "FaultKind",
    "Flow",
    "GateVerdict",
    "Gateway",
    "GatewayConnections",
    "Guest",
    "Hop",
    "Interface",
    "InterfaceRoutes",
    "ListedResource",
    "LoadBalancer",
    "Machine",
    "Mend",
    "Missing",
    "Network",
    "Part",
    "Prefix",
    "PrivateZones",
    "PublicAddress",
    "PublicName",
    "Reach",
    "ReachQuestion",
    "Read",
    "Resource",
    "Route",
    "RouteTable",
    "RuleSet",
    "SecurityGroup",
    "SecurityRule",
    "ServiceTags",
    "Site",
    "Unread",
    "Verdict",
    "VirtualNetwork",
    "Walk",
    "ZoneRecords",
    "absorb",
    "check_form",
    "collect",
    "commands_for",
    "covers_address",
    "default_rules",
    "described_change",
    "dns_name",
    "evaluate_gates",
    "evaluate_group",
    "explain",
    "folded",
    "gates",
    "group_from_arm",
    "groups_from_effective_nsg",
    "groups_of",
    "health_of",
    "home_in",
    "is_address",
    "is_change",
    "key",
    "kinds_seen_as",
    "known_kinds",
    "lifted",
    "look_up",
    "met",
    "missing_of",
    "name_of",
    "needed",
    "network_of",
    "newest_changes",
    "owner_in",
    "parse_ports",
    "ports_to",
    "proposal_of",
    "proposed",
    "public_address_of",
    "reach_of",
    "read_guest",
    "read_inside",
    "read_interfaces",
    "read_of",
    "read_routes",
    "resolution_of",
    "routes_from_effective_table",
    "routes_of",
    "security_rules_in",
    "select_guest_route",
    "select_route",
    "sources_of",
    "tags_of",
    "undo_for",
    "walk",
    "within",
    "without_private_link",
    "words_and_options",
]

_MODULES = {
    "select_guest_route": "ghost.net.guest",
    "read_routes": "ghost.net.guest",
    "health_of": "ghost.net.balancing",
    "ListedResource": "ghost.net.listed_resources",
    "LoadBalancer": "ghost.net.balancing",
    "PublicAddress": "ghost.net.balancing",
    "AzureFirewall": "ghost.net.firewall",
    "RuleSet": "ghost.net.resources",
    "Site": "ghost.net.gateways",
    "GatewayConnections": "ghost.net.gateways",
    "Gateway": "ghost.net.gateways",
    "Answer": "ghost.net.snapshot",
    "FIRST_PUBLIC": "ghost.net.walk_sets",
    "REFUSES_WITH": "ghost.net.services",
    "Fault": "ghost.net.faults",
    "FaultKind": "ghost.net.fault_kinds",
    "Hop": "ghost.net.hops",
    "Interface": "ghost.net.resources",
    "gates": "ghost.net.gate_hops",
    "Mend": "ghost.net.hops",
    "Missing": "ghost.net.network",
    "Network": "ghost.net.network",
    "Unread": "ghost.net.network",
    "Part": "ghost.net.walk_sets",
    "NOT_SHOWN": "ghost.net.reachability",
    "Reach": "ghost.net.reachability",
    "ReachQuestion": "ghost.net.reachability",
    "reach_of": "ghost.net.reachability",
    "Read": "ghost.net.snapshot",
    "Walk": "ghost.net.hops",
    "absorb": "ghost.net.snapshot",
    "CHANGE_FORMS": "ghost.net.proposals",
    "check_form": "ghost.net.proposals",
    "commands_for": "ghost.net.az_changes",
    "undo_for": "ghost.net.az_undo",
    "collect": "ghost.net.snapshot",
    "ACTIVITY_LOG": "ghost.net.change_log",
    "MAX_EVENTS": "ghost.net.change_log",
    "described_change": "ghost.net.change_log",
    "newest_changes": "ghost.net.change_log",
    "is_change": "ghost.net.change_log",
    "met": "ghost.net.change_log",
    "PrivateZones": "ghost.net.names",
    "PublicName": "ghost.net.names",
    "ZoneRecords": "ghost.net.names",
    "dns_name": "ghost.net.names",
    "without_private_link": "ghost.net.names",
    "explain": "ghost.net.faults",
    "kinds_seen_as": "ghost.net.fault_kinds",
    "known_kinds": "ghost.net.fault_kinds",
    "home_in": "ghost.net.recorded_reads",
    "look_up": "ghost.net.snapshot",
    "missing_of": "ghost.net.recorded_reads",
    "words_and_options": "ghost.net.recorded_reads",
    "name_of": "ghost.net.resources",
    "needed": "ghost.net.snapshot",
    "ports_to": "ghost.net.walk_sets",
    "proposal_of": "ghost.net.proposals",
    "proposed": "ghost.net.proposals",
    "public_address_of": "ghost.net.walk_sets",
    "read_interfaces": "ghost.net.snapshot",
    "read_of": "ghost.net.snapshot",
    "resolution_of": "ghost.net.walks",
    "sources_of": "ghost.net.walk_sets",
    "walk": "ghost.net.walks",
    "network_of": "ghost.net.tenant_bodies",
    "read_guest": "ghost.net.guest_reading",
    "GUEST_SCRIPT": "ghost.net.guest_script",
    "read_inside": "ghost.net.guest_script",
    "routes_of": "ghost.net.effective",
    "groups_of": "ghost.net.effective",
    "EffectiveRoutes": "ghost.net.resources",
    "EffectiveGroups": "ghost.net.resources",
    "Guest": "ghost.net.resources",
    "VirtualNetwork": "ghost.net.resources",
    "Machine": "ghost.net.resources",
    "RouteTable": "ghost.net.resources",
    "owner_in": "ghost.net.resources",
    "key": "ghost.net.resources",
    "within": "ghost.net.resources",
    "AdminRules": "ghost.net.admin_rules",
    "InterfaceRoutes": "ghost.net.effective",
    "tags_of": "ghost.net.effective",
    "Resource": "ghost.net.resources",
}


def __getattr__(name: str) -> Any:
    """What a walk needs is imported when it is first asked for: the lab's programs start by the hundred without it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value
