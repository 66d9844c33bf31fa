"""What a turn of an investigation costs besides the commands: 60 turns of the offline brain, each with one read of az.

Processor time of this process a turn, and whether it grows with the turns. The shell answers without a process; what it
takes to redact an answer is told, and bounded by `redact` and `whole_output`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ghost.agent import Evidence, Investigation, Session, Tools, TurnLog, Workspace
from ghost.brain import OfflineBrain
from ghost.brain.offline.azure_reads import Read, az
from ghost.brain.offline.case import Case, read
from ghost.brain.offline.steps import Call, Step, Steps
from ghost.records import Head, SystemClock, isoformat
from ghost.shell import SafeExecShell

TURNS, BOUND_MS, GROWTH = 60, 25.0, 1.5
SESSION = "ghost_20260101_120000"


class Nothing:
    """A console and an orchestrator that do nothing."""

    registry_head = Head()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def reading(text: str, *_: object) -> Steps[None]:
    """Sixty reads, the first of which confirms a hypothesis."""
    case = Case(text)
    for n in range(TURNS - 1):
        (found,) = yield from read(case, f"Read {n}.", Read(az("network", "nic", "list", "-g", f"rg-{n}"), "to see"))
        assert isinstance(found.value, list)
        if n == 0:
            told = {"id": "H1", "description": "a rule denies it", "refuted_by": "no rule denies it"}
            verdict = {"action": "confirm", "id": "H1", "audit_ids": list(found.audit_ids)}
            register = Call("manage_hypotheses", {"action": "register", **told})
            yield Step("", (register, Call("manage_hypotheses", verdict)))
    yield Step("", (Call("complete_investigation", {"confidence": "low", "root_cause_summary": "It is the rule."}),))


def measure(size: int, root: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of each turn with answers of `size` bytes, and of these the shell's, which are not counted."""
    row = {"name": "nic", "privateIPAddress": "10.0.0.4", "provisioningState": "Succeeded", "primary": True}
    answer = json.dumps([row] * (size // len(json.dumps(row))), indent=2).encode()
    session = Session(session_id=SESSION, created_at="2026-01-01T12:00:00Z", model="offline", audit_dir="audit")
    paths = session.paths(root)
    (root / "az").write_text("#!/bin/sh\n")
    (root / "az").chmod(0o755)
    shell = SafeExecShell(
        SESSION,
        audit_dir=root / "audit",
        program_dirs=[root],
        runner=lambda arguments, **_: subprocess.CompletedProcess(arguments, 0, answer, b""),
    )
    inside = 0.0
    execute_all = shell.execute_all

    def timed(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        nonlocal inside
        began = time.process_time()
        responses = execute_all(requests)
        inside += time.process_time() - began
        return responses

    shell.execute_all = timed
    nothing: Any = Nothing()
    investigation = Investigation(
        brain=OfflineBrain(reading),
        tools=Tools(
            shell,
            nothing,
            session,
            Evidence(paths.shell_audit).refreshed,
            lambda: isoformat(datetime.now(UTC)),
            SystemClock(),
        ),
        session=session,
        session_file=Workspace(root).session_file,
        turns=TurnLog(paths.turns),
        shell=shell,
        orchestrator=nothing,
        console=nothing,
        clock=SystemClock(),
        conversation=[],
        unanswered=[],
        max_turns=TURNS * 2,
        max_denials=3,
    )
    investigation.begin("vm-1 cannot reach vm-2")
    turns: list[float] = []
    shells: list[float] = []
    while session.completion is None:
        began, inside = time.process_time(), 0.0
        investigation._step()
        turns.append((time.process_time() - began - inside) * 1000)
        shells.append(inside * 1000)
    return turns, shells


def main() -> int:
    failed = False
    for size in (4_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as root:
            turns, shells = measure(size, Path(root))
        median, first, last = (statistics.median(part) for part in (turns, turns[2:22], turns[-20:]))
        print(
            f"answers of {size / 1000:g} kB, {len(turns)} turns: median {median:.1f} ms, bound {BOUND_MS:g} ms;"
            f" first 20 {first:.1f} ms, last 20 {last:.1f} ms; the shell's redaction {statistics.median(shells):.0f} ms"
        )
        failed |= median > BOUND_MS or last > first * GROWTH
    return int(failed)
