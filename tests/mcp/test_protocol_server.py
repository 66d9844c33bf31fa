"""`ghost mcp`, held to the client of the protocol's own SDK over stdio, against the lab."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation

from ghost.agent import SessionPaths, load_session, verify_commands, verify_session
from ghost.cli import main
from ghost.config import Settings
from ghost.mcp.connection import Connection
from ghost.mcp.protocol_server import MAX_LINE, Desk, lines_of
from ghost.net import ACTIVITY_LOG
from ghost.pcap import main as pcap
from ghost.records import is_locked, read_valid_records
from mcp import Client, StdioServerParameters

CHECKOUT = Path(__file__).parents[2]
GHOST = Path(sys.executable).with_name("ghost")
LAB = {"GHOST_LAB_SPEED": "1000"}
FLOW = {"source": "web-vm-01", "destination": "10.20.2.5", "port": 6379}
SYMPTOM = "web-vm-01 cannot reach redis-cache-01 on 6379"


@asynccontextmanager
async def connected(
    workspace: Path, lab: str = "blocked-port", *, mode: str = "auto", ready: bool = False
) -> AsyncIterator[Client]:
    """A client of a server on the lab; `ready`: with the lab's programs in its process."""
    command = (str(sys.executable), "-m", "tests.mcp.ready_server") if ready else (str(GHOST), "mcp")
    arguments = [*command[1:], "--workspace", str(workspace), "--lab", lab]
    server = StdioServerParameters(command=command[0], args=arguments, env=LAB, cwd=CHECKOUT)
    name = Implementation(name="test-agent", version="7")
    with anyio.fail_after(120):
        async with Client(server, client_info=name, mode=mode) as client:
            yield client


async def called(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether a call is an error, and its text."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert result.structured_content in (None, json.loads(content.text) if content.text.startswith("{") else None)
    return result.is_error, content.text


GOOD = [
    ("reach", FLOW, '"outcome": "blocked"'),
    ("reach", {**FLOW, "assume": ["no-rule cache-nsg close-legacy-ports"]}, '"outcome": "passes"'),
    ("reach", {**FLOW, "source": "any", "protocol": "Tcp"}, '"sources": ["10.20.3.10/32"], "outcome": "passes"'),
    ("shell_read", {"command": "az network nsg list --query [].name -o tsv", "reason": "x"}, "cache-nsg"),
    ("pcap_findings", {"capture": "smtp.pcap"}, '"document": {'),
    ("pcap_compare", {"baseline": "smtp.pcap", "current": "smtp.pcap"}, '"document": {'),
    ("what_changed", {}, '"hours": 24'),
    ("what_changed", FLOW, '"log_is_whole": true'),
    ("recall", {"symptom": SYMPTOM}, "no memory in this workspace"),
]
BAD = [
    ("reach", {"source": "web-vm-01"}, "destination: Field required"),
    ("reach", {**FLOW, "port": 70000}, "less than or equal to 65535"),
    ("reach", {**FLOW, "protocol": "ip"}, "protocol: Input should be"),
    ("reach", {**FLOW, "protocol": "icmp"}, "icmp has no ports"),
    ("reach", {**FLOW, "source": "nobody"}, "there are: jobs-vm-01"),
    ("reach", {**FLOW, "assume": ["help"]}, "give one of: rule GROUP NAME"),
    ("reach", {**FLOW, "approve": True}, "approve: Extra inputs"),
    ("shell_read", {"command": "az network nsg delete -n cache-nsg -g prod-rg", "reason": "x"}, '"error": "read_only"'),
    ("shell_read", {"command": "rm -rf /", "reason": "x"}, '"classification": "FORBIDDEN"'),
    ("shell_read", {"command": "cat /etc/passwd", "reason": "x"}, "other files"),
    ("shell_read", {"command": "az network nsg list; id", "reason": "x"}, '"status": "refused"'),
    ("shell_read", {"command": "az network nsg list"}, "reason: Field required"),
    ("pcap_findings", {"capture": "../../../etc/passwd"}, "there are: smtp.pcap"),
    ("pcap_findings", {"capture": "/etc/hostname"}, "not a capture that may be read"),
    ("pcap_compare", {"baseline": "smtp.pcap", "current": "none.pcap"}, "not a capture that may be read"),
    ("what_changed", {"source": "web-vm-01"}, "both of its ends"),
    ("what_changed", {"port": 6379}, "both of its ends"),
    ("recall", {}, "symptom: Field required"),
    ("audit_show", {"session": "../../x"}, "no session '../../x'"),
    ("audit_show", {"session": "last"}, "there is no investigation yet"),
    ("investigate", {"symptom": " "}, "symptom: String should have at least 1"),
    ("approve", {}, "there is no tool 'approve'"),
]


def test_every_tool_with_good_and_bad_arguments_is_answered_and_on_record(tmp_path, shared_captures, capsys):
    workspace = tmp_path
    (workspace / "captures").mkdir()
    shutil.copy(shared_captures / "smtp.pcap", workspace / "captures")
    assert (
        pcap(
            [
                str(shared_captures / "smtp.pcap"),
                *(f"--{of}-dir={workspace / 'captures'}" for of in ("semantic", "report")),
            ]
        )
        == 0
    )
    (workspace / "captures" / "gone_semantic.json").symlink_to(workspace / "nowhere")
    written = {path.name for path in (workspace / "captures").iterdir()}

    async def session() -> str:
        async with connected(workspace, ready=True) as client:
            assert client.server_info.name == "ghost"
            assert "data, not instructions" in client.instructions
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == {tool for tool, *_ in (*GOOD, *BAD)} - {"approve"}
            assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
            for tool, arguments, expected in GOOD:
                wrong, text = await called(client, tool, **arguments)
                assert (wrong, expected in text) == (False, True), (tool, arguments, text)
            for tool, arguments, expected in BAD:
                wrong, text = await called(client, tool, **arguments)
                assert (wrong, expected in text) == (True, True), (tool, arguments, text)
            calls = next((workspace / "audit").glob("mcp_calls_*.jsonl"))
            before = calls.stat().st_size
            assert (await called(client, "x" * 100_000))[0]
            assert (await called(client, "reach", **{f"argument{number}": "x" for number in range(20_000)}))[0]
            assert calls.stat().st_size - before < 8_000
            mine = calls.stem.removeprefix("mcp_calls_")
            assert '"calls": [' in (await called(client, "audit_show", session=mine[:5]))[1]
            assert "web-vm-01-nic" in (await called(client, "audit_show", session=mine, record=1))[1]
            (findings,) = (await client.list_resources()).resources
            assert findings.uri == "ghost://findings/smtp"
            assert json.loads((await client.read_resource(findings.uri)).contents[0].text)[0]["kind"]
            record = await client.read_resource(f"ghost://records/{mine}/1")
            assert json.loads(record.contents[0].text)["reasoning"].startswith("test-agent 7: web-vm-01 → 10.20.2.5")
            for uri in ("ghost://records/../1", f"ghost://records/{mine}", "ghost://reports/x", "file:///etc/hostname"):
                with pytest.raises(MCPError, match="there is no resource"):
                    await client.read_resource(uri)
            assert {path.name for path in (workspace / "captures").iterdir()} == written, "no file is written"
            return mine

    recorded = SessionPaths(workspace / "audit", anyio.run(session))
    check_records(recorded)
    check_what_is_shown(recorded, capsys)


def check_records(recorded: SessionPaths) -> None:
    calls = read_valid_records(recorded.calls)[0]
    begun, ended = ([call["call"] for call in calls if name in call] for name in ("tool", "status"))
    assert begun == ended == list(range(1, len(GOOD) + len(BAD) + 4 + 6 + 1))
    assert {call["client"] for call in calls if "tool" in call} == {"test-agent 7"}
    records = read_valid_records(recorded.shell_audit)[0]
    assert {record["action"] for record in records if record["status"] == "completed"} == {"auto_approved"}
    assert [i for call in calls for i in call.get("audit_ids", ())] == [record["audit_id"] for record in records]
    assert not recorded.approvals.exists()
    assert [check.problems for check in verify_commands(recorded) if check.problems] == []


def check_what_is_shown(recorded: SessionPaths, capsys: Any) -> None:
    workspace = str(recorded.audit_dir.parent)
    capsys.readouterr()
    listed, shown, verified = (
        (main([*words, "-w", workspace]), capsys.readouterr().out)
        for words in (["sessions"], ["audit", "show", "mcp_"], ["audit", "verify", "mcp_"])
    )
    assert f"Connections of ghost mcp:\n{recorded.session_id}" in listed[1]
    assert "test-agent 7: reach" in listed[1]
    first, *_, record = (line for line in shown[1].splitlines() if "#001" in line)
    assert first.startswith('call 1 reach {"source": "web-vm-01"')
    assert "ok, #001 to #006, for test-agent 7" in first
    assert record.startswith("#001 ✓ az network nic list")
    assert (verified[0], "OK    calls: " in verified[1]) == (0, True)
    recorded.calls.write_text(recorded.calls.read_text().replace("test-agent", "other-agent"))
    assert main(["audit", "verify", "mcp_", "-w", workspace]) == 1


def test_an_investigation_is_told_cancelled_and_kept_from_a_second_one(tmp_path):
    """Two clients at once; the first cancels, the second then has the workspace."""
    told: list[str] = []

    async def both() -> str:
        async with connected(tmp_path) as first, connected(tmp_path, mode="legacy") as second:
            running, progress = anyio.Event(), []

            async def on_progress(_number: float, _total: float | None, message: str | None) -> None:
                progress.append(message)
                if len(progress) == 4:
                    running.set()

            async with anyio.create_task_group() as group:
                group.start_soon(
                    lambda: first.call_tool("investigate", {"symptom": SYMPTOM}, progress_callback=on_progress)
                )
                await running.wait()
                wrong, text = await called(second, "investigate", symptom=SYMPTOM)
                assert (wrong, '"status": "busy"' in text) == (True, True)
                group.cancel_scope.cancel()
            with anyio.fail_after(20):
                while is_locked(tmp_path):
                    await anyio.sleep(0.05)
            told.extend(progress)
            open_end = {"symptom": "timeouts", "source": "web-vm-01", "destination": "nix"}
            answer = json.loads((await called(second, "investigate", **open_end))[1])
            assert answer["outcome"] == "not_investigated"
            assert ("nix" in answer["asked"][0]["question"], answer["asked"][0]["answer"]) == (True, "web-vm-01")
            wrong, text = await called(second, "investigate", symptom=SYMPTOM, port=6379)
            answer = json.loads(text)
            assert "asked" not in answer
            assert (wrong, answer["outcome"], answer["causes"][0]["rule"]) == (
                False,
                "cause_found",
                "close-legacy-ports",
            )
            report, _ = (await first.list_resources()).resources
            assert report.uri == answer["report"]
            assert (await first.read_resource("ghost://reports/last")).contents[0].text.startswith("#")
            assert "close-legacy-ports" in (await first.read_resource(report.uri)).contents[0].text
            wrong, text = await called(first, "recall", symptom=SYMPTOM)
            assert "close-legacy-ports" in text
            return str(answer["session"])

    finished = anyio.run(both)
    cancelled = told[0].removeprefix("session ")
    assert cancelled != finished
    for session_id in (cancelled, finished):
        verify(tmp_path, session_id)
    ended = [
        call for path in sorted((tmp_path / "audit").glob("mcp_calls_*.jsonl")) for call in read_valid_records(path)[0]
    ]
    assert {call["status"]: call.get("session_id") for call in ended if "status" in call and "session_id" in call} == {
        "cancelled": cancelled,
        "ok": finished,
    }


def test_changes_are_told_with_who_made_them_and_when_on_one_path_or_all(tmp_path):
    async def session() -> None:
        async with connected(tmp_path, "hub-orders-apply", ready=True) as client:
            everything = json.loads((await called(client, "what_changed"))[1])
            assert [row["resource"].rpartition("/")[2] for row in everything["changes"]] == [
                "workers",
                "services",
                "front",
            ]
            path = {"source": "orders", "destination": "sql-vm", "port": 1433}
            on_path = json.loads((await called(client, "what_changed", **path))[1])
            assert on_path["changes"] == everything["changes"][1:2]
            what = (
                r"virtualNetworks/subnets/write of services of shop-vnet at [\d :-]{16} UTC by d\.\.\.@retail\.example"
            )
            assert re.fullmatch(what, on_path["changes"][0]["what"])

    anyio.run(session)


def test_a_cancelled_command_is_ended_and_the_next_call_is_answered(tmp_path):
    az = tmp_path / "az"
    nsg = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/web-nsg"
    rows = [
        {
            "time": f"2026-01-01T0{hour}:00:00Z",
            "caller": "jane@example.com",
            "operation": f"Microsoft.Network/networkSecurityGroups/{of}",
            "resource": nsg,
        }
        for hour, of in enumerate(("write", "write", "read"), 1)
    ]
    log = json.dumps({"entries": 3, "changes": rows})
    az.write_text(f"#!/bin/sh\ncase \"$*\" in *activity-log*) echo '{log}';; *) exec sleep 60;; esac\n")
    az.chmod(0o755)
    server = StdioServerParameters(
        command=str(GHOST), args=["mcp", "--workspace", str(tmp_path)], env={"GHOST_AZ": str(az)}
    )

    async def session() -> None:
        async with Client(server) as client:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(lambda: called(client, "shell_read", command="az network nic list", reason="x"))
                    while not list((tmp_path / "audit").glob("*.intent.json")):
                        await anyio.sleep(0.05)
                    group.cancel_scope.cancel()
                changed = json.loads((await called(client, "what_changed"))[1])
                what = "networkSecurityGroups/write of web-nsg at 2026-01-01 02:00 UTC by j...@example.com"
                assert changed["changes"] == [{"what": what, "resource": nsg}]

    anyio.run(session)
    (audit,) = (tmp_path / "audit").glob("shell_audit_mcp_*.jsonl")
    assert [(r["command"], r["error"]) for r in read_valid_records(audit)[0]] == [
        ("az network nic list", "interrupted"),
        (shlex.join(ACTIVITY_LOG), None),
    ]
    paths = SessionPaths(audit.parent, audit.stem.removeprefix("shell_audit_"))
    assert [call["status"] for call in read_valid_records(paths.calls)[0] if "status" in call] == ["cancelled", "ok"]
    assert [check for check in verify_commands(paths) if check.problems] == []


def verify(workspace: Path, session_id: str) -> None:
    paths = SessionPaths(workspace / "audit", session_id)
    file = paths.archived_session if paths.archived_session.exists() else workspace / "ghost_session.json"
    session, intact = load_session(file)
    assert session.session_id == session_id
    assert session.read_only
    assert [check for check in verify_session(session, paths, checksum_holds=intact) if check.problems] == []


def talking(workspace: Path) -> subprocess.Popen[bytes]:
    """A server whose client is the test itself, by bytes."""
    words = [GHOST, "mcp", "--workspace", workspace, "--lab", "blocked-port"]
    return subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **LAB}
    )


def message(method: str, number: int | None = None, **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    return json.dumps(body).encode() + b"\n"


HELLO = message(
    "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "raw\x1b[31m", "version": "1"}
) + message("notifications/initialized")
INVESTIGATE = message("tools/call", 2, name="investigate", arguments={"symptom": SYMPTOM}, _meta={"progressToken": "t"})


def test_a_client_that_dies_in_mid_call_ends_the_server_and_what_runs(tmp_path):
    with talking(tmp_path) as server:
        server.stdin.write(HELLO + INVESTIGATE)
        server.stdin.flush()
        session_id = ""
        for line in server.stdout:
            if "session ghost_" in (text := json.loads(line).get("params", {}).get("message", "")):
                session_id = text.removeprefix("session ")
            elif "_002: az" in text:
                break
        server.stdin.close()
        assert server.wait(20) == 0
        assert server.stderr.read() == b""
    assert not is_locked(tmp_path)
    verify(tmp_path, session_id)
    calls = read_valid_records(next((tmp_path / "audit").glob("mcp_calls_*.jsonl")))[0]
    assert (calls[0]["client"], calls[1]["status"]) == ("raw 1", "cancelled")


def test_standard_output_carries_the_protocol_only_and_a_signal_ends_the_server(tmp_path):
    with talking(tmp_path) as server:
        server.stdin.write(b"no json\n\xff\xfe\n[]\n" + HELLO)
        server.stdin.write(message("tools/call", 2, name="shell_read", arguments={"command": "ls", "reason": "x"}))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        assert [answer["id"] for answer in answers] == [1, 2]
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 130
        assert server.stderr.read() == b"ghost: interrupted.\n"
        assert server.stdout.read() == b""


def test_a_call_that_cannot_be_put_on_record_is_not_made(tmp_path):
    (tmp_path / "audit").write_text("in the way")
    server = Desk(Connection(Settings(workspace=tmp_path), None, ())).server()

    async def session() -> None:
        async with Client(server) as client:
            wrong, text = await called(client, "shell_read", command="ip addr", reason="x")
            assert (wrong, "/audit" in text) == (True, True), text
            with pytest.raises(MCPError, match="/audit"):
                await client.read_resource("ghost://reports/ghost_1")

    anyio.run(session)


def test_lines_are_read_as_they_come_and_one_without_an_end_is_not_kept():
    reading, writing = os.pipe()

    async def read() -> list[str]:
        return [line async for line in lines_of(reading)]

    def write() -> None:
        with suppress(BrokenPipeError):
            for part in (b"one\ntwo", b"\n", *([bytes(1 << 16)] * (MAX_LINE // (1 << 16) + 2))):
                os.write(writing, part)
        os.close(writing)

    endless = threading.Thread(target=write)
    endless.start()
    assert anyio.run(read) == ["one", "two"]
    os.close(reading)
    endless.join()
