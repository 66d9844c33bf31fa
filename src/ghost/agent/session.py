"""The session file: a small index of one investigation, replaced atomically.

Holds references (audit ids, task ids, states), never command output. The conversation is in
`audit/ghost_turns_{sid}.jsonl`, the commands in `audit/shell_audit_{sid}.jsonl`. The file carries its own checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ghost.agent.hypotheses import EvidenceConflict, Hypothesis, HypothesisLog
from ghost.brain import StatedEnds
from ghost.errors import RecordError, SessionError
from ghost.records import Head, read_json, valid_session_id, write_json
from ghost.text import did_you_mean

AZURE: Final = "Azure"
"""The network name of a session on a real tenant."""
NO_RECORDS: Final = {name: Head().as_dict() for name in ("shell", "approvals", "tasks", "turns")}
"""The heads of a session that wrote nothing yet."""


@dataclass(frozen=True)
class MeantFlow:
    source: str
    """Empty: whoever can reach the destination."""
    destination: str
    protocol: str
    port: int | None


@dataclass(frozen=True)
class MeantTraffic:
    """The traffic that a symptom means, as code reads it: a model's conclusion is held to it, and to its walk."""

    flows: tuple[MeantFlow, ...] = ()
    sure: bool = False
    """Whether the words leave neither an end nor the port open."""

    @classmethod
    def of_check(cls, told: Mapping[str, Any]) -> MeantTraffic:
        """Return what `find_ends` told."""
        anybody = "not_known" in told
        flows = (
            MeantFlow("" if anybody else each["source"], each["destination"], each["protocol"], each["port"])
            for each in told.get("flows") or ()
        )
        return cls(tuple(flows), bool(told.get("sure")))


class Session(BaseModel):
    model_config = ConfigDict(extra="forbid")

    session_id: str
    created_at: str
    resumed_from: str | None = None
    """The damaged session in whose place this one was started."""
    model: str
    """The brain that investigates: `offline`, or provider, model and server (`ollama/qwen3 at 127.0.0.1`)."""
    earlier_models: list[str] = Field(default_factory=list)
    """The brains that investigated before `model`, if the session was resumed with another."""
    prompt_sha256: str | None = None
    """Of the system prompt that the model was given."""
    audit_dir: str
    network: str = AZURE
    """The network under investigation, or the name of a simulated one."""
    network_clock: tuple[float, float] | None = None
    """Of a simulated network: when its clock was started, as a UNIX time, and how many times as fast it runs."""
    symptom: str | None = None
    """What fails, as it was typed; None until somebody was asked."""
    stated: StatedEnds = StatedEnds()
    """What options state beside the symptom."""
    meant: MeantTraffic | None = None
    """Of a model's session: the traffic of the symptom as code reads it, once it concluded."""
    turn_count: int = 0
    rca_report_path: str | None = None
    rca_sha256: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of the report's files by name, to detect changes."""
    hypothesis_log: list[Hypothesis] = Field(default_factory=list)
    denial_tracker: dict[str, int] = Field(default_factory=dict)
    consecutive_denial_counter: dict[str, int] = Field(default_factory=dict)
    active_hypothesis_ids: list[str] = Field(default_factory=list)
    active_task_ids: list[str] = Field(default_factory=list)
    evidence_conflicts: list[EvidenceConflict] = Field(default_factory=list)
    is_resume: bool = False
    startup_audit_ids: list[str] = Field(default_factory=list)
    """Records of commands that each start runs by itself; they confirm nothing."""
    earlier_records: dict[str, Any] | None = None
    """The content of the file of that name: the session whose records stand for reads, and their head."""
    completion: dict[str, Any] | None = None
    """The arguments of `complete_investigation`, once it was called."""
    returned_conclusions: int = 0
    """How often a conclusion was returned to the brain because of its problems."""
    manual_cleanup_pending: list[str] = Field(default_factory=list)
    """Tasks, captures and files of earlier sessions whose clean-up was declined or failed."""
    integrity_warning: str | None = None
    read_only: bool = False
    """Whether what would have asked for an approval was refused, in a part of it at least."""
    audit_head: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Heads of the append-only files: `shell`, `approvals`, `tasks`, `turns`."""

    @property
    def hypotheses(self) -> HypothesisLog:
        return HypothesisLog(self.hypothesis_log, self.active_hypothesis_ids, self.evidence_conflicts)

    def on_network_clock(self, moment: datetime) -> datetime:
        """Return the time that the network's clock shows at a moment: that of a simulated one runs faster."""
        if self.network_clock is None:
            return moment
        started, speed = self.network_clock
        ahead = max(moment.timestamp() - started, 0.0) * (speed - 1)
        return moment + timedelta(seconds=ahead)

    def head(self, name: str) -> Head | None:
        return Head.from_dict(self.audit_head.get(name))

    def paths(self, workspace: Path) -> SessionPaths:
        return SessionPaths(workspace / "audit", self.session_id)


@dataclass(frozen=True)
class SessionPaths:
    """Paths of a session's files."""

    audit_dir: Path
    session_id: str

    @property
    def shell_audit(self) -> Path:
        return self.audit_dir / f"shell_audit_{self.session_id}.jsonl"

    @property
    def approvals(self) -> Path:
        """Present once somebody was asked."""
        return self.audit_dir / f"approvals_{self.session_id}.jsonl"

    @property
    def outputs(self) -> Path:
        """The directory of whole outputs, `{audit_id}.txt`, where the record holds a part."""
        return self.audit_dir / "output"

    @property
    def intent(self) -> Path:
        """Present while a command runs; left behind if it was cut off."""
        return self.audit_dir / f"shell_audit_{self.session_id}.intent.json"

    @property
    def anonymization_map(self) -> Path:
        """Present in a private session: the values behind its placeholders."""
        return self.audit_dir / f"anonymization_map_{self.session_id}.json"

    @property
    def tasks(self) -> Path:
        return self.audit_dir / f"orchestrator_tasks_{self.session_id}.jsonl"

    @property
    def turns(self) -> Path:
        return self.audit_dir / f"ghost_turns_{self.session_id}.jsonl"

    @property
    def calls(self) -> Path:
        """Of a connection of `ghost mcp`: the calls of its client."""
        return self.audit_dir / f"mcp_calls_{self.session_id}.jsonl"

    @property
    def watch_result(self) -> Path:
        """Of a run of a watch: what it found."""
        return self.audit_dir / f"watch_result_{self.session_id}.json"

    @property
    def earlier_records(self) -> Path:
        """Present where records of an earlier session stand for reads of this one: which session, up to which head."""
        return self.audit_dir / f"earlier_records_{self.session_id}.json"

    @property
    def report(self) -> Path:
        return self.audit_dir / f"ghost_rca_{self.session_id}.md"

    @property
    def report_json(self) -> Path:
        return self.audit_dir / f"ghost_rca_{self.session_id}.json"

    @property
    def report_page(self) -> Path:
        """Written with `--html`."""
        return self.audit_dir / f"ghost_rca_{self.session_id}.html"

    @property
    def archived_session(self) -> Path:
        return self.audit_dir / f"ghost_session_{self.session_id}.json"


def save_session(path: Path, session: Session) -> None:
    content = session.model_dump(mode="json")
    write_json(path, {**content, "_checksum": checksum(content)})


def load_session(path: Path) -> tuple[Session, bool]:
    """Return the session in `path` and whether its checksum matches.

    Raises `SessionError` if the file is missing, not JSON, or not a session.
    """
    try:
        content = read_json(path)
    except FileNotFoundError as missing:
        raise SessionError(f"no session file at {path}: ghost sessions lists the sessions") from missing
    except RecordError as broken:
        raise SessionError(f"the session file {path} is corrupted: {broken}") from broken
    if not isinstance(content, dict):
        raise SessionError(f"the session file {path} is corrupted: it does not hold an object; restore it from a copy")
    stored = content.pop("_checksum", None)
    try:
        session = Session.model_validate(content)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SessionError(
            f"the session file {path} is not a session: {where}: {first['msg']}; restore it from a copy"
        ) from invalid
    if not valid_session_id(session.session_id):
        raise SessionError(
            f"the session file {path} is not a session: its id is {session.session_id!r}; restore it from a copy"
        )
    return session, stored == checksum(content)


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 in hex of the content as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class Workspace:
    """The directory of the current session file and the files of all investigations."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def session_file(self) -> Path:
        return self.root / "ghost_session.json"

    @property
    def audit_dir(self) -> Path:
        return self.root / "audit"

    @property
    def fix_checks(self) -> Path:
        """What was found each time a fix was applied, or was checked (hash chain)."""
        return self.audit_dir / "fix_checks.jsonl"

    def find(self, session_id: str) -> Path:
        """Return the file of a current or earlier session. Raises `SessionError` naming the known ones.

        A current file that cannot be read may be that of any session that has no other.
        """
        if valid_session_id(session_id):
            current = self.current_id()
            if current == session_id:
                return self.session_file
            archived = SessionPaths(self.audit_dir, session_id).archived_session
            if archived.is_file():
                return archived
            if current is None and self.session_file.exists():
                return self.session_file
        near = did_you_mean(session_id, {*self.session_ids(), *self.recorded_ids()})
        raise SessionError(
            f"no session {session_id!r} in the workspace {self.root}: {near}ghost sessions lists them, --workspace DIR "
            "names another workspace"
        )

    def session_ids(self) -> Iterator[str]:
        current = self.current_id()
        if current is not None:
            yield current
        for path in sorted(self.audit_dir.glob("ghost_session_*.json")):
            identity = path.stem.removeprefix("ghost_session_")
            if identity != current and valid_session_id(identity):
                yield identity

    def recorded_ids(self) -> Iterator[str]:
        """Return investigations with recorded turns, whether or not their session file exists."""
        for path in sorted(self.audit_dir.glob("ghost_turns_*.jsonl")):
            identity = path.stem.removeprefix("ghost_turns_")
            if valid_session_id(identity):
                yield identity

    def taken(self, session_id: str) -> bool:
        """Return whether files of a session with this id exist."""
        if not valid_session_id(session_id):
            return False
        return session_id == self.current_id() or any(self.audit_dir.glob(f"*_{session_id}.*"))

    def set_current_aside(self) -> None:
        """Move the current session's file into `audit/`, so that another can become current."""
        if not self.session_file.exists():
            return
        current, number = self.current_id(), 0
        aside = SessionPaths(self.audit_dir, current).archived_session if current else None
        while aside is None or aside.exists():
            number += 1
            aside = self.root / f"ghost_session.corrupt-{number}.json"
        self.session_file.replace(aside)

    def current_id(self) -> str | None:
        """Return the id in the current session file; None if there is none, or it cannot be read."""
        try:
            return load_session(self.session_file)[0].session_id
        except SessionError:
            return None
