"""The offline brain's steps as tools of a model: what they find, by which records, and what they may not do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ghost.agent import Evidence, Investigation
from ghost.agent.tool_arguments import ARGUMENTS, CompleteInvestigation
from ghost.brain import CHECKS, ScriptedBrain, ToolCall
from ghost.lab import load_case
from ghost.lab.wire.packet_generator import synthesize
from ghost.shell import ApprovalRequest, HitlDecision
from tests.agent.lab_bench import opened
from tests.brain.wire_lab import NOW

Result = dict[str, Any]
TO_RECORDS = {"source": "portal-02", "destination": "records", "port": 8443}
FOUND: dict[str, tuple[tuple[str, Result], str, str]] = {  # by scenario: the check, kind and name of the cause
    "blocked-port": (("check_path", {"source": "web-vm-01", "destination": "redis-cache-01", "port": 6379}),
                     "security_rule", "cache-nsg"),
    "dns-sql-imaging": (("check_name", {"source": "scanner", "name": "clinic-sql.database.windows.net"}),
                        "dns_zone_not_linked", "privatelink.database.windows.net"),
    "lb-orders-half": (("check_load_balancer", {"name": "10.50.3.100", "source": "app-01", "port": 5432}), "", ""),
    "guest-portal-ban": (("check_guest", TO_RECORDS), "guest_firewall", "records"),
}  # fmt: skip


def ask(investigation: Investigation, name: str, /, **arguments: Any) -> Result:
    return investigation.tools.call(ToolCall("t1.1", name, arguments)).result


def begun(name: str, root: Path) -> Investigation:
    return opened(load_case(name), root, ScriptedBrain([]))


def cited(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value.get("audit_ids") or ()
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from cited(each)


def test_each_check_is_a_tool_and_finds_its_fault_by_records_of_the_session(tmp_path: Path) -> None:
    assert set(CHECKS) <= set(ARGUMENTS)
    for scenario, ((check, arguments), kind, resource) in FOUND.items():
        investigation = begun(scenario, tmp_path / scenario)
        told = ask(investigation, check, **arguments)
        found = [(cause["kind"], cause["resource"].rpartition("/")[2]) for cause in told["causes"]]
        assert (told["status"], found) == ("completed", [(kind, resource)] if kind else [])
        ids, records = set(cited(told)), Evidence(investigation.session.paths(tmp_path / scenario).shell_audit)
        assert ids
        assert records.problems(sorted(ids)) == []
        assert len(json.dumps(told)) < 9000
        CompleteInvestigation.model_validate(
            {"confidence": "low", "root_cause_summary": "", **{name: told[name] for name in ("causes", "coverage")}}
        )


def test_what_a_check_has_read_is_read_once_until_it_is_asked_for_again(tmp_path: Path) -> None:
    investigation = begun("blocked-port", tmp_path)
    ends = ask(investigation, "find_ends", text=investigation.session.symptom)
    (flow,) = ends["flows"]
    asked = {name: flow[name] for name in ("source", "destination", "protocol", "port")}
    first, second = ask(investigation, "check_path", **asked), ask(investigation, "check_path", **asked)
    anew = ask(investigation, "check_path", **asked, again=True)
    assert ends["sure"]
    assert [len(each["shell_audit_ids"]) for each in (first, second)] == [4, 0]
    assert second["causes"] == first["causes"]
    assert {"subject": "cache-nsg/close-legacy-ports", "property": "access", "value": "Deny"} in first["facts"]
    assert len(anew["shell_audit_ids"]) == 6
    assert not set(anew["shell_audit_ids"]) & set(first["shell_audit_ids"])


def test_a_change_on_the_way_is_told_with_who_made_it_and_when(tmp_path: Path) -> None:
    investigation, now = begun("hub-orders-apply", tmp_path), datetime.now(UTC)
    told = ask(investigation, "what_changed", source="orders", destination="sql-vm", port=1433)
    (changed,) = (each for each in told["statements"] if each["text"].startswith("Changed in"))
    what = r"virtualNetworks/subnets/write of services of shop-vnet at ([\d :-]{16}) UTC by d\.\.\.@retail\.example\."
    (at,) = re.findall(what, changed["text"])
    assert abs(now - timedelta(minutes=61) - datetime.fromisoformat(f"{at}Z")) < timedelta(minutes=5)
    records = Evidence(investigation.session.paths(tmp_path).shell_audit)
    assert ["activity-log" in str(records[audit_id]["command"]) for audit_id in changed["audit_ids"]] == [True]


def test_a_capture_is_judged_for_the_traffic_and_no_other_file_is_read(tmp_path: Path) -> None:
    investigation = begun("wire-loss", tmp_path)
    task = ask(investigation, "capture_traffic", target="app-vm-01", resource_group="app-rg", duration_seconds=20)
    done = ask(investigation, "check_task", task_id=task["task_id"])
    while done["status"] == "task_pending":
        done = ask(investigation, "check_task", task_id=task["task_id"])
    traffic = {"source": "app-vm-01", "destination": "db-vm-01", "port": 5432, "machine": "app-vm-01"}
    told = ask(investigation, "read_capture", path=done["result"]["local_pcap_path"], **traffic)
    assert [(cause["kind"], cause["confidence"]) for cause in told["causes"]] == [("packet_loss", "high")]
    assert [finding["kind"] for finding in told["findings"]] == ["loss"]
    assert told["_meta"]["evidence_tier"] == 1
    other = ask(investigation, "read_capture", path="/etc/passwd", **traffic)
    assert (other["status"], "Refused" in other["message"]) == ("error", True)


def test_both_captures_of_a_pair_are_compared_when_either_is_read(tmp_path: Path) -> None:
    case, names = load_case("wire-loss"), ("app-vm-01", "db-vm-01")
    investigation = opened(case, tmp_path, ScriptedBrain([]))
    target = " to ".join(case.world.documents.id_of(f"virtualMachines/{name}") for name in names)
    task = ask(investigation, "capture_traffic", target=target, resource_group="app-rg", duration_seconds=120)
    done = ask(investigation, "check_task", task_id=task["task_id"])
    while done["status"] == "task_pending":
        done = ask(investigation, "check_task", task_id=task["paired_task"]["task_id"])
    here, there = done["result"]["local_pcap_path"], done["paired_task"]["local_pcap_path"]
    paths = dict(zip(names, (there, here) if names[1] in done["target"] else (here, there), strict=True))
    for late, (name, path) in enumerate(paths.items()):  # at this speed the two ends were not captured at the same time
        Path(path).write_bytes(synthesize(case.world, name, NOW + timedelta(seconds=late), 60, 1))
    traffic = {"source": names[0], "destination": names[1], "port": 5432}
    for name, path in paths.items():
        told = ask(investigation, "read_capture", path=path, machine=name, **traffic)
        (both,) = (each["text"] for each in told["statements"] if each["text"].startswith("Packets at both ends"))
        assert "app-vm-01 to db-vm-01: " in both
        (cause, *_) = told["causes"]
        assert (cause["kind"], cause["resource"].rpartition("/")[2]) == ("packet_loss", "app-vm-01")
        assert "are lost" in told["statements"][1]["text"]
        assert "between app-vm-01 and db-vm-01 (" in told["statements"][1]["text"]
    wrong = ask(investigation, "read_capture", path=paths[names[0]], machine=names[1], **traffic)
    assert wrong["error"] == "wrong_machine"


def test_a_denied_guest_is_told_counts_as_a_denial_and_is_not_asked_again(tmp_path: Path) -> None:
    asked: list[str] = []

    def no(request: ApprovalRequest) -> HitlDecision:
        asked.extend(request.lines)
        return HitlDecision("deny", reason="not on records")

    investigation = opened(load_case("guest-portal-ban"), tmp_path, ScriptedBrain([]), approve=no)
    for number in range(2):
        told = ask(investigation, "check_guest", **TO_RECORDS, again=bool(number))
        assert told.get("user_denied", False) is (number == 0)
        (guest,) = (row for row in told["coverage"] if row["layer"] == "guest_firewall")
        assert (guest["status"], "denied" in guest["note"]) == ("not_verified", True)


def test_an_end_that_is_not_known_is_said_and_no_other_stands_for_it(tmp_path: Path) -> None:
    investigation = begun("guest-portal-ban", tmp_path)
    for wrong in ({"source": "nowhere"}, {"source": "portal-02; reboot", "destination": "$(reboot)"}):
        told = ask(investigation, "check_path", **TO_RECORDS | wrong)
        assert "not_known" in told
        assert "walks" not in told
    records = Evidence(investigation.session.paths(tmp_path).shell_audit)
    assert not [each for each in records.values() if "reboot" in str(each["command"])]
    assert ask(investigation, "check_path", source="portal-02")["error"] == "invalid_arguments"


def test_with_placeholders_a_check_is_asked_and_answers_in_them(tmp_path: Path) -> None:
    investigation = begun("blocked-port", tmp_path)
    investigation.tools._hide = lambda text: text.replace("10.20.2.5", "ip_7")
    investigation.tools._real = lambda text: text.replace("ip_7", "10.20.2.5")
    told = ask(investigation, "check_path", source="web-vm-01", destination="ip_7", port=6379)
    assert told["causes"]
    assert "ip_7" in json.dumps(told)
    assert "10.20.2.5" not in json.dumps(told)
