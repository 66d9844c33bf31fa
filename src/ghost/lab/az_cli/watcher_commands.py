"""Network watcher commands: diagnostics, and packet captures in both command groups.

The CLI finds the watcher by the machine's region or `--location`: https://learn.microsoft.com/cli/azure/network/watcher
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from ghost.lab.arm.capture_life import LONGEST_SECONDS
from ghost.lab.az_cli.cli_errors import AzError, usage
from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, command, split_id
from ghost.lab.az_cli.output_shape import flattened
from ghost.lab.directory import LabDirectory

WATCHER = "Microsoft.Network/networkWatchers"
CAPTURE = f"{WATCHER}/packetCaptures"
VM = "Microsoft.Compute/virtualMachines"
BY_LOCATION = ("--location -l !", "--name -n --packet-capture-name !")
_STORAGE_USAGE = "usage error: --storage-account NAME_OR_ID [--storage-path PATH] [--file-path PATH] | --file-path PATH"


@command("network watcher list")
def watcher_list(lab: LabDirectory, _options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.list(client.path(None, WATCHER)))


@command("network watcher show-next-hop", IN_GROUP, "--vm !", "--source-ip !", "--dest-ip !", "--nic")
def show_next_hop(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    target = _machine_id(client, options)
    properties = {
        "targetResourceId": target,
        "sourceIPAddress": options.source_ip,
        "destinationIPAddress": options.dest_ip,
    }
    return client.post(f"{_watcher_of(client, options, target)}/nextHop", properties)


@command(
    "network watcher test-ip-flow",
    IN_GROUP,
    "--vm !",
    "--direction !",
    "--local !",
    "--remote !",
    "--protocol !",
    "--nic",
)
def test_ip_flow(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    choices = {"--direction": ("Inbound", "Outbound"), "--protocol": ("TCP", "UDP")}
    for option, allowed in choices.items():
        value = getattr(options, option[2:])
        if value.casefold() not in map(str.casefold, allowed):
            raise usage(
                f"az network watcher test-ip-flow: '{value}' is not a valid value for '{option}'. "
                f"Allowed values: {', '.join(allowed)}."
            )
    (local, local_port), (remote, remote_port) = _endpoint(options.local), _endpoint(options.remote)
    target = _machine_id(client, options)
    properties = {
        "targetResourceId": target,
        "direction": options.direction.capitalize(),
        "protocol": options.protocol.upper(),
        "localIPAddress": local,
        "localPort": local_port,
        "remoteIPAddress": remote,
        "remotePort": remote_port,
    }
    return _known(client.post(f"{_watcher_of(client, options, target)}/ipFlowVerify", properties))


def _known(body: Any) -> Any:
    """Return a body without what the CLI's models of captures and of IP flow do not know."""
    if isinstance(body, list):
        return [_known(item) for item in body]
    return flattened({name: value for name, value in body.items() if name not in ("type", "ruleId")})


def _endpoint(text: str) -> tuple[str, str]:
    address, colon, port = text.partition(":")
    if not colon or ":" in port:
        raise AzError("usage error: the format of the '--local' and '--remote' should be like x.x.x.x:port")
    return address, port


# --- captures, addressed by location ---


@command(
    "network watcher packet-capture create",
    GROUP,
    "--name -n --packet-capture-name !",
    "--vm",
    "--target",
    "--target-type",
    "--include *",
    "--exclude *",
    "--storage-account",
    "--storage-path",
    "--file-path",
    "--time-limit",
    "--capture-limit",
    "--capture-size",
    "--filters",
    "--no-wait ?",
)
def create(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    limits = {
        "timeLimitInSeconds": _number("--time-limit", options.time_limit, LONGEST_SECONDS, LONGEST_SECONDS),
        "totalBytesPerSession": _number("--capture-limit", options.capture_limit, 4294967295, 1073741824),
        "bytesToCapturePerPacket": _number("--capture-size", options.capture_size, 4294967295, 0),
    }
    target_type = options.target_type or "AzureVM"
    of_set = target_type.casefold() == "azurevmss"
    if not of_set and options.vm is None:
        raise AzError("usage error: --vm NAME_OR_ID is needed where --target-type is not AzureVMSS")
    kind = "Microsoft.Compute/virtualMachineScaleSets" if of_set else VM
    target = _id(client, options, kind, options.target if of_set else options.vm)
    watcher = _watcher_of(client, options, target)
    if options.storage_account is None and (options.storage_path or not options.file_path):
        raise AzError(_STORAGE_USAGE)
    if options.file_path and not options.file_path.endswith(".cap"):
        raise AzError("usage error: --file-path PATH must end with the '*.cap' extension")
    place = {"storagePath": options.storage_path, "filePath": options.file_path}
    if options.storage_account is not None:
        place["storageId"] = _id(client, options, "Microsoft.Storage/storageAccounts", options.storage_account)
    scope = {"include": options.include, "exclude": options.exclude} if of_set else {}
    properties = {
        "target": target,
        "targetType": target_type,
        **limits,
        "filters": _filters(options.filters),
        "storageLocation": {name: text for name, text in place.items() if text},
        "scope": {name: chosen for name, chosen in scope.items() if chosen},
    }
    return _known(client.put(f"{watcher}/packetCaptures/{options.name}", {"properties": properties}))


@command("network watcher packet-capture list", "--location -l !")
def list_captures(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return _known(client.list(f"{_watcher_in(client, options.location)}/packetCaptures"))


@command("network watcher packet-capture show", *BY_LOCATION)
def show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return _known(client.get(_by_location(client, options)))


@command("network watcher packet-capture show-status", *BY_LOCATION, "--no-wait ?")
def show_status(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.post(f"{_by_location(client, options)}/queryStatus"))


@command("network watcher packet-capture stop", *BY_LOCATION, "--no-wait ?")
def stop(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return client.post(f"{_by_location(client, options)}/stop")


@command("network watcher packet-capture delete", *BY_LOCATION, "--no-wait ?")
def delete(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    client.delete(_by_location(client, options))


# --- captures, addressed by watcher ---

_OF_WATCHER = (GROUP, "--network-watcher-name !")
_OF_CAPTURE = (*_OF_WATCHER, "--packet-capture-name !")
_NAMED = (*_OF_WATCHER, "--name -n --packet-capture-name !")
_NEWER = "network network-watcher packet-capture"


@command(f"{_NEWER} list", *_OF_WATCHER)
def newer_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return _known(client.list(client.path(options.resource_group, CAPTURE, options.network_watcher_name)))


@command(f"{_NEWER} show", *_NAMED, ids=("network_watcher_name", "name"))
def newer_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return _known(client.get(_by_watcher(client, options, options.name)))


@command(f"{_NEWER} query-status", *_OF_CAPTURE, "--no-wait ?", ids=("network_watcher_name", "packet_capture_name"))
def newer_query_status(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.post(f"{_by_watcher(client, options, options.packet_capture_name)}/queryStatus"))


@command(f"{_NEWER} stop", *_OF_CAPTURE, "--no-wait ?", ids=("network_watcher_name", "packet_capture_name"))
def newer_stop(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return client.post(f"{_by_watcher(client, options, options.packet_capture_name)}/stop")


@command(f"{_NEWER} delete", *_NAMED, "--no-wait ?", "--yes -y ?", ids=("network_watcher_name", "name"))
def newer_delete(lab: LabDirectory, options: Namespace) -> Any:
    if not options.yes:
        raise AzError("Operation cancelled.")
    client = ArmClient(lab)
    client.delete(_by_watcher(client, options, options.name))


def _by_watcher(client: ArmClient, options: Namespace, name: str) -> str:
    return client.path(options.resource_group, CAPTURE, options.network_watcher_name, name)


def _by_location(client: ArmClient, options: Namespace) -> str:
    return f"{_watcher_in(client, options.location)}/packetCaptures/{options.name}"


def _watcher_of(client: ArmClient, options: Namespace, target: str) -> str:
    """Return the watcher in the region of a machine or scale set, searched in `--resource-group` only."""
    _, kind, names = split_id(target)
    return _watcher_in(client, client.get(client.path(options.resource_group, kind, names[-1]))["location"])


def _watcher_in(client: ArmClient, location: str) -> str:
    for body in client.list(client.path(None, WATCHER)):
        if body["location"].casefold() == location.casefold().replace(" ", ""):
            own_id: str = body["id"]
            return own_id
    raise AzError(f"network watcher is not enabled for region {location}.")


def _machine_id(client: ArmClient, options: Namespace) -> str:
    if options.resource_group is None:
        what = "Failed to construct resource id: argument 'resource_group_name' is not defined"
        raise AzError(f"InvalidArgumentValue: --vm: Invalid format: {what}")
    return _id(client, options, VM, options.vm)


def _id(client: ArmClient, options: Namespace, kind: str, name_or_id: str) -> str:
    """Return the id of a resource given by id, or by name in `--resource-group`."""
    return name_or_id if name_or_id.startswith("/") else client.path(options.resource_group, kind, name_or_id)


def _number(option: str, text: str | None, maximum: int, default: int) -> int:
    if text is None:
        return default
    try:
        number = int(text)
    except ValueError as error:
        raise AzError(f"Failed to parse '{option}' argument: {error}") from error
    for wrong, word, bound in ((number > maximum, "greater", maximum), (number < 0, "less", 0)):
        if wrong:
            raise AzError(f"InvalidArgumentValue: {option}: Invalid format: '{number}' is {word} than {bound}")
    return number


def _filters(text: str | None) -> list[dict[str, Any]]:
    """Parse filters as JSON; the CLI also accepts a shorthand."""
    if text is None:
        return []
    try:
        filters = json.loads(text)
        if not isinstance(filters, list):
            raise ValueError(f"list type value expected, got '{text}'")
        for number, item in enumerate(filters):
            if not isinstance(item, dict):
                what = f"dict type value expected, got '{item}'({type(item)})"
                raise ValueError(f"Invalid at [{number}] : {what}")
    except ValueError as error:
        raise AzError(f"Failed to parse '--filters' argument: {error}") from error
    return [{"protocol": "Any", **item} for item in filters]
