"""Effective routes and groups of an interface, and the network watcher's next hop and IP flow checks.

What a walk needs is imported when it is asked for (`net.X`): the lab's az starts by the hundred without it.

https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces,
https://learn.microsoft.com/rest/api/network-watcher/
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from ghost import net
from ghost.lab.arm.api_messages import ArmError, Response, bad_request
from ghost.lab.arm.operations import RESULTS, accepted
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.tenant import Body, folded, id_of, interface_id
from ghost.lab.world import Machine, World
from ghost.net import Flow, evaluate_gates, select_route

if TYPE_CHECKING:
    from ghost.net import Direction, Interface

NETWORK = "Microsoft.Network"
WATCHER = f"{IN_GROUP}/providers/{NETWORK}/networkWatchers/{{watcher}}"
_INTERFACE = f"{IN_GROUP}/providers/{{namespace}}/networkInterfaces/{{name}}"


@route("POST", f"{_INTERFACE}/effectiveRouteTable")
def effective_route_table(call: Call) -> Response:
    return _accepted(call, "effective_routes", _running_interface(call))


@route("POST", f"{_INTERFACE}/effectiveNetworkSecurityGroups")
def effective_security_groups(call: Call) -> Response:
    return _accepted(call, "effective_groups", _running_interface(call))


def _effective_routes(call: Call) -> dict[str, Any]:
    from ghost.lab.tenant.effective_bodies import effective_routes

    return effective_routes(call.world.network, _interface(call))


def _effective_groups(call: Call) -> dict[str, Any]:
    from ghost.lab.tenant.effective_bodies import effective_groups

    return effective_groups(call.world, call.world.network, _interface(call))


RESULTS["effective_routes"] = _effective_routes
RESULTS["effective_groups"] = _effective_groups


@route("POST", f"{WATCHER}/nextHop")
def next_hop(call: Call) -> Response:
    _next_hop(call)
    return _accepted(call, "next_hop", find_watcher(call))


@route("POST", f"{WATCHER}/ipFlowVerify")
def ip_flow(call: Call) -> Response:
    _ip_flow(call)
    return _accepted(call, "ip_flow", find_watcher(call))


_NEXT_HOPS = {"VnetLocal": "VirtualNetwork"}
"""What next hop calls otherwise than effective routes."""


def _next_hop(call: Call) -> dict[str, Any]:
    body = call.request.json()
    network = call.world.network
    nic = interface_of(call.world, target_machine(call.world, body.get("targetResourceId")))
    chosen = select_route(network.one(net.EffectiveRoutes, nic.id).routes, _address(body, "destinationIPAddress"))
    if chosen is None:
        return {"nextHopType": "None", "routeTableId": "System Route"}
    _, subnet = network.subnet_of(nic)
    return {
        "nextHopType": _NEXT_HOPS.get(chosen.next_hop_type, chosen.next_hop_type),
        **({"nextHopIpAddress": chosen.next_hop_ip} if chosen.next_hop_ip else {}),
        "routeTableId": (subnet.route_table if chosen.source == "User" else None) or "System Route",
    }


def _ip_flow(call: Call) -> dict[str, Any]:
    body = call.request.json()
    nic = interface_of(call.world, target_machine(call.world, body.get("targetResourceId")))
    near = _address(body, "localIPAddress"), _port(body, "localPort")
    far = _address(body, "remoteIPAddress"), _port(body, "remotePort")
    protocol, inbound = _text(body, "protocol"), _text(body, "direction").casefold() == "inbound"
    flow = Flow(protocol, *far, *near) if inbound else Flow(protocol, *near, *far)
    direction: Direction = "Inbound" if inbound else "Outbound"
    for stated in call.world.azure_says:
        if stated.concerns(nic.name, net.name_of(nic.machine or ""), direction, flow):
            return {"access": stated.access, "ruleName": stated.rule, "ruleId": ""}
    ruled = next((hop for hop in net.gates(call.world.network, nic, flow, direction) if hop.kind == "admin_rule"), None)
    if ruled is not None and ruled.stops:
        return {"access": "Deny", "ruleName": f"securityAdminRules/{ruled.rule}", "ruleId": ""}
    met = net.groups_of(call.world.network, nic)
    verdict = evaluate_gates(met.groups, flow, direction, met.tags)
    rule = verdict.rule
    kind = "defaultSecurityRules" if rule is None or rule.is_default else "securityRules"
    return {
        "access": "Allow" if verdict.allowed else "Deny",
        "ruleName": f"{kind}/{rule.name}" if rule is not None else f"{kind}/AllowAll",
        "ruleId": "",
    }


RESULTS["next_hop"] = _next_hop
RESULTS["ip_flow"] = _ip_flow


def find_watcher(call: Call) -> Body:
    """Return the watcher of the path. Raises `ArmError` if there is none."""
    values = {**call.values, "namespace": NETWORK, "name": call["watcher"]}
    return find_resource(Call(call.lab, call.request, values), "networkWatchers")


def target_machine(world: World, resource_id: Any) -> Machine:
    """Return the machine of an id in a request's body. Raises `ArmError` if there is none."""
    for vm in world.machines:
        if folded(id_of(world, vm)) == folded(str(resource_id)):
            return vm
    raise invalid_reference(str(resource_id))


def interface_of(world: World, vm: Machine) -> Interface:
    return world.network.one(net.Interface, interface_id(world, vm))


def invalid_reference(resource_id: str) -> ArmError:
    return bad_request(
        f"Resource {resource_id} referenced by the request was not found. Please make sure that the referenced "
        "resource exists, and that both resources are in the same region.",
        "InvalidResourceReference",
    )


def _running_interface(call: Call) -> Body:
    body = find_resource(call, "networkInterfaces")
    owner = folded(body["properties"].get("virtualMachine", {}).get("id", ""))
    if not any(folded(id_of(call.world, vm)) == owner and vm.power == "running" for vm in call.world.machines):
        raise bad_request(
            f"Network interface {body['id']} must be attached to a running virtual machine to get "
            "its effective routes or effective network security groups.",
            "NicMustBeAttachedToRunningVm",
        )
    return body


def _interface(call: Call) -> Interface:
    return call.world.network.one(net.Interface, _running_interface(call)["id"])


def _accepted(call: Call, operation: str, about: Body) -> Response:
    return accepted(call, operation, about["location"], NETWORK)


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
