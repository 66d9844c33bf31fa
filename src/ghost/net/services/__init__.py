"""Services with public endpoints of their own: whom their firewalls admit, and how packets get to them. Pure functions.

`service_named` finds the service of a host name, `admits` decides about a packet that arrives. What a request may do
there (keys, roles, logins) is not part of it.
"""

from ghost.net.services.direct_routes import direct_route, endpoint_hop, without_tags
from ghost.net.services.service_admission import REFUSES_WITH, admits
from ghost.net.services.service_changes import (
    AddAddressRule,
    AddSubnetRule,
    EnablePublicAccess,
    EnableServiceEndpoint,
)
from ghost.net.services.service_host_names import service_named, service_with_id
from ghost.net.services.service_resources import (
    SERVICE_TYPES,
    AddressRange,
    KeyVault,
    KeyVaultName,
    PublicService,
    RedisAddressRules,
    RedisCache,
    Service,
    SqlAddressRules,
    SqlServer,
    SqlSubnetRules,
    StorageAccount,
    SubnetRule,
)
from ghost.net.services.unknown_address import agreed

__all__ = [
    "REFUSES_WITH",
    "SERVICE_TYPES",
    "AddAddressRule",
    "AddSubnetRule",
    "AddressRange",
    "EnablePublicAccess",
    "EnableServiceEndpoint",
    "KeyVault",
    "KeyVaultName",
    "PublicService",
    "RedisAddressRules",
    "RedisCache",
    "Service",
    "SqlAddressRules",
    "SqlServer",
    "SqlSubnetRules",
    "StorageAccount",
    "SubnetRule",
    "admits",
    "agreed",
    "direct_route",
    "endpoint_hop",
    "service_named",
    "service_with_id",
    "without_tags",
]
