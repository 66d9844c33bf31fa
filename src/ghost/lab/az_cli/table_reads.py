"""Reads defined in `reads.toml`, and those of security rules and effective configuration."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.client import ArmClient, group_of
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, NAME, Answer, attribute, command
from ghost.lab.az_cli.output_shape import filled, flattened, hoisted, with_groups
from ghost.lab.directory import LabDirectory
from ghost.policy import load_policy

NSG = "Microsoft.Network/networkSecurityGroups"
NIC = "Microsoft.Network/networkInterfaces"
CONNECTIONS = "Microsoft.Network/connections"
VAULTS = "Microsoft.KeyVault/vaults"


@command("network nsg rule list", GROUP, "--nsg-name !", "--include-default ?")
def nsg_rule_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    group = client.get(client.path(options.resource_group, NSG, options.nsg_name))["properties"]
    return flattened([*group["securityRules"], *(group["defaultSecurityRules"] if options.include_default else [])])


_NOT_OF_ROUTES = ("destinationServiceTags", "hasBgpOverride", "tagMap")
"""What Azure answers and the CLI's model of a route lacks."""


@command("network nic show-effective-route-table", GROUP, NAME, "--no-wait ?", ids=("name",))
def show_effective_route_table(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    table = client.post(f"{client.path(options.resource_group, NIC, options.name)}/effectiveRouteTable")["value"]
    return {"value": [{name: value for name, value in row.items() if name not in _NOT_OF_ROUTES} for row in table]}


@command("network nic list-effective-nsg", GROUP, NAME, "--no-wait ?", ids=("name",))
def list_effective_nsg(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = client.path(options.resource_group, NIC, options.name)
    return flattened(client.post(f"{path}/effectiveNetworkSecurityGroups"))


@dataclass(frozen=True)
class ResourceCommands:
    """A row of `reads.toml`."""

    command: str
    type: str
    parent: str | None = None
    expand: bool = False
    list: bool = True
    show: bool = True
    list_in_group: bool = False
    model: str | None = None
    nested: bool = False
    renamed: tuple[str, ...] = ()

    def register(self) -> None:
        owner = () if self.parent is None else (attribute(self.parent),)
        options = () if self.parent is None else (f"{self.parent} !",)
        if self.list:
            group = GROUP if self.parent or self.list_in_group else IN_GROUP
            command(f"{self.command} list", group, *options)(self._answer(owner, whole_list=True))
        if self.show:
            names = (*owner, "name")
            expand = ("--expand",) if self.expand else ()
            answer = self._answer(names, whole_list=False)
            command(f"{self.command} show", GROUP, *options, NAME, *expand, ids=names)(answer)

    def _answer(self, names: tuple[str, ...], *, whole_list: bool) -> Answer:
        def answer(lab: LabDirectory, options: Namespace) -> Any:
            client = ArmClient(lab)
            path = client.path(options.resource_group, self.type, *(getattr(options, name) for name in names))
            return [self._shown(body) for body in client.list(path)] if whole_list else self._shown(client.get(path))

        return answer

    def _shown(self, body: dict[str, Any]) -> Any:
        raised = hoisted({**body, "properties": {}}) | body["properties"] if self.nested else hoisted(body)
        renamed = dict(each.split() for each in self.renamed)
        fields = {renamed.get(name, name): value for name, value in raised.items()}
        return with_groups(fields if self.model is None else filled(self.model, fields))


def _of_sdk(model: str, body: dict[str, Any]) -> Any:
    return with_groups(filled(model, body))


@command("network vpn-connection list", GROUP, "--vnet-gateway")
def vpn_connection_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    if options.vnet_gateway is None:
        return flattened(client.list(client.path(options.resource_group, CONNECTIONS)))
    gateway = client.path(options.resource_group, "Microsoft.Network/virtualNetworkGateways", options.vnet_gateway)
    return flattened(client.list(f"{gateway}/connections"))


@command("network manager list-effective-security-admin-rule", GROUP, "--virtual-network-name --vnet-name !")
def effective_admin_rules(lab: LabDirectory, options: Namespace) -> Any:
    """Return the rules that managers deployed to a network; in Azure's own CLI it belongs to an extension.

    https://learn.microsoft.com/cli/azure/network/manager
    """
    client = ArmClient(lab)
    network = client.path(options.resource_group, "Microsoft.Network/virtualNetworks", options.virtual_network_name)
    return flattened(client.post(f"{network}/listNetworkManagerEffectiveSecurityAdminRules"))


@command("keyvault list", IN_GROUP, "--resource-type")
def keyvault_list(lab: LabDirectory, options: Namespace) -> Any:
    """Return vaults: without a group as any resource is listed, without their settings."""
    client = ArmClient(lab)
    if options.resource_group is not None:
        return [_of_sdk("vault", body) for body in client.list(client.path(options.resource_group, VAULTS))]
    query = {"$filter": f"resourceType eq '{VAULTS}'"}
    return [_of_sdk("listed_vault", body) for body in client.list(f"{client.scope()}/resources", **query)]


@command("keyvault show", IN_GROUP, "--name -n !", ids=("name",))
def keyvault_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    group = options.resource_group or group_of(client, VAULTS, options.name)
    if group is None:
        raise AzError(f"The Vault '{options.name}' not found within subscription.")
    return _of_sdk("vault", client.get(client.path(group, VAULTS, options.name)))


for _row in load_policy(__file__, "reads.toml", dict[str, tuple[ResourceCommands, ...]])["resources"]:
    _row.register()
