"""Metrics of Azure Monitor, one value a minute: the health of pools by the probes' own walk, translation, traffic.

https://learn.microsoft.com/azure/load-balancer/load-balancer-standard-diagnostics,
https://learn.microsoft.com/azure/nat-gateway/nat-metrics, https://learn.microsoft.com/rest/api/monitor/metrics/list
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from ghost import net
from ghost.lab.arm.api_messages import Response, json_response
from ghost.lab.arm.request_routing import IN_GROUP, Call, route
from ghost.lab.arm.resource_reads import find_resource
from ghost.lab.tenant import Body
from ghost.lab.world import World

MOST_POINTS = 1440
_INTERVAL = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?")
_DIMENSION = re.compile(r"(\w+) eq '([^']*)'", re.IGNORECASE)


@dataclass(frozen=True)
class Series:
    value: float
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Metric:
    shown: str
    unit: str
    aggregation: str
    """The primary one, which is answered if none is asked for."""
    measure: Callable[[World, Body], Iterator[Series]]
    dimension: str = ""


@route("GET", f"{IN_GROUP}/providers/{{namespace}}/{{kind}}/{{name}}/providers/Microsoft.Insights/metrics")
def metrics(call: Call) -> Response:
    body = find_resource(call)
    query = {name.casefold(): value for name, value in call.request.query.items()}
    known = METRICS.get(body["type"].casefold(), {})
    asked = [name.strip() for name in query.get("metricnames", "").split(",") if name.strip()] or list(known)[:1]
    names = {name.casefold(): name for name in known}
    unknown = next((name for name in asked if name.casefold() not in names), None)
    if unknown is not None and known:
        provider, kind = body["type"].split("/")
        message = f"Failed to find metric configuration for provider: {provider}, resource Type: {kind}, metric: "
        message += f"{unknown}, Valid metrics: {','.join(known)}"
        return json_response({"code": "BadRequest", "message": message}, 400)
    moments = _moments(query, call.lab.clock.now())
    split = {name.casefold(): value for name, value in _DIMENSION.findall(query.get("$filter", ""))}
    found = [_metric(call.world, body, names[each.casefold()], split, query, moments) for each in asked if known]
    content = {
        "cost": len(moments) - 1,
        "timespan": f"{moments[0]:%Y-%m-%dT%H:%M:%SZ}/{moments[-1]:%Y-%m-%dT%H:%M:%SZ}",
        "interval": query.get("interval", "PT1M"),
        "value": found,
        "namespace": body["type"],
        "resourceregion": body["location"],
    }
    empty = all(not each["timeseries"] for each in found)
    return json_response(content, note=f"a lab measures nothing of this of {body['type']}" if empty else "")


def _moments(query: dict[str, str], now: datetime) -> list[datetime]:
    """Return the beginnings of the intervals asked for, and the end; the last hour if none was asked for."""
    stated = _INTERVAL.fullmatch(query.get("interval", "PT1M"))
    hours, minutes = stated.groups() if stated else (None, None)
    step = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) or timedelta(minutes=1)
    first, last = now - timedelta(hours=1), now
    begin, _, end = unquote(query.get("timespan", "")).partition("/")
    with contextlib.suppress(ValueError):
        first, last = (_utc(datetime.fromisoformat(text)) for text in (begin, end))
    start = first.replace(second=0, microsecond=0)
    count = max(min(int((last - start) / step), MOST_POINTS), 0)
    return [start + step * number for number in range(count + 1)]


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _metric(
    world: World, body: Body, name: str, split: dict[str, str], query: dict[str, str], moments: list[datetime]
) -> Body:
    metric = METRICS[body["type"].casefold()][name]
    series = list(metric.measure(world, body))
    if metric.dimension.casefold() not in split and series:
        values = [each.value for each in series]
        joined = sum(values) / len(values) if metric.aggregation == "average" else sum(values)
        series = [Series(joined)]
    wanted = split.get(metric.dimension.casefold(), "*")
    series = [each for each in series if wanted == "*" or not each.dimensions or wanted == each.dimensions[0][1]]
    kinds = [word.strip().casefold() for word in query.get("aggregation", metric.aggregation).split(",")]
    return {
        "id": f"{body['id']}/providers/Microsoft.Insights/metrics/{name}",
        "type": "Microsoft.Insights/metrics",
        "name": {"value": name, "localizedValue": metric.shown},
        "displayDescription": metric.shown,
        "unit": metric.unit,
        "timeseries": [
            {
                "metadatavalues": [
                    {"name": {"value": key.casefold(), "localizedValue": key.casefold()}, "value": value}
                    for key, value in each.dimensions
                ],
                "data": [
                    {"timeStamp": f"{at:%Y-%m-%dT%H:%M:%SZ}", **{kind: round(each.value, 3) for kind in kinds}}
                    for at in moments[:-1]
                ],
            }
            for each in series
        ],
        "errorCode": "Success",
    }


# ------------------------------------------------------------------------------------------------- what is measured


def _probes(world: World, body: Body) -> Iterator[Series]:
    from ghost.net import LoadBalancer, health_of

    balancer = world.network.get(LoadBalancer, body["id"])
    for each in health_of(world.network, balancer) if balancer is not None else ():
        yield Series(100.0 if each.health == "in" else 0.0, (("BackendIPAddress", each.address),))


def _front_ends(world: World, body: Body) -> Iterator[Series]:
    """Yield the availability of the data path: 0 of a front end whose rules have no healthy member."""
    from ghost.net import LoadBalancer, health_of

    balancer = world.network.get(LoadBalancer, body["id"])
    health: dict[str, list[bool]] = {}
    for each in health_of(world.network, balancer) if balancer is not None else ():
        health.setdefault(each.front_end, []).append(each.health == "in")
    for front_end, members in health.items():
        yield Series(100.0 if any(members) else 0.0, (("FrontendIPAddress", net.name_of(front_end)),))


@dataclass(frozen=True)
class _Translation:
    """Connections a minute of a machine whose ports of translation are limited."""

    address: str
    attempted: float
    ports: float
    used: float

    @property
    def failed(self) -> float:
        return self.attempted * max(0.0, 1 - self.ports / self.used) if self.used else 0.0


def _translations(world: World, body: Body) -> Iterator[_Translation]:
    """Yield what a resource translates: of its pool's members, or of the machines in its subnets."""
    translated = {net.key(each) for each in _served_by(world, body)}
    for fault in world.faults:
        nic = world.network.get(net.Interface, _interface_of(world, fault.source))
        if fault.snat_ports is None or nic is None or net.key(nic.id) not in translated:
            continue
        rate = sum(each.connections_per_minute for each in world.traffic if each.client == fault.source)
        yield _Translation(nic.address, rate, fault.snat_ports, rate / 60 * fault.snat_hold_seconds)


def _served_by(world: World, body: Body) -> Iterator[str]:
    """Yield the ids of the interfaces behind a load balancer or a NAT gateway."""
    pools = [net.key(pool["id"]) for pool in body["properties"].get("backendAddressPools") or ()]
    for nic in world.network.all(net.Interface).values():
        _, subnet = world.network.subnet_of(nic)
        own = [net.key(pool) for each in nic.configurations for pool in each.pools]
        if net.key(subnet.nat_gateway or "") == net.key(body["id"]) or set(own) & set(pools):
            yield nic.id


def _interface_of(world: World, machine: str) -> str | None:
    from ghost.lab.tenant import interface_id

    found = next((vm for vm in world.machines if vm.name == machine), None)
    return interface_id(world, found) if found is not None else None


def _snat(world: World, body: Body) -> Iterator[Series]:
    for each in _translations(world, body):
        yield Series(each.attempted - each.failed, (("ConnectionState", "Attempted"),))
        yield Series(each.failed, (("ConnectionState", "Failed"),))


def _ports(used: bool) -> Callable[[World, Body], Iterator[Series]]:
    def measure(world: World, body: Body) -> Iterator[Series]:
        for each in _translations(world, body):
            yield Series(min(each.used, each.ports) if used else each.ports, (("BackendIPAddress", each.address),))

    return measure


def _drops(world: World, body: Body) -> Iterator[Series]:
    served = list(_served_by(world, body))
    if served:
        yield Series(sum(each.failed for each in _translations(world, body)))


def _bytes(incoming: bool) -> Callable[[World, Body], Iterator[Series]]:
    def measure(world: World, body: Body) -> Iterator[Series]:
        from ghost.lab.passages import ways_of

        total, network = 0.0, world.network
        for each in world.traffic:
            ends = (each.client, each.server)
            if body["name"] not in ends:
                continue
            machines = {vm.name: world.address_of(vm.name) for vm in world.machines}
            source, destination = machines.get(each.client, each.client), machines.get(each.server, each.server)
            flow = net.Flow(each.protocol, source, None, destination, each.port)
            sender = _interface_of(world, each.client)
            ways = ways_of(network, flow, world.conditions, source=sender)
            if any(way.outcome == "accepted" for way in ways):
                sent = each.request_bytes if (each.client == body["name"]) != incoming else each.response_bytes
                total += each.connections_per_minute * (sent + 400)
        yield Series(total)

    return measure


METRICS: dict[str, dict[str, Metric]] = {
    "microsoft.network/loadbalancers": {
        "VipAvailability": Metric("Data Path Availability", "Count", "average", _front_ends, "FrontendIPAddress"),
        "DipAvailability": Metric("Health Probe Status", "Count", "average", _probes, "BackendIPAddress"),
        "SnatConnectionCount": Metric("SNAT Connection Count", "Count", "total", _snat, "ConnectionState"),
        "AllocatedSnatPorts": Metric(
            "Allocated SNAT Ports", "Count", "average", _ports(used=False), "BackendIPAddress"
        ),
        "UsedSnatPorts": Metric("Used SNAT Ports", "Count", "average", _ports(used=True), "BackendIPAddress"),
    },
    "microsoft.network/natgateways": {
        "SNATConnectionCount": Metric("SNAT Connection Count", "Count", "total", _snat, "ConnectionState"),
        "PacketDropCount": Metric("Dropped Packets", "Count", "total", _drops),
    },
    "microsoft.compute/virtualmachines": {
        "Network In Total": Metric("Network In Total", "Bytes", "total", _bytes(incoming=True)),
        "Network Out Total": Metric("Network Out Total", "Bytes", "total", _bytes(incoming=False)),
    },
}
