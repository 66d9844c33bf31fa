"""What an investigation left behind, as the API shows it; and that nothing else of the machine is shown."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ghost.agent import Session, SessionPaths, save_session
from ghost.records import workspace_lock
from ghost.report import STYLE
from tests.server.conftest import append, command_record, problem, with_whole_output, write_session

SID = "ghost_20250115_143200"
HYPOTHESIS = {
    "id": "H1",
    "description": "An NSG rule denies port 443",
    "refuted_by": "No deny rule matches",
    "state": "CONFIRMED",
    "created_at": "2025-01-15T14:32:05.000Z",
    "audit_ids": [f"{SID}_001"],
}

JUDGED = {"symptom": "[VM_1] is slow", "outcome": "inconclusive", "confidence": "low"}


@pytest.fixture
def finished(root: Path) -> SessionPaths:
    paths = SessionPaths(root / "audit", SID)
    append(
        paths.shell_audit,
        command_record(SID, 1),
        command_record(SID, 2, command="ping -c 1 10.0.0.4", environment="local", exit_code=1, status="completed"),
        command_record(SID, 3, status="denied", action="user_denied", denial_reason="not now", exit_code=None),
    )
    append(paths.tasks, {"task_id": "cap_vm_1", "state": "WAITING"}, {"task_id": "cap_vm_1", "state": "DONE"})
    paths.report.write_text("# Root cause\n\n<script>alert(1)</script> ä\n", encoding="utf-8")
    paths.report_json.write_text(
        json.dumps({"session_id": SID, "summary": {"text": "rule 100"}, **JUDGED}), encoding="utf-8"
    )
    write_session(
        root,
        SID,
        symptom="vm-a is slow",
        turn_count=7,
        hypothesis_log=[HYPOTHESIS],
        rca_report_path="/etc/passwd",
        completion={"confidence": "high", "root_cause_summary": "rule 100 denies 443"},
    )
    return paths


def test_no_workspace_is_no_investigation(client: TestClient) -> None:
    assert client.get("/investigations").json() == {"investigations": [], "count": 0}


def test_investigations_are_listed_newest_first_with_their_states(
    client: TestClient, root: Path, finished: SessionPaths
) -> None:
    write_session(root, "ghost_20250116_090000", network="blocked-port (simulated)")
    append(root / "audit" / "ghost_turns_ghost_20250101_000000.jsonl", {"turn": 1})
    rows = client.get("/investigations").json()["investigations"]
    assert [(row["session_id"], row["state"]) for row in rows] == [
        ("ghost_20250116_090000", "resumable"),
        (SID, "finished"),
        ("ghost_20250101_000000", "damaged"),
    ]
    assert rows[1]["summary"] == "rule 100 denies 443"
    assert {name: rows[1][name] for name in JUDGED} == JUDGED  # as the report says, not as the brain claimed
    assert (rows[1]["turns"], rows[1]["hypotheses"], rows[1]["has_report"]) == (7, 1, True)
    page = client.get("/investigations?limit=1&offset=1").json()
    assert [row["session_id"] for row in page["investigations"]] == [SID]
    assert page["count"] == 3


def test_the_current_session_runs_while_its_workspace_is_held(client: TestClient, root: Path) -> None:
    session = Session(session_id=SID, created_at="2025-01-15T14:32:00.000Z", model="offline", audit_dir="audit")
    with workspace_lock(root):
        save_session(root / "ghost_session.json", session)
        write_session(root, "ghost_20250101_000000")  # an earlier one, which nobody works on
        rows = client.get("/investigations").json()["investigations"]
        assert [row["state"] for row in rows] == ["running", "resumable"]
    assert client.get("/investigations").json()["investigations"][0]["state"] == "resumable"
    session.rca_report_path = "ghost_rca.md"
    save_session(root / "ghost_session.json", session)  # a changed file is read again
    assert client.get("/investigations").json()["investigations"][0]["state"] == "finished"


def test_one_investigation_shows_hypotheses_evidence_and_captures(client: TestClient, finished: SessionPaths) -> None:
    shown = client.get(f"/investigations/{SID}").json()
    assert shown["hypotheses"][0]["state"] == "CONFIRMED"
    assert shown["hypotheses"][0]["refuted_by"] == "No deny rule matches"
    assert [(row["audit_id"], row["context"], row["tier"], row["status"]) for row in shown["evidence"]] == [
        (f"{SID}_001", "[CLOUD]", 2, "completed"),
        (f"{SID}_002", "[LOCAL]", 3, "completed"),
        (f"{SID}_003", "[CLOUD]", 2, "denied"),
    ]
    assert shown["evidence"][2]["denial_reason"] == "not now"
    assert shown["captures"] == [
        {"task_id": "cap_vm_1", "state": "DONE", "target": None, "outcome": None, "cleanup_status": None, "page": None}
    ]
    page = client.get(f"/investigations/{SID}?limit=1&offset=1").json()
    assert [row["audit_id"] for row in page["evidence"]] == [f"{SID}_002"]
    assert page["evidence_count"] == 3


def test_a_damaged_record_is_shown_as_far_as_it_goes(client: TestClient, finished: SessionPaths) -> None:
    append(
        finished.shell_audit,
        {"audit_id": f"{SID}_004", "command": ["no"], "exit_code": "x", "duration_seconds": True, "timestamp": 7},
    )
    with finished.shell_audit.open("a") as file:
        file.write('{"half')
    shown = client.get(f"/investigations/{SID}").json()
    assert shown["evidence"][3]["command"] == ""
    assert shown["unreadable_lines"] == [5]


def test_the_whole_output_of_a_record_is_read_as_text_after_it_was_checked(
    client: TestClient, finished: SessionPaths, tmp_path: Path
) -> None:
    rows = json.dumps([{"name": f"<b>rule-{n}</b>"} for n in range(5000)])
    record = with_whole_output(finished.audit_dir, command_record(SID, 4), rows)
    part = command_record(SID, 5, output_truncated=True, output_missing="it is longer than 16 MiB")
    append(finished.shell_audit, record, part, {**record, "audit_id": "../../elsewhere"})
    shown = [row["output_bytes"] for row in client.get(f"/investigations/{SID}").json()["evidence"]]
    assert shown == [None, None, None, len(rows), None, len(rows)]
    outputs = f"/investigations/{SID}/evidence/{SID}"
    answer = client.get(f"{outputs}_004/output")
    assert (answer.text, answer.headers["content-type"]) == (rows, "text/plain; charset=utf-8")
    assert client.get(f"{outputs}_001/output").text == '[{"access": "Deny"}]'
    kept = finished.outputs / f"{SID}_004.txt"
    kept.write_text(rows.replace("rule-1<", "rule-2<"))
    changed = client.get(f"{outputs}_004/output")
    kept.unlink()
    kept.symlink_to(tmp_path)
    for refused, why in (
        (changed, "was modified"),
        (client.get(f"{outputs}_004/output"), "it is a link"),
        (client.get(f"{outputs}_005/output"), "it is longer than 16 MiB"),
        (client.get(f"{outputs}_009/output"), "no record"),
    ):
        assert why in problem(refused, 404)["detail"]
        assert str(tmp_path) not in refused.text
    for elsewhere in ("..%2f..%2felsewhere", "../../elsewhere", ".."):
        assert client.get(f"/investigations/{SID}/evidence/{elsewhere}/output").status_code in (404, 422)


def test_the_path_of_a_report_is_a_picture(client: TestClient, finished: SessionPaths) -> None:
    address = f"/investigations/{SID}/path.svg"
    assert "has no path 0" in problem(client.get(address), 404)["detail"]
    for damaged in (None, "path", {"0": {}}, [7]):
        finished.report_json.write_text(json.dumps({"path": damaged}))
        problem(client.get(address), 404)
    names = [{"source_name": "web<script>"}, {"source_name": "db"}]
    finished.report_json.write_text(json.dumps({"path": names}))
    first, second = client.get(address), client.get(f"{address}?n=1")
    assert (first.headers["content-type"], first.headers["x-content-type-options"]) == ("image/svg+xml", "nosniff")
    styled = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert f"; style-src 'sha256-{styled}' " in first.headers["content-security-policy"]
    assert "web&lt;script&gt;" in first.text
    assert ">db</text>" in second.text
    problem(client.get(f"{address}?n=2"), 404)
    problem(client.get(f"{address}?n=-1"), 422)
    problem(client.get("/investigations/ghost_none/path.svg"), 404)


def test_the_page_of_a_capture_comes_from_its_directory_alone(
    client: TestClient, finished: SessionPaths, root: Path
) -> None:
    address = f"/investigations/{SID}/captures/cap_vm_1/page"
    problem(client.get(address), 404)
    captures = root / "captures"
    captures.mkdir()
    for directory in (captures, root):
        (directory / "a_report.html").write_text("<h1>Lost</h1>")
    (captures / "link_report.html").symlink_to(root / "a_report.html")
    here = str(captures / "a_forensic_report.md")
    for report in (str(root / "a_forensic_report.md"), f"{captures}/link_forensic_report.md", "/", "a\0b.md", 7, here):
        append(finished.tasks, {"task_id": "cap_vm_1", "state": "DONE", "report_path": report})
        assert (client.get(address).status_code == 200) == (report == here), report
    assert [each["page"] for each in client.get(f"/investigations/{SID}").json()["captures"]] == ["a_report.html"]
    shown = client.get(address)
    assert shown.text == "<h1>Lost</h1>"
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert shown.headers["content-security-policy"].endswith("; sandbox")
    finished.anonymization_map.write_text("{}")  # a private session: its page holds real names
    problem(client.get(address), 404)


def test_the_report_comes_in_both_forms(client: TestClient, finished: SessionPaths) -> None:
    report = client.get(f"/investigations/{SID}/report")
    assert report.json()["summary"]["text"] == "rule 100"
    markdown = client.get(f"/investigations/{SID}/report?format=markdown")
    assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
    assert markdown.text == "# Root cause\n\n<script>alert(1)</script> ä\n"
    problem(client.get(f"/investigations/{SID}/report?format=pdf"), 422)


def test_what_has_no_report_says_so(client: TestClient, root: Path) -> None:
    write_session(root, SID)
    problem(client.get(f"/investigations/{SID}/report"), 404)
    problem(client.get(f"/investigations/{SID}/report?format=markdown"), 404)


def test_a_damaged_session_still_shows_its_evidence(client: TestClient, root: Path) -> None:
    append(SessionPaths(root / "audit", SID).turns, {"turn": 1})
    append(SessionPaths(root / "audit", SID).shell_audit, command_record(SID, 1))
    SessionPaths(root / "audit", SID).report_json.write_text("{}")
    (root / "audit" / f"ghost_session_{SID}.json").write_text("{")
    shown = client.get(f"/investigations/{SID}").json()
    assert (shown["investigation"]["state"], shown["investigation"]["has_report"]) == ("damaged", True)
    assert shown["evidence_count"] == 1
    assert shown["hypotheses"] == []


@pytest.mark.parametrize(
    "session_id",
    [
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "a..b",
        ".hidden",
        "-x",
        "a b",
        "a%00",
        "ghost_20990101_000000",
        "x" * 101,
    ],
)
def test_an_id_leads_nowhere_else(client: TestClient, finished: SessionPaths, session_id: str) -> None:
    for path in (f"/investigations/{session_id}", f"/investigations/{session_id}/report?format=markdown"):
        answer = client.get(path)
        assert answer.status_code in (404, 422)
        problem(answer, answer.status_code)


def test_a_link_in_the_audit_is_not_followed(client: TestClient, root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("not yours")
    write_session(root, SID)
    paths = SessionPaths(root / "audit", SID)
    paths.report.symlink_to(elsewhere)
    paths.report_json.symlink_to(elsewhere)
    paths.shell_audit.symlink_to(elsewhere)
    for path in (
        f"/investigations/{SID}/report?format=markdown",
        f"/investigations/{SID}/report",
        f"/investigations/{SID}",
    ):
        answer = client.get(path)
        assert answer.status_code in (404, 500)
        problem(answer, answer.status_code)
        assert "not yours" not in answer.text


def test_nothing_of_the_workspace_is_changed_by_looking(client: TestClient, root: Path, finished: SessionPaths) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in (root / "audit").iterdir()}

    before = state()
    for path in ("/investigations", f"/investigations/{SID}", f"/investigations/{SID}/report", "/metrics"):
        assert client.get(path).status_code == 200
    assert state() == before
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        problem(client.request(method, f"/investigations/{SID}"), 405)


def test_half_a_character_in_a_file_hides_no_investigation(
    client: TestClient, root: Path, finished: SessionPaths
) -> None:
    half = "\ud800"
    path = write_session(root, "ghost_20250116_090000", network="@", completion={"root_cause_summary": "rule @"})
    path.write_text(path.read_text(encoding="utf-8").replace("@", r"\ud800"), encoding="utf-8")
    append(finished.shell_audit, command_record(SID, 4, command=f"ping {half}"))
    append(finished.tasks, {"task_id": "cap_vm_2", "state": half})
    rows = client.get("/investigations").json()["investigations"]
    assert [(row["session_id"], row["summary"]) for row in rows] == [
        ("ghost_20250116_090000", "rule ?"),
        (SID, "rule 100 denies 443"),
    ]
    shown = client.get(f"/investigations/{SID}").json()
    assert shown["evidence"][-1]["command"] == "ping ?"
    assert shown["captures"][-1]["state"] == "?"


@pytest.mark.parametrize("content", ['{"a": NaN}', '{"a": 1e999}'])
def test_a_report_that_is_no_json_is_a_problem(client: TestClient, finished: SessionPaths, content: str) -> None:
    finished.report_json.write_text(content, encoding="utf-8")
    assert "cannot be read" in problem(client.get(f"/investigations/{SID}/report"), 500)["detail"]


def test_a_report_with_half_a_character_is_shown(client: TestClient, finished: SessionPaths) -> None:
    finished.report_json.write_text('{"a": "\\ud800"}', encoding="utf-8")
    assert client.get(f"/investigations/{SID}/report").content == b'{"a": "\\ud800"}'
