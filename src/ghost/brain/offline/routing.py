"""Network peering, and the route from each end to the other."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from ghost.brain.offline.azure_reads import Read, Reading, ResourceId, az, query, resource_id
from ghost.brain.offline.case import Case, Cause, confirm, read, refute
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.hypothesis_catalogue import MISROUTED
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.tenant import Tenant, prefixes_around
from ghost.net import Route, ServiceTags, routes_from_effective_table, select_route
from ghost.text import one_line


def check_peering(case: Case, source: End, destination: End) -> Steps[ServiceTags]:
    """Judge the peering if the ends are in two networks, and determine `VirtualNetwork` for the source."""
    prefixes = (*source.network_prefixes, *destination.network_prefixes)
    if source.network is None or destination.network is None:
        case.not_verified("peering", "the virtual network of one end is not known, so no peering can be judged")
        return ServiceTags(tuple(dict.fromkeys(source.network_prefixes or destination.network_prefixes)))
    audit_ids = (*source.audit_ids, *destination.audit_ids)
    if source.network.same(destination.network):
        note = f"both ends are in {source.network.name}, so no peering is on the path"
        case.cover("peering", "cleared", audit_ids, note)
        return ServiceTags(tuple(dict.fromkeys(prefixes)))
    readings = yield from read(
        case,
        f"The ends are in two networks, {source.network.name} and {destination.network.name}; I check their peering.",
        _peering_read(source.network),
        _peering_read(destination.network),
    )
    sides = [(source.network, destination.network, readings[0]), (destination.network, source.network, readings[1])]
    problems = [problem for side in sides if (problem := _peering_problem(*side)) is not None]
    cited = [audit_id for answer in readings for audit_id in answer.audit_ids if answer.ok]
    unread = next((answer for answer in readings if not answer.ok), None)
    if problems:
        text = f"The peering does not carry traffic: {'; '.join(problem.text for problem in problems)}."
        advice = _peering_advice(source.network, destination.network)
        worst = next((problem for problem in problems if problem.peering), problems[0])
        case.blame(
            Cause(
                *("peering", MISROUTED, text, tuple(cited), advice),
                kind=worst.kind,
                resource=worst.network.text,
                rule=worst.peering,
            )
        )
        case.say("I judge the security rules as they will apply once the networks are peered.")
        return ServiceTags(tuple(dict.fromkeys(prefixes)))
    if unread is not None:
        case.not_verified("peering", f"the peerings could not be read: {unread.why}")
        return ServiceTags(tuple(dict.fromkeys(prefixes)))
    text = f"{source.network.name} and {destination.network.name} are peered, connected on both sides."
    case.state(text, *cited)
    case.cover("peering", "cleared", cited, text)
    return ServiceTags(tuple(dict.fromkeys(prefixes)))


def _peering_read(network: ResourceId) -> Read:
    words = ("network", "vnet", "peering", "list", "-g", network.group, "--vnet-name", network.name)
    return Read(az(*words, query=query("peerings")), f"Peerings of {network.name}.", (MISROUTED,))


@dataclass(frozen=True)
class _PeeringProblem:
    text: str
    kind: str
    """Empty without a peering: the networks may be connected by another way, as the routes will tell."""
    network: ResourceId
    peering: str = ""
    """Empty if the network has none."""


def _peering_problem(here: ResourceId, there: ResourceId, answer: Reading) -> _PeeringProblem | None:
    if not answer.ok:
        return None
    peering = next((row for row in answer.rows() if there.same(resource_id(row.get("remote")))), None)
    if peering is None:
        return _PeeringProblem(f"{here.name} has no peering with {there.name}", "", here)
    name, state = one_line(str(peering.get("name"))), str(peering.get("state"))
    if state.casefold() != "connected":
        text = f"peering {name} of {here.name} is {one_line(state)}"
        return _PeeringProblem(text, "peering_disconnected", here, name)
    if peering.get("access") is False:
        text = f"peering {name} of {here.name} does not allow access to the remote network"
        return _PeeringProblem(text, "peering_no_access", here, name)
    return None


def _peering_advice(here: ResourceId, there: ResourceId) -> tuple[str, ...]:
    return tuple(
        f"Peer {near.name} with {far.name}, or delete a disconnected peering and create it again: "
        + shlex.join(
            [
                *("az", "network", "vnet", "peering", "create", "-g", near.group, "--vnet-name", near.name),
                *("-n", f"{near.name}-to-{far.name}"[:80], "--remote-vnet", far.text, "--allow-vnet-access"),
            ]
        )
        for near, far in ((here, there), (there, here))
    )


# Routes


def check_routes(case: Case, tenant: Tenant, source: End, destination: End) -> Steps[None]:
    directions = [(source, destination), (destination, source)]
    able = [(end, other) for end, other in directions if end.interface and end.running is not False and other.address]
    readings = yield from read(
        case,
        "Next, the effective routes in both directions; the return path matters too.",
        *(_route_read(end.interface, other.address) for end, other in able if end.interface),
    )
    answers = {end.role: answer for (end, _), answer in zip(able, readings, strict=True)}
    cleared: list[str] = []
    cited: list[str] = []
    for end, other in directions:
        routes, audit_ids = yield from _routes(case, end, other, answers.get(end.role))
        if routes is None:
            continue
        route = select_route(routes, other.address)
        problem = _problem(route, end, other)
        if problem:
            _blame(case, route, problem, end, other, audit_ids)
        elif route is not None:
            route_text = yield from _onward(case, tenant, route, end, other)
            if route_text is not None:
                cleared.append(route_text)
                cited += audit_ids
    if len(cleared) == len([pair for pair in directions if pair[0].machine]) and cleared:
        case.state(f"Routing has no fault: {'; '.join(cleared)}.", *cited)
        case.cover("routes", "cleared", cited, "; ".join(cleared))
    _resolve(case)


def _route_read(interface: ResourceId, address: str) -> Read:
    words = ("network", "nic", "show-effective-route-table", "-g", interface.group, "-n", interface.name)
    page = az(*words, query=query("effective_routes_to", prefixes=prefixes_around(address)))
    return Read(
        az(*words, query=query("effective_routes")),
        f"Effective routes of the interface {interface.name}.",
        (MISROUTED,),
        (page,),
    )


def _routes(
    case: Case, end: End, other: End, answer: Reading | None
) -> Steps[tuple[Sequence[Route] | None, tuple[str, ...]]]:
    """Return effective routes, else those derived from the route table and the address spaces; None without either."""
    if end.machine is None:
        return None, ()
    if not other.address:
        case.not_verified("routes", f"the address of {other.label} is not known")
        return None, ()
    if answer is not None and answer.ok:
        try:
            return routes_from_effective_table(_decoded(answer.value)), answer.audit_ids
        except ValueError as error:
            case.say(f"The effective routes of {end.label} cannot be read: {error}.")
    elif answer is not None:
        case.say(f"The effective routes of {end.label} could not be read: {answer.why}.")
    if not end.complete:
        because = answer.why if answer is not None else "its interface is not known"
        case.not_verified("routes", f"the routes of {end.label} could not be read: {because}")
        return None, ()
    return (yield from _configured(case, end, other))


def _configured(case: Case, end: End, other: End) -> Steps[tuple[Sequence[Route] | None, tuple[str, ...]]]:
    system = [Route(prefix, "VnetLocal") for prefix in end.network_prefixes]
    if not (end.network and end.network.same(other.network)):
        system += [Route(prefix, "VNetPeering") for prefix in other.network_prefixes]
    if end.route_table is None:
        return system, end.audit_ids
    words = ("network", "route-table", "show", "-g", end.route_table.group, "-n", end.route_table.name)
    (table,) = yield from read(
        case,
        f"I read the route table {end.route_table.name} as it is configured instead.",
        Read(az(*words, query=query("configured_routes")), f"Routes of {end.route_table.name}.", (MISROUTED,)),
    )
    if not table.ok:
        case.not_verified("routes", f"the routes of {end.label} could not be read: {table.why}")
        return None, ()
    rows = [json.loads(row) if isinstance(row, str) else row for row in table.row().get("routes") or ()]
    user = [
        Route(
            str(row.get("addressPrefix")),
            str(row.get("nextHopType") or "None"),
            row.get("nextHopIpAddress"),
            "User",
            name=str(row.get("name") or ""),
        )
        for row in rows
    ]
    return [*user, *system], (*table.audit_ids, *end.audit_ids)


def _decoded(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("value"), list):
        return {"value": [json.loads(row) if isinstance(row, str) else row for row in value["value"]]}
    return value


def _problem(route: Route | None, end: End, other: End) -> str | None:
    """Return why packets do not arrive by this route; None if they may."""
    if route is None:
        return f"{end.label} has no active route to {other.address}"
    hop = route.next_hop_type.casefold()
    if hop == "none":
        return f"{end.label} drops packets to {other.address}: {_route_name(route)} has the next hop None"
    if hop == "internet" and ip_address(other.address).is_private:
        return f"{end.label} sends packets to {other.address}, a private address, to the internet: {_route_name(route)}"
    return None


def _route_name(route: Route) -> str:
    name = f" {one_line(route.name)}" if route.name else ""
    return f"{route.source.lower()} route{name} {route.prefix}"


def _blame(case: Case, route: Route | None, problem: str, end: End, other: End, audit_ids: tuple[str, ...]) -> None:
    by_peering = any(cause.layer == "peering" for cause in case.causes)
    if by_peering and (route is None or route.source.casefold() == "default"):
        case.state(f"{problem}, as expected without a peering.", *audit_ids)
        case.not_verified("routes", "without the peering there is no route to judge", audit_ids)
        case.causes = [
            replace(cause, audit_ids=(*cause.audit_ids, *audit_ids), **_fault(route, end))
            if cause.layer == "peering" and not cause.kind
            else cause
            for cause in case.causes
        ]
        return
    advice = _route_advice(route, end, other)
    case.blame(Cause("routes", MISROUTED, f"{problem}.", audit_ids, advice, **_fault(route, end)))


def _fault(route: Route | None, end: End) -> dict[str, Any]:
    resource = end.interface.text if end.interface else end.label
    if route is None:
        return {"kind": "route_missing", "resource": resource}
    kind = "route_none" if route.next_hop_type.casefold() == "none" else "address_unused"
    return {"kind": kind, "resource": resource, "rule": route.name or route.prefix}


def _route_advice(route: Route | None, end: End, other: End) -> tuple[str, ...]:
    if route is None or route.source.casefold() != "user" or not route.name or end.route_table is None:
        return (f"Give the subnet of {end.label} a route to {other.address}.",)
    where = ["-g", end.route_table.group, "--route-table-name", end.route_table.name, "-n", route.name]
    delete = shlex.join(["az", "network", "route-table", "route", "delete", *where])
    mend = shlex.join(["az", "network", "route-table", "route", "update", *where, "--next-hop-type", "VnetLocal"])
    return (
        f"If the route {one_line(route.name)} is not needed, remove it, so that Azure's own route counts: {delete}",
        f"Or give it a next hop that delivers: {mend}",
    )


def _onward(case: Case, tenant: Tenant, route: Route, end: End, other: End) -> Steps[str | None]:
    """Return what the selected route does if it delivers; None, with a note, if that is not known."""
    hop = route.next_hop_type.casefold()
    route_text = f"{end.label} reaches {other.address} by the {_route_name(route)} ({route.next_hop_type})"
    if hop == "virtualappliance":
        return (yield from _through_appliance(case, tenant, route, route_text))
    if hop == "virtualnetworkgateway" and other.machine is not None:
        case.not_verified(
            "routes",
            f"{route_text}: a gateway, though the destination is in the tenant; what is behind it is not visible",
        )
        return None
    return route_text


def _through_appliance(case: Case, tenant: Tenant, route: Route, route_text: str) -> Steps[str | None]:
    """Judge an appliance: it delivers only if running and forwarding; its own rules are not visible."""
    address = route.next_hop_ip or "an address not given"
    machine = next(iter(tenant.machines_at(address)), None)
    if machine is None:
        case.not_verified(
            "routes", f"{route_text} through the appliance {one_line(address)}, which is not a visible machine"
        )
        return None
    (answer,) = yield from read(
        case,
        f"That route leads through the appliance {machine.name}, so I check that it forwards.",
        Read(
            az("network", "nic", "list", "-g", machine.group, query=query("forwarding_at", address=address)),
            f"Whether the interface of {machine.name} forwards packets.",
            (MISROUTED,),
        ),
    )
    row = next(iter(answer.rows()), {})
    stopped = machine.power and not machine.power.lower().endswith("running")
    if stopped or (answer.ok and row.get("forwarding") is False):
        why = f"is not running ({one_line(machine.power)})" if stopped else "has IP forwarding switched off"
        cited = answer.audit_ids if answer.ok else tenant.audit_ids
        start = shlex.join(["az", "vm", "start", "-g", machine.group, "-n", machine.name])
        forward = shlex.join(
            [
                "az",
                "network",
                "nic",
                "update",
                "-g",
                machine.group,
                "-n",
                one_line(str(row.get("name"))),
                "--ip-forwarding",
            ]
        )
        advice = f"Start the appliance: {start}" if stopped else f"Switch forwarding on: {forward}"
        text = f"{route_text} through the appliance {machine.name}, which {why}."
        audit_ids = (*tenant.audit_ids, *cited) if stopped else cited
        fault = ("machine_stopped", machine.name) if stopped else ("ip_forwarding_off", str(row.get("name")))
        case.blame(Cause("routes", MISROUTED, text, audit_ids, (advice,), kind=fault[0], resource=fault[1]))
        return None
    case.not_verified(
        "routes", f"{route_text} through the appliance {machine.name}; its own rules are not visible to Azure"
    )
    return None


def _resolve(case: Case) -> None:
    causes = [cause for cause in case.causes if cause.hypothesis == MISROUTED]
    layers = [case.layers.get(layer) for layer in ("routes", "peering")]
    if causes:
        confirm(case, MISROUTED, [audit_id for cause in causes for audit_id in cause.audit_ids])
    elif all(layer is not None and layer.status == "cleared" for layer in layers):
        refute(case, MISROUTED, [audit_id for layer in layers if layer for audit_id in layer.audit_ids])
