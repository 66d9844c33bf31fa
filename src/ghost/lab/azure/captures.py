"""Packet captures of the network watcher: their life by the lab's clock, and the commands.

A capture that was created starts a moment later, runs until its time is over or it is stopped, and leaves a blob in
the storage account. Nothing runs in between: each command works out from the clock what has happened since. The
bytes of the blob are made when someone asks for them.

Filters and byte limits are not simulated, and refused.
"""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from ghost.lab.azure import shapes
from ghost.lab.azure.commands import GROUP, command, split_id
from ghost.lab.azure.errors import AzError, refused, resource_not_found, usage
from ghost.lab.azure.lookup import require_watcher, watched_machine
from ghost.lab.directory import LabDirectory
from ghost.lab.world import StorageAccount, World
from ghost.records import isoformat

START_DELAY = timedelta(seconds=2)
"""Between the creation of a capture and its first packet."""
LONGEST_SECONDS = 18000
DEFAULT_CONTAINER = "network-watcher-logs"
PACKET_CAPTURE = "Microsoft.Network/networkWatchers/packetCaptures"

Capture = dict[str, Any]


# --- the life of a capture, over the lab's state ---


def settle(state: dict[str, Any], now: datetime) -> None:
    """Lets happen what the clock says has happened: the blob of a capture that has ended appears, once."""
    for capture in state.get("captures", []):
        if not capture["uploaded"] and status(capture, now) == "Stopped":
            capture["uploaded"] = True
            if capture["container"] is not None:
                _upload(state, capture)


def settled(lab: LabDirectory) -> dict[str, Any]:
    """The state as it is by now, for reading: nothing is written, so a read needs no right to write."""
    state = lab.state()
    settle(state, lab.clock.now())
    return state


def status(capture: Capture, now: datetime) -> str:
    if capture["error"] is not None:
        return "Error"
    if now >= ends(capture):
        return "Stopped"
    return "Running" if now >= starts(capture) else "NotStarted"


def starts(capture: Capture) -> datetime:
    return datetime.fromisoformat(capture["starts"])


def ends(capture: Capture) -> datetime:
    if capture["stopped"] is not None:
        return datetime.fromisoformat(capture["stopped"])
    return starts(capture) + timedelta(seconds=capture["time_limit"])


def stop(capture: Capture, now: datetime) -> None:
    """A capture that has ended by itself stays as it is; one that has not begun ends empty."""
    if status(capture, now) == "NotStarted":
        capture["starts"] = now.isoformat()
    if status(capture, now) == "Running":
        capture["stopped"] = now.isoformat()


def _upload(state: dict[str, Any], capture: Capture) -> None:
    blob = {
        "account": capture["account"],
        "container": capture["container"],
        "name": capture["blob"],
        "created": ends(capture).isoformat(),
        "machine": capture["machine"],
        "starts": capture["starts"],
        "seconds": (ends(capture) - starts(capture)).total_seconds(),
    }
    place = (blob["account"], blob["container"], blob["name"])
    others = [b for b in state.get("blobs", []) if (b["account"], b["container"], b["name"]) != place]
    state["blobs"] = [*others, blob]


# --- the commands ---

BY_LOCATION = ("--location -l !", "--name -n --packet-capture-name !")


@command(
    "network watcher packet-capture create",
    GROUP,
    "--name -n !",
    "--vm",
    "--target",
    "--target-type",
    "--storage-account",
    "--storage-path",
    "--file-path",
    "--time-limit",
    "--capture-limit",
    "--capture-size",
    "--filters",
)
def create(lab: LabDirectory, options: Namespace) -> Any:
    world = lab.world
    vm = watched_machine(world, _with_target(options))
    limit = _time_limit(options.time_limit)
    for option, value in (("--filters", options.filters), ("--capture-size", options.capture_size)):
        if value is not None:
            raise AzError(f"{option} is not simulated here: capture without it")
    if options.storage_account is None:
        raise usage("usage error: --storage-account NAME_OR_ID [--storage-path PATH] [--file-path PATH] is needed here")
    account = _account(world, options.storage_account)
    container, blob = _destination(world, account, options.storage_path, vm.name, lab.clock.now())
    if vm.power != "running":
        raise refused("VMNotRunning", f"The virtual machine {shapes.id_of(world, vm)} is not running.")
    if not vm.has_capture_agent:
        raise refused(
            "NetworkWatcherExtensionNotFound",
            f"The Network Watcher Agent extension is not installed on {shapes.id_of(world, vm)}. Install "
            f"NetworkWatcherAgent{vm.os} and try again.",
        )
    with lab.changing() as state:
        now = lab.clock.now()
        settle(state, now)
        captures = state.setdefault("captures", [])
        location = world.location_of(vm.resource_group)
        if any((c["name"].casefold(), c["location"]) == (options.name.casefold(), location) for c in captures):
            raise refused("PacketCaptureAlreadyExists", f"A packet capture named {options.name} already exists.")
        capture = {
            "name": options.name,
            "location": location,
            "machine": vm.name,
            "account": account.name,
            "container": container,
            "blob": blob,
            "starts": (now + START_DELAY).isoformat(),
            "time_limit": limit,
            "stopped": None,
            "uploaded": False,
            "error": None if container in (*account.containers, DEFAULT_CONTAINER) else "StorageFailed",
        }
        captures.append(capture)
    return _shape(world, capture)


@command("network watcher packet-capture list", "--location -l !")
def list_captures(lab: LabDirectory, options: Namespace) -> Any:
    require_watcher(lab.world, options.location)
    captures = lab.state().get("captures", [])
    return [_shape(lab.world, c) for c in captures if c["location"].casefold() == options.location.casefold()]


@command("network watcher packet-capture show", *BY_LOCATION)
def show(lab: LabDirectory, options: Namespace) -> Any:
    return _shape(lab.world, _find(lab, lab.state(), options))


@command("network watcher packet-capture show-status", *BY_LOCATION)
def show_status(lab: LabDirectory, options: Namespace) -> Any:
    capture = _find(lab, settled(lab), options)
    answer = {
        "captureStartTime": isoformat(starts(capture)),
        "id": _capture_id(lab.world, capture),
        "name": capture["name"],
        "packetCaptureError": [capture["error"]] if capture["error"] else [],
        "packetCaptureStatus": status(capture, lab.clock.now()),
    }
    if answer["packetCaptureStatus"] == "Stopped":
        answer["stopReason"] = "Manual" if capture["stopped"] is not None else "TimeExceeded"
    return answer


@command("network watcher packet-capture stop", *BY_LOCATION, "--no-wait ?")
def stop_capture(lab: LabDirectory, options: Namespace) -> None:
    with lab.changing() as state:
        now = lab.clock.now()
        stop(_find(lab, state, options), now)
        settle(state, now)


@command("network watcher packet-capture delete", *BY_LOCATION, "--no-wait ?", "--yes -y ?")
def delete(lab: LabDirectory, options: Namespace) -> None:
    """A running capture is stopped first. Its blob stays. One that is not there is deleted with success, as in ARM."""
    require_watcher(lab.world, options.location)
    with lab.changing() as state:
        now = lab.clock.now()
        for capture in state.get("captures", []):
            if _is(capture, options):
                stop(capture, now)
        settle(state, now)
        state["captures"] = [capture for capture in state.get("captures", []) if not _is(capture, options)]


def _with_target(options: Namespace) -> Namespace:
    if options.vm is None and options.target is None:
        raise usage("the following arguments are required: --vm")
    if options.target_type not in (None, "AzureVM"):
        raise AzError(
            f"captures of a target of type {options.target_type} are not simulated here: capture on a machine"
        )
    return Namespace(resource_group=options.resource_group, vm=options.vm or options.target)


def _time_limit(text: str | None) -> int:
    if text is None:
        return LONGEST_SECONDS
    if not text.isdigit():
        raise usage(f"argument --time-limit: invalid int value: '{text}'")
    if not 1 <= int(text) <= LONGEST_SECONDS:
        raise refused("InvalidRequestFormat", f"timeLimitInSeconds must be between 1 and {LONGEST_SECONDS}.")
    return int(text)


def _account(world: World, name_or_id: str) -> StorageAccount:
    """A name is looked up in the whole subscription."""
    name = split_id(name_or_id)[2][-1] if name_or_id.startswith("/") else name_or_id
    for account in world.storage_accounts:
        if account.name.casefold() == name.casefold():
            return account
    raise resource_not_found("Microsoft.Storage/storageAccounts", "the subscription", name)


def _destination(
    world: World, account: StorageAccount, storage_path: str | None, machine: str, now: datetime
) -> tuple[str, str]:
    """Container and blob, from the URL or by Azure's own naming."""
    if storage_path is None:
        vm_id = shapes.id_of(world, world.machine(machine)).casefold().strip("/")
        return DEFAULT_CONTAINER, f"{vm_id}/{now:%Y/%m/%d}/packetcapture_{now:%H_%M_%S}_{now.microsecond // 1000}.cap"
    url = urlsplit(storage_path)
    container, _, blob = url.path.strip("/").partition("/")
    if url.scheme != "https" or url.hostname != f"{account.name}.blob.core.windows.net" or not (container and blob):
        raise refused(
            "InvalidStoragePath",
            f"The storage path {storage_path} is not of the form "
            f"https://{account.name}.blob.core.windows.net/CONTAINER/NAME.cap",
        )
    if not blob.endswith(".cap"):
        raise refused("InvalidStoragePath", f"The storage path {storage_path} must end in .cap")
    return container, blob


def _find(lab: LabDirectory, state: dict[str, Any], options: Namespace) -> Capture:
    watcher = require_watcher(lab.world, options.location)
    for capture in state.get("captures", []):
        if _is(capture, options):
            return capture  # type: ignore[no-any-return]
    raise resource_not_found(PACKET_CAPTURE, watcher.resource_group, f"{watcher.name}/{options.name}")


def _is(capture: Capture, options: Namespace) -> bool:
    return (capture["name"].casefold(), capture["location"].casefold()) == (
        options.name.casefold(),
        options.location.casefold(),
    )


def _capture_id(world: World, capture: Capture) -> str:
    watcher = require_watcher(world, capture["location"])
    return shapes.part_id(world, watcher, "packetCaptures", capture["name"])


def _shape(world: World, capture: Capture) -> dict[str, Any]:
    account = next(a for a in world.storage_accounts if a.name == capture["account"])
    return {
        "bytesToCapturePerPacket": 0,
        "etag": f'W/"{shapes.guid(capture["name"])}"',
        "filters": [],
        "id": _capture_id(world, capture),
        "name": capture["name"],
        "provisioningState": "Succeeded",
        "resourceGroup": require_watcher(world, capture["location"]).resource_group,
        "storageLocation": {
            "storageId": shapes.id_of(world, account),
            "storagePath": f"https://{account.name}.blob.core.windows.net/{capture['container']}/{capture['blob']}",
        },
        "target": shapes.id_of(world, world.machine(capture["machine"])),
        "targetType": "AzureVM",
        "timeLimitInSeconds": capture["time_limit"],
        "totalBytesPerSession": 1073741824,
    }
