"""Which service a host name belongs to."""

from __future__ import annotations

import re
from typing import Final

from ghost.net.network import Network, Unread
from ghost.net.resources import key, name_of
from ghost.net.services.service_resources import (
    SERVICE_TYPES,
    KeyVault,
    KeyVaultName,
    RedisCache,
    Service,
    SqlServer,
    StorageAccount,
)

_SUFFIXES: Final[tuple[tuple[type[Service], str], ...]] = (
    (
        StorageAccount,
        r"(blob|file|queue|table|dfs|z\d+\.web)\.core\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)",
    ),
    (StorageAccount, r"z\d+\.(blob|file|queue|table|dfs|web)\.storage\.azure\.net"),
    (SqlServer, r"database\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"),
    (RedisCache, r"redis\.cache\.(windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)"),
    (KeyVault, r"vault\.(azure\.net|usgovcloudapi\.net|azure\.cn)"),
)
_SEGMENTS: Final[tuple[tuple[type[Service], str], ...]] = (
    (StorageAccount, "/microsoft.storage/storageaccounts/"),
    (SqlServer, "/microsoft.sql/servers/"),
    (RedisCache, "/microsoft.cache/redis/"),
    (KeyVault, "/microsoft.keyvault/vaults/"),
)


def service_named(network: Network, host_name: str) -> Service | None:
    """Return the service with this host name, also as a private link calls it; None if it is no service's name.

    Raises `Unread`, also where the name is a service's that none of those read has.
    """
    host = host_name.casefold().rstrip(".").replace(".privatelink.", ".", 1)
    label, _, suffix = host.partition(".")
    kind = next((of for of, pattern in _SUFFIXES if re.fullmatch(pattern, suffix)), None)
    if kind is None:
        return None
    if kind is KeyVault:
        names = network.whole(KeyVaultName).values()
        vaults = (network.one(KeyVault, vault.id) for vault in names if vault.name.casefold() == label)
        found: Service | None = next(vaults, None)
    else:
        found = next((each for each in network.whole(kind).values() if host in each.hosts), None)
    if found is None:
        reason = f"the address of {host_name} is not shown by Azure's configuration, nor is a {kind.kind} of that name"
        raise Unread(None, f"{reason} in what this login may read")
    return found


def service_with_id(network: Network, service_id: str) -> Service:
    """Return the service that has this id. Raises `Unread`."""
    kind = next((of for of, segment in _SEGMENTS if segment in key(service_id)), None)
    if kind is None:
        raise Unread(None, f"{name_of(service_id)} is none of {', '.join(f'{of.kind}s' for of in SERVICE_TYPES)}")
    return network.one(kind, service_id)
