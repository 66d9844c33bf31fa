"""Operations and errors of the emulator against what Azure really answered, file by file: status, headers, fields."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ghost import lab
from ghost.lab.arm.api_messages import Request, Response
from ghost.lab.arm.resource_manager import answer
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.lab.scenario import world_from_source
from ghost.lab.tenant_conditions import TenantConditions

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"
OWN = "/subscriptions/6a1f0c52-9d3e-4b7a-8c15-2e4f6a8b0c11"
SHOP, HOME = f"{OWN}/resourceGroups/shop-rg/providers", f"{OWN}/resourceGroups/NetworkWatcherRG/providers"
NIC, VM = f"{SHOP}/Microsoft.Network/networkInterfaces/app-01-nic", f"{SHOP}/Microsoft.Compute/virtualMachines/app-01"
WATCHER = f"{HOME}/Microsoft.Network/networkWatchers/NetworkWatcher_westeurope"
CAPTURE = f"{WATCHER}/packetCaptures/c1"
TARGET = {"targetResourceId": VM}
FLOW = {**TARGET, "direction": "Outbound", "protocol": "TCP", "localIPAddress": "10.50.2.4", "localPort": "5000",
        "remoteIPAddress": "10.50.3.4", "remotePort": "5432"}  # fmt: skip
HOP = {**TARGET, "sourceIPAddress": "10.50.2.4", "destinationIPAddress": "10.50.3.4"}
CHECK = {"source": {"resourceId": VM}, "destination": {"resourceId": VM.replace("app-01", "db-01"), "port": 5432}}
RUN = {"commandId": "RunShellScript", "script": ["hostname"]}
MADE = {"properties": {"target": VM, "storageLocation": {"filePath": "/x.cap"}, "timeLimitInSeconds": 3}}
BARE = [
    Edit(put="networkSecurityGroups/bare", properties={"securityRules": []}),
    Edit(patch="networkInterfaces/app-01-nic",
         properties={"networkSecurityGroup": {"id": "networkSecurityGroups/bare"}}),
]  # fmt: skip
STEPS: list[tuple[str, Any, dict[str, str]]] = [
    # a request, or the header of the answer before; then the recorded files of: the answer, its poll, its end
    (f"POST {NIC}/effectiveNetworkSecurityGroups", {}, {"202": "effective-nsg-202", "end": "effective-nsg-200"}),
    (f"POST {NIC}/effectiveRouteTable", {}, {"202": "effective-routes-202", "end": "effective-routes-200"}),
    (f"POST {WATCHER}/nextHop", HOP, {"202": "next-hop-202", "end": "next-hop-virtual-network"}),
    (f"POST {WATCHER}/ipFlowVerify", FLOW, {"202": "ip-flow-verify-202", "end": "ip-flow-verify-allow"}),
    (f"POST {WATCHER}/connectivityCheck", CHECK, {"202": "connectivity-check-202",
     "Location": "connectivity-check-poll-202", "end": "connectivity-check-reachable"}),
    (f"POST {VM}/runCommand", RUN, {"202": "run-command-202", "Azure-AsyncOperation":
     "run-command-operation-in-progress", "status": "run-command-operation-succeeded"}),
    (f"PUT {CAPTURE}", MADE, {"202": "packet-capture-create-201", "Azure-AsyncOperation":
     "packet-capture-create-operation-in-progress", "status": "packet-capture-create-operation-succeeded"}),
    (f"GET {CAPTURE}", None, {"202": "packet-capture-get-running"}),
    (f"POST {CAPTURE}/stop", {}, {"202": "packet-capture-stop-202", "Azure-AsyncOperation":
     "packet-capture-stop-operation-in-progress", "status": "packet-capture-stop-operation",
     "end": "packet-capture-stop-operation-result"}),
    (f"POST {CAPTURE}/queryStatus", {}, {"202": "packet-capture-query-status-stopped"}),
    (f"DELETE {CAPTURE}", None, {"202": "packet-capture-delete-202", "status": "packet-capture-delete-operation",
     "end": "packet-capture-delete-operation-result-204"}),
    (f"GET {WATCHER}/packetCaptures", None, {"202": "packet-capture-list-empty"}),
    (f"GET {WATCHER}/flowLogs/nope", None, {"202": "error-404-network-watcher-child"}),
    (f"GET {SHOP}/Microsoft.Network/virtualNetworks/shop-vnet/subnets/nope", None,
     {"202": "error-404-not-found-by-provider"}),
    (f"GET {SHOP}/Microsoft.Network/virtualNetworks/nope", None, {"202": "error-404-resource-not-found"}),
    (f"GET {OWN}/resourceGroups/nope/providers/Microsoft.Network/virtualNetworks", None,
     {"202": "error-404-resource-group-not-found"}),
    (f"GET {SHOP}/Microsoft.Network/routeTables", None, {"202": "error-403-authorization-failed"}),
    (f"GET {VM}/providers/Microsoft.Insights/metrics", None, {"202": "metrics-percentage-cpu"}),
]  # fmt: skip
EXPANDED = {"expandedSourceAddressPrefix", "expandedDestinationAddressPrefix"}
"""Of a rule with a service tag; the recorded group's first rule has some."""


@pytest.mark.skipif(not RECORDED.is_dir(), reason="takes answers that Azure gave, which are not in the project")
def test_operations_and_errors_are_as_azure_answered(tmp_path: Path) -> None:
    slow = TenantConditions(in_progress_seconds=60, forbidden_reads=("Microsoft.Network/routeTables/read",))
    world = edited(world_from_source({"base": "two-tier"}, ""), BARE)
    scenario = replace(lab.load_scenario("blocked-port"), world=world, tenant=slow)
    begun = time.time()
    here = LabDirectory.create(tmp_path / "lab", scenario, LabClock(begun, 1.0))
    later = replace(here, clock=LabClock(begun - 100, 2.0))
    wrong = [line for step in STEPS for line in _differences(here, later, *step)]
    assert not wrong, "\n".join(wrong)


def _differences(
    here: LabDirectory, later: LabDirectory, words: str, body: Any, files: dict[str, str]
) -> Iterator[str]:
    method, path = words.split()
    content = b"" if body is None else json.dumps(body).encode()
    first = answer(here, Request(method, f"{path}?api-version=2024-05-01", content))
    for kind, name in files.items():
        response = first
        if kind != "202":
            place = {"end": "Location", "status": "Azure-AsyncOperation"}.get(kind, kind)
            target = first.headers[place].removeprefix("https://management.azure.com")
            response = answer(later if kind in ("end", "status") else here, Request("GET", target))
        recorded = json.loads((RECORDED / f"{name}.json").read_text())
        for what, ours, azures in _facts(response, recorded):
            if ours != azures:
                yield f"{name}: {what}: {ours}; Azure: {azures}"


def _facts(response: Response, recorded: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield "status", response.status, recorded["status"]
    pointers = {"Location", "Azure-AsyncOperation"}
    yield "headers", pointers & set(response.headers), pointers & set(recorded["headers"])
    if recorded.get("body_empty") or recorded["body"] is None:
        yield "body", response.body, b"" if recorded.get("body_empty") else b"null"
        return
    yield "fields", list(_fields(response.json())), list(_fields(recorded["body"]))
    for name in ("status", "nextHopType", "routeTableId", "access", "ruleId", "connectionStatus"):
        if name in recorded["body"]:
            yield name, (response.json() or {}).get(name), recorded["body"][name]
    if "error" in recorded["body"]:
        yield "code", (response.json() or {}).get("error", {}).get("code"), recorded["body"]["error"]["code"]


def _fields(body: Any, depth: int = 0) -> Iterator[str]:
    """Yield the names of fields in their order, of the first of each list."""
    if isinstance(body, list):
        yield from _fields(body[0], depth) if body and depth < 4 else ()
    elif isinstance(body, dict):
        for name, value in body.items():
            if name not in EXPANDED:
                yield f"{depth}.{name}"
            if name not in ("tagMap", "filters", "timeseries"):
                yield from _fields(value, depth + 1)
