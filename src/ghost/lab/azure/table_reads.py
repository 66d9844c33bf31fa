"""The reads of `reads.toml`, and those of security rules and of an interface's effective configuration."""

from __future__ import annotations

import tomllib
from argparse import Namespace
from pathlib import Path
from typing import Any

from ghost.lab.azure.client import ArmClient
from ghost.lab.azure.command_table import GROUP, NAME, Answer, command
from ghost.lab.azure.output_shape import flattened
from ghost.lab.directory import LabDirectory

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


def _register_table() -> None:
    content = tomllib.loads((Path(__file__).parent / "reads.toml").read_text(encoding="utf-8"))
    for row in content["commands"]:
        names = tuple(row.get("names", ()))
        answer = _answer(row["kind"], names, whole_list=row["words"].endswith("list"))
        command(row["words"], *row["options"], ids=names if row.get("ids") else ())(answer)


def _answer(kind: str, names: tuple[str, ...], *, whole_list: bool) -> Answer:
    def answer(lab: LabDirectory, options: Namespace) -> Any:
        client = ArmClient(lab)
        path = client.path(options.resource_group, kind, *(getattr(options, name) for name in names))
        return flattened(client.list(path) if whole_list else client.get(path))

    return answer


_register_table()
