"""One investigation, end to end: from a symptom typed to a report that verifies.

Nothing is stood in for: the command line, the shell, the orchestrator, the capture engine and the brain are the
product, the network is the lab's. The demonstration, and what is killed, is the installed program with processes of its
own; what is typed to, variations and what follows a kill run the lab's programs in themselves.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from ghost.cli.investigation_command import INCONCLUSIVE
from ghost.lab import Scenario, load_scenario, score
from ghost.net import name_of
from tests.cli.ready_ghost import IN_PROCESS, run_ghost
from tests.exhaustive import EXHAUSTIVE, sample
from tests.lab.variations import renamed, with_deny_at_other_end, with_loss_in_other_direction, without_fault

GHOST = Path(sys.executable).with_name("ghost")
SEEDS = (1, 2, 3) if EXHAUSTIVE else (1,)


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GHOST_", "GEMINI_"))}
    return {**clean, "COLUMNS": "160", "GHOST_LAB_SPEED": "60"}


def ghost(*arguments: str, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    return checked(run_ghost(*arguments, cwd=cwd, environment=environment(), seconds=170, in_process=True), status)


def checked(result: subprocess.CompletedProcess[str], status: int = 0) -> subprocess.CompletedProcess[str]:
    assert result.returncode == status, result.stdout[-3000:] + result.stderr[-3000:]
    assert "Traceback" not in result.stderr
    return result


@dataclass(frozen=True)
class Finished:
    report: dict
    screen: str
    directory: Path

    @property
    def summary(self) -> str:
        return self.report["summary"]["text"]

    @property
    def fault_layers(self) -> set[str]:
        return {row["layer"] for row in self.report["coverage"] if row["status"] == "at_fault"}


def investigate(scenario: Scenario, directory: Path) -> Finished:
    (directory / "scenario.json").write_text(json.dumps(scenario.to_dict()))
    result = ghost("investigate", scenario.symptom, "--lab", "scenario.json", "--json", cwd=directory)
    return Finished(json.loads(result.stdout), result.stderr, directory)


def unchanged(scenario: Scenario) -> Scenario:
    return scenario


def the_cause_is_right(finished: Finished, scenario: Scenario) -> None:
    judged = score(scenario, finished.report)
    assert (judged.root_cause_right, judged.false_causes) == (True, 0)
    assert judged.faults_found == judged.faults_present == len(scenario.truth.faults)
    assert all(cause["supported"] for cause in finished.report["causes"])
    assert finished.report["outcome"] == ("cause_found" if scenario.truth.faults else "healthy")
    confirmed = [h for h in finished.report["hypotheses"] if h["state"] == "CONFIRMED"]
    if not scenario.truth.faults:
        assert finished.fault_layers == set()
        assert confirmed == []
        return
    assert confirmed
    assert finished.report["summary"]["supported"]
    flow, (fault,) = scenario.flows[0], scenario.truth.faults
    (cause,) = finished.report["causes"]
    assert (cause["rule"], cause["direction"] or "") == (fault.rule or "", fault.direction or "")
    if fault.kind == "security_rule":
        assert finished.fault_layers == {f"nsg_{fault.direction.lower()}"}
        assert fault.rule in finished.summary
        assert name_of(fault.resource) in finished.summary
    else:
        assert finished.fault_layers == {"wire"}
        lossy_to = {flow.source, flow.destination} - {name_of(fault.resource)}
        assert re.search(
            rf"from {re.escape(name_of(fault.resource))}\b.* to {re.escape(lossy_to.pop())}\b.* lost", finished.summary
        ), finished.summary


VARIATIONS: dict[str, tuple[str, Callable[[Scenario], Scenario]]] = {
    "the deny": ("blocked-port", unchanged),
    "the deny at the other group": ("blocked-port", with_deny_at_other_end),
    "no deny": ("blocked-port", without_fault),
    "the loss": ("wire-loss", unchanged),
    "the loss in the other direction": ("wire-loss", with_loss_in_other_direction),
    "no loss": ("wire-loss", without_fault),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", VARIATIONS)
def test_with_every_name_address_and_port_changed_the_cause_is_right(tmp_path, name, seed):
    base, variation = VARIATIONS[name]
    scenario = renamed(variation(load_scenario(base)), seed)
    finished = investigate(scenario, tmp_path)
    the_cause_is_right(finished, scenario)
    assert all(statement["supported"] for statement in finished.report["statements"])
    ghost("audit", "verify", finished.report["session_id"], cwd=tmp_path)


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory) -> Finished:
    directory = tmp_path_factory.mktemp("demo")
    words = [GHOST, "investigate", "--lab", "wire-loss", "--json"]
    ran = subprocess.run(
        words,
        cwd=directory,
        env={**environment(), "GHOST_LAB_SPEED": "10"},  # slow enough for both captures to overlap on a busy machine
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
    )
    return Finished(json.loads(checked(ran).stdout), ran.stderr, directory)


def test_the_demonstration_shows_hypotheses_classes_approvals_a_capture_and_the_report(demonstrated):
    for words in (
        "? H1  A security group denies",
        "✓ effective routes: app-vm-01-nic",
        "SAFETY SHELL ALERT",
        "Records packets of “app-vm-01” of group “app-rg”",
        "answered by the scenario",
        "RISKY, approved",
        "✓ compare captures",
        "✓ H4 CONFIRMED by #",
        "Cause found, high confidence: packet loss",
        "RCA REPORT WRITTEN",
    ):
        assert words in demonstrated.screen
    assert "\x1b[" not in demonstrated.screen


def test_nothing_is_left_in_azure_and_the_reports_stay(demonstrated):
    lab = next((demonstrated.directory / "lab").iterdir())
    state = json.loads((lab / "state.json").read_text())
    assert not state.get("captures")
    assert not state.get("blobs")
    capture = demonstrated.report["captures"][0]
    assert capture["cleanup_status"] == "completed"
    assert Path(capture["report_path"]).is_file()
    assert "lost" in capture["executive_summary"]


def test_every_file_of_a_workspace_is_private(demonstrated):
    for path in (demonstrated.directory / "audit", demonstrated.directory / "captures"):
        assert path.stat().st_mode & 0o777 == 0o700
        assert {p.stat().st_mode & 0o777 for p in path.iterdir() if p.is_file()} <= {0o600}


def test_any_changed_byte_or_cut_line_of_an_audit_file_fails_the_verification(demonstrated):
    session = demonstrated.report["session_id"]
    audit = demonstrated.directory / "audit"
    random = Random(7)
    for path in (audit / f"shell_audit_{session}.jsonl", audit / f"orchestrator_tasks_{session}.jsonl"):
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        position = random.randrange(len(whole))
        changed = whole[:position] + bytes([whole[position] ^ 0x01]) + whole[position + 1 :]
        last_byte = whole[:-3] + bytes([whole[-3] ^ 0x01]) + whole[-2:]
        try:
            for content in (changed, last_byte, b"".join(lines[:-1]), whole[:-1]):
                path.write_bytes(content)
                result = ghost("audit", "verify", session, cwd=demonstrated.directory, status=1)
                assert "FAIL" in result.stdout
        finally:
            path.write_bytes(whole)
    ghost("audit", "verify", session, cwd=demonstrated.directory)


def killed_after(seen: str, directory: Path) -> str:
    """Starts an investigation, kills it with SIGKILL once `seen` is on its screen; the session's id."""
    process = subprocess.Popen(
        [GHOST, "investigate", "--lab", "wire-loss"],
        cwd=directory,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    screen = ""
    deadline = time.monotonic() + 100
    for line in process.stdout:
        screen += line
        if seen in line or time.monotonic() > deadline:
            break
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    assert seen in screen, screen[-2000:]
    return re.search(r"Session: (ghost_\w+)", screen).group(1)


MOMENTS = ["? H2", "✓ state of machines", "✓ create packet capture", "✓ state of the capture", "✓ compare captures"]


@pytest.mark.parametrize("moment", sample(MOMENTS, 1, seed=5))
def test_killed_in_the_middle_it_resumes_and_still_cites_the_earlier_evidence(tmp_path, moment):
    session = killed_after(moment, tmp_path)
    before = [
        json.loads(line)["audit_id"]
        for line in (tmp_path / "audit" / f"shell_audit_{session}.jsonl").read_text().splitlines()
    ]
    result = ghost("investigate", "--resume", session, "--json", cwd=tmp_path)
    finished = Finished(json.loads(result.stdout), result.stderr, tmp_path)
    the_cause_is_right(finished, load_scenario("wire-loss"))
    cited = {i for s in finished.report["statements"] for i in s["audit_ids"]}
    cited |= {i for h in finished.report["hypotheses"] for i in h["audit_ids"]}
    listed = {row["audit_id"] for row in finished.report["evidence"]}
    assert set(before) <= listed
    if moment != "? H2":
        assert cited & set(before), "no evidence from before the kill is cited"
    ghost("audit", "verify", session, cwd=tmp_path)
    captures = finished.report["captures"]
    assert len(captures) == 2, "a third capture was started"
    state = json.loads((tmp_path / "lab" / session / "state.json").read_text())
    assert not state.get("captures")


def test_with_changed_records_or_without_its_lab_a_session_is_not_gone_on_with(tmp_path):
    session = killed_after("? H2", tmp_path)
    audit = tmp_path / "audit" / f"shell_audit_{session}.jsonl"
    whole = audit.read_bytes()
    audit.write_bytes(whole.splitlines(keepends=True)[0])
    before = audit.read_bytes()
    refused = ghost("investigate", "--resume", session, cwd=tmp_path, status=1)
    assert "changed from outside" in refused.stderr
    assert audit.read_bytes() == before

    audit.write_bytes(whole)
    shutil.rmtree(tmp_path / "lab")
    refused = ghost("investigate", "--resume", session, cwd=tmp_path, status=1)
    assert "no lab" in refused.stderr
    assert audit.read_bytes() == whole


def test_a_report_from_the_lab_says_that_it_is_simulated(demonstrated):
    assert "SIMULATED" in demonstrated.report["network"]
    assert (
        "SIMULATED"
        in Path(demonstrated.directory / "audit")
        .joinpath(f"ghost_rca_{demonstrated.report['session_id']}.md")
        .read_text()
    )


def test_a_finished_session_is_not_run_again(demonstrated):
    result = ghost("investigate", "--resume", demonstrated.report["session_id"], cwd=demonstrated.directory)
    assert "finished" in result.stdout


def test_an_interruption_saves_the_session_and_says_how_to_resume(tmp_path):
    process = subprocess.Popen(
        [GHOST, "investigate", "--lab", "wire-loss"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stdout:
        if "? H2" in line:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Resume with: ghost investigate --resume ghost_" in errors
    assert "Traceback" not in errors


def on_a_terminal(directory: Path, *arguments: str) -> tuple[int, int]:
    """Starts ghost on a terminal of its own; its process id and the other end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(directory)
        more = {"TERM": "xterm", IN_PROCESS: "1", "PYTHONPATH": str(Path(__file__).parents[1])}
        code = "import sys; from tests.cli.ready_ghost import main; sys.exit(main(sys.argv[1:]))"
        os.execve(sys.executable, [sys.executable, "-c", code, *arguments], {**environment(), **more})
    return pid, terminal


def read_until(terminal: int, words: str, seconds: float = 60.0) -> str:
    screen = ""
    deadline = time.monotonic() + seconds
    while words not in screen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            screen += os.read(terminal, 65536).decode("utf-8", "replace")
    assert words in screen, screen[-2000:]
    return screen


def test_a_terminal_closed_at_an_approval_loses_nothing(tmp_path):
    pid, terminal = on_a_terminal(tmp_path, "investigate", "--lab", "wire-loss")
    screen = read_until(terminal, "Your choice")
    assert re.search(r"running 2 commands: network interfaces, virtual networks[^\n]* \S*0:00:0\d", screen)
    session = re.search(r"Session: (ghost_\w+)", screen).group(1)
    os.close(terminal)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.1)
    if ended == (0, 0):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 130
    result = ghost("investigate", "--resume", session, "--json", cwd=tmp_path)
    finished = Finished(json.loads(result.stdout), result.stderr, tmp_path)
    the_cause_is_right(finished, load_scenario("wire-loss"))
    assert len(finished.report["captures"]) == 2


def test_on_a_terminal_a_denial_with_its_reason_reaches_the_report(tmp_path):
    pid, terminal = on_a_terminal(tmp_path, "investigate", "--lab", "wire-loss")
    screen = read_until(terminal, "Your choice")
    os.write(terminal, b"d\n")
    read_until(terminal, "Denial reason")
    os.write(terminal, b"not before the freeze ends\n")
    rest = read_until(terminal, "Ticket text:", 90)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == INCONCLUSIVE
    assert "A plan: these 8 commands may run as they stand" in screen
    session = re.search(r"Session: (ghost_\w+)", screen).group(1)
    report = json.loads((tmp_path / "audit" / f"ghost_rca_{session}.json").read_text())
    assert {row["layer"]: row["status"] for row in report["coverage"]}["wire"] == "not_verified"
    assert not [h for h in report["hypotheses"] if h["state"] == "CONFIRMED"]
    assert "not before the freeze ends" in json.dumps(report)
    assert "not before the freeze ends" in rest


def test_what_was_typed_before_the_question_is_no_answer_to_it(tmp_path):
    (tmp_path / "keep").write_text("x")
    pid, terminal = on_a_terminal(tmp_path, "shell", "run", "rm keep")
    os.write(terminal, b"a\n")
    read_until(terminal, "Your choice")
    time.sleep(0.5)
    assert (tmp_path / "keep").exists()
    os.write(terminal, b"d\n")
    read_until(terminal, "Denial reason")
    os.write(terminal, b"\n")
    read_until(terminal, "user_denied")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 1
    assert (tmp_path / "keep").exists()


def test_a_session_is_found_from_the_directory_above_its_workspace(demonstrated):
    inner = demonstrated.directory.parent / "outer" / "demo"
    inner.parent.mkdir(exist_ok=True)
    inner.symlink_to(demonstrated.directory, target_is_directory=True)
    session = demonstrated.report["session_id"]
    shown = ghost("audit", "show", session, cwd=inner.parent).stdout
    assert {row["audit_id"] for row in demonstrated.report["evidence"]} == {
        f"{session}_{number}" for number in re.findall(r"^#(\d+) ", shown, re.M)
    }
    verified = ghost("audit", "verify", session, cwd=inner.parent).stdout
    assert f"{session}: every record and citation holds" in verified
