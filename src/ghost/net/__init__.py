"""Azure's decisions about packets, as pure functions over what the Azure API returns.

Starts nothing and reads nothing. `walk` takes a packet through a `Network` and back, `explain`
tells the faults with what mends them, and `needed`, `absorb` and `collect` say what to read for it. `evaluate_gates`
decides for network security groups, `select_route` for routes.
"""

from ghost.net.address_matching import HOST_ADDRESS, Prefix, ServiceTags, is_address, parse_ports
from ghost.net.azure_json import (
    group_from_arm,
    groups_from_effective_nsg,
    routes_from_effective_table,
    security_rules_in,
)
from ghost.net.fault_kinds import FaultKind, kinds_seen_as, known_kinds
from ghost.net.faults import Fault, explain
from ghost.net.hops import Hop, Mend, Walk
from ghost.net.names import dns_name
from ghost.net.network import Missing, Network
from ghost.net.proposals import check_form, proposed
from ghost.net.resources import Interface, name_of
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
from ghost.net.snapshot import Answer, Read, absorb, collect, look_up, needed, read_interfaces
from ghost.net.walk_sets import FIRST_PUBLIC, Part, ports_to, public_address_of, sources_of
from ghost.net.walks import walk

__all__ = [
    "FIRST_PUBLIC",
    "HOST_ADDRESS",
    "Answer",
    "Direction",
    "Fault",
    "FaultKind",
    "Flow",
    "GateVerdict",
    "Hop",
    "Interface",
    "Mend",
    "Missing",
    "Network",
    "Part",
    "Prefix",
    "Read",
    "Route",
    "SecurityGroup",
    "SecurityRule",
    "ServiceTags",
    "Verdict",
    "Walk",
    "absorb",
    "check_form",
    "collect",
    "default_rules",
    "dns_name",
    "evaluate_gates",
    "evaluate_group",
    "explain",
    "group_from_arm",
    "groups_from_effective_nsg",
    "is_address",
    "kinds_seen_as",
    "known_kinds",
    "look_up",
    "name_of",
    "needed",
    "parse_ports",
    "ports_to",
    "proposed",
    "public_address_of",
    "read_interfaces",
    "routes_from_effective_table",
    "security_rules_in",
    "select_route",
    "sources_of",
    "walk",
]
