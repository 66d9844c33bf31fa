"""What Azure itself says beside its configuration: its own verdicts, and what was changed lately."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from ghost import lab
from ghost.brain.offline import tenant_reads
from ghost.brain.offline.azure_opinion import ask_azure
from ghost.brain.offline.case import Case, Cause
from ghost.brain.offline.complaint import Candidate, Complaint, End
from ghost.brain.offline.flow_history import last_passed
from ghost.brain.offline.recent_changes import what_changed
from ghost.brain.offline.snat_metrics import check_metrics
from ghost.brain.offline.steps import Steps
from ghost.brain.offline.understanding import understand
from ghost.lab.directory import LabClock, LabDirectory
from ghost.lab.edits import Edit, edited
from ghost.net import Flow, explain
from ghost.shell import classify
from tests.lab.in_process import run_main

T = TypeVar("T")


class LabRun:
    """A lab of a scenario with edits, in which steps run and everything is approved."""

    def __init__(self, path: Path, scenario: str, *edits: Edit) -> None:
        told = lab.load_scenario(scenario)
        world = edited(told.world, edits)
        self.home = LabDirectory.create(path, replace(told, world=world), LabClock(1_700_000_000.0, 1e-12))
        self.commands: list[str] = []
        self.numbers = count(1)
        first = told.flows[0]
        machines = {machine.name for machine in world.machines}
        ends = [world.address_of(e) if e in machines else e for e in (first.source, first.destination)]
        self.flow = Flow(first.protocol, ends[0], None, ends[1], first.port)
        self.case = Case("")
        self.candidate = Candidate(self.flow, End("a", ends[0]), End("b", ends[1]))
        self.complaint = Complaint("", "unreachable", ((self.candidate,),))

    def finish(self, steps: Steps[T]) -> T:
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                value: T = end.value
                return value
            answer = [self._run(str(call.arguments["command"])) for call in step.calls]  # type: ignore[union-attr]

    def _run(self, command: str) -> dict[str, Any]:
        assert classify(command)[0] == "SAFE", command
        self.commands.append(command)
        done = run_main("ghost.lab.programs.az", shlex.split(command)[1:], {"GHOST_LAB_DIR": str(self.home.path)})
        output, audit_id = done.stdout.decode(), f"r{next(self.numbers)}"
        return {"status": "completed", "audit_id": audit_id, "exit_code": done.returncode, "output": output,
                "stderr": done.stderr.decode()}  # fmt: skip

    def causes(self, *, clear: bool = True) -> Sequence[Cause]:
        """Read what the walk needs and blame what it finds."""
        self.finish(tenant_reads.read_for(self.case, [self.flow], ""))
        for fault in explain(self.case.network, self.flow):
            hop = fault.hop
            self.case.blame(Cause("nsg_inbound", "H1", "it is", hop.references, kind=fault.kind, resource=hop.resource,
                                  rule=hop.rule or "", direction=hop.direction, flow=self.flow))  # fmt: skip
        if clear:
            self.commands.clear()
        return self.case.causes


def _says(access: str, rule: str, address: str, machine: str) -> Edit:
    said = {"machine": machine, "direction": "Inbound", "address": address, "access": access, "rule": rule}
    return Edit(world={"azure_says": [said]})


BLOCKED = "blocked-port"
OPINIONS: list[tuple[str, tuple[Edit, ...], str, str]] = [
    (BLOCKED, (), "test-ip-flow", "agrees with the walk: Deny close-legacy-ports"),
    (BLOCKED, (_says("Allow", "securityRules/x", "10.20.1.4", "redis-cache-01"),), "test-ip-flow",
     "disagrees: it says Allow x, but according to the walk close-legacy-ports denies"),
    (BLOCKED, (_says("Deny", "securityRules/other", "10.20.1.4", "redis-cache-01"),), "test-ip-flow", "disagrees"),
    ("two-report-replica", (), "show-next-hop", "agrees with the walk: None"),
    ("routes-portal-orders", (), "show-next-hop", "agrees with the walk: VirtualAppliance 10.60.1.10"),
    (BLOCKED, (Edit(delete="networkWatchers/NetworkWatcher_eastus"),), "test-ip-flow", ""),
    ("rules-edi-share", (), "", ""),
]  # fmt: skip
"""A scenario with edits, what is asked of Azure, and what the last statement says of it."""


def test_azures_own_verdict_is_compared_with_the_walk(tmp_path: Path) -> None:
    wrong = []
    for number, (scenario, edits, asked, said) in enumerate(OPINIONS):
        run = LabRun(tmp_path / str(number), scenario, *edits)
        before = list(run.causes())
        stated = len(run.case.statements)
        causes = run.finish(ask_azure(run.case, before))
        told = [text for text, _ in run.case.statements[stated:]]
        likely = any(cause.likely for cause in causes)
        if not (
            list(causes) == run.case.causes
            and all(asked in command for command in run.commands) is bool(asked or not run.commands)
            and len(run.commands) <= 2 and bool(run.commands) is bool(asked)
            and said in "".join(told) and bool(told) is bool(said) and likely is ("disagrees" in said)
            and all(set(before[0].audit_ids) < set(cause.audit_ids) for cause in causes[:1] if "agrees with" in said)
        ):  # fmt: skip
            wrong.append((scenario, asked, said, run.commands, told, causes))
    assert not wrong, "\n".join(map(str, wrong))


def _activity(minutes_ago: float, operation: str, resource: str, status: str = "Succeeded") -> dict[str, Any]:
    operation = f"Microsoft.Network/{operation}" if operation[0].islower() else operation
    return {"minutes_ago": minutes_ago, "caller": "kim@shop.example", "operation": operation, "resource": resource,
            "status": status}  # fmt: skip


def test_changes_on_the_way_are_stated_newest_first_and_nothing_else(tmp_path: Path) -> None:
    group, rule = "networkSecurityGroups/cache-nsg", "networkSecurityGroups/cache-nsg/securityRules/close-legacy-ports"
    here = "networkInterfaces/web-vm-01-nic"
    machine = "virtualMachines/redis-cache-01"
    activity = [
        _activity(600, "networkSecurityGroups/securityRules/write", rule),
        _activity(700, "networkSecurityGroups/securityRules/write", rule),
        _activity(30, "Microsoft.Compute/virtualMachines/restart/action", machine),
        _activity(20, "networkInterfaces/effectiveRouteTable/action", here),
        _activity(10, "networkSecurityGroups/write", group, "Failed"),
        _activity(5, "Microsoft.Storage/storageAccounts/write", "storageAccounts/prodforensics01"),
        _activity(1500, "networkSecurityGroups/write", group),
    ]
    run = LabRun(tmp_path / "changed", BLOCKED, Edit(world={"activity": activity}))
    run.causes()
    run.case.statements.clear()
    run.finish(what_changed(run.case, run.complaint))
    assert len(run.commands) == 1
    assert [text.partition("traffic: ")[2] for text, _ in run.case.statements] == [
        "virtualMachines/restart/action of redis-cache-01 at 2023-11-14 21:43 UTC by k...@shop.example.",
        "networkSecurityGroups/securityRules/write of close-legacy-ports of cache-nsg at "
        "2023-11-14 12:13 UTC by k...@shop.example. It is the cause found here (close-legacy-ports).",
    ]
    calm = LabRun(tmp_path / "calm", BLOCKED)
    calm.causes()
    calm.finish(what_changed(calm.case, calm.complaint))
    assert calm.case.statements[-1][0] == "The activity log shows no change on the path in the last 24 h."


NAT = "nat-card-clearing"
LB = "lb-orders-half"
MEASURED: list[tuple[str, tuple[Edit, ...], str]] = [
    (NAT, (), "could not translate"),
    (NAT, (Edit(wire={"source": "payments", "destination": "13.107.90.21", "snat_ports": 6400}),), "; 0 failed."),
    (LB, (), "members of db-lb in the last hour"),
    (BLOCKED, (), ""),
]


def test_what_was_measured_tells_used_up_ports_and_failing_members(tmp_path: Path) -> None:
    for number, (scenario, edits, said) in enumerate(MEASURED):
        run = LabRun(tmp_path / str(number), scenario, *edits)
        run.causes()
        stated = len(run.case.statements)
        run.finish(check_metrics(run.case, run.complaint, run.candidate))
        told = [text for text, _ in run.case.statements[stated:]]
        assert said in "".join(told)
        assert bool(told) is bool(said)
        found = [(cause.kind, cause.rule, cause.likely) for cause in run.case.causes if cause.layer == "load_balancer"]
        assert found == ([("snat_ports_exhausted", "", False)] if (scenario, edits) == (NAT, ()) else [])


def test_flow_logs_tell_what_denied_a_flow_and_when(tmp_path: Path) -> None:
    analytics = {"enabled": True, "workspaceId": "11111111-2222-3333-4444-555555555555"}
    log = {
        "enabled": True,
        "targetResourceId": "virtualNetworks/prod-vnet",
        "storageId": "storageAccounts/prodforensics01",
        "flowAnalyticsConfiguration": {"networkWatcherFlowAnalyticsConfiguration": analytics},
    }
    traffic = [{"client": "web-vm-01", "server": "redis-cache-01", "port": 6379}]
    kept = Edit(put="networkWatchers/NetworkWatcher_eastus/flowLogs/all", properties=log)
    run = LabRun(tmp_path / "logged", BLOCKED, kept, Edit(world={"traffic": traffic}))
    run.causes()
    run.finish(last_passed(run.case, run.candidate))
    assert run.case.statements[-1][0] == (
        "Flow logs of the last 7 days on TCP 10.20.1.4 -> 10.20.2.5:6379: at the source last let through at "
        "2023-11-14 22:03 UTC; at the destination never let through, last denied at 2023-11-14 22:03 UTC by "
        "close-legacy-ports of cache-nsg."
    )
    assert len(run.commands) == 2


START_UP = 3
"""`az account show`, the network watchers, and the captures of each of their regions."""


def test_200_machines_and_a_rule_take_at_most_twelve_calls(tmp_path: Path) -> None:
    fleet = {"machines": 200, "groups": 60, "network": "prod-vnet", "subnet": "prod-subnet"}
    run = LabRun(tmp_path / "many", BLOCKED, Edit(world={"fleet": [fleet]}))
    complaint = run.finish(understand(run.case, "web-vm-01 cannot reach redis-cache-01 on port 6379"))
    assert [candidate.flow for candidate in complaint.candidates] == [run.flow]
    understood = len(run.commands)
    run.causes(clear=False)
    run.finish(ask_azure(run.case, run.case.causes))
    run.finish(what_changed(run.case, complaint))
    assert [cause.rule for cause in run.case.causes] == ["close-legacy-ports"]
    assert START_UP + len(run.commands) <= 12, (understood, run.commands)
