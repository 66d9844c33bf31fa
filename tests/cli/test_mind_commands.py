"""The commands of the mind, as processes on one workspace."""

from __future__ import annotations

import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ghost.agent import WaitingRoom
from ghost.records import SystemClock
from tests.cli.ready_ghost import run_ghost


def environment(**more: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GHOST_", "GEMINI_", "PROVIDER_", "SOC_"))}
    return {**clean, "COLUMNS": "160", **more}


def ghost(directory: Path, *words: str, status: int = 0, **more: str) -> str:
    result = run_ghost(*words, cwd=directory, environment=environment(**more))
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout if status == 0 else result.stderr


def test_what_is_taken_in_is_thought_of_asked_about_and_answered(tmp_path: Path) -> None:
    taken = json.loads(ghost(tmp_path, "ingest", "vm-a cannot reach vm-b since the change", "--json"))
    assert taken["waiting"] == 1

    thoughts = [json.loads(line) for line in ghost(tmp_path, "run", "--cycles", "1", "--json").splitlines()]
    (question,) = [event for event in thoughts if event["kind"] == "interrupt"]
    open_now = json.loads(ghost(tmp_path, "interrupts", "--json"))
    assert [query["id"] for query in open_now] == [question["id"]]
    assert f"ghost answer {question['id']} ..." in ghost(tmp_path, "tasks")

    fields = open_now[0]["required_fields"]
    assert fields
    refused = ghost(tmp_path, "answer", question["id"], "no idea: at all", status=2) if len(fields) > 1 else "lacks"
    assert "lacks" in refused
    ghost(tmp_path, "answer", question["id"], "\n".join(f"{name}: 6379" for name in fields))
    assert ghost(tmp_path, "interrupts") == "No question is open.\n"
    assert "answered: " in ghost(tmp_path, "interrupts", "--all")
    assert "is not open (answered)" in ghost(tmp_path, "answer", question["id"], "again", status=2)


def test_who_answers_late_is_told_who_answered(tmp_path: Path) -> None:
    room = WaitingRoom(tmp_path, SystemClock())
    with room.occupied():
        asked = room.ask("ghost_1", "symptom", "Which VM is meant?")
        assert room.answer(asked.id, asked.sha256, "web-vm", by="dashboard")
        assert "was answered before, on the dashboard: web-vm" in ghost(tmp_path, "answer", asked.id, "db", status=2)


def test_memories_leave_one_workspace_and_enter_another_as_they_were(tmp_path: Path) -> None:
    ghost(tmp_path, "ingest", "Rule deny-all of nsg-1 blocked TCP 443 to web-01")
    ghost(tmp_path, "run", "--cycles", "2")
    ghost(tmp_path, "export", "first.jsonl")
    lines = (tmp_path / "first.jsonl").read_text().splitlines()
    assert lines

    ghost(tmp_path, "import", "first.jsonl", "--workspace", "other")
    ghost(tmp_path, "export", "second.jsonl", "--workspace", "other")
    assert (tmp_path / "second.jsonl").read_bytes() == (tmp_path / "first.jsonl").read_bytes()
    found = json.loads(ghost(tmp_path, "search", "web-01 443", "--json", "--workspace", "other"))
    assert found[0]["id"] in {json.loads(line)["id"] for line in lines}
    assert "embedding" not in found[0]
    assert re.search(
        r"score 0\.\d{3}, similarity 0\.\d\d", ghost(tmp_path, "search", "web-01 443", "--workspace", "other")
    )
    assert f"Nothing close among {len(lines)} memories." in ghost(
        tmp_path, "search", "chocolate cake", "--workspace", "other"
    )


def test_a_file_that_is_no_export_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "mem:1"}\n')
    assert "line 1" in ghost(tmp_path, "import", "bad.jsonl", status=1)
    assert "Nothing close among 0 memories." in ghost(tmp_path, "search", "anything")


def test_search_is_narrowed_by_type_tag_and_time(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"mem:{n}",
            "type": kind,
            "content": f"redis denied {n}",
            "tags": tags,
            "created_at": at,
            "last_access": at,
        }
        for n, (kind, tags, at) in enumerate(
            [("episodic", ["a"], 1e9), ("semantic", ["a", "b"], 1.1e9), ("semantic", ["b"], 1.2e9)], 1
        )
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ghost(tmp_path, "import", "rows.jsonl")

    def ids(*words: str) -> set[str]:
        return {hit["id"] for hit in json.loads(ghost(tmp_path, "search", "redis", "--json", *words))}

    assert ids() == {"mem:1", "mem:2", "mem:3"}
    assert ids("--type", "semantic") == {"mem:2", "mem:3"}
    assert ids("--tag", "a", "--tag", "b") == {"mem:2"}
    assert "choose episodic, semantic, procedural" in ghost(tmp_path, "search", "redis", "--type", "dream", status=2)
    assert ids("--since", "2004-01-01", "--until", "2005-01-01") == {"mem:2"}


def test_control_characters_of_a_memory_do_not_reach_the_terminal(tmp_path: Path) -> None:
    row = {
        "id": "mem:1",
        "type": "episodic",
        "content": "redis \x1b[2J\x07 [bold]",
        "created_at": 1e9,
        "last_access": 1e9,
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    ghost(tmp_path, "import", "rows.jsonl")
    shown = ghost(tmp_path, "search", "redis")
    assert "\x1b" not in shown
    assert "[bold]" in shown


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = {"/robots.txt": "User-agent: *\nAllow: /\n", "/nsg": "<p>A network security group evaluates rules.</p>"}
        body = known.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html" if self.path == "/nsg" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_a_page_of_the_allowlist_is_read_and_found_again_and_any_other_is_refused(tmp_path: Path) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{site.server_address[1]}"
        url = f"http://{host}/nsg"
        assert "refused" in ghost(tmp_path, "scrape", "nsg", "--seed", url, status=1)
        assert "read" in ghost(tmp_path, "scrape", "nsg", "--seed", url, ALLOWLIST_DOMAINS=host)
        site.shutdown()
    found = ghost(tmp_path, "search", "network security group rules", "--type", "semantic")
    assert "evaluates rules" in found
    assert f"read at {url}" in found


def test_thinking_without_a_server_ends_at_ctrl_c_with_what_was_thought_kept(tmp_path: Path) -> None:
    ghost(tmp_path, "ingest", "Rule deny-all of nsg-1 blocked TCP 443 to web-01")
    process = subprocess.Popen(
        [Path(sys.executable).with_name("ghost"), "run", "--json"],
        cwd=tmp_path,
        env=environment(SOC_CADENCE_SECONDS="0.2"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert time.monotonic() - began < 20
    assert (process.returncode, complaint) == (130, "ghost: interrupted.\n")
    assert first["kind"] in {"stored", "thought", "task"}


def test_a_wrong_key_is_a_clear_error(tmp_path: Path) -> None:
    ghost(tmp_path, "ingest", "a secret matter", GHOST_MEMORY_KEY="11" * 32)
    said = ghost(tmp_path, "search", "matter", status=1, GHOST_MEMORY_KEY="22" * 32)
    assert "key" in said
    assert said.count("\n") == 1
