"""A process that takes a capture in the lab as far as it gets: `python -m tests.cloud.capture_process`.

It reads one JSON object a line from its standard input, and for each forks a process that makes an orchestrator on the
real shell and lives a capture's life, or goes on with it; the lab's programs run in the same process. That one kills
itself with SIGKILL before or after the command that it is told. The fork only saves the time of importing: nothing is
shared with it that began before. Answers one line each: how the process ended, negative for a signal.

    {"workspace": DIR, "session": "s1", "target": "web-vm-01", "account": NAME,
     "kill": [part of a command, how many of them, "before" | "after" | "during"] | null}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ghost.cloud import CloudOrchestrator
from ghost.lab import RunningLab, reopen
from ghost.shell import HitlDecision, SafeExecShell
from tests.lab import in_process

ENDED = {"task_completed", "task_failed", "task_cancelled", "task_timed_out"}


AZURE_TAKES_SECONDS = 0.2
"""120 on the lab's clock."""


class KillingShell:
    """The real shell, in a process that ends at one command."""

    def __init__(self, shell: SafeExecShell, kill: tuple[str, int, str] | None) -> None:
        self._shell = shell
        self._part, self._count, self._moment = kill or ("", 0, "never")

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._part in request["command"] and not request["reasoning"].startswith("Left-overs:"):
            self._count -= 1
        due = self._count == 0 and self._part in request["command"]
        if due and self._moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if due and self._moment == "during" and os.fork() > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if due and self._moment == "during":  # the request is under way: Azure carries it out later
            time.sleep(AZURE_TAKES_SECONDS)
            self._shell.execute(request)
            os._exit(0)
        response = self._shell.execute(request)
        if due and self._moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return response


def approve(command: str, reasoning: str, risk_explanation: str, tier: int) -> HitlDecision:
    return HitlDecision("approve")


def orchestrator(
    workspace: Path, session: str, kill: tuple[str, int, str] | None = None, *, private: bool = False
) -> CloudOrchestrator:
    lab: RunningLab = reopen(workspace / "lab")
    audit, captures = workspace / "audit", workspace / "captures"
    shell = SafeExecShell(
        session,
        approve,
        audit,
        roots=[captures, audit],
        program_dirs=[lab.program_dir],
        environment=lab.environment,
        resolver=lab.resolver,
        anonymization_enabled=private,
        runner=in_process.run,
    )
    killing = KillingShell(shell, kill)
    return CloudOrchestrator(
        killing, session, audit, clock=lab.clock, local_capture_dir=captures, announce=lambda _: None
    )


def live(desk: CloudOrchestrator, target: str, account: str) -> None:
    """What a brain does with a capture that it wants, wherever it stands: begin, check until it ended, clean up."""
    listed = desk.orchestrate({"intent": "list_tasks"})
    if not listed["tasks"]:
        parameters = {"resource_group": "prod-rg", "storage_account": account, "duration_seconds": 5}
        desk.orchestrate({"intent": "capture_traffic", "target": target, "parameters": parameters})
        listed = desk.orchestrate({"intent": "list_tasks"})
    tasks = [task["task_id"] for task in listed["tasks"]]
    for _ in range(6):
        statuses = {desk.orchestrate({"intent": "check_task", "task_id": task})["status"] for task in tasks}
        if statuses <= ENDED:
            break
    for task in tasks:
        desk.orchestrate({"intent": "cleanup_task", "task_id": task})


def _serve() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            kill = tuple(order["kill"]) if order["kill"] else None
            live(orchestrator(Path(order["workspace"]), order["session"], kill), order["target"], order["account"])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
