"""`ghost investigate`: runs one investigation and writes the report.

Exit status: 0 concluded (cause found, or healthy), 3 not, 1 failed, 2 usage, 5 paused until az login, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console as Rich

from ghost.cli.brain_choice import choose_brain
from ghost.cli.event_lines import EventLines, ServedEvents
from ghost.cli.investigation_request import SYMPTOM_NEEDED, Request, Served
from ghost.cli.investigation_run import InvestigationRun
from ghost.cli.leftovers import tell_what_is_left
from ghost.cli.narration import Narration, TerminalGoneError
from ghost.cli.session_opening import SessionOpening
from ghost.cli.session_records import open_workspace, option_of, workspace_of
from ghost.cli.terminal import is_interactive, to_stderr, to_stdout
from ghost.config import Settings
from ghost.errors import BrainError, GhostError, LoginError, UsageError
from ghost.lab import load_case
from ghost.records import SystemClock, private_dir, workspace_lock

INCONCLUSIVE: Final = 3
INTERRUPTED: Final = 130
CONCLUDED: Final = ("cause_found", "healthy")
"""Outcomes of exit status 0."""


def investigate(request: Request, workspace_option: Path | None, served: Served | None = None) -> int:
    """Run one investigation. Returns the exit status; raises `GhostError` or KeyboardInterrupt."""
    given = {"workspace": workspace_option} if workspace_option else {}
    settings = Settings(**given, **request.capture_options)
    if request.as_json and request.as_events:
        raise UsageError("--json and --json-events both write to standard output: choose one")
    if request.resume and (request.symptom or request.lab or str(request.stated)):
        raise UsageError("--resume goes on with a session as it is: leave the symptom, its ends and --lab out")
    if request.stated.port and request.stated.protocol == "icmp":
        raise UsageError("icmp has no ports: leave --port out, or name the protocol that has it")
    symptom = request.symptom
    if symptom is None and request.stated.destination:
        symptom = str(request.stated)
    blank = symptom is not None and not symptom.strip()
    nobody_to_ask = symptom is None and not (request.lab or request.resume or is_interactive())
    if blank or nobody_to_ask:
        raise UsageError(SYMPTOM_NEEDED)
    if request.resume:
        workspace, _ = workspace_of(request.resume, workspace_option, settings)
    else:
        workspace = open_workspace(workspace_option, settings)
    settings = replace(settings, workspace=workspace.root)
    scenario = load_case(request.lab) if request.lab else None
    clock = SystemClock()
    shown = Rich(file=io.StringIO()) if served else to_stderr() if request.for_programs else to_stdout()
    narration = Narration(
        shown,
        interactive=is_interactive() and not request.for_programs and not served,
        verbose=request.verbose,
    )
    if served is not None:
        narration.events = ServedEvents(served.tell, served.is_stopped)
    elif request.as_events:
        narration.events = EventLines(clock)
    with workspace_lock(workspace.root):
        private_dir(workspace.audit_dir)
        chosen = choose_brain(request.wish, settings, workspace)
        private = request.private or settings.private
        opening = SessionOpening(workspace, settings, narration, clock, chosen.brain, private)
        try:
            opened = (
                opening.resumed(request.resume) if request.resume else opening.new(scenario, symptom, request.stated)
            )
            run = InvestigationRun(request, settings, workspace, chosen, narration, opened, served)
            with run.asking():
                outcome = run.carry_out()
        except BaseException as ended:
            saved = opening.session_id is not None and opening.session_id == workspace.current_id()
            can_go_on = saved and isinstance(ended, KeyboardInterrupt | BrainError | LoginError)
            of = f"{opening.session_id}{option_of(workspace.root)}"
            resume = f"ghost investigate --resume {of}" if can_go_on else None
            if opening.session_id is not None:
                tell_what_is_left(settings, opening.session_id)
            with contextlib.suppress(OSError, TerminalGoneError):  # where the terminal is gone nobody is to be told
                if resume:
                    to_stderr().print(f"Session saved. Resume with: {resume}", markup=False, soft_wrap=True)
                narration.event("ended", exit_status=_status_of(ended), error=str(ended), resume=resume)
            raise
        status = 0 if outcome in CONCLUDED else INCONCLUSIVE
        narration.event("ended", outcome=outcome, exit_status=status)
        return status


def _status_of(ended: BaseException) -> int:
    if isinstance(ended, KeyboardInterrupt):
        return INTERRUPTED
    return ended.exit_status if isinstance(ended, GhostError) else GhostError.exit_status
