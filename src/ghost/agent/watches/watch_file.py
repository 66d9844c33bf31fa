"""The watches of a workspace: one JSON file, changed under a lock of its own, whole or not at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ghost.agent.fixes import Sender
from ghost.agent.watches.snapshot_comparison import Outcome
from ghost.errors import RecordError, UsageError
from ghost.net import Flow
from ghost.records import file_lock, read_json, write_json

WATCH: Final = "watch_"
"""The beginning of the ids of runs, which are sessions of SAFE commands."""
MAX_WATCHES: Final = 100
KEPT_RUNS: Final = 2
"""Snapshots that are kept beside those that differed."""
SAME_DRIFT_SECONDS: Final = 86_400.0
"""In which the same drift of a watch is told once."""
MAX_BACKOFF: Final = 16
"""A watch that cannot be read waits twice as long each time, up to so many intervals."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WatchedFlow(_Row):
    protocol: str
    source: str
    destination: str
    port: int | None = None
    interface: str | None = None
    """The id of the interface that sends, where an address does not tell it."""

    @classmethod
    def of(cls, sender: Sender) -> WatchedFlow:
        flow, interface = sender
        return cls(
            protocol=flow.protocol,
            source=flow.source_address,
            destination=flow.destination_address,
            port=flow.destination_port,
            interface=interface,
        )

    @property
    def sender(self) -> Sender:
        return Flow(self.protocol, self.source, None, self.destination, self.port), self.interface


class WatchRun(_Row):
    session_id: str
    at: float
    """UNIX time."""
    outcome: Outcome
    why: str = ""
    is_whole: bool = False
    """Whether all was read that the walks need: others compare with that alone."""


class Drift(_Row):
    """A difference that changed a walk. `query_id`: the question that was asked about it; None until it is.

    `undoes`: the sessions of earlier drifts, from the one before which the path was as it is with this one.
    """

    session_id: str
    compared_with: str
    at: float
    changes: list[dict[str, str]]
    """Of each change its flow, what was before, and what is now."""
    changed_by: list[str]
    query_id: str | None = None
    undoes: list[str] = Field(default_factory=list)


class Watch(_Row):
    id: str
    title: str
    """Its ends, as they were named."""
    flows: list[WatchedFlow]
    network: str
    """As a session names it."""
    investigation: str | None = None
    """The session that it was made of, in whose lab it is run; of a watch of a lab of its own, the lab's name."""
    every_seconds: float
    due_at: float
    baseline: str
    """The session that later runs are compared with: the last one that differed, else the first."""
    runs: list[WatchRun] = Field(default_factory=list)
    drifts: list[Drift] = Field(default_factory=list)
    failures: int = 0
    """Runs in a row that could not read what decides."""
    running: str | None = None
    """The session of a run that has begun; of an earlier process, one that was cut off."""

    @property
    def senders(self) -> tuple[Sender, ...]:
        return tuple(each.sender for each in self.flows)

    @property
    def lab(self) -> str:
        """Whose lab it is run in, where its network is a lab."""
        return self.investigation or self.id

    @property
    def kept_sessions(self) -> frozenset[str]:
        """The runs whose records stay: the last two, the last two that read all, and each of these that differed."""
        whole = [run for run in self.runs if run.is_whole]
        differed = [run for run in whole if run.outcome != "no_drift"]
        kept = {run.session_id for run in (*self.runs[-KEPT_RUNS:], *whole[-KEPT_RUNS:], *differed)}
        cited = {each for drift in self.drifts for each in (drift.session_id, drift.compared_with)}
        return frozenset({self.baseline, *kept, *cited})

    def begun(self, session_id: str) -> None:
        """Note a run that begins; one that was cut off is among the runs, so that its records are removed."""
        if self.running is not None:
            cut_off = WatchRun(session_id=self.running, at=self.due_at, outcome="not_known", why="it was interrupted")
            self.runs.append(cut_off)
        self.running = session_id

    def ended(self, run: WatchRun) -> None:
        """Note how a run ended, and when the next is due."""
        self.running = None
        self.runs.append(run)
        self.failures = self.failures + 1 if run.outcome == "not_known" else 0
        self.due_at = run.at + self.every_seconds * min(2.0**self.failures, MAX_BACKOFF)
        if run.outcome in ("started", "drift") and run.is_whole:
            self.baseline = run.session_id

    def note(self, drift: Drift) -> None:
        """Note a drift, but one that is as one of the day before, unless it undoes others."""
        recent = [each for each in self.drifts if drift.at - each.at < SAME_DRIFT_SECONDS]
        if drift.undoes or all(each.changes != drift.changes for each in recent):
            self.drifts.append(drift)

    def forget(self, sessions: Collection[str]) -> None:
        """Drop the drifts of these sessions: nobody need be asked about them."""
        self.drifts = [each for each in self.drifts if each.session_id not in sessions]


class _Content(_Row):
    last_number: int = 0
    watches: list[Watch] = Field(default_factory=list)


class Watches:
    """The watches of a workspace, by id."""

    def __init__(self, root: Path) -> None:
        self._path = root / "data" / "watches.json"

    def all(self) -> list[Watch]:
        """Raises `RecordError` where the file is damaged."""
        return self._read().watches

    def get(self, watch_id: str) -> Watch:
        """Raises `UsageError` where there is none of this id."""
        watches = self.all()
        return next((each for each in watches if each.id == watch_id), None) or _unknown(watch_id, watches)

    def add(self, watch: Watch) -> Watch:
        """Add a watch under an id of its own, and return it."""
        with self._changed() as content:
            if len(content.watches) >= MAX_WATCHES:
                raise UsageError(f"there are {MAX_WATCHES} watches: remove one (ghost watch remove ID)")
            content.last_number += 1
            added = watch.model_copy(update={"id": f"w{content.last_number}"})
            content.watches.append(added)
        return added

    def remove(self, watch_id: str) -> Watch:
        with self._changed() as content:
            found = _of(content, watch_id)
            content.watches.remove(found)
        return found

    @contextmanager
    def changed(self, watch_id: str) -> Iterator[Watch]:
        """Yield a watch to change; written at the end. Raises `UsageError` where it was removed."""
        with self._changed() as content:
            yield _of(content, watch_id)

    @contextmanager
    def _changed(self) -> Iterator[_Content]:
        with file_lock(self._path.with_suffix(".lock")):
            content = self._read()
            yield content
            write_json(self._path, content.model_dump(mode="json"))

    def _read(self) -> _Content:
        try:
            return _Content.model_validate(read_json(self._path))
        except FileNotFoundError:
            return _Content()
        except ValidationError as invalid:
            raise RecordError(f"{self._path} does not hold watches: restore it from a copy or remove it") from invalid


def _of(content: _Content, watch_id: str) -> Watch:
    found = next((each for each in content.watches if each.id == watch_id), None)
    return found or _unknown(watch_id, content.watches)


def _unknown(watch_id: str, watches: list[Watch]) -> Watch:
    there = ", ".join(each.id for each in watches) or "none"
    raise UsageError(f"no watch {watch_id!r}; there are: {there} (see: ghost watch list)")
