"""What a Linux guest does with a packet: its packet filter, its routes, its listening sockets. Pure functions.

    iptables-save, ip6tables-save     read_iptables
    nft -j list ruleset               read_nft
    ip -j route show table all        read_routes
    ip -j rule, ip -6 -j rule         read_rules
    ss -tlnpH, ss -ulnpH              read_listeners

`evaluate` gives the verdict of the packet filter and the rule that gave it, `select_guest_route` the way of a packet,
`listeners_at` the sockets that answer.
"""

from ghost.net.guest.evaluation import FORWARD, INPUT, OUTPUT, Decision, GuestVerdict, evaluate
from ghost.net.guest.iptables import read_iptables
from ghost.net.guest.listeners import Listener, listeners_at, read_listeners
from ghost.net.guest.nft import read_nft
from ghost.net.guest.routes import (
    DEFAULT_RULES,
    GuestRoute,
    NextHop,
    RouteDecision,
    RoutingRule,
    read_routes,
    read_rules,
    select_guest_route,
)
from ghost.net.guest.ruleset import Action, Chain, Hook, Match, Packet, Rule, Ruleset, State, Table

__all__ = [
    "DEFAULT_RULES",
    "FORWARD",
    "INPUT",
    "OUTPUT",
    "Action",
    "Chain",
    "Decision",
    "GuestRoute",
    "GuestVerdict",
    "Hook",
    "Listener",
    "Match",
    "NextHop",
    "Packet",
    "RouteDecision",
    "RoutingRule",
    "Rule",
    "Ruleset",
    "State",
    "Table",
    "evaluate",
    "listeners_at",
    "read_iptables",
    "read_listeners",
    "read_nft",
    "read_routes",
    "read_rules",
    "select_guest_route",
]
