"""Lines of a described network for security admin rules.

admin NETWORK MANAGER/COLLECTION EFFECT NAME PRIORITY DIRECTION PROTOCOL SOURCES[:PORTS] DESTINATIONS:PORTS
manager NAME                            a network manager whose rules were not read
"""

from __future__ import annotations

from collections.abc import Mapping

from ghost.net.admin_rules import AdminRule, AdminRules, NetworkManager
from ghost.net.network import Network
from ghost.net.resources import VirtualNetwork
from tests.net.small_network import PROVIDER, rule, vnet_id


def add_admin_rules(network: Network, of: Mapping[str, list[tuple[list[str], dict[str, str]]]]) -> Network:
    rules: dict[str, list[AdminRule]] = {}
    managers = {names[0] for names, _ in of.get("manager", ())}
    read = not managers
    for (home, place, effect, name, priority, direction, *rest), _ in of.get("admin", ()):
        manager, _, collection = place.partition("/")
        managers.add(manager)
        made = AdminRule(
            id=f"{PROVIDER}/networkManagers/{manager}/securityAdminConfigurations/c/ruleCollections/{collection}/rules/{name}",
            effect=effect,  # type: ignore[arg-type]
            matches=rule(" ".join([name, priority, direction, "Allow", *rest])),
        )
        rules.setdefault(vnet_id(home), []).append(made)
    known = [NetworkManager(id=f"{PROVIDER}/networkManagers/{name}") for name in managers]
    network = network.with_resources(NetworkManager, known, complete=True)
    deployed = [
        AdminRules(id=home.id, rules=tuple(rules.get(home.id, ())), reference="read-admin")
        for home in network.all(VirtualNetwork).values()
    ]
    return network.with_resources(AdminRules, deployed if read else [])
