"""Packet captures at machines, and what the forensic engine finds in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ghost.brain.offline.azure_reads import Read, az, query, resource_id
from ghost.brain.offline.case import Case, read, run
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.steps import Call, Steps
from ghost.net import Interface, Machine, Network, VirtualNetwork, key, name_of
from ghost.text import one_line

BRIEF_SECONDS: Final = 60
LONG_SECONDS: Final = 300
"""Azure's load balancers, firewalls and gateways forget connections after 4 minutes, by default."""
MAX_CHECKS: Final = 15
"""Maximum checks of one capture; each polls for up to 45 seconds."""
Row = dict[str, Any]


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

    @property
    def label(self) -> str:
        return name_of(self.machine)


@dataclass(frozen=True)
class Uncaptured:
    """There is no capture; the case's layer says why."""

    denied: bool = False
    reason: str = ""
    """Given by who denied it."""


def capture_at(case: Case, machine: str, traffic: str, seconds: int = BRIEF_SECONDS) -> Steps[Captured | Uncaptured]:
    """Capture at a machine, once for this long, and return the findings. `traffic`: in words."""
    if (machine, seconds) not in case.captures:
        case.captures[machine, seconds] = yield from _captured(case, machine, traffic, seconds)
    captured: Captured | Uncaptured = case.captures[machine, seconds]
    return captured


def _captured(case: Case, machine: str, traffic: str, seconds: int) -> Steps[Captured | Uncaptured]:
    place, name = resource_id(machine), name_of(machine)
    if place is None or not (yield from _may_be_captured(case, machine)):
        return Uncaptured()
    (started,) = yield from run(
        case,
        f"I capture {seconds} seconds of traffic at {name}. Creating the capture needs your approval.",
        [
            Call(
                "capture_traffic",
                {
                    "target": machine,
                    "resource_group": place.group,
                    "duration_seconds": seconds,
                    "investigation_context": traffic,
                    "hypothesis_ids": [LOST],
                },
            )
        ],
    )
    finished = yield from _finished(case, name, started)
    if isinstance(finished, Uncaptured):
        return finished
    return (yield from _findings(case, machine, finished))


def _may_be_captured(case: Case, machine: str) -> Steps[bool]:
    """Return whether a capture at the machine may work; the case's layer says why not."""
    place, name = resource_id(machine), name_of(machine)
    known = case.network.get(Machine, machine)
    if place is None or len(place.names) != 1 or (known is not None and known.power not in (None, "running")):
        case.not_verified("wire", f"{name} is not a running virtual machine, so no capture is possible there")
        return False
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
        case.not_verified("wire", f"there is no network watcher in {region}", watchers.audit_ids)
        case.actions.append(
            f"Enable capturing: az network watcher configure -g NetworkWatcherRG -l {region} --enabled true"
        )
        return False
    if extensions.ok and not any("networkwatcher" in str(list(row.values())).lower() for row in extensions.rows()):
        case.not_verified("wire", f"{name} has no Network Watcher agent, so it cannot capture", extensions.audit_ids)
        case.actions.append(
            "Install the capture agent (NetworkWatcherAgentWindows on Windows): az vm extension set "
            f"-g {place.group} --vm-name {place.name} "
            "-n NetworkWatcherAgentLinux --publisher Microsoft.Azure.NetworkWatcher"
        )
        return False
    return True


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


def _finished(case: Case, name: str, started: Row) -> Steps[Row | Uncaptured]:
    """Return the task's result once it completes."""
    task, answer = str(started.get("task_id") or ""), started
    for _ in range(MAX_CHECKS):
        if answer.get("status") != "task_pending" or not task:
            break
        state = one_line(str(answer.get("state") or "pending"), 30)
        (answer,) = yield from run(
            case,
            f"The capture at {name} is running ({state}); I check again.",
            [Call("check_task", {"task_id": task, "hypothesis_ids": [LOST]})],
        )
    if answer.get("status") == "task_completed":
        return {**(answer.get("result") or {}), "task_id": task}
    if answer.get("error") == "read_only":
        case.not_verified("wire", f"no capture was taken at {name}: {answer.get('message')}")
        case.actions.append("Run the investigation again without --read-only, so that it may capture.")
        return Uncaptured(True)
    if answer.get("user_denied") or answer.get("status") == "denied":
        _denied(case, name, answer)
        return Uncaptured(True, str(answer.get("denial_reason") or ""))
    case.not_verified("wire", f"the capture at {name} did not complete: {_ending(answer)}")
    if task and answer.get("status") not in ("task_cancelled", "error"):
        yield from run(case, "I clean up what it left.", [Call("cleanup_task", {"task_id": task})])
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


def _findings(case: Case, machine: str, result: Row) -> Steps[Captured | Uncaptured]:
    path, name = str(result.get("local_pcap_path") or ""), name_of(machine)
    if not path or path.startswith("-"):
        case.not_verified("wire", f"the capture at {name} left no file to read")
        return Uncaptured()
    (answer,) = yield from read(
        case,
        f"The capture at {name} is complete; I read what the capture engine finds in it.",
        Read(("pcap-forensics", path, "--findings"), f"Findings of the capture at {name}.", (LOST,)),
    )
    yield from run(
        case,
        "The findings are read; I clean up the capture.",
        [Call("cleanup_task", {"task_id": result["task_id"]})],
    )
    row = answer.row()
    if not isinstance(row.get("findings"), list):
        why = answer.why or "not in the expected format"
        case.not_verified("wire", f"the findings at {name} could not be read: {why}")
        return Uncaptured()
    return captured_of(machine, row, answer.audit_ids)


def captured_of(machine: str, document: Row, audit_ids: tuple[str, ...]) -> Captured:
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
