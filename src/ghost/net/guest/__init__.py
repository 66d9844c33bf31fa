"""What a Linux guest does with a packet: its packet filter, its routes, its listening sockets. Pure functions.

iptables-save, ip6tables-save     read_iptables
nft -j list ruleset               read_nft
evaluate                          the verdict of both, and the rule that gave it
"""

from ghost.net.guest.evaluation import FORWARD, INPUT, OUTPUT, Decision, GuestVerdict, evaluate
from ghost.net.guest.iptables import read_iptables
from ghost.net.guest.nft import read_nft
from ghost.net.guest.ruleset import Action, Chain, Hook, Match, Packet, Rule, Ruleset, State, Table

__all__ = [
    "FORWARD",
    "INPUT",
    "OUTPUT",
    "Action",
    "Chain",
    "Decision",
    "GuestVerdict",
    "Hook",
    "Match",
    "Packet",
    "Rule",
    "Ruleset",
    "State",
    "Table",
    "evaluate",
    "read_iptables",
    "read_nft",
]
