"""Reads defined in `reads.toml`, and those of security rules and effective configuration."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, NAME, Answer, command
from ghost.lab.az_cli.output_shape import flattened
from ghost.lab.directory import LabDirectory
from ghost.policy import load_policy

NSG = "Microsoft.Network/networkSecurityGroups"
NIC = "Microsoft.Network/networkInterfaces"


@command("network nsg rule list", GROUP, "--nsg-name !", "--include-default ?")
def nsg_rule_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    group = client.get(client.path(options.resource_group, NSG, options.nsg_name))["properties"]
    return flattened([*group["securityRules"], *(group["defaultSecurityRules"] if options.include_default else [])])


@command("network nic show-effective-route-table", GROUP, NAME, "--no-wait ?", ids=("name",))
def show_effective_route_table(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.post(f"{client.path(options.resource_group, NIC, options.name)}/effectiveRouteTable"))


@command("network nic list-effective-nsg", GROUP, NAME, "--no-wait ?", ids=("name",))
def list_effective_nsg(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = client.path(options.resource_group, NIC, options.name)
    return flattened(client.post(f"{path}/effectiveNetworkSecurityGroups"))


@command(
    "monitor activity-log list",
    IN_GROUP,
    *("--resource-id", "--offset", "--start-time", "--end-time", "--max-events", "--status"),
    *("--correlation-id", "--namespace", "--caller"),
)
def activity_log_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(
        client.list(client.path(options.resource_group, "Microsoft.Insights/eventtypes/management/values"))
    )


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

    def register(self) -> None:
        owner = () if self.parent is None else (self.parent.split()[0].removeprefix("--").replace("-", "_"),)
        options = () if self.parent is None else (f"{self.parent} !",)
        if self.list:
            group = GROUP if self.parent or self.list_in_group else IN_GROUP
            command(f"{self.command} list", group, *options)(_answer(self.type, owner, whole_list=True))
        if self.show:
            names = (*owner, "name")
            expand = ("--expand",) if self.expand else ()
            answer = _answer(self.type, names, whole_list=False)
            command(f"{self.command} show", GROUP, *options, NAME, *expand, ids=names)(answer)


def _answer(kind: str, names: tuple[str, ...], *, whole_list: bool) -> Answer:
    def answer(lab: LabDirectory, options: Namespace) -> Any:
        client = ArmClient(lab)
        path = client.path(options.resource_group, kind, *(getattr(options, name) for name in names))
        return flattened(client.list(path) if whole_list else client.get(path))

    return answer


for _row in load_policy(__file__, "reads.toml", dict[str, tuple[ResourceCommands, ...]])["resources"]:
    _row.register()
