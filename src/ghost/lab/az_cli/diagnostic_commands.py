"""Connectivity checks, free addresses, service tags, metrics, and flow logs."""

from __future__ import annotations

import re
from argparse import Namespace
from datetime import datetime, timedelta
from typing import Any

from ghost.lab.az_cli.cli_errors import AzError
from ghost.lab.az_cli.client import ArmClient
from ghost.lab.az_cli.command_table import GROUP, IN_GROUP, NAME, command, split_id
from ghost.lab.az_cli.output_shape import flattened, with_groups
from ghost.lab.directory import LabDirectory

WATCHER = "Microsoft.Network/networkWatchers"
VM = "Microsoft.Compute/virtualMachines"
VNET = "Microsoft.Network/virtualNetworks"
_OFFSET = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?", re.IGNORECASE)


@command(
    "network watcher test-connectivity",
    IN_GROUP,
    *("--source-resource !", "--source-port", "--dest-resource", "--dest-address", "--dest-port"),
    *("--protocol", "--method", "--headers *", "--valid-status-codes *", "--no-wait ?"),
)
def test_connectivity(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    source = _machine(client, options.source_resource, options.resource_group)
    destination: dict[str, Any] = {"address": options.dest_address, "port": options.dest_port}
    if options.dest_resource is not None:
        destination["resourceId"] = _machine(client, options.dest_resource, options.resource_group)
    if destination["port"] is not None:
        destination["port"] = int(destination["port"])
    body: dict[str, Any] = {
        "source": {"resourceId": source},
        "destination": {name: value for name, value in destination.items() if value is not None},
    }
    if options.protocol is not None:
        body["protocol"] = options.protocol
    location = client.get(source)["location"]
    return flattened(client.post(f"{_watcher(client, location)}/connectivityCheck", body))


@command("network vnet list-available-ips", GROUP, NAME, ids=("name",))
def vnet_list_available_ips(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = client.path(options.resource_group, VNET, options.name)
    first = client.get(path)["properties"]["addressSpace"]["addressPrefixes"][0]
    return _free(client, path, first)


@command("network vnet subnet list-available-ips", GROUP, "--vnet-name !", NAME, ids=("vnet_name", "name"))
def subnet_list_available_ips(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = client.path(options.resource_group, VNET, options.vnet_name)
    properties = client.get(f"{path}/subnets/{options.name}")["properties"]
    return _free(client, path, (properties.get("addressPrefixes") or [properties.get("addressPrefix")])[0])


def _free(client: ArmClient, network: str, prefix: str) -> Any:
    answer = client.get(f"{network}/CheckIPAddressAvailability", ipAddress=prefix.partition("/")[0])
    return answer.get("availableIPAddresses", [])


@command("network list-service-tags", "--location -l !")
def list_service_tags(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return client.get(f"{client.scope()}/providers/Microsoft.Network/locations/{options.location}/serviceTags")


@command(
    "monitor metrics list",
    IN_GROUP,
    *("--resource !", "--resource-type", "--resource-namespace", "--resource-parent", "--metrics --metric *"),
    *("--aggregation *", "--interval", "--offset", "--start-time", "--end-time", "--filter", "--dimension *"),
    *("--namespace", "--orderby", "--top", "--metadata ?"),
)
def metrics_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    path = options.resource
    if not path.startswith("/"):
        if options.resource_group is None or options.resource_type is None:
            raise AzError("usage error: --resource ID | --resource NAME --resource-group NAME --resource-type TYPE")
        namespace = options.resource_namespace
        kind = options.resource_type if namespace is None else f"{namespace}/{options.resource_type}"
        path = client.path(options.resource_group, kind, path)
    begin, end = _span(lab.clock.now(), options, "1h")
    filters = options.filter or " and ".join(f"{name} eq '*'" for name in options.dimension or ())
    query = {
        "timespan": f"{begin.isoformat()}/{end.isoformat()}",
        "interval": f"PT{(options.interval or '1m').upper().removeprefix('PT')}",
        **({"metricnames": ",".join(options.metrics)} if options.metrics else {}),
        **({"aggregation": ",".join(options.aggregation)} if options.aggregation else {}),
        **({"$filter": filters} if filters else {}),
    }
    return with_groups(client.get(f"{path}/providers/Microsoft.Insights/metrics", **query))


@command(
    "monitor activity-log list",
    IN_GROUP,
    *("--resource-id", "--offset", "--start-time", "--end-time", "--max-events", "--status"),
    *("--correlation-id", "--namespace", "--caller"),
)
def activity_log_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    begin, end = _span(lab.clock.now(), options, "6h")
    filters = f"eventTimestamp ge {begin.isoformat()} and eventTimestamp le {end.isoformat()}"
    places = {
        "correlationId": options.correlation_id,
        "resourceGroupName": options.resource_group,
        "resourceId": options.resource_id,
        "resourceProvider": options.namespace,
    }
    chosen = next(((name, value) for name, value in places.items() if value is not None), None)
    for name, value in filter(None, (chosen, ("caller", options.caller), ("status", options.status))):
        filters += f" and {name} eq '{value}'" if value is not None else ""
    path = f"{client.scope()}/providers/Microsoft.Insights/eventtypes/management/values"
    found = client.list(path, **{"$filter": filters})[: int(options.max_events or 50)]
    return with_groups([{name: value for name, value in event.items() if name != "channels"} for event in found])


def _span(now: datetime, options: Namespace, default: str) -> tuple[datetime, datetime]:
    days, hours, minutes = (_OFFSET.fullmatch(options.offset or default) or _OFFSET.fullmatch(default)).groups()  # type: ignore[union-attr]
    offset = timedelta(days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        begin = datetime.fromisoformat(options.start_time) if options.start_time else None
        end = datetime.fromisoformat(options.end_time) if options.end_time else None
    except ValueError as error:
        raise AzError(f"unable to match the value to a datetime: {error}", 2) from error
    if end is None:
        end = begin + offset if begin is not None else now
    return begin or end - offset, end


@command("network watcher flow-log list", "--location -l !")
def flow_log_list(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    return flattened(client.list(f"{_watcher(client, options.location)}/flowLogs"))


@command("network watcher flow-log show", IN_GROUP, "--location -l", "--name -n", "--nsg")
def flow_log_show(lab: LabDirectory, options: Namespace) -> Any:
    client = ArmClient(lab)
    if not (options.location and options.name):
        raise AzError("usage error: --location NAME --name NAME")
    return flattened(client.get(f"{_watcher(client, options.location)}/flowLogs/{options.name}"))


@command("monitor log-analytics query", "--workspace -w !", "--analytics-query !", "--timespan -t", "--workspaces *")
def log_analytics_query(lab: LabDirectory, options: Namespace) -> Any:
    """Return the rows of a query, of an extension of the CLI's: each cell is text."""
    client = ArmClient(lab)
    path = f"{client.scope()}/providers/Microsoft.OperationalInsights/workspaces/{options.workspace}/query"
    tables = client.post(path, {"query": options.analytics_query, "timespan": options.timespan})["tables"]
    rows = []
    for table in tables:
        names = [column["name"] for column in table["columns"]]
        for row in table["rows"]:
            cells = {name: None if cell is None else str(cell) for name, cell in zip(names, row, strict=True)}
            rows.append({"TableName": table["name"], **cells})
    return rows


def _machine(client: ArmClient, name: str, group: str | None) -> str:
    if name.startswith("/"):
        split_id(name)
        return name
    if group is None:
        raise AzError("usage error: --source-resource ID | --source-resource NAME --resource-group NAME")
    return client.path(group, VM, name)


def _watcher(client: ArmClient, location: str) -> str:
    for body in client.list(client.path(None, WATCHER)):
        if body["location"].casefold() == location.casefold():
            return str(body["id"])
    raise AzError(f"network watcher is not enabled for region '{location}'.")
