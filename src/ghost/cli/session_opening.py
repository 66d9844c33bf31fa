"""Opens the session of an investigation: a new one, one that is resumed, or a fresh one in place of a damaged one.

Records that do not verify may be continued with, and the report says so; where the session file cannot be read there is
a fresh session or none. Nothing of the damaged session is deleted.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ghost.agent import (
    AZURE,
    NO_RECORDS,
    Evidence,
    Session,
    SessionPaths,
    Workspace,
    load_session,
    recorded_symptom,
    save_session,
    verify_session,
    without_secrets,
)
from ghost.brain import Brain, StatedEnds, UserMessage
from ghost.cli.narration import Narration
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.lab import RunningLab, Scenario, TapeScenario, lab_behind_az
from ghost.lab import reopen as reopen_lab
from ghost.lab import start as start_lab
from ghost.records import Clock, isoformat, new_session_id
from ghost.report import SIMULATED
from ghost.shell import TopologyAnonymizer
from ghost.text import map_text, plural

NOTHING_STATED = StatedEnds()
MAX_LISTED = 10
CONTINUE, FRESH, ABORT = "c", "f", "a"
_CHOICES = {CONTINUE: "Continue anyway", FRESH: "Fresh session", ABORT: "Abort"}


@dataclass(frozen=True)
class OpenedSession:
    session: Session
    lab: RunningLab | None
    """The lab of this session."""
    lab_behind_az: RunningLab | None
    """The lab that az asks in this shell, whichever the session."""


class SessionOpening:
    """The workspace is locked around it."""

    def __init__(
        self,
        workspace: Workspace,
        settings: Settings,
        narration: Narration,
        clock: Clock,
        brain: Brain,
        private: bool = False,
    ) -> None:
        """`private`: what was typed is written into the mapping of private mode only."""
        self._workspace = workspace
        self._settings = settings
        self._narration = narration
        self._clock = clock
        self._brain = brain
        self._private = private
        self.session_id: str | None = None
        """The session that is opened; its file may not be written yet."""

    def new(
        self, scenario: Scenario | TapeScenario | None, symptom: str | None, stated: StatedEnds = NOTHING_STATED
    ) -> OpenedSession:
        """Start a session in a lab of its own, or in the network that az asks. `symptom`: None if it is to be asked."""
        if scenario is None:
            az_lab = lab_behind_az()
            created = self._created(self._new_id(), az_lab, network_of_az(az_lab), symptom, stated)
            return OpenedSession(created, None, az_lab)
        session_id = self._new_id()
        lab = start_lab(scenario, self._lab_of(session_id), speed=self._settings.lab_speed)
        symptom = scenario.briefing.symptom if symptom is None else symptom
        return OpenedSession(self._created(session_id, lab, lab.briefing.network, symptom, stated), lab, None)

    def resumed(self, session_id: str) -> OpenedSession:
        """Raises `SessionError` if az here asks another network, or the session is damaged and nobody chooses how to go
        on, and `LabError` if its lab is gone."""
        path = self._workspace.find(session_id)
        az_lab = lab_behind_az()
        try:
            session, intact = load_session(path)
            if session.session_id != session_id:
                raise SessionError(f"the session file {path} is of another session: resume {session.session_id}")
        except SessionError as unreadable:
            self._choose(session_id, [str(unreadable)], str(unreadable), (FRESH, ABORT))
            return self._fresh(session_id, az_lab)
        lab = own_lab_of(session.session_id, session.network, self._workspace.root, az_lab)
        checks = verify_session(session, session.paths(self._workspace.root), checksum_holds=intact)
        problems = [f"{check.name}: {problem}" for check in checks for problem in check.problems]
        if problems:
            count = plural(len(problems), "problem")
            changed = f"the records of {session.session_id} were changed from outside ({count})"
            if self._choose(session_id, problems, changed, (CONTINUE, FRESH, ABORT)) == FRESH:
                return self._fresh(session.session_id, az_lab, session)
            session.integrity_warning = f"when it was resumed, {'; '.join(_first(problems))}"
        self.session_id = session.session_id
        if path != self._workspace.session_file:
            self._workspace.set_current_aside()
            path.replace(self._workspace.session_file)
        session.is_resume = True
        if session.completion is None:
            if session.model != self._brain.name:
                session.earlier_models.append(session.model)
            session.model, session.prompt_sha256 = self._brain.name, self._brain.prompt_hash
        save_session(self._workspace.session_file, session)
        return OpenedSession(session, lab, az_lab)

    def _choose(self, session_id: str, problems: Sequence[str], why: str, offered: Sequence[str]) -> str:
        """Show the problems and return the choice. Raises `SessionError` with `why` on abort, or if nobody answers."""
        for line in _first(problems):
            self._narration.line(f"  [WARN] {line}", style="yellow")
        choice = self._narration.choose("How to go on?", {key: _CHOICES[key] for key in offered})
        if choice in {CONTINUE, FRESH}:
            return choice
        raise SessionError(
            f"{why}. Check it with ghost audit verify {session_id}; on a terminal --resume offers how to go on, and "
            "ghost investigate with a symptom starts anew"
        )

    def _fresh(self, damaged_id: str, az_lab: RunningLab | None, damaged: Session | None = None) -> OpenedSession:
        """Start anew on the symptom and in the network of a damaged session, in a copy of its lab if it had one."""
        recorded = recorded_symptom(SessionPaths(self._workspace.audit_dir, damaged_id).turns) or UserMessage("")
        symptom, stated = (damaged.symptom, damaged.stated) if damaged else (recorded.text or None, recorded.stated)
        paths = SessionPaths(self._workspace.audit_dir, damaged_id)
        if paths.anonymization_map.exists():  # of a private session: its placeholders mean nothing in another one
            self._private, real = True, Evidence(paths.shell_audit).restored
            symptom, stated = symptom and real(symptom), StatedEnds(**map_text(asdict(stated), real, keys=False))
        if symptom is not None:
            self._narration.line(f"Symptom of {damaged_id}: {symptom}")
        session_id, damaged_lab, lab = self._new_id(), self._lab_of(damaged_id), None
        if damaged_lab.is_dir():
            shutil.copytree(damaged_lab, self._lab_of(session_id), symlinks=True)
            lab = reopen_lab(self._lab_of(session_id))
        network = lab.briefing.network if lab else network_of_az(az_lab)
        created = self._created(session_id, lab or az_lab, network, symptom, stated, damaged_id)
        return OpenedSession(created, lab, az_lab)

    def _new_id(self) -> str:
        self.session_id = new_session_id(self._clock.now(), self._workspace.taken)
        return self.session_id

    def _created(
        self,
        session_id: str,
        lab: RunningLab | None,
        network: str,
        symptom: str | None,
        stated: StatedEnds,
        resumed_from: str | None = None,
    ) -> Session:
        session = Session(
            session_id=session_id,
            created_at=isoformat(self._clock.now()),
            resumed_from=resumed_from,
            model=self._brain.name,
            prompt_sha256=self._brain.prompt_hash,
            audit_dir=str(self._workspace.audit_dir),
            network=network,
            network_clock=(lab.clock.started, lab.clock.speed) if lab else None,
            symptom=symptom and without_secrets(symptom.strip()),
            stated=stated,
            audit_head=NO_RECORDS,
        )
        self._workspace.set_current_aside()
        saved = self._with_placeholders(session) if self._private else session
        save_session(self._workspace.session_file, saved)
        return session

    def _with_placeholders(self, session: Session) -> Session:
        """Return the session with a placeholder for each text that was typed."""
        literal = TopologyAnonymizer(session.paths(self._workspace.root).anonymization_map).literal
        stated = StatedEnds(**map_text(asdict(session.stated), literal, keys=False))
        return session.model_copy(update={"symptom": literal(session.symptom or "") or None, "stated": stated})

    def _lab_of(self, session_id: str) -> Path:
        return self._workspace.root / "lab" / session_id


def own_lab_of(session_id: str, network: str, workspace: Path, az_lab: RunningLab | None) -> RunningLab | None:
    """The lab of an earlier session in this network; None where it asked az, which must ask the same network here.

    Raises `SessionError` where it does not, and `LabError` if the lab is gone.
    """
    if network.endswith(SIMULATED):
        return reopen_lab(workspace / "lab" / session_id)
    if network != network_of_az(az_lab):
        raise SessionError(
            f"{session_id} is of {network}, and az here uses {network_of_az(az_lab)}: "
            "go on with it in a shell whose az uses the same network"
        )
    return None


def network_of_az(lab: RunningLab | None) -> str:
    """The network that az asks in this shell, by the lab behind it, if there is one."""
    return lab.briefing.network_of_az if lab else AZURE


def _first(problems: Sequence[str]) -> list[str]:
    more = len(problems) - MAX_LISTED
    return [*problems[:MAX_LISTED], *([f"and {more} more"] if more > 0 else [])]
