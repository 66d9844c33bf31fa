"""The path in the report is what `ghost reach` walks in the same network, with the fault in its place."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ghost.agent import load_session, verify_session
from ghost.agent.report_path import paths_of
from tests.agent.conftest import SESSION, command, complete, turn
from tests.agent.test_rca_report import finished
from tests.cli.ready_ghost import run_ghost
from tests.exhaustive import sample
from tests.net.small_network import machine_id, network, nic, subnet, vnet

FAST = {"GHOST_LAB_SPEED": "1000", "COLUMNS": "200"}
FAULTS = {
    "blocked-port": ("forward", "security_group", "drop", "close-legacy-ports"),
    "wire-loss": ("forward", "wire", "at_fault", None),
    "routes-storefront": ("return", "firewall", "drop", None),
    "peering-orders-db": ("forward", "peering", "drop", "data-to-hub"),
    "lb-orders-half": ("forward", "guest", "reject", None),
    "dns-search-host": ("forward", "zone", "drop", "search"),
    "guest-broker-queue": ("forward", "guest", "drop", "inet baseline inbound handle 10"),
    "paas-vault-start": ("forward", "key_vault", "drop", "Pending"),
    "nat-card-clearing": ("forward", "nat", "at_fault", None),
    "calm-sql-graph": None,
}
"""Of each scenario, the hop that is at fault."""
DECIDES = ("leg", "kind", "resource", "verdict", "reason")


def ghost(*words: str, cwd: Path, status: int = 0) -> str:
    done = run_ghost(*words, cwd=cwd, environment=FAST, in_process=True)
    assert done.returncode == status, done.stderr
    return done.stdout


def investigated(scenario: str, directory: Path) -> dict[str, Any]:
    ghost("investigate", "--lab", scenario, "--brain", "offline", "--workspace", "w", cwd=directory)
    (report,) = (directory / "w/audit").glob("ghost_rca_*.json")
    return json.loads(report.read_text())


def reached(scenario: str, flow: dict[str, Any], directory: Path) -> list[dict[str, Any]]:
    ends = flow["source"], flow["destination"], str(flow["port"])
    done = run_ghost("reach", *ends, "--lab", scenario, "--json", cwd=directory, environment=FAST, in_process=True)
    return json.loads(done.stdout)[0]["hops"]


def decided(hops: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(hop[name] for name in DECIDES) for hop in hops]


@pytest.mark.parametrize("scenario", sample(FAULTS, 5, seed=0))
def test_it_is_what_reach_walks_with_the_fault_in_its_place(scenario: str, tmp_path: Path) -> None:
    (path,) = investigated(scenario, tmp_path)["path"]
    faults = [hop for hop in path["hops"] if hop["fault"]]
    hops = reached(scenario, path["flow"], tmp_path)
    if FAULTS[scenario] is None:
        assert (faults, path["outcome"]) == ([], "passes")
    else:
        (fault,) = faults
        *place, rule = FAULTS[scenario]
        assert [fault["leg"], fault["kind"], fault["verdict"]] == place
        assert (fault["rule"] or "").startswith(rule or "")
        assert fault["audit_ids"]
    if scenario == "nat-card-clearing":  # its own hop is the fault
        assert [hop["kind"] for hop in hops] == [hop["kind"] for hop in path["hops"]]
    elif scenario == "lb-orders-half":  # reach shows the other member; the report the one that refuses
        own = [hop["kind"] for hop in path["hops"] if hop["kind"] != "guest"]
        assert own == [hop["kind"] for hop in hops if hop["leg"] == "forward"]
    else:  # reach reads no guest and captures nothing
        own = [hop for hop in path["hops"] if hop["kind"] not in ("guest", "wire")]
        legs = {hop["leg"] for hop in own}
        assert decided(own) == decided([hop for hop in hops if hop["leg"] in legs])
    behind = path["hops"][path["hops"].index(faults[0]) + 1 :] if faults and path["outcome"] == "blocked" else []
    assert [hop["reached"] for hop in path["hops"]] == [hop not in behind for hop in path["hops"]]


def test_an_edited_verdict_is_found_and_the_timeline_is_on_one_clock(tmp_path: Path) -> None:
    report = investigated("wire-loss", tmp_path)
    session, intact = load_session(tmp_path / "w/ghost_session.json")
    paths = session.paths(tmp_path / "w")

    def wrong() -> list[str]:
        paths.report_json.write_text(json.dumps(report))
        return [p for c in verify_session(session, paths, checksum_holds=intact) for p in c.problems if p[:4] == "path"]

    assert wrong() == []
    fault = next(hop for hop in report["path"][0]["hops"] if hop["fault"])
    fault["verdict"] = "pass"
    assert wrong() == ["path 1, hop 4: verdict is 'pass', by the records 'at_fault'"]
    report["path"].append(report["path"][0])
    assert "path 2 in the report, 1 by the records" in wrong()
    found, *others = report["captured_findings"]  # those of both ends depend on how long both captures ran
    assert {each["seen_at"] for each in others} <= {"app-vm-01", "app-vm-01 (A) and db-vm-01 (B)"}
    assert (found["severity"], found["seen_at"], found["owner"]) == ("MEDIUM", "app-vm-01", "network")
    assert found["frames"]
    assert all(step["command"] and step["run_on"] for step in found["next"])
    rows = report["timeline"]
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    began, *seen, ended = [row["kind"] for row in rows if row["kind"] != "command"]
    assert (began, set(seen), ended) == ("investigation", {"finding"}, "investigation")
    created = next(n for n, row in enumerate(rows) if "packet-capture create" in row["what"])
    first_seen = next(n for n, row in enumerate(rows) if row["what"].startswith("Seen first at app-vm-01: "))
    assert created < first_seen < len(rows) - 1


def test_too_few_records_give_no_path(bench) -> None:
    traffic = [{"source": "10.0.0.4", "destination": "10.0.1.4", "protocol": "Tcp", "port": 443}, {"source": "vm-1"}]
    reading = turn("", command("az vm list -g rg"), number=1)
    _, report, _ = finished(bench, reading, turn("", complete(traffic=traffic)))
    assert report["path"] == []


VM = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm-2"
LOGGED = [
    {"caller": "kim@shop.example", "eventTimestamp": "2026-01-01T11:00:00.1234567Z", "resourceId": VM,
     "status": {"value": "Succeeded"},
     "operationName": {"value": "Microsoft.Compute/virtualMachines/deallocate/action"}},
    {"caller": "kim@shop.example", "eventTimestamp": "2026-01-01T11:30:00Z", "resourceId": VM,
     "operationName": {"value": "Microsoft.Compute/virtualMachines/write"}, "status": {"value": "Failed"}},
    {"caller": "kim@shop.example", "eventTimestamp": "2026-01-01T11:30:00Z", "resourceId": VM.replace("vm-2", "vm-9"),
     "operationName": {"value": "Microsoft.Compute/virtualMachines/write"}, "status": {"value": "Succeeded"}},
    {"caller": None, "eventTimestamp": "yesterday", "resourceId": VM, "operationName": None, "status": None},
    "no entry",
]  # fmt: skip


def test_the_timeline_tells_changes_of_what_is_blamed_and_what_was_denied(bench) -> None:
    bench.outputs["az monitor activity-log list"] = (0, json.dumps(LOGGED))
    cause = {"kind": "machine_stopped", "resource": VM, "confidence": "medium", "audit_ids": [f"{SESSION}_001"]}
    reading = turn(
        "",
        command("az vm get-instance-view -g rg -n vm-2"),
        command("az monitor activity-log list --offset 24h"),
        command("az vm restart -g rg -n vm-1"),
    )
    _, report, _ = finished(bench, reading, turn("", complete(causes=[cause], outcome="cause_found")))
    told = [(row["kind"], row["what"], [each[-3:] for each in row["audit_ids"]]) for row in report["timeline"]]
    assert told[0] == ("change", "k...@shop.example asked for deallocate of virtualMachines vm-2.", ["002"])
    assert ("command", "Denied: az vm restart vm-1 (not now).", ["003"]) in told
    assert [kind for kind, *_ in told].count("change") == 1


PLACES = [
    ("not_listening", "b", ("forward", "guest", "b"), "blocked"),
    ("packet_loss", "a", ("forward", "wire", "a to b"), "passes"),
    ("packet_loss", "b", ("return", "wire", "b to a"), "passes"),
    ("slow_service", "b", ("forward", "guest", "b"), "passes"),
    ("packet_loss", "c", None, "passes"),
]
"""Kind of fault, machine, place of its hop and outcome of the path."""


@pytest.mark.parametrize(("kind", "machine", "place", "outcome"), PLACES)
def test_what_a_capture_shows_is_put_where_it_is(kind: str, machine: str, place: Any, outcome: str) -> None:
    walked = network(vnet("net", "10.0.0.0/16", subnet("net/s", "10.0.0.0/24")), *(
        nic(name, f"10.0.0.{number}", "net/s") for number, name in enumerate("abc", 4)
    ))  # fmt: skip
    flow = {"source": "a", "destination": "10.0.0.5", "protocol": "Tcp", "port": 80}
    seen = {"resource": machine_id(machine), "audit_ids": ["s_1"], "checked": "the capture shows it"}
    cause = {"kind": kind, "flow": flow, "supported": True, **seen}
    report = {"causes": [cause, {**cause, "supported": False}], "coverage": [], "statements": []}
    (path,) = paths_of(report, [], SimpleNamespace(is_masked=False, network=walked))
    faults = [hop for hop in path["hops"] if hop["fault"]]
    assert [(hop["leg"], hop["kind"], hop["name"]) for hop in faults] == ([place] if place else [])
    assert (path["outcome"], path["source_name"], path["destination_name"]) == (outcome, "a", "b")
    assert {(hop["reason"], *hop["audit_ids"]) for hop in faults} == (
        {("the capture shows it", "s_1")} if place else set()
    )
    assert all(hop["reached"] for hop in path["hops"]) is (outcome == "passes")
    legs = [hop["leg"] for hop in path["hops"]]
    assert legs == sorted(legs)


@pytest.mark.parametrize("stopped", [(), ("b",)], ids=["passes", "blocked"])
def test_without_a_cause_no_path_shows_a_fault_that_the_report_does_not_name(stopped: tuple[str, ...]) -> None:
    walked = network(vnet("net", "10.0.0.0/16", subnet("net/s", "10.0.0.0/24")), *(
        nic(name, f"10.0.0.{number}", "net/s") for number, name in enumerate("ab", 4)
    ), stopped=stopped)  # fmt: skip
    traffic = [{"source": "a", "destination": "10.0.0.5", "protocol": "Tcp", "port": 80}]
    report = {"causes": [], "coverage": [], "statements": []}
    paths = paths_of(report, traffic, SimpleNamespace(is_masked=False, network=walked))
    assert [path["outcome"] for path in paths] == ([] if stopped else ["passes"])
