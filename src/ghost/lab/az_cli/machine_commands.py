"""Special read commands of machines, and run-command."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, NAME, command, split_id
from ghost.lab.az_cli.output_shape import flattened
from ghost.lab.directory import LabDirectory

VM = "Microsoft.Compute/virtualMachines"
VMSS = "Microsoft.Compute/virtualMachineScaleSets"
NIC = "Microsoft.Network/networkInterfaces"
OF_VM = ("name",)
WITH_VIEW = {"$expand": "instanceView"}


@command("vm list", IN_GROUP, "--show-details -d ?", "--vmss")
def vm_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    found = client.list(client.path(options.resource_group, VM))
    if options.show_details:
        return [_details(client, *_place(body["id"])) for body in found]
    return flattened(found)


@command("vm show", GROUP, NAME, "--show-details -d ?", "--include-user-data -u ?", ids=OF_VM)
def vm_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    if options.show_details:
        return _details(client, options.resource_group, options.name)
    return _machine(client, options.resource_group, options.name)


@command("vm get-instance-view", GROUP, NAME, "--include-user-data -u ?", ids=OF_VM)
def vm_get_instance_view(lab: LabDirectory, options: Namespace) -> Any:
    return _machine(ArmClient(lab), options.resource_group, options.name, **WITH_VIEW)


@command("vm list-ip-addresses", IN_GROUP, "--name -n", ids=OF_VM)
def vm_list_ip_addresses(lab: LabDirectory, options: Namespace) -> Any:
    """Return addresses from the interfaces, like the CLI: an unknown name or group gives an empty list."""
    client = ArmClient(lab)
    publics = {body["id"]: body for body in client.list(client.path(None, "Microsoft.Network/publicIPAddresses"))}
    entries = []
    for nic in client.list(client.path(None, NIC)):
        if "virtualMachine" not in nic["properties"]:
            continue
        group, name = _place(nic["properties"]["virtualMachine"]["id"])
        if _other(options.resource_group, group) or _other(options.name, name):
            continue
        configurations = [item["properties"] for item in nic["properties"]["ipConfigurations"]]
        ids = [item["publicIPAddress"]["id"] for item in configurations if "publicIPAddress" in item]
        network = {
            "privateIpAddresses": [item["privateIPAddress"] for item in configurations],
            "publicIpAddresses": [_public_address(publics[own_id]) for own_id in ids],
        }
        entries.append({"virtualMachine": {"name": name, "network": network, "resourceGroup": group}})
    return entries


@command("vm extension list", GROUP, "--vm-name !", ids=("vm_name",))
def vm_extension_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.list(client.path(options.resource_group, f"{VM}/extensions", options.vm_name)))


@command("vmss list-instances", GROUP, NAME, "--expand")
def vmss_list_instances(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    query = {} if options.expand is None else {"$expand": options.expand}
    return flattened(client.list(client.path(options.resource_group, f"{VMSS}/virtualMachines", options.name), **query))


@command("vmss nic list", GROUP, "--vmss-name !")
def vmss_nic_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.list(client.path(options.resource_group, f"{VMSS}/networkInterfaces", options.vmss_name)))


@command("vmss get-instance-view", GROUP, NAME, "--instance-id", ids=("name",))
def vmss_get_instance_view(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    names = (options.name,) if options.instance_id is None else (options.name, options.instance_id)
    kind = VMSS if options.instance_id is None else f"{VMSS}/virtualMachines"
    return flattened(client.get(f"{client.path(options.resource_group, kind, *names)}/instanceView"))


@command(
    "vm run-command invoke", GROUP, NAME, "--command-id !", "--scripts *", "--parameters *", "--no-wait ?", ids=OF_VM
)
def vm_run_command(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    body = {"commandId": options.command_id, "script": options.scripts or [], "parameters": []}
    return client.post(f"{client.path(options.resource_group, VM, options.name)}/runCommand", body)


def _power(verb: str, action: str, *options: str) -> None:
    @command(f"vm {verb}", GROUP, NAME, "--no-wait ?", *options, ids=OF_VM)
    def answer(lab: LabDirectory, options: Namespace) -> Any:
        client = ArmClient(lab)
        path = f"{client.path(options.resource_group, VM, options.name)}/{action}"
        return client.operated(path) if verb == "restart" else client.post(path)


_power("start", "start")
_power("restart", "restart")
_power("stop", "powerOff", "--skip-shutdown ?")
_power("deallocate", "deallocate", "--hibernate")


def _machine(client: ArmClient, group: str, name: str, **query: str) -> dict[str, Any]:
    entries: dict[str, Any] = flattened(client.get(client.path(group, VM, name), **query))
    for extension in entries.get("resources", []):
        del extension["type"]  # the CLI's model of a machine has none
    return entries


def _details(client: ArmClient, group: str, name: str) -> dict[str, Any]:
    """Return the fields of `--show-details`: power state and addresses."""
    entries = _machine(client, group, name, **WITH_VIEW)
    statuses = entries.pop("instanceView")["statuses"]
    macs, privates, publics, names = [], [], [], []
    for reference in entries["networkProfile"]["networkInterfaces"]:
        nic = client.get(reference["id"])["properties"]
        macs.append(nic["macAddress"])
        for configuration in (item["properties"] for item in nic["ipConfigurations"]):
            privates.append(configuration["privateIPAddress"])
            if "publicIPAddress" in configuration:
                found = client.get(configuration["publicIPAddress"]["id"])["properties"]
                publics.append(found["ipAddress"])
                names += [found["dnsSettings"]["fqdn"]] if "dnsSettings" in found else []
    power = [status["displayStatus"] for status in statuses if status["code"].startswith("PowerState/")]
    return {
        **entries,
        "fqdns": ",".join(names),
        "macAddresses": ",".join(macs),
        "powerState": ",".join(power),
        "privateIps": ",".join(privates),
        "publicIps": ",".join(publics),
    }


def _public_address(body: dict[str, Any]) -> dict[str, Any]:
    properties = body["properties"]
    return {
        "id": body["id"],
        "name": body["name"],
        "ipAddress": properties.get("ipAddress"),
        "ipAllocationMethod": properties.get("publicIPAllocationMethod"),
        "resourceGroup": _place(body["id"])[0],
        "zone": body["zones"][0] if body.get("zones") else None,
    }


def _place(resource_id: str) -> tuple[str, str]:
    group, _, names = split_id(resource_id)
    return group, names[-1]


def _other(requested: str | None, name: str) -> bool:
    return requested is not None and requested.casefold() != name.casefold()
