"""Opens the session of an investigation, a new one or one that is resumed, with the network that it investigates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ghost.agent import AZURE, Session, Workspace, load_session, save_session, verify_session
from ghost.cli.narration import Narration
from ghost.config import Settings
from ghost.errors import SessionError
from ghost.lab import RunningLab, Scenario, lab_behind_az
from ghost.lab import reopen as reopen_lab
from ghost.lab import start as start_lab
from ghost.records import Clock, isoformat, new_session_id

SIMULATED = "(SIMULATED)"
"""Behind the name of a lab that belongs to the session itself."""


@dataclass(frozen=True)
class OpenedSession:
    session: Session
    lab: RunningLab | None
    """The lab of this session."""
    lab_behind_az: RunningLab | None
    """The lab that az asks in this shell, whichever the session."""


class SessionOpening:
    """`model`: the brain's name. The workspace is locked around it."""

    def __init__(
        self, workspace: Workspace, settings: Settings, narration: Narration, clock: Clock, model: str
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._narration = narration
        self._clock = clock
        self._model = model

    def new(self, scenario: Scenario | None) -> OpenedSession:
        """Start a session in a lab of its own, or in the network that az asks."""
        az_lab = lab_behind_az() if scenario is None else None
        session_id = new_session_id(self._clock.now(), self._workspace.taken)
        lab = start_lab(scenario, self._lab_of(session_id), speed=self._settings.lab_speed) if scenario else None
        session = Session(
            session_id=session_id,
            created_at=isoformat(self._clock.now()),
            model=self._model,
            audit_dir=str(self._workspace.audit_dir),
            network=f"lab {scenario.name} {SIMULATED}" if scenario else network_of_az(az_lab),
        )
        self._workspace.set_current_aside()
        save_session(self._workspace.session_file, session)
        return OpenedSession(session, lab, az_lab)

    def resumed(self, session_id: str) -> OpenedSession:
        """Raises `SessionError` if its network is another one here, or its records were changed and nobody accepts it,
        and `LabError` if its lab is gone."""
        path = self._workspace.find(session_id)
        session, intact = load_session(path)
        az_lab, has_own_lab = lab_behind_az(), session.network.endswith(SIMULATED)
        if not has_own_lab and session.network != network_of_az(az_lab):
            raise SessionError(
                f"{session.session_id} investigated {session.network}, and az here asks {network_of_az(az_lab)}: "
                "resume it in a shell whose az asks the same"
            )
        checks = verify_session(session, session.paths(self._workspace.root), checksum_holds=intact)
        problems = [f"{check.name}: {problem}" for check in checks for problem in check.problems]
        if problems:
            self._accept_changed_records(session, problems)
        if path != self._workspace.session_file:
            self._workspace.set_current_aside()
            path.replace(self._workspace.session_file)
        session.is_resume = True
        session.model = self._model
        save_session(self._workspace.session_file, session)
        return OpenedSession(session, reopen_lab(self._lab_of(session.session_id)) if has_own_lab else None, az_lab)

    def _accept_changed_records(self, session: Session, problems: list[str]) -> None:
        """Ask before resuming a session whose records were changed from outside."""
        choice = self._narration.choose(
            f"Warning: the records of {session.session_id} were changed: {'; '.join(problems)}",
            {"c": "Continue anyway", "a": "Abort"},
        )
        if choice != "c":
            raise SessionError(
                f"the records of {session.session_id} were changed from outside ({'; '.join(problems)}): look at them "
                "(ghost audit verify), then resume on a terminal to continue anyway, or start anew"
            )
        session.integrity_warning = f"when it was resumed, {'; '.join(problems)}"

    def _lab_of(self, session_id: str) -> Path:
        return self._workspace.root / "lab" / session_id


def network_of_az(lab: RunningLab | None) -> str:
    """The network that az asks in this shell, by the lab behind it, if there is one."""
    return f"lab {lab.briefing.name} (SIMULATED, asked by az)" if lab else AZURE
