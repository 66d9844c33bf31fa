"""Packet captures at the source, and at the destination if that is needed to locate the fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ghost.brain.offline.azure_reads import Read, az, is_name, query
from ghost.brain.offline.case import Case, read, run
from ghost.brain.offline.endpoints import End
from ghost.brain.offline.hypothesis_catalogue import LOST
from ghost.brain.offline.steps import Call, Steps
from ghost.brain.offline.symptom import Symptom
from ghost.text import one_line

DURATION_SECONDS = 60
MAX_CHECKS = 15
"""Maximum checks of one capture; each polls for up to 45 seconds."""


@dataclass(frozen=True)
class Captured:
    """The findings of one capture."""

    end: End
    findings: tuple[dict[str, Any], ...]
    capture: dict[str, Any]
    audit_ids: tuple[str, ...]
    conversations: tuple[dict[str, Any], ...] = ()
    """Conversations: src, dst, protocol, port, packets, unanswered."""
    complete: frozenset[str] = frozenset()
    """Protocols with a complete list of conversations: one that is not listed does not exist."""


def capture_at(case: Case, symptom: Symptom, end: End, other: End) -> Steps[Captured | None]:
    """Capture at the interface of `end` and return the findings; None, with a note, if that is not possible."""
    account = yield from _prepared(case, end)
    if account is None or end.machine is None:
        return None
    (started,) = yield from run(
        case,
        f"I capture {DURATION_SECONDS} seconds of traffic at {end.label} into the storage account {account}. "
        "Creating the capture needs your approval.",
        [
            Call(
                "capture_traffic",
                {
                    "target": end.machine_id or end.machine.name,
                    "resource_group": end.machine.group,
                    "storage_account": account,
                    "duration_seconds": DURATION_SECONDS,
                    "investigation_context": f"{symptom.flow_name} between {end.label} and {other.label}",
                    "hypothesis_ids": [LOST],
                },
            )
        ],
    )
    finished = yield from _finished(case, end, started)
    if finished is None:
        return None
    return (yield from _findings(case, end, finished))


def _prepared(case: Case, end: End) -> Steps[str | None]:
    """Return the storage account to capture into; None, with a note, if a requirement is missing."""
    if end.machine is None or end.running is False:
        case.not_verified(
            "wire", f"{end.label} is not a running machine of the tenant, so no capture is possible there"
        )
        return None
    accounts, watchers, extensions = yield from read(
        case,
        "A capture needs a storage account and a network watcher in the region, and the agent on the machine.",
        Read(
            az("storage", "account", "list", query=query("storage_accounts")),
            "Storage accounts for a capture.",
            (LOST,),
        ),
        Read(az("network", "watcher", "list", query=query("watchers")), "Regions with a network watcher.", (LOST,)),
        Read(
            az(
                "vm",
                "extension",
                "list",
                "-g",
                end.machine.group,
                "--vm-name",
                end.machine.name,
                query=query("extensions"),
            ),
            f"Whether the capture agent is on {end.machine.name}.",
            (LOST,),
        ),
    )
    region = _region(end.location)
    if watchers.ok and region not in {_region(row.get("location")) for row in watchers.rows()}:
        case.not_verified("wire", f"there is no network watcher in {region}", watchers.audit_ids)
        case.actions.append(
            f"Enable capturing: az network watcher configure -g NetworkWatcherRG -l {region} --enabled true"
        )
        return None
    if extensions.ok and not any("networkwatcher" in str(list(row.values())).lower() for row in extensions.rows()):
        case.not_verified(
            "wire", f"{end.label} has no Network Watcher agent, so it cannot capture", extensions.audit_ids
        )
        case.actions.append(
            "Install the capture agent (NetworkWatcherAgentWindows on Windows): az vm extension set "
            f"-g {end.machine.group} --vm-name {end.machine.name} "
            "-n NetworkWatcherAgentLinux --publisher Microsoft.Azure.NetworkWatcher"
        )
        return None
    usable = [row for row in accounts.rows() if is_name(row.get("name")) and _region(row.get("location")) == region]
    if not usable:
        why = f"there is no storage account in {region}" if accounts.ok else accounts.why
        case.not_verified("wire", f"nothing could be captured: {why}", accounts.audit_ids if accounts.ok else ())
        return None
    group = end.machine.group.casefold()
    usable.sort(key=lambda row: (row.get("firewall") == "Deny", str(row.get("group")).casefold() != group, row["name"]))
    return str(usable[0]["name"])


def _region(location: Any) -> str:
    """Return a normalised region: Azure writes `East US` and `eastus` for the same one."""
    return "".join(c for c in str(location or "").lower() if c.isalnum())


def _finished(case: Case, end: End, started: dict[str, Any]) -> Steps[dict[str, Any] | None]:
    """Return the task's result once it completes; None, with a note, for any other end."""
    task, answer = str(started.get("task_id") or ""), started
    for _ in range(MAX_CHECKS):
        if answer.get("status") != "task_pending" or not task:
            break
        state = one_line(str(answer.get("state") or "pending"), 30)
        (answer,) = yield from run(
            case,
            f"The capture at {end.label} is running ({state}); I check again.",
            [Call("check_task", {"task_id": task, "hypothesis_ids": [LOST]})],
        )
    if answer.get("status") == "task_completed":
        return {**(answer.get("result") or {}), "task_id": task}
    if answer.get("user_denied") or answer.get("status") == "denied":
        _denied(case, end, answer)
        return None
    case.not_verified("wire", f"the capture at {end.label} did not complete: {_ending(answer)}")
    if task and answer.get("status") not in ("task_cancelled", "error"):
        yield from run(case, "I clean up what it left.", [Call("cleanup_task", {"task_id": task})])
    return None


def _denied(case: Case, end: End, answer: dict[str, Any]) -> None:
    reason = answer.get("denial_reason")
    because = f' (reason given: "{one_line(str(reason), 120)}")' if reason else " (no reason was given)"
    records = tuple(map(str, answer.get("shell_audit_ids") or ()))
    case.not_verified(
        "wire", f"no wire capture was examined, because the capture at {end.label} was denied{because}", records
    )
    case.actions.append(
        f"Approve the capture at {end.label} in another investigation, or take one by hand on {end.label} while the "
        "symptom is present (tcpdump -ni any -w by-hand.pcap) and read it: pcap-forensics by-hand.pcap --findings"
    )


def _ending(answer: dict[str, Any]) -> str:
    if answer.get("status") == "task_pending":
        return f"it was still running after {MAX_CHECKS} checks"
    error = answer.get("error_detail") or answer.get("message") or answer.get("error") or answer.get("status")
    return one_line(str(error), 200)


def _findings(case: Case, end: End, result: dict[str, Any]) -> Steps[Captured | None]:
    path = str(result.get("local_pcap_path") or "")
    if not path or path.startswith("-"):
        case.not_verified("wire", f"the capture at {end.label} left no file to read")
        return None
    (answer,) = yield from read(
        case,
        f"The capture at {end.label} is complete; I read what the forensic engine finds in it.",
        Read(("pcap-forensics", path, "--findings"), f"Findings of the capture at {end.label}.", (LOST,)),
    )
    yield from run(
        case,
        "The findings are read; I clean up the capture.",
        [Call("cleanup_task", {"task_id": result["task_id"]})],
    )
    row = answer.row()
    if not isinstance(row.get("findings"), list):
        case.not_verified(
            "wire", f"the findings at {end.label} could not be read: {answer.why or 'not in the known form'}"
        )
        return None
    findings = tuple(item for item in row["findings"] if isinstance(item, dict))
    capture = row.get("capture")
    talks, complete = row.get("conversations"), row.get("conversations_complete")
    return Captured(
        end,
        findings,
        capture if isinstance(capture, dict) else {},
        answer.audit_ids,
        tuple(item for item in talks if isinstance(item, dict)) if isinstance(talks, list) else (),
        frozenset(map(str, complete)) if isinstance(complete, list) else frozenset(),
    )


def between(captured: Captured, source: End, destination: End) -> list[dict[str, Any]]:
    """Return the findings about the two ends, in either direction and on any port, most important first."""
    pair = {source.address, destination.address}
    return [finding for finding in captured.findings if _ends_of(finding) == pair]


def of_flow(finding: dict[str, Any], symptom: Symptom) -> bool:
    """Return whether a finding is about the symptom's traffic, by port and protocol if stated. A finding of the path
    without a port concerns every flow.
    """
    protocol, port = str(finding.get("protocol") or ""), port_of(finding)
    if symptom.protocol == "Icmp":
        return protocol.casefold() not in ("tcp", "udp")
    if symptom.protocol_stated and {protocol.casefold(), symptom.protocol.casefold()} == {"tcp", "udp"}:
        return False
    return not symptom.port_decides or port in (None, symptom.port)


def talks(captured: Captured, symptom: Symptom, source: End, destination: End) -> list[dict[str, Any]]:
    """Return the conversations of the symptom's traffic in the capture."""
    pair = {source.address, destination.address}
    protocol = symptom.protocol.casefold() if symptom.protocol_stated or symptom.protocol == "Icmp" else ""
    return [
        row
        for row in captured.conversations
        if {str(row.get("src")), str(row.get("dst"))} == pair
        and protocol in ("", str(row.get("protocol")).casefold())
        and (not symptom.port_decides or row.get("port") == symptom.port)
    ]


def _ends_of(finding: dict[str, Any]) -> set[str]:
    who = finding.get("who")
    return {str(who.get("src")), str(who.get("dst"))} if isinstance(who, dict) else set()


def port_of(finding: dict[str, Any]) -> int | None:
    port = (finding.get("who") or {}).get("port")
    return int(port) if isinstance(port, int) or (isinstance(port, str) and port.isdigit()) else None
