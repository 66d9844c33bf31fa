"""DNS and private endpoints: what a machine gets for a name, and what stands before a private endpoint.

Reads nothing itself and never asks a DNS server: it answers from the zones, links and records that were read.
"""

from ghost.net.names.records import (
    ForwardingRulesets,
    PrivateEndpoint,
    PrivateZones,
    PublicName,
    RecordSet,
    ZoneGroups,
    ZoneLink,
    ZoneLinks,
    ZoneRecords,
    dns_name,
    without_private_link,
)

__all__ = [
    "ForwardingRulesets",
    "PrivateEndpoint",
    "PrivateZones",
    "PublicName",
    "RecordSet",
    "ZoneGroups",
    "ZoneLink",
    "ZoneLinks",
    "ZoneRecords",
    "dns_name",
    "without_private_link",
]
