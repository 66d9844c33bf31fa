"""The network watcher's connectivity check: what the walk says of a machine's connections, as Azure words it.

https://learn.microsoft.com/azure/network-watcher/connection-troubleshoot-overview
"""

from __future__ import annotations

from ipaddress import ip_address
from random import Random
from typing import TYPE_CHECKING, Any

from ghost import net
from ghost.lab.arm.api_messages import Response, bad_request
from ghost.lab.arm.diagnostics import NETWORK, WATCHER, find_watcher, interface_of, target_machine
from ghost.lab.arm.operations import RESULTS, accepted
from ghost.lab.arm.request_routing import Call, route
from ghost.lab.tenant import guid, id_of
from ghost.lab.world import Machine

if TYPE_CHECKING:
    from ghost.lab.passages import Passage
    from ghost.net import Hop, Interface

PROBES, PROBES_OF_NOTHING = 66, 30
DEFAULT_PORTS = {"Http": 80, "Https": 443, "Tcp": 80}
Body = dict[str, Any]


@route("POST", f"{WATCHER}/connectivityCheck")
def connectivity_check(call: Call) -> Response:
    vm, _, _ = _asked(call)
    if not vm.has_capture_agent:
        raise bad_request(
            f"The Network Watcher Agent extension is not installed on {id_of(call.world, vm)}. Install "
            f"NetworkWatcherAgent{vm.os} and try again.",
            "NetworkWatcherExtensionNotFound",
        )
    return accepted(call, "connectivity_check", find_watcher(call)["location"], NETWORK)


def _asked(call: Call) -> tuple[Machine, str, int | None]:
    """Return source, destination and port; None for ICMP."""
    body = call.request.json()
    source, destination = body.get("source") or {}, body.get("destination") or {}
    vm = target_machine(call.world, source.get("resourceId"))
    address = destination.get("address")
    if destination.get("resourceId"):
        address = interface_of(call.world, target_machine(call.world, destination["resourceId"])).address
    if not address:
        raise bad_request("The destination needs an address or a resourceId.", "InvalidRequestFormat")
    protocol = str(body.get("protocol") or "Tcp").capitalize()
    if protocol == "Icmp":
        return vm, str(address), None
    return vm, str(address), int(destination.get("port") or DEFAULT_PORTS.get(protocol, 80))


def _result(call: Call) -> Body:
    from ghost.lab.guest.station import Station

    vm, destination, port = _asked(call)
    nic = interface_of(call.world, vm)
    station = Station.of(call.world, vm, call.lab.clock.now())
    source: Body = {"type": "Source", "address": nic.address, "resourceId": id_of(call.world, vm)}
    if vm.power != "running":
        return _report([source], None, Random(0))  # noqa: S311 -- simulation, not secrecy
    addresses = station.resolve(destination)
    if not addresses:
        source["issues"] = [_issue("Outbound", "DnsResolution", [])]
        return _report([source], None, station.random)
    passage = station.passage(addresses[0], port, "Tcp" if port is not None else "Icmp")
    hops = [source, *_appliances(call, passage, nic), _end(call, addresses[0])]
    if passage.outcome == "accepted":
        loss = 1.0
        for link in (
            *passage.links(passage.forward, station.conditions),
            *passage.links(passage.backward, station.conditions),
        ):
            loss *= 1 - link.loss
        rtts = [station.rtt_of(passage) for _ in range(3)]
        return _report(hops, (rtts, 1 - loss), station.random)
    stop = passage.hop
    if stop is not None and (issue := _issue_of(stop)) is not None:
        hops[-1 if stop.direction == "Inbound" else 0]["issues"] = [issue]
    return _report(hops, None, station.random)


RESULTS["connectivity_check"] = _result


def _appliances(call: Call, passage: Passage, source: Interface) -> list[Body]:
    met = dict.fromkeys(each.interface for each in passage.forward if each.interface != source.id)
    ends = passage.forward[-1].flow.destination_address if passage.forward else ""
    found = (call.world.network.get(net.Interface, each) for each in met)
    return [
        {"type": "VirtualAppliance", "address": nic.address, "resourceId": _configuration(call, nic)}
        for nic in found
        if nic is not None and nic.address != ends
    ]


def _end(call: Call, address: str) -> Body:
    there = next(iter(call.world.network.interfaces_with(address)), None)
    if there is None:
        return {"type": "Destination" if ip_address(address).is_private else "Internet", "address": address}
    return {"type": "VirtualNetwork", "address": address, "resourceId": _configuration(call, there)}


def _configuration(call: Call, nic: Interface) -> str:
    body = call.world.documents.get(nic.id)
    configurations = body["properties"].get("ipConfigurations", []) if body is not None else []
    return str(configurations[0]["id"]) if configurations else nic.id


def _issue_of(stop: Hop) -> Body | None:
    """Return what Azure tells of a drop: it knows groups, routes and the source's own filter, not far guests."""
    match stop.kind:
        case "security_group":
            context = [
                {"key": "RuleName", "value": f"{'DefaultRule' if stop.is_default_rule else 'UserRule'}_{stop.rule}"}
            ]
            return _issue(stop.direction or "Outbound", "NetworkSecurityRule", context)
        case "route" if stop.fault == "route_none":
            return _issue("Outbound", "UserDefinedRoute", [{"key": "RouteType", "value": "User"}])
        case "guest" if stop.leg == "forward" and stop.direction == "Outbound":
            return _issue("Outbound", "GuestFirewall", [])
    return None


def _issue(origin: str, kind: str, context: list[dict[str, str]]) -> Body:
    return {"origin": origin, "severity": "Error", "type": kind, "context": context}


def _report(hops: list[Body], reached: tuple[list[float], float] | None, random: Random) -> Body:
    """Return the report; `reached`: round trips in milliseconds, and the share of probes that is lost."""
    ids = [guid(f"{hop['address']}/{number}/{random.random()}") for number, hop in enumerate(hops)]
    shown = []
    for number, hop in enumerate(hops):
        nexts, before = ids[number + 1 : number + 2], ids[number - 1 : number] if number else []
        kind = hops[number + 1]["type"] if nexts else hop["type"]
        times = {"roundTripTimeMin": 0, "roundTripTimeAvg": 0, "roundTripTimeMax": 0}
        if reached:
            low, mean, high = min(reached[0]), sum(reached[0]) / len(reached[0]), max(reached[0])
            times = {name: round(value) for name, value in zip(times, (low, mean, high), strict=True)}
        shown.append(
            {
                "type": hop["type"],
                "id": ids[number],
                "address": hop["address"],
                **({"resourceId": hop["resourceId"]} if "resourceId" in hop else {}),
                "nextHopIds": nexts,
                "links": [_link(each, kind, times if reached else {}) for each in nexts],
                "previousHopIds": before,
                "previousLinks": [_link(each, hop["type"], {}) for each in before],
                "issues": hop.get("issues", []),
            }
        )
    if reached is None:
        return {"hops": shown, "connectionStatus": "Unreachable", "probesSent": PROBES_OF_NOTHING,
                "probesFailed": PROBES_OF_NOTHING}  # fmt: skip
    failed = sum(random.random() < reached[1] for _ in range(PROBES))
    low, high = round(min(reached[0])), round(max(reached[0]))
    latencies = {
        "avgLatencyInMs": round(sum(reached[0]) / len(reached[0])),
        "minLatencyInMs": low,
        "maxLatencyInMs": high,
    }
    state = {"connectionStatus": "Reachable", **latencies} if failed < PROBES else {"connectionStatus": "Unreachable"}
    return {"hops": shown, **state, "probesSent": PROBES, "probesFailed": failed}


def _link(other: str, kind: str, times: Body) -> Body:
    link = "Internet" if kind == "Internet" else "VirtualNetwork"
    return {"nextHopId": other, "linkType": link, "properties": times, "context": {}, "issues": [], "resourceId": ""}
