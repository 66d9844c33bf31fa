"""Azure Firewall: its rules, and what it does with a packet and its answer.

https://learn.microsoft.com/azure/firewall/rule-processing
"""

from ghost.net.firewall.hops import back_through_firewall, firewall_at, through_firewall
from ghost.net.firewall.reading import azure_firewalls, firewall_policies, ip_groups, rule_collection_groups
from ghost.net.firewall.resources import (
    AzureFirewall,
    FirewallPolicy,
    FirewallRule,
    IpGroup,
    RuleCollection,
    RuleCollectionGroup,
)

__all__ = [
    "AzureFirewall",
    "FirewallPolicy",
    "FirewallRule",
    "IpGroup",
    "RuleCollection",
    "RuleCollectionGroup",
    "azure_firewalls",
    "back_through_firewall",
    "firewall_at",
    "firewall_policies",
    "ip_groups",
    "rule_collection_groups",
    "through_firewall",
]
