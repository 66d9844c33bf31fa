"""What is claimed is compared with what code takes from the records: of a lab's tenant, and of what Azure answered."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest

from ghost.agent import Evidence, Session
from ghost.agent import finished as remembered
from ghost.agent.facts import Proofs
from ghost.agent.facts.recorded_facts import fact_shapes, facts_in
from ghost.agent.facts.second_walk import network_of_records
from ghost.agent.verification import verify_session
from ghost.lab import load_scenario
from ghost.lab.directory import LabClock, LabDirectory
from ghost.net import GUEST_SCRIPT, Answer, Flow, Guest, Network, collect, known_kinds
from tests.agent.conftest import MACHINE, SESSION, STATE, Bench, command, complete, hypothesis, turn
from tests.agent.test_rca_report import finished
from tests.lab.in_process import run_main

RECORDED = Path(__file__).parents[3] / "shared" / "data" / "azure-recorded"
FLOW = Flow("Tcp", "10.20.1.4", None, "10.20.2.5", 6379)
FINDING = {"kind": "loss", "who": {"src": "10.20.1.4", "dst": "10.20.2.5", "port": 6379}, "measured": {"loss_pct": 2}}
INSIDE = (
    "----- begin udp -----\n----- end udp: 0 -----\n"
    "----- begin tcp -----\nLISTEN 0 5 127.0.0.1:6379 0.0.0.0:*\n----- end tcp: 0 -----"
)
RUN = ("az", "vm", "run-command", "invoke", "-g", "prod-rg", "-n", "redis-cache-01", "--command-id", "RunShellScript")
OTHERS = {
    "ping": ("ping -c 1 10.20.2.5", 1, "1 packets transmitted, 0 received, 100% packet loss"),
    "names": ("az network nsg list --query [].name -o json", 0, '["cache-nsg"]'),
    "absent": ("az network nsg show -g prod-rg -n none", 3, ""),
    "loss": ("pcap-forensics a.pcap --findings", 0, json.dumps({"findings": [FINDING]})),
    "summary": ("cat captures/a_executive_summary.md", 0, "# HIGH: 10.20.2.5:6379 loses packets\n**Seen:** 20 of 30"),
    "reset": (
        "pcap-forensics b.pcap --findings",
        0,
        json.dumps({"findings": [{**FINDING, "kind": "third_party_reset"}, {**FINDING, "kind": "routing_loop"}]}),
    ),
    "inside": (
        shlex.join([*RUN, "--scripts", *GUEST_SCRIPT]),
        0,
        json.dumps({"value": [{"code": "x", "message": f"Enable succeeded: \n[stdout]\n{INSIDE}\n[stderr]\n"}]}),
    ),
    "off": ("az vm get-instance-view -g prod-rg -n old-vm", 0, json.dumps({**MACHINE, "name": "old-vm"})),
}


def evidence_of(path: Path, rows: list[tuple[str, int, str]]) -> Evidence:
    records = [
        {
            "audit_id": f"{SESSION}_{n:03d}",
            "timestamp": "2026-01-01T12:00:00.000Z",
            "command": line,
            "status": "completed",
            "classification": "SAFE" if "run-command" not in line and " delete " not in line else "RISKY",
            "exit_code": status,
            "output": text,
        }
        for n, (line, status, text) in enumerate(rows, 1)
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return Evidence(path)


@pytest.fixture(scope="module")
def reads(tmp_path_factory) -> list[tuple[str, int, str]]:
    """What walks of a blocked flow read from the lab's tenant."""
    clock = LabClock(1_700_000_000.0, 1e-12)
    home = LabDirectory.create(tmp_path_factory.mktemp("lab") / "lab", load_scenario("blocked-port"), clock)
    rows: list[tuple[str, int, str]] = []

    def execute(read) -> Answer:
        done = run_main("ghost.lab.programs.az", read.argv[1:], {"GHOST_LAB_DIR": str(home.path)})
        rows.append((shlex.join(read.argv), done.returncode, done.stdout.decode()))
        return Answer(done.stdout.decode(), "", done.stderr.decode() if done.returncode else None)

    collect([FLOW], execute)
    return rows


@pytest.fixture
def proofs(tmp_path, reads) -> tuple[Proofs, dict[str, str], list[str]]:
    rows = [*reads, *OTHERS.values()]
    ids = [f"{SESSION}_{n:03d}" for n in range(1, len(rows) + 1)]
    named = dict(zip(OTHERS, ids[len(reads) :], strict=True))
    evidence = evidence_of(tmp_path / f"shell_audit_{SESSION}.jsonl", rows)
    return Proofs(evidence, SESSION), named, ids[: len(reads)]


REDIS = {"source": "web-vm-01", "destination": "redis-cache-01", "protocol": "Tcp", "port": 6379}
BLOCK = {"kind": "security_rule", "resource": "cache-nsg", "rule": "close-legacy-ports", "flow": REDIS}
CAUSES = [
    # (cause, cited: the reads of the way, or names of others; the problem; how it was checked, or why it is medium)
    (BLOCK, "", "", "without rule close-legacy-ports of cache-nsg: the next"),
    ({**BLOCK, "flow": {**REDIS, "source": "10.20.1.4", "destination": "10.20.2.5"}}, "", "", "walked again"),
    ({"kind": "not_listening", "resource": "redis-cache-01", "flow": REDIS}, "inside", "", "walked again"),
    ({"kind": "guest_firewall", "resource": "redis-cache-01", "flow": REDIS}, "inside", "what stops", ""),
    ({**BLOCK, "direction": "Outbound"}, "", "what stops", ""),
    ({**BLOCK, "rule": "allow-redis"}, "", "what stops", ""),
    ({**BLOCK, "flow": {**REDIS, "port": 22}}, "", "what stops", ""),
    (BLOCK, "names", "it rests on", ""),
    (BLOCK, "ping", "no [CLOUD] record that succeeded", ""),
    (BLOCK, "absent", "no [CLOUD] record that succeeded", ""),
    ({**BLOCK, "flow": None}, "names", "no access of cache-nsg close-legacy-ports", ""),
    ({**BLOCK, "flow": None}, "", "", "its flow walked again"),
    ({**BLOCK, "flow": None, "rule": "allow-redis"}, "", "it says cache-nsg/allow-redis access Allow", ""),
    ({"kind": "machine_stopped", "resource": "redis-cache-01", "flow": REDIS}, "", "what stops", ""),
    ({"kind": "machine_stopped", "resource": "redis-cache-01"}, "", "it says redis-cache-01 power running", ""),
    ({"kind": "machine_stopped", "resource": "old-vm"}, "off", "", "the record shows it"),
    ({"kind": "route_none", "resource": "web-vm-01-nic", "flow": REDIS}, "", "what stops", ""),
    ({"kind": "packet_loss", "resource": "web-vm-01", "flow": REDIS}, "loss", "", "the capture shows it"),
    ({"kind": "packet_loss", "resource": "x", "flow": {"source": "10.9.9.8", "destination": "10.9.9.9"}}, "loss",
     "no capture with loss", ""),
    ({"kind": "packet_loss", "resource": "web-vm-01", "flow": REDIS}, "", "no capture with loss", ""),
    ({"kind": "packet_loss", "resource": "web-vm-01", "flow": REDIS}, "summary", "", "the kinds of its findings"),
    ({"kind": "packet_loss", "resource": "x", "flow": {"destination": "10.20.2.7"}}, "summary", "no capture", ""),
    ({"kind": "packet_loss", "resource": "web-vm-01"}, "loss", "", "the capture shows it"),
    ({"kind": "packet_loss", "resource": "jobs-vm-01"}, "loss", "no capture with loss", ""),
    ({"kind": "azure_firewall", "resource": "web-vm-01", "flow": REDIS}, "reset", "what stops", ""),
    ({"kind": "azure_firewall", "resource": "web-vm-01"}, "reset", "", "other faults are seen so too"),
    ({"kind": "reset_on_path", "resource": "web-vm-01"}, "reset", "", "the capture shows it"),
    ({"kind": "routing_loop", "resource": "web-vm-01", "flow": REDIS}, "reset", "", "the capture shows it"),
    ({"kind": "mtu_black_hole", "resource": "web-vm-01"}, "loss", "no capture with mtu_black_hole", ""),
    ({"kind": "routing_loop", "resource": "web-vm-01"}, "names", "could not be walked", ""),
]  # fmt: skip
STATEMENTS = [
    ("redis-cache-01 is deallocated.", "", [], "it says redis-cache-01 power running"),
    ("The machine is deallocated.", "", [], "power running"),
    ("old-vm is deallocated, and web-vm-01 is running.", "off", [], ""),
    ("redis-cache-01 is not deallocated; if old-vm were deallocated, it would fail.", "", [], ""),
    ("TCP port 6379 from web-vm-01 to redis-cache-01 is stopped.", "", [], ""),
    ("redis-cache-01 is powered off.", "", [], "power running"),
    ("allow-redis denies it.", "", [], "it says cache-nsg/allow-redis access Allow"),
    ("close-legacy-ports denies it before allow-redis is met.", "", [], ""),
    (f"As {SESSION}_777 shows.", "", [], f"{SESSION}_777 is not an audit record"),
    ("x", "", [("redis-cache-01", "power", "VM running")], ""),
    ("x", "", [("cache-nsg/close-legacy-ports", "access", "Deny"), ("close-legacy-ports", "priority", "200")], ""),
    ("x", "", [("close-legacy-ports", "access", "Allow")], "it says cache-nsg/close-legacy-ports access Deny"),
    ("x", "", [("web-vm-01", "colour", "blue")], "shows no colour of web-vm-01"),
    ("x", "ping", [("10.20.2.5", "packet loss", "100%")], ""),
    ("x", "loss", [("10.20.1.4", "finding", "loss")], ""),
]


def test_a_cause_is_what_its_records_show(proofs):
    checks, named, way = proofs
    for cause, cited, problem, told in CAUSES:
        proof = checks.proof_of({"rule": "", "audit_ids": [named[cited]] if cited else way, **cause})
        problems = "; ".join(proof.problems)
        assert (problem in problems) if problem else not problems, (cause, cited, proof)
        assert told in f"{proof.checked} {proof.limit}", (cause, cited, proof)


def test_a_cause_may_cite_a_read_that_was_repeated_with_the_same_answer(tmp_path, reads):
    evidence = evidence_of(tmp_path / f"shell_audit_{SESSION}.jsonl", [*reads, *reads])
    first = [f"{SESSION}_{n:03d}" for n in range(1, len(reads) + 1)]
    assert not Proofs(evidence, SESSION).proof_of({**BLOCK, "audit_ids": first}).problems


def test_a_capture_that_saw_the_flow_answered_leaves_a_cause_of_configuration_medium(tmp_path, reads):
    row = {"src": "10.20.1.4", "dst": "10.20.2.5", "protocol": "TCP", "port": 6379, "packets": 20}
    for seen, limit in (
        ({"answered": 4}, "answered 4"),
        ({"answered": 1, "unanswered": 3}, ""),
        ({"unanswered": 4}, ""),
    ):
        capture = json.dumps({"findings": [], "conversations": [{**row, **seen}]})
        path = tmp_path / f"shell_audit_{SESSION}.jsonl"
        evidence = evidence_of(path, [*reads, ("pcap-forensics a.pcap --findings", 0, capture)])
        proof = Proofs(evidence, SESSION).proof_of({**BLOCK, "audit_ids": [*evidence]})
        assert limit in proof.limit, seen
        assert bool(proof.limit) is bool(limit)


def test_a_statement_says_what_its_records_say(proofs):
    checks, named, way = proofs
    for text, cited, stated, problem in STATEMENTS:
        facts = [dict(zip(("subject", "property", "value"), each, strict=True)) for each in stated]
        statement = {"text": text, "facts": facts, "audit_ids": [named[cited]] if cited else way}
        found = "; ".join(checks.statement_problems(statement))
        assert (problem in found) if problem else not found, (text, stated, found)


def test_a_failed_read_clears_no_layer(proofs):
    checks, named, way = proofs
    row = {"layer": "nsg_inbound", "status": "cleared", "audit_ids": [named["absent"]], "note": ""}
    assert "a failed read clears nothing" in checks.coverage_problems(row)[0]
    assert not checks.coverage_problems({**row, "audit_ids": [named["absent"], way[0]]})


def test_what_a_session_read_is_one_network_and_a_change_makes_it_unread(tmp_path, reads):
    def network(*more: tuple[str, int, str]) -> Network:
        path = tmp_path / f"shell_audit_{SESSION}{len(more)}.jsonl"
        path.unlink(missing_ok=True)
        evidence = evidence_of(path, [*reads, *more])
        return network_of_records(evidence, evidence.real_output)

    (guest,) = network(OTHERS["inside"]).all(Guest).values()
    assert [(kind, listener.port) for kind, listener in guest.listeners] == [("tcp", 6379)]
    changed = network(("az network nsg rule delete -g prod-rg --nsg-name cache-nsg -n x", 0, ""), reads[0])
    assert set(changed.resources) < set(network().resources)


def test_30_records_are_checked_in_300_ms(tmp_path, reads):
    started = time.process_time()
    evidence = evidence_of(tmp_path / f"shell_audit_{SESSION}.jsonl", [*reads * 30][:30])
    ids = list(evidence)
    assert not Proofs(evidence, SESSION).proof_of({**BLOCK, "audit_ids": ids}).problems
    assert time.process_time() - started < 0.3


def test_the_table_names_kinds_and_properties_that_there_are():
    shapes = fact_shapes()
    told = {name for shape in shapes.shapes for name in shape.facts} | {*shapes.empty.values()}
    assert shapes.demanded.keys() <= known_kinds().keys()
    assert {demand.property for demand in shapes.demanded.values()} | {words.property for words in shapes.words} <= told


@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the recorded answers of Azure")
def test_facts_are_read_from_what_azure_really_answered():
    expected = {
        "vm-get-instance-view": "vm1 power running",
        "nsg-get-rule-put-by-template": "test-run-command-vmNSG/default-allow-ssh access Allow",
        "effective-nsg-200-user-rule": "conveniencevm1NSG/default-allow-ssh priority 1000",
        "route-table-get": "cli-test-route-table/my-route/10.0.5.0/24 next hop None",
        "peering-get-initiated": "net69b49315af/peer786074179 peering state Initiated",
        "private-dns-zone-link-list": "clitest.privatedns.com000002/clitestprivatednslink000004 linked network "
        "clitestprivatednsvnet000003",
        "private-endpoint-get-zone-group": "cli-pe-000005/cli-pec-000006 connection state Approved",
        "load-balancer-get-probes-rules": "lb1/bap1 members none",
        "storage-account-get-network-rules": "cli000002 default action Deny",
    }
    for name, fact in expected.items():
        body = json.loads((RECORDED / f"{name}.json").read_text())["body"]
        assert fact in map(str, facts_in({"command": "az x"}, json.dumps(body))), name


# Reports


def test_an_edited_report_fails_even_where_its_checksums_were_made_anew(bench: Bench):
    read = f"{SESSION}_001"
    cause = {"kind": "machine_stopped", "resource": "vm-2", "confidence": "high", "audit_ids": [read]}
    statement = {"text": "vm-2 is deallocated.", "audit_ids": [read]}
    concluding = complete(
        root_cause_summary=f"vm-2 is off ({read}).",
        confidence="high",
        causes=[cause],
        statements=[statement],
        coverage=[{"layer": "vm_state", "status": "at_fault", "audit_ids": [read]}],
        recommended_actions=["Start it: az vm start -g rg -n vm-2", "Or: rm -rf /", "Ask its owner."],
    )
    confirm = turn("", hypothesis("register"), hypothesis("confirm", audit_ids=[read]))
    investigation, report, markdown = finished(bench, turn("", command(STATE)), confirm, turn("", concluding))
    session, paths = investigation.session, investigation.session.paths(bench.root)
    assert [action["classification"] for action in report["actions"]] == ["RISKY", None]
    assert "`az vm start -g rg -n vm-2`\n\n**RISKY**: " in markdown
    assert "rm -rf" not in markdown
    assert (report["confidence"], report["causes"][0]["supported"]) == ("high", True)
    assert _wrong(session, paths, report) == []
    assert remembered(report).cause == report["summary"]["text"]
    assert remembered({**report, "causes": [{**report["causes"][0], "supported": False}]}).cause == ""
    edits = {
        "cause 1: ": {"causes": [{**report["causes"][0], "resource": "vm-1"}]},
        "finding 1: ": {"statements": [{**report["statements"][0], "text": "vm-2 is running."}]},
        "summary: ": {"summary": {**report["summary"], "text": f"See {SESSION}_444."}},
        "coverage of dns: ": {"coverage": [{"layer": "dns", "status": "cleared", "audit_ids": [], "note": ""}]},
        "actions: Start it": {"actions": [{**report["actions"][0], "classification": "SAFE"}]},
        "actions: rm -rf / is FORBIDDEN": {"recommended_actions": ["rm -rf /"]},
    }
    for problem, edit in edits.items():
        (found,) = _wrong(session, paths, {**report, **edit})
        assert found.startswith(problem), found
    session.completion = {**(session.completion or {}), "causes": []}
    assert any(found.startswith("confidence: high is more") for found in _wrong(session, paths, report))


def _wrong(session: Session, paths, report) -> list[str]:
    paths.report_json.write_text(json.dumps(report))
    checks = verify_session(session, paths, checksum_holds=True)
    return [problem for check in checks if check.name == "claims" for problem in check.problems]
