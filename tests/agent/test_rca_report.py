"""The report says what the records carry, says so where they do not, and is found out when they change."""

from __future__ import annotations

import json

import pytest

from ghost.agent import Evidence, verify_session, write_report
from ghost.agent.rca_report import LAYERS
from ghost.records import ChainedLog
from ghost.shell import HitlDecision
from tests.agent.conftest import MACHINE, SESSION, STATE, FixedClock, command, complete, hypothesis, turn


def finished(bench, *turns):
    investigation = bench.investigation([*turns, turns[-1], turns[-1]])  # a conclusion with problems is insisted on
    investigation.begin("vm-1 cannot reach vm-2 on 6379")
    investigation.run()
    report, markdown = write_report(
        investigation.session,
        investigation.session.paths(bench.root),
        investigation.shell,
        FixedClock().now(),
    )
    investigation.save()
    return investigation, report, markdown


READ = turn("", command("az vm list -g rg"), command("az vm restart -g rg -n vm-1"), number=1)


def test_a_statement_with_usable_evidence_is_cited(bench):
    statements = [{"text": "vm-1 exists", "audit_ids": [f"{SESSION}_001"]}]
    _, report, markdown = finished(bench, READ, turn("", complete(statements=statements)))
    assert report["statements"][0]["supported"] is True
    assert "vm-1 exists (#001)" in markdown


@pytest.mark.parametrize(
    ("audit_ids", "why"),
    [([], "cites no audit record"), ([f"{SESSION}_002"], "was denied"), ([f"{SESSION}_077"], "not an audit record")],
)
def test_a_statement_without_it_is_printed_as_unsupported(bench, audit_ids, why):
    statements = [{"text": "the moon did it", "audit_ids": audit_ids}]
    _, report, markdown = finished(bench, READ, turn("", complete(statements=statements)))
    assert report["statements"][0]["supported"] is False
    line = next(line for line in markdown.splitlines() if "the moon did it" in line)
    assert "unsupported" in line
    assert why in line


def test_the_summary_rests_on_what_it_cites_or_on_the_confirmed_hypotheses(bench):
    _, report, _ = finished(
        bench,
        READ,
        turn("", hypothesis("register"), hypothesis("confirm", audit_ids=[f"{SESSION}_001"])),
        turn("", complete()),
    )
    assert report["summary"]["audit_ids"] == [f"{SESSION}_001"]
    assert report["summary"]["supported"] is True


def test_every_layer_is_in_the_coverage_and_a_claim_without_evidence_is_not_believed(bench):
    coverage = [
        {"layer": "vm_state", "status": "cleared", "audit_ids": [f"{SESSION}_001"]},
        {"layer": "routes", "status": "cleared", "audit_ids": []},
        {"layer": "wire", "status": "at_fault", "audit_ids": [f"{SESSION}_002"]},
    ]
    _, report, _ = finished(bench, READ, turn("", complete(coverage=coverage)))
    status = {row["layer"]: row["status"] for row in report["coverage"]}
    assert set(status) == set(LAYERS)
    assert status["vm_state"] == "cleared"
    assert {status[layer] for layer in LAYERS if layer != "vm_state"} == {"not_verified"}


def test_every_command_is_listed_with_its_outcome_and_no_output(bench):
    bench.outputs["az vm list"] = (0, '[{"name": "raw-output-word"}]')
    _, report, markdown = finished(bench, READ, turn("", complete()))
    assert [row["outcome"] for row in report["evidence"]] == ["ran", "denied: not now"]
    assert "raw-output-word" not in markdown
    assert "raw-output-word" not in json.dumps(report)


def test_the_report_has_the_published_sections_and_says_where_each_command_looked(bench):
    probe = turn("", command("az vm list -g rg"), command("ping -c 1 127.0.0.1"), hypothesis("register"))
    _, _, markdown = finished(bench, probe, turn("", complete(recommended_actions=["look at it"])))
    lines = markdown.splitlines()
    assert lines[0] == f"# Root Cause Analysis — {SESSION}"
    titles = ("Investigation Summary", "Hypotheses Log", "Command Evidence", "Capture Evidence", "Recommended Actions")
    assert {f"## {title}" for title in (*titles, "Integrity Statement")} <= set(lines)
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith(f"| {SESSION}_")]
    assert [row[1] for row in rows] == [r"\[CLOUD]", r"\[LOCAL]"]
    assert any(r"a \[LOCAL] probe that fails is no evidence" in line for line in lines)


def test_a_damaged_line_of_the_audit_is_said_and_hides_no_record(bench):
    investigation, _, _ = finished(bench, READ, turn("", complete()))
    paths = investigation.session.paths(bench.root)
    paths.shell_audit.write_text(f"{{half\n{paths.shell_audit.read_text()}")
    report, _ = write_report(investigation.session, paths, investigation.shell, FixedClock().now())
    assert len(report["evidence"]) == 2
    assert any("could not be read: 1" in note for note in report["advisories"])


def test_of_a_task_the_last_record_counts(bench):
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    states = ("WAITING", "FAILED")
    registry.write_text("".join(json.dumps({"task_id": "t", "target": "vm-1", "state": s}) + "\n" for s in states))
    _, report, _ = finished(bench, READ, turn("", complete()))
    assert [(row["task_id"], row["state"]) for row in report["captures"]] == [("t", "FAILED")]


def test_names_of_others_cannot_write_into_the_report(bench):
    hostile = "x](http://evil) <script>| ` \n## Forged heading"
    _, _, markdown = finished(
        bench, READ, turn("", complete(root_cause_summary=hostile, recommended_actions=[f"az {hostile}"]))
    )
    assert "<script>" not in markdown.replace("`az x](http://evil) <script>", "").replace(r"\<script>", "")
    assert not any(line.startswith("## Forged") for line in markdown.splitlines())


def test_the_summary_of_a_capture_is_read_through_the_shell(bench, tmp_path):
    bench.decide = lambda line: HitlDecision("approve" if line.startswith("cat ") else "deny")
    bench.outputs["cat "] = (0, "3 of 100 segments lost")
    task = {
        "task_id": "ghost_vm-1_x",
        "target": "vm-1",
        "state": "DONE",
        "report_path": str(tmp_path / "ghost_vm-1_x_forensic_report.md"),
    }
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    registry.write_text(json.dumps(task) + "\n")
    _, report, markdown = finished(bench, READ, turn("", complete()))
    assert any(line[-1].endswith("ghost_vm-1_x_executive_summary.md") for line in bench.ran)
    assert "> 3 of 100 segments lost" in markdown
    assert report["captures"][0]["executive_summary_audit_id"] == f"{SESSION}_003"


@pytest.mark.parametrize(
    ("report", "summary"),
    [
        ("# R\n\n## Executive Summary\n\n### Loss\n3 lost\n\n## Anomaly Table\n| x |\n", "### Loss\n3 lost"),
        ("# R\n\n## Executive Summary\n\n3 lost\n[truncated: 400 lines omitted]\nthe method\n", "3 lost"),
        ("# R\n\n## Executive Summary\n3 lost", "3 lost"),
        ("# R\n\n## Anomaly Table\n", None),
        ("# C\n\n## The two ends of one path\n\n3 lost between\n\n## Rates\n", "3 lost between"),
    ],
)
def test_without_the_summary_file_the_section_of_the_report_is_read(bench, tmp_path, report, summary):
    bench.decide = lambda line: HitlDecision("approve" if line.startswith("cat ") else "deny")
    path = tmp_path / "t_forensic_report.md"
    bench.outputs = {**bench.outputs, f"cat {path}": (0, report), "cat ": (1, "")}
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    task = {"task_id": "t", "target": "vm-1", "state": "DONE", "report_path": str(path)}
    registry.write_text(json.dumps(task) + "\n")
    _, report, _ = finished(bench, READ, turn("", complete()))
    capture = report["captures"][0]
    assert (capture["executive_summary"], capture["executive_summary_audit_id"]) == (summary, f"{SESSION}_004")
    assert any("was not read" in note for note in report["advisories"]) == (summary is None)


def test_two_ends_share_a_summary_that_is_read_once_and_a_page(bench, tmp_path):
    bench.decide = lambda line: HitlDecision("approve" if line.startswith("cat ") else "deny")
    bench.outputs["cat "] = (0, "3 of 100 packets lost between A and B")
    ends = {"target": "vm", "state": "DONE", "report_path": str(tmp_path / "a_vs_b_comparison.md")}
    ends |= {"executive_summary_path": str(tmp_path / "a_vs_b_executive_summary.md")}
    (tmp_path / "a_vs_b_comparison.html").write_text("<!doctype html>")
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    registry.write_text("".join(json.dumps({"task_id": name, **ends}) + "\n" for name in ("a", "b")))
    _, report, markdown = finished(bench, READ, turn("", complete()))
    assert [line[-1] for line in bench.ran if line[0] == "cat"] == [ends["executive_summary_path"]]
    assert [row["executive_summary_available"] for row in report["captures"]] == [True, True]
    assert {row["page_path"] for row in report["captures"]} == {str(tmp_path / "a_vs_b_comparison.html")}
    assert markdown.count("> 3 of 100 packets lost between A and B") == 2  # as evidence and in the annex


def test_a_refused_summary_is_noted_not_hidden(bench, tmp_path):
    task = {"task_id": "t", "target": "vm-1", "state": "DONE", "report_path": str(tmp_path / "t_forensic_report.md")}
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    registry.write_text(json.dumps(task) + "\n")
    _, report, markdown = finished(bench, READ, turn("", complete()))
    assert "unavailable" in markdown
    assert any("was not read" in note for note in report["advisories"])


def test_a_finished_session_verifies(bench):
    statements = [{"text": "vm-1 exists", "audit_ids": [f"{SESSION}_001"]}]
    investigation, _, _ = finished(bench, READ, turn("", complete(statements=statements)))
    checks = verify_session(investigation.session, investigation.session.paths(bench.root), checksum_holds=True)
    assert [(c.name, c.problems) for c in checks if not c.ok and c.name != "task registry"] == []


def test_verification_fails_after_any_one_byte_of_the_audit_changed_or_its_last_line_is_cut(bench):
    statements = [{"text": "vm-1 exists", "audit_ids": [f"{SESSION}_001"]}]
    investigation, _, _ = finished(bench, READ, turn("", complete(statements=statements)))
    paths = investigation.session.paths(bench.root)
    whole = paths.shell_audit.read_bytes()

    def holds() -> bool:
        checks = verify_session(investigation.session, paths, checksum_holds=True)
        return all(c.ok for c in checks if c.name in {"shell audit", "citations"})

    assert holds()
    for position in range(0, len(whole), 7):
        paths.shell_audit.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert not holds(), position
    lines = whole.splitlines(keepends=True)
    paths.shell_audit.write_bytes(b"".join(lines[:-1]))
    assert not holds()


def test_causes_stand_in_the_report_each_with_its_confidence_and_are_verified(bench):
    read, denied = f"{SESSION}_001", f"{SESSION}_002"
    causes = [
        {
            "kind": "machine_stopped",
            "resource": "vm|2",
            "rule": "",
            "confidence": "high",
            "audit_ids": [read],
        },
        {"kind": "moon", "resource": "sky", "confidence": "medium", "audit_ids": [denied]},
    ]
    confirm = turn("", hypothesis("register"), hypothesis("confirm", audit_ids=[read]))
    coverage = [{"layer": "nsg_inbound", "status": "at_fault", "audit_ids": [read]}]
    concluding = turn("", complete(causes=causes, coverage=coverage))
    bench.outputs["az vm get-instance-view"] = (0, json.dumps({**MACHINE, "name": "vm|2"}))
    reading = turn("", command(STATE), command("az vm restart -g rg -n vm-1"))
    investigation, report, markdown = finished(bench, reading, confirm, concluding)
    assert report["outcome"] == "cause_found"
    assert [(c["kind"], c["confidence"], c["supported"]) for c in report["causes"]] == [
        ("machine_stopped", "high", True),
        ("moon", "low", False),
    ]
    assert "| machine stopped | `vm\\|2` |" in markdown
    assert "unknown kind" in next(line for line in markdown.splitlines() if line.startswith("| moon |"))
    paths = investigation.session.paths(bench.root)
    for cited, holds in ((read, True), (denied, False), (f"{SESSION}_077", False)):
        report["causes"][0]["audit_ids"] = [cited]
        paths.report_json.write_text(json.dumps(report))
        checks = verify_session(investigation.session, paths, checksum_holds=True)
        assert all(c.ok for c in checks if c.name == "citations") is holds
    assert investigation.session.completion is not None
    del report["causes"], report["outcome"]  # an older report, of an older session
    for field in ("causes", "outcome"):
        investigation.session.completion.pop(field)
    paths.report_json.write_text(json.dumps(report))
    checks = verify_session(investigation.session, paths, checksum_holds=True)
    assert all(c.ok for c in checks if c.name == "citations")
    report, _ = write_report(investigation.session, paths, investigation.shell, FixedClock().now())
    assert (report["causes"], report["outcome"]) == ([], "inconclusive")


def test_a_report_that_was_made_to_cite_a_denied_command_fails(bench):
    investigation, report, _ = finished(bench, READ, turn("", complete()))
    paths = investigation.session.paths(bench.root)
    report["statements"] = [{"text": "x", "audit_ids": [f"{SESSION}_002"], "supported": True, "problems": []}]
    paths.report_json.write_text(json.dumps(report))
    checks = verify_session(investigation.session, paths, checksum_holds=True)
    assert any("was denied" in p for c in checks if c.name == "citations" for p in c.problems)


def test_where_the_report_cannot_be_written_its_text_is_still_there(bench):
    investigation = bench.investigation([turn("", complete())])
    investigation.begin("s")
    investigation.run()
    paths = investigation.session.paths(bench.root)
    paths.report_json.mkdir()
    _, markdown = write_report(investigation.session, paths, investigation.shell, FixedClock().now())
    assert markdown.startswith("# Root Cause Analysis")
    assert investigation.session.rca_report_path is None


def test_a_changed_emptied_or_deleted_report_is_found(bench):
    investigation, _, _ = finished(bench, READ, turn("", complete()))
    paths = investigation.session.paths(bench.root)

    def problems() -> list[str]:
        checks = verify_session(investigation.session, paths, checksum_holds=True)
        return [p for c in checks if c.name == "report files" for p in c.problems]

    assert problems() == []
    for path in (paths.report, paths.report_json):
        whole = path.read_bytes()
        for content in (whole[:-2] + bytes([whole[-2] ^ 1]) + whole[-1:], b""):
            path.write_bytes(content)
            assert problems()
        path.unlink()
        assert problems()
        path.write_bytes(whole)
    assert problems() == []


def test_what_a_refused_cleanup_left_is_said_with_the_command_that_removes_it(bench):
    task = {
        "task_id": "t",
        "target": "vm-1",
        "state": "CLEANING_UP",
        "cleanup_status": "partial",
        "cleanup_plan": [{"command": "az network watcher packet-capture delete -l x -n t", "executed": False}],
    }
    registry = bench.root / "audit" / f"orchestrator_tasks_{SESSION}.jsonl"
    registry.parent.mkdir(parents=True)
    registry.write_text(json.dumps(task) + "\n")
    _, report, _ = finished(bench, READ, turn("", complete()))
    assert any("packet-capture delete -l x -n t" in note for note in report["advisories"])


def test_a_record_that_repeats_a_cited_id_or_follows_a_finished_session_fails(bench):
    investigation, _, _ = finished(bench, READ, turn("", complete()))
    paths = investigation.session.paths(bench.root)
    first = json.loads(paths.shell_audit.read_text().splitlines()[0])
    ChainedLog(paths.shell_audit).append({**first, "output": "forged"})
    checks = verify_session(investigation.session, paths, checksum_holds=True)
    problems = " ".join(p for c in checks for p in c.problems)
    assert "more than once" in problems
    assert "follow the saved head" in problems
    assert Evidence(paths.shell_audit)[first["audit_id"]]["output"] == first["output"]


def test_a_program_that_was_not_there_is_no_evidence(bench):
    (bench.programs / "ping").unlink()
    statements = [{"text": "it does not answer", "audit_ids": [f"{SESSION}_001"]}]
    ping = turn("", command("ping -c 1 127.0.0.1"))
    bench.outputs["ping"] = (127, "")
    _, report, _ = finished(bench, ping, turn("", complete(statements=statements)))
    assert report["evidence"][0]["outcome"] == "program not found"
    assert report["statements"][0]["supported"] is False


def rule(access: str, **more) -> dict:
    return {"name": "r", "priority": 100, "direction": "Inbound", "access": access, "protocol": "Tcp", **more}


SAYS_ALLOW = rule("Deny", description='"access": "Allow"')
GROUP = "az network nsg show -g rg -n web"
EFFECTIVE = "az network nic list-effective-nsg -g rg -n nic-1"


@pytest.mark.parametrize(
    ("line", "output", "is_conflict"),
    [
        ("az network nsg rule list -g rg --nsg-name web", [rule("Deny"), rule("Allow")], True),
        (
            "az network nsg rule list -g rg --nsg-name web",
            [rule("Deny", description="x" * 200)] * 99 + [rule("Allow")],
            True,
        ),
        (GROUP, {"securityRules": [], "defaultSecurityRules": [rule("allow")]}, True),
        (GROUP, {"securityRules": [SAYS_ALLOW], "defaultSecurityRules": [rule("deny")]}, False),
        (
            EFFECTIVE,
            {"value": [{"effectiveSecurityRules": [rule("Allow"), "[truncated: showing 1 of 90 items]"]}]},
            True,
        ),
        (EFFECTIVE, {"value": [{"effectiveSecurityRules": [json.dumps(rule("Allow"))]}]}, True),
        (EFFECTIVE, {"value": [{"effectiveSecurityRules": [json.dumps(SAYS_ALLOW)]}]}, False),
        ("az vm list -g rg", [{"name": "Allow", "tags": {"access": "Allow"}}], False),
    ],
)
def test_a_failed_probe_beside_a_rule_that_allows_is_an_advisory(bench, line, output, is_conflict):
    bench.outputs = {line: (0, json.dumps(output, separators=(",", ":"))), "ping": (1, "100% packet loss")}
    reads = turn("", command(line), command("ping -c 1 127.0.0.1"))
    _, report, _ = finished(bench, reads, turn("", complete()))
    assert [row["outcome"] for row in report["evidence"]] == ["ran", "ran, exit 1"]
    assert any("local probe failed" in note for note in report["advisories"]) == is_conflict


def test_what_is_left_of_earlier_sessions_is_an_advisory(bench):
    investigation = bench.investigation([turn("", complete())])
    investigation.session.manual_cleanup_pending = ["ghost_vm_1"]
    investigation.begin("s")
    investigation.run()
    paths = investigation.session.paths(bench.root)
    report, _ = write_report(investigation.session, paths, investigation.shell, FixedClock().now())
    assert any(note.startswith("ghost_vm_1 is left") for note in report["advisories"])


def test_verification_fails_after_a_whole_output_was_changed_linked_or_deleted(bench):
    bench.outputs["az vm list"] = (0, json.dumps([{"name": f"vm-{n}", "text": "x" * 200} for n in range(200)]))
    investigation, _, _ = finished(bench, READ, turn("", complete()))
    paths = investigation.session.paths(bench.root)
    kept = paths.outputs / f"{SESSION}_001.txt"

    def whole_outputs():
        checks = verify_session(investigation.session, paths, checksum_holds=True)
        (check,) = [check for check in checks if check.name == "whole outputs"]
        return check

    assert len(json.loads(kept.read_text())) == 200
    assert (whole_outputs().detail, whole_outputs().problems) == ("1 file", ())
    for other in (f"{SESSION}_900.txt", f".{SESSION}_901.txt.a1b2", f"{SESSION}_2_001.txt"):
        (paths.outputs / other).write_text("of no record, or of another session")
    left = f".{SESSION}_901.txt.a1b2, {SESSION}_900.txt"
    assert (whole_outputs().detail, whole_outputs().ok) == (f"1 file; of no record: {left}", True)
    moved = kept.rename(kept.with_name("moved"))
    content = moved.read_bytes()
    for change, problem in (
        (lambda: kept.write_bytes(content.replace(b"x", b"y", 1)), "was modified"),
        (lambda: kept.write_bytes(content[:-1]), "was modified"),
        (lambda: kept.write_bytes(content + b" " * (16 << 20)), "was modified: it is longer than 16 MiB"),
        (lambda: kept.symlink_to(moved), "cannot be read: it is a link"),
        (lambda: kept.mkdir(), "cannot be read: it is not a regular file"),
        (lambda: None, "cannot be read: No such file or directory"),
    ):
        change()
        assert whole_outputs().problems == (f"the full output {SESSION}_001.txt {problem}",)
        kept.rmdir() if kept.is_dir() and not kept.is_symlink() else kept.unlink(missing_ok=True)
