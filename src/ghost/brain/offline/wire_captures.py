"""Packet captures at machines, and what the forensic engine finds in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ghost.brain.offline.azure_reads import Read, Reading, az, query, resource_id
from ghost.brain.offline.case import Case, read, run
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.path_comparison import Comparison
from ghost.brain.offline.path_comparison import Row as Row
from ghost.brain.offline.steps import Call, Steps
from ghost.net import Interface, Machine, Network, VirtualNetwork, key, name_of
from ghost.text import one_line

BRIEF_SECONDS: Final = 60
LONG_SECONDS: Final = 300
"""Azure's load balancers, firewalls and gateways forget connections after 4 minutes, by default."""
PAIR_SECONDS: Final = 120
"""At both ends at least: the second capture begins when the first was created, which takes Azure up to a minute."""
MAX_CHECKS: Final = 15
"""Maximum checks of one capture; each polls for up to 45 seconds."""
_PENDING: Final[Row] = {"status": "task_pending"}


@dataclass(frozen=True)
class Captured:
    """The findings of one capture."""

    machine: str
    """Id."""
    findings: tuple[Row, ...]
    capture: Row
    audit_ids: tuple[str, ...]
    conversations: tuple[Row, ...] = ()
    """Conversations: src, dst, protocol, port, packets, answered, unanswered."""
    complete: frozenset[str] = frozenset()
    """Protocols with a complete list of conversations: one that is not listed does not exist."""
    comparison: Comparison | None = None
    """With the capture at the other end, taken at the same time."""
    alone_because: str = ""
    """Why the other end, though wanted, was not captured."""

    @property
    def label(self) -> str:
        return name_of(self.machine)


@dataclass(frozen=True)
class Uncaptured:
    """There is no capture; the case's layer says why."""

    denied: bool = False
    reason: str = ""
    """Given by who denied it, or why it could not be read."""


def capture_at(case: Case, machine: str, traffic: str, seconds: int = BRIEF_SECONDS) -> Steps[Captured | Uncaptured]:
    """Capture at a machine, once for this long, and return the findings. `traffic`: in words."""
    known = known_capture(case, machine, seconds)
    if known is None:
        obstacle = yield from _obstacle(case, machine)
        if obstacle is None:
            (known,) = yield from _captured(case, (machine,), traffic, seconds)
        else:
            known = Uncaptured()
            case.not_verified("wire", obstacle.why, obstacle.audit_ids)
            case.actions.extend(action for action in obstacle.actions if action not in case.actions)
        case.captures[machine, seconds] = known
    return known


def capture_ends(case: Case, source: str, destination: str, traffic: str, seconds: int) -> Steps[Captured | Uncaptured]:
    """Capture at both ends of a path at the same time, where that is possible, else at the source alone; return the
    findings at the source.
    """
    ends, alone = (source, destination), ""
    if not any(known_capture(case, end, seconds) for end in ends) and (yield from _obstacle(case, source)) is None:
        obstacle = yield from _obstacle(case, destination)
        if obstacle is None:
            long = max(seconds, PAIR_SECONDS)
            taken = yield from _captured(case, ends, traffic, long)
            case.captures |= {(end, long): capture for end, capture in zip(ends, taken, strict=True)}
        else:
            alone = obstacle.why
            case.say(f"I capture at {name_of(source)} alone: {alone}.")
    captured = yield from capture_at(case, source, traffic, seconds)
    if alone and isinstance(captured, Captured):
        captured = case.captures[source, seconds] = replace(captured, alone_because=alone)
    return captured


def known_capture(case: Case, machine: str, seconds: int) -> Captured | Uncaptured | None:
    """Return what became of a capture at a machine for this long, or longer; None if none was asked for."""
    return next((taken for (at, lasted), taken in case.captures.items() if at == machine and lasted >= seconds), None)


def _captured(
    case: Case, machines: tuple[str, ...], traffic: str, seconds: int
) -> Steps[tuple[Captured | Uncaptured, ...]]:
    """Capture at a machine, or at the source and the destination of a path at the same time, with one question."""
    names, place = " and ".join(map(name_of, machines)), resource_id(machines[0])
    assert place is not None  # there is no obstacle
    (started,) = yield from run(
        case,
        f"I capture {seconds} seconds of traffic at {names}. Creating the capture needs your approval.",
        [
            Call(
                "capture_traffic",
                {
                    "target": " to ".join(machines),
                    "resource_group": place.group,
                    "duration_seconds": seconds,
                    "investigation_context": traffic,
                    "hypothesis_ids": [LOST],
                },
            )
        ],
    )
    answers = yield from _ended(case, machines, started)
    if all(answer.get("status") != "task_completed" for answer in answers):
        uncaptured = yield from _uncaptured(case, names, answers[0])
        return (uncaptured,) * len(machines)
    lost = {}
    for machine, answer in zip(machines, answers, strict=True):
        if answer.get("status") != "task_completed":
            lost[machine] = yield from _uncaptured(case, name_of(machine), answer)
    results = {
        machine: {**(answer.get("result") or {}), "task_id": answer["task_id"]}
        for machine, answer in zip(machines, answers, strict=True)
        if machine not in lost
    }
    found = yield from _findings(case, results)
    if lost:
        why = "; ".join(f"no capture was completed at {name_of(machine)}" for machine in lost)
        found = {
            machine: replace(each, alone_because=why) if isinstance(each, Captured) else each
            for machine, each in found.items()
        }
    return tuple({**found, **lost}[machine] for machine in machines)


@dataclass(frozen=True)
class _Obstacle:
    why: str
    audit_ids: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


def _obstacle(case: Case, machine: str) -> Steps[_Obstacle | None]:
    """Return why no capture is possible at a machine."""
    place, name = resource_id(machine), name_of(machine)
    known = case.network.get(Machine, machine)
    if place is None or len(place.names) != 1 or (known is not None and known.power not in (None, "running")):
        return _Obstacle(f"{name} is not a running virtual machine, so no capture is possible there")
    watchers, extensions = yield from read(
        case,
        "A capture needs a network watcher in the region, and the agent on the machine.",
        Read(az("network", "watcher", "list", query=query("watchers")), "Regions with a network watcher.", (LOST,)),
        Read(
            az("vm", "extension", "list", "-g", place.group, "--vm-name", place.name, query=query("extensions")),
            f"Whether the capture agent is on {name}.",
            (LOST,),
        ),
    )
    region = _region(_location(case.network, machine))
    if region and watchers.ok and region not in {_region(row.get("location")) for row in watchers.rows()}:
        action = f"Enable capturing: az network watcher configure -g NetworkWatcherRG -l {region} --enabled true"
        return _Obstacle(f"there is no network watcher in {region}", watchers.audit_ids, (action,))
    if extensions.ok and not any("networkwatcher" in str(list(row.values())).lower() for row in extensions.rows()):
        action = (
            "Install the capture agent (NetworkWatcherAgentWindows on Windows): az vm extension set "
            f"-g {place.group} --vm-name {place.name} "
            "-n NetworkWatcherAgentLinux --publisher Microsoft.Azure.NetworkWatcher"
        )
        return _Obstacle(f"{name} has no Network Watcher agent, so it cannot capture", extensions.audit_ids, (action,))
    return None


def _location(network: Network, machine: str) -> str:
    """Return the region of a machine, which is its virtual network's."""
    for interface in network.all(Interface).values():
        if key(interface.machine or "") == key(machine):
            home = network.get(VirtualNetwork, interface.subnet.partition("/subnets/")[0])
            if home is not None and home.location:
                return home.location
    return ""


def _region(location: Any) -> str:
    """Return a normalised region: Azure writes `East US` and `eastus` for the same one."""
    return "".join(c for c in str(location or "").lower() if c.isalnum())


def _ended(case: Case, machines: tuple[str, ...], started: Row) -> Steps[list[Row]]:
    """Check the tasks until each has ended, or for long enough; return the last answer about each machine."""
    tasks = [started, *([started["paired_task"]] if started.get("paired_task") else [])]
    if not started.get("task_id") or len(tasks) < len(machines):
        return [started] * len(machines)
    tasks.sort(key=lambda task: key(str(task.get("target"))) != key(machines[0]))  # the answer is about one still alive
    names = {str(task["task_id"]): name_of(machine) for task, machine in zip(tasks, machines, strict=True)}
    answers: dict[str, Row] = {str(started["task_id"]): started}
    for _ in range(MAX_CHECKS * len(names)):
        pending = [task for task in names if answers.get(task, _PENDING).get("status") == "task_pending"]
        if not pending:
            break
        # One that is complete waits for the other end.
        task = next((each for each in pending if answers.get(each, _PENDING).get("state") != "COMPLETED"), pending[0])
        state = one_line(str(answers.get(task, _PENDING).get("state") or "pending"), 30)
        (answers[task],) = yield from run(
            case,
            f"The capture at {names[task]} was {state.lower()} when last asked; I check it again.",
            [Call("check_task", {"task_id": task, "hypothesis_ids": [LOST]})],
        )
    return [{"task_id": task, **answers.get(task, _PENDING)} for task in names]


def _uncaptured(case: Case, name: str, answer: Row) -> Steps[Uncaptured]:
    """Report why there is no capture; clean up what it left."""
    if answer.get("error") == "read_only":
        case.not_verified("wire", f"no capture was taken at {name}: this investigation only reads")
        case.actions.append("Run ghost investigate without --read-only, so that it may capture.")
        return Uncaptured(True)
    if answer.get("user_denied") or answer.get("status") == "denied":
        _denied(case, name, answer)
        return Uncaptured(True, str(answer.get("denial_reason") or ""))
    case.not_verified("wire", f"the capture at {name} did not complete: {_ending(answer)}")
    if answer.get("task_id") and answer.get("status") not in ("task_cancelled", "error"):
        yield from run(case, "I clean up what it left.", [Call("cleanup_task", {"task_id": answer["task_id"]})])
    return Uncaptured()


def _denied(case: Case, name: str, answer: Row) -> None:
    reason = answer.get("denial_reason")
    because = f' (reason given: "{one_line(str(reason), 120)}")' if reason else " (no reason was given)"
    records = tuple(map(str, answer.get("shell_audit_ids") or ()))
    case.not_verified(
        "wire", f"no wire capture was examined, because the capture at {name} was denied{because}", records
    )
    case.actions.append(
        f"Approve the capture at {name} in another investigation, or take one by hand on {name} while the "
        "symptom is present (tcpdump -ni any -w by-hand.pcap) and read it: ghost pcap by-hand.pcap --findings"
    )


def _ending(answer: Row) -> str:
    if answer.get("status") == "task_pending":
        return f"it was still running after {MAX_CHECKS} checks"
    error = answer.get("error_detail") or answer.get("message") or answer.get("error") or answer.get("status")
    return one_line(str(error), 200)


def _findings(case: Case, results: dict[str, Row]) -> Steps[dict[str, Captured | Uncaptured]]:
    """Read what the engine finds in captures; then clean up. `results`: of the tasks, by machine, the source first."""
    paths = {machine: str(result.get("local_pcap_path") or "") for machine, result in results.items()}
    files = {machine: path for machine, path in paths.items() if path and not path.startswith("-")}
    found = (yield from findings_of(case, files)) if files else {}
    yield from run(
        case,
        "The findings are read; I clean up the capture.",
        [Call("cleanup_task", {"task_id": result["task_id"]}) for result in results.values()],
    )
    for machine in results.keys() - found.keys():
        case.not_verified("wire", f"the capture at {name_of(machine)} left no file to read")
    return {machine: found.get(machine, Uncaptured()) for machine in results}


def findings_of(case: Case, files: dict[str, str]) -> Steps[dict[str, Captured | Uncaptured]]:
    """Read what the engine finds in captures, and between those of two ends. `files`: by machine, the source first."""
    reads = [
        Read(("pcap-forensics", path, "--findings"), f"Findings of the capture at {name_of(machine)}.", (LOST,))
        for machine, path in files.items()
    ]
    if len(files) > 1:
        (source, near), (destination, far) = files.items()
        words = ("pcap-forensics", near, "--compare", far, "--ends", "--findings")
        reads.append(Read(words, "What became of the packets between the two ends.", (LOST,)))
    names = " and ".join(map(name_of, files))
    answers = yield from read(case, f"The capture at {names} is complete; I read what the engine finds in it.", *reads)
    comparison = _comparison(case, source, destination, answers[-1]) if len(files) > 1 else None
    alone = "the captures of the two ends share no time or traffic" if len(files) > 1 and comparison is None else ""
    return {
        machine: _read_capture(case, machine, answer, comparison, alone)
        for machine, answer in zip(files, answers, strict=False)
    }


def _read_capture(
    case: Case, machine: str, answer: Reading, comparison: Comparison | None, alone: str
) -> Captured | Uncaptured:
    name, row = name_of(machine), answer.row()
    if not isinstance(row.get("findings"), list):
        why = answer.why or "not in the expected format"
        case.not_verified("wire", f"the findings at {name} could not be read: {why}")
        return Uncaptured(reason=why)
    return replace(_captured_of(machine, row, answer.audit_ids), comparison=comparison, alone_because=alone)


def _comparison(case: Case, source: str, destination: str, answer: Reading) -> Comparison | None:
    """Return what became of the packets between two ends; None where the captures have none to compare."""
    told = answer.row().get("two_ends")
    ways = _rows(told.get("directions")) if isinstance(told, dict) else ()
    if not ways:
        case.say(f"The two captures could not be compared{f': {answer.why}' if answer.why else ''}.")
        return None
    comparison = Comparison(source, destination, ways, answer.audit_ids)
    case.state(str(comparison), *answer.audit_ids)
    return comparison


def _captured_of(machine: str, document: Row, audit_ids: tuple[str, ...]) -> Captured:
    """Return what `pcap-forensics --findings` printed of a capture at a machine."""
    capture, complete = document.get("capture"), document.get("conversations_complete")
    return Captured(
        machine,
        _rows(document.get("findings")),
        capture if isinstance(capture, dict) else {},
        audit_ids,
        _rows(document.get("conversations")),
        frozenset(map(str, complete)) if isinstance(complete, list) else frozenset(),
    )


def _rows(value: Any) -> tuple[Row, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
