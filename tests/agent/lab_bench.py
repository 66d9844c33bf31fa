"""An investigation of a lab's scenario in the process of a test: everything is the product but the brain."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console as Rich

from ghost.agent import Evidence, Investigation, Session, Tools, TurnLog, Workspace, verify_session, write_report
from ghost.brain import Brain
from ghost.cli.approvals import ScenarioGate
from ghost.cloud import CloudOrchestrator
from ghost.lab import Case, Scenario, lab_programs, load_case, start
from ghost.records import SystemClock, isoformat
from ghost.shell import ApprovalRequest, HitlDecision, SafeExecShell
from tests.agent.conftest import Desk
from tests.lab import in_process

SESSION = "ghost_20260101_120000"
SPEED = 5000.0


class BriefedDesk(Desk):
    """An engineer who answers as the scenario says."""

    def __init__(self, scenario: Case) -> None:
        super().__init__()
        self._scenario = scenario

    def answer(self, question: str) -> str | None:
        return self._scenario.briefing.answer(question)


@dataclass
class Investigated:
    session: Session
    report: dict[str, Any]
    evidence: Evidence
    problems: list[str]
    """Of `ghost audit verify`."""
    desk: Desk


def opened(
    scenario: Case,
    root: Path,
    brain: Brain,
    max_turns: int = 40,
    approve: Callable[[ApprovalRequest], HitlDecision] | None = None,
) -> Investigation:
    """Return an investigation of a scenario that has begun; approvals are the scenario's, or those of `approve`."""
    root.mkdir(parents=True, exist_ok=True)
    session = Session(
        session_id=SESSION,
        created_at=isoformat(SystemClock().now()),
        model=brain.name,
        prompt_sha256=brain.prompt_hash,
        audit_dir="audit",
        symptom=scenario.symptom,
    )
    lab, paths = start(scenario, root / "lab", speed=SPEED), session.paths(root)
    gate = ScenarioGate(Rich(file=io.StringIO()), lab.briefing.approvals, [root / "captures", root / "audit"])
    shell = SafeExecShell(
        SESSION,
        approve=approve or gate.approve,
        audit_dir=str(root / "audit"),
        anonymization_enabled=False,
        roots=[root],
        reads_only=[root / "captures"],
        runner=in_process.run if isinstance(scenario, Scenario) else None,  # a tape's programs are others
        **lab_programs(lab),
    )
    audit, captures = str(root / "audit"), str(root / "captures")
    orchestrator = CloudOrchestrator(
        shell, SESSION, audit, clock=lab.clock, local_capture_dir=captures, search_azure_at_start=False
    )
    evidence = Evidence(paths.shell_audit).refreshed
    investigation = Investigation(
        brain=brain,
        tools=Tools(shell, orchestrator, session, evidence, lambda: isoformat(SystemClock().now()), lab.clock),
        session=session,
        session_file=Workspace(root).session_file,
        turns=TurnLog(paths.turns),
        shell=shell,
        orchestrator=orchestrator,
        console=BriefedDesk(scenario),
        clock=SystemClock(),
        conversation=[],
        unanswered=[],
        max_turns=max_turns,
        max_denials=3,
    )
    investigation.begin(scenario.symptom)
    return investigation


def investigated(
    name: str, root: Path, brain: Brain, max_turns: int = 40, changed: Callable[[Case], Case] = lambda case: case
) -> Investigated:
    """Investigate a scenario by name to its report."""
    investigation = opened(changed(load_case(name)), root, brain, max_turns)
    investigation.run()
    session, paths = investigation.session, investigation.session.paths(root)
    report, _ = write_report(session, paths, investigation.shell, SystemClock().now())  # type: ignore[arg-type]
    investigation.save()
    checks = verify_session(session, paths, checksum_holds=True)
    problems = [f"{check.name}: {problem}" for check in checks for problem in check.problems]
    desk = investigation.console
    assert isinstance(desk, Desk)
    return Investigated(session, report, Evidence(paths.shell_audit), problems, desk)
