"""Machines of the lab for the parts of the offline brain that look at guests and captures, without the agent."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ghost.brain.offline.case import Case
from ghost.brain.offline.complaint import Candidate, Complaint, End, Kind
from ghost.brain.offline.steps import Call, Question, Steps
from ghost.lab.guest import run_script
from ghost.lab.scenario import load_scenario
from ghost.lab.wire.packet_generator import synthesize
from ghost.lab.world import World
from ghost.net import GUEST_SCRIPT, Flow, Guest
from ghost.pcap.analysis import analyse
from ghost.pcap.compare.capture_pair import compare_captures
from ghost.pcap.findings import find
from ghost.pcap.report.semantic.conversation_summary import findings_document
from ghost.pcap.report.semantic.token_budget import dump

NOW = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)
LAST_BYTES = 4096
Result = dict[str, Any]


@cache
def world_of(scenario: str) -> World:
    world = load_scenario(scenario).world
    assert world is not None
    return world


def case_of(world: World) -> Case:
    """Return a case whose network is all that Azure tells of a world: no guests."""
    return Case("it hangs", network=world.network.without(Guest))


def end_of(world: World, name: str) -> End:
    if name not in {machine.name for machine in world.machines}:
        return End(name, name)
    (interface,) = world.network.interfaces_with(world.address_of(name))
    return End(name, world.address_of(name), interface.machine or "", interface.id)


def complained(
    world: World, source: str, destination: str, port: int | None, kind: Kind = "unreachable", **more: Any
) -> tuple[Complaint, Candidate]:
    ends = end_of(world, source), end_of(world, destination)
    flow = Flow(more.pop("protocol", "Tcp"), ends[0].address, None, ends[1].address, port)
    origin = more.pop("port_origin", "" if port is None else "stated")
    candidate = Candidate(flow, *ends, port_origin=origin)
    return Complaint("it hangs", kind, ((candidate,),), **more), candidate


def printed(world: World, machine: str, **changed: Any) -> str:
    """Return the streams of the script inside a machine, as Azure gives them."""
    ran = run_script(world, replace(world.machine(machine), **changed), GUEST_SCRIPT, NOW)
    out, err = (text.encode()[-LAST_BYTES:].decode(errors="ignore") for text in (ran.out, ran.err))
    return f"Enable succeeded: \n[stdout]\n{out}\n[stderr]\n{err}"


def answered(message: str) -> Result:
    """Return what `az vm run-command invoke` answers."""
    return {"value": [{"message": message}]}


@dataclass
class LabTools:
    """Answers the calls of a step from a scenario's world.

    `denied`: words of commands, `capture`, or `capture at NAME`.
    """

    scenario: str
    denied: tuple[str, ...] = ()
    findings: Mapping[str, Callable[[Result], Result]] = field(default_factory=dict)
    """What is changed of the engine's document of a capture, by machine."""
    compared: list[Result] | None = None
    """Directions of the comparison, in place of the engine's."""
    reason: str = "not now"
    """Why captures are denied."""
    seconds: int = 0
    """Of the last capture."""
    inspected: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """Machines of each request for a capture."""
    tasks: dict[str, Result] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    @property
    def world(self) -> World:
        return world_of(self.scenario)

    def answer(self, call: Call) -> Result:
        self.calls.append(call)
        record = {"audit_id": f"s_{len(self.calls)}"}
        if call.name == "capture_traffic":
            targets = str(call.arguments["target"]).split(" to ")
            self.asked.append(len(targets))
            self.captured += [target.rpartition("/")[2] for target in targets]
            self.seconds = int(call.arguments["duration_seconds"])
            self.tasks = {each["task_id"]: each for each in map(self._task, targets)}
            first, *others = self.tasks.values()
            return {**first, "status": "task_pending", **({"paired_task": others[0]} if others else {})}
        if call.name == "check_task":
            return self.tasks[call.arguments["task_id"]]
        if call.name != "run_shell_cmd":
            return {"status": "ok"}
        words = shlex.split(call.arguments["command"])
        if any(word in self.denied for word in words):
            return {"status": "denied", "denial_reason": "not at night", **record}
        return {"status": "completed", "exit_code": 0, "output": json.dumps(self._output(words)), **record}

    def _task(self, target: str) -> Result:
        name = target.rpartition("/")[2]
        task = {"task_id": name, "target": target, "shell_audit_ids": [f"s_{len(self.calls)}"]}
        if {"capture", f"capture at {name}"} & set(self.denied):
            return {**task, "status": "task_cancelled", "user_denied": True, "denial_reason": self.reason}
        result = {"local_pcap_path": f"/{len(self.calls)}/{name}.cap"}
        return {**task, "status": "task_completed", "result": result}

    def _output(self, words: Sequence[str]) -> Any:
        if "--compare" in words and self.compared is not None:
            return {"two_ends": {"directions": self.compared}}
        if "--compare" in words:
            return json.loads(_compared(self.scenario, Path(words[1]).stem, Path(words[3]).stem, self.seconds))
        if words[0] == "pcap-forensics":
            return self._document(Path(words[1]).stem)
        if "run-command" in words:
            name = words[words.index("-n") + 1]
            self.inspected.append(name)
            return answered(printed(self.world, name))
        region = self.world.location_of(self.world.machines[0].resource_group)
        return [{"name": "capturestore", "group": "rg", "location": region, "publisher": "NetworkWatcher"}]

    def _document(self, machine: str) -> Result:
        document = json.loads(_document(self.scenario, machine, self.seconds))
        return self.findings.get(machine, lambda found: found)(document)


@cache
def _document(scenario: str, machine: str, seconds: int) -> str:
    """Return what the engine prints of a capture at a machine of a scenario."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{machine}.pcap"
        path.write_bytes(synthesize(world_of(scenario), machine, NOW, seconds, 1))
        analysis = analyse(path)
        return dump(findings_document(analysis, find(analysis)))


@cache
def _compared(scenario: str, source: str, destination: str, seconds: int) -> str:
    """Return what the engine prints of captures at both ends, the second of which began a second later."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{machine}.pcap" for machine in (source, destination)]
        for late, path in enumerate(paths):
            start = NOW + timedelta(seconds=late)
            path.write_bytes(synthesize(world_of(scenario), path.stem, start, seconds, 1))
        return json.dumps(compare_captures(*paths, None, ends=True).document())


def run_steps(steps: Steps[Any], tools: LabTools) -> Any:
    """Run a generator of steps to its end and return its value."""
    try:
        step = next(steps)
        while True:
            assert not isinstance(step, Question)
            step = steps.send([tools.answer(call) for call in step.calls])
    except StopIteration as stop:
        return stop.value
