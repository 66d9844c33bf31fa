"""Effective routes and groups of an interface, and the network watcher's next hop and IP flow checks.

https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces,
https://learn.microsoft.com/rest/api/network-watcher/
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

from ghost.lab import effective_configuration
from ghost.lab.arm import bodies, effective_bodies
from ghost.lab.arm.accounts import existing_group
from ghost.lab.arm.api_messages import ArmError, Response, bad_request, resource_not_found
from ghost.lab.arm.operations import RESULTS, accepted
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.world import Machine, NetworkInterface, Watcher, World
from ghost.net import Flow, evaluate_gates, select_route

NETWORK = "Microsoft.Network"
WATCHER = f"{IN_GROUP}/providers/{NETWORK}/networkWatchers/{{watcher}}"
_INTERFACE = f"{IN_GROUP}/providers/{{namespace}}/networkInterfaces/{{name}}"


@route("POST", f"{_INTERFACE}/effectiveRouteTable")
def effective_route_table(call: Call) -> Response:
    return _accepted(call, "effective_routes", _running_interface(call).resource_group)


@route("POST", f"{_INTERFACE}/effectiveNetworkSecurityGroups")
def effective_security_groups(call: Call) -> Response:
    return _accepted(call, "effective_groups", _running_interface(call).resource_group)


RESULTS["effective_routes"] = lambda call: effective_bodies.effective_routes(call.world, _running_interface(call))
RESULTS["effective_groups"] = lambda call: effective_bodies.effective_groups(call.world, _running_interface(call))


@route("POST", f"{WATCHER}/nextHop")
def next_hop(call: Call) -> Response:
    _next_hop(call)
    return _accepted(call, "next_hop", find_watcher(call).resource_group)


@route("POST", f"{WATCHER}/ipFlowVerify")
def ip_flow(call: Call) -> Response:
    _ip_flow(call)
    return _accepted(call, "ip_flow", find_watcher(call).resource_group)


def _next_hop(call: Call) -> dict[str, Any]:
    body = call.request.json()
    nic = call.world.interface(target_machine(call.world, body.get("targetResourceId")).interface)
    chosen = select_route(
        effective_configuration.effective_routes(call.world, nic), _address(body, "destinationIPAddress")
    )
    if chosen is None:
        return {"nextHopType": "None", "routeTableId": "System Route"}
    table = call.world.subnet_of(nic).route_table
    user = chosen.source == "User" and table is not None
    return {
        "nextHopType": chosen.next_hop_type,
        **({"nextHopIpAddress": chosen.next_hop_ip} if chosen.next_hop_ip else {}),
        "routeTableId": bodies.id_of(call.world, call.world.route_table(table or "")) if user else "System Route",
    }


def _ip_flow(call: Call) -> dict[str, Any]:
    body = call.request.json()
    nic = call.world.interface(target_machine(call.world, body.get("targetResourceId")).interface)
    near = _address(body, "localIPAddress"), _port(body, "localPort")
    far = _address(body, "remoteIPAddress"), _port(body, "remotePort")
    protocol, inbound = _text(body, "protocol"), _text(body, "direction").casefold() == "inbound"
    flow = Flow(protocol, *far, *near) if inbound else Flow(protocol, *near, *far)
    tags = effective_configuration.service_tags(call.world, nic)
    verdict = evaluate_gates(
        effective_configuration.gates(call.world, nic), flow, "Inbound" if inbound else "Outbound", tags
    )
    rule = verdict.rule
    kind = "defaultSecurityRules" if rule is None or rule.is_default else "securityRules"
    return {
        "access": "Allow" if verdict.allowed else "Deny",
        "ruleName": f"{kind}/{rule.name}" if rule is not None else f"{kind}/AllowAll",
    }


RESULTS["next_hop"] = _next_hop
RESULTS["ip_flow"] = _ip_flow


def find_watcher(call: Call) -> Watcher:
    """Return the watcher of the path. Raises `ArmError` if there is none."""
    group = existing_group(call.world, call["group"])
    for item in call.world.watchers:
        if (item.resource_group, item.name.casefold()) == (group, call["watcher"].casefold()):
            return item
    raise resource_not_found(f"{NETWORK}/networkWatchers", call["group"], call["watcher"])


def target_machine(world: World, resource_id: Any) -> Machine:
    """Return the machine of an id in a request's body. Raises `ArmError` if there is none."""
    for vm in world.machines:
        if bodies.id_of(world, vm).casefold() == str(resource_id).casefold():
            return vm
    raise invalid_reference(str(resource_id))


def invalid_reference(resource_id: str) -> ArmError:
    return bad_request(
        f"Resource {resource_id} referenced by the request was not found. Please make sure that the referenced "
        "resource exists, and that both resources are in the same region.",
        "InvalidResourceReference",
    )


def _running_interface(call: Call) -> NetworkInterface:
    _, nic = find_resource(Call(call.lab, call.request, {**call.values, "kind": "networkInterfaces"}))
    assert isinstance(nic, NetworkInterface)
    if not any(vm.interface == nic.name and vm.power == "running" for vm in call.world.machines):
        raise bad_request(
            f"Network interface {bodies.id_of(call.world, nic)} must be attached to a running virtual machine to get "
            "its effective routes or effective network security groups.",
            "NicMustBeAttachedToRunningVm",
        )
    return nic


def _accepted(call: Call, operation: str, group: str) -> Response:
    return accepted(call, operation, call.world.location_of(group), NETWORK)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise bad_request(f"Value for the property '{name}' is missing.")
    return value


def _address(body: dict[str, Any], name: str) -> str:
    text = _text(body, name)
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise bad_request(f"Value '{text}' for the property '{name}' is no address.") from error


def _port(body: dict[str, Any], name: str) -> int | None:
    text = _text(body, name)
    if text != "*" and not text.isdecimal():
        raise bad_request(f"Value '{text}' for the property '{name}' is no port.")
    return None if text == "*" else int(text)
