"""The packet capture API: create, list, query, stop and delete.

https://learn.microsoft.com/rest/api/network-watcher/packet-captures
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ghost.lab.arm import capture_filters, capture_life
from ghost.lab.arm.api_messages import ArmError, Response, bad_request, resource_not_found
from ghost.lab.arm.blob_store import containers
from ghost.lab.arm.capture_life import DEFAULT_CONTAINER, LARGEST_BYTES, LONGEST_SECONDS, START_DELAY, Capture
from ghost.lab.arm.diagnostics import NETWORK, WATCHER, find_watcher, invalid_reference
from ghost.lab.arm.operations import created, ended
from ghost.lab.arm.request_routing import Call, route
from ghost.lab.arm.storage_firewall import admits_subnet
from ghost.lab.directory import LabDirectory
from ghost.lab.tenant import etag_of, id_of
from ghost.lab.world import Machine, StorageAccount, World

KIND = f"{NETWORK}/networkWatchers/packetCaptures"
_CAPTURE = f"{WATCHER}/packetCaptures/{{capture}}"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?")
_Given = TypeVar("_Given", dict[str, Any], list[Any], str)
_FILTER_FIELDS = ("protocol", "localIPAddress", "localPort", "remoteIPAddress", "remotePort")


@route("GET", f"{WATCHER}/packetCaptures")
def list_captures(call: Call) -> dict[str, Any]:
    location = _location(call)
    known = capture_life.settled(call.lab).get("captures", [])
    return {"value": [_body(call.world, capture) for capture in known if capture["location"] == location]}


@route("GET", _CAPTURE)
def show(call: Call) -> dict[str, Any]:
    return _body(call.world, _find(call, call.lab.state()))


@route("POST", f"{_CAPTURE}/queryStatus")
def query_status(call: Call) -> dict[str, Any]:
    capture = _find(call, capture_life.settled(call.lab))
    state = capture_life.status(capture, call.lab.clock.now())
    return {
        "name": capture["name"],
        "id": _capture_id(call.world, capture),
        "captureStartTime": f"{capture_life.starts(capture):%Y-%m-%dT%H:%M:%S.%f}0Z",
        "packetCaptureStatus": state,
        **({"stopReason": capture_life.stop_reason(capture)} if state == "Stopped" else {}),
        "packetCaptureError": [capture["error"]] if capture["error"] else [],
    }


@route("POST", f"{_CAPTURE}/stop")
def stop(call: Call) -> Response:
    with call.lab.changing() as state:
        now = call.lab.clock.now()
        capture_life.stop(_find(call, state), now)
        capture_life.settle(state, now)
    return ended(call, "stop", _location(call), NETWORK)


@route("DELETE", _CAPTURE)
def delete(call: Call) -> Response:
    """Delete a capture, stopping a running one; its blob stays. Deleting a missing one succeeds, as in ARM."""
    location = _location(call)
    with call.lab.changing() as state:
        now = call.lab.clock.now()
        deleted = [capture for capture in state.get("captures", []) if _is(capture, call["capture"], location)]
        for capture in deleted:
            capture_life.stop(capture, now)
        capture_life.settle(state, now)
        state["captures"] = [capture for capture in state.get("captures", []) if capture not in deleted]
    return ended(call, "deletion", location, NETWORK) if deleted else Response(204)


@route("PUT", _CAPTURE)
def create(call: Call) -> Response:
    location = _location(call)
    if _NAME.fullmatch(call["capture"]) is None:
        raise bad_request(f"Resource name {call['capture']!r} is invalid.", "InvalidResourceName")
    properties = call.request.json().get("properties")
    if not isinstance(properties, dict):
        raise bad_request("The property 'properties' is required.", "InvalidRequestContent")
    vm = _target(call.world, properties, location)
    capture = {
        "name": call["capture"],
        "location": location,
        "machine": vm.name,
        "target": properties["target"],
        "target_type": properties.get("targetType") or "AzureVM",
        "scope": properties.get("scope"),
        "starts": (call.lab.clock.now() + START_DELAY).isoformat(),
        "time_limit": _number(properties, "timeLimitInSeconds", 1, LONGEST_SECONDS, LONGEST_SECONDS),
        "session_bytes": _number(properties, "totalBytesPerSession", 0, 4294967295, LARGEST_BYTES),
        "packet_bytes": _number(properties, "bytesToCapturePerPacket", 0, 4294967295, 0),
        "filters": _filters(properties),
        **_storage(call.lab, properties, vm, call.lab.clock.now()),
        "stopped": None,
        "full_after": None,
        "uploaded": False,
    }
    _check_agent(call.world, vm)
    capture["full_after"] = capture_life.seconds_until_full(call.world, capture)
    with call.lab.changing() as state:
        capture_life.settle(state, call.lab.clock.now())
        captures = state.setdefault("captures", [])
        if any(_is(known, capture["name"], location) for known in captures):
            message = f"A packet capture named {capture['name']} already exists."
            raise ArmError(409, "PacketCaptureAlreadyExists", message)
        limit = call.lab.tenant.captures_per_region
        if limit is not None and sum(each["location"] == location for each in captures) >= limit:
            message = f"Cannot create more than {limit} packet captures for this subscription in this region."
            raise ArmError(400, "PacketCaptureCountLimitReached", message, by_provider=True)
        captures.append(capture)
    return created(call, _body(call.world, capture), location, NETWORK)


def _target(world: World, properties: dict[str, Any], location: str) -> Machine:
    target = str(properties.get("target"))
    if _optional_object(properties, "targetType", str).casefold() == "azurevmss":
        return _target_instance(world, target, _optional_object(properties, "scope", dict), location)
    for vm in world.single_machines():
        known = (id_of(world, vm).casefold(), world.location_of(vm.resource_group))
        if known == (target.casefold(), location):
            return vm
    raise invalid_reference(target)


def _target_instance(world: World, target: str, scope: dict[str, Any], location: str) -> Machine:
    """Return the captured instance. Azure captures on all instances in scope; a lab supports one."""
    for item in world.scale_sets:
        known = (
            world.documents.id_of(f"virtualMachineScaleSets/{item.name}").casefold(),
            world.location_of(item.resource_group),
        )
        if known == (target.casefold(), location):
            numbers = _optional_object(scope, "include", list) or range(len(item.machines))
            excluded = [str(number) for number in _optional_object(scope, "exclude", list)]
            instances = [str(number) for number in numbers if str(number) not in excluded]
            if len(instances) != 1:
                raise bad_request("A lab captures on one instance of a scale set at a time.", "NotSimulated")
            if not instances[0].isdecimal() or int(instances[0]) >= len(item.machines):
                raise invalid_reference(f"{target}/virtualMachines/{instances[0]}")
            return world.machine(item.machines[int(instances[0])])
    raise invalid_reference(target)


def _check_agent(world: World, vm: Machine) -> None:
    if vm.power != "running":
        message = f"The virtual machine {id_of(world, vm)} is not running."
        raise ArmError(409, "VMNotRunning", message)
    if not vm.has_capture_agent:
        raise bad_request(
            f"The Network Watcher Agent extension is not installed on {id_of(world, vm)}. Install "
            f"NetworkWatcherAgent{vm.os} and try again.",
            "NetworkWatcherExtensionNotFound",
        )


def _number(properties: dict[str, Any], name: str, minimum: int, maximum: int, default: int) -> int:
    value = properties.get(name, default)
    if type(value) is not int or not minimum <= value <= maximum:
        raise bad_request(f"{name} must be between {minimum} and {maximum}.")
    return value


def _optional_object(properties: dict[str, Any], name: str, kind: type[_Given]) -> _Given:
    """Return an optional object of a request; empty if absent. Raises `ArmError` for another type."""
    value = properties.get(name) or kind()
    if not isinstance(value, kind):
        raise bad_request(f"The property '{name}' is not valid.", "InvalidRequestContent")
    return value


def _filters(properties: dict[str, Any]) -> list[list[str]]:
    filters = []
    for item in _optional_object(properties, "filters", list):
        if not isinstance(item, dict):
            raise bad_request(f"The packet capture filter {item} is not valid: an object is expected")
        values = tuple(str(item.get(name) or "") for name in _FILTER_FIELDS)
        try:
            capture_filters.check((values[0], values[1], values[2], values[3], values[4]))
        except ValueError as error:
            raise bad_request(f"The packet capture filter {item} is not valid: {error}") from error
        filters.append(list(values))
    return filters


def _storage(lab: LabDirectory, properties: dict[str, Any], vm: Machine, now: datetime) -> dict[str, Any]:
    """Return account, container and blob, by URL or Azure's naming; or a file on the VM."""
    world, place = lab.world, _optional_object(properties, "storageLocation", dict)
    storage_id, url, file = place.get("storageId"), place.get("storagePath"), place.get("filePath")
    if not storage_id and not file:
        raise bad_request("storageLocation needs a storageId or a filePath.")
    if not storage_id:
        return {"account": None, "container": None, "blob": None, "file": file, "error": None}
    account = _account(world, str(storage_id))
    container, blob = _destination(world, account, url, vm, now)
    body = world.documents.get(world.documents.id_of(f"storageAccounts/{account.name}"))
    assert body is not None
    nic = world.interface_of(vm.name)
    home = world.virtual_network(nic.network)
    subnet = world.resource_id(f"{NETWORK}/virtualNetworks/subnets", home.resource_group, home.name, nic.subnet)
    exists = container in (*containers(lab, account), DEFAULT_CONTAINER)
    error = None if exists and admits_subnet(body, subnet) else "StorageFailed"
    return {"account": account.name, "container": container, "blob": blob, "file": file, "error": error}


def _account(world: World, storage_id: str) -> StorageAccount:
    for account in world.storage_accounts:
        if world.documents.id_of(f"storageAccounts/{account.name}").casefold() == storage_id.casefold():
            return account
    raise invalid_reference(storage_id)


def _destination(
    world: World, account: StorageAccount, storage_path: Any, vm: Machine, now: datetime
) -> tuple[str, str]:
    if not storage_path:
        vm_id = id_of(world, vm).casefold().strip("/")
        moment = f"{now:%H_%M_%S}_{now.microsecond // 1000:03}"
        return DEFAULT_CONTAINER, f"{vm_id}/{now:%Y/%m/%d}/packetcapture_{moment}.cap"
    url = urlsplit(str(storage_path))
    container, _, blob = url.path.strip("/").partition("/")
    host = f"{account.name}.blob."
    if url.scheme != "https" or not (url.hostname or "").startswith(host) or not (container and blob):
        form = f"https://{account.name}.blob.core.windows.net/CONTAINER/NAME.cap"
        raise bad_request(f"The storage path {storage_path} is not of the form {form}", "InvalidStoragePath")
    if not blob.endswith(".cap"):
        raise bad_request(f"The storage path {storage_path} must end in .cap", "InvalidStoragePath")
    return container, blob


def _find(call: Call, state: dict[str, Any]) -> Capture:
    watcher, location = find_watcher(call), _location(call)
    for capture in state.get("captures", []):
        if _is(capture, call["capture"], location):
            return capture  # type: ignore[no-any-return]
    place = f"{watcher['name']}/packetCaptures/{call['capture']}"
    raise resource_not_found(f"{NETWORK}/networkWatchers", call["group"], place)


def _location(call: Call) -> str:
    """Return the watcher's location. Raises `ArmError` if there is none."""
    location: str = find_watcher(call)["location"]
    return location


def _is(capture: Capture, name: str, location: str) -> bool:
    return (capture["name"].casefold(), capture["location"]) == (name.casefold(), location)


def _capture_id(world: World, capture: Capture) -> str:
    watchers = world.documents.of_type("Microsoft.Network/networkWatchers")
    watcher = next(body["id"] for body in watchers if body["location"] == capture["location"])
    return f"{watcher}/packetCaptures/{capture['name']}"


def _body(world: World, capture: Capture) -> dict[str, Any]:
    own_id = _capture_id(world, capture)
    storage: dict[str, Any] = {}
    if capture["account"] is not None:
        account = world.storage_account(capture["account"])
        url = f"https://{account.name}.blob.core.windows.net/{capture['container']}/{capture['blob']}"
        storage |= {"storageId": world.documents.id_of(f"storageAccounts/{account.name}"), "storagePath": url}
    else:
        storage["storagePath"] = ""
    if capture["file"]:
        storage["filePath"] = capture["file"]
    fields = [dict(zip(_FILTER_FIELDS, values, strict=True)) for values in capture["filters"]]
    return {
        "name": capture["name"],
        "id": own_id,
        "etag": etag_of(own_id),
        "properties": {
            "provisioningState": "Succeeded",
            "target": capture["target"],
            "scope": {"include": [], "exclude": [], **(capture["scope"] or {})},
            "targetType": capture["target_type"],
            "bytesToCapturePerPacket": capture["packet_bytes"],
            "totalBytesPerSession": capture["session_bytes"],
            "timeLimitInSeconds": capture["time_limit"],
            "storageLocation": storage,
            "filters": fields,
        },
        "type": KIND,
    }
