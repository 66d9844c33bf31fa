"""Stimuli waiting for the next cycle: stored before they are acknowledged, removed by the cycle that used them.

Each is a preference `stimulus:<id>` in the store, removed in the transaction of the consuming cycle, so a crash loses
none and no process handles one twice. Two processes on one store may both handle one: nothing reserves it during model
calls.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ghost.errors import GhostError
from ghost.mind.data_model import Stimulus
from ghost.mind.store import Changes, MemoryStore

PREFIX = "stimulus:"
MAX_WAITING = 1000


class InboxFull(GhostError):  # noqa: N818  a refusal, not a fault
    """The inbox is full. Nothing was stored; retry later."""


class Inbox:
    def __init__(self, store: MemoryStore, max_waiting: int = MAX_WAITING) -> None:
        self._store = store
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self.waiting()

    def put(self, stimuli: Sequence[Stimulus]) -> None:
        """Store stimuli, all or none, durable on return. Raises `InboxFull` and `StoreError`."""
        with self._lock:
            new = {stimulus.id for stimulus in stimuli} - self._ids
            if len(self._ids) + len(new) > self._max_waiting:
                raise InboxFull(
                    f"{len(self._ids)} stimuli are waiting, the maximum is {self._max_waiting}: send more when "
                    "some are processed"
                )
            self._store.apply(Changes(preferences=kept(stimuli)))
            self._ids |= new

    def waiting(self) -> list[Stimulus]:
        """Return waiting stimuli, oldest first, including those stored by other processes."""
        with self._lock:
            found = [
                stimulus
                for name, value in self._store.preferences().items()
                if name.startswith(PREFIX) and (stimulus := _read(value)) is not None
            ]
            self._ids = {stimulus.id for stimulus in found}
        return sorted(found, key=lambda stimulus: (stimulus.ts, stimulus.id))

    def forget(self, ids: Iterable[str]) -> None:
        """Drop stimuli that the store recorded as consumed."""
        with self._lock:
            self._ids.difference_update(ids)

    def __len__(self) -> int:
        return len(self._ids)


def kept(stimuli: Iterable[Stimulus]) -> Mapping[str, Any]:
    """Return the preferences that store these stimuli."""
    return {PREFIX + stimulus.id: stimulus.model_dump(mode="json") for stimulus in stimuli}


def consumed(stimuli: Iterable[Stimulus]) -> Mapping[str, None]:
    """Return the preferences that remove these stimuli."""
    return {PREFIX + stimulus.id: None for stimulus in stimuli}


def _read(value: Any) -> Stimulus | None:
    try:
        return Stimulus.model_validate(value) if value is not None else None
    except ValidationError:
        return None
