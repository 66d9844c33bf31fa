"""Azure's decisions about packets, as pure functions over what the Azure API returns.

Starts nothing, reads nothing and imports no other room. `evaluate_gates` decides for network security groups,
`select_route` for routes; the parsers turn the Azure CLI's JSON into their arguments.
"""

from ghost.net.address_matching import HOST_ADDRESS, Network, ServiceTags, parse_ports
from ghost.net.azure_json import (
    group_from_arm,
    groups_from_effective_nsg,
    routes_from_effective_table,
    security_rules_in,
)
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

__all__ = [
    "HOST_ADDRESS",
    "Direction",
    "Flow",
    "GateVerdict",
    "Network",
    "Route",
    "SecurityGroup",
    "SecurityRule",
    "ServiceTags",
    "Verdict",
    "default_rules",
    "evaluate_gates",
    "evaluate_group",
    "group_from_arm",
    "groups_from_effective_nsg",
    "parse_ports",
    "routes_from_effective_table",
    "security_rules_in",
    "select_route",
]
