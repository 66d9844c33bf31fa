"""A subscription of a few resources, as a plain function from a tool call to its result; and a loop that plays it.

It answers with the JSON shapes of the Azure CLI and applies `--query` as the CLI does. It is no network and knows no
verdicts: what a rule or a route means is for the brain to find out.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jmespath

from ghost.brain import Brain, Message, ToolCall, ToolResult, ToolResults, Turn, UserMessage

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
NOBODY = "No one can answer questions now. Go on with the tools, or conclude with what the records show."


def rule(name: str, priority: int, access: str, direction: str = "Inbound", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "priority": priority,
        "access": access,
        "direction": direction,
        "protocol": "Tcp",
        "sourceAddressPrefix": "*",
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": "*",
        **fields,
    }


@dataclass
class Vm:
    name: str
    address: str
    subnet: str
    network: str = "net-a"
    group: str = "rg-a"
    power: str = "VM running"
    tags: dict[str, str] = field(default_factory=dict)
    nsg: str | None = None
    agent: bool = True
    forwarding: bool = False


@dataclass
class Net:
    name: str
    prefix: str
    subnets: dict[str, dict[str, Any]]
    """Name to prefix, nsg, table."""
    peerings: list[dict[str, Any]] = field(default_factory=list)
    group: str = "rg-a"


def standard_machines() -> list[Vm]:
    return [
        Vm("web-vm-01", "10.1.1.4", "front"),
        Vm("cache-vm-01", "10.1.2.4", "store", tags={"role": "redis-cache"}),
        Vm("batch-vm-01", "10.1.3.4", "jobs"),
    ]


def standard_networks() -> list[Net]:
    subnets = {
        "front": {"prefix": "10.1.1.0/24", "nsg": "front-nsg"},
        "store": {"prefix": "10.1.2.0/24", "nsg": "store-nsg"},
        "jobs": {"prefix": "10.1.3.0/24"},
    }
    return [Net("net-a", "10.1.0.0/16", subnets)]


def talk(src: str, dst: str, port: int | None, protocol: str = "TCP", **more: Any) -> dict[str, Any]:
    return {"src": src, "dst": dst, "protocol": protocol, **({"port": port} if port else {}), "packets": 90, **more}


def standard_conversations() -> list[dict[str, Any]]:
    return [talk("10.1.1.4", "10.1.2.4", 6379), talk("10.1.3.4", "10.1.1.4", 443)]


@dataclass
class Facts:
    machines: list[Vm] = field(default_factory=standard_machines)
    networks: list[Net] = field(default_factory=standard_networks)
    nsgs: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {
            "front-nsg": [rule("allow-https", 100, "Allow", destinationPortRange="443")],
            "store-nsg": [
                rule("allow-ssh", 100, "Allow", destinationPortRange="22"),
                rule("deny-other-port", 150, "Deny", destinationPortRange="9999"),
            ],
            "nic-nsg": [],
        }
    )
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """User routes of a route table: name, addressPrefix, nextHopType."""
    findings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By the machine where the capture is taken."""
    conversations: list[dict[str, Any]] = field(default_factory=lambda: standard_conversations())
    """Of every capture."""
    conversations_complete: tuple[str, ...] = ("TCP", "UDP", "ICMP")
    denied: tuple[str, ...] = ()
    """Words of commands or tools that a person refuses."""
    zones: dict[str, dict[str, Any]] = field(default_factory=dict)
    most_lines: int = 200
    ping_exit: int = 1

    def vm(self, name: str) -> Vm:
        return next(vm for vm in self.machines if vm.name == name)


class SmallTenant:
    """Results carry audit ids in the order of the commands."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.commands: list[str] = []
        self.captures: list[str] = []
        self.checks = 0
        self.cleaned: list[str] = []
        self.hypotheses: dict[str, str] = {}
        self.denied_ids: set[str] = set()

    def call(self, call: ToolCall) -> dict[str, Any]:
        if call.name == "run_shell_cmd":
            return self._shell(str(call.arguments["command"]))
        return dict(getattr(self, f"_{call.name}")(call.arguments))

    # Tools

    def _manage_hypotheses(self, arguments: dict[str, Any]) -> dict[str, Any]:
        states = {"register": "ACTIVE", "activate": "ACTIVE", "confirm": "CONFIRMED", "refute": "REFUTED"}
        if arguments["action"] in ("confirm", "refute"):
            assert arguments["audit_ids"], "a verdict without evidence"
            assert not self.denied_ids & set(arguments["audit_ids"]), "a verdict that cites a denied command"
        self.hypotheses[arguments["id"]] = states[arguments["action"]]
        return {"status": "ok", "hypotheses": [{"id": i, "state": s} for i, s in self.hypotheses.items()]}

    def _capture_traffic(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if "capture_traffic" in self.facts.denied:
            return self._refused("packet-capture create", "t")
        name = str(arguments["target"]).rsplit("/", 1)[-1]
        self.captures.append(name)
        self.checks = 0
        return {"status": "task_pending", "state": "PROVISIONING", "task_id": f"ghost_{name}"}

    def _refused(self, command: str, task: str) -> dict[str, Any]:
        self.commands.append(f"{command} {len(self.commands)}")
        audit_id = f"s_{len(self.commands):03d}"
        self.denied_ids = self.denied_ids | {audit_id}
        answer = {"status": "task_cancelled", "user_denied": True, "denial_reason": "not now", "task_id": task}
        return {**answer, "shell_audit_ids": [audit_id]}

    def _check_task(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.checks += 1
        if "download" in self.facts.denied:
            return self._refused("storage blob download", str(arguments["task_id"]))
        if self.checks < 3:
            return {"status": "task_pending", "state": "WAITING", "task_id": arguments["task_id"]}
        path = f"/tmp/captures/{arguments['task_id']}.cap"
        return {"status": "task_completed", "task_id": arguments["task_id"], "result": {"local_pcap_path": path}}

    def _cleanup_task(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.cleaned.append(str(arguments["task_id"]))
        return {"status": "task_completed", "cleanup_status": "completed"}

    def _complete_investigation(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"status": "ok"}

    # The shell

    def _shell(self, command: str) -> dict[str, Any]:
        self.commands.append(command)
        audit_id = f"s_{len(self.commands):03d}"
        words = shlex.split(command)
        result = {"classification": "SAFE", "audit_id": audit_id, "stderr": "", "error": None, "denial_reason": None}
        if any(refused in command for refused in self.facts.denied):
            self.denied_ids = self.denied_ids | {audit_id}
            return {**result, "status": "denied", "exit_code": None, "output": "", "denial_reason": "not allowed"}
        exit_code, output, stderr = self._run(words)
        truncated = output.count("\n") + 1 > self.facts.most_lines
        return {
            **result,
            "status": "completed",
            "exit_code": exit_code,
            "output": json.dumps(["[truncated: showing 4 of N items]"]) if truncated else output,
            "stderr": stderr,
            "output_metadata": {"truncation_applied": truncated},
        }

    def _run(self, words: list[str]) -> tuple[int, str, str]:
        match words[0]:
            case "ping":
                return self.facts.ping_exit, "4 packets transmitted", ""
            case "dig":
                return 0, "", ""
            case "pcap-forensics":
                name = words[1].rsplit("ghost_", 1)[1].removesuffix(".cap")
                found = self.facts.findings.get(name, [_nothing_broken()])
                listed = {
                    "conversations_complete": list(self.facts.conversations_complete),
                    "conversations": self.facts.conversations,
                }
                return 0, json.dumps({"capture": {"packets": 500}, "findings": found, **listed}), ""
        path = _leading(words[1:])
        options = dict(zip(words[1 + len(path) :][::2], words[1 + len(path) :][1::2], strict=False))
        if "-d" in words:
            options = _options(words[1 + len(path) :])
        try:
            value = self._az(" ".join(path), options)
        except LookupError as missing:
            return 3, "", f"ERROR: (ResourceNotFound) The Resource {missing} was not found."
        except RuntimeError as failed:
            return 1, "", f"ERROR: {failed}"
        if "--query" in options:
            value = jmespath.search(options["--query"], value)
        return 0, json.dumps(value, indent=2), ""

    def _az(self, path: str, options: dict[str, str]) -> Any:
        name, facts = options.get("-n", ""), self.facts
        match path:
            case "vm list":
                return [self._vm(vm) for vm in facts.machines]
            case "vm show":
                return self._vm(_find(facts.machines, name))
            case "vm extension list":
                has = _find(facts.machines, options["--vm-name"]).agent
                agent = {"name": "agent", "publisher": "Microsoft.Azure.NetworkWatcher"}
                return [{**agent, "typePropertiesType": "NetworkWatcherAgentLinux"}] if has else []
            case "network vnet list":
                return [self._net(net) for net in facts.networks]
            case "network vnet show":
                return self._net(_find(facts.networks, name))
            case "network vnet subnet show":
                net = _find(facts.networks, options["--vnet-name"])
                return next(s for s in self._net(net)["subnets"] if s["name"] == name)
            case "network vnet peering list":
                return _find(facts.networks, options["--vnet-name"]).peerings
            case "network nic list":
                return [self._nic(vm) for vm in facts.machines]
            case "network nic show":
                return self._nic(self._owner(name))
            case "network nic list-effective-nsg":
                return self._effective_rules(self._owner(name))
            case "network nic show-effective-route-table":
                return self._effective_routes(self._owner(name))
            case "network nsg show":
                return {"id": nsg_id(name), "name": name, "securityRules": facts.nsgs[name]}
            case "network route-table show":
                return {"id": table_id(name), "name": name, "routes": facts.tables[name]}
            case "network lb list":
                return []
            case "network watcher list":
                return [{"name": "NetworkWatcher_eastus", "location": "eastus"}]
            case "network private-dns zone list":
                return [{"name": zone, "resourceGroup": "rg-a"} for zone in facts.zones]
            case "network private-dns record-set a list":
                records = facts.zones[options["-z"]]["records"]
                return [{"name": k, "aRecords": [{"ipv4Address": v}]} for k, v in records.items()]
            case "network private-dns link vnet list":
                linked = facts.zones[options["-z"]]["networks"]
                return [
                    {"name": n, "virtualNetwork": {"id": net_id(n)}, "virtualNetworkLinkState": "Completed"}
                    for n in linked
                ]
        raise AssertionError(f"the brain asks for {path!r}, which this tenant does not know")

    # Shapes

    def _owner(self, nic: str) -> Vm:
        return _find(self.facts.machines, nic.removesuffix("-nic"))

    def _vm(self, vm: Vm) -> dict[str, Any]:
        return {
            "id": vm_id(vm),
            "name": vm.name,
            "resourceGroup": vm.group.upper(),
            "location": "eastus",
            "powerState": vm.power,
            "privateIps": vm.address,
            "tags": vm.tags,
            "networkProfile": {"networkInterfaces": [{"id": nic_id(vm), "primary": True}]},
        }

    def _nic(self, vm: Vm) -> dict[str, Any]:
        return {
            "id": nic_id(vm),
            "name": f"{vm.name}-nic",
            "resourceGroup": vm.group,
            "location": "eastus",
            "enableIPForwarding": vm.forwarding,
            "virtualMachine": {"id": vm_id(vm)},
            "networkSecurityGroup": {"id": nsg_id(vm.nsg)} if vm.nsg else None,
            "ipConfigurations": [
                {
                    "privateIPAddress": vm.address,
                    "primary": True,
                    "subnet": {"id": f"{net_id(vm.network)}/subnets/{vm.subnet}"},
                }
            ],
        }

    def _net(self, net: Net) -> dict[str, Any]:
        subnets = [
            {
                "id": f"{net_id(net.name)}/subnets/{name}",
                "name": name,
                "addressPrefix": facts["prefix"],
                "networkSecurityGroup": {"id": nsg_id(facts["nsg"])} if facts.get("nsg") else None,
                "routeTable": {"id": table_id(facts["table"])} if facts.get("table") else None,
            }
            for name, facts in net.subnets.items()
        ]
        return {
            "id": net_id(net.name),
            "name": net.name,
            "resourceGroup": net.group,
            "addressSpace": {"addressPrefixes": [net.prefix]},
            "subnets": subnets,
        }

    def _subnet(self, vm: Vm) -> dict[str, Any]:
        return _find(self.facts.networks, vm.network).subnets[vm.subnet]

    def _effective_rules(self, vm: Vm) -> dict[str, Any]:
        if not vm.power.endswith("running"):
            raise RuntimeError("(NetworkInterfaceMustBeAttachedToRunningVm)")
        gates = [({"subnet": {"id": "s"}}, self._subnet(vm).get("nsg")), ({"networkInterface": {"id": "n"}}, vm.nsg)]
        return {
            "value": [
                {
                    "association": association,
                    "networkSecurityGroup": {"id": nsg_id(name)},
                    "effectiveSecurityRules": [
                        {**r, "name": f"securityRules/{r['name']}"} for r in self.facts.nsgs[name]
                    ],
                }
                for association, name in gates
                if name
            ]
        }

    def _effective_routes(self, vm: Vm) -> dict[str, Any]:
        if not vm.power.endswith("running"):
            raise RuntimeError("(NetworkInterfaceMustBeAttachedToRunningVm)")
        net = _find(self.facts.networks, vm.network)
        rows = [_route([net.prefix], "VnetLocal"), _route(["0.0.0.0/0"], "Internet"), _route(["10.0.0.0/8"], "None")]
        for peering in net.peerings:
            if peering["peeringState"] == "Connected":
                remote = peering["remoteVirtualNetwork"]["id"].rsplit("/", 1)[-1]
                rows.append(_route([_find(self.facts.networks, remote).prefix], "VNetPeering"))
        for user in self.facts.tables.get(self._subnet(vm).get("table") or "", []):
            row = _route([user["addressPrefix"]], user["nextHopType"], "User")
            rows.append(
                {
                    **row,
                    "name": user["name"],
                    "nextHopIpAddress": [user["nextHopIpAddress"]] if user.get("nextHopIpAddress") else [],
                }
            )
        return {"value": rows}


def _nothing_broken() -> dict[str, Any]:
    return {
        "kind": "none",
        "severity": "INFO",
        "blame": "none",
        "who": {"src": "", "dst": ""},
        "detail": "500 packets in 60 s.",
    }


def _route(prefixes: list[str], hop: str, source: str = "Default") -> dict[str, Any]:
    return {"addressPrefix": prefixes, "nextHopType": hop, "nextHopIpAddress": [], "source": source, "state": "Active"}


def _leading(words: Sequence[str]) -> list[str]:
    path = []
    for word in words:
        if word.startswith("-"):
            break
        path.append(word)
    return path


def _options(words: Sequence[str]) -> dict[str, str]:
    kept = [word for word in words if word != "-d"]
    return dict(zip(kept[::2], kept[1::2], strict=True))


def _find(items: Sequence[Any], name: str) -> Any:
    for item in items:
        if item.name.lower() == name.lower():
            return item
    raise LookupError(name)


def _id(provider: str, kind: str, name: str, group: str = "rg-a") -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{provider}/{kind}/{name}"


def vm_id(vm: Vm) -> str:
    return _id("Microsoft.Compute", "virtualMachines", vm.name, vm.group)


def nic_id(vm: Vm) -> str:
    return _id("Microsoft.Network", "networkInterfaces", f"{vm.name}-nic", vm.group)


def nsg_id(name: str) -> str:
    return _id("Microsoft.Network", "networkSecurityGroups", name)


def net_id(name: str) -> str:
    return _id("Microsoft.Network", "virtualNetworks", name)


def table_id(name: str) -> str:
    return _id("Microsoft.Network", "routeTables", name)


# Playing


@dataclass
class Played:
    conversation: list[Message]
    tenant: SmallTenant

    @property
    def turns(self) -> list[Turn]:
        return [message for message in self.conversation if isinstance(message, Turn)]

    @property
    def completion(self) -> dict[str, Any]:
        return dict(self.turns[-1].tool_calls[-1].arguments)

    @property
    def text(self) -> str:
        return "\n".join(turn.text for turn in self.turns)

    def coverage(self, layer: str) -> str:
        return next(c["status"] for c in self.completion["coverage"] if c["layer"] == layer)


def play(
    brain: Brain,
    symptom: str,
    tenant: SmallTenant,
    answer: Callable[[str], str] = lambda question: NOBODY,
    conversation: Sequence[Message] = (),
    most_turns: int = 60,
) -> Played:
    """The agent's loop, without the agent: until the brain concludes."""
    told: list[Message] = list(conversation) or [UserMessage(symptom)]
    for _ in range(most_turns):
        turn = brain.next_turn(told)
        told.append(turn)
        if not turn.tool_calls:
            told.append(UserMessage(answer(turn.text)))
            continue
        told.append(ToolResults(tuple(ToolResult(call.id, call.name, tenant.call(call)) for call in turn.tool_calls)))
        if turn.tool_calls[-1].name == "complete_investigation":
            return Played(told, tenant)
    raise AssertionError(f"no conclusion within {most_turns} turns; the last said: {told[-2]}")
