"""Stimuli that wait for the next cycle: kept before they are acknowledged, gone with the cycle that thought of them.

Each is a preference `stimulus:<id>` in the store, taken away by the transaction of the cycle that consumed it. So a
crash loses none, and no mind thinks of one twice. Two processes that think on one store at once may both think of one:
nothing claims it while a model is asked.
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
MOST_WAITING = 1000


class InboxFull(GhostError):  # noqa: N818  a refusal, not a fault
    """As many stimuli wait as may: the mind does not keep up. Nothing was taken; ask again later."""


class Inbox:
    def __init__(self, store: MemoryStore, most_waiting: int = MOST_WAITING) -> None:
        self._store = store
        self._most = most_waiting
        self._lock = threading.Lock()
        self._ids: set[str] = set()
        self.waiting()

    def put(self, stimuli: Sequence[Stimulus]) -> None:
        """Durable when it returns, all or none. Raises `InboxFull` and `StoreError`."""
        with self._lock:
            new = {stimulus.id for stimulus in stimuli} - self._ids
            if len(self._ids) + len(new) > self._most:
                raise InboxFull(
                    f"{len(self._ids)} stimuli wait and {self._most} may: send more when some were thought of"
                )
            self._store.apply(Changes(preferences=kept(stimuli)))
            self._ids |= new

    def waiting(self) -> list[Stimulus]:
        """Those that wait, oldest first, also those that another process put there."""
        with self._lock:
            found = [
                stimulus
                for name, value in self._store.preferences().items()
                if name.startswith(PREFIX) and (stimulus := _read(value)) is not None
            ]
            self._ids = {stimulus.id for stimulus in found}
        return sorted(found, key=lambda stimulus: (stimulus.ts, stimulus.id))

    def forget(self, ids: Iterable[str]) -> None:
        """These were consumed: the store has written so."""
        with self._lock:
            self._ids.difference_update(ids)

    def __len__(self) -> int:
        return len(self._ids)


def kept(stimuli: Iterable[Stimulus]) -> Mapping[str, Any]:
    """The preferences that keep these."""
    return {PREFIX + stimulus.id: stimulus.model_dump(mode="json") for stimulus in stimuli}


def consumed(stimuli: Iterable[Stimulus]) -> Mapping[str, None]:
    """The preferences that take these away."""
    return {PREFIX + stimulus.id: None for stimulus in stimuli}


def _read(value: Any) -> Stimulus | None:
    try:
        return Stimulus.model_validate(value) if value is not None else None
    except ValidationError:
        return None
