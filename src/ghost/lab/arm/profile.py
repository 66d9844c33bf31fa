"""The environment and configuration directory with which an Azure CLI uses a lab.

The files are those of `az cloud register` and `az login --identity`.
https://learn.microsoft.com/cli/azure/azure-cli-configuration
"""

from __future__ import annotations

import configparser
import json
from pathlib import Path

from ghost.lab.arm.service_hosts import DOMAIN, LOGIN, MANAGEMENT, STORAGE_SUFFIX
from ghost.lab.tenant import guid
from ghost.lab.world import World
from ghost.records import private_dir, write_text

CLOUD = "GhostLab"
_SETTINGS = """[cloud]
name = {cloud}

[core]
collect_telemetry = no
instance_discovery = no
survey_message = no
no_color = yes
login_experience_v2 = off
enable_broker_on_windows = false
encrypt_token_cache = false
output = json
display_region_identified = no
only_show_errors = no

[auto-upgrade]
enable = no

[extension]
use_dynamic_install = no

[logging]
enable_log_file = no
"""

_CLOUD = """[{cloud}]
endpoint_management = https://{management}
endpoint_resource_manager = https://{management}
endpoint_active_directory = https://{login}
endpoint_active_directory_resource_id = https://{management}
endpoint_active_directory_graph_resource_id = https://graph.{domain}
endpoint_microsoft_graph_resource_id = https://graph.{domain}
suffix_storage_endpoint = {storage}
suffix_keyvault_dns = .vault.{domain}
"""


def uses_lab(settings: Path) -> bool:
    """Return whether an Azure CLI with this configuration directory uses a lab as its cloud."""
    chosen = configparser.ConfigParser(interpolation=None)
    try:
        chosen.read(settings / "config", encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return False
    return chosen.get("cloud", "name", fallback=None) == CLOUD


def client_environment(home: Path, certificate: Path, proxy_port: int, secret: str) -> dict[str, str]:
    """Return the environment, with both spellings of the proxy variables."""
    proxy = f"http://127.0.0.1:{proxy_port}"
    return {
        "AZURE_CONFIG_DIR": str(home / "config"),
        "AZURE_EXTENSION_DIR": str(private_dir(home / "extensions")),
        "REQUESTS_CA_BUNDLE": str(certificate),
        "HTTPS_PROXY": proxy,
        "https_proxy": proxy,
        "HTTP_PROXY": proxy,
        "http_proxy": proxy,
        "NO_PROXY": "",
        "no_proxy": "",
        "IDENTITY_ENDPOINT": f"https://{LOGIN}/msi/token",
        "IDENTITY_HEADER": secret,
        "AZURE_CORE_COLLECT_TELEMETRY": "no",
        "AZURE_CORE_INSTANCE_DISCOVERY": "no",
        "AZURE_CORE_SURVEY_MESSAGE": "no",
        "AZURE_CORE_DISABLE_CONCURRENT_IDS": "yes",
        "AZURE_CORE_NO_COLOR": "yes",
        "AZURE_EXTENSION_USE_DYNAMIC_INSTALL": "no",
        "AZURE_LOGGING_ENABLE_LOG_FILE": "no",
    }


def write_profile(directory: Path, world: World) -> None:
    """Write a configuration directory with one cloud, the lab, and one account, the lab's identity."""
    private_dir(directory)
    names = {"management": MANAGEMENT, "login": LOGIN, "domain": DOMAIN, "storage": STORAGE_SUFFIX, "cloud": CLOUD}
    own = world.subscription
    write_text(directory / "config", _SETTINGS.format(cloud=CLOUD))
    write_text(directory / "clouds.config", f"{_CLOUD.format(**names)}subscription = {own.id}\n")
    account = {
        "id": own.id,
        "name": own.name,
        "state": "Enabled",
        "user": {"name": "systemAssignedIdentity", "type": "servicePrincipal", "assignedIdentityInfo": "MSI"},
        "isDefault": True,
        "tenantId": own.tenant,
        "environmentName": CLOUD,
        "homeTenantId": own.tenant,
        "managedByTenants": [],
    }
    profile = {"installationId": guid(f"{own.id}/installation"), "subscriptions": [account]}
    write_text(directory / "azureProfile.json", json.dumps(profile, indent=2))
