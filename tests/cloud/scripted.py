"""The outside of the orchestrator: a shell that answers from a table and a clock that only sleeping moves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ghost.cloud import CloudOrchestrator

START = datetime(2025, 1, 15, 14, 32, tzinfo=UTC)
TASK = "ghost_web-vm-01_20250115T143200"
ENDING = "k3x9"
CAPTURE = f"{TASK}_{ENDING}"
VM = "Microsoft.Compute/virtualMachines"
Answer = dict[str, Any] | Callable[[str], dict[str, Any]]


def ran(output: object = "", exit_code: int = 0, stderr: str = "", action: str = "auto_approved") -> dict[str, Any]:
    text = output if isinstance(output, str) else json.dumps(output)
    return {"status": "completed", "action": action, "output": text, "stderr": stderr, "exit_code": exit_code}


def failed(stderr: str, exit_code: int = 1) -> dict[str, Any]:
    return ran(exit_code=exit_code, stderr=stderr)


def refused(reason: str | None = None, action: str = "user_denied") -> dict[str, Any]:
    return {
        "status": "denied",
        "action": action,
        "output": "",
        "stderr": "",
        "exit_code": None,
        "denial_reason": reason,
    }


def broken(error: str) -> dict[str, Any]:
    return {"status": "error", "action": "user_approved", "output": "", "stderr": "", "exit_code": None, "error": error}


def status(name: str, **fields: object) -> dict[str, Any]:
    return ran({"packetCaptureStatus": name, "packetCaptureError": [], **fields})


SUBSCRIPTION = "/subscriptions/3f6c1c7e-52a1-4c3b-9d0e-7b8a54f0d211"
GROUP_ID = f"{SUBSCRIPTION}/resourceGroups/prod-rg/providers"
VM_ID = f"{GROUP_ID}/Microsoft.Compute/virtualMachines/web-vm-01"
NIC_ID = f"{GROUP_ID}/Microsoft.Network/networkInterfaces/web-nic"
SUBNET = f"{GROUP_ID}/Microsoft.Network/virtualNetworks/prod-vnet/subnets/prod-subnet"
ACCOUNT_ID = f"{GROUP_ID}/Microsoft.Storage/storageAccounts/forensics"
AGENT = {"name": "AzureNetworkWatcherExtension", "type": "Microsoft.Azure.NetworkWatcher.NetworkWatcherAgentLinux"}
MACHINE: dict[str, Any] = {
    "power": ["ProvisioningState/succeeded", "PowerState/running"],
    "agent": ["Ready"],
    "extensions": [AGENT],
    "resources": None,
    "os": "Linux",
    "interfaces": [{"id": NIC_ID, "primary": True}],
}
ACCOUNT: dict[str, Any] = {
    "id": ACCOUNT_ID,
    "location": "eastus",
    "endpoint": "https://forensics.blob.core.windows.net/",
    "defaultAction": "Allow",
    "subnets": [],
    "privateEndpoints": [],
    "publicNetworkAccess": "Enabled",
}


def route(prefix: str, hop: str, source: str = "Default", name: str | None = None, **fields: object) -> str:
    row = {"addressPrefix": [prefix], "nextHopType": hop, "nextHopIpAddress": [], "source": source, "state": "Active"}
    return json.dumps({**row, "name": name, **fields})


def outbound(name: str, priority: int, access: str, to: str, port: str = "0-65535", source: str = "0.0.0.0/0") -> str:
    """One rule as `list-effective-nsg` gives it, on one line."""
    return json.dumps(
        {
            "name": f"{'defaultSecurityRules' if priority >= 65000 else 'securityRules'}/{name}",
            "priority": priority,
            "direction": "Outbound",
            "access": access,
            "protocol": "All",
            "sourceAddressPrefix": source,
            "sourcePortRange": "0-65535",
            "destinationAddressPrefix": to,
            "expandedDestinationAddressPrefix": ["10.0.0.0/8"] if to == "VirtualNetwork" else False,
            "destinationPortRange": port,
        }
    )


ROUTES = [route("10.20.0.0/16", "VnetLocal"), route("0.0.0.0/0", "Internet"), route("10.0.0.0/8", "None")]
DEFAULT_RULES = [
    outbound("AllowVnetOutBound", 65000, "Allow", "VirtualNetwork", source="VirtualNetwork"),
    outbound("AllowInternetOutBound", 65001, "Allow", "Internet"),
    outbound("DenyAllOutBound", 65500, "Deny", "0.0.0.0/0"),
]


def group(*rules: str, at: str = "subnet", name: str = "prod-nsg") -> dict[str, Any]:
    place = {"networkInterface": {"id": NIC_ID}} if at == "nic" else {"subnet": {"id": "x"}}
    return {
        "association": place,
        "networkSecurityGroup": {"id": f"{GROUP_ID}/Microsoft.Network/networkSecurityGroups/{name}"},
        "effectiveSecurityRules": [*rules, *DEFAULT_RULES],
    }


def created(command: str) -> dict[str, Any]:
    """As Azure shows a capture that it has begun: with the blob's place."""
    words = dict(re.findall(r"(-n|--storage-path) (\S+)", command))
    location = {"storageId": ACCOUNT_ID, "storagePath": words["--storage-path"]}
    capture = {"name": words["-n"], "provisioningState": "Succeeded", "storageLocation": location}
    return ran(capture, action="user_approved")


# What a healthy Azure answers; the first pattern that matches wins, so a test puts its own in front.
HEALTHY: tuple[tuple[str, Answer], ...] = (
    ("az network watcher list", ran([{"name": "NetworkWatcher_eastus", "location": "eastus"}])),
    ("packet-capture list", ran([])),
    ("az resource", ran([{"id": VM_ID, "name": "web-vm-01", "type": VM, "location": "eastus"}])),
    ("get-instance-view", ran(MACHINE)),
    ("nic show ", ran([SUBNET])),
    ("az account show", ran({"name": "ana@contoso.com", "type": "user"})),
    ("storage account show", ran(ACCOUNT)),
    ("storage account list", ran({"own": "prodlogs", "open": "otherlogs prodlogs", "closed": ""})),
    ("role assignment list", ran(["Reader", "Storage Blob Data Contributor"])),
    ("container create", ran(action="user_approved")),
    ("show-effective-route-table", ran(ROUTES)),
    ("list-effective-nsg", ran([group()])),
    ("container exists", ran({"exists": True})),
    ("packet-capture create", created),
    ("packet-capture show ", failed("ERROR: (ResourceNotFound) The capture was not found.", 3)),
    ("show-status", status("Stopped", stopReason="TimeExceeded")),
    ("blob list", ran([])),
    ("blob download", lambda command: (write_capture(command), ran(action="user_approved"))[1]),
    ("^pcap-forensics", ran()),
    ("packet-capture delete", ran(action="user_approved")),
    ("blob delete", ran(action="user_approved")),
    ("^rm ", lambda command: (remove(command), ran(action="user_approved"))[1]),
)


def shown(command: str, target: str = VM_ID, path: str | None = None, **fields: object) -> dict[str, Any]:
    """As `packet-capture show` answers of a capture that exists."""
    name = re.findall(r"-n (\S+)", command)[0]
    path = path or f"https://forensics.blob.core.windows.net/captures/{name}.cap"
    state = {"provisioningState": "Succeeded", **fields}
    return ran({"name": name, "target": target, "storageLocation": {"storagePath": path}, **state})


def task_of(thing: str) -> str:
    """Return the task of a capture, a blob or a local file."""
    return re.sub(r"(?<=T\d{6})(_\d)?(_[a-z0-9]{4})?$", r"\1", thing.removesuffix(".cap"))


def write_capture(command: str) -> None:
    match = re.search(r"--file (\S+)", command)
    assert match is not None
    Path(match[1]).write_bytes(b"a capture")


def remove(command: str) -> None:
    Path(command.removeprefix("rm ")).unlink()


class ScriptedShell:
    """Answers each command with the first match of its table; a list is answered one by one, the last one for ever."""

    def __init__(self, *answers: tuple[str, Answer | list[Answer]]) -> None:
        self.table = [(p, list(a) if isinstance(a, list) else [a]) for p, a in (*answers, *HEALTHY)]
        self.requests: list[dict[str, Any]] = []

    @property
    def commands(self) -> list[str]:
        return [request["command"] for request in self.requests]

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        command = request["command"]
        for pattern, answers in self.table:
            if re.search(pattern, command):
                answer = answers.pop(0) if len(answers) > 1 else answers[0]
                reply = answer(command) if callable(answer) else answer
                return {**reply, "audit_id": f"s1_{len(self.requests):03d}"}
        raise AssertionError(f"the script has no answer for: {command}")

    def matching(self, pattern: str) -> list[str]:
        return [command for command in self.commands if re.search(pattern, command)]


@dataclass
class SteppedClock:
    """Time passes only where someone sleeps."""

    moment: datetime = START
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - START).total_seconds()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += timedelta(seconds=seconds)


@dataclass
class Desk:
    """An orchestrator on a scripted shell, with what it said."""

    directory: Path
    shell: ScriptedShell
    session: str = "s1"
    clock: SteppedClock = field(default_factory=SteppedClock)
    said: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.orchestrator = self.restarted()

    def restarted(self, session: str | None = None) -> CloudOrchestrator:
        """A new process on the same directories."""
        self.orchestrator = CloudOrchestrator(
            self.shell,
            session or self.session,
            self.directory / "audit",
            clock=self.clock,
            local_capture_dir=self.directory / "captures",
            announce=self.said.append,
            name_ending=lambda: ENDING,
            **self.options,
        )
        return self.orchestrator

    def ask(self, intent: str, **fields: Any) -> dict[str, Any]:
        return self.orchestrator.orchestrate({"intent": intent, **fields})

    def capture(self, target: str = "web-vm-01", **parameters: Any) -> dict[str, Any]:
        return self.ask(
            "capture_traffic",
            target=target,
            parameters={"resource_group": "prod-rg", "storage_account": "forensics", **parameters},
            investigation_context="Investigating 502 errors from web-vm-01 to redis-primary",
        )

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.orchestrator.registry_path.read_text().splitlines()]
